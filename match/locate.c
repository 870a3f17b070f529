/* SPDX-License-Identifier: Apache-2.0 */
/*
 * locate.c - finds the position of a part of a term in the text that it was parsed from.
 *
 * The parser records no positions.  Errors are rare, so the text is walked a second time: it is known to be valid, and
 * only separators and brackets matter here.
 */
#include "match/builder.h"

/* The end of a quoted atom or string that begins at @at. */
static size_t skip_quoted(const char *text, size_t bytes, size_t at)
{
	char quote = text[at++];

	while (at < bytes && text[at] != quote)
		at += text[at] == '\\' ? 2 : 1;
	return at + 1;
}

/* The end of a character, $a or $\n; the rest of a longer escape looks like a name. */
static size_t skip_character(const char *text, size_t bytes, size_t at)
{
	return at + (at + 1 < bytes && text[at + 1] == '\\' ? 3 : 2);
}

static size_t skip_space(const char *text, size_t bytes, size_t at)
{
	while (at < bytes) {
		if (text[at] == '%') {
			while (at < bytes && text[at] != '\n')
				at++;
		} else if (text[at] != ' ' && text[at] != '\t' && text[at] != '\n' && text[at] != '\r') {
			break;
		} else {
			at++;
		}
	}
	return at;
}

/* The end of a term: at a comma, a bar, a closing bracket or the end of the text. */
static size_t skip_term(const char *text, size_t bytes, size_t at)
{
	uint32_t depth = 0;

	while (at < bytes) {
		char c = text[at];

		if (c == '"' || c == '\'') {
			at = skip_quoted(text, bytes, at);
			continue;
		}
		if (c == '$') {
			at = skip_character(text, bytes, at);
			continue;
		}
		if (c == '%') {
			at = skip_space(text, bytes, at);
			continue;
		}
		if (depth == 0 && (c == ',' || c == '|' || c == ']' || c == '}' || c == ')'))
			break;
		depth += c == '[' || c == '{' || c == '(';
		depth -= c == ']' || c == '}' || c == ')';
		at++;
	}
	return at;
}

size_t tw_match_locate(const char *text, size_t bytes, const uint32_t *path, uint32_t depth)
{
	size_t at = skip_space(text, bytes, 0);
	uint32_t step;

	for (step = 0; step < depth && at < bytes && (text[at] == '[' || text[at] == '{'); step++) {
		size_t next = skip_space(text, bytes, at + 1);
		uint32_t i;

		for (i = 0; i < path[step]; i++) {
			next = skip_term(text, bytes, next);
			if (next >= bytes || (text[next] != ',' && text[next] != '|'))
				return at;
			next = skip_space(text, bytes, next + 1);
		}
		if (next >= bytes)
			return at;
		at = next;
	}
	return at < bytes ? at : bytes;
}
