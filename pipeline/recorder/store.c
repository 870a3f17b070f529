/* SPDX-License-Identifier: Apache-2.0 */
/* store.c - the directory of a capture, and the segments of its images. */
#include "pipeline/recorder/store.h"
#include "pipeline/recorder/folder.h"
#include "base/assert.h"
#include "base/error.h"
#include "base/sys.h"
#include "ringbuf/ringset.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <unistd.h>

#define MARK_KEY   "ringset="
#define MARK_ENDED "ended=1\n"
#define MARK_BYTES 1024
/* For this long after a slow write, blocks go through the queue. */
#define SLOW_FOR_NS UINT64_C(1000000000)

void tw_store_clock(struct tw_format_clock *out)
{
	struct tw_clock_snapshot snapshot;

	tw_clock_snapshot(&snapshot);
	*out = (struct tw_format_clock){snapshot.ticks, snapshot.monotonic_ns, snapshot.realtime_ns,
					snapshot.boottime_ns};
}

static int fill_header(struct tw_store *store, const struct tw_recorder_options *options)
{
	struct tw_segment_header *header = &store->header;

	tw_clock_init();
	tw_sys_boot_id(header->boot_id);
	if (getrandom(&header->capture_id, sizeof header->capture_id, GRND_NONBLOCK) != sizeof header->capture_id)
		return TW_EIO;
	header->clock_source = (uint32_t)tw_clock_source();
	header->policy = (uint32_t)options->policy;
	tw_store_clock(&header->clock);
	return 0;
}

/* A stream has only a file descriptor: no directory, no mark, no files to close and remove. */
static int create_stream(struct tw_store *store, const struct tw_recorder_options *options)
{
	int error;

	if (options->policy == TW_RECORDER_OVERWRITE)
		return TW_EBADARG;
	error = tw_stream_out_open(&store->stream, options->stream_fd);
	if (error)
		return error;
	store->is_stream = true;
	store->counts_ns = options->counts_ns;
	store->next_number = 1;
	error = fill_header(store, options);
	store->encoder = tw_block_encoder_create();
	if (!error && !store->encoder)
		error = TW_ENOMEM;
	if (error)
		tw_store_destroy(store);
	return error;
}

int tw_store_create(struct tw_store *store, const struct tw_recorder_options *options, bool may_exist)
{
	bool has_others;
	int error = 0;

	memset(store, 0, sizeof *store);
	store->directory_fd = -1;
	store->stream.fd = -1;
	if (options->is_stream)
		return create_stream(store, options);
	if (!options->path || !options->path[0] || strlen(options->path) > TW_PATH_BYTES_MAX)
		return TW_EBADARG;
	strcpy(store->path, options->path);
	store->io = &tw_segment_system_io;
	store->segment_bytes = options->segment_bytes;
	store->segment_ns = options->segment_ns;
	store->segments_kept = options->segments_kept;
	store->durable_ns = options->durable_ns;
	error = fill_header(store, options);
	if (error)
		return error;
	if (!may_exist) {
		error = tw_folder_make(options);
		if (error)
			return error;
	}
	store->directory_fd = tw_folder_open(options->path);
	if (store->directory_fd < 0)
		return store->directory_fd;
	error = tw_folder_check(store->directory_fd, &store->next_number, &has_others);
	store->encoder = tw_block_encoder_create();
	if (!error && !store->encoder)
		error = TW_ENOMEM;
	if (!error && store->durable_ns)
		error = tw_syncer_create(&store->syncer);
	if (error)
		tw_store_destroy(store);
	return error;
}

int tw_store_renumber(struct tw_store *store)
{
	bool has_others;

	return tw_folder_check(store->directory_fd, &store->next_number, &has_others);
}

void tw_store_destroy(struct tw_store *store)
{
	tw_store_stop_queue(store);
	tw_syncer_destroy(store->syncer);
	store->syncer = NULL;
	tw_block_encoder_destroy(store->encoder);
	store->encoder = NULL;
	tw_stream_out_close(&store->stream);
	if (store->directory_fd >= 0)
		close(store->directory_fd);
	store->directory_fd = -1;
}

/* ---- the mark ---- */

int tw_store_mark_live(struct tw_store *store, const char *ring_set_path)
{
	char text[MARK_BYTES];

	if (store->is_stream)
		return 0;
	snprintf(text, sizeof text, MARK_KEY "%s\n", ring_set_path);
	/* After a power failure the mark tells a recording that was cut from one that ended on a full disk. */
	return tw_folder_put(store->directory_fd, TW_CAPTURE_LIVE_FILE, text, store->durable_ns != 0);
}

void tw_store_unmark_live(struct tw_store *store)
{
	if (store->is_stream)
		return;
	unlinkat(store->directory_fd, TW_CAPTURE_LIVE_FILE, 0);
}

void tw_store_mark_ended(const struct tw_store *store)
{
	int fd = openat(store->directory_fd, TW_CAPTURE_LIVE_FILE, O_WRONLY | O_APPEND | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0)
		return;
	/* If it does not fit, a death before the mark is removed leaves a capture that counts as cut off. */
	(void)!write(fd, MARK_ENDED, strlen(MARK_ENDED));
	if (store->durable_ns)
		fsync(fd);
	close(fd);
}

/* Reads the mark as a string of at most MARK_BYTES. Returns its length, or an error. */
static int read_mark(int directory_fd, char text[MARK_BYTES])
{
	int fd = openat(directory_fd, TW_CAPTURE_LIVE_FILE, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
	ssize_t got;

	if (fd < 0)
		return tw_error_from_errno(errno);
	got = read(fd, text, MARK_BYTES - 1);
	close(fd);
	text[got > 0 ? got : 0] = '\0';
	return got > 0 ? (int)got : TW_EFORMAT;
}

bool tw_store_is_merge(int directory_fd)
{
	char text[MARK_BYTES];

	return read_mark(directory_fd, text) > 0 &&
	       strncmp(text, TW_CAPTURE_LIVE_MERGE, strlen(TW_CAPTURE_LIVE_MERGE)) == 0;
}

bool tw_store_is_ended(int directory_fd)
{
	char text[MARK_BYTES];

	return read_mark(directory_fd, text) > 0 && strstr(text, "\n" MARK_ENDED);
}

int tw_store_read_mark(int directory_fd, char *ring_set_path, size_t bytes)
{
	char text[MARK_BYTES], *value, *end;
	int got = read_mark(directory_fd, text);

	if (got < 0)
		return got;
	value = strstr(text, MARK_KEY);
	if (!value)
		return TW_EFORMAT;
	value += strlen(MARK_KEY);
	end = strchr(value, '\n');
	if (!end || end == value || (size_t)(end - value) >= bytes)
		return TW_EFORMAT;
	memcpy(ring_set_path, value, (size_t)(end - value));
	ring_set_path[end - value] = '\0';
	return 0;
}

/* ---- segments ---- */

static struct tw_segment_header header_of(struct tw_store *store, const struct tw_store_image *image)
{
	struct tw_segment_header header;

	/*
	 * Only when it is needed: measuring it takes 2 ms, which have passed by the time the first program has begun.
	 */
	if (!store->header.ticks_per_second)
		store->header.ticks_per_second = tw_clock_ticks_per_second();
	header = store->header;
	header.image_lease = image->lease;
	header.process_start_time = image->process_start_time;
	header.image_start_ticks = image->start_ticks;
	header.process_id = image->process_id;
	header.parent_process_id = image->parent_process_id;
	/* In a stream the same header is repeated. */
	header.image_segment = image->segment_count + !image->is_open;
	header.segments_kept = store->segments_kept;
	header.events_before = image->events;
	memcpy(header.lost_before, image->lost, sizeof header.lost_before);
	if (store->first_ticks)
		header.first_event_ns = header.clock.monotonic_ns +
					(uint64_t)(int64_t)((double)(int64_t)(store->first_ticks - header.clock.ticks) *
							    1e9 / (double)header.ticks_per_second);
	return header;
}

/* Makes the following blocks of the stream belong to the image. Returns as tw_store_open_segment(). */
static int open_in_stream(struct tw_store *store, struct tw_store_image *image)
{
	struct tw_segment_header header = header_of(store, image);
	bool is_new = !image->is_open;
	int error;

	if (!is_new && store->stream_number == image->segment.number)
		return store->stream.error;
	if (is_new)
		image->segment = (struct tw_segment){.fd = -1, .number = store->next_number, .stream = &store->stream};
	error = tw_segment_begin_in_stream(&image->segment, &header);
	if (error)
		return error;
	store->stream_number = image->segment.number;
	store->stats.file_bytes += sizeof header;
	if (!is_new)
		return 0;
	store->next_number++;
	store->stats.segments++;
	image->segment_count++;
	image->is_open = true;
	image->opened_ns = tw_clock_monotonic_ns();
	return 1;
}

/* Records the duration of a write by this thread, which began at begun_ns. */
static void note_duration(struct tw_store *store, uint64_t begun_ns)
{
	uint64_t now_ns = tw_clock_monotonic_ns();

	if (store->wake && now_ns - begun_ns >= TW_WRITE_SLOW_NS)
		store->slow_ns = now_ns;
}

int tw_store_mark_stream(struct tw_store *store, uint64_t ticks, bool is_needed)
{
	struct tw_segment segment = {.fd = -1, .stream = &store->stream};
	int error;

	if (!store->stream_number || (!is_needed && store->marked_ticks >= store->last_ticks))
		return store->stream.error;
	error = tw_segment_mark_in_stream(&segment, store->encoder, ticks);
	if (!error)
		store->marked_ticks = ticks;
	return error;
}

int tw_store_open_segment(struct tw_store *store, struct tw_store_image *image)
{
	struct tw_segment_header header = header_of(store, image);
	uint64_t begun_ns;
	int error;

	if (store->is_stream)
		return open_in_stream(store, image);
	if (image->is_open)
		return 0;
	memset(&image->segment, 0, sizeof image->segment);
	image->segment.number = store->next_number;
	image->segment.directory_fd = store->directory_fd;
	image->segment.io = store->io;
	begun_ns = tw_clock_monotonic_ns();
	error = tw_segment_create(&image->segment, &header);
	note_duration(store, begun_ns);
	if (error == TW_EEXIST)
		store->next_number++;
	if (error)
		return error;
	store->next_number++;
	store->stats.segments++;
	image->segment_count++;
	store->stats.file_bytes += sizeof header;
	image->is_open = true;
	image->opened_ns = tw_clock_monotonic_ns();
	image->dirty_ns = 0;
	return 1;
}

/* Removes old segments, so that a limited number is kept: a recorder may run forever on a small disk. */
static void forget_oldest(struct tw_store *store, struct tw_store_image *image)
{
	const struct tw_segment *closed = &image->segment;
	char name[TW_SEGMENT_NAME_BYTES];

	if (!store->segments_kept)
		return;
	if (!image->closed)
		image->closed = calloc(store->segments_kept, sizeof *image->closed);
	if (!image->closed)
		return;
	if (image->closed_count == store->segments_kept) {
		if (store->syncer)
			tw_syncer_await(store->syncer, image->closed[0].number);
		tw_segment_name(image->closed[0].number, false, name);
		if (unlinkat(store->directory_fd, name, 0) == 0) {
			store->stats.segments_removed++;
			store->stats.events_removed += image->closed[0].events;
			store->stats.bytes_removed += image->closed[0].bytes;
		}
		image->closed_count--;
		memmove(image->closed, image->closed + 1, image->closed_count * sizeof *image->closed);
	}
	image->closed[image->closed_count++] =
		(struct tw_store_closed){closed->number, closed->totals.events, closed->offset};
}

void tw_store_append_account(struct tw_store *store, struct tw_segment *segment)
{
	struct tw_block_header header = {.type = TW_BLOCK_ACCOUNT};
	struct tw_format_account entries[TW_ACCOUNT_CAUSES] = {{0}};
	const uint8_t *stored;
	uint32_t count = 0;

	for (uint32_t cause = 0; cause < TW_ACCOUNT_CAUSES; cause++) {
		if (store->account[cause])
			entries[count++] = (struct tw_format_account){.cause = cause, .count = store->account[cause]};
	}
	if (!count)
		return;
	tw_store_clock(&header.clock);
	tw_block_encode_bytes(store->encoder, &header, entries, count * (uint32_t)sizeof *entries, &stored);
	if (tw_segment_append(segment, &header, stored))
		return;
	store->stats.file_bytes += tw_block_file_bytes(&header);
	store->stats.blocks++;
}

static int close_file(struct tw_store *store, struct tw_segment *segment)
{
	struct tw_segment_sealed sealed;
	int error;

	if (!store->syncer || segment->stream)
		return tw_segment_close(segment, store->encoder, store->durable_ns != 0);
	error = tw_segment_seal(segment, store->encoder, &sealed);
	if (!error)
		tw_syncer_publish(store->syncer, &sealed);
	return error;
}

int tw_store_await_synced(struct tw_store *store)
{
	uint64_t count = 0;
	int error = store->syncer ? tw_syncer_await_all(store->syncer, &count) : 0;

	store->stats.write_errors += count;
	if (error)
		store->stats.last_error = error;
	return error;
}

int tw_store_close_segment(struct tw_store *store, struct tw_store_image *image, unsigned ending)
{
	uint64_t before;
	int error;

	if (!image->is_open)
		return 0;
	TW_ASSERT(!image->segment.queued_bytes);
	/* Another image may have written since: then its segment would be the one to end. */
	error = store->is_stream ? open_in_stream(store, image) : 0;
	if (error >= 0)
		tw_store_append_account(store, &image->segment);
	before = image->segment.offset;
	image->segment.totals.ending =
		ending | (store->is_short ? TW_SEGMENT_SHORT : 0) | (store->is_stream ? TW_SEGMENT_MARKED : 0);
	image->is_open = false;
	if (error >= 0)
		error = close_file(store, &image->segment);
	if (error) {
		store->stats.write_errors++;
		store->stats.last_error = error;
		return error;
	}
	store->stats.file_bytes += image->segment.offset - before;
	if (!(ending & TW_SEGMENT_FINAL))
		forget_oldest(store, image);
	return 0;
}

int tw_store_leave_something(struct tw_store *store)
{
	struct tw_store_image nobody = {0};
	int error;

	if (store->stats.segments)
		return 0;
	error = tw_store_open_segment(store, &nobody);
	return error < 0 ? error : tw_store_close_segment(store, &nobody, TW_SEGMENT_FINAL | TW_SEGMENT_LAST);
}

static void note_stored(struct tw_store *store, struct tw_store_image *image, const struct tw_block_header *header)
{
	struct tw_recorder_stats *stats = &store->stats;

	bool has_events = header->type == TW_BLOCK_EVENTS && !(header->flags & TW_BLOCK_FLAG_STATES);

	if (has_events && (!store->first_ticks || header->first_ticks < store->first_ticks))
		store->first_ticks = header->first_ticks;
	if (header->last_ticks > store->last_ticks && (has_events || header->type != TW_BLOCK_EVENTS))
		store->last_ticks = header->last_ticks;
	stats->is_stalled = false;
	stats->blocks++;
	stats->events += header->event_count;
	image->events += header->event_count;
	stats->raw_bytes += header->raw_bytes;
	stats->file_bytes += tw_block_file_bytes(header);
	if (store->durable_ns && !image->dirty_ns)
		image->dirty_ns = tw_clock_monotonic_ns();
}

static void note_failed(struct tw_store *store, struct tw_store_image *image, int error)
{
	store->stats.write_errors++;
	store->stats.last_error = error;
	store->stats.is_stalled = true;
	/* A failing disk may accept another file; a full one accepts none. */
	if (error == TW_EIO)
		tw_store_close_segment(store, image, 0);
}

int tw_store_append(struct tw_store *store, struct tw_store_image *image, const struct tw_block_header *header,
		    const uint8_t *stored)
{
	uint64_t begun_ns = tw_clock_monotonic_ns();
	int error;

	TW_ASSERT(!image->segment.queued_bytes);
	error = tw_segment_append(&image->segment, header, stored);
	note_duration(store, begun_ns);
	if (error)
		note_failed(store, image, error);
	else
		note_stored(store, image, header);
	return error;
}

/* ---- the queue ---- */

bool tw_store_is_slow(struct tw_store *store)
{
	uint64_t queue_slow_ns;

	if (!store->slow_ns)
		return false;
	if (!store->queue && tw_write_queue_create(&store->queue, store->wake, store->wake_arg)) {
		/* Without a thread the store writes itself, as before. */
		store->wake = NULL;
		store->slow_ns = 0;
		return false;
	}
	if (!tw_write_queue_is_empty(store->queue))
		return true;
	queue_slow_ns = tw_write_queue_slow_ns(store->queue);
	if (queue_slow_ns > store->slow_ns)
		store->slow_ns = queue_slow_ns;
	if (tw_clock_monotonic_ns() - store->slow_ns >= SLOW_FOR_NS)
		store->slow_ns = 0;
	return store->slow_ns != 0;
}

int tw_store_queue_up(struct tw_store *store, struct tw_store_image *image, const struct tw_block_header *header,
		      const uint8_t *stored, const struct tw_write *as)
{
	uint64_t payload_bytes = tw_block_file_bytes(header) - sizeof *header;
	struct tw_write *write = malloc(sizeof *write + payload_bytes);

	if (!write)
		return TW_ENOMEM;
	*write = *as;
	write->fd = image->segment.fd;
	write->io = store->io;
	write->offset = image->segment.offset + image->segment.queued_bytes;
	write->header = *header;
	memcpy(write->stored, stored, header->stored_bytes);
	memset(write->stored + header->stored_bytes, 0, payload_bytes - header->stored_bytes);
	image->segment.queued_bytes += tw_block_file_bytes(header);
	tw_write_queue_add(store->queue, write);
	return 0;
}

void tw_store_note_written(struct tw_store *store, struct tw_store_image *image, const struct tw_write *write)
{
	image->segment.queued_bytes -= tw_block_file_bytes(&write->header);
	if (!write->error) {
		tw_segment_note(&image->segment, write->offset, &write->header);
		note_stored(store, image, &write->header);
	} else if (!image->segment.queued_bytes) {
		/*
		 * The last block of the segment in the queue: the segment may now be closed. The next blocks are
		 * written directly.
		 */
		store->slow_ns = 0;
		note_failed(store, image, write->error);
	}
}

void tw_store_stop_queue(struct tw_store *store)
{
	tw_write_queue_destroy(store->queue);
	store->queue = NULL;
	store->wake = NULL;
	store->slow_ns = 0;
}

bool tw_store_wants_rotation(const struct tw_store *store, const struct tw_store_image *image)
{
	if (!image->is_open || store->is_stream)
		return false;
	return (store->segment_bytes && image->segment.offset + image->segment.queued_bytes >= store->segment_bytes) ||
	       (store->segment_ns && tw_clock_monotonic_ns() - image->opened_ns >= store->segment_ns);
}

/* ---- the disk itself ---- */

bool tw_store_has_sync_failed(struct tw_store *store, const struct tw_store_image *image)
{
	int error = store->syncer && image->is_open ? tw_syncer_failed(store->syncer, image->segment.number) : 0;

	if (!error)
		return false;
	store->stats.write_errors++;
	store->stats.last_error = error;
	return true;
}

void tw_store_give_up_segment(struct tw_store_image *image)
{
	TW_ASSERT(!image->segment.queued_bytes);
	if (image->is_open)
		tw_segment_abandon(&image->segment);
	image->is_open = false;
}

void tw_store_sync(struct tw_store *store, struct tw_store_image *image, uint64_t now_ns)
{
	/* Blocks may have been stored after now_ns. */
	if (store->syncer && image->is_open && image->dirty_ns && now_ns >= image->dirty_ns &&
	    now_ns - image->dirty_ns >= store->durable_ns && tw_syncer_sync(store->syncer, &image->segment))
		image->dirty_ns = 0;
}

uint64_t tw_store_sync_due(const struct tw_store *store, const struct tw_store_image *image, uint64_t now_ns)
{
	uint64_t due_ns = image->dirty_ns + store->durable_ns;

	if (!image->is_open || !image->dirty_ns)
		return UINT64_MAX;
	return due_ns > now_ns ? due_ns - now_ns : 0;
}
