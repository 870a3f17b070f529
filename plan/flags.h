/* SPDX-License-Identifier: Apache-2.0 */
/*
 * flags.h - does a function read status flags that its caller passes?
 *
 * Hand-written code may pass carry or zero to a function; compilers never do.  A recorded call changes the flags.
 *
 * Threads  any.
 */
#ifndef TW_PLAN_FLAGS_H
#define TW_PLAN_FLAGS_H

#include "plan/scan.h"

/*
 * tw_flags_are_passed - does the code from a value on read a status flag that it has not set?
 *
 * Follows direct jumps, both ways of conditional ones, and direct calls, as far as flags stay as they were at the entry; code that
 * cannot be followed, or not to the end within a limit, counts as code that sets them.
 */
bool tw_flags_are_passed(const struct tw_scan *scan, uint64_t value);

#endif
