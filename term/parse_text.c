/* SPDX-License-Identifier: Apache-2.0 */
/* parse_text.c - characters with their escapes, strings and atoms. */
#include "term/parse.h"
#include "term/print.h"
#include "term/utf8.h"

/* ---- characters ---- */

static int hex_digit(char c)
{
	if (tw_char_is(c, TW_CHAR_DIGIT))
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* After "\x": two digits, or any number of them in braces. */
static bool read_hex(struct tw_reader *r, const char *start, uint32_t *character)
{
	bool is_braced = tw_reader_is_at(r, '{');
	uint64_t value = 0;
	int count = 0;

	r->at += is_braced;
	while (r->at < r->end && hex_digit(*r->at) >= 0 && (is_braced || count < 2)) {
		value = value * 16 + (uint64_t)hex_digit(*r->at++);
		count++;
		if (value > 0x10ffff)
			break;
	}
	if (is_braced ? (count == 0 || !tw_reader_is_at(r, '}')) : count < 2) {
		tw_reader_fail(r, start, "expected \\xHH or \\x{H...} with a character up to 10ffff");
		return false;
	}
	r->at += is_braced;
	if (!tw_is_unicode(value)) {
		tw_reader_fail(r, start, "the escape is no Unicode character");
		return false;
	}
	*character = (uint32_t)value;
	return true;
}

/* Up to three octal digits, from the first. */
static uint32_t read_octal(struct tw_reader *r)
{
	uint32_t value = 0;
	int count;

	for (count = 0; count < 3 && r->at < r->end && *r->at >= '0' && *r->at <= '7'; count++)
		value = value * 8 + (uint32_t)(*r->at++ - '0');
	return value;
}

static bool read_plain(struct tw_reader *r, uint32_t *character)
{
	size_t step;

	if (r->at == r->end) {
		tw_reader_fail(r, r->at, "the text ends inside a character, string or quoted atom");
		return false;
	}
	step = tw_utf8_next(r->at, r->end, character);
	if (!step) {
		tw_reader_fail(r, r->at, "this is not UTF-8");
		return false;
	}
	r->at += step;
	return true;
}

/* After the backslash. */
static bool read_escape(struct tw_reader *r, const char *start, uint32_t *character)
{
	if (r->at < r->end && *r->at >= '0' && *r->at <= '7') {
		*character = read_octal(r);
		return true;
	}
	if (!read_plain(r, character))
		return false;
	switch (*character) {
	case 'x': return read_hex(r, start, character);
	case '^':
		if (!read_plain(r, character))
			return false;
		*character &= 31;
		return true;
	case 'b': *character = '\b'; return true;
	case 'd': *character = 127; return true;
	case 'e': *character = 27; return true;
	case 'f': *character = '\f'; return true;
	case 'n': *character = '\n'; return true;
	case 'r': *character = '\r'; return true;
	case 's': *character = ' '; return true;
	case 't': *character = '\t'; return true;
	case 'v': *character = '\v'; return true;
	default: return true;
	}
}

/* Decodes one character, or an escape that begins with a backslash. */
static bool read_character(struct tw_reader *r, uint32_t *character)
{
	const char *start = r->at;

	if (!tw_reader_is_at(r, '\\'))
		return read_plain(r, character);
	r->at++;
	return read_escape(r, start, character);
}

struct tw_term tw_read_dollar(struct tw_reader *r)
{
	uint32_t character = 0;

	r->at++;
	return read_character(r, &character) ? tw_small(character) : tw_word(0);
}

/* ---- strings ---- */

static bool read_one_string(struct tw_reader *r)
{
	const char *start = r->at;
	uint32_t character = 0;

	r->at++;
	while (!tw_reader_is_at(r, '"')) {
		if (r->at == r->end) {
			tw_reader_fail(r, start, "the string that begins here has no end");
			return false;
		}
		if (!read_character(r, &character) || !tw_reader_push(r, tw_small(character)))
			return false;
	}
	r->at++;
	return true;
}

bool tw_read_characters(struct tw_reader *r)
{
	const char *behind;

	do {
		if (!read_one_string(r))
			return false;
		behind = r->at;
		tw_reader_skip(r);
	} while (tw_reader_is_at(r, '"'));
	r->at = behind;
	return true;
}

struct tw_term tw_read_string(struct tw_reader *r)
{
	size_t bottom = r->value_count;
	struct tw_term list;

	if (!tw_read_characters(r))
		return tw_word(0);
	list = tw_term_list(r->arena, r->values + bottom, r->value_count - bottom, tw_term_nil());
	r->value_count = bottom;
	return tw_reader_built(r, list);
}

/* ---- atoms ---- */

static struct tw_term intern(struct tw_reader *r, const char *start, const char *name, size_t bytes)
{
	struct tw_term atom = tw_term_atom(name, bytes);

	if (!tw_term_is_none(atom))
		return atom;
	if (tw_atom_count() >= TW_ATOMS_MAX)
		return tw_reader_fail(r, start, "the table of atoms is full");
	return tw_reader_fail(r, start, "the atom has more than 255 characters, or the table of atoms is full");
}

/* Length of a letter of ISO 8859-1 beyond ASCII that is allowed in a name; 0 for other characters. */
static size_t wide_letter_bytes(const struct tw_reader *r, const char *at, bool is_first)
{
	uint32_t c = 0;
	size_t step = tw_utf8_next(at, r->end, &c);

	if (!step || c < (is_first ? 0xdfu : 0xc0u) || c > 0xff || c == 0xd7 || c == 0xf7)
		return 0;
	return step;
}

/* The end of the name that begins at @at; @at itself if there is none. */
static const char *behind_name(const struct tw_reader *r, const char *at)
{
	const char *p = at;

	while (p < r->end) {
		if (tw_likely(tw_char_is(*p, TW_CHAR_NAME))) {
			p++;
		} else if (tw_char_is(*p, TW_CHAR_WIDE) && wide_letter_bytes(r, p, p == at)) {
			p += wide_letter_bytes(r, p, p == at);
		} else {
			break;
		}
	}
	return p;
}

static struct tw_term refuse_name(struct tw_reader *r)
{
	uint32_t character;

	if (!tw_utf8_next(r->at, r->end, &character))
		return tw_reader_fail(r, r->at, "this is not UTF-8");
	return tw_reader_fail(r, r->at, "no term begins like this; an atom of such letters needs quotes");
}

struct tw_term tw_read_plain_atom(struct tw_reader *r)
{
	const char *start = r->at;
	struct tw_term atom;
	size_t bytes;

	r->at = behind_name(r, start);
	bytes = (size_t)(r->at - start);
	if (bytes == 0)
		return refuse_name(r);
	atom = intern(r, start, start, bytes);
	if (tw_term_is_none(atom))
		return atom;
	/* Among the names accepted here, only reserved words, present or future, need quotes. */
	if (tw_unlikely(tw_atom_entry(tw_atom_index(atom))->printed_bytes != bytes) &&
	    tw_is_reserved_word(start, bytes))
		return tw_reader_fail(r, start, "this is a reserved word; put quotes around it to make it an atom");
	return atom;
}

struct tw_term tw_read_atom(struct tw_reader *r)
{
	if (*r->at == 'f' && behind_name(r, r->at) == r->at + 3 && tw_reader_take(r, "fun"))
		return tw_read_fun(r);
	return tw_read_plain_atom(r);
}

struct tw_term tw_read_quoted_atom(struct tw_reader *r)
{
	char name[TW_ATOM_CHARACTERS_MAX * 4 + 4];
	const char *start = r->at;
	uint32_t character = 0;
	size_t bytes = 0;

	r->at++;
	while (!tw_reader_is_at(r, '\'')) {
		if (r->at == r->end)
			return tw_reader_fail(r, start, "the quoted atom that begins here has no end");
		if (bytes > TW_ATOM_CHARACTERS_MAX * 4)
			return tw_reader_fail(r, start, "the atom has more than 255 characters");
		if (!read_character(r, &character))
			return tw_word(0);
		bytes += tw_utf8_put(name + bytes, character);
	}
	r->at++;
	return intern(r, start, name, bytes);
}
