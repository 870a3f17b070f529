/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal: whatever an index contains, even with correct checksums, nothing outside the segment is read, and no event is
 * given that is not in it.
 *
 * Method: the bytes are the payload of an index after one real block; the first byte selects entries whose headers get
 * correct checksums.
 */
#include "capture_fuzz.h"
#include "pipeline/format/event.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static uint8_t segment[1 << 20];
static size_t blocks_end;

static void put_first_block(void)
{
	struct tw_block_encoder *encoder = tw_block_encoder_create();
	struct tw_block_header header = {.ring_lease = 1, .end_pos = 640};
	struct tw_segment_header start = {.image_lease = 1};
	uint64_t raw[80];
	const uint8_t *stored;

	for (uint64_t i = 0; i < 40; i++) {
		raw[2 * i] = 1000 + i;
		raw[2 * i + 1] = TW_RB_HEAD(TW_EVENT_CALL, 0, 16, 3);
	}
	TW_ASSERT(encoder && tw_block_encode_events(encoder, &header, raw, sizeof(raw), &stored) == 0);
	tw_segment_header_seal(&start, 1);
	memcpy(segment, &start, sizeof(start));
	memcpy(segment + sizeof(start), &header, sizeof(header));
	memcpy(segment + sizeof(start) + sizeof(header), stored, header.stored_bytes);
	blocks_end = sizeof(start) + tw_block_file_bytes(&header);
	tw_block_encoder_destroy(encoder);
}

static void seal_entries(uint8_t *payload, size_t bytes)
{
	size_t at = sizeof(struct tw_segment_totals);

	for (; at + sizeof(struct tw_index_entry) <= bytes; at += sizeof(struct tw_index_entry)) {
		struct tw_index_entry entry;

		memcpy(&entry, payload + at, sizeof(entry));
		entry.header.magic = TW_BLOCK_MAGIC;
		entry.header.version = TW_FORMAT_VERSION;
		entry.header.header_bytes = sizeof(entry.header);
		entry.header.header_checksum = tw_block_header_checksum(&entry.header);
		memcpy(payload + at, &entry, sizeof(entry));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	struct tw_segment_trailer trailer = {.magic = TW_TRAILER_MAGIC};
	struct tw_block_header header = {.type = TW_BLOCK_INDEX};
	uint8_t *at;

	if (!blocks_end)
		put_first_block();
	if (bytes < 2 || bytes > sizeof(segment) / 2)
		return 0;
	at = segment + blocks_end;
	header.stored_bytes = header.encoded_bytes = (uint32_t)bytes - 2;
	header.end_pos = data[1];
	memset(at, 0, tw_block_file_bytes(&header) + sizeof(trailer));
	memcpy(at + sizeof(header), data + 2, bytes - 2);
	if (data[0] & 1)
		seal_entries(at + sizeof(header), bytes - 2);
	memcpy(at, &header, sizeof(header));
	fuzz_seal_block(at, sizeof(header) + bytes - 2);
	trailer.index_offset = blocks_end;
	trailer.segment_bytes = blocks_end + tw_block_file_bytes(&header) + sizeof(trailer);
	trailer.checksum = tw_checksum64(&trailer, offsetof(struct tw_segment_trailer, checksum));
	memcpy(at + tw_block_file_bytes(&header), &trailer, sizeof(trailer));
	fuzz_write(segment, trailer.segment_bytes);
	fuzz_read();
	return 0;
}
