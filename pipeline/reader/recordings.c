/* SPDX-License-Identifier: Apache-2.0 */
/*
 * recordings.c - segments of several recordings in one folder.
 *
 * Images, leases and segments are told apart by the capture id.  Times are compared, so all must have one clock: those of one boot do, and
 * those of a merged capture, which has one id.
 */
#include "base/error.h"
#include "base/grow.h"
#include "pipeline/reader/reader.h"

#include <stdlib.h>

int tw_source_tell(struct tw_capture *capture, uint64_t capture_id, uint32_t cause, uint64_t count)
{
	struct tw_source_report *recording = NULL;

	for (uint32_t i = capture->recording_count; i-- > 0 && !recording;) {
		if (capture->recordings[i].capture_id == capture_id)
			recording = &capture->recordings[i];
	}
	if (!recording) {
		if (!tw_grow_one(capture->recordings, capture->recording_count))
			return TW_ENOMEM;
		recording = &capture->recordings[capture->recording_count++];
		*recording = (struct tw_source_report){.capture_id = capture_id};
	}
	if (cause < TW_ACCOUNT_CAUSES && count > recording->reported[cause])
		recording->reported[cause] = count;
	return 0;
}

void tw_source_sum_reports(struct tw_capture *capture)
{
	bool is_one = capture->recording_count == 1;

	for (uint32_t i = 0; i < capture->recording_count; i++) {
		for (uint32_t cause = 0; cause < TW_ACCOUNT_CAUSES; cause++) {
			bool is_sum = cause != TW_ACCOUNT_ENDING && cause != TW_ACCOUNT_STOPPED;

			if (is_sum || is_one)
				capture->reported[cause] += capture->recordings[i].reported[cause];
		}
	}
}

static bool has_same_clock(const struct tw_segment_header *a, const struct tw_segment_header *b)
{
	return a->capture_id == b->capture_id ||
	       (a->clock_source == b->clock_source && memcmp(a->boot_id, b->boot_id, sizeof a->boot_id) == 0);
}

/* The clock that most segments have, by Boyer and Moore's vote; only segments that were renamed may be of several. */
void tw_source_choose_clock(struct tw_capture *capture)
{
	uint32_t votes = 0;

	for (uint32_t i = 0; capture->is_piece && i < capture->file_count; i++) {
		struct tw_segment_file file;

		if (tw_segment_open(capture->directory_fd, capture->files[i].name, &file))
			continue;
		tw_segment_file_close(&file);
		if (!votes)
			capture->clock_of = file.header;
		votes += !votes || has_same_clock(&capture->clock_of, &file.header) ? 1 : UINT32_MAX;
	}
}

bool tw_source_is_foreign(const struct tw_capture *capture, const struct tw_segment_header *header)
{
	const struct tw_segment_header *first = capture->image_count ? &capture->images[0]->header : header;

	return !has_same_clock(capture->clock_of.magic ? &capture->clock_of : first, header);
}
