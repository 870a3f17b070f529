/* SPDX-License-Identifier: Apache-2.0 */
/* generic.c - records of any length: ticks and heads in columns, payloads as they are. */
#include "pipeline/codec/codec.h"

size_t tw_codec_generic_encode(const struct tw_codec_input *in, uint8_t *out)
{
	const uint8_t *next = in->raw;
	uint64_t ticks[TW_COLUMN_MAX], shapes[TW_COLUMN_MAX], ids[TW_COLUMN_MAX];
	uint8_t *to = out;

	for (uint32_t left = in->records; left;) {
		uint32_t count = left < TW_COLUMN_MAX ? left : TW_COLUMN_MAX;
		const uint8_t *record = next;

		for (uint32_t i = 0; i < count; i++) {
			uint64_t head = tw_record_head(next);

			ticks[i] = tw_get64(next);
			shapes[i] = (uint32_t)head;
			ids[i] = head >> 32;
			next += TW_RB_HEAD_BYTES(head);
		}
		to = tw_column_put(to, ticks, count);
		to = tw_column_put(to, shapes, count);
		to = tw_column_put(to, ids, count);
		for (uint32_t i = 0; i < count; i++) {
			uint32_t bytes = tw_shape_words((uint32_t)shapes[i]) * 8;

			memcpy(to, record + TW_CODEC_HEAD_BYTES, bytes);
			to += bytes;
			record += tw_shape_bytes((uint32_t)shapes[i]);
		}
		left -= count;
	}
	return (size_t)(to - out);
}

/* Writes one record; returns its bytes, 0 if it is not valid or does not fit. */
static uint32_t put_record(uint8_t *to, size_t capacity, uint64_t ticks, uint32_t shape, uint64_t id)
{
	if (!tw_shape_is_sound(shape) || tw_shape_bytes(shape) > capacity || id > UINT32_MAX)
		return 0;
	tw_put64(to, ticks);
	tw_put64(to + 8, id << 32 | shape);
	tw_record_clear_filling(to, shape);
	return tw_shape_bytes(shape);
}

bool tw_codec_generic_decode(const uint8_t *in, size_t bytes, const struct tw_codec_output *out)
{
	const uint8_t *end = in + bytes;
	uint64_t ticks[TW_COLUMN_MAX], shapes[TW_COLUMN_MAX], ids[TW_COLUMN_MAX];
	uint8_t *to = out->raw, *to_end = out->raw + out->raw_bytes;

	for (uint32_t left = out->records; left;) {
		uint32_t count = left < TW_COLUMN_MAX ? left : TW_COLUMN_MAX;

		in = tw_column_get(in, end, ticks, count);
		in = in ? tw_column_get(in, end, shapes, count) : NULL;
		in = in ? tw_column_get(in, end, ids, count) : NULL;
		if (!in)
			return false;
		for (uint32_t i = 0; i < count; i++) {
			uint32_t record_bytes, payload;

			if (shapes[i] > UINT32_MAX)
				return false;
			record_bytes = put_record(to, (size_t)(to_end - to), ticks[i], (uint32_t)shapes[i], ids[i]);
			if (!record_bytes)
				return false;
			payload = tw_shape_words((uint32_t)shapes[i]) * 8;
			if ((size_t)(end - in) < payload)
				return false;
			memcpy(to + TW_CODEC_HEAD_BYTES, in, payload);
			in += payload;
			to += record_bytes;
		}
		left -= count;
	}
	return to == to_end && in == end;
}
