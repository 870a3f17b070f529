/* SPDX-License-Identifier: Apache-2.0 */
/*
 * codec_words.c - words predicted by place.
 *
 *	u32 bytes of differences | bits: the word is the place's last one | LEB128 differences, zigzag
 *
 * A function mostly returns the value that it returned before (0, a status, the same object), or a similar one; the
 * columns of codec_values.c, which mix the values of all functions, take three times as much.
 */
#include "pipeline/block/codec_words.h"

static inline uint64_t zigzag(uint64_t difference)
{
	return difference << 1 ^ (uint64_t)((int64_t)difference >> 63);
}

static inline uint64_t unzigzag(uint64_t value)
{
	return value >> 1 ^ (0 - (value & 1));
}

static inline uint64_t *last_of(struct tw_words_tables *tables, uint64_t head)
{
	return &tables->last[(head >> 32) & (TW_WORDS_PLACES - 1)];
}

uint8_t *tw_words_put(struct tw_words_tables *tables, const struct tw_codec_input *in, uint8_t *out)
{
	const uint8_t *record = in->raw;
	uint8_t *miss = tables->misses;
	uint32_t count = 0, bits = 0;

	memset(tables->last, 0, sizeof tables->last);
	for (uint32_t i = 0; i < in->records; i++) {
		uint64_t head = tw_record_head(record), *last, word;

		if (tw_shape_words((uint32_t)head)) {
			last = last_of(tables, head);
			word = tw_get64(record + TW_CODEC_HEAD_BYTES);
			bits |= (uint32_t)(word == *last) << (count & 7);
			if (word != *last)
				miss = tw_leb128_put(miss, zigzag(word - *last));
			*last = word;
			if ((count++ & 7) == 7) {
				tables->held[(count - 1) >> 3] = (uint8_t)bits;
				bits = 0;
			}
		}
		record += TW_RB_HEAD_BYTES(head);
	}
	tables->held[count >> 3] = (uint8_t)bits;
	tw_put32(out, (uint32_t)(miss - tables->misses));
	out += 4;
	memcpy(out, tables->held, (count + 7) / 8);
	out += (count + 7) / 8;
	memcpy(out, tables->misses, (size_t)(miss - tables->misses));
	return out + (miss - tables->misses);
}

static uint32_t count_words(const struct tw_codec_output *out)
{
	uint32_t count = 0;

	for (uint32_t at = 0; at < out->raw_bytes; at += TW_RB_HEAD_BYTES(tw_record_head(out->raw + at)))
		count += tw_shape_words((uint32_t)tw_record_head(out->raw + at)) != 0;
	return count;
}

const uint8_t *tw_words_get(struct tw_words_tables *tables, const uint8_t *in, const uint8_t *end,
			    const struct tw_codec_output *out)
{
	uint64_t held_bytes = (count_words(out) + UINT64_C(7)) / 8, miss_bytes;
	const uint8_t *held, *miss_end;
	uint32_t count = 0;

	if (end - in < 4)
		return NULL;
	miss_bytes = tw_get32(in);
	held = in + 4;
	if ((uint64_t)(end - held) < held_bytes + miss_bytes)
		return NULL;
	in = held + held_bytes;
	miss_end = in + miss_bytes;
	memset(tables->last, 0, sizeof tables->last);
	for (uint32_t at = 0; at < out->raw_bytes;) {
		uint64_t head = tw_record_head(out->raw + at), *last = last_of(tables, head), difference;

		if (tw_shape_words((uint32_t)head)) {
			if (!(held[count >> 3] >> (count & 7) & 1)) {
				in = tw_leb128_get(in, miss_end, &difference);
				if (!in)
					return NULL;
				*last += unzigzag(difference);
			}
			tw_put64(out->raw + at + TW_CODEC_HEAD_BYTES, *last);
			count++;
		}
		at += TW_RB_HEAD_BYTES(head);
	}
	return in == miss_end ? in : NULL;
}
