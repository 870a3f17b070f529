/* SPDX-License-Identifier: Apache-2.0 */
/* typed.c - prints words and strings of a payload in the form of the source. */
#include "views/names/typed.h"
#include "views/names/descriptors.h"
#include "views/names/names.h"
#include "views/names/typed_numbers.h"
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

/* ---- numbers ---- */

/* Bits of a register above the type's size are undefined. */
uint64_t tw_typed_unsigned(const struct tw_layout_value *value, uint64_t word)
{
	return value->bytes && value->bytes < 8 ? word & ((UINT64_C(1) << 8 * value->bytes) - 1) : word;
}

int64_t tw_typed_signed(const struct tw_layout_value *value, uint64_t word)
{
	unsigned unused = value->bytes && value->bytes < 8 ? 64 - 8 * value->bytes : 0;
	return (int64_t)(word << unused) >> unused;
}

static void put_signed(struct tw_out *out, int64_t number)
{
	tw_out_format(out, "%" PRId64, number);
}

static void put_address(struct tw_out *out, enum tw_typed_form form, uint64_t word)
{
	if (form == TW_TYPED_TEXT && !word)
		tw_out_text(out, "NULL");
	else
		tw_out_format(out, form == TW_TYPED_TEXT ? "0x%" PRIx64 : "%" PRIu64, word);
}

/* ---- names of numbers ---- */

int64_t tw_typed_enum(const struct tw_layout_value *value, uint64_t word)
{
	return value->type == 'n' ? tw_typed_signed(value, word) : (int64_t)tw_typed_unsigned(value, word);
}

const char *tw_typed_enumerator(const struct tw_layout_value *value, uint64_t word)
{
	int64_t number = tw_typed_enum(value, word);
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
static bool put_bits(struct tw_out *out, const struct tw_layout_value *value, int64_t number)
{
	const char *between = "";
	int64_t left = number;
	for (uint32_t i = 0; i < value->enumerator_count; i++) {
		int64_t bit = value->enumerators[i].value;
		if (!is_one_bit(bit) || !(left & bit))
			continue;
		tw_out_text(out, between);
		tw_out_name(out, value->enumerators[i].name);
		between = "|";
		left &= ~bit;
	}
	if (left && left != number)
		tw_out_format(out, "|0x%" PRIx64, (uint64_t)left);
	return left != number;
}

static void put_enum(struct tw_out *out, enum tw_typed_form form, const struct tw_layout_value *value, uint64_t word)
{
	int64_t number = tw_typed_enum(value, word);
	const char *name = tw_typed_enumerator(value, word);
	if (name && form == TW_TYPED_TEXT)
		tw_out_name(out, name);
	else if (name)
		tw_json_quote(out, name, strlen(name));
	else if (form != TW_TYPED_TEXT || number <= 0 || !put_bits(out, value, number))
		put_signed(out, number);
}

/* O_RDWR|O_CREAT|0x400000: those of the table whose bits are there, in its order; 0 if there are none. */
static void put_flags(struct tw_out *out, const struct tw_layout_value *value, uint64_t word)
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
		tw_out_text(out, between);
		tw_out_clean(out, flag->name, bytes);
		tw_out_reserve(out);
		between = "|";
		left &= ~mask;
	}
	if (left || !*between)
		tw_out_format(out, left ? "%s0x%" PRIx64 : "%s%" PRIu64, between, left);
}

/* As an enumerator. */
void tw_typed_put_error(struct tw_out *out, enum tw_typed_form form, int error)
{
	const char *name = error ? strerrorname_np(error) : NULL;
	if (name)
		tw_out_format(out, form == TW_TYPED_TEXT ? "%s" : "\"%s\"", name);
	else
		put_signed(out, error);
}

/* The numbers stay numbers where a program reads them. */
static void put_in_base(struct tw_out *out, enum tw_typed_form form, const struct tw_layout_value *value, uint64_t word)
{
	uint64_t number = tw_typed_unsigned(value, word);
	if (form != TW_TYPED_TEXT || !number)
		tw_put_u64(out, number);
	else
		tw_out_format(out, value->type == 'o' ? "0%" PRIo64 : "0x%" PRIx64, number);
}

/* ---- strings ---- */

void tw_typed_put_char(struct tw_out *out, const char *escape, unsigned char c)
{
	if (c == '"' || c == '\\')
		tw_out_format(out, "\\%c", c);
	else if (c == '\n')
		tw_out_text(out, "\\n");
	else if (c == '\t')
		tw_out_text(out, "\\t");
	else if (c == '\r')
		tw_out_text(out, "\\r");
	else if (c >= 0x20 && c < 0x7f)
		tw_put_char(out, (char)c);
	else
		tw_out_format(out, escape, c);
}

const char *tw_typed_text(const struct tw_layout_item *item, char address[TW_TYPED_ADDRESS_BYTES], size_t *bytes)
{
	bool is_address = item->text && item->value && (item->value->type == 'm' || item->value->type == 'M') &&
			  strcmp(item->value->type_name, "sockaddr") == 0;
	*bytes = item->text_bytes;
	if (!is_address || !tw_descriptor_address(item->text, *bytes, address, TW_TYPED_ADDRESS_BYTES))
		return item->text;
	*bytes = strlen(address);
	return address;
}

void tw_typed_put_string(struct tw_out *out, enum tw_typed_form form, const struct tw_layout_item *item)
{
	char address[TW_TYPED_ADDRESS_BYTES];
	size_t bytes;
	const char *text = tw_typed_text(item, address, &bytes);
	if (!text) {
		put_address(out, form, item->words[0]);
		return;
	}
	tw_out_text(out, "\"");
	for (size_t i = 0; i < bytes; i++) {
		tw_out_reserve(out);
		tw_typed_put_char(out, form == TW_TYPED_JSON ? "\\u%04x" : "\\x%02x", (unsigned char)text[i]);
	}
	tw_out_text(out, item->is_cut && form == TW_TYPED_TEXT ? "\"..." : "\"");
}

void tw_typed_put_unknown(struct tw_out *out, enum tw_typed_form form)
{
	tw_out_text(out, form == TW_TYPED_TEXT ? "_" : "null");
}

/* [3, 4], or one number without brackets. */
static void put_numbers(struct tw_out *out, enum tw_typed_form form, const struct tw_layout_item *item)
{
	struct tw_layout_value element;
	uint32_t count;
	if (!tw_layout_numbers(item->value, &element, &count) || item->text_bytes < (size_t)element.bytes * count) {
		tw_typed_put_unknown(out, form);
		return;
	}
	tw_out_text(out, count > 1 ? "[" : "");
	for (uint32_t i = 0; i < count; i++) {
		struct tw_layout_item number = {.value = &element, .word_count = 1};
		memcpy(number.words, item->text + (size_t)i * element.bytes, element.bytes);
		tw_out_text(out, !i ? "" : form == TW_TYPED_TEXT ? ", " : ",");
		tw_typed_put_item(out, form, &number);
		tw_out_reserve(out);
	}
	tw_out_text(out, count > 1 ? "]" : "");
}

/* What the call has filled. */
void tw_typed_put_content(struct tw_out *out, enum tw_typed_form form, const struct tw_layout_item *item)
{
	if (!item->text)
		tw_typed_put_unknown(out, form);
	else if (item->value->type == 'V')
		put_numbers(out, form, item);
	else
		tw_typed_put_string(out, form, item);
}

/* ---- values ---- */

/* Prints the words of the value. */
static void put_words(struct tw_out *out, enum tw_typed_form form, const struct tw_layout_item *item)
{
	tw_out_text(out, form == TW_TYPED_JSON ? "[" : "{");
	for (unsigned i = 0; i < item->word_count; i++) {
		tw_out_text(out, i ? "," : "");
		tw_out_format(out, form == TW_TYPED_TEXT ? "0x%" PRIx64 : "%" PRIu64, item->words[i]);
	}
	/* Older captures have only one word of such a result. */
	if (item->word_count == 1 && item->value->registers[1] >= 0) {
		tw_out_text(out, ",");
		tw_typed_put_unknown(out, form);
	}
	tw_out_text(out, form == TW_TYPED_JSON ? "]" : "}");
}

static void put_field(struct tw_out *out, enum tw_typed_form form, const struct tw_layout_field *field,
		      const uint64_t words[2])
{
	uint64_t word = words[field->first_bit / 64] >> field->first_bit % 64;
	unsigned unused = 64 - field->bits;
	if (field->bits == 128) {
		tw_typed_put_wide(out, field->type == 'i', words);
		return;
	}
	switch (field->type) {
	case 'i': put_signed(out, (int64_t)(word << unused) >> unused); break;
	case 'b': tw_out_text(out, word << unused ? "true" : "false"); break;
	case 'p': put_address(out, form, word); break;
	case 'f': tw_typed_put_float(out, form, field->bits / 8, (const uint64_t[2]){word}); break;
	default: tw_put_u64(out, word << unused >> unused); break;
	}
}

bool tw_typed_has_fields(const struct tw_layout_item *item)
{
	const struct tw_layout_value *value = item->value;
	struct tw_layout_field field;
	if (!value->enumerator_count)
		return false;
	for (uint32_t i = 0; i < value->enumerator_count; i++)
		if (!tw_layout_field(value, i, &field) || field.first_bit + field.bits > 64 * item->word_count)
			return false;
	return true;
}

/* Prints the fields by name: {x = -1, y = 2}. False: not enough is known of them. */
static bool put_fields(struct tw_out *out, enum tw_typed_form form, const struct tw_layout_item *item)
{
	const struct tw_layout_value *value = item->value;
	struct tw_layout_field field;
	if (!tw_typed_has_fields(item))
		return false;
	tw_layout_field(value, 0, &field);
	if (!field.name_bytes && value->enumerator_count == 1) {
		put_field(out, form, &field, item->words);
		return true;
	}
	if (form == TW_TYPED_TEXT)
		tw_out_name(out, value->type_name);
	tw_out_text(out, "{");
	for (uint32_t i = 0; i < value->enumerator_count && tw_layout_field(value, i, &field); i++) {
		tw_out_text(out, !i ? "" : form == TW_TYPED_TEXT ? ", " : ",");
		if (form == TW_TYPED_TEXT && field.name_bytes) {
			tw_out_clean(out, field.name, field.name_bytes);
			tw_out_text(out, " = ");
		} else if (form == TW_TYPED_JSON) {
			tw_json_quote(out, field.name, field.name_bytes);
		}
		tw_out_text(out, form == TW_TYPED_JSON ? ":" : "");
		put_field(out, form, &field, item->words);
		tw_out_reserve(out);
	}
	tw_out_text(out, "}");
	return true;
}

static void put_struct(struct tw_out *out, enum tw_typed_form form, const struct tw_layout_item *item)
{
	if (put_fields(out, form, item))
		return;
	if (form == TW_TYPED_TEXT)
		tw_out_name(out, item->value->type_name);
	put_words(out, form, item);
}

void tw_typed_put_item(struct tw_out *out, enum tw_typed_form form, const struct tw_layout_item *item)
{
	const struct tw_layout_value *value = item->value;
	if (!item->word_count) {
		tw_typed_put_unknown(out, form);
		return;
	}
	switch (value->type) {
	case 'i': put_signed(out, tw_typed_signed(value, item->words[0])); break;
	case 'u': tw_put_u64(out, tw_typed_unsigned(value, item->words[0])); break;
	case 'b': tw_out_text(out, tw_typed_unsigned(value, item->words[0]) ? "true" : "false"); break;
	case 'e':
	case 'n': put_enum(out, form, value, item->words[0]); break;
	case 'p': put_address(out, form, item->words[0]); break;
	case 's':
	case 'm': tw_typed_put_string(out, form, item); break;
	case 'M':
	case 'V':
	case 'Z': put_address(out, form, item->words[0]); break;
	case 'g':
		if (form == TW_TYPED_TEXT)
			put_flags(out, value, item->words[0]);
		else
			tw_put_u64(out, tw_typed_unsigned(value, item->words[0]));
		break;
	case 'o':
	case 'x': put_in_base(out, form, value, item->words[0]); break;
	case 'E': tw_typed_put_error(out, form, (int)item->words[0]); break;
	case 'f': tw_typed_put_float(out, form, value->bytes, item->words); break;
	case 'S': put_struct(out, form, item); break;
	default: tw_typed_put_unknown(out, form); break;
	}
}

static void put_names(struct tw_out *out, const struct tw_layout *layout)
{
	tw_out_text(out, ",\"names\":[");
	for (uint32_t i = 0; i < layout->count; i++) {
		tw_out_text(out, i ? "," : "");
		tw_json_quote(out, layout->values[i].name, strlen(layout->values[i].name));
	}
	tw_out_text(out, "]");
}

void tw_typed_arguments(struct tw_out *out, enum tw_typed_form form, const struct tw_layout *layout,
			const uint64_t *words, uint32_t count)
{
	struct tw_layout_reader reader = {.layout = layout, .words = words, .word_count = count};
	struct tw_layout_item item;
	const char *between = "";
	tw_out_text(out, form == TW_TYPED_TEXT ? "(" : "\"args\":[");
	while (tw_layout_next(&reader, &item)) {
		if (form == TW_TYPED_TEXT && !tw_layout_is_given(layout, item.value, words))
			continue;
		tw_out_text(out, between);
		between = form == TW_TYPED_TEXT ? ", " : ",";
		if (form == TW_TYPED_TEXT && *item.value->name) {
			tw_out_name(out, item.value->name);
			tw_out_text(out, " = ");
		}
		tw_typed_put_item(out, form, &item);
		tw_out_reserve(out);
	}
	if (form == TW_TYPED_TEXT && layout->is_variadic)
		tw_out_format(out, "%s...", between);
	tw_out_text(out, form == TW_TYPED_TEXT ? ")" : "]");
	if (form == TW_TYPED_JSON)
		put_names(out, layout);
}

/* The result of a call that makes descriptors, and what they are: 5 (file /etc/passwd). */
static void put_described(struct tw_out *out, enum tw_typed_form form, const struct tw_layout *layout,
			  const uint64_t *words, uint32_t count)
{
	struct tw_layout_description what;
	char text[TW_DESCRIPTOR_TEXT_BYTES];
	bool is_accepted = layout->result.bytes == TW_LAYOUT_DESCRIPTOR_ACCEPTED;
	const char *between = "";
	uint32_t at = 1;
	tw_out_text(out, form == TW_TYPED_TEXT ? "" : "{\"result\":");
	if (layout->result.bytes == TW_LAYOUT_DESCRIPTOR_STREAM)
		put_address(out, form, words[0]);
	else
		put_signed(out, (int32_t)words[0]);
	if (form != TW_TYPED_TEXT)
		tw_out_text(out, ",\"descriptors\":[");
	while (tw_layout_next_description(words, count, &at, &what)) {
		size_t bytes = tw_descriptor_text(&what, TW_DESCRIPTOR_WHOLE, is_accepted, text);
		tw_out_text(out, form == TW_TYPED_TEXT && !*between ? " (" : between);
		between = form == TW_TYPED_TEXT ? "; " : ",";
		if (form == TW_TYPED_TEXT) {
			if (what.fd != (int32_t)words[0])
				tw_out_format(out, "%d: ", what.fd);
			tw_out_clean(out, text, bytes);
		} else {
			tw_out_format(out, "{\"fd\":%d,\"port\":", what.fd);
			tw_typed_put_string(out, form, &(struct tw_layout_item){.text = text, .text_bytes = bytes});
			tw_out_text(out, "}");
		}
		tw_out_reserve(out);
	}
	if (form != TW_TYPED_TEXT)
		tw_out_text(out, "]}");
	else if (*between)
		tw_out_text(out, ")");
}

bool tw_typed_result(struct tw_out *out, enum tw_typed_form form, const struct tw_layout *layout, const uint64_t *words,
		     uint32_t count)
{
	struct tw_layout_item item;
	if (layout->result.type == 'd' && count) {
		put_described(out, form, layout, words, count);
		return true;
	}
	/* If nothing is known, the member is left out. */
	if (!tw_layout_result(layout, words, count, &item) && form == TW_TYPED_JSON && layout->result.type != 'v')
		return false;
	return tw_typed_put_result(out, form, layout, &item, words, count);
}

/* ---- for viewers ---- */

static void put_shown(struct tw_out *out, const struct tw_layout_item *item)
{
	if (item->word_count && item->value->type == 'p')
		tw_out_format(out, "\"0x%" PRIx64 "\"", item->words[0]);
	else
		tw_typed_put_item(out, TW_TYPED_JSON, item);
}

void tw_typed_members(struct tw_out *out, const struct tw_layout *layout, const uint64_t *words, uint32_t count)
{
	struct tw_layout_reader reader = {.layout = layout, .words = words, .word_count = count};
	struct tw_layout_item item;
	for (unsigned i = 0; tw_layout_next(&reader, &item); i++) {
		char number[16];
		snprintf(number, sizeof number, "$%u", i + 1);
		const char *name = *item.value->name ? item.value->name : number;
		tw_out_text(out, i ? "," : "");
		tw_json_quote(out, name, strlen(name));
		tw_out_text(out, ":");
		put_shown(out, &item);
		tw_out_reserve(out);
	}
}

bool tw_typed_shown_result(struct tw_out *out, const struct tw_layout *layout, const uint64_t *words, uint32_t count)
{
	struct tw_layout_item item;
	if (layout->result.type == 'd' && count) {
		put_described(out, TW_TYPED_JSON, layout, words, count);
		return true;
	}
	if (layout->result.type != 'v' && !tw_layout_result(layout, words, count, &item))
		return false;
	if (layout->result.type != 'p')
		return tw_typed_put_result(out, TW_TYPED_JSON, layout, &item, words, count);
	put_shown(out, &item);
	return true;
}
