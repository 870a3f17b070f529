/* SPDX-License-Identifier: Apache-2.0 */
/*
 * print.c - terms as Erlang text.
 *
 * print_here() writes a word or the head of a block and pushes a frame for its parts; next_part() writes the separators
 * and the end of the top frame's block.  Numbers and identifiers are composed directly in the sink if it has space for
 * the longest.
 */
#include "term/print.h"
#include "term/integer.h"
#include "term/sink.h"
#include "term/utf8.h"
#include "term/walk.h"
#include "base/export.h"

enum frame_kind { IN_TUPLE, IN_LIST, IN_IMPROPER_TAIL, IN_MAP };

struct printing {
	struct tw_sink *sink;
	enum tw_print_form form;
	struct tw_walk walk;
};

static enum tw_print_form form_of(const struct printing *printing)
{
	return printing->form & (TW_PRINT_NODES - 1);
}

/* "#Fun<", a name of 255 characters that are all escaped, and two numbers. */
#define TW_PRINTED_FUN_BYTES 4096

#define put_literal(sink, text) tw_sink_put(sink, text, sizeof text - 1)

/* ---- leaves ---- */

/* Writes a small with its sign into a buffer of at least 21 bytes. */
static size_t compose_small(char *at, int64_t value)
{
	if (value >= 0)
		return tw_print_uint64(at, (uint64_t)value);
	*at = '-';
	return 1 + tw_print_uint64(at + 1, -(uint64_t)value);
}

static int print_small(struct tw_sink *sink, int64_t value)
{
	char text[24];

	if (tw_likely(tw_sink_has(sink, sizeof text))) {
		sink->at += compose_small(sink->at, value);
		return 0;
	}
	return tw_sink_put(sink, text, compose_small(text, value));
}

static __attribute__((noinline)) int print_big(struct tw_sink *sink, struct tw_term t)
{
	uint64_t scratch[TW_INTEGER_LIMBS_MAX];
	char text[TW_INTEGER_PRINTED_BYTES_MAX];
	char *end = text + sizeof text, *start = tw_integer_print(t, scratch, end);

	return tw_sink_put(sink, start, (size_t)(end - start));
}

static int print_float(struct tw_sink *sink, struct tw_term t)
{
	char text[TW_FLOAT_PRINTED_BYTES_MAX];

	if (tw_likely(tw_sink_has(sink, sizeof text))) {
		sink->at += tw_print_float(sink->at, tw_float_value(t));
		return 0;
	}
	return tw_sink_put(sink, text, tw_print_float(text, tw_float_value(t)));
}

static int print_atom(struct tw_sink *sink, struct tw_term t)
{
	const struct tw_atom_entry *entry = tw_atom_entry(tw_atom_index(t));

	return tw_sink_put(sink, entry->printed, entry->printed_bytes);
}

/* "#Port<" or "#Ref<", and seven numbers with their separators. */
#define IDENTIFIER_BYTES_MAX 96

static size_t compose_identifier(char *at, const struct tw_block_identifier *block, uint32_t channel)
{
	size_t count = tw_header_size(block->header), i;
	char *p = at;

	switch (tw_header_kind(block->header)) {
	case TW_BLOCK_PID: *p++ = '<'; break;
	case TW_BLOCK_PORT:
		memcpy(p, "#Port<", 6);
		p += 6;
		break;
	default:
		memcpy(p, "#Ref<", 5);
		p += 5;
		break;
	}
	p += tw_print_uint64(p, channel);
	*p++ = '.';
	switch (tw_header_kind(block->header)) {
	case TW_BLOCK_PID:
		p += tw_print_uint64(p, block->words[0]);
		*p++ = '.';
		p += tw_print_uint64(p, block->words[1]);
		break;
	case TW_BLOCK_PORT: p += tw_print_uint64(p, (uint64_t)block->words[1] << 32 | block->words[0]); break;
	default:
		for (i = count; i-- > 0;) {
			p += tw_print_uint64(p, block->words[i]);
			if (i)
				*p++ = '.';
		}
	}
	*p++ = '>';
	return (size_t)(p - at);
}

/* "<0.5.0>@shop@host": without the quotes of an atom, whose inner characters stay escaped. */
static int print_with_node(struct tw_sink *sink, const struct tw_block_identifier *block)
{
	const struct tw_atom_entry *node = tw_atom_entry(tw_atom_index(block->node));
	size_t quotes = node->printed[0] == '\'' ? 1 : 0;
	char text[IDENTIFIER_BYTES_MAX];
	int error = tw_sink_put(sink, text, compose_identifier(text, block, 0));

	if (!error)
		error = tw_sink_put_byte(sink, '@');
	return error ? error : tw_sink_put(sink, node->printed + quotes, node->printed_bytes - 2 * quotes);
}

static int print_identifier(struct tw_sink *sink, struct tw_term t, enum tw_print_form form)
{
	const struct tw_block_identifier *block = (const struct tw_block_identifier *)tw_block(t);
	char text[IDENTIFIER_BYTES_MAX];

	if ((form & TW_PRINT_NODES) && block->channel && tw_tag(block->node) == TW_TAG_ATOM)
		return print_with_node(sink, block);
	if (tw_likely(tw_sink_has(sink, sizeof text))) {
		sink->at += compose_identifier(sink->at, block, block->channel);
		return 0;
	}
	return tw_sink_put(sink, text, compose_identifier(text, block, block->channel));
}

static int print_fun(struct tw_sink *sink, struct tw_term t)
{
	const uint64_t *block = tw_block(t);
	const struct tw_block_fun *fun = (const struct tw_block_fun *)block;
	bool is_export = tw_is_kind(t, TW_BLOCK_EXPORT);
	int error = is_export ? put_literal(sink, "fun ") : put_literal(sink, "#Fun<");

	if (!error)
		error = print_atom(sink, is_export ? tw_word(block[1]) : fun->module);
	if (!error)
		error = tw_sink_put_byte(sink, is_export ? ':' : '.');
	if (!error)
		error = is_export ? print_atom(sink, tw_word(block[2])) : print_small(sink, fun->index);
	if (!error)
		error = tw_sink_put_byte(sink, is_export ? '/' : '.');
	if (!error)
		error = print_small(sink, is_export ? (int64_t)tw_block_size(t) : (int64_t)fun->uniq);
	if (!error && !is_export)
		error = tw_sink_put_byte(sink, '>');
	return error;
}

/* ---- strings and binaries ---- */

/* True for characters that the Erlang shell prints as text: letters, and white space that has an escape of its own. */
static bool is_printable(uint32_t c)
{
	return (c >= ' ' && c < 127) || c >= 160 || (c >= '\b' && c <= '\r') || c == 27;
}

static int print_quoted(struct tw_sink *sink, uint32_t character)
{
	char text[4];

	if (tw_likely(tw_sink_has(sink, sizeof text))) {
		sink->at += tw_print_quoted(sink->at, character, '"');
		return 0;
	}
	return tw_sink_put(sink, text, tw_print_quoted(text, character, '"'));
}

/* A proper list of printable characters of ISO 8859-1, the default of io:printable_range(). */
static bool is_printable_list(struct tw_term list)
{
	for (; tw_is_cons(list); list = tw_cell(list)->tail) {
		struct tw_term head = tw_cell(list)->head;

		if (!tw_is_small(head) || tw_small_value(head) < 0 || tw_small_value(head) > 255 ||
		    !is_printable((uint32_t)tw_small_value(head)))
			return false;
	}
	return tw_is_nil(list);
}

static int print_string(struct tw_sink *sink, struct tw_term list)
{
	int error = tw_sink_put_byte(sink, '"');

	for (; !error && tw_is_cons(list); list = tw_cell(list)->tail)
		error = print_quoted(sink, (uint32_t)tw_small_value(tw_cell(list)->head));
	return error ? error : tw_sink_put_byte(sink, '"');
}

enum text_kind { NO_TEXT, ASCII_TEXT, UTF8_TEXT };

static enum text_kind text_kind_of(struct tw_term t)
{
	const char *at = (const char *)tw_bits_data(t), *end = at + tw_block_size(t);
	enum text_kind kind = ASCII_TEXT;
	uint32_t character;
	size_t step;

	if (!tw_is_binary(t) || at == end)
		return NO_TEXT;
	for (; at < end; at += step) {
		step = tw_utf8_next(at, end, &character);
		if (!step || !is_printable(character))
			return NO_TEXT;
		if (step > 1)
			kind = UTF8_TEXT;
	}
	return kind;
}

static int print_text_binary(struct tw_sink *sink, struct tw_term t, enum text_kind kind)
{
	const char *at = (const char *)tw_bits_data(t), *end = at + tw_block_size(t);
	int error = put_literal(sink, "<<\"");
	uint32_t character = 0;

	while (!error && at < end) {
		at += tw_utf8_next(at, end, &character);
		error = print_quoted(sink, character);
	}
	if (error)
		return error;
	return kind == UTF8_TEXT ? put_literal(sink, "\"/utf8>>") : put_literal(sink, "\">>");
}

static int print_bits(struct printing *printing, struct tw_term t)
{
	struct tw_sink *sink = printing->sink;
	const unsigned char *data = tw_bits_data(t);
	size_t bytes = tw_block_size(t), i;
	unsigned rest = tw_header_aux(*tw_block(t));
	enum text_kind kind = form_of(printing) == TW_PRINT_PRETTY ? text_kind_of(t) : NO_TEXT;
	int error;

	if (kind != NO_TEXT)
		return print_text_binary(sink, t, kind);
	error = put_literal(sink, "<<");
	for (i = 0; !error && i < bytes; i++) {
		if (i)
			error = tw_sink_put_byte(sink, ',');
		if (!error)
			error = print_small(sink, i + 1 == bytes && rest ? data[i] >> (8 - rest) : data[i]);
	}
	if (!error && rest)
		error = tw_sink_put(sink, (const char[]){':', (char)('0' + rest)}, 2);
	return error ? error : put_literal(sink, ">>");
}

/* ---- the walk ---- */

static int push(struct printing *printing, enum frame_kind kind, const struct tw_term *parts,
		const struct tw_term *values, size_t left)
{
	struct tw_walk_frame *frame = tw_walk_push(&printing->walk, true);

	if (!frame)
		return TW_ENOMEM;
	frame->kind = kind;
	frame->a = parts;
	frame->b = values;
	frame->left = left;
	frame->flag = 0;
	return 0;
}

/*
 * Prints a term that only its own node could read, as a quoted atom for a reader of terms.  Quotes inside, such as
 * those of a fun's module, are escaped.
 */
static int print_as_atom(struct tw_sink *sink, struct tw_term t, enum tw_print_form form)
{
	char text[TW_PRINTED_FUN_BYTES];
	struct tw_sink whole = {.start = text, .at = text, .end = text + sizeof text};
	int error = tw_is_kind(t, TW_BLOCK_FUN) ? print_fun(&whole, t) : print_identifier(&whole, t, form);

	if (!error)
		error = tw_sink_put_byte(sink, '\'');
	for (const char *at = text; !error && at < whole.at; at++) {
		if (*at == '\'' || *at == '\\')
			error = tw_sink_put_byte(sink, '\\');
		if (!error)
			error = tw_sink_put_byte(sink, *at);
	}
	return error ? error : tw_sink_put_byte(sink, '\'');
}

static int print_block(struct printing *printing, struct tw_term t)
{
	const struct tw_term *elements = tw_elements(t);
	size_t size = tw_block_size(t);
	int error;

	switch (tw_header_kind(*tw_block(t))) {
	case TW_BLOCK_BIG: return print_big(printing->sink, t);
	case TW_BLOCK_FLOAT: return print_float(printing->sink, t);
	case TW_BLOCK_TUPLE:
		error = tw_sink_put_byte(printing->sink, '{');
		return error ? error : push(printing, IN_TUPLE, elements, NULL, size);
	case TW_BLOCK_MAP:
		error = put_literal(printing->sink, "#{");
		return error ? error : push(printing, IN_MAP, elements, elements + size, size);
	case TW_BLOCK_BITS: return print_bits(printing, t);
	case TW_BLOCK_EXPORT: return print_fun(printing->sink, t);
	default:
		if (form_of(printing) == TW_PRINT_CONSULT)
			return print_as_atom(printing->sink, t, printing->form);
		return tw_header_kind(*tw_block(t)) == TW_BLOCK_FUN
			       ? print_fun(printing->sink, t)
			       : print_identifier(printing->sink, t, printing->form);
	}
}

static int print_here(struct printing *printing, struct tw_term t)
{
	int error;

	switch (tw_tag(t)) {
	case TW_TAG_SMALL: return print_small(printing->sink, tw_small_value(t));
	case TW_TAG_ATOM: return print_atom(printing->sink, t);
	case TW_TAG_NIL: return put_literal(printing->sink, "[]");
	case TW_TAG_BLOCK: return print_block(printing, t);
	case TW_TAG_CONS:
		if (form_of(printing) == TW_PRINT_PRETTY && is_printable_list(t))
			return print_string(printing->sink, t);
		error = tw_sink_put_byte(printing->sink, '[');
		return error ? error : push(printing, IN_LIST, &tw_cell(t)->head, NULL, 0);
	default: return TW_EBADARG;
	}
}

/* Gives the next part of a tuple or map; returns 1 with *next set, 0 when the block is closed, or an error. */
static int next_of_block(struct tw_sink *sink, struct tw_walk_frame *frame, struct tw_term *next)
{
	int error = 0;

	if (frame->kind == IN_MAP && frame->flag % 2 == 1) {
		frame->flag = 2;
		*next = *frame->b++;
		error = put_literal(sink, " => ");
		return error ? error : 1;
	}
	if (frame->left == 0)
		return tw_sink_put_byte(sink, '}');
	if (frame->flag)
		error = tw_sink_put_byte(sink, ',');
	*next = *frame->a++;
	frame->left--;
	frame->flag = frame->kind == IN_MAP ? 1 : 2;
	return error ? error : 1;
}

/* The same for lists: frame->a is the current cell's head, frame->flag tells whether it is printed. */
static int next_of_list(struct tw_sink *sink, struct tw_walk_frame *frame, struct tw_term *next)
{
	struct tw_term tail;
	int error;

	if (!frame->flag) {
		frame->flag = 1;
		*next = frame->a[0];
		return 1;
	}
	tail = frame->a[1];
	if (frame->kind == IN_IMPROPER_TAIL || tw_is_nil(tail))
		return tw_sink_put_byte(sink, ']');
	if (tw_is_cons(tail)) {
		frame->a = &tw_cell(tail)->head;
		*next = frame->a[0];
		error = tw_sink_put_byte(sink, ',');
	} else {
		frame->kind = IN_IMPROPER_TAIL;
		*next = tail;
		error = tw_sink_put_byte(sink, '|');
	}
	return error ? error : 1;
}

TW_API int tw_term_print(struct tw_term term, enum tw_print_form form, struct tw_sink *sink)
{
	struct printing printing;
	struct tw_walk_frame *frame;
	int result;

	printing.sink = sink;
	printing.form = form;
	tw_walk_init(&printing.walk);
	result = print_here(&printing, term);
	while (result >= 0 && (frame = tw_walk_top(&printing.walk))) {
		if (frame->kind == IN_TUPLE || frame->kind == IN_MAP)
			result = next_of_block(sink, frame, &term);
		else
			result = next_of_list(sink, frame, &term);
		if (result == 0)
			printing.walk.depth--;
		else if (result > 0)
			result = print_here(&printing, term);
	}
	tw_walk_fini(&printing.walk);
	return result;
}

TW_API size_t tw_term_format(struct tw_term term, enum tw_print_form form, char *buffer, size_t bytes)
{
	struct tw_sink sink = {.start = buffer, .at = buffer, .end = buffer + bytes - 1};

	TW_ASSERT(bytes >= 4);
	if (tw_term_print(term, form, &sink) != 0) {
		if (sink.at > sink.end - 3) {
			sink.at = sink.end - 3;
			/* Do not cut inside a character. */
			while (sink.at > buffer && ((unsigned char)*sink.at & 0xc0) == 0x80)
				sink.at--;
		}
		memcpy(sink.at, "...", 3);
		sink.at += 3;
	}
	*sink.at = '\0';
	return (size_t)(sink.at - buffer);
}
