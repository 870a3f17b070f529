/* SPDX-License-Identifier: Apache-2.0 */
/* scan.h - helpers for blocks and records that the scan and the merge share. */
#ifndef TW_PIPELINE_SCAN_H
#define TW_PIPELINE_SCAN_H

#include "pipeline/format/event.h"
#include "pipeline/reader/reader.h"

/* May the block hold events of the time and the kinds that the filter selects? */
bool tw_scan_wants_block(const struct tw_capture *capture, const struct tw_capture_filter *filter,
			 const struct tw_block_header *header);

/* By stream: does the filter select it? The caller frees the array; NULL: no memory. */
bool *tw_scan_wanted_streams(const struct tw_capture *capture, const struct tw_capture_filter *filter);

/* The increase of the sequence number by a valid record. */
static inline uint64_t tw_scan_sequence_step(const uint8_t *record)
{
	uint64_t step = 0;

	if (TW_RB_HEAD_KIND(tw_record_head(record)) != TW_EVENT_LOSS)
		return 1;
	for (unsigned cause = 0; cause < TW_FORMAT_CAUSES; cause++)
		step += tw_get64(record + TW_CODEC_HEAD_BYTES + 8 + 8 * cause);
	return step;
}

/* The start of reading in a block: after the records that an earlier block has. */
struct tw_scan_start {
	const uint8_t *first;
	uint64_t sequence;
	uint64_t run_seq;
	uint32_t records; /* from `first` on */
	uint32_t tracee_id;
};
struct tw_scan_start tw_scan_start(const struct tw_source_block *block, const uint8_t *raw);

#endif
