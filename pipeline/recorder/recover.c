/* SPDX-License-Identifier: Apache-2.0 */
/*
 * recover.c - consumer.h: completes the capture of a dead recorder.
 *
 *	1 check that the ring set has no owner         2 close the segments that were cut
 *	3 read how far they go, lease by lease         4 store what the rings hold after that
 *	5 remove the ring set and the mark
 *
 * Each step may be repeated: what 4 stored is found by 3 the next time.
 *
 * The ring set may be gone, as after a restart of the machine. Then the capture ends with its last whole block, and has an
 * entry in its account (TW_ACCOUNT_CUT) from then on; and no segment says that the recording of its image ended with it.
 */
#include "base/checksum.h"
#include "base/error.h"
#include "base/export.h"
#include "base/sys.h"
#include "pipeline/reader/reader.h"
#include "pipeline/reader/scan.h"
#include "pipeline/recorder/folder.h"
#include "pipeline/recorder/recorder.h"
#include "pipeline/recorder/writer.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

struct recovery {
	struct tw_writer writer;
	struct tw_capture *known; /* what the segments hold; NULL: nothing */
	char ring_set[TW_RS_PATH_BYTES];
	bool has_rings;
	bool is_marked; /* a recording has owned the folder, */
	bool has_mark;	/* and the mark has the path of its rings */
	bool is_cut;	/* the rings are gone, and were needed */
};

/* ---- 2: segments that were cut off ---- */

static int note_block(void *context, uint64_t offset, const struct tw_block_header *header)
{
	tw_segment_note(context, offset, header);
	return 0;
}

static void ignore_damage(void *context, uint64_t offset, uint64_t bytes, int error, const char *reason)
{
}

/* Do the rings still hold all records of the block? Definitions are kept to the end. */
static bool is_in_rings(const struct recovery *recovery, const struct tw_block_header *header)
{
	const struct tw_rs *rs = &recovery->writer.rs;
	uint32_t count = recovery->has_rings ? rs->ring_count : 0;

	if (header->type != TW_BLOCK_EVENTS)
		return recovery->has_rings;
	for (uint32_t i = 0; i < count; i++) {
		const struct tw_writer_ring *ring = &recovery->writer.rings[i];

		/* Several rings may belong to one lease, each continuing the one before. */
		if (ring->lease != header->ring_lease || ring->is_bad || header->first_pos < ring->at.pos ||
		    header->end_pos > tw_rb_committed(tw_rs_ring(rs, i)))
			continue;
		/* PAIR rb.consume: acquire; the recorder that stored what precedes it is dead. */
		return tw_load_acquire(&tw_rs_ring(rs, i)->tail_pos) <= header->first_pos;
	}
	return false;
}

/*
 * The last block may be torn although its header is valid: a block that was written over the beginning of another,
 * which a full disk had refused. If the rings hold its records too, it is dropped.
 */
static int drop_torn_blocks(struct recovery *recovery, struct tw_segment *segment, const struct tw_segment_file *file)
{
	struct tw_block_decoder *decoder = tw_block_decoder_create();
	int error = decoder ? 0 : TW_ENOMEM;

	while (!error && segment->entry_count && !segment->has_lost_entries) {
		const struct tw_index_entry *last = &segment->entries[segment->entry_count - 1];

		error = tw_segment_read(file, last->offset, &last->header, decoder);
		if (error || !is_in_rings(recovery, &last->header) ||
		    tw_checksum64(tw_block_decoder_input(decoder), last->header.stored_bytes) ==
			    last->header.payload_checksum)
			break;
		tw_segment_forget_last(segment);
	}
	tw_block_decoder_destroy(decoder);
	return error == TW_EFORMAT ? 0 : error;
}

/*
 * The segment header is not valid: the file is kept, and readers report it; a file shorter than a header held
 * nothing.
 */
static int pass_over(const struct tw_store *store, const char *name)
{
	struct stat st;

	if (fstatat(store->directory_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode) &&
	    st.st_size < (off_t)sizeof(struct tw_segment_header))
		unlinkat(store->directory_fd, name, 0);
	return 0;
}

static int close_cut_segment(struct recovery *recovery, const char *name, uint32_t number)
{
	struct tw_store *store = &recovery->writer.store;
	struct tw_segment segment = {.directory_fd = store->directory_fd, .number = number, .io = store->io};
	const struct tw_segment_visitor visitor = {note_block, ignore_damage, &segment};
	struct tw_segment_found found = {0};
	struct tw_segment_file file;
	int error = tw_segment_open(store->directory_fd, name, &file);

	if (error == TW_EFORMAT || error == TW_EVERSION)
		return pass_over(store, name);
	if (error)
		return error;
	/* An index of this version would not fit it: the segment stays as it is, and readers scan it. */
	if (file.header.version != TW_FORMAT_VERSION) {
		tw_segment_file_close(&file);
		return 0;
	}
	segment.offset = sizeof file.header;
	error = tw_segment_scan(&file, &visitor, &found);
	if (!error)
		error = drop_torn_blocks(recovery, &segment, &file);
	tw_segment_file_close(&file);
	segment.fd = openat(store->directory_fd, name, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
	if (segment.fd < 0 && !error)
		error = tw_error_from_errno(errno);
	if (error) {
		free(segment.entries);
		if (segment.fd >= 0)
			close(segment.fd);
		return error;
	}
	/* Without a mark: a recorder that had ended left it open because the disk was full: later data is lost. */
	segment.totals.ending = recovery->is_cut     ? 0
				: recovery->has_mark ? TW_SEGMENT_LAST
						     : TW_SEGMENT_LAST | TW_SEGMENT_SHORT;
	tw_store_append_account(store, &segment);
	return tw_segment_close(&segment, store->encoder, true);
}

/* Calls the function, unless it is NULL, for each segment that was not closed. Returns their number, or an error. */
static int each_open_segment(struct recovery *recovery,
			     int (*fn)(struct recovery *recovery, const char *name, uint32_t number))
{
	int fd = openat(recovery->writer.store.directory_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *directory = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *entry;
	int error = directory ? 0 : TW_EIO, count = 0;

	while (!error && (entry = readdir(directory)) != NULL) {
		uint32_t number;
		bool is_open;

		if (!tw_segment_parse_name(entry->d_name, &number, &is_open) || !is_open)
			continue;
		count++;
		error = fn ? fn(recovery, entry->d_name, number) : 0;
	}
	if (directory)
		closedir(directory);
	else if (fd >= 0)
		close(fd);
	return error ? error : count;
}

static int close_cut_segments(struct recovery *recovery)
{
	int closed = each_open_segment(recovery, close_cut_segment);

	return closed < 0 ? closed : 0;
}

/* ---- 3, 4: the rings ---- */

/* Reads the state after the last block of a stream: the current tracee, and the last record. */
static int read_last_block(struct recovery *recovery, const struct tw_source_block *block, struct tw_writer_ring *ring)
{
	struct tw_block_decoder *decoder = tw_block_decoder_create();
	uint8_t *raw = malloc(TW_BLOCK_RAW_BYTES_MAX + TW_COLUMN_SLACK_BYTES);
	int error = decoder && raw ? 0 : TW_ENOMEM;

	ring->at.tracee_id = block->header.tracee_id;
	ring->at.run_seq = block->header.run_seq;
	/* A damaged block counts as stored: its records must not be stored twice. */
	if (!error && tw_source_load(recovery->known, block, decoder, raw) == 0) {
		for (uint32_t at = 0; at < block->header.raw_bytes; at += TW_RB_HEAD_BYTES(ring->last_head)) {
			ring->last_ticks = tw_get64(raw + at);
			ring->last_head = tw_record_head(raw + at);
			if (TW_RB_HEAD_KIND(ring->last_head) != TW_EVENT_SWITCH)
				continue;
			ring->at.tracee_id = TW_RB_HEAD_ID(ring->last_head);
			ring->at.run_seq = tw_get64(raw + at + TW_CODEC_HEAD_BYTES);
		}
	}
	tw_block_decoder_destroy(decoder);
	free(raw);
	return error;
}

static int continue_stream(struct recovery *recovery, const struct tw_source_stream *stream,
			   struct tw_writer_ring *ring)
{
	const struct tw_source_block *blocks = &recovery->known->blocks[stream->first_block];
	const struct tw_source_block *last = &blocks[stream->block_count - 1];

	if (last->header.end_pos > ring->at.pos)
		ring->at.pos = last->header.end_pos;
	ring->at.sequence = last->header.end_sequence;
	memcpy(ring->at.reported, last->header.lost, sizeof ring->at.reported);
	memcpy(ring->at.own, last->header.own, sizeof ring->at.own);
	ring->at.stored_events = 0;
	for (uint32_t i = 0; i < stream->block_count; i++)
		ring->at.stored_events += blocks[i].header.event_count;
	return read_last_block(recovery, last, ring);
}

static int continue_rings(struct recovery *recovery)
{
	struct tw_writer *writer = &recovery->writer;
	uint32_t count = tw_writer_scan(writer);
	int error = 0;

	for (uint32_t i = 0; !error && i < count; i++) {
		struct tw_writer_ring *ring = &writer->rings[i];
		const struct tw_rb_shared *shared = tw_rs_ring(&writer->rs, i);
		uint64_t tail_pos, committed_pos;

		if (!ring->lease || ring->is_bad)
			continue;
		/* PAIR rb.consume: acquire; the recorder that stored what precedes it is dead. */
		tail_pos = tw_load_acquire(&shared->tail_pos);
		committed_pos = tw_rb_committed(shared);
		if (tail_pos > ring->at.pos)
			ring->at.pos = tail_pos;
		for (uint32_t j = 0; recovery->known && !error && j < recovery->known->stream_count; j++) {
			if (recovery->known->streams[j].lease == ring->lease)
				error = continue_stream(recovery, &recovery->known->streams[j], ring);
		}
		/*
		 * The files have more of the stream than was in this ring: the rest is in the ring that grew from it.
		 */
		if (ring->at.pos > committed_pos && (ring->successor || tail_pos <= committed_pos))
			ring->at.pos = committed_pos;
	}
	return error;
}

static void continue_images(struct recovery *recovery)
{
	for (uint32_t i = 0; i < recovery->writer.rs.image_count; i++) {
		struct tw_writer_image *image = &recovery->writer.images[i];

		for (uint32_t j = 0; recovery->known && j < recovery->known->image_count; j++) {
			const struct tw_source_image *known = recovery->known->images[j];

			if (known->header.image_lease != image->store.lease)
				continue;
			image->store.segment_count = known->last_segment;
			image->store.events = known->events_through;
			memcpy(image->store.lost, known->lost_through, sizeof image->store.lost);
			image->defs_seen = known->catalog.log_end;
			image->no_ring_reported = known->no_ring_reported;
		}
	}
}

/* Drains a ring, and the rings that continue its stream. */
static int drain_stream(struct tw_writer *writer, uint32_t index)
{
	for (unsigned steps = 0; steps < 64; steps++) {
		uint32_t next;
		int stored = tw_writer_drain_ring(writer, index, 1);

		if (stored < 0)
			return stored;
		next = writer->rings[index].successor;
		if (!next)
			return tw_writer_tell_loss(writer, index);
		stored = tw_writer_end_ring(writer, index);
		if (stored < 0)
			return stored;
		index = next - 1;
	}
	return 0;
}

static int drain_rings(struct recovery *recovery)
{
	struct tw_writer *writer = &recovery->writer;
	bool is_overwriting = writer->rs.config.policy == TW_RB_OVERWRITE;

	for (uint32_t i = 0; i < writer->rs.ring_count; i++) {
		int stored = 0;

		if (!writer->rings[i].is_seen)
			continue;
		stored = is_overwriting ? tw_writer_snapshot_ring(writer, i) : drain_stream(writer, i);
		if (stored < 0)
			return stored;
	}
	return 0;
}

/* Adds an empty segment to an image: how it ends, and the account. */
static int append_empty(struct recovery *recovery, const struct tw_source_image *known, unsigned ending)
{
	struct tw_store_image image = {.lease = known->header.image_lease,
				       .process_start_time = known->header.process_start_time,
				       .start_ticks = known->header.image_start_ticks,
				       .process_id = known->header.process_id,
				       .parent_process_id = known->header.parent_process_id,
				       .segment_count = known->last_segment,
				       .events = known->events_through};
	int error;

	memcpy(image.lost, known->lost_through, sizeof image.lost);
	error = tw_store_open_segment(&recovery->writer.store, &image);
	if (error >= 0)
		error = tw_store_close_segment(&recovery->writer.store, &image, ending);
	free(image.closed);
	return error < 0 ? error : 0;
}

/* Were segments of the image stored after those that are known? */
static bool is_continued(const struct recovery *recovery, const struct tw_source_image *known)
{
	for (uint32_t i = 0; i < TW_RS_IMAGES_MAX; i++) {
		const struct tw_store_image *image = &recovery->writer.images[i].store;

		if (image->lease == known->header.image_lease && image->segment_count > known->last_segment)
			return true;
	}
	return false;
}

/*
 * The last segment of an image says that its recording ended there. If that segment was closed in time, and nothing
 * followed, an empty one says so.
 */
static int say_last_words(struct recovery *recovery)
{
	int error = 0;

	for (uint32_t i = 0; recovery->known && !error && i < recovery->known->image_count; i++) {
		const struct tw_source_image *known = recovery->known->images[i];

		if (!known->is_last && known->last_segment && !is_continued(recovery, known))
			error = append_empty(recovery, known, TW_SEGMENT_LAST);
	}
	return error;
}

/* Rings of images that cannot be opened are gone too, unless all of such an image was stored. */
static void count_gone_images(struct recovery *recovery)
{
	struct tw_writer *writer = &recovery->writer;

	for (uint32_t i = 0; i < writer->rs.image_count; i++) {
		/* RELAXED rs.slot: no process writes it any more, or one whose word is not believed. */
		uint64_t lease = tw_load_relaxed(&writer->rs.control->slots[i].lease);
		bool is_stored = !writer->rs.images[i].is_refused;

		for (uint32_t j = 0; recovery->known && j < recovery->known->image_count; j++)
			is_stored |= recovery->known->images[j]->header.image_lease == lease &&
				     recovery->known->images[j]->is_final;
		writer->store.account[TW_ACCOUNT_CUT] += !is_stored;
	}
}

/* Stores the account if no segment that was closed has it. */
static int say_cut(struct recovery *recovery)
{
	const struct tw_capture *known = recovery->known;
	const uint64_t *account = recovery->writer.store.account;

	if (!known || !known->image_count || known->reported[TW_ACCOUNT_CUT] >= account[TW_ACCOUNT_CUT])
		return 0;
	for (uint32_t i = 0; i < known->image_count; i++) {
		if (is_continued(recovery, known->images[i]))
			return 0;
	}
	return append_empty(recovery, known->images[0], known->images[0]->is_last ? TW_SEGMENT_LAST : 0);
}

static int store_rings(struct recovery *recovery)
{
	int error = continue_rings(recovery);

	if (error)
		return error;
	continue_images(recovery);
	error = drain_rings(recovery);
	return error ? error : tw_writer_end_images(&recovery->writer);
}

/* ---- all of it ---- */

/* Opens the ring set, if it was made for this folder: a mark may have been written by anybody. */
static int open_rings(struct recovery *recovery)
{
	struct tw_rs *rs = &recovery->writer.rs;
	int error = tw_rs_open_dead(rs, recovery->ring_set, false);

	if (!error && !tw_folder_has_set(recovery->writer.store.directory_fd, rs->text)) {
		tw_rs_detach(rs);
		error = TW_EPERM;
	}
	recovery->has_rings = error == 0;
	if (error)
		return error;
	tw_writer_scan(&recovery->writer);
	/* Without memory or descriptors for an image, its rings would count as empty, and be removed. */
	for (uint32_t i = 0; i < rs->image_count; i++) {
		/* RELAXED rs.scan: the owner is dead, and what it has not seen is no member's any more. */
		enum tw_rs_image_state state =
			(enum tw_rs_image_state)(tw_load_relaxed(&rs->control->slots[i].state) & 0xff);

		if (!rs->images[i].lease && (state == TW_RS_IMAGE_LIVE || state == TW_RS_IMAGE_ENDED))
			return TW_ENOMEM;
	}
	recovery->writer.store.account[TW_ACCOUNT_PROCESSES_WENT_ON] = tw_writer_count_living(&recovery->writer);
	tw_writer_tell_refusals(&recovery->writer);
	return 0;
}

/* 1 */
static int find_rings(struct recovery *recovery)
{
	struct tw_store *store = &recovery->writer.store;
	int error = tw_store_read_mark(store->directory_fd, recovery->ring_set, sizeof recovery->ring_set), open_count;

	if (error == TW_EFORMAT && tw_store_is_merge(store->directory_fd))
		return TW_ENOTSUP;
	if (error == TW_ENOENT)
		return 0;
	recovery->has_mark = error == 0;
	recovery->is_marked = true;
	/* A mark that was cut off itself names no rings. */
	if (error != TW_EFORMAT)
		error = error ? error : open_rings(recovery);
	if (error != TW_ENOENT && error != TW_EFORMAT)
		return error;
	/* There are none after a restart of the machine. They are not missed if all of them had been stored. */
	open_count = each_open_segment(recovery, NULL);
	recovery->is_cut = open_count || !tw_store_is_ended(store->directory_fd);
	store->account[TW_ACCOUNT_CUT] = recovery->is_cut;
	return open_count < 0 ? open_count : 0;
}

/* 3 */
static int find_known(struct recovery *recovery)
{
	const struct tw_capture_options options = {.no_workers = true};
	char path[64];
	int error;

	/* The folder that is written to, whatever its name leads to by now. */
	snprintf(path, sizeof path, "/proc/self/fd/%d", recovery->writer.store.directory_fd);
	error = tw_capture_open(path, &options, &recovery->known);

	if (error == TW_EFORMAT && recovery->is_marked)
		return 0;
	if (error || !recovery->known->image_count)
		return error;
	/* New segments belong to the same capture. */
	recovery->writer.store.header = recovery->known->images[0]->header;
	tw_store_clock(&recovery->writer.store.header.clock);
	return 0;
}

static int recover(struct recovery *recovery)
{
	int error = find_rings(recovery);

	if (!error)
		error = close_cut_segments(recovery);
	/* Removed empty segments leave no gap in the numbers. */
	if (!error)
		error = tw_store_renumber(&recovery->writer.store);
	if (!error)
		error = find_known(recovery);
	if (!error && recovery->has_rings) {
		count_gone_images(recovery);
		error = store_rings(recovery);
	}
	if (!error && recovery->has_mark && !recovery->is_cut)
		error = say_last_words(recovery);
	if (!error)
		error = say_cut(recovery);
	if (!error && recovery->is_marked && (!recovery->known || !recovery->known->info.segments))
		error = tw_store_leave_something(&recovery->writer.store);
	if (error)
		return error;
	if (recovery->has_rings)
		tw_rs_remove(recovery->ring_set);
	tw_store_unmark_live(&recovery->writer.store);
	return 0;
}

TW_API int tw_recover(const char *capture_path, struct tw_recorder_stats *stats)
{
	const struct tw_recorder_options options = {.path = capture_path};
	struct recovery *recovery = calloc(1, sizeof *recovery);
	struct tw_writer *writer;
	int error;

	if (!recovery)
		return TW_ENOMEM;
	writer = &recovery->writer;
	writer->is_dead = true;
	error = tw_writer_init(writer);
	if (!error)
		error = tw_store_create(&writer->store, &options, true);
	if (error)
		goto fini_writer;
	/* Recovered data is worth a sync. */
	writer->store.durable_ns = 1;
	error = recover(recovery);
	for (uint32_t i = 0; i < TW_RS_IMAGES_MAX; i++) {
		if (writer->images[i].store.is_open)
			tw_segment_abandon(&writer->images[i].store.segment);
	}
	if (stats)
		*stats = writer->store.stats;
	if (recovery->has_rings)
		tw_rs_detach(&writer->rs);
	tw_capture_close(recovery->known);
	tw_store_destroy(&writer->store);
fini_writer:
	tw_writer_fini(writer);
	free(recovery);
	return error;
}
