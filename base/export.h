/* SPDX-License-Identifier: Apache-2.0 */
/* export.h - marks the exported symbols of the shared libraries; all others are hidden. */
#ifndef TW_BASE_EXPORT_H
#define TW_BASE_EXPORT_H

#define TW_API __attribute__((visibility("default")))

#endif
