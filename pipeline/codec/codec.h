/* SPDX-License-Identifier: Apache-2.0 */
/*
 * codec.h - ring records of one block <-> fewer bytes, before packing.
 *
 * Every codec restores every record bit by bit, except the padding after an odd number of payload words, which reads
 * as 0. Encoders trust their input: block.c has surveyed it. Decoders trust nothing: they either write raw_bytes of
 * whole, valid records or return false.
 *
 * Buffers  TW_COLUMN_SLACK_BYTES after each may be accessed.
 */
#ifndef TW_PIPELINE_CODEC_H
#define TW_PIPELINE_CODEC_H

#include "pipeline/codec/columns.h"
#include "pipeline/format/event.h"
#include "pipeline/format/format.h"

#include <stdbool.h>

#define TW_CODEC_SHAPES_MAX 16
/* The most payload words that the codecs with columns handle. */
#define TW_CODEC_WORDS_MAX 16
/* The smallest record. */
#define TW_CODEC_HEAD_BYTES  16
#define TW_CODEC_RECORDS_MAX (TW_BLOCK_RAW_BYTES_MAX / TW_CODEC_HEAD_BYTES)

/* The results of block.c's survey of a stretch of records. */
struct tw_codec_input {
	const uint8_t *raw;
	uint32_t raw_bytes;
	uint32_t records;
	uint32_t shape_count; /* TW_CODEC_SHAPES_MAX + 1: too many */
	uint32_t words_max;   /* of any record's payload but stacks', without padding */
	bool has_stacks;
	uint32_t shapes[TW_CODEC_SHAPES_MAX]; /* low 32 bits of heads, in the order of appearance */
};

/* The buffer that a decoder fills. */
struct tw_codec_output {
	uint8_t *raw;
	uint32_t raw_bytes;
	uint32_t records;
};

/* The low 32 bits of a head: all of it but the id. */
static inline uint32_t tw_shape_bytes(uint32_t shape)
{
	return shape >> 16;
}

static inline uint32_t tw_shape_words(uint32_t shape)
{
	uint32_t words = (tw_shape_bytes(shape) - TW_CODEC_HEAD_BYTES) / 8;

	return words && (shape >> 8 & TW_EVENT_FLAG_HALF) ? words - 1 : words;
}

/*
 * Is the size one that rings use, and do losses, switches and events with CPU time have the payload that they always
 * have?
 */
static inline bool tw_shape_is_sound(uint32_t shape)
{
	uint32_t bytes = tw_shape_bytes(shape), kind = TW_RB_HEAD_KIND(shape);

	if (bytes < TW_CODEC_HEAD_BYTES || bytes > TW_RB_RECORD_BYTES_MAX || bytes % TW_RB_ALIGN_BYTES)
		return false;
	if (tw_likely(kind > TW_EVENT_SWITCH && kind < TW_EVENT_CPU_TIME))
		return true;
	if (kind >= TW_EVENT_CPU_TIME)
		return kind >= (TW_EVENT_CPU_TIME | TW_EVENT_CALL) && tw_shape_words(shape);
	return kind != TW_EVENT_PAD && tw_shape_words(shape) >= (kind == TW_EVENT_LOSS ? 1 + TW_RB_CAUSES : 1);
}

static inline uint64_t tw_record_head(const uint8_t *record)
{
	return tw_get64(record + 8);
}

/* The head of the next of these records, valid or not, and *at behind it; 0: there is none. */
static inline uint64_t tw_record_next(const uint8_t *raw, uint32_t bytes, uint32_t *at)
{
	uint64_t head = bytes - *at >= TW_CODEC_HEAD_BYTES ? tw_record_head(raw + *at) : 0;
	uint32_t step = TW_RB_HEAD_BYTES(head);

	if (!step || step > bytes - *at)
		return 0;
	*at += step;
	return head;
}

/* Clears the padding of a record, if it has any. */
static inline void tw_record_clear_filling(uint8_t *record, uint32_t shape)
{
	if (shape >> 8 & TW_EVENT_FLAG_HALF && tw_shape_bytes(shape) > TW_CODEC_HEAD_BYTES)
		tw_put64(record + tw_shape_bytes(shape) - 8, 0);
}

/* Up to TW_COLUMN_MAX consecutive records, located once and used for each column. */
struct tw_codec_group {
	uint32_t count;
	uint32_t words_max;
	const uint8_t *record[TW_COLUMN_MAX];
	uint8_t words[TW_COLUMN_MAX]; /* at most TW_CODEC_WORDS_MAX; not for generic.c */
};

/* Writes the payload columns of a group, for j < words_max; returns the end. */
uint8_t *tw_payload_put(uint8_t *out, const struct tw_codec_group *group);
/* Reads them back into the records, whose heads are already written. */
const uint8_t *tw_payload_get(const uint8_t *in, const uint8_t *end, const struct tw_codec_group *group);

size_t tw_codec_generic_encode(const struct tw_codec_input *in, uint8_t *out);
bool tw_codec_generic_decode(const uint8_t *in, size_t bytes, const struct tw_codec_output *out);

/* shape_count and words_max are within bounds. */
size_t tw_codec_values_encode(const struct tw_codec_input *in, uint8_t *out);
bool tw_codec_values_decode(const uint8_t *in, size_t bytes, const struct tw_codec_output *out);

/* Tables of the calls codec, for one block at a time. */
struct tw_calls_tables;
struct tw_calls_tables *tw_calls_tables_create(void);
void tw_calls_tables_destroy(struct tw_calls_tables *tables);

/* words_max is within bounds. @codec: TW_CODEC_CALLS, without stacks, or TW_CODEC_PLACES. */
size_t tw_codec_calls_encode(struct tw_calls_tables *tables, const struct tw_codec_input *in, enum tw_block_codec codec,
			     uint8_t *out);
/* @codec: TW_CODEC_CALLS, TW_CODEC_RETURNS or TW_CODEC_PLACES. */
bool tw_codec_calls_decode(struct tw_calls_tables *tables, const uint8_t *in, size_t bytes, enum tw_block_codec codec,
			   const struct tw_codec_output *out);

/* The most that an encoder writes, for any input of TW_BLOCK_RAW_BYTES_MAX. */
#define TW_CODEC_ENCODED_BYTES_MAX (TW_BLOCK_RAW_BYTES_MAX * 2)

#endif
