/* SPDX-License-Identifier: Apache-2.0 */
/*
 * words.h - payload words, predicted from the last word of their place; stacks of callers by their number.
 *
 * Encoders trust their input, decoders do not; as in codec.h.
 */
#ifndef TW_PIPELINE_CODEC_WORDS_H
#define TW_PIPELINE_CODEC_WORDS_H

#include "pipeline/codec/codec.h"

#define TW_WORDS_PLACES	      (1u << 12)
#define TW_WORDS_BUCKETS      (1u << 15)
#define TW_WORDS_LEB128_BYTES 10
/* The most words in a block. */
#define TW_WORDS_MAX (TW_BLOCK_RAW_BYTES_MAX / 8)

/* Used for one block at a time. */
struct tw_words_tables {
	uint64_t last[TW_WORDS_PLACES];
	uint16_t next_stack[TW_WORDS_PLACES]; /* number of the stack that last followed, by function and stack before */
	uint16_t buckets[TW_WORDS_BUCKETS];   /* encoder: number of a stack, by a hash of its words; 0: free */
	uint32_t stacks[TW_CODEC_RECORDS_MAX + 1]; /* positions of records, by number */
	uint8_t held[TW_WORDS_MAX / 8 + 8];
	uint8_t misses[TW_WORDS_MAX * TW_WORDS_LEB128_BYTES];
};

/* Returns the end of the output. */
uint8_t *tw_words_put(struct tw_words_tables *tables, const struct tw_codec_input *in, uint8_t *out);

/*
 * tw_words_get - read the words back into records whose heads are already written.
 *
 * @is_old	TW_CODEC_RETURNS: places are told apart by the id alone, and stacks are words like others.
 *
 * Returns the end of the input, or NULL if the words do not fit.
 */
const uint8_t *tw_words_get(struct tw_words_tables *tables, const uint8_t *in, const uint8_t *end, bool is_old,
			    const struct tw_codec_output *out);

/* LEB128: little-endian groups of seven bits. */
static inline uint8_t *tw_leb128_put(uint8_t *out, uint64_t value)
{
	while (value >= 128) {
		*out++ = (uint8_t)(value | 128);
		value >>= 7;
	}
	*out++ = (uint8_t)value;
	return out;
}

/* NULL: the number has no end within the input, or too many bytes. */
static inline const uint8_t *tw_leb128_get(const uint8_t *in, const uint8_t *end, uint64_t *value)
{
	*value = 0;
	for (unsigned shift = 0; shift < 7 * TW_WORDS_LEB128_BYTES && in < end; shift += 7) {
		*value |= (uint64_t)(*in & 127) << shift;
		if (*in++ < 128)
			return in;
	}
	return NULL;
}

#endif
