/* SPDX-License-Identifier: Apache-2.0 */
/* threads.c - names of threads and processes. */
#include "views/names/threads.h"
#include "views/names/names.h"
#include "views/output/output.h"
#include "base/search.h"

#include <stdio.h>
#include <stdlib.h>

/* A stream as a part of its thread's life. */
struct part {
	uint32_t image;
	int32_t thread_id;
	uint32_t tracee_id; /* the tracee of the thread, 0: none; unlike thread numbers of the system, it is
			     * not reused */
	uint32_t stream;
	uint64_t end_ns;
};

/* The parts of the current capture, sorted by thread; the last entry of a thread has its name. */
static struct part *parts;
static uint32_t part_count, known_streams;
static bool has_declared;
static const struct tw_capture *known_capture;
/* By image: its number among the images of its process, 0 where it is the only one; the start of the next one. */
static struct exec {
	uint32_t number;
	uint64_t next_ns;
} * execs;
static uint32_t exec_count;

static struct part part_of(const struct tw_capture *capture, const struct tw_capture_stream *stream)
{
	const struct tw_capture_tracee *tracee = tw_capture_tracee(capture, stream->image, stream->tracee_id);
	bool is_own = tracee && tracee->thread_id && tracee->thread_id == stream->thread_id;
	return (struct part){stream->image, stream->thread_id, is_own ? stream->tracee_id : 0, stream->stream,
			     stream->end_ns};
}

static int compare_threads(const struct part *a, const struct part *b)
{
	return TW_ORDER(a->image, b->image)
		       ?: TW_ORDER(a->thread_id, b->thread_id)
		       ?: TW_ORDER(a->tracee_id, b->tracee_id);
}

static int compare_parts(const void *x, const void *y)
{
	const struct part *a = x, *b = y;
	return compare_threads(a, b) ?: TW_ORDER(a->end_ns, b->end_ns) ?: TW_ORDER(a->stream, b->stream);
}

void tw_threads_forget(void)
{
	free(parts);
	free(execs);
	parts = NULL;
	execs = NULL;
	part_count = known_streams = exec_count = 0;
	known_capture = NULL;
}

static int compare_processes(const struct tw_capture_image *a, const struct tw_capture_image *b)
{
	return TW_ORDER(a->process_id, b->process_id)
		       ?: TW_ORDER(a->process_start, b->process_start)
		       ?: memcmp(a->boot_id, b->boot_id, sizeof a->boot_id);
}

static int compare_images(const void *x, const void *y)
{
	const struct tw_capture_image *a = *(const struct tw_capture_image *const *)x;
	const struct tw_capture_image *b = *(const struct tw_capture_image *const *)y;
	return compare_processes(a, b) ?: TW_ORDER(a->start_ns, b->start_ns) ?: TW_ORDER(a->image, b->image);
}

static void number_execs(const struct tw_capture *capture, uint32_t images)
{
	const struct tw_capture_image **sorted = calloc(images + (size_t)1, sizeof(const struct tw_capture_image *));
	execs = calloc(images + (size_t)1, sizeof *execs);
	if (!sorted || !execs) {
		free(sorted);
		return;
	}
	for (uint32_t i = 0; i < images; i++)
		sorted[i] = tw_capture_image(capture, i);
	qsort(sorted, images, sizeof *sorted, compare_images);
	for (uint32_t first = 0, next; first < images; first = next) {
		for (next = first + 1; next < images && compare_processes(sorted[first], sorted[next]) == 0;)
			next++;
		for (uint32_t i = first; i < next && next - first > 1; i++)
			execs[sorted[i]->image] =
				(struct exec){i - first + 1, i + 1 < next ? sorted[i + 1]->start_ns : 0};
	}
	exec_count = images;
	free(sorted);
}

/* Built again for a stream that has grown. */
static void update_table(const struct tw_capture *capture)
{
	struct tw_capture_info info;
	tw_capture_info(capture, &info);
	if (known_capture == capture && known_streams == info.streams)
		return;
	tw_threads_forget();
	known_capture = capture;
	known_streams = info.streams;
	parts = calloc(info.streams + (size_t)1, sizeof *parts);
	const struct tw_capture_stream *stream;
	for (uint32_t i = 0; parts && i < info.streams && (stream = tw_capture_stream(capture, i)); i++)
		parts[part_count++] = part_of(capture, stream);
	if (part_count)
		qsort(parts, part_count, sizeof *parts, compare_parts);
	number_execs(capture, info.images);
	has_declared = false;
	for (uint32_t i = 0; i < info.images && !has_declared; i++) {
		const struct tw_capture_tracee *tracee;
		uint32_t at = 0;
		while (!has_declared && (tracee = tw_capture_tracee_next(capture, i, &at)))
			has_declared = tracee->thread_id == 0;
	}
}

/* The stream of a thread that ended last; NULL: it has none. */
static const struct tw_capture_stream *last_stream(const struct tw_capture *capture, const struct part *thread)
{
	update_table(capture);
	size_t end = tw_search(i, part_count, compare_threads(&parts[i], thread) <= 0);
	return end && compare_threads(&parts[end - 1], thread) == 0 ? tw_capture_stream(capture, parts[end - 1].stream)
								    : NULL;
}

static const char *clean_name(const char *name, char *text)
{
	text[tw_clean(name, strlen(name), text, TW_THREAD_NAME_BYTES - 1)] = 0;
	return text;
}

const char *tw_thread_name(const struct tw_capture *capture, const struct tw_capture_stream *stream, char *text)
{
	const struct part thread = part_of(capture, stream);
	const struct tw_capture_stream *last = last_stream(capture, &thread);
	return clean_name(last ? last->thread_name : stream->thread_name, text);
}

size_t tw_node_text(const struct tw_capture *capture, uint32_t image, char *text)
{
	const struct tw_capture_image *is = tw_capture_image(capture, image);
	size_t bytes = 0;
	if (is && *is->node) {
		bytes = tw_clean(is->node, strlen(is->node), text, TW_NODE_TEXT_BYTES - 2);
		text[bytes++] = ':';
	}
	text[bytes] = 0;
	return bytes;
}

uint32_t tw_exec_number(const struct tw_capture *capture, uint32_t image)
{
	update_table(capture);
	return image < exec_count ? execs[image].number : 0;
}

uint64_t tw_exec_ends_ns(const struct tw_capture *capture, uint32_t image)
{
	update_table(capture);
	return image < exec_count ? execs[image].next_ns : 0;
}

static size_t number_and_name(uint32_t number, const char *name, uint32_t exec, char *text)
{
	const size_t capacity = TW_THREAD_TEXT_BYTES - TW_NODE_TEXT_BYTES;
	size_t bytes = (size_t)snprintf(text, capacity, "%u%s%s", number, *name ? " " : "", name);
	if (exec)
		bytes += (size_t)snprintf(text + bytes, capacity - bytes, " (exec %u)", exec);
	return bytes;
}

size_t tw_thread_text(const struct tw_capture *capture, const struct tw_capture_stream *stream, char *text)
{
	char name[TW_THREAD_NAME_BYTES];
	size_t bytes = tw_node_text(capture, stream->image, text);
	return bytes + number_and_name((uint32_t)stream->thread_id, tw_thread_name(capture, stream, name),
				       tw_exec_number(capture, stream->image), text + bytes);
}

uint32_t tw_process_thread(const struct tw_capture *capture, uint32_t image, uint32_t tracee_id)
{
	const struct tw_capture_tracee *tracee = tw_capture_tracee(capture, image, tracee_id);
	return tracee ? (uint32_t)tracee->thread_id : 0;
}

const char *tw_process_name(const struct tw_capture *capture, uint32_t image, uint32_t tracee_id, char *text)
{
	const struct tw_capture_tracee *tracee = tw_capture_tracee(capture, image, tracee_id);
	*text = 0;
	if (!tracee)
		return text;
	const struct part thread = {.image = image, .thread_id = tracee->thread_id, .tracee_id = tracee_id};
	const struct tw_capture_stream *last = tracee->thread_id ? last_stream(capture, &thread) : NULL;
	return clean_name(last && *last->thread_name ? last->thread_name : tracee->name, text);
}

size_t tw_process_text(const struct tw_capture *capture, uint32_t image, uint32_t tracee_id, char *text)
{
	size_t bytes = tw_node_text(capture, image, text);
	return bytes + tw_process_text_alone(capture, image, tracee_id, text + bytes);
}

size_t tw_process_text_alone(const struct tw_capture *capture, uint32_t image, uint32_t tracee_id, char *text)
{
	const size_t capacity = TW_THREAD_TEXT_BYTES - TW_NODE_TEXT_BYTES;
	char name[TW_THREAD_NAME_BYTES];
	uint32_t number = tw_process_thread(capture, image, tracee_id);
	tw_process_name(capture, image, tracee_id, name);
	if (number && !tw_processes_are_declared(capture))
		return number_and_name(number, name, tw_exec_number(capture, image), text);
	size_t bytes = tw_name_pid(capture, image, tracee_id, text, capacity - 1);
	bytes += (size_t)snprintf(text + bytes, capacity - bytes, "%s%s", *name ? " " : "", name);
	if (number)
		bytes += (size_t)snprintf(text + bytes, capacity - bytes, " %u", number);
	return bytes;
}

bool tw_processes_are_declared(const struct tw_capture *capture)
{
	update_table(capture);
	return has_declared;
}

bool tw_threads_have_names(const struct tw_capture *capture)
{
	const struct tw_capture_stream *stream;
	char first[TW_THREAD_NAME_BYTES] = "", name[TW_THREAD_NAME_BYTES];
	for (uint32_t i = 0; (stream = tw_capture_stream(capture, i)); i++) {
		tw_thread_name(capture, stream, i ? name : first);
		if (i && strcmp(first, name) != 0)
			return true;
	}
	return false;
}

uint32_t tw_thread_count(const struct tw_capture *capture)
{
	const struct tw_capture_stream *stream;
	uint32_t count = 0;
	for (uint32_t i = 0; (stream = tw_capture_stream(capture, i)); i++)
		count = stream->thread >= count ? stream->thread + 1 : count;
	return count;
}
