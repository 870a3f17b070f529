/* SPDX-License-Identifier: Apache-2.0 */
/* returns_help.h - functions whose returns are watched, and what watches them. */
#ifndef TW_TESTS_RETURNS_HELP_H
#define TW_TESTS_RETURNS_HELP_H

#include "sanitized_help.h"

/* Has an entry sled, and is called as it is written. */
#ifdef __clang__
#define TRACED __attribute__((noinline, patchable_function_entry(9, 0)))
#else
#define TRACED __attribute__((noinline, noclone, patchable_function_entry(9, 0)))
#endif
/* What runs between a call and its function, or its return: vector registers are the program's. */
#define REGULAR __attribute__((target("general-regs-only")))

#endif
