/* SPDX-License-Identifier: Apache-2.0 */
/* parse.h - from text to the term of a specification. */
#ifndef TW_MATCH_PARSE_H
#define TW_MATCH_PARSE_H

#include "match/match.h"

/* A specification in Erlang text; errors as tw_match_compile_text(). */
int tw_match_parse_text(struct tw_arena *arena, const char *text, size_t bytes, struct tw_term *spec,
			struct tw_match_error *error);

/* An expression; errors as tw_match_compile_when(). */
int tw_match_parse_when(struct tw_arena *arena, const char *text, size_t bytes, struct tw_term *spec,
			struct tw_match_error *error);

/*
 * tw_match_refuse_never - refuse a guard that is false, or true, for all arguments.
 *
 * @are_words	the arguments are the six integer registers.
 *
 * Returns 0, or TW_EBADARG with a suggestion.
 */
int tw_match_refuse_never(struct tw_term guard, bool are_words, struct tw_match_error *error);

/* Fills in an error at an offset of a text; returns TW_EBADARG. */
int tw_match_parse_refuse(struct tw_match_error *error, const char *text, size_t offset, const char *message);

#endif
