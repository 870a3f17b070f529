/* SPDX-License-Identifier: Apache-2.0 */
/*
 * follow.c - follow.h: reads a capture that is still being recorded, as a stream.
 *
 *	round: note the time, ask the recorder to store all that is committed, wait for its answer; it says what then
 *	       waited for space in the rings, with an earlier time
 *	       -> list the whole blocks that the files have gained, hand them out (lanes.h)
 *	       -> a mark with the time noted: all events before it have been handed out
 *
 * The answer comes by the ring set, which this process maps as a member without an image; the recorder stops when it is
 * asked no more. Segments are found by their numbers, which have no gaps but where the recorder removes the oldest.
 */
#include "base/error.h"
#include "base/export.h"
#include "base/grow.h"
#include "pipeline/follow/lanes.h"
#include "pipeline/reader/stream_read.h"
#include "pipeline/recorder/folder.h"
#include "pipeline/recorder/store.h"
#include "ringbuf/ringset.h"
#include "tracewheel/follow.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* Between two rounds. */
#define PERIOD_NS UINT64_C(50000000)
/* How often a recorder that does not answer is looked at. */
#define ANSWER_NS UINT64_C(100000000)
/* So much is handed out before a mark inside a round. */
#define MARK_BYTES (UINT64_C(1) << 20)

#define TW_FOLLOW_REMOVED "segments were removed before they were read: the recording keeps too few (--keep)"
#define TW_FOLLOW_DIED	  "the recorder has died; `tracewheel recover` completes the capture"

struct follow_file {
	struct tw_segment_file file; /* fd -1: not open */
	bool is_listed;		     /* to its end: it is open only while its blocks are handed out */
	uint32_t lane;
	uint64_t at; /* all before it has been listed */
};

struct follow {
	int directory_fd;
	struct tw_rs rs;
	bool has_rs;
	struct tw_block_encoder *encoder;
	struct follow_file *files; /* in the order of their numbers */
	uint32_t count, capacity;
	uint32_t next_number; /* of the next segment */
	bool has_number;
	struct tw_lanes lanes;
	uint64_t oldest_ticks, newest_ticks; /* of all blocks of events; UINT64_MAX, 0: none yet */
	uint64_t from_ticks;
	uint64_t round_ticks; /* the mark of this round */
	uint64_t marked_ticks;
	uint64_t unmarked_bytes;
	uint32_t current; /* the file whose blocks were handed out last; UINT32_MAX: none */
	uint8_t *out;	  /* bytes to be handed out */
	size_t out_at, out_bytes, out_capacity;
	bool is_last; /* of the rounds */
	const char *cut;
	int error;
};

#define NONE UINT32_MAX

static void follow_close(void *self)
{
	struct follow *follow = self;

	for (uint32_t i = 0; i < follow->count; i++)
		tw_segment_file_close(&follow->files[i].file);
	free(follow->files);
	free(follow->out);
	tw_lanes_fini(&follow->lanes);
	tw_block_encoder_destroy(follow->encoder);
	if (follow->has_rs)
		tw_rs_detach(&follow->rs);
	if (follow->directory_fd >= 0)
		close(follow->directory_fd);
	free(follow);
}

/* ---- segments ---- */

static int open_number(const struct follow *follow, uint32_t number, struct tw_segment_file *out)
{
	int error = TW_ENOENT;

	/* It may be renamed between two attempts, once. */
	for (int i = 0; i < 3 && error == TW_ENOENT; i++) {
		char name[TW_SEGMENT_NAME_BYTES];

		tw_segment_name(number, i != 1, name);
		error = tw_segment_open(follow->directory_fd, name, out);
	}
	return error;
}

/* The smallest number of a segment from `from` on; UINT32_MAX: there is none. */
static uint32_t smallest_number(const struct follow *follow, uint32_t from)
{
	int fd = openat(follow->directory_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *directory = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *entry;
	uint32_t smallest = NONE;

	if (!directory && fd >= 0)
		close(fd);
	while (directory && (entry = readdir(directory)) != NULL) {
		uint32_t number;
		bool is_open;

		if (tw_segment_parse_name(entry->d_name, &number, &is_open) && number >= from && number < smallest)
			smallest = number;
	}
	if (directory)
		closedir(directory);
	return smallest;
}

static uint32_t lane_of(struct follow *follow, const struct tw_segment_header *header)
{
	for (uint32_t i = follow->count; i-- > 0;) {
		if (tw_segment_is_same_image(&follow->files[i].file.header, header))
			return follow->files[i].lane;
	}
	return tw_lanes_new(&follow->lanes);
}

static int add_file(struct follow *follow, const struct tw_segment_file *file)
{
	uint32_t lane = lane_of(follow, &file->header);

	if (lane == NONE || !tw_grow(follow->files, follow->count, follow->capacity))
		return TW_ENOMEM;
	follow->files[follow->count++] = (struct follow_file){.file = *file, .lane = lane, .at = sizeof file->header};
	return 0;
}

/* The next segment is not there: goes on with a later one, if there is one because the recorder has removed it. */
static bool skip_removed(struct follow *follow)
{
	uint32_t smallest = NONE;

	if (follow->count && follow->files[0].file.header.segments_kept)
		smallest = smallest_number(follow, follow->next_number);
	if (smallest == NONE || smallest <= follow->next_number)
		return false;
	follow->next_number = smallest;
	/* Before anything is handed out, what is there is the beginning. */
	if (follow->current != NONE)
		follow->cut = TW_FOLLOW_REMOVED;
	return true;
}

/* Opens the segments that are new. */
static int find_files(struct follow *follow)
{
	if (!follow->has_number) {
		follow->next_number = smallest_number(follow, 0);
		if (follow->next_number == NONE)
			return 0;
		follow->has_number = true;
	}
	for (;;) {
		struct tw_segment_file file;
		int error = open_number(follow, follow->next_number, &file);

		if (error == TW_ENOENT && skip_removed(follow)) {
			if (follow->cut)
				return TW_EDEAD;
			continue;
		}
		/* The header of a new segment may not be there yet. */
		if (error == TW_ENOENT || error == TW_EFORMAT)
			return 0;
		if (!error)
			error = add_file(follow, &file);
		if (error)
			return error;
		follow->next_number++;
	}
}

/* ---- blocks ---- */

static int add_piece(struct follow *follow, uint32_t index, const struct tw_segment_piece *piece)
{
	const struct follow_file *file = &follow->files[index];
	bool is_events = piece->is_block && piece->block.type == TW_BLOCK_EVENTS;
	const struct tw_lanes_piece lane = {.offset = file->at,
					    .bytes = piece->bytes,
					    .first_ticks = is_events ? piece->block.first_ticks : UINT64_MAX,
					    .last_ticks = is_events ? piece->block.last_ticks : UINT64_MAX,
					    .file = index,
					    .lane = file->lane};

	if (is_events && piece->block.first_ticks < follow->oldest_ticks)
		follow->oldest_ticks = piece->block.first_ticks;
	if (is_events && piece->block.last_ticks > follow->newest_ticks)
		follow->newest_ticks = piece->block.last_ticks;
	return tw_lanes_add(&follow->lanes, &lane) ? 0 : TW_ENOMEM;
}

/* Lists the whole blocks that a file has gained. */
static int list_file(struct follow *follow, uint32_t index)
{
	struct follow_file *file = &follow->files[index];
	struct tw_segment_piece piece = {.bytes = 0};
	struct stat st;
	int error = 0;

	if (file->is_listed)
		return 0;
	if (fstat(file->file.fd, &st) < 0)
		return TW_EIO;
	file->file.bytes = (uint64_t)st.st_size;
	while (!error && !piece.is_trailer && tw_segment_piece_at(&file->file, file->at, &piece) == 0) {
		error = add_piece(follow, index, &piece);
		file->at += piece.bytes;
	}
	file->is_listed = piece.is_trailer;
	if (file->is_listed && follow->current != index)
		tw_segment_file_close(&file->file);
	return error;
}

/* ---- rounds ---- */

static bool is_marked_live(const struct follow *follow)
{
	return faccessat(follow->directory_fd, TW_CAPTURE_LIVE_FILE, F_OK, 0) == 0;
}

/* Waits until all that is committed now is stored. False: the recording is over. */
static bool await_delivery(struct follow *follow)
{
	uint32_t number = tw_rs_delivery_want(&follow->rs);

	while (!tw_rs_delivery_wait(&follow->rs, number, ANSWER_NS)) {
		if (!is_marked_live(follow))
			return false;
		if (tw_rs_is_owner_gone(&follow->rs) && is_marked_live(follow)) {
			follow->cut = TW_FOLLOW_DIED;
			return false;
		}
	}
	return true;
}

static int begin_round(struct follow *follow)
{
	uint64_t ticks = tw_clock_ticks() - TW_MARK_MARGIN_NS * tw_clock_ticks_per_second() / 1000000000;
	int error;

	follow->is_last = !is_marked_live(follow) || !await_delivery(follow);
	if (!follow->is_last && tw_rs_delivered_ticks(&follow->rs) <= ticks)
		ticks = tw_rs_delivered_ticks(&follow->rs) - 1;
	follow->round_ticks = ticks;
	error = find_files(follow);
	for (uint32_t i = 0; i < follow->count && !error; i++)
		error = list_file(follow, i);
	tw_lanes_arrange(&follow->lanes);
	return error;
}

/* ---- bytes ---- */

/* Makes space for more bytes behind those to be handed out; NULL: no memory. */
static uint8_t *space(struct follow *follow, size_t bytes)
{
	if (!tw_grow_by(follow->out, follow->out_bytes, follow->out_capacity, bytes))
		return NULL;
	follow->out_bytes += bytes;
	return follow->out + follow->out_bytes - bytes;
}

static int put(struct follow *follow, const void *from, size_t bytes)
{
	uint8_t *to = space(follow, bytes);

	if (!to)
		return TW_ENOMEM;
	memcpy(to, from, bytes);
	return 0;
}

static int put_mark(struct follow *follow, uint64_t ticks)
{
	struct tw_block_header header = {.type = TW_BLOCK_MARK, .first_ticks = ticks, .last_ticks = ticks};
	const uint8_t *stored;

	follow->marked_ticks = ticks;
	follow->unmarked_bytes = 0;
	tw_block_encode_bytes(follow->encoder, &header, NULL, 0, &stored);
	return put(follow, &header, sizeof header);
}

/* The blocks that follow are of this file. */
static int turn_to(struct follow *follow, uint32_t index)
{
	struct follow_file *file = &follow->files[index];
	int error = 0;

	if (follow->current == index)
		return 0;
	if (follow->current != NONE && follow->files[follow->current].is_listed)
		tw_segment_file_close(&follow->files[follow->current].file);
	follow->current = index;
	if (file->file.fd < 0)
		error = open_number(follow, file->file.header.segment_number, &file->file);
	if (error)
		follow->cut = TW_FOLLOW_REMOVED;
	return error ? error : put(follow, &file->file.header, sizeof file->file.header);
}

/* One more block, of which the file has all bytes. */
static int put_piece(struct follow *follow, const struct tw_lanes_piece *piece)
{
	const struct follow_file *file = &follow->files[piece->file];
	uint64_t done = 0;
	int error = turn_to(follow, piece->file);
	uint8_t *to = error ? NULL : space(follow, piece->bytes);

	if (!to)
		return error ? error : TW_ENOMEM;
	while (done < piece->bytes) {
		ssize_t got = pread(file->file.fd, to + done, piece->bytes - done, (off_t)(piece->offset + done));

		if (got == 0 || (got < 0 && errno != EINTR))
			return TW_EIO;
		done += got > 0 ? (uint64_t)got : 0;
	}
	follow->unmarked_bytes += piece->bytes;
	return 0;
}

static void rest(void)
{
	const struct timespec period = {0, (long)PERIOD_NS};

	nanosleep(&period, NULL);
}

/* Makes the next bytes; none are left to be handed out. Returns 1, 0 at the end, or an error. */
static int produce(struct follow *follow)
{
	const struct tw_lanes_piece *piece = tw_lanes_take(&follow->lanes);
	int error = 0;

	follow->out_at = follow->out_bytes = 0;
	if (piece && piece->last_ticks >= follow->from_ticks) {
		/* Records that came after the round began are not all there, of any thread. */
		uint64_t low = piece->low <= follow->round_ticks ? piece->low - 1 : follow->round_ticks;

		if (low > follow->marked_ticks && follow->unmarked_bytes >= MARK_BYTES)
			error = put_mark(follow, low);
		if (!error)
			error = put_piece(follow, piece);
	} else if (!piece && follow->round_ticks > follow->marked_ticks) {
		error = put_mark(follow, follow->round_ticks);
	} else if (!piece && follow->is_last) {
		return 0;
	} else if (!piece) {
		rest();
		error = begin_round(follow);
	}
	return error ? error : 1;
}

static int64_t follow_read(void *self, void *to, size_t bytes)
{
	struct follow *follow = self;
	size_t left;

	while (follow->out_at == follow->out_bytes) {
		int more = follow->error ? follow->error : produce(follow);

		if (more <= 0) {
			follow->error = more;
			return more && !follow->cut ? TW_EIO : 0;
		}
	}
	left = follow->out_bytes - follow->out_at;
	bytes = bytes < left ? bytes : left;
	memcpy(to, follow->out + follow->out_at, bytes);
	follow->out_at += bytes;
	return (int64_t)bytes;
}

static void follow_from(void *self, uint64_t ns)
{
	struct follow *follow = self;
	const struct tw_segment_header *header = &follow->files[0].file.header;
	double ticks = ((double)ns - (double)header->clock.monotonic_ns) * (double)header->ticks_per_second / 1e9;

	/* The clock's rate is known to a millionth: what ends up to a second before is read. */
	ticks += (double)header->clock.ticks - (double)header->ticks_per_second;
	follow->from_ticks = ns && ticks > 0 ? (uint64_t)ticks : 0;
}

static const char *follow_cut(void *self)
{
	return ((struct follow *)self)->cut;
}

/* ---- opening ---- */

/* Maps the ring set that the mark in the folder names, if it was made for this folder. */
static int attach(struct follow *follow)
{
	char path[TW_RS_PATH_BYTES];
	int error = tw_store_read_mark(follow->directory_fd, path, sizeof path);

	if (error)
		return error == TW_ENOENT ? TW_EDEAD : error == TW_EFORMAT ? TW_ENOTSUP : error;
	error = tw_rs_attach(&follow->rs, path);
	if (error)
		return error == TW_ENOENT ? TW_EDEAD : error;
	follow->has_rs = true;
	if (!tw_folder_has_set(follow->directory_fd, follow->rs.text))
		return TW_EPERM;
	return tw_rs_is_owner_gone(&follow->rs) ? TW_EDEAD : 0;
}

/* Waits for the first event, or for the end. */
static int await_beginning(struct follow *follow)
{
	int error = begin_round(follow);

	while (!error && !follow->newest_ticks && !follow->is_last) {
		rest();
		error = begin_round(follow);
	}
	/* The recording ended before it had stored anything: its folder is removed. */
	return error ? error : follow->count ? 0 : TW_EDEAD;
}

static void take_times(const struct follow *follow, struct tw_capture *capture)
{
	size_t hint = 0;

	capture->info.is_live = true;
	if (!follow->newest_ticks)
		return;
	capture->info.zero_ns = capture->info.start_ns = tw_clockmap_ns(&capture->clocks, follow->oldest_ticks, &hint);
	capture->info.start_wall_ns = tw_clockmap_wall_ns(&capture->clocks, capture->info.start_ns);
	capture->info.end_ns = tw_clockmap_ns(&capture->clocks, follow->round_ticks, &hint);
	/* If the recorder has removed the oldest segments, the first ones here say when the recording began. */
	for (uint32_t i = 0; i < follow->count; i++) {
		uint64_t first_ns = follow->files[i].file.header.first_event_ns;

		if (first_ns && first_ns < capture->info.zero_ns)
			capture->info.zero_ns = first_ns;
	}
}

TW_API int tw_capture_follow(const char *path, struct tw_capture **out)
{
	struct follow *follow = path ? calloc(1, sizeof *follow) : NULL;
	struct tw_stream_source source = {follow_read, follow_from, follow_cut, follow_close, follow};
	int error;

	if (!follow)
		return path ? TW_ENOMEM : TW_EBADARG;
	follow->oldest_ticks = UINT64_MAX;
	follow->current = NONE;
	follow->directory_fd = tw_folder_open(path);
	error = follow->directory_fd < 0 ? follow->directory_fd : attach(follow);
	follow->encoder = tw_block_encoder_create();
	if (!error && !follow->encoder)
		error = TW_ENOMEM;
	if (!error)
		error = await_beginning(follow);
	if (error) {
		follow_close(follow);
		return error == -ENOTDIR ? TW_EFORMAT : error;
	}
	error = tw_stream_in_open(&source, out);
	if (!error)
		take_times(follow, *out);
	return error;
}
