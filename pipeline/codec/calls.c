/* SPDX-License-Identifier: Apache-2.0 */
/*
 * calls.c - calls and returns, by predicting the next record.
 *
 *	u32 heads; u32 misses; u32 long delta bytes; u32 return shape; u64 first ticks
 *	head table in columns: shapes | ids, a pair for each 256
 *	bits: the prediction held | u16 misses | u8 differences of ticks | LEB128 long differences
 *	payload columns for each group of 256 records, as in values.c; or, where no record has more than one
 *	word, or there are stacks of callers, the words as in words.c
 *
 * The prediction is the record that last followed the same two events inside the same function. A symbol is an index
 * of the head table, from 1; symbol 0 is the return from the function on top of the stack, so that returns need no
 * table entries and are all predicted as one. Encoder and decoder keep the same state; predictions are compared by
 * heads, so two symbols may stand for the same head.
 */
#include "pipeline/codec/words.h"

#include <stdlib.h>

#define PREDICTIONS  (1u << 14)
#define BUCKETS	     (1u << 15)
#define HEADER_BYTES 24
#define LONG_DELTA   255

struct tw_calls_tables {
	uint16_t next[PREDICTIONS];
	uint16_t buckets[BUCKETS]; /* encoder: symbol of a head, 0: free */
	uint16_t misses[TW_CODEC_RECORDS_MAX];
	uint64_t heads[TW_CODEC_RECORDS_MAX + 1]; /* by symbol */
	int8_t moves[TW_CODEC_RECORDS_MAX + 1];	  /* of the stack, by symbol */
	uint8_t deltas[TW_CODEC_RECORDS_MAX];
	uint8_t held[TW_CODEC_RECORDS_MAX / 8 + 8];
	uint8_t long_deltas[TW_CODEC_RECORDS_MAX * TW_WORDS_LEB128_BYTES];
	struct tw_words_tables words;
};
_Static_assert(TW_CODEC_RECORDS_MAX < BUCKETS && TW_CODEC_RECORDS_MAX < UINT16_MAX, "every record may have its symbol");

struct calls_state {
	uint16_t stack[256];
	uint8_t depth;
	uint16_t last, before;
	uint32_t return_shape;
};

struct tw_calls_tables *tw_calls_tables_create(void)
{
	return calloc(1, sizeof(struct tw_calls_tables));
}

void tw_calls_tables_destroy(struct tw_calls_tables *tables)
{
	free(tables);
}

static inline uint32_t context_of(const struct calls_state *state)
{
	return (state->last * UINT32_C(0x9e3779b1) ^ state->before * UINT32_C(0x85ebca6b) ^
		state->stack[state->depth] * UINT32_C(0xc2b2ae35)) >>
	       18;
}

/* The change of the stack depth by a record with this head. */
static inline int8_t move_of(uint64_t head)
{
	unsigned kind = TW_RB_HEAD_KIND(head);

	return (int8_t)((kind == TW_EVENT_CALL) - (kind == TW_EVENT_RETURN_FROM || kind == TW_EVENT_EXCEPTION_FROM));
}

static inline uint64_t head_of(const struct tw_calls_tables *tables, const struct calls_state *state, uint16_t symbol)
{
	uint64_t entered = tables->heads[state->stack[state->depth]];
	uint64_t head = tables->heads[symbol];

	/* Both are read, so that the choice needs no branch: it would be unpredictable. */
	return symbol ? head : (entered & ~UINT64_C(0xffffffff)) | state->return_shape;
}

static inline void advance(struct calls_state *state, uint16_t symbol, int8_t move)
{
	/* Entries above the top are never read, so the symbol may always be stored there. */
	state->stack[(uint8_t)(state->depth + 1)] = symbol;
	state->depth = (uint8_t)(state->depth + move);
	state->before = state->last;
	state->last = symbol;
}

static void start(struct tw_calls_tables *tables, uint32_t return_shape)
{
	memset(tables->next, 0, sizeof tables->next);
	tables->heads[0] = 0;
	tables->moves[0] = move_of(return_shape);
}

/* ---- encoding ---- */

static uint16_t symbol_of(struct tw_calls_tables *tables, uint64_t head, uint32_t *head_count)
{
	uint32_t at = (uint32_t)(head * UINT64_C(0x9e3779b97f4a7c15) >> 49);
	uint16_t symbol;

	while ((symbol = tables->buckets[at & (BUCKETS - 1)]) != 0) {
		if (tables->heads[symbol] == head)
			return symbol;
		at++;
	}
	symbol = (uint16_t)++ * head_count;
	tables->buckets[at & (BUCKETS - 1)] = symbol;
	tables->heads[symbol] = head;
	tables->moves[symbol] = move_of(head);
	return symbol;
}

/* The shape of the first plain return, which symbol 0 stands for. */
static uint32_t find_return_shape(const struct tw_codec_input *in)
{
	for (uint32_t i = 0; i < in->shape_count && i < TW_CODEC_SHAPES_MAX; i++) {
		if (TW_RB_HEAD_KIND(in->shapes[i]) == TW_EVENT_RETURN_FROM)
			return in->shapes[i];
	}
	return (uint32_t)TW_RB_HEAD(TW_EVENT_RETURN_FROM, 0, TW_CODEC_HEAD_BYTES, 0);
}

struct calls_counts {
	uint32_t heads;
	uint32_t misses;
	uint32_t long_bytes;
};

static void predict(struct tw_calls_tables *tables, const struct tw_codec_input *in, uint32_t return_shape,
		    struct calls_counts *counts)
{
	struct calls_state state = {.return_shape =
					    return_shape}; /* no store below can be to it, so it is kept in registers */
	const uint8_t *record = in->raw;
	uint64_t ticks = tw_get64(record);
	uint8_t *long_at = tables->long_deltas;
	uint32_t misses = 0, bits = 0;

	for (uint32_t i = 0; i < in->records; i++) {
		uint64_t head = tw_record_head(record);
		uint64_t delta = tw_get64(record) - ticks;
		uint32_t context = context_of(&state);
		uint16_t symbol = tables->next[context];
		bool holds = head_of(tables, &state, symbol) == head;

		ticks += delta;
		tables->deltas[i] = (uint8_t)(delta < LONG_DELTA ? delta : LONG_DELTA);
		if (tw_unlikely(delta >= LONG_DELTA))
			long_at = tw_leb128_put(long_at, delta);
		if (tw_unlikely(!holds)) {
			symbol = head_of(tables, &state, 0) == head ? 0 : symbol_of(tables, head, &counts->heads);
			tables->misses[misses++] = symbol;
			tables->next[context] = symbol;
		}
		bits |= (uint32_t)holds << (i & 7);
		if ((i & 7) == 7) {
			tables->held[i >> 3] = (uint8_t)bits;
			bits = 0;
		}
		advance(&state, symbol, tables->moves[symbol]);
		record += TW_RB_HEAD_BYTES(head);
	}
	tables->held[in->records >> 3] = (uint8_t)bits;
	counts->misses = misses;
	counts->long_bytes = (uint32_t)(long_at - tables->long_deltas);
}

static uint8_t *put_heads(const struct tw_calls_tables *tables, uint32_t head_count, uint8_t *out)
{
	uint64_t column[TW_COLUMN_MAX];

	for (uint32_t first = 1; first <= head_count; first += TW_COLUMN_MAX) {
		uint32_t left = head_count - first + 1, count = left < TW_COLUMN_MAX ? left : TW_COLUMN_MAX;

		for (uint32_t i = 0; i < count; i++)
			column[i] = (uint32_t)tables->heads[first + i];
		out = tw_column_put(out, column, count);
		for (uint32_t i = 0; i < count; i++)
			column[i] = tables->heads[first + i] >> 32;
		out = tw_column_put(out, column, count);
	}
	return out;
}

/* Locates the next records and their payloads. */
static const uint8_t *gather(const uint8_t *record, uint32_t count, struct tw_codec_group *group)
{
	group->count = count;
	for (uint32_t i = 0; i < count; i++) {
		uint32_t shape = (uint32_t)tw_record_head(record);

		group->record[i] = record;
		group->words[i] = (uint8_t)tw_shape_words(shape);
		record += tw_shape_bytes(shape);
	}
	return record;
}

static uint8_t *put_bytes(uint8_t *out, const void *from, size_t bytes)
{
	memcpy(out, from, bytes);
	return out + bytes;
}

size_t tw_codec_calls_encode(struct tw_calls_tables *tables, const struct tw_codec_input *in, enum tw_block_codec codec,
			     uint8_t *out)
{
	struct tw_codec_group group = {.words_max = in->words_max};
	struct calls_counts counts = {0};
	const uint8_t *record = in->raw;
	uint8_t *to = out + HEADER_BYTES;
	uint32_t return_shape = find_return_shape(in);

	start(tables, return_shape);
	memset(tables->buckets, 0, sizeof tables->buckets);
	predict(tables, in, return_shape, &counts);
	tw_put32(out, counts.heads);
	tw_put32(out + 4, counts.misses);
	tw_put32(out + 8, counts.long_bytes);
	tw_put32(out + 12, return_shape);
	tw_put64(out + 16, tw_get64(in->raw));
	to = put_heads(tables, counts.heads, to);
	to = put_bytes(to, tables->held, (in->records + 7) / 8);
	to = put_bytes(to, tables->misses, counts.misses * sizeof tables->misses[0]);
	to = put_bytes(to, tables->deltas, in->records);
	to = put_bytes(to, tables->long_deltas, counts.long_bytes);
	if (codec == TW_CODEC_PLACES)
		return (size_t)(tw_words_put(&tables->words, in, to) - out);
	for (uint32_t left = in->words_max ? in->records : 0; left; left -= group.count) {
		record = gather(record, left < TW_COLUMN_MAX ? left : TW_COLUMN_MAX, &group);
		to = tw_payload_put(to, &group);
	}
	return (size_t)(to - out);
}

/* ---- decoding ---- */

struct calls_input {
	struct calls_counts counts;
	uint32_t return_shape;
	uint32_t words_max;
	bool has_stacks;
	uint64_t ticks;
	const uint8_t *held;
	const uint8_t *misses;
	const uint8_t *misses_end;
	const uint8_t *deltas;
	const uint8_t *longs;
	const uint8_t *longs_end;
};

static const uint8_t *get_heads(struct tw_calls_tables *tables, const uint8_t *in, const uint8_t *end,
				struct calls_input *input)
{
	uint64_t shapes[TW_COLUMN_MAX], ids[TW_COLUMN_MAX];

	for (uint32_t first = 1; first <= input->counts.heads; first += TW_COLUMN_MAX) {
		uint32_t left = input->counts.heads - first + 1, count = left < TW_COLUMN_MAX ? left : TW_COLUMN_MAX;

		in = tw_column_get(in, end, shapes, count);
		in = in ? tw_column_get(in, end, ids, count) : NULL;
		if (!in)
			return NULL;
		for (uint32_t i = 0; i < count; i++) {
			uint32_t words;

			if (shapes[i] > UINT32_MAX || ids[i] > UINT32_MAX || !tw_shape_is_sound((uint32_t)shapes[i]))
				return NULL;
			words = tw_shape_words((uint32_t)shapes[i]);
			if (words > input->words_max)
				input->words_max = words;
			input->has_stacks |= TW_RB_HEAD_KIND(shapes[i]) == TW_EVENT_STACK;
			tables->heads[first + i] = ids[i] << 32 | shapes[i];
			tables->moves[first + i] = move_of(shapes[i]);
		}
	}
	return in;
}

/*
 * Restores the heads and ticks of the records; with @words their words too, which is faster than a second loop: these loads wait for
 * nothing in this one. Returns false if they do not fit.
 */
static inline __attribute__((always_inline)) bool follow(struct tw_calls_tables *tables,
							 const struct calls_input *parts, struct tw_words_in *words,
							 const struct tw_codec_output *out)
{
	struct calls_input input = *parts; /* as state: in registers */
	struct calls_state state = {.return_shape = input.return_shape};
	struct tw_words_in next = words ? *words : (struct tw_words_in){0};
	uint8_t *to = out->raw, *to_end = out->raw + out->raw_bytes;
	uint64_t ticks = input.ticks;

	for (uint32_t i = 0; i < out->records; i++) {
		uint32_t context = context_of(&state);
		uint16_t symbol = tables->next[context];
		uint64_t delta = input.deltas[i], head;

		if (tw_unlikely(delta == LONG_DELTA)) {
			input.longs = tw_leb128_get(input.longs, input.longs_end, &delta);
			if (!input.longs)
				return false;
		}
		if (tw_unlikely(!(input.held[i >> 3] >> (i & 7) & 1))) {
			if (input.misses == input.misses_end)
				return false;
			memcpy(&symbol, input.misses, sizeof symbol);
			input.misses += sizeof symbol;
			if (symbol > input.counts.heads)
				return false;
			tables->next[context] = symbol;
		}
		head = head_of(tables, &state, symbol);
		if ((size_t)(to_end - to) < TW_RB_HEAD_BYTES(head))
			return false;
		ticks += delta;
		tw_put64(to, ticks);
		tw_put64(to + 8, head);
		if (!words)
			tw_record_clear_filling(to, (uint32_t)head);
		else if (!tw_words_next(&next, to, head))
			return false;
		to += TW_RB_HEAD_BYTES(head);
		advance(&state, symbol, tables->moves[symbol]);
	}
	if (words)
		*words = next;
	return to == to_end && input.misses == input.misses_end && input.longs == input.longs_end;
}

static bool follow_heads(struct tw_calls_tables *tables, const struct calls_input *input,
			 const struct tw_codec_output *out)
{
	return follow(tables, input, NULL, out);
}

static bool follow_with_words(struct tw_calls_tables *tables, const struct calls_input *input, const uint8_t *in,
			      const uint8_t *end, const struct tw_codec_output *out)
{
	struct tw_words_in words;

	return tw_words_begin(&words, &tables->words, in, end) && follow(tables, input, &words, out) &&
	       tw_words_are_done(&words);
}

static const uint8_t *get_parts(const uint8_t *in, const uint8_t *end, uint32_t records, struct calls_input *input)
{
	uint64_t held_bytes = (records + 7) / 8, miss_bytes = input->counts.misses * UINT64_C(2);

	if ((uint64_t)(end - in) < held_bytes + miss_bytes + records + input->counts.long_bytes)
		return NULL;
	input->held = in;
	input->misses = input->held + held_bytes;
	input->misses_end = input->misses + miss_bytes;
	input->deltas = input->misses_end;
	input->longs = input->deltas + records;
	input->longs_end = input->longs + input->counts.long_bytes;
	return input->longs_end;
}

bool tw_codec_calls_decode(struct tw_calls_tables *tables, const uint8_t *in, size_t bytes, enum tw_block_codec codec,
			   const struct tw_codec_output *out)
{
	const uint8_t *end = in + bytes, *record = out->raw;
	struct calls_input input = {0};
	struct tw_codec_group group;

	if (bytes < HEADER_BYTES)
		return false;
	input.counts = (struct calls_counts){tw_get32(in), tw_get32(in + 4), tw_get32(in + 8)};
	input.return_shape = tw_get32(in + 12);
	input.ticks = tw_get64(in + 16);
	if (input.counts.heads > TW_CODEC_RECORDS_MAX || !tw_shape_is_sound(input.return_shape))
		return false;
	input.words_max = tw_shape_words(input.return_shape);
	input.has_stacks = TW_RB_HEAD_KIND(input.return_shape) == TW_EVENT_STACK;
	start(tables, input.return_shape);
	in = get_heads(tables, in + HEADER_BYTES, end, &input);
	in = in ? get_parts(in, end, out->records, &input) : NULL;
	if (in && codec == TW_CODEC_PLACES && !input.has_stacks)
		return follow_with_words(tables, &input, in, end, out);
	if (!in || !follow_heads(tables, &input, out))
		return false;
	if (codec == TW_CODEC_PLACES)
		return tw_words_get(&tables->words, in, end, false, out) == end;
	if (codec == TW_CODEC_RETURNS)
		return input.words_max <= 1 && tw_words_get(&tables->words, in, end, true, out) == end;
	if (input.words_max > TW_CODEC_WORDS_MAX)
		return false;
	group.words_max = input.words_max;
	for (uint32_t left = input.words_max ? out->records : 0; left; left -= group.count) {
		record = gather(record, left < TW_COLUMN_MAX ? left : TW_COLUMN_MAX, &group);
		in = tw_payload_get(in, end, &group);
		if (!in)
			return false;
	}
	return in == end;
}
