/* SPDX-License-Identifier: Apache-2.0 */
/* scan.h - what the scan and the merge both need to know about blocks and records. */
#ifndef TW_PIPELINE_SCAN_H
#define TW_PIPELINE_SCAN_H

#include "pipeline/format/event.h"
#include "pipeline/reader/reader.h"

/* May the block hold something of the time that the filter names? */
bool tw_scan_wants_block(const struct tw_capture *capture, const struct tw_capture_filter *filter,
			 const struct tw_block_header *header);

/* By stream: does the filter want it?  Gives memory to free(); NULL without memory. */
bool *tw_scan_wanted_streams(const struct tw_capture *capture, const struct tw_capture_filter *filter);

/* By how much a sound record moves the sequence number. */
static inline uint64_t tw_scan_sequence_step(const uint8_t *record)
{
	uint64_t step = 0;

	if (TW_RB_HEAD_KIND(tw_record_head(record)) != TW_EVENT_LOSS)
		return 1;
	for (unsigned cause = 0; cause < TW_FORMAT_CAUSES; cause++)
		step += tw_get64(record + TW_CODEC_HEAD_BYTES + 8 + 8 * cause);
	return step;
}

/* Where to begin in a block: behind the records that an earlier block has held. */
struct tw_scan_start {
	const uint8_t *first;
	uint64_t sequence;
	uint64_t run_seq;
	uint32_t records; /* from the first on */
	uint32_t tracee_id;
};
struct tw_scan_start tw_scan_start(const struct tw_source_block *block, const uint8_t *raw);

#endif
