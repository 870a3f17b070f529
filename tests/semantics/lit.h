/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lit.h - terms in tests as text: lit("{trace,%t,call,{tro,f1,[%d]}}", pid, 1).
 *
 * Threads  any; every term lives in the given arena.
 */
#ifndef TW_TESTS_SEMANTICS_LIT_H
#define TW_TESTS_SEMANTICS_LIT_H

#include "tracewheel/term.h"

#include <stdbool.h>
#include <stddef.h>

/*
 * lit_in - parses a term with values in it: %t a struct tw_term, %d an int, %a an atom's name (const char *).
 *
 * An invalid text ends the program: the test is wrong.
 */
struct tw_term lit_in(struct tw_arena *arena, const char *format, ...);

/* Rebuilds a term: change returns a replacement, or none to descend into the term. */
typedef struct tw_term (*lit_change_fn)(struct tw_arena *arena, struct tw_term term, void *context);
struct tw_term lit_map(struct tw_arena *arena, struct tw_term term, lit_change_fn change, void *context);

/* The number of elements of a proper list, and element i of it. */
size_t lit_count(struct tw_term list);
struct tw_term lit_nth(struct tw_term list, size_t i);

/* Is it the atom of that name? */
bool lit_is(struct tw_term term, const char *name);

/* As text, in a buffer that the next four calls do not change. */
const char *lit_text(struct tw_term term);

/* Gives the text of a file; one that cannot be read ends the program. */
char *lit_read(const char *path, size_t *bytes);

#endif
