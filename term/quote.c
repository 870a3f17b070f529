/* SPDX-License-Identifier: Apache-2.0 */
/* quote.c - which names and characters Erlang text must quote or escape, and how. */
#include "term/print.h"
#include "term/term.h"
#include "term/utf8.h"

static const char *const reserved_words[] = {
	"after", "and",	 "andalso", "band",   "begin",	 "bnot", "bor", "bsl",	"bsr",
	"bxor",	 "case", "catch",   "cond",   "div",	 "end",	 "fun", "if",	"let",
	"not",	 "of",	 "or",	    "orelse", "receive", "rem",	 "try", "when", "xor",
};

/* Reserved and quoted since OTP 27; accepted unquoted when parsing. */
static const char *const newer_words[] = {"else", "maybe"};

static bool is_among(const char *const *words, size_t count, const char *name, size_t bytes)
{
	size_t i;

	for (i = 0; i < count; i++) {
		if (strlen(words[i]) == bytes && memcmp(words[i], name, bytes) == 0)
			return true;
	}
	return false;
}

bool tw_is_reserved_word(const char *name, size_t bytes)
{
	return is_among(reserved_words, TW_COUNT_OF(reserved_words), name, bytes);
}

/* Lower case in Erlang names: ISO 8859-1. */
static bool is_lower(uint32_t c)
{
	return (c >= 'a' && c <= 'z') || (c >= 0xdf && c <= 0xff && c != 0xf7);
}

static bool is_name_character(uint32_t c)
{
	return is_lower(c) || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '@' ||
	       (c >= 0xc0 && c <= 0xde && c != 0xd7);
}

static bool needs_quotes(const char *name, size_t bytes)
{
	const char *at = name, *end = name + bytes;
	uint32_t character = 0;

	if (bytes == 0)
		return true;
	while (at < end) {
		size_t step = tw_utf8_next(at, end, &character);

		if (at == name ? !is_lower(character) : !is_name_character(character))
			return true;
		at += step;
	}
	return tw_is_reserved_word(name, bytes) || is_among(newer_words, TW_COUNT_OF(newer_words), name, bytes);
}

/* The letter of a two-character escape, or 0. */
static char escape_letter(uint32_t c)
{
	switch (c) {
	case '\b': return 'b';
	case '\t': return 't';
	case '\n': return 'n';
	case '\v': return 'v';
	case '\f': return 'f';
	case '\r': return 'r';
	case 27: return 'e';
	case 127: return 'd';
	case '\\': return '\\';
	default: return 0;
	}
}

size_t tw_print_quoted(char *at, uint32_t c, char quote)
{
	char letter;

	if (tw_likely(c >= ' ' && c < 127 && c != '\\' && c != (unsigned char)quote)) {
		at[0] = (char)c;
		return 1;
	}
	if (c >= 160)
		return tw_utf8_put(at, c);
	at[0] = '\\';
	letter = c == (unsigned char)quote ? quote : escape_letter(c);
	if (letter) {
		at[1] = letter;
		return 2;
	}
	at[1] = (char)('0' + (c >> 6));
	at[2] = (char)('0' + (c >> 3 & 7));
	at[3] = (char)('0' + (c & 7));
	return 4;
}

size_t tw_print_atom_name(const char *name, size_t bytes, char *at)
{
	const char *from = name, *end = name + bytes;
	char *p = at;
	uint32_t character = 0;

	if (!needs_quotes(name, bytes)) {
		memcpy(at, name, bytes);
		return bytes;
	}
	*p++ = '\'';
	while (from < end) {
		from += tw_utf8_next(from, end, &character);
		p += tw_print_quoted(p, character, '\'');
	}
	*p++ = '\'';
	return (size_t)(p - at);
}
