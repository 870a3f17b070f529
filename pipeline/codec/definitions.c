/* SPDX-License-Identifier: Apache-2.0 */
/*
 * definitions.c - definition records in columns.
 *
 *	u32 bytes of the records | u32 records | u32 bytes of each stream below | the streams
 *
 *	0	one byte for each record: enum shape
 *	1-4	of functions: id, module, arity, address
 *	5-6	bytes at the beginning of the name that it shares with the function before; the other bytes of the name
 *	7-11	of places: id, function, kind, module of the caller, address
 *	12	the other bytes of all names
 *	13	other records, as they are
 *
 * Streams 1 to 11 are columns of up to TW_COLUMN_MAX numbers each (columns.h).
 */
#include "pipeline/codec/definitions.h"
#include "pipeline/codec/columns.h"
#include "pipeline/format/definitions.h"
#include "pipeline/format/format.h"

enum shape { OTHER = 0, FUNCTION = 1, PLACE = 2 };

enum stream {
	SHAPES = 0,
	FUNCTION_ID = 1,
	FUNCTION_MODULE,
	FUNCTION_ARITY,
	FUNCTION_ADDRESS,
	NAME_SHARED,
	NAME_OWN,
	PLACE_ID = 7,
	PLACE_FUNCTION,
	PLACE_KIND,
	PLACE_CALLER,
	PLACE_ADDRESS,
	NAMES = 12,
	OTHERS = 13,
	STREAMS = 14
};

#define HEADER_BYTES (8 + 4 * STREAMS)

static size_t whole_bytes(size_t payload_bytes)
{
	return (sizeof(struct tw_definition_head) + payload_bytes + 7) & ~(size_t)7;
}

/* ---- encoding ---- */

/* A record of the input. */
struct record {
	struct tw_definition_head head;
	const uint8_t *payload;
	size_t bytes;
	enum shape shape;
};

static enum shape shape_of(const struct record *record)
{
	struct tw_def_function function;

	if (record->head.type == TW_DEF_PLACE && record->head.payload_bytes == sizeof(struct tw_def_place))
		return PLACE;
	if (record->head.type != TW_DEF_FUNCTION || record->head.payload_bytes < sizeof(function))
		return OTHER;
	memcpy(&function, record->payload, sizeof(function));
	return !function.reserved && record->head.payload_bytes == sizeof(function) + function.name_bytes ? FUNCTION
													  : OTHER;
}

static bool next_record(const uint8_t *in, size_t bytes, size_t *at, struct record *out)
{
	size_t left = bytes - *at;

	if (left < sizeof(out->head))
		return false;
	memcpy(&out->head, in + *at, sizeof(out->head));
	if (out->head.payload_bytes > left)
		return false;
	out->bytes = whole_bytes(out->head.payload_bytes);
	if (out->bytes > left)
		return false;
	out->payload = in + *at + sizeof(out->head);
	out->shape = shape_of(out);
	*at += out->bytes;
	return true;
}

/* The state of one pass: each stream is written by a pass of its own. */
struct pass {
	const uint8_t *name; /* of the previous function */
	size_t name_bytes;
};

static size_t shared_bytes(const struct pass *pass, const uint8_t *name, size_t bytes)
{
	size_t most = bytes < pass->name_bytes ? bytes : pass->name_bytes, count = 0;

	while (count < most && name[count] == pass->name[count])
		count++;
	return count;
}

static uint64_t function_field(struct pass *pass, const struct record *record, enum stream stream, const uint8_t **name,
			       size_t *own)
{
	struct tw_def_function function;
	size_t shared;

	memcpy(&function, record->payload, sizeof(function));
	switch (stream) {
	case FUNCTION_ID: return function.function_id;
	case FUNCTION_MODULE: return function.module_id;
	case FUNCTION_ARITY: return function.arity;
	case FUNCTION_ADDRESS: return function.address;
	default: break;
	}
	*name = record->payload + sizeof(function);
	shared = shared_bytes(pass, *name, function.name_bytes);
	pass->name = *name;
	pass->name_bytes = function.name_bytes;
	*name += shared;
	*own = function.name_bytes - shared;
	return stream == NAME_SHARED ? shared : *own;
}

static uint64_t place_field(const struct record *record, enum stream stream)
{
	struct tw_def_place place;

	memcpy(&place, record->payload, sizeof(place));
	switch (stream) {
	case PLACE_ID: return place.place_id;
	case PLACE_FUNCTION: return place.function_id;
	case PLACE_KIND: return place.kind;
	case PLACE_CALLER: return place.caller_module_id;
	default: return place.address;
	}
}

static uint8_t *put_column(const uint8_t *in, size_t bytes, enum stream stream, uint8_t *out)
{
	enum shape wanted = stream < PLACE_ID ? FUNCTION : PLACE;
	uint64_t values[TW_COLUMN_MAX];
	struct pass pass = {0};
	struct record record;
	size_t count = 0;

	for (size_t at = 0; next_record(in, bytes, &at, &record);) {
		const uint8_t *name;
		size_t own;

		if (record.shape != wanted)
			continue;
		values[count++] = wanted == FUNCTION ? function_field(&pass, &record, stream, &name, &own)
						     : place_field(&record, stream);
		if (count == TW_COLUMN_MAX) {
			out = tw_column_put(out, values, count);
			count = 0;
		}
	}
	return count ? tw_column_put(out, values, count) : out;
}

static uint8_t *put_rest(const uint8_t *in, size_t bytes, enum stream stream, uint8_t *out)
{
	struct pass pass = {0};
	struct record record;

	for (size_t at = 0; next_record(in, bytes, &at, &record);) {
		if (stream == SHAPES) {
			*out++ = (uint8_t)record.shape;
		} else if (stream == NAMES && record.shape == FUNCTION) {
			const uint8_t *name;
			size_t own;

			function_field(&pass, &record, NAME_OWN, &name, &own);
			memcpy(out, name, own);
			out += own;
		} else if (stream == OTHERS && record.shape == OTHER) {
			memcpy(out, in + at - record.bytes, record.bytes);
			out += record.bytes;
		}
	}
	return out;
}

size_t tw_codec_definitions_encode(const uint8_t *in, size_t bytes, uint8_t *out)
{
	uint8_t *to = out + HEADER_BYTES;
	uint32_t records = 0;
	struct record record;
	size_t at = 0;

	while (next_record(in, bytes, &at, &record))
		records++;
	if (at != bytes || !records)
		return 0;
	tw_put32(out, (uint32_t)bytes);
	tw_put32(out + 4, records);
	for (unsigned stream = 0; stream < STREAMS; stream++) {
		bool is_column = stream >= FUNCTION_ID && stream <= PLACE_ADDRESS;
		uint8_t *end = (is_column ? put_column : put_rest)(in, bytes, (enum stream)stream, to);

		tw_put32(out + 8 + 4 * stream, (uint32_t)(end - to));
		to = end;
	}
	return (size_t)(to - out);
}

/* ---- decoding ---- */

struct cursor {
	const uint8_t *at, *end;
	uint32_t left; /* numbers that are not in values[] yet */
	uint32_t next, count;
	uint64_t values[TW_COLUMN_MAX];
};

struct input {
	struct cursor streams[STREAMS];
	bool is_damaged;
	uint8_t *to, *to_end;
	const uint8_t *name; /* of the previous function, in the output */
	uint64_t name_bytes;
};

static uint64_t take(struct input *input, enum stream stream)
{
	struct cursor *cursor = &input->streams[stream];

	if (cursor->next == cursor->count && !input->is_damaged) {
		cursor->count = cursor->left < TW_COLUMN_MAX ? cursor->left : TW_COLUMN_MAX;
		cursor->left -= cursor->count;
		cursor->next = 0;
		cursor->at = tw_column_get(cursor->at, cursor->end, cursor->values, cursor->count);
		input->is_damaged = !cursor->at || !cursor->count;
	}
	return input->is_damaged ? 0 : cursor->values[cursor->next++];
}

static uint32_t take32(struct input *input, enum stream stream)
{
	uint64_t value = take(input, stream);

	input->is_damaged |= value > UINT32_MAX;
	return (uint32_t)value;
}

/* Reserves space in the output for a record, with its padding; NULL: it does not fit. */
static uint8_t *begin_record(struct input *input, uint32_t type, uint32_t payload_bytes)
{
	const struct tw_definition_head head = {type, payload_bytes};
	size_t bytes = whole_bytes(payload_bytes);
	uint8_t *to = input->to;

	if (input->is_damaged || bytes > (size_t)(input->to_end - to)) {
		input->is_damaged = true;
		return NULL;
	}
	tw_put64(to + bytes - 8, 0);
	memcpy(to, &head, sizeof(head));
	input->to += bytes;
	return to + sizeof(head);
}

static void take_function(struct input *input)
{
	struct cursor *names = &input->streams[NAMES];
	struct tw_def_function function = {
		.function_id = take32(input, FUNCTION_ID),
		.module_id = take32(input, FUNCTION_MODULE),
		.arity = take32(input, FUNCTION_ARITY),
		.address = take(input, FUNCTION_ADDRESS),
	};
	uint64_t shared = take(input, NAME_SHARED), own = take(input, NAME_OWN);
	uint8_t *to;

	if (input->is_damaged || shared > input->name_bytes || own > (uint64_t)(names->end - names->at) ||
	    shared + own > UINT16_MAX) {
		input->is_damaged = true;
		return;
	}
	function.name_bytes = (uint16_t)(shared + own);
	to = begin_record(input, TW_DEF_FUNCTION, (uint32_t)(sizeof(function) + shared + own));
	if (!to)
		return;
	memcpy(to, &function, sizeof(function));
	to += sizeof(function);
	if (shared)
		memcpy(to, input->name, shared);
	memcpy(to + shared, names->at, own);
	names->at += own;
	input->name = to;
	input->name_bytes = shared + own;
}

static void take_place(struct input *input)
{
	const struct tw_def_place place = {
		.place_id = take32(input, PLACE_ID),
		.function_id = take32(input, PLACE_FUNCTION),
		.kind = take32(input, PLACE_KIND),
		.caller_module_id = take32(input, PLACE_CALLER),
		.address = take(input, PLACE_ADDRESS),
	};
	uint8_t *to = begin_record(input, TW_DEF_PLACE, sizeof(place));

	if (to)
		memcpy(to, &place, sizeof(place));
}

static void take_other(struct input *input)
{
	struct cursor *others = &input->streams[OTHERS];
	struct tw_definition_head head;
	uint8_t *to;

	if ((size_t)(others->end - others->at) < sizeof(head)) {
		input->is_damaged = true;
		return;
	}
	memcpy(&head, others->at, sizeof(head));
	if (head.payload_bytes > (size_t)(others->end - others->at) ||
	    whole_bytes(head.payload_bytes) > (size_t)(others->end - others->at)) {
		input->is_damaged = true;
		return;
	}
	to = begin_record(input, head.type, head.payload_bytes);
	if (!to)
		return;
	memcpy(to, others->at + sizeof(head), head.payload_bytes);
	others->at += whole_bytes(head.payload_bytes);
}

/* Finds the streams, and the number of values in each column; false: the input is not valid. */
static bool find_streams(struct input *input, const uint8_t *in, size_t bytes, uint32_t records)
{
	const uint8_t *at = in + HEADER_BYTES, *end = in + bytes;
	uint32_t counts[3] = {0};

	for (unsigned i = 0; i < STREAMS; i++) {
		uint32_t length = tw_get32(in + 8 + 4 * i);

		if (length > (size_t)(end - at))
			return false;
		input->streams[i] = (struct cursor){.at = at, .end = at + length};
		at += length;
	}
	if (at != end || input->streams[SHAPES].end - input->streams[SHAPES].at != (ptrdiff_t)records)
		return false;
	for (const uint8_t *shape = input->streams[SHAPES].at; shape < input->streams[SHAPES].end; shape++) {
		if (*shape > PLACE)
			return false;
		counts[*shape]++;
	}
	for (unsigned i = FUNCTION_ID; i <= PLACE_ADDRESS; i++)
		input->streams[i].left = counts[i < PLACE_ID ? FUNCTION : PLACE];
	return true;
}

/* Has every stream been read to its end? */
static bool is_used_up(const struct input *input)
{
	for (unsigned i = FUNCTION_ID; i < STREAMS; i++) {
		if (input->streams[i].at != input->streams[i].end)
			return false;
	}
	return true;
}

size_t tw_codec_definitions_decode(const uint8_t *in, size_t bytes, uint8_t *out)
{
	struct input input;
	uint32_t records, whole;
	const uint8_t *shape;

	if (bytes < HEADER_BYTES)
		return 0;
	whole = tw_get32(in);
	records = tw_get32(in + 4);
	input.is_damaged = false;
	input.name = NULL;
	input.name_bytes = 0;
	if (!whole || whole > TW_BLOCK_RAW_BYTES_MAX || !find_streams(&input, in, bytes, records))
		return 0;
	input.to = out;
	input.to_end = out + whole;
	shape = input.streams[SHAPES].at;
	for (uint32_t i = 0; i < records && !input.is_damaged; i++) {
		if (shape[i] == FUNCTION)
			take_function(&input);
		else if (shape[i] == PLACE)
			take_place(&input);
		else
			take_other(&input);
	}
	return !input.is_damaged && input.to == input.to_end && is_used_up(&input) ? whole : 0;
}
