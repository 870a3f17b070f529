/* SPDX-License-Identifier: Apache-2.0 */
/* typed.c - prints words and strings of a payload in the form of the source. */
#include "views/names/typed.h"
#include "views/names/descriptors.h"
#include "views/names/names.h"
#include "views/names/typed_put.h"

#include "tracewheel/layout.h"

#include <inttypes.h>
#include <stdio.h>

const struct tw_layout *tw_typed_layout(const struct tw_capture *capture, const struct tw_capture_event *event)
{
	bool is_typed = (event->kind == TW_CAPTURE_CALL && (event->flags & TW_CAPTURE_FLAG_ARGS)) ||
			(event->kind == TW_CAPTURE_RETURN_FROM && !(event->flags & TW_CAPTURE_FLAG_TERMS));
	const struct tw_capture_place *place = is_typed ? tw_capture_place(capture, event->image, event->id) : NULL;
	return place && place->function ? tw_capture_layout(capture, event->image, place->function->function_id) : NULL;
}

/* ---- terms ---- */

void tw_typed_put_term(struct tw_typed *typed, struct tw_term term)
{
	struct tw_term *more;
	if (typed->count == typed->capacity) {
		uint32_t capacity = typed->capacity ? typed->capacity * 2 : 64;
		more = tw_arena_alloc(typed->arena, capacity * sizeof *more);
		if (!more)
			return;
		for (uint32_t i = 0; i < typed->count; i++)
			more[i] = typed->items[i];
		typed->items = more;
		typed->capacity = capacity;
	}
	typed->items[typed->count++] = tw_term_is_none(term) ? tw_term_atom_z("_") : term;
}

void tw_typed_close(struct tw_typed *typed, uint32_t start, const char *bracket)
{
	uint32_t count = typed->count - start;
	tw_typed_put_text(typed, bracket);
	if (typed->out)
		return;
	typed->count = start;
	tw_typed_put_term(typed, *bracket == '}'
					 ? tw_term_tuple(typed->arena, typed->items + start, count)
					 : tw_term_list(typed->arena, typed->items + start, count, tw_term_nil()));
}

void tw_typed_put_atom(struct tw_typed *typed, const char *name)
{
	char atom[TW_NAME_TEXT_BYTES];
	if (typed->out)
		tw_out_bytes(typed->out, atom, tw_name_atom(name, atom, sizeof atom));
	else
		tw_typed_put_term(typed, tw_term_atom_z(name));
}

/* ---- numbers ---- */

static void put_signed(struct tw_typed *typed, int64_t number)
{
	if (typed->out)
		tw_out_format(typed->out, "%" PRId64, number);
	else
		tw_typed_put_term(typed, tw_term_integer(typed->arena, number));
}

static void put_unsigned(struct tw_typed *typed, uint64_t number)
{
	if (typed->out)
		tw_put_u64(typed->out, number);
	else
		tw_typed_put_term(typed, tw_term_unsigned(typed->arena, number));
}

static void put_word(struct tw_typed *typed, uint64_t word)
{
	if (typed->form == TW_TYPED_TEXT)
		tw_out_format(typed->out, "0x%" PRIx64, word);
	else
		put_unsigned(typed, word);
}

static void put_address(struct tw_typed *typed, uint64_t word)
{
	if (typed->form == TW_TYPED_TEXT && !word)
		tw_typed_put_text(typed, "NULL");
	else
		put_word(typed, word);
}

/* ---- names of numbers ---- */

static const char *enumerator_of(const struct tw_layout_value *value, int64_t number)
{
	for (uint32_t i = 0; i < value->enumerator_count; i++)
		if (value->enumerators[i].value == number)
			return value->enumerators[i].name;
	return NULL;
}

static bool is_one_bit(int64_t number)
{
	return number > 0 && (number & (number - 1)) == 0;
}

/* Prints named bits: READ|WRITE|0x80. False: no bit has a name. */
static bool put_bits(struct tw_typed *typed, const struct tw_layout_value *value, int64_t number)
{
	const char *between = "";
	int64_t left = number;
	for (uint32_t i = 0; i < value->enumerator_count; i++) {
		int64_t bit = value->enumerators[i].value;
		if (!is_one_bit(bit) || !(left & bit))
			continue;
		tw_typed_put_text(typed, between);
		tw_out_name(typed->out, value->enumerators[i].name);
		between = "|";
		left &= ~bit;
	}
	if (left && left != number)
		tw_out_format(typed->out, "|0x%" PRIx64, (uint64_t)left);
	return left != number;
}

static void put_enum(struct tw_typed *typed, const struct tw_layout_value *value, uint64_t word)
{
	int64_t number = value->type == 'n' ? tw_typed_signed(value, word) : (int64_t)tw_typed_unsigned(value, word);
	const char *name = enumerator_of(value, number);
	if (name && typed->form == TW_TYPED_TEXT)
		tw_out_name(typed->out, name);
	else if (name && typed->form == TW_TYPED_JSON)
		tw_json_quote(typed->out, name, strlen(name));
	else if (name)
		tw_typed_put_atom(typed, name);
	else if (typed->form != TW_TYPED_TEXT || number <= 0 || !put_bits(typed, value, number))
		put_signed(typed, number);
}

/* O_RDWR|O_CREAT|0x400000: those of the table whose bits are there, in its order; 0 if there are none. */
static void put_flags(struct tw_typed *typed, const struct tw_layout_value *value, uint64_t word)
{
	uint64_t number = tw_typed_unsigned(value, word), left = number, mask;
	const char *between = "";
	size_t bytes;
	for (uint32_t i = 0; i < value->enumerator_count; i++) {
		const struct tw_layout_enumerator *flag = &value->enumerators[i];
		uint64_t bits = (uint64_t)flag->value;
		if (!tw_layout_flag(flag, &bytes, &mask) || (number & mask) != bits)
			continue;
		/* Bits that a name before has told are not told again, but 0 of a mask is. */
		if (bits ? !(left & bits) : !strchr(flag->name, '.') && number)
			continue;
		tw_typed_put_text(typed, between);
		tw_out_clean(typed->out, flag->name, bytes);
		tw_typed_reserve(typed);
		between = "|";
		left &= ~mask;
	}
	if (left || !*between)
		tw_out_format(typed->out, left ? "%s0x%" PRIx64 : "%s%" PRIu64, between, left);
}

/* As an enumerator. */
void tw_typed_put_error(struct tw_typed *typed, int error)
{
	const char *name = error ? strerrorname_np(error) : NULL;
	if (name && typed->form == TW_TYPED_ERLANG)
		tw_typed_put_atom(typed, name);
	else if (name)
		tw_out_format(typed->out, typed->form == TW_TYPED_TEXT ? "%s" : "\"%s\"", name);
	else
		put_signed(typed, error);
}

/* The numbers stay numbers where a program reads them. */
static void put_in_base(struct tw_typed *typed, const struct tw_layout_value *value, uint64_t word)
{
	uint64_t number = tw_typed_unsigned(value, word);
	if (typed->form != TW_TYPED_TEXT || !number)
		put_unsigned(typed, number);
	else
		tw_out_format(typed->out, value->type == 'o' ? "0%" PRIo64 : "0x%" PRIx64, number);
}

/* ---- strings ---- */

static void put_char(struct tw_typed *typed, unsigned char c)
{
	if (c == '"' || c == '\\')
		tw_out_format(typed->out, "\\%c", c);
	else if (c == '\n')
		tw_typed_put_text(typed, "\\n");
	else if (c == '\t')
		tw_typed_put_text(typed, "\\t");
	else if (c == '\r')
		tw_typed_put_text(typed, "\\r");
	else if (c >= 0x20 && c < 0x7f)
		tw_put_char(typed->out, (char)c);
	else if (typed->form == TW_TYPED_JSON)
		tw_out_format(typed->out, "\\u%04x", c);
	else if (typed->form == TW_TYPED_ERLANG)
		tw_out_format(typed->out, "\\x{%x}", c);
	else
		tw_out_format(typed->out, "\\x%02x", c);
}

void tw_typed_put_string(struct tw_typed *typed, const struct tw_layout_item *item)
{
	if (!item->text) {
		put_address(typed, item->words[0]);
		return;
	}
	bool is_address = item->value && (item->value->type == 'm' || item->value->type == 'M') &&
			  strcmp(item->value->type_name, "sockaddr") == 0;
	const char *text = item->text;
	size_t bytes = item->text_bytes;
	char address[160];
	if (is_address && tw_descriptor_address(text, bytes, address, sizeof address)) {
		text = address;
		bytes = strlen(address);
	}
	if (!typed->out) {
		tw_typed_put_term(typed, tw_term_binary(typed->arena, text, bytes));
		return;
	}
	tw_typed_put_text(typed, typed->form == TW_TYPED_ERLANG ? "<<\"" : "\"");
	for (size_t i = 0; i < bytes; i++) {
		tw_typed_reserve(typed);
		put_char(typed, (unsigned char)text[i]);
	}
	tw_typed_put_text(typed, typed->form == TW_TYPED_ERLANG ? "\">>" : "\"");
	if (item->is_cut && typed->form == TW_TYPED_TEXT)
		tw_typed_put_text(typed, "...");
}

void tw_typed_put_unknown(struct tw_typed *typed)
{
	if (typed->form == TW_TYPED_ERLANG)
		tw_typed_put_atom(typed, "_");
	else
		tw_typed_put_text(typed, typed->form == TW_TYPED_TEXT ? "_" : "null");
}

/* [3, 4], or one number without brackets. */
static void put_numbers(struct tw_typed *typed, const struct tw_layout_item *item)
{
	struct tw_layout_value element;
	uint32_t count, start = typed->count;
	if (!tw_layout_numbers(item->value, &element, &count) || item->text_bytes < (size_t)element.bytes * count) {
		tw_typed_put_unknown(typed);
		return;
	}
	tw_typed_put_text(typed, count > 1 ? "[" : "");
	for (uint32_t i = 0; i < count; i++) {
		struct tw_layout_item number = {.value = &element, .word_count = 1};
		memcpy(number.words, item->text + (size_t)i * element.bytes, element.bytes);
		tw_typed_put_text(typed, !i ? "" : typed->form == TW_TYPED_TEXT ? ", " : ",");
		tw_typed_put_item(typed, &number);
		tw_typed_reserve(typed);
	}
	if (count > 1)
		tw_typed_close(typed, start, "]");
}

/* The memory that the call has filled. */
void tw_typed_put_content(struct tw_typed *typed, const struct tw_layout_item *item)
{
	if (!item->text)
		tw_typed_put_unknown(typed);
	else if (item->value->type == 'V')
		put_numbers(typed, item);
	else
		tw_typed_put_string(typed, item);
}

/* ---- values ---- */

/* Prints the words of the value. */
static void put_words(struct tw_typed *typed, const struct tw_layout_item *item)
{
	uint32_t start = typed->count;
	tw_typed_put_text(typed, typed->form == TW_TYPED_JSON ? "[" : "{");
	for (unsigned i = 0; i < item->word_count; i++) {
		tw_typed_put_text(typed, i ? "," : "");
		put_word(typed, item->words[i]);
	}
	/* Older captures have only one word of such a result. */
	if (item->word_count == 1 && item->value->registers[1] >= 0) {
		tw_typed_put_text(typed, ",");
		tw_typed_put_unknown(typed);
	}
	tw_typed_close(typed, start, typed->form == TW_TYPED_JSON ? "]" : "}");
}

static void put_field(struct tw_typed *typed, const struct tw_layout_field *field, const uint64_t words[2])
{
	uint64_t word = words[field->first_bit / 64] >> field->first_bit % 64;
	unsigned unused = 64 - field->bits;
	if (field->bits == 128) {
		tw_typed_put_wide(typed, field->type == 'i', words);
		return;
	}
	switch (field->type) {
	case 'i': put_signed(typed, (int64_t)(word << unused) >> unused); break;
	case 'b': tw_typed_put_atom(typed, word << unused ? "true" : "false"); break;
	case 'p': put_address(typed, word); break;
	case 'f': tw_typed_put_float(typed, field->bits / 8, (const uint64_t[2]){word}); break;
	default: put_unsigned(typed, word << unused >> unused); break;
	}
}

/* Prints the fields by name: {x = -1, y = 2}. False: not enough is known of them. */
static bool put_fields(struct tw_typed *typed, const struct tw_layout_item *item)
{
	const struct tw_layout_value *value = item->value;
	uint32_t start = typed->count;
	struct tw_layout_field field;
	if (!value->enumerator_count)
		return false;
	for (uint32_t i = 0; i < value->enumerator_count; i++)
		if (!tw_layout_field(value, i, &field) || field.first_bit + field.bits > 64 * item->word_count)
			return false;
	if (!field.name_bytes && value->enumerator_count == 1) {
		put_field(typed, &field, item->words);
		return true;
	}
	if (typed->form == TW_TYPED_TEXT)
		tw_out_name(typed->out, value->type_name);
	tw_typed_put_text(typed, "{");
	for (uint32_t i = 0; i < value->enumerator_count && tw_layout_field(value, i, &field); i++) {
		tw_typed_put_text(typed, !i ? "" : typed->form == TW_TYPED_TEXT ? ", " : ",");
		if (typed->form == TW_TYPED_TEXT && field.name_bytes) {
			tw_out_clean(typed->out, field.name, field.name_bytes);
			tw_typed_put_text(typed, " = ");
		} else if (typed->form == TW_TYPED_JSON) {
			tw_json_quote(typed->out, field.name, field.name_bytes);
		}
		tw_typed_put_text(typed, typed->form == TW_TYPED_JSON ? ":" : "");
		put_field(typed, &field, item->words);
		tw_typed_reserve(typed);
	}
	tw_typed_close(typed, start, "}");
	return true;
}

static void put_struct(struct tw_typed *typed, const struct tw_layout_item *item)
{
	if (put_fields(typed, item))
		return;
	if (typed->form == TW_TYPED_TEXT)
		tw_out_name(typed->out, item->value->type_name);
	put_words(typed, item);
}

void tw_typed_put_item(struct tw_typed *typed, const struct tw_layout_item *item)
{
	const struct tw_layout_value *value = item->value;
	if (!item->word_count) {
		tw_typed_put_unknown(typed);
		return;
	}
	switch (value->type) {
	case 'i': put_signed(typed, tw_typed_signed(value, item->words[0])); break;
	case 'u': put_unsigned(typed, tw_typed_unsigned(value, item->words[0])); break;
	case 'b': tw_typed_put_atom(typed, tw_typed_unsigned(value, item->words[0]) ? "true" : "false"); break;
	case 'e':
	case 'n': put_enum(typed, value, item->words[0]); break;
	case 'p': put_address(typed, item->words[0]); break;
	case 's':
	case 'm': tw_typed_put_string(typed, item); break;
	case 'M':
	case 'V':
	case 'Z': put_address(typed, item->words[0]); break;
	case 'g':
		if (typed->form == TW_TYPED_TEXT)
			put_flags(typed, value, item->words[0]);
		else
			put_unsigned(typed, tw_typed_unsigned(value, item->words[0]));
		break;
	case 'o':
	case 'x': put_in_base(typed, value, item->words[0]); break;
	case 'E': tw_typed_put_error(typed, (int)item->words[0]); break;
	case 'f': tw_typed_put_float(typed, value->bytes, item->words); break;
	case 'S': put_struct(typed, item); break;
	default: tw_typed_put_unknown(typed); break;
	}
}

static void put_names(struct tw_typed *typed, const struct tw_layout *layout)
{
	tw_typed_put_text(typed, ",\"names\":[");
	for (uint32_t i = 0; i < layout->count; i++) {
		tw_typed_put_text(typed, i ? "," : "");
		tw_json_quote(typed->out, layout->values[i].name, strlen(layout->values[i].name));
	}
	tw_typed_put_text(typed, "]");
}

static void put_arguments(struct tw_typed *typed, const struct tw_layout *layout, const uint64_t *words, uint32_t count)
{
	struct tw_layout_reader reader = {.layout = layout, .words = words, .word_count = count};
	struct tw_layout_item item;
	const char *between = "";
	uint32_t start = typed->count;
	tw_typed_put_text(typed, typed->form == TW_TYPED_TEXT	  ? "("
				 : typed->form == TW_TYPED_ERLANG ? "["
								  : "\"args\":[");
	while (tw_layout_next(&reader, &item)) {
		if (typed->form == TW_TYPED_TEXT && !tw_layout_is_given(layout, item.value, words))
			continue;
		tw_typed_put_text(typed, between);
		between = typed->form == TW_TYPED_TEXT ? ", " : ",";
		if (typed->form == TW_TYPED_TEXT && *item.value->name) {
			tw_out_name(typed->out, item.value->name);
			tw_typed_put_text(typed, " = ");
		}
		tw_typed_put_item(typed, &item);
		tw_typed_reserve(typed);
	}
	if (typed->form == TW_TYPED_TEXT && layout->is_variadic)
		tw_out_format(typed->out, "%s...", between);
	tw_typed_close(typed, start, typed->form == TW_TYPED_TEXT ? ")" : "]");
	if (typed->form == TW_TYPED_JSON)
		put_names(typed, layout);
}

/* The result of a call that makes descriptors, and what they are: 5 (file /etc/passwd). */
static void put_described(struct tw_typed *typed, const struct tw_layout *layout, const uint64_t *words, uint32_t count)
{
	struct tw_layout_description what;
	char text[TW_DESCRIPTOR_TEXT_BYTES];
	bool is_accepted = layout->result.bytes == TW_LAYOUT_DESCRIPTOR_ACCEPTED;
	const char *between = "";
	uint32_t at = 1, start = typed->count, list, pair;
	tw_typed_put_text(typed, typed->form == TW_TYPED_TEXT	  ? ""
				 : typed->form == TW_TYPED_ERLANG ? "{"
								  : "{\"result\":");
	if (layout->result.bytes == TW_LAYOUT_DESCRIPTOR_STREAM)
		put_address(typed, words[0]);
	else
		put_signed(typed, (int32_t)words[0]);
	if (typed->form != TW_TYPED_TEXT)
		tw_typed_put_text(typed, typed->form == TW_TYPED_ERLANG ? ",[" : ",\"descriptors\":[");
	list = typed->count;
	while (tw_layout_next_description(words, count, &at, &what)) {
		size_t bytes = tw_descriptor_text(&what, TW_DESCRIPTOR_WHOLE, is_accepted, text);
		tw_typed_put_text(typed, typed->form == TW_TYPED_TEXT && !*between ? " (" : between);
		between = typed->form == TW_TYPED_TEXT ? "; " : ",";
		if (typed->form == TW_TYPED_TEXT) {
			if (what.fd != (int32_t)words[0])
				tw_out_format(typed->out, "%d: ", what.fd);
			tw_out_clean(typed->out, text, bytes);
		} else {
			pair = typed->count;
			tw_typed_put_text(typed, typed->form == TW_TYPED_ERLANG ? "{" : "{\"fd\":");
			put_signed(typed, what.fd);
			tw_typed_put_text(typed, typed->form == TW_TYPED_ERLANG ? "," : ",\"port\":");
			tw_typed_put_string(typed, &(struct tw_layout_item){.text = text, .text_bytes = bytes});
			tw_typed_close(typed, pair, "}");
		}
		tw_typed_reserve(typed);
	}
	if (typed->form != TW_TYPED_TEXT) {
		tw_typed_close(typed, list, "]");
		tw_typed_close(typed, start, "}");
	} else if (*between) {
		tw_typed_put_text(typed, ")");
	}
}

static bool put_result(struct tw_typed *typed, const struct tw_layout *layout, const uint64_t *words, uint32_t count)
{
	struct tw_layout_item item;
	if (layout->result.type == 'd' && count) {
		put_described(typed, layout, words, count);
		return true;
	}
	/* If nothing is known, the member is left out. */
	if (!tw_layout_result(layout, words, count, &item) && typed->form == TW_TYPED_JSON &&
	    layout->result.type != 'v')
		return false;
	return tw_typed_put_result(typed, layout, &item, words, count);
}

void tw_typed_arguments(struct tw_out *out, enum tw_typed_form form, const struct tw_layout *layout,
			const uint64_t *words, uint32_t count)
{
	struct tw_typed typed = {.form = form, .out = out};
	put_arguments(&typed, layout, words, count);
}

bool tw_typed_find_argument(const struct tw_layout *layout, const uint64_t *words, uint32_t count, uint32_t number,
			    const char *name, size_t bytes, struct tw_layout_item *out)
{
	struct tw_layout_reader reader = {.layout = layout, .words = words, .word_count = count};
	for (uint32_t at = 1; tw_layout_next(&reader, out); at++) {
		const char *other = out->value->name;
		if (number ? at == number : strlen(other) == bytes && memcmp(other, name, bytes) == 0)
			return out->word_count > 0;
	}
	return false;
}

void tw_typed_value(struct tw_out *out, const struct tw_layout_item *item)
{
	struct tw_typed typed = {.form = TW_TYPED_TEXT, .out = out};
	tw_typed_put_item(&typed, item);
}

struct tw_term tw_typed_arguments_term(struct tw_arena *arena, const struct tw_layout *layout, const uint64_t *words,
				       uint32_t count)
{
	struct tw_typed typed = {.form = TW_TYPED_ERLANG, .arena = arena};
	put_arguments(&typed, layout, words, count);
	return typed.count ? typed.items[0] : (struct tw_term){0};
}

bool tw_typed_result(struct tw_out *out, enum tw_typed_form form, const struct tw_layout *layout, const uint64_t *words,
		     uint32_t count)
{
	struct tw_typed typed = {.form = form, .out = out};
	return put_result(&typed, layout, words, count);
}

struct tw_term tw_typed_result_term(struct tw_arena *arena, const struct tw_layout *layout, const uint64_t *words,
				    uint32_t count)
{
	struct tw_typed typed = {.form = TW_TYPED_ERLANG, .arena = arena};
	if (!put_result(&typed, layout, words, count))
		return tw_term_atom_z("_");
	return typed.count ? typed.items[0] : (struct tw_term){0};
}

/* ---- for viewers ---- */

static void put_shown(struct tw_typed *typed, const struct tw_layout_item *item)
{
	if (item->word_count && item->value->type == 'p')
		tw_out_format(typed->out, "\"0x%" PRIx64 "\"", item->words[0]);
	else
		tw_typed_put_item(typed, item);
}

void tw_typed_members(struct tw_out *out, const struct tw_layout *layout, const uint64_t *words, uint32_t count)
{
	struct tw_layout_reader reader = {.layout = layout, .words = words, .word_count = count};
	struct tw_typed json = {.form = TW_TYPED_JSON, .out = out}, *typed = &json;
	struct tw_layout_item item;
	for (unsigned i = 0; tw_layout_next(&reader, &item); i++) {
		char number[16];
		snprintf(number, sizeof number, "$%u", i + 1);
		const char *name = *item.value->name ? item.value->name : number;
		tw_typed_put_text(typed, i ? "," : "");
		tw_json_quote(typed->out, name, strlen(name));
		tw_typed_put_text(typed, ":");
		put_shown(typed, &item);
		tw_typed_reserve(typed);
	}
}

bool tw_typed_shown_result(struct tw_out *out, const struct tw_layout *layout, const uint64_t *words, uint32_t count)
{
	struct tw_typed typed = {.form = TW_TYPED_JSON, .out = out};
	struct tw_layout_item item;
	if (layout->result.type == 'd' && count) {
		put_described(&typed, layout, words, count);
		return true;
	}
	if (layout->result.type != 'v' && !tw_layout_result(layout, words, count, &item))
		return false;
	if (layout->result.type != 'p')
		return tw_typed_put_result(&typed, layout, &item, words, count);
	put_shown(&typed, &item);
	return true;
}
