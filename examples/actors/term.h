/* SPDX-License-Identifier: Apache-2.0 */
/* term.h - the run-time's values as Tracewheel's terms, which live until terms_fini(). */
#ifndef ACTORS_TERM_H
#define ACTORS_TERM_H

#include "value.h"

#include <tracewheel/term.h>

#define TERMS_BYTES 4096

/* Room on the stack; what is larger is said as '...'. */
struct terms {
	struct tw_arena arena;
	char room[TERMS_BYTES];
};

static inline void terms_init(struct terms *terms)
{
	tw_arena_init_fixed(&terms->arena, terms->room, TERMS_BYTES);
}

static inline void terms_fini(struct terms *terms)
{
	tw_arena_fini(&terms->arena);
}

/* '...' where the arena is full. */
struct tw_term term_of(struct tw_arena *arena, struct value value);

#endif
