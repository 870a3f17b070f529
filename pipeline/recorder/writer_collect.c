/* SPDX-License-Identifier: Apache-2.0 */
/* writer_collect.c - what the files hold of each ring, while blocks of it are in the write queue. */
#include "pipeline/recorder/writer.h"
#include "base/assert.h"

#include <stdlib.h>

void tw_writer_advance(struct tw_writer_progress *progress, const struct tw_block_header *header,
		       struct tw_block_tracee tracee)
{
	progress->pos = header->end_pos;
	progress->sequence = header->end_sequence;
	progress->tracee_id = tracee.tracee_id;
	progress->run_seq = tracee.run_seq;
	progress->stored_events += header->event_count;
	memcpy(progress->reported, header->lost, sizeof progress->reported);
	memcpy(progress->own, header->own, sizeof progress->own);
}

void tw_writer_note_stored(struct tw_writer *writer, struct tw_store_image *image,
			   const struct tw_writer_progress *before, const struct tw_block_header *header)
{
	for (unsigned cause = 0; cause < TW_RB_CAUSES; cause++) {
		writer->store.stats.lost[cause] += header->lost[cause] - before->reported[cause];
		image->lost[cause] += header->lost[cause] - before->reported[cause];
	}
}

void tw_writer_give_back(struct tw_writer *writer, uint32_t index, uint64_t pos)
{
	const struct tw_writer_ring *ring = &writer->rings[index];

	/* The producer writes over this memory: its records are in the files. */
	TW_ASSERT(pos <= (ring->queued ? ring->stored.pos : ring->at.pos));
	if (writer->is_dead)
		return;
	tw_rb_consume(tw_rs_ring(&writer->rs, index), pos);
	/* A round over many full rings may take seconds on a busy machine or a slow disk: each block is progress. */
	tw_rs_heartbeat(&writer->rs);
}

/*
 * Resets the ring to what is in the files. If its stream had been followed into other rings, none of whose blocks can
 * have been written, these wait again.
 */
static void take_back(struct tw_writer *writer, struct tw_writer_ring *ring)
{
	ring->at = ring->stored;
	ring->queued = 0;
	ring->has_failed = false;
	if (ring->is_moved)
		ring->is_seen = true;
	while (ring->is_moved) {
		struct tw_writer_ring *next = &writer->rings[ring->successor - 1];

		ring->is_moved = false;
		next->is_held = true;
		next->is_seen = next->has_failed = false;
		next->queued = 0;
		next->at.pos = next->first_pos;
		ring = next;
	}
}

static void note_come_back(struct tw_writer *writer, const struct tw_write *write)
{
	struct tw_writer_ring *ring = &writer->rings[write->ring];
	struct tw_store_image *image = &writer->images[write->image].store;

	tw_store_note_written(&writer->store, image, write);
	if (write->error) {
		ring->has_failed = true;
		return;
	}
	tw_writer_note_stored(writer, image, &ring->stored, &write->header);
	tw_writer_advance(&ring->stored, &write->header, write->tracee);
	ring->queued--;
	/* Skipped bytes may follow the last block. */
	tw_writer_give_back(writer, write->ring, ring->queued ? ring->stored.pos : ring->at.pos);
}

/* Returns the first error. */
static int take_note(struct tw_writer *writer, struct tw_write *first)
{
	int error = 0;

	while (first) {
		struct tw_write *write = first;

		first = write->next;
		note_come_back(writer, write);
		error = error ? error : write->error;
		free(write);
	}
	return error;
}

int tw_writer_collect(struct tw_writer *writer, bool waits)
{
	struct tw_write_queue *queue = writer->store.queue;
	struct tw_write *first;
	int error;

	if (!queue || tw_write_queue_is_empty(queue))
		return 0;
	first = tw_write_queue_collect(queue, waits);
	if (!first)
		return 0;
	error = take_note(writer, first);
	if (!error)
		return 1;
	/* The remaining blocks are not written. */
	take_note(writer, tw_write_queue_drain(queue));
	for (uint32_t i = 0; i < writer->rs.ring_count; i++) {
		if (writer->rings[i].has_failed)
			take_back(writer, &writer->rings[i]);
	}
	return error;
}

int tw_writer_drain_queue(struct tw_writer *writer)
{
	int error = 0;

	while (error >= 0 && tw_writer_is_writing(writer))
		error = tw_writer_collect(writer, true);
	return error < 0 ? error : 0;
}

bool tw_writer_is_writing(const struct tw_writer *writer)
{
	return writer->store.queue && !tw_write_queue_is_empty(writer->store.queue);
}
