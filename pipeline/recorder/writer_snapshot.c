/* SPDX-License-Identifier: Apache-2.0 */
/*
 * writer_snapshot.c - rings that overwrite: stores what is in them and not in the files.
 *
 * Such a ring is written to while it is copied, and read again from the same position by the next snapshot. The last
 * record stored marks where the new ones begin; the ring's own count of overwritten events, less those that were
 * stored, is the loss.
 */
#include "base/error.h"
#include "pipeline/recorder/writer.h"

#include <stdlib.h>

/* The start of the records that the files lack: after the last one stored, if it is still there. */
static uint64_t skip_stored(const struct tw_writer_ring *ring, const uint8_t *raw, uint64_t bytes, uint64_t *skipped)
{
	uint64_t at = 0, behind = 0, events = 0;

	*skipped = 0;
	if (!ring->last_head)
		return 0;
	while (at < bytes) {
		uint64_t head = tw_record_head(raw + at);

		events += tw_writer_is_event(head);
		if (tw_get64(raw + at) == ring->last_ticks && head == ring->last_head) {
			behind = at + TW_RB_HEAD_BYTES(head);
			*skipped = events;
		}
		at += TW_RB_HEAD_BYTES(head);
	}
	return behind;
}

/* The bytes of whole records that fit one block; notes the last of them. */
static uint32_t cut_block(struct tw_writer_ring *ring, const uint8_t *raw, uint64_t bytes)
{
	uint64_t at = 0;

	while (at < bytes) {
		uint64_t head = tw_record_head(raw + at);

		if (at + TW_RB_HEAD_BYTES(head) > TW_BLOCK_RAW_BYTES_MAX)
			break;
		ring->last_ticks = tw_get64(raw + at);
		ring->last_head = head;
		at += TW_RB_HEAD_BYTES(head);
	}
	return (uint32_t)at;
}

/*
 * Reports records that were overwritten and never stored: all that are gone, less those in the files; and those that
 * are given up unstored now.
 */
static int tell_overwritten(struct tw_writer *writer, uint32_t index, uint64_t skipped, uint64_t given_up,
			    uint64_t next_ticks)
{
	const struct tw_rb_shared *shared = tw_rs_ring(&writer->rs, index);
	struct tw_writer_ring *ring = &writer->rings[index];
	uint64_t known[TW_RB_CAUSES];
	struct tw_rb_loss_record loss;
	struct tw_block_header header;

	tw_writer_check_loss(writer, index);
	memcpy(known, ring->at.told, sizeof known);
	known[TW_RB_LOST_FULL] += ring->at.stored_events - skipped;
	if (!tw_rb_untold_loss(shared, known, &loss) && !given_up)
		return 0;
	loss.lost[TW_RB_LOST_FULL] += given_up;
	if (!loss.record.ticks)
		loss.record.ticks = loss.first_ticks = ring->first_ticks;
	/* The loss precedes all records that are left, including losses that handlers counted. */
	if (next_ticks && loss.record.ticks > next_ticks)
		loss.record.ticks = next_ticks;
	if (loss.first_ticks > loss.record.ticks)
		loss.first_ticks = loss.record.ticks;
	tw_writer_start_header(ring, &header);
	header.flags = TW_BLOCK_FLAG_SNAPSHOT;
	header.first_pos = header.end_pos = ring->at.pos;
	return tw_writer_store_records(writer, index, &header, &loss, sizeof loss);
}

/* If switch records were overwritten, the tracee of the first events is not known. */
static void forget_tracee(struct tw_writer_ring *ring, const uint8_t *raw, uint64_t bytes)
{
	for (uint64_t at = 0; at < bytes; at += TW_RB_HEAD_BYTES(tw_record_head(raw + at))) {
		if (TW_RB_HEAD_KIND(tw_record_head(raw + at)) == TW_EVENT_SWITCH) {
			ring->at.tracee_id = 0;
			ring->at.run_seq = 0;
			return;
		}
	}
}

static bool grow_snapshot(struct tw_writer *writer, uint64_t bytes)
{
	uint8_t *more;

	if (writer->snapshot_bytes >= bytes)
		return true;
	more = realloc(writer->snapshot, bytes);
	if (!more)
		return false;
	writer->snapshot = more;
	writer->snapshot_bytes = bytes;
	return true;
}

int tw_writer_snapshot_ring(struct tw_writer *writer, uint32_t index)
{
	const struct tw_rb_shared *shared = tw_rs_ring(&writer->rs, index);
	struct tw_writer_ring *ring = &writer->rings[index];
	uint64_t first_pos, end_pos, skipped, at;
	int64_t bytes;
	int error;

	if (!grow_snapshot(writer, tw_rs_ring_bytes(&writer->rs, index)))
		return TW_ENOMEM;
	bytes = tw_rb_snapshot(shared, tw_rs_ring_bytes(&writer->rs, index), writer->snapshot, &first_pos, &end_pos);
	if (bytes < 0) {
		tw_writer_damaged(writer);
		return 0;
	}
	at = skip_stored(ring, writer->snapshot, (uint64_t)bytes, &skipped);
	error = tell_overwritten(writer, index, skipped, 0, at < (uint64_t)bytes ? tw_get64(writer->snapshot + at) : 0);
	if (error < 0)
		return error;
	if (ring->at.pos < first_pos) {
		ring->at.pos = first_pos;
		forget_tracee(ring, writer->snapshot, (uint64_t)bytes);
	}
	while (at < (uint64_t)bytes) {
		struct tw_writer_ring before = *ring;
		uint32_t block_bytes = cut_block(ring, writer->snapshot + at, (uint64_t)bytes - at);
		struct tw_block_header header;

		tw_writer_start_header(ring, &header);
		header.flags = TW_BLOCK_FLAG_SNAPSHOT;
		header.first_pos = ring->at.pos;
		at += block_bytes;
		header.end_pos = at == (uint64_t)bytes ? end_pos : ring->at.pos + block_bytes;
		error = tw_writer_store_records(writer, index, &header, writer->snapshot + at - block_bytes,
						block_bytes);
		if (error < 0) {
			*ring = before;
			return error;
		}
	}
	return 1;
}

int tw_writer_give_up_ring(struct tw_writer *writer, uint32_t index)
{
	struct tw_writer_ring *ring = &writer->rings[index];
	uint64_t first_pos, end_pos, skipped, given_up = 0;
	int64_t bytes;
	int told;

	if (!grow_snapshot(writer, tw_rs_ring_bytes(&writer->rs, index)))
		return TW_ENOMEM;
	bytes = tw_rb_snapshot(tw_rs_ring(&writer->rs, index), tw_rs_ring_bytes(&writer->rs, index), writer->snapshot,
			       &first_pos, &end_pos);
	if (bytes < 0) {
		tw_writer_damaged(writer);
		return 0;
	}
	for (uint64_t at = skip_stored(ring, writer->snapshot, (uint64_t)bytes, &skipped); at < (uint64_t)bytes;) {
		uint64_t head = tw_record_head(writer->snapshot + at);

		at += TW_RB_HEAD_BYTES(head);
		given_up += tw_writer_is_event(head);
	}
	told = tell_overwritten(writer, index, skipped, given_up, 0);
	return told < 0 ? told : 0;
}
