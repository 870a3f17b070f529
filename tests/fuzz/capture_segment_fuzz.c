/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal: whatever a segment holds, even with correct checksums, it is read or refused, in bounded time and memory.
 *
 * Method: the bytes are a segment; the first byte selects what gets correct checksums: nothing, the header, or
 * consecutive blocks.  Then everything is read: by scan, merged, by time, in part.
 */
#include "capture_fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static void seal(uint8_t *segment, size_t bytes)
{
	struct tw_segment_header header;
	size_t at = sizeof(header);

	memcpy(&header, segment, sizeof(header));
	tw_segment_header_seal(&header, 1);
	memcpy(segment, &header, sizeof(header));
	while (bytes - at >= sizeof(struct tw_block_header)) {
		struct tw_block_header block;

		fuzz_seal_block(segment + at, bytes - at);
		memcpy(&block, segment + at, sizeof(block));
		if (tw_block_file_bytes(&block) > bytes - at)
			break;
		at += tw_block_file_bytes(&block);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	static uint8_t segment[1 << 20];

	if (bytes < 1 || bytes > sizeof(segment))
		return 0;
	bytes--;
	memcpy(segment, data + 1, bytes);
	if (bytes >= sizeof(struct tw_segment_header) && data[0] % 4)
		seal(segment, data[0] % 4 == 1 ? sizeof(struct tw_segment_header) : bytes);
	fuzz_write(segment, bytes);
	fuzz_read();
	return 0;
}
