/* SPDX-License-Identifier: Apache-2.0 */
/*
 * codec_words.h - the words of records with at most one (return values), predicted from the last word of their place.
 *
 * Encoders trust their input, decoders do not; as in codec.h.
 */
#ifndef TW_PIPELINE_CODEC_WORDS_H
#define TW_PIPELINE_CODEC_WORDS_H

#include "pipeline/block/codec.h"

#define TW_WORDS_PLACES	      (1u << 12)
#define TW_WORDS_LEB128_BYTES 10

/* Used for one block at a time. */
struct tw_words_tables {
	uint64_t last[TW_WORDS_PLACES]; /* indexed by the low bits of the id */
	uint8_t held[TW_CODEC_RECORDS_MAX / 8 + 8];
	uint8_t misses[TW_CODEC_RECORDS_MAX * TW_WORDS_LEB128_BYTES];
};

/* words_max is 1. Returns the end of the output. */
uint8_t *tw_words_put(struct tw_words_tables *tables, const struct tw_codec_input *in, uint8_t *out);

/* Reads the words back into records with at most one word, whose heads are already written. NULL: they do not fit. */
const uint8_t *tw_words_get(struct tw_words_tables *tables, const uint8_t *in, const uint8_t *end,
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
