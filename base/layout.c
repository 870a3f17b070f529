/* SPDX-License-Identifier: Apache-2.0 */
/* layout.c - the text of layouts, and payloads that were recorded by them; see tracewheel/layout.h. */
#include "tracewheel/layout.h"

#include "base/export.h"
#include "tracewheel/error.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* A layout, its values, its enumerators and a copy of its text, in one piece. */
struct whole {
	struct tw_layout layout;
	struct tw_layout_value values[TW_LAYOUT_VALUES_MAX];
	struct tw_layout_enumerator *enumerators;
	char text[];
};

static int8_t register_of(char c)
{
	if (c >= '0' && c <= '9')
		return (int8_t)(c - '0');
	return c >= 'a' && c <= 'f' ? (int8_t)(c - 'a' + 10) : -1;
}

static bool is_register(char c)
{
	return c == '-' || register_of(c) >= 0;
}

/* "NAME=VALUE,NAME=VALUE" */
static bool take_enumerators(char *text, struct tw_layout_value *value, struct tw_layout_enumerator **at)
{
	char *name;

	value->enumerators = *at;
	while ((name = strsep(&text, ","))) {
		char *number = strchr(name, '='), *end;

		if (!number)
			return false;
		*number++ = '\0';
		errno = 0;
		(*at)->name = name;
		(*at)->value = strtoll(number, &end, 10);
		if (errno || end == number || *end)
			return false;
		(*at)++;
		value->enumerator_count++;
	}
	return true;
}

/* letter [bytes] ["/" name] ["{" ... "}"] */
static bool take_type(char *text, struct tw_layout_value *value, struct tw_layout_enumerator **at)
{
	char *brace = strchr(text, '{'), *slash, *end;

	if (!*text || !strchr("iubenpsfSvdgoxEmMVZ_", *text))
		return false;
	value->type = *text++;
	value->bytes = 8;
	value->type_name = "";
	if (brace) {
		char *close = strchr(brace, '}');

		if (!close || close[1])
			return false;
		*brace++ = *close = '\0';
		if (!take_enumerators(brace, value, at))
			return false;
	}
	slash = strchr(text, '/');
	if (slash) {
		*slash++ = '\0';
		value->type_name = slash;
	}
	if (*text) {
		unsigned long bytes = strtoul(text, &end, 10);

		if (*end || bytes > UINT32_MAX)
			return false;
		value->bytes = (uint32_t)bytes;
	}
	return true;
}

static bool take_value(char *token, struct tw_layout_value *value, struct tw_layout_enumerator **at)
{
	char *type = strchr(token, ':'), *registers = strrchr(token, '@');

	if (!type || !registers || registers < type)
		return false;
	*type++ = *registers++ = '\0';
	if (strlen(registers) != 2 || !is_register(registers[0]) || !is_register(registers[1]))
		return false;
	value->name = token;
	value->registers[0] = register_of(registers[0]);
	value->registers[1] = register_of(registers[1]);
	/* A second register needs a first one; an address is one word. */
	if (value->registers[0] < 0 && value->registers[1] >= 0)
		return false;
	return take_type(type, value, at) && !(strchr("smMVZ", value->type) && value->registers[1] >= 0);
}

/* An argument that other values refer to is in an integer register. */
static bool is_argument(const struct tw_layout *layout, uint32_t number)
{
	return number < layout->count && layout->values[number].registers[0] >= 0 &&
	       layout->values[number].registers[0] < 6;
}

/* Is what stands in the braces of a value of memory right? */
static bool is_memory_right(const struct tw_layout *layout, const struct tw_layout_value *value)
{
	struct tw_layout_value element;
	struct tw_layout_factor factor;
	uint32_t count;

	if (value->registers[0] > 5)
		return false;
	if (value->type == 'V')
		return tw_layout_numbers(value, &element, &count);
	if (value->type == 'Z' || value->type == 's')
		return true;
	if (!value->enumerator_count || value->enumerator_count > TW_LAYOUT_FACTORS_MAX)
		return false;
	for (uint32_t i = 0; i < value->enumerator_count; i++)
		if (!tw_layout_factor(value, i, &factor) || (factor.kind == 'r' && value->type == 'm') ||
		    (factor.kind != 'n' && factor.kind != 'r' && !is_argument(layout, factor.number)))
			return false;
	return true;
}

/* Counts the words that a call records for its arguments. */
static bool count_words(struct tw_layout *layout)
{
	for (uint32_t i = 0; i < layout->count; i++) {
		const struct tw_layout_value *value = &layout->values[i];

		for (int j = 0; j < 2; j++) {
			if (value->registers[j] == 6 || value->registers[j] == 7)
				return false;
			layout->word_count += value->registers[j] >= 0;
		}
		if (value->registers[0] < 0 || !strchr("smMVZ", value->type))
			continue;
		if (!is_memory_right(layout, value))
			return false;
		layout->string_count += value->type == 's' || value->type == 'm';
		layout->filled_count += value->type != 's' && value->type != 'm';
	}
	if (layout->result.type == 'Z' && layout->result.registers[0] != 6)
		return false;
	if (layout->result.type == 'd' && (layout->result.bytes < TW_LAYOUT_DESCRIPTOR_RESULT ||
					   layout->result.bytes > TW_LAYOUT_DESCRIPTOR_ACCEPTED))
		return false;
	layout->filled_count += layout->result.type == 'Z';
	layout->has_errno = strchr("iupxZ", layout->result.type) && layout->result.enumerator_count == 1 &&
			    !strcmp(layout->result.enumerators->name, "errno");
	return layout->word_count <= TW_LAYOUT_WORDS_MAX && layout->string_count <= 6 && layout->filled_count <= 6;
}

static bool take_all(struct whole *whole)
{
	struct tw_layout_enumerator *at = whole->enumerators;
	struct tw_layout *layout = &whole->layout;
	char *rest = whole->text, *token = strsep(&rest, " ");

	layout->values = whole->values;
	if (!take_value(token, &layout->result, &at))
		return false;
	while ((token = strsep(&rest, " "))) {
		if (!strcmp(token, "...") && !rest) {
			layout->is_variadic = true;
			break;
		}
		if (layout->count == TW_LAYOUT_VALUES_MAX || !take_value(token, &whole->values[layout->count], &at))
			return false;
		layout->count++;
	}
	return count_words(layout);
}

TW_API int tw_layout_parse(const char *text, size_t bytes, struct tw_layout **out)
{
	size_t commas = 1;
	struct whole *whole;

	if (bytes > TW_LAYOUT_TEXT_BYTES_MAX || memchr(text, '\0', bytes))
		return TW_EBADARG;
	for (size_t i = 0; i < bytes; i++)
		commas += text[i] == ',' || text[i] == '{';
	whole = calloc(1, sizeof *whole + bytes + 1);
	if (whole)
		whole->enumerators = calloc(commas, sizeof *whole->enumerators);
	if (!whole || !whole->enumerators) {
		free(whole);
		return TW_ENOMEM;
	}
	memcpy(whole->text, text, bytes);
	if (!take_all(whole)) {
		tw_layout_destroy(&whole->layout);
		return TW_EBADARG;
	}
	*out = &whole->layout;
	return 0;
}

TW_API void tw_layout_destroy(struct tw_layout *layout)
{
	/* The layout is its first member. */
	struct whole *whole = (struct whole *)(void *)layout;

	if (!whole)
		return;
	free(whole->enumerators);
	free(whole);
}

TW_API bool tw_layout_field(const struct tw_layout_value *value, uint32_t at, struct tw_layout_field *out)
{
	const struct tw_layout_enumerator *entry;
	unsigned long bits;
	const char *dot;
	char *end;

	if (value->type != 'S' || at >= value->enumerator_count)
		return false;
	entry = &value->enumerators[at];
	dot = strrchr(entry->name, '.');
	if (!dot || !dot[1] || !strchr("iubpf", dot[1]) || dot[2] < '1' || dot[2] > '9')
		return false;
	bits = strtoul(dot + 2, &end, 10);
	if (*end || bits > 128 || entry->value < 0 || entry->value > 127 || entry->value + (int64_t)bits > 128)
		return false;
	/* Fields lie in one word, except a number of two words. */
	if (bits == 128 ? !strchr("iu", dot[1]) : entry->value % 64 + (int64_t)bits > 64)
		return false;
	if ((dot[1] == 'f' && bits != 32 && bits != 64))
		return false;
	*out = (struct tw_layout_field){.name = entry->name,
					.name_bytes = (size_t)(dot - entry->name),
					.type = dot[1],
					.first_bit = (uint32_t)entry->value,
					.bits = (uint32_t)bits};
	return true;
}

/* ---- payloads ---- */

static bool take_string(struct tw_layout_reader *r, struct tw_layout_item *out)
{
	uint64_t head, bytes;

	if (r->string_at >= r->word_count)
		return false;
	head = r->words[r->string_at++];
	bytes = (uint32_t)head;
	if (bytes > (uint64_t)(r->word_count - r->string_at) * 8)
		return false;
	out->is_nothing = head >> 32 == TW_LAYOUT_NOTHING;
	if (head >> 32 != TW_LAYOUT_UNREADABLE && !out->is_nothing) {
		out->text = (const char *)(r->words + r->string_at);
		out->text_bytes = bytes;
		out->is_cut = head >> 32 == TW_LAYOUT_CUT;
	}
	r->string_at += (uint32_t)((bytes + 7) / 8);
	return true;
}

TW_API bool tw_layout_next(struct tw_layout_reader *r, struct tw_layout_item *out)
{
	const struct tw_layout_value *value;

	if (r->at >= r->layout->count || r->layout->word_count > r->word_count)
		return false;
	if (r->at == 0)
		r->string_at = r->layout->word_count;
	value = &r->layout->values[r->at++];
	*out = (struct tw_layout_item){.value = value};
	for (int i = 0; i < 2 && value->registers[i] >= 0; i++)
		out->words[out->word_count++] = r->words[r->word_at++];
	return (value->type != 's' && value->type != 'm') || !out->word_count || take_string(r, out);
}

static bool is_filled(const struct tw_layout_value *value)
{
	return value->registers[0] >= 0 && (value->type == 'M' || value->type == 'V' || value->type == 'Z');
}

/* The result is asked for first, and then the arguments: `at` is one more than the argument's number. */
TW_API bool tw_layout_next_filled(struct tw_layout_reader *r, struct tw_layout_item *out)
{
	const struct tw_layout *layout = r->layout;

	if (r->at == 0)
		r->string_at = 1 + layout->has_errno;
	while (r->at <= layout->count) {
		const struct tw_layout_value *value = r->at ? &layout->values[r->at - 1] : &layout->result;

		r->at++;
		if (!is_filled(value))
			continue;
		*out = (struct tw_layout_item){.value = value};
		return take_string(r, out);
	}
	return false;
}

TW_API int tw_layout_error(const struct tw_layout *layout, const uint64_t *words, uint32_t word_count)
{
	return layout->has_errno && word_count > 1 ? (int)words[1] : 0;
}

TW_API bool tw_layout_next_description(const uint64_t *words, uint32_t word_count, uint32_t *at,
				       struct tw_layout_description *out)
{
	uint32_t local, peer, path, next = *at + 3;
	const uint64_t *head = words + *at;

	if (*at >= word_count || word_count - *at < 3)
		return false;
	local = head[2] & 0xffff;
	peer = head[2] >> 16 & 0xffff;
	path = (uint32_t)(head[2] >> 32);
	if (local > TW_LAYOUT_ADDRESS_BYTES_MAX || peer > TW_LAYOUT_ADDRESS_BYTES_MAX ||
	    path > TW_LAYOUT_PATH_BYTES_MAX || word_count - next < (local + 7) / 8 + (peer + 7) / 8 + (path + 7) / 8)
		return false;
	*out = (struct tw_layout_description){
		.fd = (int32_t)head[0],
		.mode = head[0] >> 32 & 0xffff,
		.socket_type = (uint32_t)(head[0] >> 48),
		.inode = head[1],
		.local = words + next,
		.local_bytes = local,
		.peer = words + next + (local + 7) / 8,
		.peer_bytes = peer,
		.path = (const char *)(words + next + (local + 7) / 8 + (peer + 7) / 8),
		.path_bytes = path,
	};
	*at = next + (local + 7) / 8 + (peer + 7) / 8 + (path + 7) / 8;
	return true;
}

TW_API bool tw_layout_result(const struct tw_layout *layout, const uint64_t *words, uint32_t word_count,
			     struct tw_layout_item *out)
{
	const struct tw_layout_value *result = &layout->result;
	bool is_x87 = result->type == 'f' && result->bytes == TW_LAYOUT_X87_BYTES && result->registers[0] < 0;
	uint32_t most = is_x87 ? 2 : (uint32_t)(result->registers[0] >= 0) + (result->registers[1] >= 0);

	*out = (struct tw_layout_item){.value = result};
	/* A single word is rax, or xmm0 if that is the first register. */
	if (is_x87 ? word_count != 2 : result->registers[0] != 6 && result->registers[0] != 8)
		return false;
	while (out->word_count < word_count && out->word_count < most) {
		out->words[out->word_count] = words[out->word_count];
		out->word_count++;
	}
	return out->word_count != 0;
}
