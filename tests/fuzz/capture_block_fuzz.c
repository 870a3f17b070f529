/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal: whatever an unpacked block holds, decoding gives sound records or refuses; and a ring's contents come back bit
 * by bit.
 *
 * Method: the first byte selects a decoder, the next six give the sizes; or the bytes are records to encode.
 */
#include "base/assert.h"
#include "pipeline/block/block.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

enum { SPEC_BYTES = 7 };

static uint8_t raw[TW_BLOCK_RAW_BYTES_MAX + TW_COLUMN_SLACK_BYTES];
static uint8_t again[TW_BLOCK_RAW_BYTES_MAX + TW_COLUMN_SLACK_BYTES];

/* Walks over them as an index or a merge does. */
static void check_records(const struct tw_codec_output *out)
{
	uint32_t at = 0, records = 0;

	for (; at < out->raw_bytes; records++) {
		uint32_t shape = (uint32_t)tw_record_head(out->raw + at);

		TW_ASSERT(tw_shape_is_sound(shape));
		at += tw_shape_bytes(shape);
	}
	TW_ASSERT(at == out->raw_bytes && records == out->records);
}

static void round_trip(const uint8_t *data, uint32_t bytes)
{
	static struct tw_block_encoder *encoder;
	static struct tw_block_decoder *decoder;
	struct tw_block_header header = {0};
	const uint8_t *stored;

	if (!encoder) {
		encoder = tw_block_encoder_create();
		decoder = tw_block_decoder_create();
	}
	memcpy(raw, data, bytes);
	if (tw_block_encode_events(encoder, &header, raw, bytes, &stored))
		return;
	TW_ASSERT(tw_block_header_check(&header) == 0);
	memcpy(tw_block_decoder_input(decoder), stored, header.stored_bytes);
	TW_ASSERT(tw_block_decode_events(decoder, &header, again) == 0);
	for (uint32_t at = 0; at < bytes; at += TW_RB_HEAD_BYTES(tw_record_head(raw + at)))
		tw_record_clear_filling(raw + at, (uint32_t)tw_record_head(raw + at));
	TW_ASSERT(memcmp(raw, again, bytes) == 0);
}

static bool decode(unsigned which, const uint8_t *in, size_t bytes, const struct tw_codec_output *out)
{
	static struct tw_calls_tables *tables;

	if (!tables)
		tables = tw_calls_tables_create();
	switch (which) {
	case 0: return tw_codec_generic_decode(in, bytes, out);
	case 1: return tw_codec_values_decode(in, bytes, out);
	case 2: return tw_codec_calls_decode(tables, in, bytes, TW_CODEC_RETURNS, out);
	case 3: return tw_codec_calls_decode(tables, in, bytes, TW_CODEC_CALLS, out);
	default: return tw_codec_calls_decode(tables, in, bytes, TW_CODEC_PLACES, out);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	struct tw_codec_output out = {.raw = raw};
	uint8_t *in;

	if (bytes < SPEC_BYTES || bytes > TW_BLOCK_RAW_BYTES_MAX)
		return 0;
	if (data[0] % 7 >= 5) {
		round_trip(data + 1, (uint32_t)bytes - 1);
		return 0;
	}
	out.raw_bytes = (tw_get32(data + 1) & 0x3fff) * 16;
	out.records = (uint32_t)data[5] << 8 | data[6];
	if (!out.records || (uint64_t)out.records * 16 > out.raw_bytes)
		return 0;
	/* Exactly the bytes that may be read. */
	in = malloc(bytes - SPEC_BYTES + TW_COLUMN_SLACK_BYTES);
	TW_ASSERT(in);
	memcpy(in, data + SPEC_BYTES, bytes - SPEC_BYTES);
	memset(in + bytes - SPEC_BYTES, 0xee, TW_COLUMN_SLACK_BYTES);
	if (decode(data[0] % 7, in, bytes - SPEC_BYTES, &out))
		check_records(&out);
	free(in);
	return 0;
}
