/* SPDX-License-Identifier: Apache-2.0 */
/* account.c - messages at the end of a recording. */
#include "tools/record/account.h"
#include "tools/record/rings.h"
#include "views/names/missing.h"
#include "views/names/notes.h"
#include "tools/tool.h"

#include "tracewheel/error.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

static uint64_t ring_bytes_of(const struct tw_recorder_options *options)
{
	return options->ring_bytes ? options->ring_bytes : TW_RING_BYTES_DEFAULT;
}

/* The folder of rings, as the library chooses it. */
static const char *rings_root(void)
{
	const char *root = secure_getenv("TRACEWHEEL_SHM");
	return root && root[0] == '/' ? root : "/dev/shm";
}

/* No space: where, and what would help of what was not done. */
static void say_no_space(const char *path, const struct tw_recorder_options *options)
{
	char ring[TW_FIGURE_BYTES], space[TW_FIGURE_BYTES];
	const char *root = rings_root();
	struct statvfs system;
	if (statvfs(root, &system) || system.f_bavail * system.f_frsize > ring_bytes_of(options)) {
		tw_say("'%s' cannot be made: no space on its disk.", path);
		return;
	}
	tw_say("'%s' cannot be made: no space in %s, which holds the rings: it has %s left, and a ring has %s; another folder in TRACEWHEEL_SHM%s helps.",
	       path, root, tw_figure_bytes(space, system.f_bavail * system.f_frsize),
	       tw_figure_bytes(ring, ring_bytes_of(options)),
	       ring_bytes_of(options) > TW_RING_BYTES_LEAST ? ", or a smaller --ring," : "");
}

void tw_account_not_created(int error, const char *path, bool may_replace, const struct tw_recorder_options *options)
{
	struct rlimit limit;
	struct stat status;
	char figure[TW_FIGURE_BYTES];
	if (error == TW_EEXIST && !may_replace)
		tw_say("'%s' exists; --force replaces it, -o names another.", path);
	else if (error == TW_EEXIST)
		tw_say("'%s' is not replaced: it is not a capture, or is being recorded now; -o "
		       "names another.",
		       path);
	else if (error == TW_ENOENT && lstat(path, &status) == 0 && S_ISLNK(status.st_mode))
		tw_say("'%s' is not replaced: it is a symbolic link; -o names another.", path);
	else if (error == TW_ENOENT && access("/dev/shm", F_OK) < 0)
		tw_say("'%s' cannot be made: there is no /dev/shm, which holds the rings.", path);
	else if (error == TW_ENOENT)
		tw_say("'%s' cannot be made: its folder does not exist.", path);
	else if ((error == TW_EPERM || error == TW_ENOSPC) && getrlimit(RLIMIT_FSIZE, &limit) == 0 &&
		 limit.rlim_max != RLIM_INFINITY)
		tw_say("'%s' cannot be made: files may have %s at most here (ulimit -f), and the rings need more.",
		       path, tw_figure_bytes(figure, limit.rlim_max));
	else if (error == TW_EPERM)
		tw_say("'%s' cannot be made: you may not write to its folder, or to /dev/shm; -o names "
		       "another path.",
		       path);
	else if (error == TW_ENOSPC)
		say_no_space(path, options);
	else if (error == TW_EBADARG || error == TW_ELIMIT)
		tw_say("'%s' cannot be made: the patterns and conditions, or its path, are too long.", path);
	else
		tw_say("'%s' cannot be made: %s", path, tw_strerror(error));
}

void tw_account_dead_sets(void)
{
	unsigned count = tw_recover_list(NULL, NULL);
	if (count)
		tw_say("%u ring set%s of recordings that were cut off %s memory in /dev/shm; `tracewheel recover --list` shows %s, "
		       "--clean removes %s.",
		       count, count == 1 ? "" : "s", count == 1 ? "takes" : "take", count == 1 ? "it" : "them",
		       count == 1 ? "it" : "them");
}

/* A ring grows no further than its file system has space: then no option helps. */
static bool is_confined(const struct tw_recorder_options *options, char *text, size_t capacity)
{
	const uint64_t ring_bytes = ring_bytes_of(options);
	const char *root = rings_root();
	struct statvfs system;
	char ring[TW_FIGURE_BYTES], space[TW_FIGURE_BYTES];
	if (statvfs(root, &system) || system.f_blocks * system.f_frsize > ring_bytes)
		return false;
	snprintf(
		text, capacity,
		"; a ring of %s does not fit into %.200s, which has %s: enlarge it, or name another folder in TRACEWHEEL_SHM",
		tw_figure_bytes(ring, ring_bytes), root, tw_figure_bytes(space, system.f_blocks * system.f_frsize));
	return true;
}

/* Advice that would have kept the events of the cause that lost most; "" if no option would. @lost: tw_missing_split(). */
static const char *advice(const struct tw_recorder_stats *stats, const uint64_t *lost,
			  const struct tw_recorder_options *options)
{
	static char text[400];
	char ring[TW_FIGURE_BYTES];
	enum tw_recorder_policy policy = options->policy;
	/* In an overwriting ring, full is what was requested. */
	unsigned first = policy == TW_RECORDER_OVERWRITE ? 1 : 0, worst = first;
	for (unsigned cause = first; cause < TW_MISSING_LOST_CAUSES; cause++)
		if (lost[cause] > lost[worst])
			worst = cause;
	if (stats->unstored)
		return ", except the last of them: there was no space to record that";
	if (stats->write_errors)
		return "";
	switch (worst) {
	case TW_LOST_NO_RING:
		if (is_confined(options, text, sizeof text))
			return text;
		return "; a larger --ring-cap avoids it if all of it was in use; calls at the end of a stack, and of code with a %fs of its "
		       "own, have no ring in any case";
	case TW_LOST_NESTED:
		return "; nested are calls of signal handlers that interrupted the recording of another call: no option avoids it";
	case TW_LOST_CAUSES:
		return "; ended are calls of threads, as of libc's functions, behind their last destructor: they are recorded without -p procs, which records the exit before them, and not under a filter of system calls";
	case TW_LOST_CAUSES + 1:
		return "; vfork are calls of children that still ran in the program's memory: no option avoids it";
	case TW_LOST_CAUSES + 2:
		return "; left out are calls in recorded calls that found no space until it was known that these are recorded, and are counted: "
		       "--children=SIZE with a larger size avoids it";
	case TW_LOST_FULL:
		if (is_confined(options, text, sizeof text))
			return text;
		if (policy == TW_RECORDER_BLOCK)
			return "; with block, events are lost while the recorder stands still, as at a disk that hangs or without "
			       "processor time, or where a filter forbids the program to wait";
		snprintf(text, sizeof text, "; --on-full block avoids it, or a --ring of more than %s",
			 tw_figure_bytes(ring, ring_bytes_of(options)));
		return text;
	default: return "";
	}
}

void tw_account_losses(const struct tw_recorder_stats *stats, const char *path,
		       const struct tw_recorder_options *options)
{
	enum tw_recorder_policy policy = options->policy;
	char text[TW_MISSING_TEXT_BYTES], figure[TW_FIGURE_BYTES];
	uint64_t counts[TW_LOST_CAUSES], lost[TW_MISSING_LOST_CAUSES], sum = 0;
	const struct tw_missing_apart apart = {stats->lost_ended, stats->lost_vfork, stats->left_out};
	uint64_t replaced = policy == TW_RECORDER_OVERWRITE ? stats->lost[TW_LOST_FULL] - stats->unstored : 0;
	if (replaced)
		tw_say("%s older event%s replaced by newer ones, as --on-full overwrite requests.",
		       tw_figure_count(figure, replaced), replaced == 1 ? " was" : "s were");
	for (unsigned cause = 0; cause < TW_LOST_CAUSES; cause++) {
		counts[cause] = stats->lost[cause] - (cause == TW_LOST_FULL ? replaced : 0);
		sum += counts[cause];
	}
	tw_missing_split(counts, apart, lost);
	tw_missing_lost(counts, apart, text);
	tw_figure_of(figure, sum, "event", "events");
	if (sum && !path)
		tw_say(stats->write_errors ? "LOST %s: %s." : "LOST %s: %s. `tracewheel print` shows where.", figure,
		       text);
	else if (sum)
		tw_say("LOST %s: %s. `tracewheel report %s` shows where%s.", figure, text, path,
		       advice(stats, lost, options));
}

static void say_unrestored(const struct tw_recorder_stats *stats)
{
	char reason[128], places[TW_FIGURE_BYTES], processes[TW_FIGURE_BYTES];
	if (!stats->unrestored_processes)
		return;
	switch (stats->unrestored_reason) {
	case TW_UNRESTORED_DENIED:
		snprintf(reason, sizeof reason, "the system does not let it be stopped for that");
		break;
	case TW_UNRESTORED_TRACED: snprintf(reason, sizeof reason, "a debugger or another tracer has it"); break;
	case TW_UNRESTORED_TOO_MANY:
		snprintf(reason, sizeof reason, "it has %u threads, more than are stopped", stats->unrestored_threads);
		break;
	case TW_UNRESTORED_STUCK: snprintf(reason, sizeof reason, "a thread of it could not be stopped"); break;
	case TW_UNRESTORED_ENDED:
		snprintf(reason, sizeof reason, "the process that stops its threads was itself stopped or killed");
		break;
	default:
		snprintf(reason, sizeof reason, "its threads were inside of them each time, or there was no time left");
	}
	tw_figure_count(places, stats->unrestored_places);
	if (stats->unrestored_processes == 1)
		tw_say("the process that continues still has changed functions (%s), which cost some time and record nothing: %s.",
		       places, reason);
	else
		tw_say("%s processes that continue still have changed functions (%s), which cost some time and record nothing; the last "
		       "of them: %s.",
		       tw_figure_count(processes, stats->unrestored_processes), places, reason);
}

void tw_account_troubles(const struct tw_recorder_stats *stats, const char *path, int error)
{
	char figure[TW_FIGURE_BYTES];
	if (stats->write_errors)
		tw_say("writing '%s' failed %s time%s%s%s", path, tw_figure_count(figure, stats->write_errors),
		       stats->write_errors == 1 ? "" : "s", stats->last_error ? ": " : ".",
		       stats->last_error ? tw_strerror(stats->last_error) : "");
	else if (error)
		tw_say("'%s' could not be completed: %s", path, tw_strerror(error));
	if (stats->damaged_rings)
		tw_say("the program overwrote %u of the rings it was recorded in; their contents are skipped.",
		       stats->damaged_rings);
	if (stats->images_refused)
		tw_say("%s process%s not traced; `tracewheel info` says why.",
		       tw_figure_count(figure, stats->images_refused), stats->images_refused == 1 ? " was" : "es were");
	if (stats->definitions_refused)
		tw_say("%s not fit; views show %s.",
		       tw_figure_of(figure, stats->definitions_refused, "name did", "names did"),
		       stats->definitions_refused == 1 ? "a number" : "numbers");
	say_unrestored(stats);
}

void tw_account_children(const struct tw_recorder_stats *stats)
{
	char clause[TW_MISSING_TEXT_BYTES];
	if (stats->children)
		tw_say("%s.", tw_missing_children(stats->children, clause));
}

/* A process that was not traced has been reported: it loaded the library. */
static void say_empty(const struct tw_recorder_stats *stats, const char *path)
{
	if (stats->images_refused)
		return;
	tw_say("%s is empty: the program did not load the tracing library, or one of another version; install the command and it together.",
	       path);
}

void tw_account_events(const struct tw_recorder_stats *stats, const char *path, uint32_t segments_kept)
{
	char count[TW_FIGURE_BYTES], time[TW_FIGURE_BYTES], rate[TW_FIGURE_BYTES], bytes[TW_FIGURE_BYTES],
		threads[TW_FIGURE_BYTES];
	double seconds = (double)stats->events_ns / 1e9;
	if (!stats->images) {
		say_empty(stats, path);
		return;
	}
	if (!stats->events && stats->counted_calls) {
		tw_say("%s: %s counted; `tracewheel report` shows them.", path,
		       tw_figure_of(count, stats->counted_calls, "call", "calls"));
		return;
	}
	if (!stats->events) {
		tw_say("%s holds no events.", path);
		return;
	}
	tw_say("%s: %s of %s in %s (%s/s), %s, %.2f B an event.", path,
	       tw_figure_of(count, stats->events, "event", "events"),
	       tw_figure_of(threads, stats->streams, "thread", "threads"), tw_figure_seconds(time, seconds),
	       tw_figure_short(rate, seconds > 0 ? (double)stats->events / seconds : 0),
	       tw_figure_bytes(bytes, stats->file_bytes), (double)stats->file_bytes / (double)stats->events);
	if (stats->counted_calls)
		tw_say("%s counted, not recorded.",
		       tw_figure_of(count, stats->counted_calls, "call more was", "calls more were"));
	if (stats->segments_removed)
		tw_say("kept: the last %s; %s before them %s removed by --keep %u; %s on disk.",
		       tw_figure_of(count, stats->events - stats->events_removed, "event", "events"),
		       tw_figure_count(rate, stats->events_removed), stats->events_removed == 1 ? "was" : "were",
		       segments_kept, tw_figure_bytes(bytes, stats->file_bytes - stats->bytes_removed));
}

/* The most notes that are shown. */
#define NOTES_SHOWN 3

static void say_note(void *context, const char *note)
{
	const char *of_redaction = context;
	/* That one has a sentence with a number. */
	if (!of_redaction || strcmp(note, of_redaction) != 0)
		tw_say("%s.", note);
}

bool tw_account_entries(const char *path)
{
	struct tw_capture *capture;
	struct tw_capture_account account;
	char clause[TW_MISSING_TEXT_BYTES];
	if (tw_capture_open(path, NULL, &capture))
		return false;
	tw_capture_account(capture, &account);
	if (*tw_missing_clause(&account, TW_MISSING_PLANS, clause))
		tw_say("%s. Plans are kept: record again.", clause);
	if (tw_notes_each(capture, NOTES_SHOWN, say_note, (char *)(uintptr_t)tw_notes_of_redaction(capture)))
		tw_say("there are further notes: `tracewheel info` shows them.");
	tw_capture_close(capture);
	return *clause;
}

void tw_account_tracer(const struct tw_recorder_stats *stats, const char *module, const char *path)
{
	char figure[TW_FIGURE_BYTES];
	uint64_t lost = 0;
	for (unsigned cause = 0; cause < TW_LOST_CAUSES; cause++)
		lost += stats->lost[cause];
	if (!stats->images)
		say_empty(stats, path);
	else if (stats->images > stats->images_refused)
		tw_say("the events went to the tracer module %s; `tracewheel info %s` shows notes.", module, path);
	if (lost)
		tw_say("%s NOT reported to it, made inside its callbacks, in signal handlers that interrupted the "
		       "recording of another call, or by threads that were ending.",
		       tw_figure_of(figure, lost, "event was", "events were"));
}
