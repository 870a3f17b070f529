/* SPDX-License-Identifier: Apache-2.0 */
/*
 * writer_snapshot.c - rings that overwrite: stores what is in them and not in the files.
 *
 * Such a ring is written to while it is copied, and read again from the same position by the next snapshot. The last
 * record stored marks where the new ones begin; the number of events before the copy, less those that were stored, is
 * the loss.
 */
#include "base/error.h"
#include "base/sys.h"
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
 * Reports records that were overwritten and never stored: all before the copy, less those in the files; and those that
 * are given up unstored now.
 */
static int tell_overwritten(struct tw_writer *writer, uint32_t index, const struct tw_writer_copy *copy,
			    uint64_t skipped, uint64_t given_up, uint64_t next_ticks)
{
	const struct tw_rb_shared *shared = tw_rs_ring(&writer->rs, index);
	struct tw_writer_ring *ring = &writer->rings[index];
	uint64_t stored = ring->at.reported[TW_RB_LOST_FULL] + ring->at.stored_events - skipped;
	uint64_t overwritten = copy->at.overwritten > stored ? copy->at.overwritten - stored : 0;
	struct tw_rb_loss_record loss;
	struct tw_block_header header;

	tw_writer_check_loss(writer, index);
	if (overwritten > TW_RB_LOST_MAX)
		overwritten = 0;
	/* More may have been overwritten since the copy. */
	if (!tw_rb_unreported_loss(shared, ring->at.reported, &loss) && !given_up && !overwritten)
		return 0;
	loss.lost[TW_RB_LOST_FULL] = overwritten + given_up;
	if (!loss.record.ticks)
		loss.record.ticks = loss.first_ticks = ring->first_ticks;
	/* The loss precedes all records that are left, including losses that handlers counted. */
	if (next_ticks && (loss.record.ticks > next_ticks || given_up))
		loss.record.ticks = next_ticks;
	if (loss.first_ticks > loss.record.ticks)
		loss.first_ticks = loss.record.ticks;
	for (unsigned cause = 0; cause < TW_RB_CAUSES; cause++)
		given_up += loss.lost[cause];
	if (!given_up)
		return 0;
	tw_writer_start_header(ring, &header);
	header.flags = TW_BLOCK_FLAG_SNAPSHOT;
	header.first_pos = header.end_pos = ring->at.pos;
	return tw_writer_store_records(writer, index, &header, &loss, sizeof loss);
}

/* Passes over records before this time; adds the events among them to *given_up. Returns where the others begin. */
static uint64_t skip_old(struct tw_writer_ring *ring, const struct tw_writer_copy *copy, uint64_t at,
			 uint64_t since_ticks, uint64_t *given_up)
{
	while (at < copy->bytes && tw_get64(copy->raw + at) < since_ticks) {
		uint64_t head = tw_record_head(copy->raw + at);

		if (TW_RB_HEAD_KIND(head) == TW_EVENT_SWITCH) {
			ring->at.tracee_id = TW_RB_HEAD_ID(head);
			ring->at.run_seq = tw_get64(copy->raw + at + TW_CODEC_HEAD_BYTES);
		}
		*given_up += tw_writer_is_event(head);
		at += TW_RB_HEAD_BYTES(head);
	}
	return at;
}

#define COPY_TRIES 100

_Static_assert(TW_EVENT_SWITCH < 64, "a stretch says whether it has switch records");
_Static_assert(TW_PAGE_BYTES >= TW_COLUMN_SLACK_BYTES, "records of a copy are encoded where they are");

/* Memory for a copy, which is then made without faults. */
static int prepare(struct tw_writer *writer, uint32_t index, struct tw_writer_copy *copy)
{
	uint64_t ring_bytes = tw_rs_ring_bytes(&writer->rs, index);
	uint8_t *raw;

	if (copy->capacity >= ring_bytes)
		return 0;
	raw = aligned_alloc(TW_PAGE_BYTES, ring_bytes + TW_PAGE_BYTES);
	if (!raw)
		return TW_ENOMEM;
	free(copy->raw);
	copy->raw = raw;
	copy->capacity = ring_bytes;
	/* One system call for each, instead of a fault for each page, while the program overwrites the ring. */
	tw_sys_populate_write(raw, ring_bytes);
	tw_sys_populate_read(tw_rb_data(tw_rs_ring(&writer->rs, index)), ring_bytes);
	return 0;
}

int tw_writer_copy_ring(struct tw_writer *writer, uint32_t index, struct tw_writer_copy *copy)
{
	const struct tw_rb_shared *shared = tw_rs_ring(&writer->rs, index);
	uint64_t ring_bytes = tw_rs_ring_bytes(&writer->rs, index);
	int64_t bytes = 0;
	int error = prepare(writer, index, copy);

	if (error)
		return error;
	copy->bytes = 0;
	copy->is_there = copy->is_damaged = false;
	/* A copy that was interrupted may have been overtaken: then nothing of it is left. */
	for (unsigned tries = 0; tries < COPY_TRIES; tries++) {
		bytes = tw_rb_snapshot(shared, ring_bytes, copy->raw, &copy->at);
		if (bytes || !copy->at.overwritten)
			break;
	}
	/* The owner of a set in use may give the ring to another thread meanwhile. */
	if (shared->lease != writer->rings[index].lease)
		return 0;
	copy->is_damaged = bytes < 0;
	if (copy->is_damaged)
		return 0;
	copy->bytes = (uint64_t)bytes;
	copy->has_switch = copy->at.kinds >> TW_EVENT_SWITCH & 1;
	copy->is_there = true;
	return 0;
}

int tw_writer_begin_copy(struct tw_writer *writer, uint32_t index, const struct tw_writer_copy *copy,
			 uint64_t since_ticks, uint64_t *at)
{
	struct tw_writer_ring *ring = &writer->rings[index];
	uint64_t skipped, given_up = 0;
	int error;

	*at = copy->bytes;
	if (copy->is_damaged)
		tw_writer_damaged(writer);
	if (!copy->is_there)
		return 0;
	*at = skip_stored(ring, copy->raw, copy->bytes, &skipped);
	/* If switch records were overwritten, the tracee of the first events is not known. */
	if (ring->at.pos < copy->at.first_pos && copy->has_switch) {
		ring->at.tracee_id = 0;
		ring->at.run_seq = 0;
	}
	*at = skip_old(ring, copy, *at, since_ticks, &given_up);
	error = tell_overwritten(writer, index, copy, skipped, given_up,
				 *at < copy->bytes ? tw_get64(copy->raw + *at) : 0);
	if (error < 0)
		return error;
	if (ring->at.pos < copy->at.first_pos)
		ring->at.pos = copy->at.first_pos;
	return 0;
}

uint32_t tw_writer_start_copied(struct tw_writer_ring *ring, const struct tw_writer_copy *copy, uint64_t at,
				struct tw_block_header *header)
{
	uint32_t block_bytes = cut_block(ring, copy->raw + at, copy->bytes - at);

	tw_writer_start_header(ring, header);
	header->flags = TW_BLOCK_FLAG_SNAPSHOT;
	header->first_pos = ring->at.pos;
	header->end_pos = at + block_bytes == copy->bytes ? copy->at.end_pos : ring->at.pos + block_bytes;
	return block_bytes;
}

int tw_writer_store_copied(struct tw_writer *writer, uint32_t index, const struct tw_writer_copy *copy, uint64_t at)
{
	struct tw_writer_ring *ring = &writer->rings[index];
	int error;

	while (at < copy->bytes) {
		struct tw_writer_ring before = *ring;
		struct tw_block_header header;
		uint32_t block_bytes = tw_writer_start_copied(ring, copy, at, &header);

		error = tw_writer_store_records(writer, index, &header, copy->raw + at, block_bytes);
		if (error < 0) {
			*ring = before;
			return error;
		}
		at += block_bytes;
	}
	return 1;
}

int tw_writer_store_copy(struct tw_writer *writer, uint32_t index, const struct tw_writer_copy *copy,
			 uint64_t since_ticks)
{
	uint64_t at;
	int error = tw_writer_begin_copy(writer, index, copy, since_ticks, &at);

	return error || !copy->is_there ? error : tw_writer_store_copied(writer, index, copy, at);
}

int tw_writer_snapshot_ring(struct tw_writer *writer, uint32_t index)
{
	int error = tw_writer_copy_ring(writer, index, &writer->snapshot);

	return error ? error : tw_writer_store_copy(writer, index, &writer->snapshot, 0);
}

int tw_writer_give_up_ring(struct tw_writer *writer, uint32_t index)
{
	const struct tw_writer_copy *copy = &writer->snapshot;
	struct tw_writer_ring *ring = &writer->rings[index];
	uint64_t skipped, given_up = 0;
	int reported = tw_writer_copy_ring(writer, index, &writer->snapshot);

	if (!reported && copy->is_damaged)
		tw_writer_damaged(writer);
	if (reported || !copy->is_there)
		return reported;
	skip_old(ring, copy, skip_stored(ring, copy->raw, copy->bytes, &skipped), UINT64_MAX, &given_up);
	reported = tell_overwritten(writer, index, copy, skipped, given_up, 0);
	return reported < 0 ? reported : 0;
}
