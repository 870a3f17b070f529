/* SPDX-License-Identifier: Apache-2.0 */
/*
 * parse.c - parses Erlang text: blocks, the reader's state, and the position of an error.
 *
 * Recursive descent to a limited depth, which bounds the use of the C stack.
 */
#include "term/parse.h"
#include "term/utf8.h"
#include "base/export.h"

#include <stdlib.h>

#define S TW_CHAR_SPACE
#define D (TW_CHAR_DIGIT | TW_CHAR_NAME)
#define L (TW_CHAR_LOWER | TW_CHAR_NAME)
#define U (TW_CHAR_UPPER | TW_CHAR_NAME)
#define W TW_CHAR_WIDE

const unsigned char tw_char_class[256] = {
	[0 ... ' '] = S, ['0' ... '9'] = D,    ['a' ... 'z'] = L, ['A' ... 'Z'] = U,
	['_'] = U,	 ['@'] = TW_CHAR_NAME, [128 ... 255] = W,
};

#undef S
#undef D
#undef L
#undef U
#undef W

/* ---- the reader ---- */

static struct tw_term fail(struct tw_reader *r, int error, const char *place, const char *message)
{
	if (!r->error) {
		r->error = error;
		r->place = place;
		r->message = message;
	}
	return tw_word(0);
}

struct tw_term tw_reader_fail(struct tw_reader *r, const char *place, const char *message)
{
	return fail(r, TW_EBADARG, place, message);
}

struct tw_term tw_reader_full(struct tw_reader *r)
{
	if (!r->error)
		r->error = TW_ENOMEM;
	return tw_word(0);
}

bool tw_reader_grow(struct tw_reader *r)
{
	size_t capacity = r->value_capacity * 2;
	struct tw_term *values = malloc(capacity * sizeof *values);

	if (!values) {
		tw_reader_full(r);
		return false;
	}
	memcpy(values, r->values, r->value_count * sizeof *values);
	if (r->values != r->fixed)
		free(r->values);
	r->values = values;
	r->value_capacity = capacity;
	return true;
}

/* The blanks of ISO 8859-1 beyond ASCII, 128 to 160, are white space too. */
static size_t wide_space_bytes(const struct tw_reader *r)
{
	uint32_t character = 0;
	size_t step = tw_utf8_next(r->at, r->end, &character);

	return step && character <= 160 ? step : 0;
}

void tw_reader_skip(struct tw_reader *r)
{
	while (r->at < r->end) {
		if (tw_likely(tw_char_is(*r->at, TW_CHAR_SPACE))) {
			r->at++;
		} else if (*r->at == '%') {
			while (r->at < r->end && *r->at != '\n')
				r->at++;
		} else if (tw_char_is(*r->at, TW_CHAR_WIDE) && wide_space_bytes(r)) {
			r->at += wide_space_bytes(r);
		} else {
			return;
		}
	}
}

bool tw_reader_take(struct tw_reader *r, const char *text)
{
	size_t bytes = strlen(text);

	if ((size_t)(r->end - r->at) < bytes || memcmp(r->at, text, bytes) != 0)
		return false;
	r->at += bytes;
	return true;
}

/* ---- blocks ---- */

/*
 * Reads terms separated by commas and pushes them, from after the opening character up to the closing one, or up to the
 * '|' of a list, where at is left.  Returns false after a failure.
 */
static bool read_elements(struct tw_reader *r, char closing, const char *message)
{
	struct tw_term term;

	tw_reader_skip(r);
	if (tw_reader_is_at(r, closing))
		return true;
	for (;;) {
		term = tw_read_term(r);
		if (tw_term_is_none(term) || !tw_reader_push(r, term))
			return false;
		tw_reader_skip(r);
		if (tw_reader_is_at(r, ',')) {
			r->at++;
			continue;
		}
		if (tw_reader_is_at(r, closing) || (closing == ']' && tw_reader_is_at(r, '|')))
			return true;
		tw_reader_fail(r, r->at, message);
		return false;
	}
}

static struct tw_term read_tuple(struct tw_reader *r)
{
	size_t bottom = r->value_count;
	struct tw_term tuple;

	r->at++;
	if (!read_elements(r, '}', "expected ',' or '}' in a tuple"))
		return tw_word(0);
	r->at++;
	tuple = tw_term_tuple(r->arena, r->values + bottom, r->value_count - bottom);
	r->value_count = bottom;
	return tw_reader_built(r, tuple);
}

static struct tw_term read_list(struct tw_reader *r)
{
	size_t bottom = r->value_count;
	struct tw_term tail = tw_term_nil(), list;

	r->at++;
	if (!read_elements(r, ']', "expected ',', '|' or ']' in a list"))
		return tw_word(0);
	if (tw_reader_take(r, "|")) {
		tail = tw_read_term(r);
		if (tw_term_is_none(tail))
			return tail;
		tw_reader_skip(r);
	}
	if (!tw_reader_is_at(r, ']'))
		return tw_reader_fail(r, r->at, "expected ']' behind the tail of a list");
	r->at++;
	list = tw_term_list(r->arena, r->values + bottom, r->value_count - bottom, tail);
	r->value_count = bottom;
	return tw_reader_built(r, list);
}

static bool read_association(struct tw_reader *r)
{
	struct tw_term term = tw_read_term(r);

	if (tw_term_is_none(term) || !tw_reader_push(r, term))
		return false;
	tw_reader_skip(r);
	if (!tw_reader_take(r, "=>")) {
		tw_reader_fail(r, r->at, "expected '=>' behind the key of a map");
		return false;
	}
	term = tw_read_term(r);
	return !tw_term_is_none(term) && tw_reader_push(r, term);
}

static struct tw_term read_map(struct tw_reader *r)
{
	size_t bottom = r->value_count;
	struct tw_term map;

	r->at++;
	tw_reader_skip(r);
	while (!tw_reader_is_at(r, '}')) {
		if (!read_association(r))
			return tw_word(0);
		tw_reader_skip(r);
		if (tw_reader_is_at(r, '}'))
			break;
		if (!tw_reader_is_at(r, ','))
			return tw_reader_fail(r, r->at, "expected ',' or '}' in a map");
		r->at++;
		tw_reader_skip(r);
		if (tw_reader_is_at(r, '}'))
			return tw_reader_fail(r, r->at, "expected a key behind ',' in a map");
	}
	r->at++;
	/* Keys and values are on the stack in the layout of an array of pairs. */
	map = tw_term_map(r->arena, (const struct tw_term_pair *)(r->values + bottom), (r->value_count - bottom) / 2);
	r->value_count = bottom;
	return tw_reader_built(r, map);
}

static struct tw_term read_parenthesised(struct tw_reader *r)
{
	struct tw_term term;

	r->at++;
	term = tw_read_term(r);
	if (tw_term_is_none(term))
		return term;
	tw_reader_skip(r);
	if (!tw_reader_is_at(r, ')'))
		return tw_reader_fail(r, r->at, "expected ')'");
	r->at++;
	return term;
}

static struct tw_term read_after_hash(struct tw_reader *r)
{
	r->at++;
	if (tw_reader_is_at(r, '{'))
		return read_map(r);
	return tw_read_identifier(r);
}

static struct tw_term read_after_less(struct tw_reader *r)
{
	if (r->end - r->at >= 2 && r->at[1] == '<')
		return tw_read_binary(r);
	return tw_read_pid(r);
}

static struct tw_term refuse(struct tw_reader *r)
{
	if (r->at == r->end)
		return tw_reader_fail(r, r->at, "the text ends where a term should begin");
	if (tw_char_is(*r->at, TW_CHAR_UPPER))
		return tw_reader_fail(r, r->at,
				      "a variable is not a term; put quotes around an atom: '_', '$1', 'Name'");
	return tw_reader_fail(r, r->at, "no term begins like this");
}

/* Reads a block, one level deeper. */
static struct tw_term read_block(struct tw_reader *r)
{
	struct tw_term term;

	if (r->depth >= TW_TERM_DEPTH_MAX)
		return fail(r, TW_ELIMIT, r->at, "more than 1000 levels of nesting");
	r->depth++;
	switch (*r->at) {
	case '{': term = read_tuple(r); break;
	case '[': term = read_list(r); break;
	case '(': term = read_parenthesised(r); break;
	case '#': term = read_after_hash(r); break;
	default: term = read_after_less(r); break;
	}
	r->depth--;
	return term;
}

struct tw_term tw_read_term(struct tw_reader *r)
{
	tw_reader_skip(r);
	if (r->at == r->end)
		return refuse(r);
	if (tw_char_is(*r->at, TW_CHAR_LOWER | TW_CHAR_WIDE))
		return tw_read_atom(r);
	if (tw_char_is(*r->at, TW_CHAR_DIGIT))
		return tw_read_number(r, false);
	switch (*r->at) {
	case '{':
	case '[':
	case '(':
	case '#':
	case '<': return read_block(r);
	case '\'': return tw_read_quoted_atom(r);
	case '"': return tw_read_string(r);
	case '$': return tw_read_dollar(r);
	case '-':
	case '+': return tw_read_signed(r);
	default: return refuse(r);
	}
}

/* ---- texts ---- */

/* The line and column of a position, as an editor shows them. */
static void locate(struct tw_parser *parser, const char *place)
{
	const char *at;

	parser->error.line = 1;
	parser->error.column = 1;
	parser->error.offset = (size_t)(place - parser->text);
	for (at = parser->text; at < place; at++) {
		if (*at == '\n') {
			parser->error.line++;
			parser->error.column = 1;
		} else if (((unsigned char)*at & 0xc0) != 0x80) {
			parser->error.column++;
		}
	}
}

/* The full stop and what must follow it; it may be missing at the end of the text. */
static bool read_full_stop(struct tw_reader *r)
{
	tw_reader_skip(r);
	if (r->at == r->end)
		return true;
	if (*r->at != '.') {
		tw_reader_fail(r, r->at, "expected a full stop or the end of the text behind a term");
		return false;
	}
	r->at++;
	if (r->at == r->end || tw_char_is(*r->at, TW_CHAR_SPACE) || *r->at == '%')
		return true;
	tw_reader_fail(r, r->at, "expected white space behind the full stop");
	return false;
}

TW_API int tw_parse_next(struct tw_parser *parser, struct tw_arena *arena, struct tw_term *out)
{
	struct tw_reader r;
	struct tw_term term = {0};

	r.at = parser->text + parser->offset;
	r.end = parser->text + parser->bytes;
	r.arena = arena;
	r.depth = 0;
	r.error = 0;
	r.values = r.fixed;
	r.value_count = 0;
	r.value_capacity = TW_COUNT_OF(r.fixed);
	r.spare_bits = TW_PARSE_SPARE_BITS;
	tw_reader_skip(&r);
	if (r.at == r.end)
		return TW_ENOENT;
	term = tw_read_term(&r);
	if (!tw_term_is_none(term) && read_full_stop(&r)) {
		parser->offset = (size_t)(r.at - parser->text);
		*out = term;
	}
	if (r.values != r.fixed)
		free(r.values);
	if (r.error == TW_EBADARG || r.error == TW_ELIMIT) {
		parser->error.message = r.message;
		locate(parser, r.place);
	}
	return r.error;
}

TW_API int tw_term_parse(struct tw_arena *arena, const char *text, size_t bytes, struct tw_term *out,
			 struct tw_parse_error *error)
{
	struct tw_parser parser = {.text = text, .bytes = bytes};
	struct tw_reader rest = {0};
	struct tw_term term;
	int result = tw_parse_next(&parser, arena, &term);

	if (result == TW_ENOENT) {
		result = TW_EBADARG;
		parser.error.message = "the text holds no term";
		locate(&parser, text + bytes);
	}
	rest.at = text + parser.offset;
	rest.end = text + bytes;
	tw_reader_skip(&rest);
	if (result == 0 && rest.at < rest.end) {
		result = TW_EBADARG;
		parser.error.message = "there is more text behind the term";
		locate(&parser, rest.at);
	}
	if ((result == TW_EBADARG || result == TW_ELIMIT) && error)
		*error = parser.error;
	if (result == 0)
		*out = term;
	return result;
}
