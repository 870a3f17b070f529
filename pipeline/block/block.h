/* SPDX-License-Identifier: Apache-2.0 */
/*
 * block.h - one block: ring records -> codec -> LZ4 -> header and checksums, and back.
 *
 * Encoding depends on its input and the working memory only: several blocks may be encoded at once, each with a
 * working memory of its own.
 *
 * Threads  one at a time for each working memory.
 * Limits   TW_BLOCK_RAW_BYTES_MAX, TW_BLOCK_STORED_BYTES_MAX.
 */
#ifndef TW_PIPELINE_BLOCK_H
#define TW_PIPELINE_BLOCK_H

#include "pipeline/codec/codec.h"
#include "pipeline/format/format.h"

/* ---- encoding ---- */

struct tw_block_encoder;

/* NULL: no memory. */
struct tw_block_encoder *tw_block_encoder_create(void);
void tw_block_encoder_destroy(struct tw_block_encoder *encoder);

/*
 * tw_block_encode_events - make a block of ring records.
 *
 * @header	in: origin (thread, session, scheduler, lease, positions, clock, flags), and the state before the block:
 *		tracee_id, run_seq, first_sequence, lost.
 *		out: everything; lost and end_sequence after the block.
 * @raw		borrows: copied at once, so another process may write to the memory.
 * @raw_bytes	1 .. TW_BLOCK_RAW_BYTES_MAX.
 * @stored	lends: header->stored_bytes to write after the header, until the next call.
 *
 * Returns 0, or TW_EFORMAT if the records are not valid.
 */
int tw_block_encode_events(struct tw_block_encoder *encoder, struct tw_block_header *header, const void *raw,
			   uint32_t raw_bytes, const uint8_t **stored);

/* The same for records in memory that nobody else writes, of which TW_COLUMN_SLACK_BYTES behind them may be read. */
int tw_block_encode_copied(struct tw_block_encoder *encoder, struct tw_block_header *header, const uint8_t *raw,
			   uint32_t raw_bytes, const uint8_t **stored);

/* The same for bytes that are not records (definitions, index): 0 .. TW_BLOCK_STORED_BYTES_MAX of them. */
void tw_block_encode_bytes(struct tw_block_encoder *encoder, struct tw_block_header *header, const void *bytes,
			   uint32_t count, const uint8_t **stored);

/*
 * tw_block_encode_definitions - the same for whole definition records with padding of zeros.
 *
 * At most TW_BLOCK_RAW_BYTES_MAX of them are stored in columns, more as they are.
 */
void tw_block_encode_definitions(struct tw_block_encoder *encoder, struct tw_block_header *header, const void *bytes,
				 uint32_t count, const uint8_t **stored);

/* The tracee and the run after the last block that this memory encoded. */
struct tw_block_tracee {
	uint32_t tracee_id;
	uint64_t run_seq;
};
struct tw_block_tracee tw_block_encoder_tracee(const struct tw_block_encoder *encoder);

/* ---- decoding ---- */

/* Is this the header of a block that this version can read?  0, TW_EFORMAT or TW_EVERSION. */
int tw_block_header_check(const struct tw_block_header *header);

/* The checksum for the header. */
uint64_t tw_block_header_checksum(const struct tw_block_header *header);

struct tw_block_decoder;

struct tw_block_decoder *tw_block_decoder_create(void);
void tw_block_decoder_destroy(struct tw_block_decoder *decoder);

/* The buffer for stored bytes, large enough for any block. */
uint8_t *tw_block_decoder_input(struct tw_block_decoder *decoder);

/*
 * tw_block_decode_events - the ring records of the block in tw_block_decoder_input().
 *
 * @header	has passed tw_block_header_check().
 * @raw		holds header->raw_bytes and TW_COLUMN_SLACK_BYTES.
 *
 * Returns 0 or TW_EFORMAT; on 0 every record at raw is valid.
 */
int tw_block_decode_events(struct tw_block_decoder *decoder, const struct tw_block_header *header, uint8_t *raw);

/* Are the stored bytes in tw_block_decoder_input() those of the block? 0 or TW_EFORMAT. */
int tw_block_decode_check(const struct tw_block_decoder *decoder, const struct tw_block_header *header);

/* The bytes of any other block but definitions: @bytes is lent until the next call, header->encoded_bytes of them. */
int tw_block_decode_bytes(struct tw_block_decoder *decoder, const struct tw_block_header *header,
			  const uint8_t **bytes);

/* The records of a block of definitions: @bytes is lent until the next call, *@count of them. */
int tw_block_decode_definitions(struct tw_block_decoder *decoder, const struct tw_block_header *header,
				const uint8_t **bytes, uint32_t *count);

/* ---- block_lz4.c ---- */

/* The space needed to pack this many bytes. */
#define TW_LZ4_BOUND(bytes) ((bytes) + (bytes) / 255 + 16)

size_t tw_lz4_state_bytes(void);
/* Returns the packed bytes, or 0 if they do not fit into `capacity` bytes. */
uint32_t tw_lz4_pack(void *state, const uint8_t *from, uint32_t bytes, uint8_t *to, uint32_t capacity);
/* Produces exactly `bytes`; false if the input is damaged. */
bool tw_lz4_unpack(const uint8_t *from, uint32_t packed_bytes, uint8_t *to, uint32_t bytes);

#endif
