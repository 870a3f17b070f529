/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal:   whatever is stored as definitions in columns, decoding gives whole records or refuses; and whole records come
 *         back byte by byte.
 * Method: the first byte picks the direction.
 */
#include "base/assert.h"
#include "pipeline/codec/codec.h"
#include "pipeline/codec/definitions.h"
#include "pipeline/format/format.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static uint8_t out[TW_BLOCK_RAW_BYTES_MAX];
static uint8_t encoded[TW_CODEC_ENCODED_BYTES_MAX + TW_COLUMN_SLACK_BYTES];

static void decode(const uint8_t *data, size_t bytes)
{
	/* Exactly the bytes that may be read. */
	uint8_t *in = malloc(bytes + TW_COLUMN_SLACK_BYTES);
	size_t count;

	TW_ASSERT(in);
	memcpy(in, data, bytes);
	memset(in + bytes, 0xee, TW_COLUMN_SLACK_BYTES);
	count = tw_codec_definitions_decode(in, bytes, out);
	for (size_t at = 0; at < count;) {
		struct tw_definition_head head;

		memcpy(&head, out + at, sizeof(head));
		at += (sizeof(head) + head.payload_bytes + 7) & ~(size_t)7;
		TW_ASSERT(at <= count);
	}
	free(in);
}

/* The encoder gets records with padding of zeros. */
static size_t clear_padding(uint8_t *records, size_t bytes)
{
	size_t at = 0;

	while (bytes - at >= sizeof(struct tw_definition_head)) {
		struct tw_definition_head head;
		size_t used, whole;

		memcpy(&head, records + at, sizeof(head));
		used = sizeof(head) + head.payload_bytes;
		whole = (used + 7) & ~(size_t)7;
		if (whole > bytes - at)
			break;
		memset(records + at + used, 0, whole - used);
		at += whole;
	}
	return at;
}

static void round_trip(const uint8_t *data, size_t bytes)
{
	static uint8_t records[TW_BLOCK_RAW_BYTES_MAX];
	size_t count, encoded_bytes;

	memcpy(records, data, bytes);
	count = clear_padding(records, bytes);
	encoded_bytes = tw_codec_definitions_encode(records, count, encoded);
	TW_ASSERT(encoded_bytes <= TW_CODEC_ENCODED_BYTES_MAX);
	TW_ASSERT(!encoded_bytes == !count);
	if (!count)
		return;
	TW_ASSERT(tw_codec_definitions_decode(encoded, encoded_bytes, out) == count);
	TW_ASSERT(memcmp(records, out, count) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	if (!bytes || bytes > TW_BLOCK_RAW_BYTES_MAX)
		return 0;
	if (data[0] & 1)
		round_trip(data + 1, bytes - 1);
	else
		decode(data + 1, bytes - 1);
	return 0;
}
