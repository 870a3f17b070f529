/* SPDX-License-Identifier: Apache-2.0 */
/*
 * typed_erlang.c - typed arguments and results in Erlang's form: built as terms, or printed where no term has the digits of a
 * float, or shows a binary as text.
 */
#include "views/names/descriptors.h"
#include "views/names/names.h"
#include "views/names/typed_numbers.h"
#include "views/names/typed_put.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* A value is printed, and is then no term, or made. */
struct erlang {
	struct tw_out *out; /* NULL: terms */
	struct tw_arena *arena;
	bool has_items; /* in the list or tuple that is printed */
};

/* Arguments, descriptions, or fields of the bits of two words. */
#define ITEMS_MAX 129
_Static_assert(TW_LAYOUT_VALUES_MAX < ITEMS_MAX && TW_LAYOUT_DESCRIPTOR_WORDS_MAX < ITEMS_MAX, "both fit");

static const struct tw_term none;

/* ---- leaves ---- */

/* True: the value is printed. */
static bool is_printed(struct erlang *e)
{
	if (e->out && e->has_items)
		tw_out_text(e->out, ",");
	e->has_items = true;
	return e->out != NULL;
}

static struct tw_term number(struct erlang *e, int64_t value)
{
	if (!is_printed(e))
		return tw_term_integer(e->arena, value);
	tw_out_format(e->out, "%" PRId64, value);
	return none;
}

static struct tw_term natural(struct erlang *e, uint64_t value)
{
	if (!is_printed(e))
		return tw_term_unsigned(e->arena, value);
	tw_out_format(e->out, "%" PRIu64, value);
	return none;
}

static struct tw_term atom(struct erlang *e, const char *name)
{
	char text[TW_NAME_TEXT_BYTES];
	struct tw_term term;
	if (!is_printed(e)) {
		term = tw_term_atom_z(name);
		return tw_term_is_none(term) ? tw_term_atom_z("_") : term;
	}
	tw_out_bytes(e->out, text, tw_name_atom(name, text, sizeof text));
	return none;
}

static struct tw_term binary(struct erlang *e, const char *text, size_t bytes)
{
	if (!is_printed(e))
		return tw_term_binary(e->arena, text, bytes);
	tw_out_text(e->out, "<<\"");
	for (size_t i = 0; i < bytes; i++) {
		tw_out_reserve(e->out);
		tw_typed_put_char(e->out, "\\x{%x}", (unsigned char)text[i]);
	}
	tw_out_text(e->out, "\">>");
	return none;
}

static struct tw_term floating(struct erlang *e, unsigned bytes, const uint64_t words[2])
{
	char text[TW_TYPED_FLOAT_BYTES];
	bool is_finite = tw_typed_float_text(bytes, words, text);
	struct tw_term term;
	if (is_printed(e)) {
		tw_out_format(e->out, is_finite ? "%s" : "'%s'", text);
		return none;
	}
	/* A long double may be larger than any float. */
	term = is_finite ? tw_term_float(e->arena, strtod(text, NULL)) : tw_term_atom_z(text);
	return tw_term_is_none(term) ? tw_term_atom_z("_") : term;
}

/* An integer of two words; as a term by the external format: its sign, and the bytes from the lowest on. */
static struct tw_term wide(struct erlang *e, bool is_signed, const uint64_t words[2])
{
	bool is_negative = is_signed && words[1] >> 63;
	unsigned __int128 value = (unsigned __int128)words[1] << 64 | words[0];
	uint8_t bytes[20] = {131, 110, 16, is_negative};
	struct tw_term term = none;
	if (is_printed(e)) {
		tw_typed_put_wide(e->out, is_signed, words);
		return none;
	}
	value = is_negative ? -value : value;
	memcpy(bytes + 4, &value, sizeof value);
	tw_etf_decode(e->arena, bytes, sizeof bytes, NULL, NULL, &term);
	return term;
}

static void begin(struct erlang *e, const char *bracket)
{
	if (is_printed(e))
		tw_out_text(e->out, bracket);
	e->has_items = false;
}

static struct tw_term tuple(struct erlang *e, const struct tw_term *items, size_t count)
{
	e->has_items = true;
	if (!e->out)
		return tw_term_tuple(e->arena, items, count);
	tw_out_text(e->out, "}");
	return none;
}

static struct tw_term list(struct erlang *e, const struct tw_term *items, size_t count)
{
	e->has_items = true;
	if (!e->out)
		return tw_term_list(e->arena, items, count, tw_term_nil());
	tw_out_text(e->out, "]");
	return none;
}

/* ---- values ---- */

static struct tw_term error_of(struct erlang *e, int error)
{
	const char *name = error ? strerrorname_np(error) : NULL;
	return name ? atom(e, name) : number(e, error);
}

static struct tw_term string_of(struct erlang *e, const struct tw_layout_item *item)
{
	char address[TW_TYPED_ADDRESS_BYTES];
	size_t bytes;
	const char *text = tw_typed_text(item, address, &bytes);
	return text ? binary(e, text, bytes) : natural(e, item->words[0]);
}

static struct tw_term field_of(struct erlang *e, const struct tw_layout_field *field, const uint64_t words[2])
{
	uint64_t word = words[field->first_bit / 64] >> field->first_bit % 64;
	unsigned unused = 64 - field->bits;
	if (field->bits == 128)
		return wide(e, field->type == 'i', words);
	switch (field->type) {
	case 'i': return number(e, (int64_t)(word << unused) >> unused);
	case 'b': return atom(e, word << unused ? "true" : "false");
	case 'p': return natural(e, word);
	case 'f': return floating(e, field->bits / 8, (const uint64_t[2]){word});
	default: return natural(e, word << unused >> unused);
	}
}

static struct tw_term struct_of(struct erlang *e, const struct tw_layout_item *item)
{
	const struct tw_layout_value *value = item->value;
	bool has_fields = tw_typed_has_fields(item);
	struct tw_term items[ITEMS_MAX];
	struct tw_layout_field field;
	uint32_t count = 0;
	if (has_fields && value->enumerator_count == 1 && tw_layout_field(value, 0, &field) && !field.name_bytes)
		return field_of(e, &field, item->words);
	begin(e, "{");
	while (has_fields && count < ITEMS_MAX && tw_layout_field(value, count, &field))
		items[count++] = field_of(e, &field, item->words);
	for (; !has_fields && count < item->word_count; count++)
		items[count] = natural(e, item->words[count]);
	/* Older captures have only one word of such a result. */
	if (!has_fields && count == 1 && value->registers[1] >= 0)
		items[count++] = atom(e, "_");
	return tuple(e, items, count);
}

static struct tw_term item_of(struct erlang *e, const struct tw_layout_item *item)
{
	const struct tw_layout_value *value = item->value;
	uint64_t word = item->words[0];
	const char *name;
	if (!item->word_count)
		return atom(e, "_");
	switch (value->type) {
	case 'i': return number(e, tw_typed_signed(value, word));
	case 'u':
	case 'g':
	case 'o':
	case 'x': return natural(e, tw_typed_unsigned(value, word));
	case 'b': return atom(e, tw_typed_unsigned(value, word) ? "true" : "false");
	case 'e':
	case 'n':
		name = tw_typed_enumerator(value, word);
		return name ? atom(e, name) : number(e, tw_typed_enum(value, word));
	case 's':
	case 'm': return string_of(e, item);
	case 'p':
	case 'M':
	case 'V':
	case 'Z': return natural(e, word);
	case 'E': return error_of(e, (int)word);
	case 'f': return floating(e, value->bytes, item->words);
	case 'S': return struct_of(e, item);
	default: return atom(e, "_");
	}
}

static struct tw_term numbers_of(struct erlang *e, const struct tw_layout_item *item)
{
	struct tw_layout_value element;
	struct tw_term *items;
	uint32_t count;
	if (!tw_layout_numbers(item->value, &element, &count) || item->text_bytes < (size_t)element.bytes * count ||
	    !(items = tw_arena_alloc(e->arena, (count + 1) * sizeof *items)))
		return atom(e, "_");
	if (count > 1)
		begin(e, "[");
	for (uint32_t i = 0; i < count; i++) {
		struct tw_layout_item number = {.value = &element, .word_count = 1};
		memcpy(number.words, item->text + (size_t)i * element.bytes, element.bytes);
		items[i] = item_of(e, &number);
	}
	return count == 1 ? items[0] : list(e, items, count);
}

/* [{buf,<<"hello">>}]: what the call has filled. False: nothing. */
static bool put_filled(struct erlang *e, struct tw_layout_reader *reader, struct tw_term *out)
{
	struct tw_term items[ITEMS_MAX];
	struct tw_layout_item item;
	size_t count = 0;
	while (count < ITEMS_MAX && tw_layout_next_filled(reader, &item)) {
		char number[16];
		struct tw_term pair[2];
		if (item.is_nothing)
			continue;
		if (!count)
			begin(e, "[");
		snprintf(number, sizeof number, "$%u", reader->at - 1);
		begin(e, "{");
		pair[0] = atom(e, *item.value->name ? item.value->name : number);
		pair[1] = !item.text		    ? atom(e, "_")
			  : item.value->type == 'V' ? numbers_of(e, &item)
						    : string_of(e, &item);
		items[count++] = tuple(e, pair, 2);
	}
	if (count)
		*out = list(e, items, count);
	return count != 0;
}

/* {5,[{5,<<"file /etc/passwd">>}]} */
static struct tw_term described_of(struct erlang *e, const struct tw_layout *layout, const uint64_t *words,
				   uint32_t count)
{
	bool is_accepted = layout->result.bytes == TW_LAYOUT_DESCRIPTOR_ACCEPTED;
	struct tw_term ports[ITEMS_MAX], pair[2], whole[2];
	struct tw_layout_description what;
	char text[TW_DESCRIPTOR_TEXT_BYTES];
	uint32_t at = 1, port_count = 0;
	begin(e, "{");
	whole[0] = layout->result.bytes == TW_LAYOUT_DESCRIPTOR_STREAM ? natural(e, words[0])
								       : number(e, (int32_t)words[0]);
	begin(e, "[");
	while (port_count < ITEMS_MAX && tw_layout_next_description(words, count, &at, &what)) {
		size_t bytes = tw_descriptor_text(&what, TW_DESCRIPTOR_WHOLE, is_accepted, text);
		begin(e, "{");
		pair[0] = number(e, what.fd);
		pair[1] = binary(e, text, bytes);
		ports[port_count++] = tuple(e, pair, 2);
	}
	whole[1] = list(e, ports, port_count);
	return tuple(e, whole, 2);
}

struct tw_term tw_typed_erlang_arguments(struct tw_out *out, struct tw_arena *arena, const struct tw_layout *layout,
					 const uint64_t *words, uint32_t count)
{
	struct tw_layout_reader reader = {.layout = layout, .words = words, .word_count = count};
	struct erlang e = {.out = out, .arena = arena};
	struct tw_term items[ITEMS_MAX];
	struct tw_layout_item item;
	size_t at = 0;
	begin(&e, "[");
	while (at < ITEMS_MAX && tw_layout_next(&reader, &item))
		items[at++] = item_of(&e, &item);
	return list(&e, items, at);
}

struct tw_term tw_typed_erlang_result(struct tw_out *out, struct tw_arena *arena, const struct tw_layout *layout,
				      const uint64_t *words, uint32_t count)
{
	struct tw_layout_reader reader = {.layout = layout, .words = words, .word_count = count};
	bool has_more = tw_typed_has_more(layout, words, count);
	int error = tw_layout_error(layout, words, count);
	struct erlang e = {.out = out, .arena = arena};
	struct tw_layout_item item, content;
	struct tw_term items[3];
	size_t at = 0;
	if (layout->result.type == 'd' && count)
		return described_of(&e, layout, words, count);
	tw_layout_result(layout, words, count, &item);
	if (has_more)
		begin(&e, "{");
	if (layout->result.type == 'Z' && tw_layout_next_filled(&reader, &content) && content.text)
		items[at++] = string_of(&e, &content);
	else
		items[at++] = layout->result.type == 'v' ? atom(&e, "_") : item_of(&e, &item);
	if (error)
		items[at++] = error_of(&e, error);
	at += put_filled(&e, &reader, &items[at]);
	return has_more ? tuple(&e, items, at) : items[0];
}
