/* SPDX-License-Identifier: Apache-2.0 */
/* export.h - marks what the shared libraries show; everything else is hidden. */
#ifndef TW_BASE_EXPORT_H
#define TW_BASE_EXPORT_H

#define TW_API __attribute__((visibility("default")))

#endif
