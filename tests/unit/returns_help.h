/* SPDX-License-Identifier: Apache-2.0 */
/* returns_help.h - functions whose returns are watched, and their hooks. */
#ifndef TW_TESTS_RETURNS_HELP_H
#define TW_TESTS_RETURNS_HELP_H

#include "sanitized_help.h"

/* A function with an entry sled that is called as written. */
#ifdef __clang__
#define TRACED __attribute__((noinline, patchable_function_entry(9, 0)))
#else
#define TRACED __attribute__((noinline, noclone, patchable_function_entry(9, 0)))
#endif
/* Code that runs between a call and its function, or its return: vector registers hold the program's values. */
#define REGULAR __attribute__((target("general-regs-only")))

#endif
