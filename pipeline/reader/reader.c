/* SPDX-License-Identifier: Apache-2.0 */
/* reader.c - capture.h: opens a capture, and answers questions about it. */
#include "pipeline/format/definitions.h"
#include "base/grow.h"
#include "pipeline/reader/reader.h"
#include "pipeline/reader/stream_read.h"
#include "base/error.h"
#include "base/export.h"
#include "base/search.h"
#include "base/sys.h"
#include "pipeline/format/event.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define WORKERS_MAX 8
/* The most damages that are listed. */
#define DAMAGES_MAX 10000

_Static_assert((int)TW_CAPTURE_OWN_WAIT == TW_OWN_TIME_WAIT && (int)TW_CAPTURE_OWN_SETUP == TW_OWN_TIME_SETUP,
	       "the public causes are those of the records");
_Static_assert(TW_CAPTURE_STAMP_MASK == TW_EVENT_FLAG_STAMP_MASK && TW_CAPTURE_FLAG_ARITY == TW_EVENT_FLAG_ARITY,
	       "and so are the flags");

void tw_source_note_damage(struct tw_capture *capture, uint32_t file, uint64_t offset, uint64_t bytes, int error,
			   const char *reason)
{
	struct tw_source_damage *damage;

	capture->info.damages++;
	if (file < capture->file_count)
		capture->files[file].is_damaged = true;
	if (capture->damage_count >= DAMAGES_MAX)
		return;
	damage = calloc(1, sizeof *damage);
	if (!damage || !tw_grow_one(capture->damages, capture->damage_count)) {
		free(damage);
		return;
	}
	memcpy(damage->file, capture->files[file].name, sizeof damage->file);
	damage->info = (struct tw_capture_damage){damage->file, offset, bytes, error, reason};
	capture->damages[capture->damage_count++] = damage;
}

/* A recorder still running removes the oldest segments if asked to. */
static bool is_removed(const struct tw_capture *capture, uint32_t index)
{
	const struct tw_source_file *file = &capture->files[index];
	char closed_name[TW_SEGMENT_NAME_BYTES];

	if (!capture->info.is_live || !file->segments_kept || capture->directory_fd < 0)
		return false;
	tw_segment_name(file->number, false, closed_name);
	return faccessat(capture->directory_fd, file->name, F_OK, 0) < 0 &&
	       faccessat(capture->directory_fd, closed_name, F_OK, 0) < 0;
}

void tw_source_note_block(struct tw_capture *capture, const struct tw_source_block *block, int error)
{
	struct tw_source_block *own = &capture->blocks[block - capture->blocks];
	struct tw_capture_stream *stream = &capture->streams[block->stream].info;
	uint64_t records = block->header.end_sequence - block->header.first_sequence;

	if (own->is_damaged)
		return;
	own->is_damaged = true;
	if (is_removed(capture, block->file)) {
		capture->info.events -= block->header.event_count;
		stream->events -= block->header.event_count;
		capture->removed_events += block->header.event_count;
		return;
	}
	tw_source_note_damage(capture, block->file, block->offset, tw_block_file_bytes(&block->header), error,
			      error == TW_EIO ? "the block cannot be read"
					      : "the block is damaged; its events are left out");
	/* The events that its header announced are lost. */
	capture->info.events -= block->header.event_count;
	capture->damaged_events += block->header.event_count;
	stream->events -= block->header.event_count;
	capture->info.damaged_records += records;
	stream->damaged_records += records;
}

/* ---- files ---- */

static int compare_files(const void *a, const void *b)
{
	const struct tw_source_file *left = a, *right = b;

	return TW_ORDER(left->number, right->number);
}

static int add_file(struct tw_capture *capture, const char *name, uint32_t number)
{
	struct tw_source_file *file;

	if (!tw_grow_one(capture->files, capture->file_count))
		return TW_ENOMEM;
	file = &capture->files[capture->file_count++];
	memset(file, 0, sizeof *file);
	strcpy(file->name, name);
	file->number = number;
	file->image = TW_CAPTURE_NONE;
	file->file.fd = -1;
	return 0;
}

static bool is_segment_name(const char *name)
{
	size_t bytes = strlen(name), suffix = strlen(TW_SEGMENT_SUFFIX);

	return bytes > suffix && bytes < TW_SOURCE_NAME_BYTES && strcmp(name + bytes - suffix, TW_SEGMENT_SUFFIX) == 0;
}

/* A segment that was renamed: its header has its number. Segments that cannot be read come last. */
static int add_renamed(struct tw_capture *capture, const char *name)
{
	struct tw_segment_file file;
	int error = tw_segment_open(capture->directory_fd, name, &file);

	if (error == TW_ENOMEM)
		return error;
	if (!error)
		tw_segment_file_close(&file);
	capture->is_piece = true;
	error = add_file(capture, name, error ? UINT32_MAX : file.header.segment_number);
	if (!error)
		capture->files[capture->file_count - 1].is_renamed = true;
	return error;
}

int tw_source_name_stream(struct tw_capture *capture)
{
	return add_file(capture, "stream", 0);
}

/* Lists the files of a capture directory. */
static int list_files(struct tw_capture *capture)
{
	int fd = openat(capture->directory_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *directory = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *entry;
	int error = 0;

	if (!directory) {
		if (fd >= 0)
			close(fd);
		return TW_EIO;
	}
	while (!error && (entry = readdir(directory)) != NULL) {
		uint32_t number;
		bool is_open;

		if (strcmp(entry->d_name, TW_CAPTURE_LIVE_FILE) == 0)
			capture->info.is_live = true;
		else if (tw_segment_parse_name(entry->d_name, &number, &is_open))
			error = add_file(capture, entry->d_name, number);
		else if (is_segment_name(entry->d_name))
			error = add_renamed(capture, entry->d_name);
	}
	closedir(directory);
	if (capture->file_count)
		qsort(capture->files, capture->file_count, sizeof *capture->files, compare_files);
	return error;
}

/* Called with the lock: closes the file that was used least recently, unless all are in use. */
static void make_space(struct tw_capture *capture)
{
	struct tw_source_file *oldest = NULL;

	if (capture->files_open < TW_SOURCE_FILES_OPEN)
		return;
	for (uint32_t i = 0; i < capture->file_count; i++) {
		struct tw_source_file *file = &capture->files[i];

		if (file->file.fd >= 0 && !file->users && (!oldest || file->last_use < oldest->last_use))
			oldest = file;
	}
	if (oldest) {
		tw_segment_file_close(&oldest->file);
		capture->files_open--;
	}
}

struct tw_segment_file *tw_source_use_file(struct tw_capture *capture, uint32_t index)
{
	struct tw_source_file *file = &capture->files[index];
	int error = 0;

	pthread_mutex_lock(&capture->lock);
	if (file->file.fd < 0) {
		char closed_name[TW_SEGMENT_NAME_BYTES];

		make_space(capture);
		/* The recorder may have closed and renamed it since. */
		tw_segment_name(file->number, false, closed_name);
		error = tw_segment_open(capture->directory_fd, file->name, &file->file);
		if (error == TW_ENOENT && !file->is_renamed)
			error = tw_segment_open(capture->directory_fd, closed_name, &file->file);
		capture->files_open += error == 0;
	}
	if (!error) {
		file->users++;
		file->last_use = ++capture->uses;
	}
	pthread_mutex_unlock(&capture->lock);
	return error ? NULL : &file->file;
}

void tw_source_unuse_file(struct tw_capture *capture, uint32_t index)
{
	pthread_mutex_lock(&capture->lock);
	capture->files[index].users--;
	pthread_mutex_unlock(&capture->lock);
}

/* The stored bytes of a block, into the decoder's input. */
static int read_stored(struct tw_capture *capture, const struct tw_source_block *block,
		       struct tw_block_decoder *decoder)
{
	struct tw_segment_file *file = tw_source_use_file(capture, block->file);
	int error;

	if (!file)
		return TW_EIO;
	error = tw_segment_read(file, block->offset, &block->header, decoder);
	tw_source_unuse_file(capture, block->file);
	return error;
}

int tw_source_load(struct tw_capture *capture, const struct tw_source_block *block, struct tw_block_decoder *decoder,
		   uint8_t *raw)
{
	int error = read_stored(capture, block, decoder);

	return error ? error : tw_block_decode_events(decoder, &block->header, raw);
}

int tw_source_check(struct tw_capture *capture, const struct tw_source_block *block, struct tw_block_decoder *decoder)
{
	int error = read_stored(capture, block, decoder);

	return error ? error : tw_block_decode_check(decoder, &block->header);
}

/* ---- opening ---- */

static uint32_t default_workers(const struct tw_capture_options *options)
{
	int processors = tw_sys_processors() - 1;

	if (options && options->no_workers)
		return 0;
	if (options && options->workers)
		return options->workers < WORKERS_MAX ? options->workers : WORKERS_MAX;
	return processors < 1 ? 0 : processors > WORKERS_MAX ? WORKERS_MAX : (uint32_t)processors;
}

TW_API int tw_capture_open(const char *path, const struct tw_capture_options *options, struct tw_capture **out)
{
	struct tw_capture *capture;
	int error;

	if (!path)
		return TW_EBADARG;
	capture = calloc(1, sizeof *capture);
	if (!capture)
		return TW_ENOMEM;
	pthread_mutex_init(&capture->lock, NULL);
	capture->workers = default_workers(options);
	capture->info.has_moments_only = true;
	capture->directory_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (capture->directory_fd < 0)
		error = errno == ENOTDIR ? TW_EFORMAT : tw_error_from_errno(errno);
	else
		error = list_files(capture);
	if (!error) {
		tw_source_choose_clock(capture);
		error = tw_source_read_asked(capture);
	}
	if (!error)
		error = tw_source_list_segments(capture);
	if (!error)
		error = tw_source_arrange(capture);
	if (error) {
		tw_capture_close(capture);
		return error;
	}
	*out = capture;
	return 0;
}

TW_API int tw_capture_open_stream_file(int fd, const struct tw_capture_options *options, struct tw_capture **out)
{
	struct tw_capture *capture = calloc(1, sizeof *capture);
	int error;

	if (!capture)
		return TW_ENOMEM;
	pthread_mutex_init(&capture->lock, NULL);
	capture->workers = default_workers(options);
	capture->info.has_moments_only = true;
	capture->directory_fd = -1;
	error = tw_source_name_stream(capture);
	if (!error)
		error = tw_segment_open_stream(fd, &capture->files[0].file);
	if (!error)
		error = tw_source_list_stream(capture);
	if (!error)
		error = tw_source_arrange(capture);
	if (error) {
		tw_capture_close(capture);
		return error;
	}
	*out = capture;
	return 0;
}

TW_API void tw_capture_close(struct tw_capture *capture)
{
	if (!capture)
		return;
	tw_stream_in_destroy(capture->stream_in);
	for (uint32_t i = 0; i < capture->file_count; i++)
		tw_segment_file_close(&capture->files[i].file);
	for (uint32_t i = 0; i < capture->image_count; i++) {
		tw_catalog_fini(&capture->images[i]->catalog);
		free(capture->images[i]->losses);
		free(capture->images[i]);
	}
	for (uint32_t i = 0; i < capture->damage_count; i++)
		free(capture->damages[i]);
	free(capture->damages);
	free(capture->recordings);
	free(capture->asked);
	free(capture->holes);
	free(capture->images);
	free(capture->files);
	free(capture->streams);
	free(capture->blocks);
	tw_clockmap_fini(&capture->clocks);
	if (capture->directory_fd >= 0)
		close(capture->directory_fd);
	pthread_mutex_destroy(&capture->lock);
	free(capture);
}

/* ---- queries ---- */

TW_API const char *tw_lost_cause_name(unsigned cause)
{
	static const char *const names[TW_LOST_CAUSES] = {"full", "too_big", "nested", "no_ring"};

	return cause < TW_LOST_CAUSES ? names[cause] : "unknown";
}

TW_API void tw_capture_info(const struct tw_capture *capture, struct tw_capture_info *out)
{
	*out = capture->info;
	out->is_complete = capture->info.is_complete && capture->account.is_complete && !capture->info.damages &&
			   !capture->info.is_live;
}

TW_API const struct tw_capture_damage *tw_capture_damage(const struct tw_capture *capture, uint32_t number)
{
	return number < capture->damage_count ? &capture->damages[number]->info : NULL;
}

TW_API const struct tw_capture_stream *tw_capture_stream(const struct tw_capture *capture, uint32_t number)
{
	return number < capture->stream_count ? &capture->streams[number].info : NULL;
}

TW_API const struct tw_capture_image *tw_capture_image(const struct tw_capture *capture, uint32_t number)
{
	return number < capture->image_count ? &capture->images[number]->info : NULL;
}

TW_API uint64_t tw_capture_no_ring_lost(const struct tw_capture *capture, uint32_t image, uint64_t from_ns,
					uint64_t to_ns)
{
	const struct tw_source_image *source = image < capture->image_count ? capture->images[image] : NULL;
	uint64_t lost = 0;

	if (!source || (!from_ns && !to_ns))
		return source ? source->info.no_ring_lost : 0;
	for (uint32_t i = 0; i < source->loss_count; i++) {
		const struct tw_rb_loss_record *loss = &source->losses[i];

		if (tw_capture_ns(capture, loss->record.ticks) >= from_ns &&
		    (!to_ns || tw_capture_ns(capture, loss->first_ticks) < to_ns))
			lost += loss->lost[TW_LOST_NO_RING];
	}
	return lost;
}

TW_API const struct tw_capture_segment *tw_capture_segment(const struct tw_capture *capture, uint32_t number)
{
	for (uint32_t i = 0; i < capture->file_count && capture->directory_fd >= 0; i++) {
		if (capture->files[i].is_listed && !number--)
			return &capture->files[i].info;
	}
	return NULL;
}

static const struct tw_catalog *catalog_of(const struct tw_capture *capture, uint32_t image)
{
	static const struct tw_catalog none;

	return image < capture->image_count ? &capture->images[image]->catalog : &none;
}

TW_API const struct tw_capture_module *tw_capture_module(const struct tw_capture *capture, uint32_t image, uint32_t id)
{
	return tw_catalog_find(&catalog_of(capture, image)->modules, id);
}

TW_API const struct tw_capture_function *tw_capture_function(const struct tw_capture *capture, uint32_t image,
							     uint32_t id)
{
	return tw_catalog_find(&catalog_of(capture, image)->functions, id);
}

TW_API const struct tw_capture_place *tw_capture_place(const struct tw_capture *capture, uint32_t image, uint32_t id)
{
	return tw_catalog_find(&catalog_of(capture, image)->places, id);
}

TW_API const struct tw_capture_tracee *tw_capture_tracee(const struct tw_capture *capture, uint32_t image, uint32_t id)
{
	return tw_catalog_find(&catalog_of(capture, image)->tracees, id);
}

TW_API const struct tw_capture_session *tw_capture_session(const struct tw_capture *capture, uint32_t image,
							   uint32_t index)
{
	return tw_catalog_find(&catalog_of(capture, image)->sessions, index);
}

TW_API const struct tw_layout *tw_capture_layout(const struct tw_capture *capture, uint32_t image, uint32_t function_id)
{
	return tw_catalog_find(&catalog_of(capture, image)->layouts, function_id);
}

TW_API const char *tw_capture_atom(const struct tw_capture *capture, uint32_t image, uint32_t id, size_t *bytes)
{
	const struct tw_catalog_text *text = tw_catalog_find(&catalog_of(capture, image)->atoms, id);

	if (!text)
		return NULL;
	*bytes = text->bytes;
	return text->text;
}

TW_API const struct tw_capture_module *tw_capture_module_next(const struct tw_capture *capture, uint32_t image,
							      uint32_t *at)
{
	return tw_catalog_next(&catalog_of(capture, image)->modules, at);
}

TW_API const struct tw_capture_function *tw_capture_function_next(const struct tw_capture *capture, uint32_t image,
								  uint32_t *at)
{
	return tw_catalog_next(&catalog_of(capture, image)->functions, at);
}

TW_API const struct tw_capture_place *tw_capture_place_next(const struct tw_capture *capture, uint32_t image,
							    uint32_t *at)
{
	return tw_catalog_next(&catalog_of(capture, image)->places, at);
}

TW_API const struct tw_capture_tracee *tw_capture_tracee_next(const struct tw_capture *capture, uint32_t image,
							      uint32_t *at)
{
	return tw_catalog_next(&catalog_of(capture, image)->tracees, at);
}

TW_API const struct tw_capture_session *tw_capture_session_next(const struct tw_capture *capture, uint32_t image,
								uint32_t *at)
{
	return tw_catalog_next(&catalog_of(capture, image)->sessions, at);
}

TW_API const char *tw_capture_note_next(const struct tw_capture *capture, uint32_t image, uint32_t *at)
{
	const struct tw_catalog_text *text = tw_catalog_next(&catalog_of(capture, image)->notes, at);

	return text ? text->text : NULL;
}

TW_API const uint64_t *tw_capture_descriptor_next(const struct tw_capture *capture, uint32_t image, uint32_t *at,
						  uint32_t *word_count)
{
	const struct tw_catalog_text *words = tw_catalog_next(&catalog_of(capture, image)->descriptors, at);

	if (!words)
		return NULL;
	*word_count = (uint32_t)(words->bytes / 8);
	return (const uint64_t *)(const void *)words->text;
}

TW_API const struct tw_capture_pointer *tw_capture_pointer_next(const struct tw_capture *capture, uint32_t image,
								uint32_t *at)
{
	return tw_catalog_next(&catalog_of(capture, image)->pointers, at);
}

TW_API bool tw_capture_counted_next(const struct tw_capture *capture, uint32_t image, uint32_t *at,
				    struct tw_capture_counted *out)
{
	const struct tw_catalog_counted *def = tw_catalog_next(&catalog_of(capture, image)->counted, at);

	if (def)
		*out = (struct tw_capture_counted){def->place_id,     tw_capture_ns(capture, def->since_ticks),
						   def->longer_ns,    def->has_condition ? def->condition : NULL,
						   def->has_children, def->is_child};
	return def != NULL;
}

TW_API const struct tw_capture_count *tw_capture_count_next(const struct tw_capture *capture, uint32_t image,
							    uint32_t *at)
{
	return tw_catalog_next_count(catalog_of(capture, image), at);
}

TW_API const struct tw_capture_aggregate *tw_capture_aggregate_next(const struct tw_capture *capture, uint32_t image,
								    uint32_t *at)
{
	return tw_catalog_next(&catalog_of(capture, image)->aggregates, at);
}

TW_API uint64_t tw_capture_ns(const struct tw_capture *capture, uint64_t ticks)
{
	size_t hint = 0;

	return tw_clockmap_ns(&capture->clocks, ticks, &hint);
}

TW_API void tw_capture_clock_at(const struct tw_capture *capture, uint64_t ticks, struct tw_capture_clock *clock)
{
	tw_clockmap_line(&capture->clocks, ticks, clock);
}

TW_API uint64_t tw_capture_own_ns(const struct tw_capture *capture, const struct tw_capture_event *event)
{
	uint64_t end_ticks;

	if (event->kind != TW_EVENT_OWN_TIME || !event->payload_words ||
	    __builtin_add_overflow(event->ticks, event->payload[0], &end_ticks))
		return 0;
	end_ticks = tw_capture_ns(capture, end_ticks);
	return end_ticks > event->time_ns ? end_ticks - event->time_ns : 0;
}

TW_API const char *tw_capture_own_name(unsigned why)
{
	return why == TW_OWN_TIME_WAIT ? "wait" : why == TW_OWN_TIME_SETUP ? "setup" : "unknown";
}

TW_API const char *tw_capture_state_name(unsigned state)
{
	static const char *const names[TW_CAPTURE_STATES] = {"unknown", "running", "preempted", "off"};

	return names[state < TW_CAPTURE_STATES ? state : TW_CAPTURE_STATE_UNKNOWN];
}

TW_API uint64_t tw_capture_wall_ns(const struct tw_capture *capture, uint64_t ns)
{
	return tw_clockmap_wall_ns(&capture->clocks, ns);
}

TW_API uint64_t tw_capture_of_wall(const struct tw_capture *capture, uint64_t wall_ns)
{
	return tw_clockmap_of_wall(&capture->clocks, wall_ns);
}

TW_API uint64_t tw_capture_boot_ns(const struct tw_capture *capture, uint64_t ns)
{
	return tw_clockmap_boot_ns(&capture->clocks, ns);
}
