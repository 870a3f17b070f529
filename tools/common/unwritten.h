/* SPDX-License-Identifier: Apache-2.0 */
/* unwritten.h - why a capture made of others (tracewheel/merge.h, tracewheel/cut.h) was not written. */
#ifndef TW_TOOLS_UNWRITTEN_H
#define TW_TOOLS_UNWRITTEN_H

#include <stdbool.h>

/* Says it by the error, and returns false. */
bool tw_unwritten(const char *path, bool is_forced, int error);

#endif
