/* SPDX-License-Identifier: Apache-2.0 */
/*
 * values.c - records of few shapes, field by field in columns.
 *
 *	u8 shapes; u8 shape bits; shapes x u32
 *	for each group:  ticks | ids << bits | shape | word 0 | word 1 ...
 *
 * Blocks of one shape, the common case, are gathered and scattered by a constant stride.
 */
#include "pipeline/codec/codec.h"

struct values_header {
	uint32_t shape_count;
	uint32_t shape_bits;
	uint32_t words_max;
	uint32_t shapes[TW_CODEC_SHAPES_MAX];
};

uint8_t *tw_payload_put(uint8_t *out, const struct tw_codec_group *group)
{
	uint64_t column[TW_COLUMN_MAX];

	for (uint32_t word = 0; word < group->words_max; word++) {
		uint32_t offset = TW_CODEC_HEAD_BYTES + 8 * word, count = 0;

		for (uint32_t i = 0; i < group->count; i++) {
			if (group->words[i] > word)
				column[count++] = tw_get64(group->record[i] + offset);
		}
		out = tw_column_put(out, column, count);
	}
	return out;
}

const uint8_t *tw_payload_get(const uint8_t *in, const uint8_t *end, const struct tw_codec_group *group)
{
	uint64_t column[TW_COLUMN_MAX];

	for (uint32_t word = 0; word < group->words_max; word++) {
		uint32_t offset = TW_CODEC_HEAD_BYTES + 8 * word, count = 0;

		for (uint32_t i = 0; i < group->count; i++)
			count += group->words[i] > word;
		in = tw_column_get(in, end, column, count);
		if (!in)
			return NULL;
		count = 0;
		for (uint32_t i = 0; i < group->count; i++) {
			if (group->words[i] > word)
				tw_put64((uint8_t *)(uintptr_t)group->record[i] + offset, column[count++]);
		}
	}
	return in;
}

static uint32_t shape_index(const struct tw_codec_input *in, uint32_t shape)
{
	uint32_t i = 0;

	while (in->shapes[i] != shape)
		i++;
	return i;
}

/* Records of one shape: one pass with a constant stride for each column. */
static uint8_t *put_uniform(const struct tw_codec_input *in, uint8_t *out)
{
	uint32_t stride = tw_shape_bytes(in->shapes[0]);
	const uint8_t *from = in->raw;
	uint64_t column[TW_COLUMN_MAX];

	for (uint32_t left = in->records; left;) {
		uint32_t count = left < TW_COLUMN_MAX ? left : TW_COLUMN_MAX;

		for (uint32_t i = 0; i < count; i++)
			column[i] = tw_get64(from + (size_t)stride * i);
		out = tw_column_put(out, column, count);
		for (uint32_t i = 0; i < count; i++)
			column[i] = tw_get32(from + (size_t)stride * i + 12);
		out = tw_column_put(out, column, count);
		for (uint32_t word = 0; word < in->words_max; word++) {
			const uint8_t *field = from + TW_CODEC_HEAD_BYTES + 8 * word;

			for (uint32_t i = 0; i < count; i++)
				column[i] = tw_get64(field + (size_t)stride * i);
			out = tw_column_put(out, column, count);
		}
		from += (size_t)stride * count;
		left -= count;
	}
	return out;
}

static uint8_t *put_mixed(const struct tw_codec_input *in, uint32_t bits, uint8_t *out)
{
	struct tw_codec_group group = {.words_max = in->words_max};
	uint64_t ticks[TW_COLUMN_MAX], heads[TW_COLUMN_MAX];
	const uint8_t *from = in->raw;

	for (uint32_t left = in->records; left; left -= group.count) {
		group.count = left < TW_COLUMN_MAX ? left : TW_COLUMN_MAX;
		for (uint32_t i = 0; i < group.count; i++) {
			uint64_t head = tw_record_head(from);

			ticks[i] = tw_get64(from);
			heads[i] = (head >> 32) << bits | shape_index(in, (uint32_t)head);
			group.record[i] = from;
			group.words[i] = (uint8_t)tw_shape_words((uint32_t)head);
			from += TW_RB_HEAD_BYTES(head);
		}
		out = tw_column_put(out, ticks, group.count);
		out = tw_column_put(out, heads, group.count);
		out = tw_payload_put(out, &group);
	}
	return out;
}

size_t tw_codec_values_encode(const struct tw_codec_input *in, uint8_t *out)
{
	uint32_t bits = 0;
	uint8_t *to = out;

	while (UINT32_C(1) << bits < in->shape_count)
		bits++;
	*to++ = (uint8_t)in->shape_count;
	*to++ = (uint8_t)bits;
	memcpy(to, in->shapes, in->shape_count * sizeof in->shapes[0]);
	to += in->shape_count * sizeof in->shapes[0];
	to = in->shape_count == 1 ? put_uniform(in, to) : put_mixed(in, bits, to);
	return (size_t)(to - out);
}

static const uint8_t *get_header(const uint8_t *in, const uint8_t *end, struct values_header *header)
{
	if (end - in < 2)
		return NULL;
	header->shape_count = in[0];
	header->shape_bits = in[1];
	header->words_max = 0;
	in += 2;
	if (!header->shape_count || header->shape_count > TW_CODEC_SHAPES_MAX || header->shape_bits > 4 ||
	    UINT32_C(1) << header->shape_bits < header->shape_count)
		return NULL;
	if ((size_t)(end - in) < header->shape_count * sizeof header->shapes[0])
		return NULL;
	for (uint32_t i = 0; i < header->shape_count; i++) {
		uint32_t shape = tw_get32(in + 4 * i), words;

		if (!tw_shape_is_sound(shape))
			return NULL;
		words = tw_shape_words(shape);
		if (words > TW_CODEC_WORDS_MAX)
			return NULL;
		header->shapes[i] = shape;
		if (words > header->words_max)
			header->words_max = words;
	}
	return in + header->shape_count * sizeof header->shapes[0];
}

/* Writes one field of every record of a group. */
static void scatter(uint8_t *to, uint32_t stride, const uint64_t *column, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		tw_put64(to + (size_t)stride * i, column[i]);
}

static const uint8_t *get_uniform(const uint8_t *in, const uint8_t *end, const struct values_header *header,
				  const struct tw_codec_output *out)
{
	uint32_t shape = header->shapes[0], stride = tw_shape_bytes(shape);
	uint64_t ticks[TW_COLUMN_MAX], ids[TW_COLUMN_MAX], column[TW_COLUMN_MAX];
	uint8_t *to = out->raw;

	if (header->shape_bits || (uint64_t)stride * out->records != out->raw_bytes)
		return NULL;
	for (uint32_t left = out->records; left;) {
		uint32_t count = left < TW_COLUMN_MAX ? left : TW_COLUMN_MAX;
		uint64_t any = 0;

		in = tw_column_get(in, end, ticks, count);
		in = in ? tw_column_get(in, end, ids, count) : NULL;
		if (!in)
			return NULL;
		for (uint32_t i = 0; i < count; i++) {
			tw_put64(to + (size_t)stride * i, ticks[i]);
			tw_put64(to + (size_t)stride * i + 8, ids[i] << 32 | shape);
			any |= ids[i];
		}
		if (any > UINT32_MAX)
			return NULL;
		for (uint32_t word = 0; word < header->words_max; word++) {
			in = tw_column_get(in, end, column, count);
			if (!in)
				return NULL;
			scatter(to + TW_CODEC_HEAD_BYTES + 8 * word, stride, column, count);
		}
		if (shape >> 8 & TW_EVENT_FLAG_HALF) {
			for (uint32_t i = 0; i < count; i++)
				tw_record_clear_filling(to + (size_t)stride * i, shape);
		}
		to += (size_t)stride * count;
		left -= count;
	}
	return in;
}

/* Writes the heads and ticks of one group; returns the end of its records, NULL if they do not fit. */
static uint8_t *put_heads(struct tw_codec_group *group, const struct values_header *header, const uint64_t *ticks,
			  const uint64_t *heads, uint8_t *to, const uint8_t *to_end)
{
	for (uint32_t i = 0; i < group->count; i++) {
		uint64_t index = heads[i] & ((UINT64_C(1) << header->shape_bits) - 1);
		uint64_t id = heads[i] >> header->shape_bits;
		uint32_t shape;

		if (index >= header->shape_count || id > UINT32_MAX)
			return NULL;
		shape = header->shapes[index];
		if ((size_t)(to_end - to) < tw_shape_bytes(shape))
			return NULL;
		tw_put64(to, ticks[i]);
		tw_put64(to + 8, id << 32 | shape);
		tw_record_clear_filling(to, shape);
		group->record[i] = to;
		group->words[i] = (uint8_t)tw_shape_words(shape);
		to += tw_shape_bytes(shape);
	}
	return to;
}

static const uint8_t *get_mixed(const uint8_t *in, const uint8_t *end, const struct values_header *header,
				const struct tw_codec_output *out)
{
	struct tw_codec_group group = {.words_max = header->words_max};
	uint64_t ticks[TW_COLUMN_MAX], heads[TW_COLUMN_MAX];
	uint8_t *to = out->raw, *to_end = out->raw + out->raw_bytes;

	for (uint32_t left = out->records; left; left -= group.count) {
		group.count = left < TW_COLUMN_MAX ? left : TW_COLUMN_MAX;
		in = tw_column_get(in, end, ticks, group.count);
		in = in ? tw_column_get(in, end, heads, group.count) : NULL;
		if (!in)
			return NULL;
		to = put_heads(&group, header, ticks, heads, to, to_end);
		in = to ? tw_payload_get(in, end, &group) : NULL;
		if (!in)
			return NULL;
	}
	return to == to_end ? in : NULL;
}

bool tw_codec_values_decode(const uint8_t *in, size_t bytes, const struct tw_codec_output *out)
{
	const uint8_t *end = in + bytes;
	struct values_header header;

	in = get_header(in, end, &header);
	if (!in)
		return false;
	in = header.shape_count == 1 ? get_uniform(in, end, &header, out) : get_mixed(in, end, &header, out);
	return in == end;
}
