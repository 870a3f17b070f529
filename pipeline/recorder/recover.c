/* SPDX-License-Identifier: Apache-2.0 */
/*
 * recover.c - consumer.h: completes the capture of a dead recorder.
 *
 *	1 check that the ring set has no owner         2 close the segments that were cut
 *	3 read how far they go, lease by lease         4 store what the rings hold after that
 *	5 remove the ring set and the mark
 *
 * Each step may be repeated: what 4 stored is found by 3 the next time.
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
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

struct recovery {
	struct tw_writer writer;
	struct tw_capture *known; /* what the segments hold; NULL: nothing */
	char ring_set[256];
	bool has_rings;
	bool has_mark;
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
	/* A recorder that had ended left it open because the disk was full: later data is lost. */
	segment.totals.ending = TW_SEGMENT_LAST | (recovery->has_mark ? 0 : TW_SEGMENT_SHORT);
	tw_store_append_account(store, &segment);
	return tw_segment_close(&segment, store->encoder, true);
}

static int close_cut_segments(struct recovery *recovery)
{
	int fd = openat(recovery->writer.store.directory_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *directory = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *entry;
	int error = directory ? 0 : TW_EIO;

	while (!error && (entry = readdir(directory)) != NULL) {
		uint32_t number;
		bool is_open;

		if (tw_segment_parse_name(entry->d_name, &number, &is_open) && is_open)
			error = close_cut_segment(recovery, entry->d_name, number);
	}
	if (directory)
		closedir(directory);
	else if (fd >= 0)
		close(fd);
	return error;
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
	memcpy(ring->at.told, last->header.lost, sizeof ring->at.told);
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
			image->no_ring_told = known->no_ring_told;
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

/* Ends the images that have anything new, even if only definitions or losses without a ring. */
static int end_images(struct recovery *recovery)
{
	struct tw_writer *writer = &recovery->writer;

	for (uint32_t i = 0; i < tw_rs_image_count(&writer->rs); i++) {
		const struct tw_rs_seen_image *image = tw_rs_image(&writer->rs, i);
		enum tw_rs_image_state state = tw_rs_image_state(&writer->rs, i);
		bool is_dead, has_news;
		int error;

		if (state != TW_RS_IMAGE_LIVE && state != TW_RS_IMAGE_ENDED)
			continue;
		/* PAIR rs.defs: acquire; only to check whether there is more. */
		has_news = tw_load_acquire(&tw_rs_head(&writer->rs, i)->defs_committed_bytes) >
			   writer->images[i].defs_seen;
		/* RELAXED rs.no_ring: only to check whether there is more. */
		has_news |= tw_load_relaxed(&tw_rs_head(&writer->rs, i)->no_ring_lost) > writer->images[i].no_ring_told;
		if (!has_news && !writer->images[i].store.is_open)
			continue;
		is_dead = state == TW_RS_IMAGE_ENDED ||
			  tw_sys_is_process_gone(image->process_id, image->process_start_time);
		error = tw_writer_end_image(writer, i, is_dead);
		if (error)
			return error;
	}
	return 0;
}

/*
 * The last segment of an image says that its recording ended there. If that segment was closed in time, and nothing
 * followed, an empty one says so.
 */
static int say_last_words(struct recovery *recovery)
{
	for (uint32_t i = 0; recovery->known && i < recovery->known->image_count; i++) {
		const struct tw_source_image *known = recovery->known->images[i];
		struct tw_store_image image = {.lease = known->header.image_lease,
					       .process_start_time = known->header.process_start_time,
					       .start_ticks = known->header.image_start_ticks,
					       .process_id = known->header.process_id,
					       .parent_process_id = known->header.parent_process_id,
					       .segment_count = known->last_segment,
					       .events = known->events_through};
		bool is_continued = false;
		int error;

		for (uint32_t j = 0; j < TW_RS_IMAGES_MAX; j++)
			is_continued |= recovery->writer.images[j].store.lease == image.lease &&
					recovery->writer.images[j].store.segment_count > image.segment_count;
		if (known->is_last || !known->last_segment || is_continued)
			continue;
		memcpy(image.lost, known->lost_through, sizeof image.lost);
		error = tw_store_open_segment(&recovery->writer.store, &image);
		if (error >= 0)
			error = tw_store_close_segment(&recovery->writer.store, &image, TW_SEGMENT_LAST);
		free(image.closed);
		if (error < 0)
			return error;
	}
	return 0;
}

static int store_rings(struct recovery *recovery)
{
	int error = continue_rings(recovery);

	if (error)
		return error;
	continue_images(recovery);
	error = drain_rings(recovery);
	return error ? error : end_images(recovery);
}

/* ---- all of it ---- */

/* The processes that still run: what they do from now on is in no capture. */
static uint64_t count_living(const struct tw_rs *rs)
{
	uint64_t count = 0;

	for (uint32_t i = 0; i < tw_rs_image_count(rs); i++) {
		const struct tw_rs_seen_image *image = tw_rs_image(rs, i);

		count += tw_rs_image_state(rs, i) == TW_RS_IMAGE_LIVE &&
			 !tw_sys_is_process_gone(image->process_id, image->process_start_time);
	}
	return count;
}

/* 1 */
static int find_rings(struct recovery *recovery)
{
	struct tw_store *store = &recovery->writer.store;
	int error = tw_store_read_mark(store->directory_fd, recovery->ring_set, sizeof recovery->ring_set);

	if (error == TW_EFORMAT && tw_store_is_merge(store->directory_fd))
		return TW_ENOTSUP;
	recovery->has_mark = error == 0;
	if (error == TW_ENOENT || error == TW_EFORMAT)
		return 0;
	if (!error)
		error = tw_rs_open_dead(&recovery->writer.rs, recovery->ring_set);
	recovery->has_rings = error == 0;
	if (recovery->has_rings) {
		tw_writer_scan(&recovery->writer);
		store->account[TW_ACCOUNT_PROCESSES_WENT_ON] = count_living(&recovery->writer.rs);
		tw_writer_tell_refusals(&recovery->writer);
	}
	/* After a restart of the machine there is none. */
	return error == TW_ENOENT ? 0 : error;
}

/* 3 */
static int find_known(struct recovery *recovery, const char *path)
{
	const struct tw_capture_options options = {.no_workers = true};
	int error = tw_capture_open(path, &options, &recovery->known);

	if (error == TW_EFORMAT && recovery->has_mark)
		return 0;
	if (error || !recovery->known->image_count)
		return error;
	/* New segments belong to the same capture. */
	recovery->writer.store.header = recovery->known->images[0]->header;
	tw_store_clock(&recovery->writer.store.header.clock);
	return 0;
}

static int recover(struct recovery *recovery, const char *path)
{
	int error = find_rings(recovery);

	if (!error)
		error = close_cut_segments(recovery);
	/* Removed empty segments leave no gap in the numbers. */
	if (!error)
		error = tw_store_renumber(&recovery->writer.store);
	if (!error)
		error = find_known(recovery, path);
	if (!error && recovery->has_rings)
		error = store_rings(recovery);
	if (!error && recovery->has_mark)
		error = say_last_words(recovery);
	if (!error && recovery->has_mark && (!recovery->known || !recovery->known->info.segments))
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
	error = recover(recovery, capture_path);
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

/* ---- all ring sets of interrupted recordings ---- */

/* Does the mark of the capture name this ring set? */
static bool is_capture_of(const char *capture_path, const char *ring_set_path)
{
	char named[sizeof((struct recovery *)0)->ring_set];
	int fd = tw_folder_open(capture_path), error;

	if (fd < 0)
		return false;
	error = tw_store_read_mark(fd, named, sizeof named);
	close(fd);
	return error == 0 && strcmp(named, ring_set_path) == 0;
}

/*
 * Finds the capture by the line that recorder.c put into the set's text. A later recording may have moved it to
 * NAME.old; a capture that has moved elsewhere is not found.
 */
static void find_capture(const char *ring_set_path, const char *text, char *path, size_t bytes)
{
	const char *line = strncmp(text, TW_RECORDER_CAPTURE_KEY, strlen(TW_RECORDER_CAPTURE_KEY)) == 0
				   ? text
				   : strstr(text, "\n" TW_RECORDER_CAPTURE_KEY);
	int length;

	path[0] = '\0';
	if (!line)
		return;
	line += (*line == '\n') + strlen(TW_RECORDER_CAPTURE_KEY);
	length = (int)strcspn(line, "\n");
	for (int old = 0; old < 2; old++) {
		if ((size_t)snprintf(path, bytes, "%.*s%s", length, line, old ? ".old" : "") < bytes &&
		    is_capture_of(path, ring_set_path))
			return;
	}
	path[0] = '\0';
}

struct visit {
	void (*fn)(const struct tw_recover_set *set, void *arg);
	void *arg;
	bool is_cleaning;
	unsigned removed;
};

static void visit_set(const char *ring_set_path, const char *text, uint64_t bytes, void *arg)
{
	struct visit *visit = arg;
	char capture_path[PATH_MAX];
	struct tw_recover_set set = {ring_set_path, capture_path, bytes, 0};

	find_capture(ring_set_path, text, capture_path, sizeof capture_path);
	if (visit->is_cleaning) {
		set.error = capture_path[0] ? tw_recover(capture_path, NULL) : tw_rs_remove(ring_set_path);
		visit->removed += set.error == 0;
	}
	if (visit->fn)
		visit->fn(&set, visit->arg);
}

TW_API unsigned tw_recover_list(void (*fn)(const struct tw_recover_set *set, void *arg), void *arg)
{
	struct visit visit = {.fn = fn, .arg = arg};

	return tw_rs_list_dead(fn ? visit_set : NULL, &visit);
}

TW_API unsigned tw_recover_clean(void (*fn)(const struct tw_recover_set *set, void *arg), void *arg)
{
	struct visit visit = {.fn = fn, .arg = arg, .is_cleaning = true};

	tw_rs_list_dead(visit_set, &visit);
	return visit.removed;
}
