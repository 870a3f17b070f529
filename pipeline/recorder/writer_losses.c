/* SPDX-License-Identifier: Apache-2.0 */
/*
 * writer_losses.c - losses that no record reports: counts in shared memory, taken over if they are possible.
 */
#include "base/error.h"
#include "pipeline/recorder/writer.h"

#include <string.h>

void tw_writer_damaged(struct tw_writer *writer)
{
	writer->store.stats.damaged_rings++;
	writer->store.account[TW_ACCOUNT_DAMAGED_RINGS]++;
}

void tw_writer_check_loss(struct tw_writer *writer, uint32_t index)
{
	struct tw_writer_ring *ring = &writer->rings[index];

	if (ring->is_loss_forged || !tw_rb_is_loss_forged(tw_rs_ring(&writer->rs, index), ring->at.reported))
		return;
	ring->is_loss_forged = true;
	tw_writer_damaged(writer);
}

void tw_writer_note_forged(struct tw_writer *writer, bool *is_noted)
{
	if (!*is_noted)
		tw_writer_damaged(writer);
	*is_noted = true;
}

/* ---- of a ring ---- */

int tw_writer_tell_loss(struct tw_writer *writer, uint32_t index)
{
	const struct tw_rb_shared *shared = tw_rs_ring(&writer->rs, index);
	struct tw_writer_ring *ring = &writer->rings[index];
	struct tw_rb_loss_record loss;
	struct tw_block_header header;

	tw_writer_check_loss(writer, index);
	if (!tw_rb_unreported_loss(shared, ring->at.reported, &loss))
		return 0;
	tw_writer_start_header(ring, &header);
	header.first_pos = header.end_pos = ring->at.pos;
	return tw_writer_store_records(writer, index, &header, &loss, sizeof loss);
}

static void count_unstored_of(struct tw_writer *writer, uint32_t index)
{
	struct tw_recorder_stats *stats = &writer->store.stats;
	uint64_t pos = writer->rings[index].at.pos, end_pos = pos, unstored = 0,
		 left = tw_rs_ring_bytes(&writer->rs, index);
	int64_t bytes;

	/* A program that keeps moving the position is not followed. */
	while (left && ((bytes = tw_rb_take(tw_rs_ring(&writer->rs, index), tw_rs_ring_bytes(&writer->rs, index), pos,
					    TW_BLOCK_RAW_BYTES_MAX, writer->raw, &end_pos)) > 0 ||
			end_pos != pos)) {
		for (int64_t at = 0; at < bytes; at += TW_RB_HEAD_BYTES(tw_record_head(writer->raw + at))) {
			unstored += tw_writer_is_event(tw_record_head(writer->raw + at));
		}
		left -= end_pos - pos < left ? end_pos - pos : left;
		pos = end_pos;
	}
	stats->unstored += unstored;
	stats->lost[TW_RB_LOST_FULL] += unstored;
	writer->store.account[TW_ACCOUNT_UNSTORED] += unstored;
}

void tw_writer_count_unstored(struct tw_writer *writer, uint32_t index)
{
	const uint64_t *reported = writer->rings[index].at.reported;
	struct tw_rb_loss_record loss;

	count_unstored_of(writer, index);
	/* A hostile program can link its rings in a circle. */
	for (unsigned steps = 0; writer->rings[index].successor && steps < 64; steps++) {
		index = writer->rings[index].successor - 1;
		/* It was held because the disk was full, not because its memory is damaged. */
		writer->rings[index].is_held = false;
		count_unstored_of(writer, index);
	}
	/* Losses that its loss records would have reported are included in the counts of the ring. */
	if (tw_rb_unreported_loss(tw_rs_ring(&writer->rs, index), reported, &loss)) {
		for (unsigned cause = 0; cause < TW_RB_CAUSES; cause++) {
			bool is_replaced = cause == TW_RB_LOST_FULL && writer->rs.config.policy == TW_RB_OVERWRITE;

			writer->store.stats.lost[cause] += loss.lost[cause];
			/* No loss record has them: the account does. */
			writer->store.account[TW_ACCOUNT_UNSTORED] += is_replaced ? 0 : loss.lost[cause];
		}
	}
}

/* ---- of images ---- */

int tw_writer_tell_no_ring(struct tw_writer *writer, uint32_t index)
{
	const struct tw_rs_image_head *from = tw_rs_head(&writer->rs, index);
	struct tw_writer_image *image = &writer->images[index];
	struct tw_block_header header = {.type = TW_BLOCK_LOSS};
	const uint8_t *stored;
	/* RELAXED rs.no_ring: a count that is reported again when it grows; exact once the image has ENDED. */
	uint64_t lost = tw_load_relaxed(&from->no_ring_lost);
	int error;

	if (lost - image->no_ring_reported > TW_RB_LOST_MAX) {
		tw_writer_note_forged(writer, &image->is_forged);
		return 0;
	}
	if (lost == image->no_ring_reported)
		return 0;
	error = tw_writer_drain_queue(writer);
	if (!error)
		error = tw_writer_definitions(writer, index);
	if (error)
		return error;
	/* RELAXED rs.no_ring: as above. */
	header.first_ticks = tw_load_relaxed(&from->no_ring_first_ticks);
	/* RELAXED rs.no_ring: as above. */
	header.last_ticks = tw_load_relaxed(&from->no_ring_last_ticks);
	header.lost[TW_RB_LOST_NO_RING] = lost;
	tw_store_clock(&header.clock);
	tw_block_encode_bytes(writer->store.encoder, &header, NULL, 0, &stored);
	error = tw_store_append(&writer->store, &image->store, &header, stored);
	if (error)
		return error;
	writer->store.stats.lost[TW_RB_LOST_NO_RING] += lost - image->no_ring_reported;
	image->store.lost[TW_RB_LOST_NO_RING] += lost - image->no_ring_reported;
	image->no_ring_reported = lost;
	error = tw_writer_rotate(writer, index);
	return error ? error : 1;
}

/* Takes over a count in the control page, if it is possible and larger than the last time. */
static void take_count(struct tw_writer *writer, enum tw_account_cause cause, uint64_t count, uint64_t most)
{
	uint64_t *known = &writer->store.account[cause];

	if (count > most)
		tw_writer_note_forged(writer, &writer->is_control_forged);
	else if (count > *known)
		*known = count;
}

void tw_writer_tell_refusals(struct tw_writer *writer)
{
	static const enum tw_account_cause causes[TW_RS_REFUSALS] = {
		[TW_RS_REFUSED_SLOT] = TW_ACCOUNT_PROCESSES_FULL,
		[TW_RS_REFUSED_FILE] = TW_ACCOUNT_PROCESSES_OTHER,
		[TW_RS_REFUSED_MEMORY] = TW_ACCOUNT_PROCESSES_OTHER,
		[TW_RS_REFUSED_FORK] = TW_ACCOUNT_PROCESSES_OTHER,
		[TW_RS_REFUSED_STATIC] = TW_ACCOUNT_PROCESSES_STATIC,
		[TW_RS_REFUSED_LIBRARY] = TW_ACCOUNT_PROCESSES_LIBRARY,
		[TW_RS_REFUSED_RIGHTS] = TW_ACCOUNT_PROCESSES_RIGHTS,
		[TW_RS_REFUSED_FILTER] = TW_ACCOUNT_PROCESSES_OTHER,
		[TW_RS_REFUSED_TRACER] = TW_ACCOUNT_PROCESSES_OTHER,
	};
	/* Of a dead set, recovery looks whether all of these images was stored. */
	uint64_t counts[TW_ACCOUNT_CAUSES] = {[TW_ACCOUNT_PROCESSES_OTHER] =
						      writer->is_dead ? 0 : writer->rs.damaged_images};

	const struct tw_rs_control *control = writer->rs.control;

	for (int why = 0; why < TW_RS_REFUSALS; why++) {
		/* RELAXED rs.images_refused: counts for the summary. */
		uint64_t count = tw_load_relaxed(&control->images_refused[why]);

		if (count <= TW_RS_REFUSED_MAX)
			counts[causes[why]] += count;
		else
			tw_writer_note_forged(writer, &writer->is_control_forged);
	}
	/* RELAXED rs.plans_late: as above. */
	take_count(writer, TW_ACCOUNT_PLANS, tw_load_relaxed(&control->plans_late), TW_RS_REFUSED_MAX);
	/* RELAXED rs.unarmed: as above. */
	take_count(writer, TW_ACCOUNT_FUNCTIONS, tw_load_relaxed(&control->unarmed), TW_RS_REFUSED_MAX);
	/* RELAXED rs.children: as above. */
	take_count(writer, TW_ACCOUNT_CHILDREN, tw_load_relaxed(&control->children), TW_RS_REFUSED_MAX);
	/* RELAXED rs.ended: as above. */
	take_count(writer, TW_ACCOUNT_THREADS_ENDED, tw_load_relaxed(&control->ended_lost), TW_RB_LOST_MAX);
	/* RELAXED rs.ended: as above. */
	take_count(writer, TW_ACCOUNT_VFORK, tw_load_relaxed(&control->vfork_lost), TW_RB_LOST_MAX);
	/* RELAXED rs.ended: as above. */
	take_count(writer, TW_ACCOUNT_LEFT_OUT, tw_load_relaxed(&control->left_out), TW_RB_LOST_MAX);
	writer->store.stats.left_out = writer->store.account[TW_ACCOUNT_LEFT_OUT];
	writer->store.stats.lost_ended = writer->store.account[TW_ACCOUNT_THREADS_ENDED];
	writer->store.stats.lost_vfork = writer->store.account[TW_ACCOUNT_VFORK];
	writer->store.stats.children = writer->store.account[TW_ACCOUNT_CHILDREN];
	for (; writer->tables_reported < writer->rs.damaged_tables; writer->tables_reported++)
		tw_writer_damaged(writer);
	writer->store.stats.images_refused = 0;
	for (int why = 0; why < TW_RS_REFUSALS; why++) {
		uint64_t *count = &counts[causes[why]];

		writer->store.account[causes[why]] =
			*count > writer->store.account[causes[why]] ? *count : writer->store.account[causes[why]];
		writer->store.stats.images_refused += *count;
		*count = 0;
	}
}
