/* SPDX-License-Identifier: Apache-2.0 */
/*
 * writer.c - stores one ring and one image at a time.
 *
 * The order that makes a capture exact:
 *
 *	1 read how far the ring is committed     2 store the definitions published by then
 *	3 store the block                        4 give the memory back to the producer
 *
 * A record's definitions are published before it is committed, so 1 precedes 2. A crash between 3 and 4 stores a
 * stretch twice, with the same positions, and readers take each position once.
 */
#include "pipeline/recorder/writer.h"
#include "base/error.h"
#include "base/sys.h"
#include "pipeline/format/definitions.h"
#include "pipeline/recorder/demote.h"

#include <stdlib.h>
#include <sys/resource.h>

int tw_writer_init(struct tw_writer *writer)
{
	writer->definitions = malloc(TW_BLOCK_STORED_BYTES_MAX);
	writer->raw = malloc(TW_BLOCK_RAW_BYTES_MAX);
	return writer->definitions && writer->raw ? 0 : TW_ENOMEM;
}

static void forget_image(struct tw_writer_image *image)
{
	free(image->store.closed);
	free(image->ends);
	tw_writer_forget_names(image);
	memset(image, 0, sizeof *image);
}

void tw_writer_fini(struct tw_writer *writer)
{
	/* Only these: most of the table has never been touched. */
	for (uint32_t i = 0; i < writer->images_seen; i++)
		forget_image(&writer->images[i]);
	free(writer->definitions);
	free(writer->raw);
	free(writer->snapshot.raw);
	tw_demote_destroy(writer->demote);
	tw_redacting_destroy(writer->redacting);
}

/* ---- images and rings in use ---- */

static enum tw_rs_image_state scan_image(struct tw_writer *writer, uint32_t index)
{
	const struct tw_rs_seen_image *from = tw_rs_image(&writer->rs, index);
	struct tw_writer_image *image = &writer->images[index];
	enum tw_rs_image_state state = tw_rs_image_state(&writer->rs, index);

	if ((state != TW_RS_IMAGE_LIVE && state != TW_RS_IMAGE_ENDED) || image->store.lease == from->lease)
		return state;
	if (writer->images_seen <= index)
		writer->images_seen = index + 1;
	forget_image(image);
	image->store.lease = from->lease;
	image->store.process_start_time = from->process_start_time;
	image->store.start_ticks = from->start_ticks;
	image->store.process_id = from->process_id;
	image->store.parent_process_id = from->parent_process_id;
	writer->store.stats.images++;
	return state;
}

bool tw_writer_knows_image(const struct tw_writer *writer, uint32_t index)
{
	return writer->images[index].store.lease == tw_rs_image(&writer->rs, index)->lease;
}

static bool is_sound(const struct tw_writer *writer, uint32_t index, const struct tw_rb_shared *shared)
{
	return shared->magic == TW_RB_MAGIC &&
	       shared->lease >> 32 ==
		       (tw_rs_image(&writer->rs, tw_rs_ring_image(&writer->rs, index))->lease & UINT32_MAX) &&
	       shared->lease & UINT32_MAX && shared->first_pos % TW_RB_ALIGN_BYTES == 0;
}

static enum tw_rb_state scan_ring(struct tw_writer *writer, uint32_t index);

/* The stream begins in another ring of the image, which must be drained before this one. */
static bool is_behind_another(struct tw_writer *writer, uint32_t index, uint32_t number)
{
	struct tw_writer_ring *ring = &writer->rings[index], *before;
	uint32_t other = tw_rs_ring_sibling(&writer->rs, index, number - 1);

	if (other == UINT32_MAX || other == index)
		return false;
	before = &writer->rings[other];
	if (!before->lease)
		scan_ring(writer, other);
	if (before->lease != ring->lease || before->is_bad || before->is_moved)
		return false;
	before->successor = index + 1;
	return true;
}

/* A new lease. From here on changes of the ring's header have no effect: only the recorder frees the ring. */
static void see_lease(struct tw_writer *writer, uint32_t index)
{
	struct tw_writer_ring *ring = &writer->rings[index];
	struct tw_rb_shared copy = *tw_rs_ring(&writer->rs, index);

	/* Only the copy is checked: the program may write to the original. */
	tw_compiler_barrier();
	*ring = (struct tw_writer_ring){
		.lease = copy.lease ? copy.lease : UINT64_MAX,
		.first_pos = copy.first_pos,
		.at = {.pos = copy.first_pos, .tracee_id = copy.tracee_id},
		.thread_start_ticks = copy.thread_start_ticks,
		.first_ticks = copy.first_ticks,
		.thread_id = copy.thread_id,
		.session_index = copy.session_index,
		.scheduler_id = copy.scheduler_id,
		.own_tracee_id = copy.tracee_id,
		.defines_tracee = copy.is_own_tracee && copy.tracee_id,
	};
	memcpy(ring->thread_name, copy.thread_name, sizeof ring->thread_name);
	memcpy(ring->ring_name, copy.thread_name, sizeof ring->ring_name);
	memcpy(ring->first_name, copy.thread_name, sizeof ring->first_name);
	writer->images[tw_rs_ring_image(&writer->rs, index)].has_new_threads |= ring->defines_tracee;
	if (!is_sound(writer, index, &copy)) {
		ring->is_bad = true;
		tw_writer_damaged(writer);
		return;
	}
	ring->is_held = copy.grown_from && is_behind_another(writer, index, copy.grown_from);
	writer->store.stats.streams += !copy.grown_from;
}

static enum tw_rb_state scan_ring(struct tw_writer *writer, uint32_t index)
{
	struct tw_writer_ring *ring = &writer->rings[index];
	enum tw_rb_state state = tw_rs_ring_state(&writer->rs, index);

	if (!ring->lease && (state == TW_RB_LIVE || state == TW_RB_ENDED))
		see_lease(writer, index);
	ring->is_seen = ring->lease && !ring->is_held && !ring->is_moved && !ring->is_bad;
	if (ring->is_seen)
		tw_writer_read_name(ring, tw_rs_ring(&writer->rs, index));
	if (ring->is_moved && state == TW_RB_ENDED && !ring->queued)
		tw_writer_recycle_ring(writer, index);
	return state;
}

uint32_t tw_writer_scan(struct tw_writer *writer)
{
	struct tw_recorder_stats *stats = &writer->store.stats;
	uint32_t count = tw_rs_scan(&writer->rs);

	stats->streams_alive = stats->images_alive = 0;
	/* Rings first: the image of a ring exists before the ring does. */
	for (uint32_t i = 0; i < count; i++)
		stats->streams_alive += scan_ring(writer, i) == TW_RB_LIVE;
	for (uint32_t i = 0; i < tw_rs_image_count(&writer->rs); i++)
		stats->images_alive += scan_image(writer, i) == TW_RS_IMAGE_LIVE;
	tw_writer_read_names(writer, count);
	return count;
}

/* ---- segments ---- */

/* Descriptors left for the rest of the process. */
#define DESCRIPTORS_LEFT 64

/*
 * Each image that writes has a file open, and the limit of descriptors is lower than that of images: closes another
 * image's segment; a new one is begun when more data comes.
 */
void tw_writer_free_descriptor(struct tw_writer *writer, const struct tw_writer_image *image)
{
	uint32_t images = tw_rs_image_count(&writer->rs), open_count = 0;
	struct rlimit limit;

	if (image->store.is_open || writer->store.is_stream || images < DESCRIPTORS_LEFT ||
	    getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return;
	for (uint32_t i = 0; i < images; i++)
		open_count += writer->images[i].store.is_open;
	if (open_count + DESCRIPTORS_LEFT < limit.rlim_cur)
		return;
	for (uint32_t i = 0; i < images; i++) {
		struct tw_writer_image *other = &writer->images[writer->closed_image++ % images];

		if (!other->store.is_open)
			continue;
		if (!tw_writer_drain_queue(writer))
			tw_store_close_segment(&writer->store, &other->store, 0);
		return;
	}
}

/* ---- rings ---- */

void tw_writer_start_header(const struct tw_writer_ring *ring, struct tw_block_header *header)
{
	memset(header, 0, sizeof *header);
	header->thread_id = ring->thread_id;
	header->thread_start = ring->thread_start_ticks;
	header->session_index = ring->session_index;
	header->scheduler_id = ring->scheduler_id;
	header->ring_lease = ring->lease;
	header->tracee_id = ring->at.tracee_id;
	header->run_seq = ring->at.run_seq;
	header->first_sequence = ring->at.sequence;
	memcpy(header->lost, ring->at.reported, sizeof header->lost);
	memcpy(header->own, ring->at.own, sizeof header->own);
	memcpy(header->thread_name, ring->thread_name, sizeof header->thread_name);
	tw_store_clock(&header->clock);
}

/* Writes the block directly: 0, or the error. */
static int write_block(struct tw_writer *writer, uint32_t index, uint32_t image_index,
		       const struct tw_writer_made *made)
{
	struct tw_writer_ring *ring = &writer->rings[index];
	struct tw_store_image *image = &writer->images[image_index].store;
	int error = tw_store_append(&writer->store, image, made->header, made->stored);

	if (error)
		return error;
	tw_writer_note_stored(writer, image, &ring->at, made->header);
	tw_writer_advance(&ring->at, made->header, made->tracee);
	return 0;
}

/* Passes the block to the queue: 0, or an error, of this or of an earlier block. */
static int queue_block(struct tw_writer *writer, uint32_t index, uint32_t image_index,
		       const struct tw_writer_made *made)
{
	const struct tw_write as = {.ring = index, .image = image_index, .tracee = made->tracee};
	struct tw_writer_ring *ring = &writer->rings[index];
	int error = 0;

	while (!error && !tw_write_queue_has_space(writer->store.queue, tw_block_file_bytes(made->header)))
		error = tw_writer_collect(writer, true);
	if (error < 0)
		return error;
	error = tw_store_queue_up(&writer->store, &writer->images[image_index].store, made->header, made->stored, &as);
	if (error)
		return error;
	if (!ring->queued++)
		ring->stored = ring->at;
	tw_writer_advance(&ring->at, made->header, as.tracee);
	return 0;
}

/* The definitions that the records need. */
static int define(struct tw_writer *writer, uint32_t image_index, uint8_t *changed, const uint8_t *raw, uint32_t bytes)
{
	int error = tw_writer_definitions(writer, image_index);

	if (!error && changed && writer->redacting)
		error = tw_redacting_records(writer->redacting, &writer->rs, image_index, changed, bytes);
	if (!error)
		error = tw_writer_define_used(writer, image_index, raw, bytes);
	if (error) {
		writer->store.stats.write_errors++;
		writer->store.stats.last_error = error;
		writer->store.stats.is_stalled = true;
	}
	return error;
}

static int put_block(struct tw_writer *writer, uint32_t index, const struct tw_writer_made *made)
{
	uint32_t image_index = tw_rs_ring_image(&writer->rs, index);
	int error = (tw_store_is_slow(&writer->store) ? queue_block : write_block)(writer, index, image_index, made);

	if (error)
		return error;
	writer->store.stats.events_taken += made->header->event_count;
	return tw_writer_rotate(writer, image_index);
}

int tw_writer_store_records(struct tw_writer *writer, uint32_t index, struct tw_block_header *header, void *raw,
			    uint32_t bytes)
{
	uint32_t image_index = tw_rs_ring_image(&writer->rs, index);
	uint64_t redacted = tw_redacting_count(writer->redacting);
	struct tw_writer_made made = {.header = header};
	int error = define(writer, image_index, raw, raw, bytes);

	if (error)
		return error;
	if (tw_block_encode_events(writer->store.encoder, header, raw, bytes, &made.stored)) {
		tw_writer_damaged(writer);
		return 0;
	}
	made.tracee = tw_block_encoder_tracee(writer->store.encoder);
	if (writer->demote && !image_index)
		tw_demote_see(writer->demote, writer->images[0].store.lease, raw, bytes);
	error = put_block(writer, index, &made);
	if (!error)
		writer->store.stats.redacted += tw_redacting_count(writer->redacting) - redacted;
	return error ? error : 1;
}

int tw_writer_store_made(struct tw_writer *writer, uint32_t index, const struct tw_writer_made *made,
			 const uint8_t *raw, uint32_t bytes)
{
	int error = define(writer, tw_rs_ring_image(&writer->rs, index), NULL, raw, bytes);

	if (!error)
		error = put_block(writer, index, made);
	return error ? error : 1;
}

/* ---- segments ---- */

int tw_writer_rotate(struct tw_writer *writer, uint32_t index)
{
	struct tw_store_image *image = &writer->images[index].store;
	int error;

	if (!tw_store_wants_rotation(&writer->store, image))
		return 0;
	error = tw_writer_drain_queue(writer);
	/* The data is written: if the index could not be, the statistics say so. */
	if (!error)
		tw_store_close_segment(&writer->store, image, 0);
	return error;
}

void tw_writer_sync(struct tw_writer *writer, uint32_t index, uint64_t now_ns)
{
	struct tw_store_image *image = &writer->images[index].store;

	if (tw_store_has_sync_failed(&writer->store, image)) {
		/* Data that could not be written is taken again. */
		tw_writer_drain_queue(writer);
		tw_store_give_up_segment(image);
	}
	tw_store_sync(&writer->store, image, now_ns);
}

int tw_writer_drain_ring(struct tw_writer *writer, uint32_t index, uint64_t least_bytes)
{
	const struct tw_rb_shared *shared = tw_rs_ring(&writer->rs, index);
	struct tw_writer_ring *ring = &writer->rings[index];
	int any = 0;

	uint64_t data_bytes = tw_rs_ring_bytes(&writer->rs, index);

	for (uint64_t left = data_bytes; tw_rb_committed(shared) - ring->at.pos >= least_bytes;) {
		struct tw_block_header header;
		uint64_t start_pos = ring->at.pos, end_pos;
		int64_t bytes =
			tw_rb_take(shared, data_bytes, start_pos, TW_BLOCK_RAW_BYTES_MAX, writer->raw, &end_pos);
		int stored = 0;

		if (bytes <= 0 && end_pos == start_pos)
			break;
		if (bytes > 0) {
			tw_writer_start_header(ring, &header);
			header.first_pos = start_pos;
			header.end_pos = end_pos;
			stored = tw_writer_store_records(writer, index, &header, writer->raw, (uint32_t)bytes);
			if (stored < 0)
				return stored;
		} else if (bytes < 0) {
			tw_writer_damaged(writer);
		}
		any |= stored;
		left -= end_pos - start_pos < left ? end_pos - start_pos : left;
		ring->at.pos = end_pos;
		if (!ring->queued)
			tw_writer_give_back(writer, index, end_pos);
		/* A fast producer must not starve the others. */
		if (!left)
			break;
	}
	return any;
}

/* ---- the end of a ring ---- */

void tw_writer_recycle_ring(struct tw_writer *writer, uint32_t index)
{
	memset(&writer->rings[index], 0, sizeof writer->rings[index]);
	if (!writer->is_dead)
		tw_rs_ring_recycle(&writer->rs, index);
}

void tw_writer_count_unreached(struct tw_writer *writer, uint32_t index)
{
	/* Only a program that corrupts its own rings leaves such rings; tw_writer_count_unstored() releases those behind a full disk. */
	for (uint32_t i = 0; i < writer->rs.ring_count; i++) {
		if (tw_rs_ring(&writer->rs, i) && tw_rs_ring_image(&writer->rs, i) == index && writer->rings[i].is_held)
			tw_writer_damaged(writer);
	}
}

void tw_writer_recycle_image(struct tw_writer *writer, uint32_t index)
{
	tw_writer_count_unreached(writer, index);
	for (uint32_t i = 0; i < writer->rs.ring_count; i++) {
		if (tw_rs_ring(&writer->rs, i) && tw_rs_ring_image(&writer->rs, i) == index)
			memset(&writer->rings[i], 0, sizeof writer->rings[i]);
	}
	tw_rs_image_recycle(&writer->rs, index);
}

/* May the ring still hold anything? A ring that was never claimed, or filled, does not. */
static bool is_in_use(const struct tw_writer *writer, uint32_t index)
{
	const struct tw_writer_ring *ring = &writer->rings[index];

	return tw_rs_ring_state(&writer->rs, index) == TW_RB_ENDED && (!ring->lease || ring->is_seen);
}

bool tw_writer_has_rings_in_use(const struct tw_writer *writer, uint32_t image)
{
	uint32_t index = tw_rs_image(&writer->rs, image)->first_ring;

	while (index != UINT32_MAX && !is_in_use(writer, index))
		index = writer->rs.rings[index].next;
	return index != UINT32_MAX;
}

/* The ring in which the stream continues; NULL: none. */
static struct tw_writer_ring *find_successor(struct tw_writer *writer, uint32_t index)
{
	struct tw_writer_ring *ring = &writer->rings[index];
	/* RELAXED rs.grown_to: stored before the ring ENDED, which was seen. */
	uint32_t number = tw_load_relaxed(&tw_rs_ring(&writer->rs, index)->grown_to), other;

	if (!ring->successor && number) {
		/* The larger ring was LIVE before this one ended: it is in the table, if perhaps not in ours. */
		tw_rs_scan(&writer->rs);
		other = tw_rs_ring_sibling(&writer->rs, index, number - 1);
		if (other != UINT32_MAX && other != index)
			scan_ring(writer, other);
	}
	return ring->successor ? &writer->rings[ring->successor - 1] : NULL;
}

int tw_writer_end_ring(struct tw_writer *writer, uint32_t index)
{
	struct tw_writer_ring *ring = &writer->rings[index], *next = find_successor(writer, index);
	bool has_let_go = tw_rs_ring_state(&writer->rs, index) == TW_RB_ENDED;
	int reported = 0;

	/* The memory may be given back only when all of it is in the files. */
	if (!next && ring->queued)
		return 0;
	if (next) {
		struct tw_writer_ring moved = *ring;

		moved.first_pos = next->first_pos;
		moved.queued = 0;
		moved.at.pos = next->at.pos > ring->at.pos ? next->at.pos : ring->at.pos;
		moved.successor = next->successor;
		moved.is_seen = true;
		*next = moved;
		ring->is_moved = true;
		ring->is_seen = false;
	} else {
		reported = tw_writer_tell_loss(writer, index);
		if (reported < 0)
			return reported;
	}
	if (has_let_go && !ring->queued) {
		int error = next ? 0 : tw_writer_note_end(writer, index);

		if (error)
			return error;
		tw_writer_recycle_ring(writer, index);
	}
	return reported;
}

/* ---- images ---- */

int tw_writer_end_image(struct tw_writer *writer, uint32_t index, bool is_final)
{
	struct tw_writer_image *image = &writer->images[index];
	/* RELAXED rs.refused: a count for the summary. */
	uint64_t refused = tw_load_relaxed(&tw_rs_head(&writer->rs, index)->defs_refused);
	int error = tw_writer_drain_queue(writer);

	if (!error)
		error = tw_writer_definitions(writer, index);
	if (!error)
		error = tw_writer_tell_counts(writer, index, true);
	if (!error)
		error = tw_writer_tell_no_ring(writer, index);
	/* This may have ended a segment by age: only an open segment can be marked as the last. */
	if (error >= 0)
		error = tw_writer_definitions(writer, index);
	if (error >= 0)
		error = tw_writer_tell_ends(writer, index, is_final);
	if (error < 0)
		return error;
	if (refused - image->refused_reported > TW_RB_LOST_MAX) {
		tw_writer_note_forged(writer, &image->is_forged);
		refused = image->refused_reported;
	}
	writer->store.stats.definitions_refused += refused - image->refused_reported;
	writer->store.account[TW_ACCOUNT_DEFINITIONS] += refused - image->refused_reported;
	image->refused_reported = refused;
	return tw_store_close_segment(&writer->store, &image->store,
				      TW_SEGMENT_LAST | (is_final ? TW_SEGMENT_FINAL : 0));
}
