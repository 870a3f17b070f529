/* SPDX-License-Identifier: Apache-2.0 */
/*
 * flight.c - consumer.h: writes what the rings of a flight recorder hold as a capture of its own.
 *
 *	1 open a private view of the ring set             2 copy all rings, while threads write them
 *	3 store the copies in a folder NAME.part-PID      4 give the folder its name, if no other has it
 *
 * Everything is read anew, from the ring set alone: the capture stands for itself, and neither the owner nor another
 * process that does the same at this moment is asked.  All rings are copied before any is stored, because encoding them
 * takes much longer, and rings are overwritten meanwhile.
 *
 * The folder of step 3 has a name that no reader takes for a capture to show.  One that is left by a process that was
 * killed is removed by the next.
 */
#include "base/error.h"
#include "base/export.h"
#include "base/sys.h"
#include "pipeline/format/definitions.h"
#include "pipeline/recorder/copies.h"
#include "pipeline/recorder/folder.h"
#include "pipeline/recorder/recorder.h"
#include "pipeline/recorder/writer.h"
#include "tracewheel/flight.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define NAME_END ".tw"
#define PART	 ".part-"
/* The longest that follow: -99999.tw, .part-2147483647. */
#define NAME_END_BYTES 32
#define NUMBERS_MAX    100000
#define REASON_BYTES   400
/* The first step takes no longer: its caller may have to show others that it lives.  The second copies what is left. */
#define COPY_NS UINT64_C(1000000000)
/* Encoded blocks that wait for a disk. */
#define AHEAD_BYTES (UINT64_C(64) << 20)

struct tw_flight_copy {
	const struct tw_flight_options *options;
	struct tw_writer writer;
	struct tw_writer_copy *copies; /* by ring */
	uint32_t copy_count;
	uint64_t begun_ns, copied_ns;
	char base[PATH_MAX - NAME_END_BYTES]; /* the path of the capture without NAME_END */
	char part[PATH_MAX];
};

/* ---- 1: what is asked for ---- */

static bool ends_with(const char *text, size_t bytes, const char *end)
{
	return bytes >= strlen(end) && strncmp(text + bytes - strlen(end), end, strlen(end)) == 0;
}

/* The path of the capture, of the options or of the recorder; both without their ends. */
static int find_base(struct tw_flight_copy *flight)
{
	const char *path = flight->options->path;
	int line_bytes = 0;
	size_t bytes = path ? strlen(path) : 0;

	if (!path) {
		path = tw_folder_line(flight->writer.rs.text, TW_RECORDER_CAPTURE_KEY, &line_bytes);
		bytes = (size_t)line_bytes;
		if (!path)
			return TW_EBADARG;
		if (ends_with(path, bytes, TW_FLIGHT_END))
			bytes -= strlen(TW_FLIGHT_END);
	}
	if (ends_with(path, bytes, NAME_END))
		bytes -= strlen(NAME_END);
	if (!bytes || bytes >= sizeof flight->base)
		return TW_EBADARG;
	memcpy(flight->base, path, bytes);
	flight->base[bytes] = '\0';
	return 0;
}

/* Removes folders of processes that are gone; never any but those of this capture's name. */
static void remove_parts(const struct tw_flight_copy *flight)
{
	char folder[PATH_MAX], path[2 * PATH_MAX];
	const char *slash = strrchr(flight->base, '/');
	const char *name = slash ? slash + 1 : flight->base;
	const struct dirent *entry;
	DIR *directory;

	snprintf(folder, sizeof folder, "%.*s", slash ? (int)(slash - flight->base) + 1 : 1,
		 slash ? flight->base : ".");
	directory = opendir(folder);
	while (directory && (entry = readdir(directory))) {
		const char *rest = entry->d_name + strlen(name);
		int process_id;

		if (strncmp(entry->d_name, name, strlen(name)) != 0 || strncmp(rest, PART, strlen(PART)) != 0)
			continue;
		process_id = atoi(rest + strlen(PART));
		snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
		if (process_id > 0 && (process_id == getpid() || !tw_sys_is_process_there(process_id)))
			tw_store_remove(path);
	}
	if (directory)
		closedir(directory);
}

/* In ticks, a moment of CLOCK_MONOTONIC before now. */
static uint64_t ticks_of(uint64_t ns)
{
	struct tw_clock_snapshot now;
	double ago;

	tw_clock_snapshot(&now);
	if (!ns || ns >= now.monotonic_ns)
		return now.ticks;
	ago = (double)(now.monotonic_ns - ns) * (double)tw_clock_ticks_per_second() / 1e9;
	return ago < (double)now.ticks ? now.ticks - (uint64_t)ago : 0;
}

/* ---- 2, 3 ---- */

static bool is_of_call(const struct tw_flight_copy *flight, uint32_t index)
{
	int32_t thread_id = flight->options->thread_id;

	return thread_id && tw_rs_ring(&flight->writer.rs, index)->thread_id == thread_id;
}

struct copying {
	struct tw_flight_copy *flight;
	bool are_of_call;
	uint64_t until_ns;
};

static void copy_one(void *arg, uint32_t index)
{
	const struct copying *copying = arg;
	struct tw_flight_copy *flight = copying->flight;
	struct tw_writer_copy *copy = &flight->copies[index];

	if (flight->writer.rings[index].is_seen && !copy->raw && is_of_call(flight, index) == copying->are_of_call &&
	    tw_clock_monotonic_ns() < copying->until_ns)
		copy->error = tw_writer_copy_ring(&flight->writer, index, copy);
}

/* Copies the rings that are not copied yet: of the thread of the call that caused the snapshot, or of others, and while there is time. */
static int copy_those(struct tw_flight_copy *flight, bool are_of_call, uint64_t until_ns)
{
	struct copying copying = {flight, are_of_call, until_ns};
	int error = 0;

	tw_copies_each(flight->copy_count, copy_one, &copying);
	for (uint32_t i = 0; i < flight->copy_count && !error; i++)
		error = flight->copies[i].error;
	return error;
}

/* The call's thread comes first: its ring must not be overwritten before. */
static int copy_rings(struct tw_flight_copy *flight)
{
	uint32_t count = tw_writer_scan(&flight->writer);
	int error;

	flight->copies = calloc(count ? count : 1, sizeof *flight->copies);
	if (!flight->copies)
		return TW_ENOMEM;
	flight->copy_count = count;
	error = flight->options->thread_id ? copy_those(flight, true, UINT64_MAX) : 0;
	return error ? error : copy_those(flight, false, flight->begun_ns + COPY_NS);
}

static void free_copy(struct tw_flight_copy *flight, uint32_t index)
{
	free(flight->copies[index].raw);
	flight->copies[index] = (struct tw_writer_copy){0};
}

/* Stores the blocks of one ring that other threads encode. */
static int store_encoded(struct tw_flight_copy *flight, struct tw_copies *copies, uint32_t index)
{
	struct tw_copies_block *block;
	int error = 0;

	while (error >= 0 && (block = tw_copies_take(copies, index, &error))) {
		const struct tw_writer_made made = {&block->header, block->stored, block->tracee};

		if (block->is_bad)
			tw_writer_damaged(&flight->writer);
		else
			error = tw_writer_store_made(&flight->writer, index, &made, block->raw, block->raw_bytes);
		free(block);
	}
	return error;
}

/* Other threads encode, if there are any, and where no text is to be replaced in the records before. */
static int store_in_order(struct tw_flight_copy *flight, struct tw_copies_ring *rings)
{
	struct tw_copies *copies = NULL;
	int error = 0;

	if (!flight->writer.redacting && tw_copies_threads(flight->copy_count) > 1 &&
	    tw_copies_start(rings, flight->copy_count, AHEAD_BYTES, &copies))
		copies = NULL;
	for (uint32_t i = 0; i < flight->copy_count && error >= 0; i++) {
		error = copies ? store_encoded(flight, copies, i)
			       : tw_writer_store_copied(&flight->writer, i, rings[i].copy, rings[i].at);
		if (error >= 0)
			free_copy(flight, i);
	}
	if (copies)
		tw_copies_stop(copies);
	return error < 0 ? error : 0;
}

static int store_rings(struct tw_flight_copy *flight, uint64_t since_ticks)
{
	struct tw_copies_ring *rings = calloc(flight->copy_count ? flight->copy_count : 1, sizeof *rings);
	int error = rings ? 0 : TW_ENOMEM;

	for (uint32_t i = 0; i < flight->copy_count && !error; i++) {
		error = tw_writer_begin_copy(&flight->writer, i, &flight->copies[i], since_ticks, &rings[i].at);
		rings[i].copy = &flight->copies[i];
		rings[i].ring = flight->writer.rings[i];
	}
	if (!error)
		error = store_in_order(flight, rings);
	free(rings);
	return error;
}

/* Writes what caused the snapshot, to the first image. */
static int tell_trigger(struct tw_flight_copy *flight, uint64_t ticks)
{
	const struct tw_flight_options *options = flight->options;
	struct tw_writer *writer = &flight->writer;
	struct tw_def_trigger def = {.ticks = ticks,
				     .process_id = options->process_id,
				     .thread_id = options->thread_id,
				     .reason_bytes = (uint16_t)strnlen(options->reason, REASON_BYTES)};
	uint8_t payload[sizeof def + REASON_BYTES], record[sizeof payload + 32];
	uint32_t index = 0;
	int error;

	while (index < tw_rs_image_count(&writer->rs) && !writer->images[index].store.lease)
		index++;
	if (index == tw_rs_image_count(&writer->rs))
		return 0;
	tw_def_trigger_set_call_ticks(&def, options->call_ticks);
	memcpy(payload, &def, sizeof def);
	memcpy(payload + sizeof def, options->reason, def.reason_bytes);
	error = tw_writer_definitions(writer, index);
	return error ? error
		     : tw_writer_define_outside(writer, &writer->images[index], record,
						(uint32_t)tw_writer_put_record(record, TW_DEF_TRIGGER, payload,
									       sizeof def + def.reason_bytes));
}

/* Writes where a signal ended the program, to its image. */
static int tell_crash(struct tw_flight_copy *flight)
{
	struct tw_writer *writer = &flight->writer;
	struct tw_rs_crash_report report;
	uint8_t payload[sizeof(struct tw_def_crash) + sizeof report.frames], record[sizeof payload + 32];
	struct tw_def_crash def;
	uint32_t index, bytes;
	int error;

	if (!flight->options->has_ended || !WIFSIGNALED(flight->options->wait_status) ||
	    !tw_rs_crash_read(&writer->rs, flight->options->process_id, &index, &report) ||
	    !writer->images[index].store.lease)
		return 0;
	def = (struct tw_def_crash){.address = report.address,
				    .stack_pointer = report.stack_pointer,
				    .process_id = flight->options->process_id,
				    .thread_id = report.thread_id,
				    .signal = report.signal,
				    .code = report.code,
				    .sender = report.sender,
				    .frame_count = (uint16_t)report.frame_count,
				    .end = report.end < TW_CRASH_UNWALKED ? (uint16_t)report.end : TW_CRASH_UNWALKED};
	bytes = report.frame_count * (uint32_t)sizeof report.frames[0];
	memcpy(payload, &def, sizeof def);
	memcpy(payload + sizeof def, report.frames, bytes);
	error = tw_writer_definitions(writer, index);
	return error ? error
		     : tw_writer_define_outside(writer, &writer->images[index], record,
						(uint32_t)tw_writer_put_record(record, TW_DEF_CRASH, payload,
									       sizeof def + bytes));
}

static int store_all(struct tw_flight_copy *flight)
{
	struct tw_writer *writer = &flight->writer;
	const struct tw_flight_options *options = flight->options;
	uint64_t ticks = options->trigger_ticks ? options->trigger_ticks : ticks_of(options->trigger_ns), kept;
	int bytes, error;
	const char *line = tw_folder_line(writer->rs.text, TW_RECORDER_FLIGHT_KEY, &bytes);

	kept = (uint64_t)((double)(line ? strtoull(line, NULL, 10) : 0) * (double)tw_clock_ticks_per_second() / 1e9);
	if (flight->options->has_ended)
		writer->store.account[TW_ACCOUNT_ENDING] = UINT64_C(1) << 32 | (uint32_t)flight->options->wait_status;
	writer->store.account[TW_ACCOUNT_PROCESSES_WENT_ON] = tw_writer_count_living(writer);
	tw_writer_tell_refusals(writer);
	error = tell_trigger(flight, ticks);
	if (!error)
		error = tell_crash(flight);
	kept = kept && kept < ticks ? ticks - kept : 0;
	if (!error)
		error = store_rings(flight, kept);
	if (!error)
		error = tw_writer_end_images(writer);
	return error ? error : tw_store_leave_something(&writer->store);
}

/* ---- 4 ---- */

static int give_name(const struct tw_flight_copy *flight, char path[])
{
	for (unsigned number = 1; number < NUMBERS_MAX; number++) {
		char suffix[16] = "";

		if (number > 1)
			snprintf(suffix, sizeof suffix, "-%u", number);
		snprintf(path, PATH_MAX, "%s%s" NAME_END, flight->base, suffix);
		if (renameat2(AT_FDCWD, flight->part, AT_FDCWD, path, RENAME_NOREPLACE) == 0)
			return 0;
		/* A file system without that: a name taken at this very moment is only taken over if it is an empty folder. */
		if (errno == EINVAL && faccessat(AT_FDCWD, path, F_OK, AT_EACCESS) < 0 &&
		    rename(flight->part, path) == 0)
			return 0;
		if (errno != EEXIST && errno != EINVAL && errno != ENOTEMPTY)
			return tw_error_from_errno(errno);
	}
	return TW_ELIMIT;
}

static int write_capture(struct tw_flight_copy *flight, struct tw_flight_result *out)
{
	const struct tw_recorder_options made = {.path = flight->part, .policy = TW_RECORDER_OVERWRITE};
	struct tw_writer *writer = &flight->writer;
	/* As the copies were found; the store begins anew. */
	const struct tw_recorder_stats found = writer->store.stats;
	int error = tw_store_create(&writer->store, &made, false);

	if (error)
		return error;
	writer->store.stats = found;
	error = store_all(flight);
	for (uint32_t i = 0; i < writer->images_seen; i++) {
		if (writer->images[i].store.is_open)
			tw_segment_abandon(&writer->images[i].store.segment);
	}
	if (!error)
		error = give_name(flight, out->path);
	if (error)
		tw_store_remove(flight->part);
	out->stats = writer->store.stats;
	if (writer->store.first_ticks)
		out->stats.events_ns = (uint64_t)((double)(writer->store.last_ticks - writer->store.first_ticks) * 1e9 /
						  (double)tw_clock_ticks_per_second());
	out->written_ns = tw_clock_monotonic_ns() - flight->begun_ns;
	tw_store_destroy(&writer->store);
	return error;
}

static int open_rings(struct tw_flight_copy *flight)
{
	struct tw_rs *rs = &flight->writer.rs;
	int error = tw_rs_open_dead(rs, flight->options->ring_set_path, true);

	if (error)
		return error;
	error = rs->config.policy == TW_RB_OVERWRITE ? find_base(flight) : TW_EBADARG;
	if (error)
		tw_rs_detach(rs);
	return error;
}

TW_API void tw_flight_copy_free(struct tw_flight_copy *flight)
{
	if (!flight)
		return;
	tw_rs_detach(&flight->writer.rs);
	for (uint32_t i = 0; i < flight->copy_count; i++)
		free(flight->copies[i].raw);
	free(flight->copies);
	tw_writer_fini(&flight->writer);
	free(flight);
}

TW_API int tw_flight_copy(const struct tw_flight_options *options, struct tw_flight_copy **out)
{
	struct tw_flight_copy *flight = calloc(1, sizeof *flight);
	int error;

	if (!flight)
		return TW_ENOMEM;
	tw_clock_init();
	flight->options = options;
	flight->begun_ns = tw_clock_monotonic_ns();
	flight->writer.is_dead = true;
	error = tw_writer_init(&flight->writer);
	if (!error)
		error = open_rings(flight);
	if (error) {
		tw_writer_fini(&flight->writer);
		free(flight);
		return error;
	}
	flight->writer.closed_ticks = tw_clock_ticks();
	error = copy_rings(flight);
	flight->copied_ns = tw_clock_monotonic_ns() - flight->begun_ns;
	if (error) {
		tw_flight_copy_free(flight);
		return error;
	}
	*out = flight;
	return 0;
}

TW_API int tw_flight_store(struct tw_flight_copy *flight, struct tw_flight_result *out)
{
	int error;

	memset(out, 0, sizeof *out);
	out->copied_ns = flight->copied_ns;
	snprintf(flight->part, sizeof flight->part, "%s" PART "%d", flight->base, (int)getpid());
	remove_parts(flight);
	error = copy_those(flight, false, UINT64_MAX);
	return error ? error : write_capture(flight, out);
}

TW_API int tw_flight_write(const struct tw_flight_options *options, struct tw_flight_result *out)
{
	struct tw_flight_copy *flight;
	int error = tw_flight_copy(options, &flight);

	if (error)
		return error;
	error = tw_flight_store(flight, out);
	tw_flight_copy_free(flight);
	return error;
}
