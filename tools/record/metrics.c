/* SPDX-License-Identifier: Apache-2.0 */
/* metrics.c - writes a file beside the old one and renames it. */
#include "tools/record/metrics.h"
#include "tools/tool.h"

#include "tracewheel/capture.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define EVERY_NS UINT64_C(1000000000)

static uint64_t now_ns(clockid_t clock)
{
	struct timespec now;
	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void put(FILE *file, const char *name, const char *type, const char *help, uint64_t value)
{
	fprintf(file, "# HELP tracewheel_%s %s\n# TYPE tracewheel_%s %s\ntracewheel_%s %" PRIu64 "\n", name, help, name,
		type, name, value);
}

static void put_all(FILE *file, const struct tw_recorder_stats *stats, bool is_over)
{
	put(file, "events_total", "counter", "Events stored.", stats->events);
	fprintf(file, "# HELP tracewheel_lost_total Events lost, by cause.\n# TYPE tracewheel_lost_total counter\n");
	for (unsigned cause = 0; cause < TW_LOST_CAUSES; cause++)
		fprintf(file, "tracewheel_lost_total{cause=\"%s\"} %" PRIu64 "\n", tw_lost_cause_name(cause),
			stats->lost[cause]);
	put(file, "counted_calls_total", "counter", "Calls counted and not recorded.", stats->counted_calls);
	put(file, "file_bytes_total", "counter", "Bytes written to the capture.", stats->file_bytes);
	put(file, "raw_bytes_total", "counter", "Bytes of the records stored, before encoding.", stats->raw_bytes);
	put(file, "removed_bytes_total", "counter", "Bytes of old segments that --keep removed.", stats->bytes_removed);
	put(file, "write_errors_total", "counter", "Writes that failed and were repeated.", stats->write_errors);
	put(file, "damaged_rings", "gauge", "Rings with contents that no producer writes.", stats->damaged_rings);
	put(file, "rings", "gauge", "Rings of threads that live.", stats->streams_alive);
	put(file, "processes", "gauge", "Processes that are recorded now.", stats->images_alive);
	put(file, "refused_processes_total", "counter", "Processes that could not be recorded.", stats->images_refused);
	put(file, "is_stalled", "gauge", "1: the last write failed and is being repeated.", stats->is_stalled);
	put(file, "is_recording", "gauge", "0: the recording has ended.", !is_over);
	put(file, "updated_timestamp_seconds", "gauge", "When this file was written, since 1970.",
	    now_ns(CLOCK_REALTIME) / 1000000000);
}

/* Returns 0 or an errno. */
static int replace(const char *path, const struct tw_recorder_stats *stats, bool is_over)
{
	char temporary[PATH_MAX];
	if (snprintf(temporary, sizeof temporary, "%s.XXXXXX", path) >= (int)sizeof temporary)
		return ENAMETOOLONG;
	int fd = mkostemp(temporary, O_CLOEXEC), error = 0;
	if (fd < 0)
		return errno;
	FILE *file = fdopen(fd, "w");
	if (!file) {
		error = errno;
		close(fd);
	} else {
		/* Numbers only: others may read them, as an exporter that runs as another user does. */
		fchmod(fd, 0644);
		put_all(file, stats, is_over);
		if (fclose(file) || rename(temporary, path))
			error = errno;
	}
	if (error)
		unlink(temporary);
	return error;
}

static void write_file(struct tw_metrics *metrics, const struct tw_recorder_stats *stats, bool is_over)
{
	int error = replace(metrics->path, stats, is_over);
	if (error && !metrics->has_failed)
		tw_say("--metrics: '%s' cannot be written: %s. The recording goes on.", metrics->path, strerror(error));
	metrics->has_failed = error != 0;
}

void tw_metrics_poll(struct tw_metrics *metrics, const struct tw_recorder *recorder)
{
	struct tw_recorder_stats stats;
	uint64_t now = now_ns(CLOCK_MONOTONIC);
	if (!metrics->path || now < metrics->due_ns)
		return;
	metrics->due_ns = now + EVERY_NS;
	tw_recorder_stats(recorder, &stats);
	write_file(metrics, &stats, false);
}

void tw_metrics_finish(struct tw_metrics *metrics, const struct tw_recorder_stats *stats)
{
	if (metrics->path)
		write_file(metrics, stats, true);
}
