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

/* ---- words one record after another, where no record is a stack ---- */

/* Places of a function: by kind of event, and by word. */
#define TW_WORDS_KIND_STEP 0x2c5
#define TW_WORDS_WORD_STEP 0x95

static inline uint32_t tw_words_place(uint64_t head)
{
	return (uint32_t)(head >> 32) + TW_RB_HEAD_KIND(head) * TW_WORDS_KIND_STEP;
}

static inline uint64_t *tw_words_last(struct tw_words_tables *tables, uint32_t place, uint32_t word)
{
	return &tables->last[(place + word * TW_WORDS_WORD_STEP) & (TW_WORDS_PLACES - 1)];
}

static inline uint64_t tw_unzigzag(uint64_t value)
{
	return value >> 1 ^ (0 - (value & 1));
}

struct tw_words_in {
	struct tw_words_tables *tables;
	const uint8_t *held, *miss, *miss_end;
	uint32_t count, count_max; /* of bits */
};

/* False: the input is too short. */
bool tw_words_begin(struct tw_words_in *words, struct tw_words_tables *tables, const uint8_t *in, const uint8_t *end);
/* Behind the last record: was that all of the input? */
bool tw_words_are_done(const struct tw_words_in *words);

/* False: there is no such word. */
static inline bool tw_words_take(struct tw_words_in *words, uint64_t *last)
{
	uint32_t at = words->count;
	uint64_t difference;

	if (tw_unlikely(at == words->count_max))
		return false;
	words->count++;
	if (words->held[at >> 3] >> (at & 7) & 1)
		return true;
	words->miss = tw_leb128_get(words->miss, words->miss_end, &difference);
	if (!words->miss)
		return false;
	*last += tw_unzigzag(difference);
	return true;
}

/*
 * The words of the next record, and zeros that fill it, behind its head.
 *
 * @record	TW_COLUMN_SLACK_BYTES behind its head are written, whatever its size: whether a record has a word at all is as good as random,
 *		and takes no branch.
 */
static inline __attribute__((always_inline)) bool tw_words_next(struct tw_words_in *words, uint8_t *record,
								uint64_t head)
{
	uint32_t shape = (uint32_t)head, count = tw_shape_words(shape), place = tw_words_place(head);
	uint64_t *last = tw_words_last(words->tables, place, 0);

	if (tw_likely(count <= 1)) {
		uint32_t at = words->count;
		uint8_t bits = (uint8_t)(words->held[at >> 3] >> (at & 7)) | (count ^ 1);

		if (tw_unlikely(!(bits & 1) || at + count > words->count_max) && !tw_words_take(words, last))
			return false;
		words->count = at + count;
		tw_put64(record + TW_CODEC_HEAD_BYTES, *last);
		tw_put64(record + TW_CODEC_HEAD_BYTES + 8, 0);
		return true;
	}
	tw_record_clear_filling(record, shape);
	for (uint32_t i = 0; i < count; i++) {
		last = tw_words_last(words->tables, place, i);
		if (!tw_words_take(words, last))
			return false;
		tw_put64(record + TW_CODEC_HEAD_BYTES + 8 * i, *last);
	}
	return true;
}

#endif
