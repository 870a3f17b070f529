/* SPDX-License-Identifier: Apache-2.0 */
/*
 * words.c - words predicted by place, stacks by number.
 *
 *	u32 bytes of differences | bits: the word is the place's last one | LEB128 differences, zigzag
 *
 * A function mostly returns the value that it returned before (0, a status, the same object), or a similar one; the
 * columns of values.c, which mix the values of all functions, take three times as much.
 *
 * A program has few stacks of callers, and each comes again and again: a block holds each once.  The bit of a stack says
 * that it is the one that followed the last stack in this function before.  Another one is told by its number, and a new
 * one (number 0) by its words, the outermost first, as differences from the new stack before, whose outer callers it
 * mostly has.
 */
#include "pipeline/codec/words.h"

static inline uint64_t zigzag(uint64_t difference)
{
	return difference << 1 ^ (uint64_t)((int64_t)difference >> 63);
}

static inline uint16_t *next_stack_of(struct tw_words_tables *tables, uint64_t head, uint32_t before)
{
	uint32_t hash = (uint32_t)(head >> 32) * UINT32_C(0x85ebca6b) ^ before * UINT32_C(0x9e3779b1);

	return &tables->next_stack[hash >> 20];
}

/* The word of the new stack before that is as far from the outermost caller. */
static inline uint64_t word_before(const uint8_t *record, uint32_t from_outermost)
{
	uint32_t words = record ? tw_shape_words((uint32_t)tw_record_head(record)) : 0;

	return from_outermost < words ? tw_get64(record + TW_CODEC_HEAD_BYTES + 8 * (words - 1 - from_outermost)) : 0;
}

/* ---- encoding ---- */

struct words_out {
	struct tw_words_tables *tables;
	const uint8_t *raw;
	uint8_t *miss;
	uint32_t count; /* of bits */
	uint32_t bits;
	uint32_t stacks;
	uint32_t stack; /* the last one's number */
};

static inline void put_bit(struct words_out *w, bool holds)
{
	w->bits |= (uint32_t)holds << (w->count & 7);
	if ((w->count++ & 7) == 7) {
		w->tables->held[(w->count - 1) >> 3] = (uint8_t)w->bits;
		w->bits = 0;
	}
}

static void put_new_stack(struct words_out *w, const uint8_t *record, uint32_t words)
{
	const uint8_t *before = w->stacks ? w->raw + w->tables->stacks[w->stacks] : NULL;

	w->miss = tw_leb128_put(w->miss, 0);
	for (uint32_t i = 0; i < words; i++)
		w->miss = tw_leb128_put(w->miss, zigzag(tw_get64(record + TW_CODEC_HEAD_BYTES + 8 * (words - 1 - i)) -
							word_before(before, i)));
}

/* The number of an equal stack, or 0: this one is new, and has the next number. */
static uint32_t find_stack(struct words_out *w, const uint8_t *record, uint32_t words)
{
	uint64_t hash = words;
	uint16_t *bucket;

	for (uint32_t i = 0; i < words; i++)
		hash = (hash ^ tw_get64(record + TW_CODEC_HEAD_BYTES + 8 * i)) * UINT64_C(0x9e3779b97f4a7c15);
	for (uint32_t at = (uint32_t)(hash >> 40);; at++) {
		const uint8_t *other;

		bucket = &w->tables->buckets[at & (TW_WORDS_BUCKETS - 1)];
		if (!*bucket)
			break;
		other = w->raw + w->tables->stacks[*bucket];
		if (tw_shape_words((uint32_t)tw_record_head(other)) == words &&
		    memcmp(other + TW_CODEC_HEAD_BYTES, record + TW_CODEC_HEAD_BYTES, 8 * words) == 0)
			return *bucket;
	}
	*bucket = (uint16_t)(w->stacks + 1);
	return 0;
}

static void put_stack(struct words_out *w, const uint8_t *record, uint64_t head, uint32_t words)
{
	uint16_t *next = next_stack_of(w->tables, head, w->stack);
	uint32_t number = find_stack(w, record, words);

	put_bit(w, number && number == *next);
	if (number && number != *next)
		w->miss = tw_leb128_put(w->miss, number);
	if (!number) {
		put_new_stack(w, record, words);
		number = ++w->stacks;
		w->tables->stacks[number] = (uint32_t)(record - w->raw);
	}
	*next = (uint16_t)number;
	w->stack = number;
}

static void clear(struct tw_words_tables *tables)
{
	memset(tables->last, 0, sizeof tables->last);
	memset(tables->next_stack, 0, sizeof tables->next_stack);
}

uint8_t *tw_words_put(struct tw_words_tables *tables, const struct tw_codec_input *in, uint8_t *out)
{
	struct words_out w = {.tables = tables, .raw = in->raw, .miss = tables->misses};
	const uint8_t *record = in->raw;
	size_t held_bytes, miss_bytes;

	clear(tables);
	if (in->has_stacks)
		memset(tables->buckets, 0, sizeof tables->buckets);
	for (uint32_t i = 0; i < in->records; i++) {
		uint64_t head = tw_record_head(record);
		uint32_t words = tw_shape_words((uint32_t)head), place = tw_words_place(head);

		if (TW_RB_HEAD_KIND(head) == TW_EVENT_STACK) {
			put_stack(&w, record, head, words);
			words = 0;
		}
		for (uint32_t j = 0; j < words; j++) {
			uint64_t *last = tw_words_last(tables, place, j),
				 word = tw_get64(record + TW_CODEC_HEAD_BYTES + 8 * j);

			put_bit(&w, word == *last);
			if (word != *last)
				w.miss = tw_leb128_put(w.miss, zigzag(word - *last));
			*last = word;
		}
		record += TW_RB_HEAD_BYTES(head);
	}
	tables->held[w.count >> 3] = (uint8_t)w.bits;
	held_bytes = (w.count + 7) / 8;
	miss_bytes = (size_t)(w.miss - tables->misses);
	tw_put32(out, (uint32_t)miss_bytes);
	memcpy(out + 4, tables->held, held_bytes);
	memcpy(out + 4 + held_bytes, tables->misses, miss_bytes);
	return out + 4 + held_bytes + miss_bytes;
}

/* ---- decoding ---- */

struct words_in {
	struct tw_words_tables *tables;
	uint8_t *raw;
	const uint8_t *held;
	const uint8_t *miss; /* NULL: the input is damaged */
	const uint8_t *miss_end;
	uint32_t count; /* of bits */
	uint32_t stacks;
	uint32_t stack;
};

static inline bool get_bit(struct words_in *r)
{
	uint32_t at = r->count++;

	return r->held[at >> 3] >> (at & 7) & 1;
}

static bool get_new_stack(struct words_in *r, uint8_t *record, uint32_t words)
{
	const uint8_t *before = r->stacks ? r->raw + r->tables->stacks[r->stacks] : NULL;
	uint64_t difference;

	for (uint32_t i = 0; i < words; i++) {
		r->miss = tw_leb128_get(r->miss, r->miss_end, &difference);
		if (!r->miss)
			return false;
		tw_put64(record + TW_CODEC_HEAD_BYTES + 8 * (words - 1 - i),
			 word_before(before, i) + tw_unzigzag(difference));
	}
	r->tables->stacks[++r->stacks] = (uint32_t)(record - r->raw);
	return true;
}

static bool get_stack(struct words_in *r, uint8_t *record, uint64_t head, uint32_t words)
{
	uint16_t *next = next_stack_of(r->tables, head, r->stack);
	uint64_t number = *next;
	const uint8_t *other;

	if (!get_bit(r)) {
		r->miss = tw_leb128_get(r->miss, r->miss_end, &number);
		if (!r->miss || number > r->stacks || (!number && !get_new_stack(r, record, words)))
			return false;
		number = number ? number : r->stacks;
	} else if (!number) {
		return false;
	}
	other = r->raw + r->tables->stacks[number];
	if (tw_shape_words((uint32_t)tw_record_head(other)) != words)
		return false;
	if (other != record)
		memcpy(record + TW_CODEC_HEAD_BYTES, other + TW_CODEC_HEAD_BYTES, 8 * words);
	*next = (uint16_t)number;
	r->stack = (uint32_t)number;
	return true;
}

static uint32_t count_bits(const struct tw_codec_output *out, bool is_old)
{
	uint32_t count = 0;

	for (uint32_t at = 0; at < out->raw_bytes; at += TW_RB_HEAD_BYTES(tw_record_head(out->raw + at))) {
		uint64_t head = tw_record_head(out->raw + at);

		count += !is_old && TW_RB_HEAD_KIND(head) == TW_EVENT_STACK ? 1 : tw_shape_words((uint32_t)head);
	}
	return count;
}

static bool get_words(struct words_in *r, bool is_old, uint8_t *record, uint64_t head)
{
	uint32_t words = tw_shape_words((uint32_t)head), place = is_old ? (uint32_t)(head >> 32) : tw_words_place(head);
	uint64_t difference;

	if (TW_RB_HEAD_KIND(head) == TW_EVENT_STACK && !is_old)
		return get_stack(r, record, head, words);
	for (uint32_t j = 0; j < words; j++) {
		uint64_t *last = tw_words_last(r->tables, place, j);

		if (!get_bit(r)) {
			r->miss = tw_leb128_get(r->miss, r->miss_end, &difference);
			if (!r->miss)
				return false;
			*last += tw_unzigzag(difference);
		}
		tw_put64(record + TW_CODEC_HEAD_BYTES + 8 * j, *last);
	}
	return true;
}

bool tw_words_begin(struct tw_words_in *words, struct tw_words_tables *tables, const uint8_t *in, const uint8_t *end)
{
	uint64_t miss_bytes;

	if (end - in < 4)
		return false;
	miss_bytes = tw_get32(in);
	if ((uint64_t)(end - in - 4) < miss_bytes || (uint64_t)(end - in - 4) - miss_bytes > TW_WORDS_MAX / 8)
		return false;
	*words = (struct tw_words_in){.tables = tables, .held = in + 4, .miss = end - miss_bytes, .miss_end = end};
	words->count_max = (uint32_t)(words->miss - words->held) * 8;
	clear(tables);
	return true;
}

bool tw_words_are_done(const struct tw_words_in *words)
{
	return words->miss == words->miss_end && (words->count + 7) / 8 == words->count_max / 8;
}

const uint8_t *tw_words_get(struct tw_words_tables *tables, const uint8_t *in, const uint8_t *end, bool is_old,
			    const struct tw_codec_output *out)
{
	struct words_in r = {.tables = tables, .raw = out->raw};
	uint64_t held_bytes = (count_bits(out, is_old) + UINT64_C(7)) / 8, miss_bytes;

	if (end - in < 4)
		return NULL;
	miss_bytes = tw_get32(in);
	r.held = in + 4;
	if ((uint64_t)(end - r.held) < held_bytes + miss_bytes)
		return NULL;
	r.miss = r.held + held_bytes;
	r.miss_end = r.miss + miss_bytes;
	clear(tables);
	for (uint32_t at = 0; at < out->raw_bytes;) {
		uint64_t head = tw_record_head(out->raw + at);

		if (!get_words(&r, is_old, out->raw + at, head))
			return NULL;
		at += TW_RB_HEAD_BYTES(head);
	}
	return r.miss == r.miss_end ? r.miss : NULL;
}
