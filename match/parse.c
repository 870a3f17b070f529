/* SPDX-License-Identifier: Apache-2.0 */
/* parse.c - parses specifications in Erlang text; errors point into the text. */
#include "match/parse.h"

#include <stdio.h>

int tw_match_parse_refuse(struct tw_match_error *error, const char *text, size_t offset, const char *message)
{
	size_t i;

	if (!error)
		return TW_EBADARG;
	memset(error, 0, sizeof *error);
	snprintf(error->text, sizeof error->text, "%s", message);
	error->offset = offset;
	error->line = 1;
	error->column = 1;
	for (i = 0; i < offset; i++) {
		error->column++;
		if (text[i] == '\n') {
			error->line++;
			error->column = 1;
		}
	}
	return TW_EBADARG;
}

int tw_match_parse_text(struct tw_arena *arena, const char *text, size_t bytes, struct tw_term *spec,
			struct tw_match_error *error)
{
	struct tw_parse_error parse_error = {0};
	int result;

	if (bytes > TW_MATCH_TEXT_BYTES_MAX) {
		tw_match_parse_refuse(error, text, 0, "the text is longer than 4 MiB");
		return TW_ELIMIT;
	}
	result = tw_term_parse(arena, text, bytes, spec, &parse_error);
	if (result == TW_EBADARG || result == TW_ELIMIT)
		tw_match_parse_refuse(error, text, parse_error.offset, parse_error.message);
	return result;
}
