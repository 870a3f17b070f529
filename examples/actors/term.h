/* SPDX-License-Identifier: Apache-2.0 */
/* term.h - the run-time's values as Tracewheel's terms, which live until terms_fini(). */
#ifndef ACTORS_TERM_H
#define ACTORS_TERM_H

#include "value.h"

#include <tracewheel/term.h>

#define TERMS_BYTES	4096
#define TERMS_BYTES_MAX ((size_t)64 << 20)

/* Memory on the stack, where most terms fit, and beyond it from malloc: match specifications see whole terms. */
struct terms {
	struct tw_arena arena;
	char buffer[TERMS_BYTES];
};

static inline void terms_init(struct terms *terms)
{
	tw_arena_init_buffer(&terms->arena, terms->buffer, TERMS_BYTES, TERMS_BYTES_MAX);
}

static inline void terms_fini(struct terms *terms)
{
	tw_arena_fini(&terms->arena);
}

/* '...' when the arena is full, at TERMS_BYTES_MAX. */
struct tw_term term_of(struct tw_arena *arena, struct value value);

#endif
