/* SPDX-License-Identifier: Apache-2.0 */
/*
 * flight.c - `record --flight`: the signals that ask for a snapshot, how often one is written, and the process that writes it.
 *
 * A child of the command writes, so that the recorder goes on answering the program meanwhile: all that the child needs is
 * in the ring set.  If the command is killed, the child completes what it has begun.
 */
#include "tools/record/flight.h"
#include "tools/record/config.h"
#include "tools/record/options.h"
#include "tools/record/rings.h"
#include "tools/record/sizes.h"
#include "tools/tool.h"

#include "tracewheel/error.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Signals that may ask for a snapshot: the others end programs, or mean something to this command. */
static const int numbers[] = {SIGUSR2, SIGUSR1, SIGHUP, SIGALRM, SIGVTALRM, SIGPROF, SIGIO, SIGURG};
/* Signals by which people, and service managers, end programs; any other is a crash. */
static const int endings[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};

/* Those that the agent notes down (agent/preload/crash.c). */
static const int fatal[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGTRAP, SIGSYS};

#define REASON_BYTES 256
#define COUNT_OF(a)  (sizeof(a) / sizeof *(a))

static uint64_t bit(int number)
{
	return UINT64_C(1) << number;
}

/* ---- options ---- */

static bool set_on(struct tw_flight *flight, const struct tw_command *command, const char *value)
{
	const char *name = strncmp(value, "SIG", 3) == 0 ? value + 3 : value;
	if (strcmp(value, "crash") == 0)
		return flight->on_crash = true;
	if (strcmp(value, "exit") == 0)
		return flight->on_exit = true;
	for (size_t i = 0; i < COUNT_OF(numbers); i++) {
		if (strcmp(name, sigabbrev_np(numbers[i])) == 0) {
			flight->signals |= bit(numbers[i]);
			return true;
		}
	}
	return tw_refuse(
		command,
		"--snapshot-on is crash, exit, a signal that is sent to this command (USR1, USR2, HUP, ALRM, VTALRM, PROF, IO or URG), or "
		"calls, 'MODULE:FUNCTION if EXPR'; not '%s'.",
		value);
}

static bool set_flight(struct tw_flight *flight, struct tw_recorder_options *recorder, const struct tw_command *command,
		       const char *value)
{
	flight->is_wanted = true;
	return !value || tw_sizes_set(recorder, command, "flight", value);
}

bool tw_flight_set(struct tw_flight *flight, struct tw_recorder_options *recorder, const struct tw_command *command,
		   int key, const char *value)
{
	uint64_t number;
	switch (key) {
	case KEY_FLIGHT: return set_flight(flight, recorder, command, value);
	case KEY_SNAPSHOT_ON: flight->beside = "--snapshot-on"; return set_on(flight, command, value);
	case KEY_SNAPSHOTS:
		flight->beside = "--snapshots";
		if (!tw_parse_count(value, &number) || number < 1 || number > UINT32_MAX)
			return tw_refuse(command, "--snapshots is a number from 1 on, not '%s'.", value);
		flight->most = (uint32_t)number;
		return true;
	default:
		flight->beside = "--every";
		if (!tw_parse_duration(value, &flight->every_ns))
			return tw_refuse(command, "--every is a time, such as 10s, not '%s'.", value);
		return true;
	}
}

bool tw_flight_check(const struct tw_flight *flight, const struct tw_recorder_options *recorder,
		     const struct tw_command *command)
{
	if (!flight->is_wanted && flight->beside)
		tw_usage(command, "%s is for --flight.", flight->beside);
	else if (flight->is_wanted && recorder->is_stream)
		tw_usage(command, "--flight and -o - exclude each other: snapshots are captures.");
	else if (flight->is_wanted &&
		 (recorder->segment_ns || recorder->segments_kept || recorder->durable_ns || recorder->run_delay_ns))
		tw_usage(command,
			 "--flight goes without --segment-time, --keep, --durable and --long-schedule: nothing is "
			 "written before something happens.");
	else
		return true;
	return false;
}

bool tw_flight_config(const struct tw_flight *flight, struct tw_config *config, bool *has_frames)
{
	if (!flight->is_wanted || !flight->on_crash)
		return true;
	*has_frames = true;
	return tw_config_add(config, "crash", "1");
}

void tw_flight_prepare(struct tw_flight *flight, struct tw_recorder_options *recorder, const char *path)
{
	if (!flight->is_wanted)
		return;
	snprintf(flight->folder, sizeof flight->folder, "%s" TW_FLIGHT_END, path);
	recorder->path = flight->folder;
	recorder->keep_old = true;
	recorder->policy = TW_RECORDER_OVERWRITE;
	recorder->is_flight = true;
	/* Those of an earlier run are in the way of no snapshot: each takes the next free name. */
	recorder->force = false;
}

/* ---- signals: noted here, handled between two rounds ---- */

static struct tw_recorder *volatile signalled_recorder;
static volatile sig_atomic_t asked_by; /* the signal; 0: none */
static volatile uint64_t asked_ns;

static void on_signal(int number)
{
	int saved = errno;
	if (!asked_by) {
		asked_ns = tw_now_ns();
		asked_by = number;
	}
	if (signalled_recorder)
		tw_recorder_wake(signalled_recorder);
	errno = saved;
}

static bool is_too_soon(const struct tw_flight *flight, uint64_t ns)
{
	return flight->made >= flight->most || (flight->made_ns && ns - flight->made_ns < flight->every_ns);
}

/* Calls are wanted when a snapshot may be written for them: no earlier, so that those that come often cost little. */
static void watch_calls(struct tw_flight *flight)
{
	if (flight->is_watching || !flight->triggers.wanted_count || flight->writer || is_too_soon(flight, tw_now_ns()))
		return;
	flight->is_watching = tw_recorder_watch_triggers(flight->recorder, true);
}

void tw_flight_begin(struct tw_flight *flight, struct tw_recorder *recorder, pid_t child, bool is_quiet)
{
	struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
	if (!flight->is_wanted)
		return;
	flight->recorder = signalled_recorder = recorder;
	flight->child = child;
	flight->is_quiet = is_quiet;
	flight->signals |= bit(SIGUSR2);
	sigfillset(&action.sa_mask);
	for (size_t i = 0; i < COUNT_OF(numbers); i++)
		if (flight->signals & bit(numbers[i]))
			sigaction(numbers[i], &action, NULL);
	watch_calls(flight);
	if (!is_quiet)
		tw_say("flight recorder of process %d: `tracewheel snapshot %d` writes what it has done.", (int)child,
		       (int)child);
}

/* ---- what is written ---- */

int tw_flight_say(int error, const struct tw_flight_result *result, const struct tw_flight_options *options,
		  bool is_quiet)
{
	char count[TW_FIGURE_BYTES], threads[TW_FIGURE_BYTES], time[TW_FIGURE_BYTES], written[TW_FIGURE_BYTES];
	const struct tw_recorder_stats *stats = &result->stats;
	if (error == TW_ENOENT)
		return tw_fail(
			"no snapshot was written: the recording has ended, or the folder of the capture is gone.");
	if (error)
		return tw_fail("no snapshot was written: %s", tw_strerror(error));
	if (!is_quiet)
		tw_say("%s: %s of %s in %s, written in %s; %s.", result->path,
		       tw_figure_of(count, stats->events, "event", "events"),
		       tw_figure_of(threads, stats->streams, "thread", "threads"),
		       tw_figure_seconds(time, (double)stats->events_ns / 1e9),
		       tw_figure_seconds(written, (double)result->written_ns / 1e9), options->reason);
	return TW_EXIT_OK;
}

static int store(const struct tw_flight *flight, const struct tw_flight_options *options, struct tw_flight_copy *copy)
{
	struct tw_flight_result *result = calloc(1, sizeof *result);
	int error = result ? tw_flight_store(copy, result) : TW_ENOMEM;
	int code = tw_flight_say(error, result, options, flight->is_quiet);
	free(result);
	return code;
}

static void write_now(const struct tw_flight *flight, const struct tw_flight_options *options)
{
	struct tw_flight_copy *copy;
	int error = tw_flight_copy(options, &copy);
	if (error) {
		tw_flight_say(error, NULL, options, flight->is_quiet);
		return;
	}
	store(flight, options, copy);
	tw_flight_copy_free(copy);
}

/*
 * Copies the rings at once, before the program overwrites what the snapshot is for, and stores the copies in a process of its own, which the
 * signals that end the command leave alone.  Returns that process; 0: it could not be begun, which has been reported.
 */
static pid_t begin_writing(const struct tw_flight *flight, const struct tw_flight_options *options)
{
	struct tw_flight_copy *copy;
	sigset_t all, before;
	int error = tw_flight_copy(options, &copy);
	if (error) {
		tw_flight_say(error, NULL, options, flight->is_quiet);
		return 0;
	}
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, &before);
	pid_t writer = fork();
	if (writer == 0)
		_exit(store(flight, options, copy));
	sigprocmask(SIG_SETMASK, &before, NULL);
	if (writer < 0)
		tw_say("no snapshot was written: %s.", strerror(errno));
	tw_flight_copy_free(copy);
	return writer < 0 ? 0 : writer;
}

static void await_writer(struct tw_flight *flight, int how)
{
	int status = 0;
	if (!flight->writer)
		return;
	pid_t ended;
	while ((ended = waitpid(flight->writer, &status, how)) < 0 && errno == EINTR)
		;
	if (!ended)
		return;
	flight->writer = 0;
	if (ended > 0 && WIFSIGNALED(status))
		tw_say("no snapshot was written: the process that wrote it was ended by SIG%s.",
		       sigabbrev_np(WTERMSIG(status)));
	/* One that could not be written does not count. */
	if (ended > 0 && status && flight->made)
		flight->made--;
}

static void say_passed_over(struct tw_flight *flight)
{
	if (flight->passed_over == 1 && !flight->is_quiet && flight->made >= flight->most)
		tw_say("no further snapshot is written: there are %u (--snapshots).", flight->most);
	else if (flight->passed_over == 1 && !flight->is_quiet)
		tw_say("no snapshot is written so soon after the last one (--every).");
}

/* A signal's snapshot.  False: none is asked for, or it is passed over. */
static bool take_signal(struct tw_flight *flight, struct tw_flight_options *options, char reason[REASON_BYTES])
{
	int number = asked_by;
	if (!number)
		return false;
	options->trigger_ns = asked_ns;
	asked_by = 0;
	if (is_too_soon(flight, options->trigger_ns)) {
		flight->passed_over++;
		say_passed_over(flight);
		return false;
	}
	snprintf(reason, REASON_BYTES, "signal SIG%s asked for it", sigabbrev_np(number));
	return true;
}

/* A call's. */
static bool take_call(const struct tw_flight *flight, struct tw_flight_options *options, char reason[REASON_BYTES])
{
	char took[TW_FIGURE_BYTES];
	struct tw_recorder_trigger call;
	if (!flight->is_watching || !tw_recorder_trigger(flight->recorder, &call))
		return false;
	options->trigger_ns = call.ns;
	options->trigger_ticks = call.ticks;
	options->call_ticks = call.call_ticks;
	options->process_id = call.process_id;
	options->thread_id = call.thread_id;
	if (call.has_ended)
		snprintf(reason, REASON_BYTES, "%s returned after %s", call.function,
			 tw_figure_seconds(took, (double)call.call_ns / 1e9));
	else
		snprintf(reason, REASON_BYTES, "%s was called", call.function);
	return true;
}

void tw_flight_poll(struct tw_flight *flight)
{
	char reason[REASON_BYTES];
	if (!flight || !flight->recorder)
		return;
	await_writer(flight, WNOHANG);
	if (flight->writer)
		return;
	struct tw_flight_options options = {.ring_set_path = tw_recorder_ring_set_path(flight->recorder),
					    .reason = reason,
					    .process_id = flight->child};
	if (!take_call(flight, &options, reason) && !take_signal(flight, &options, reason)) {
		watch_calls(flight);
		return;
	}
	flight->passed_over = 0;
	flight->made_ns = options.trigger_ns;
	flight->made++;
	flight->is_watching = false;
	tw_recorder_watch_triggers(flight->recorder, false);
	flight->writer = begin_writing(flight, &options);
	/* One that could not be written does not count. */
	flight->made -= !flight->writer;
}

/* The program has ended before the command saw what it had told: its rings are there. */
static void write_last_call(struct tw_flight *flight)
{
	char reason[REASON_BYTES];
	struct tw_flight_options options = {.ring_set_path = tw_recorder_ring_set_path(flight->recorder),
					    .reason = reason};
	if (take_call(flight, &options, reason))
		write_now(flight, &options);
	/* One that came since then is counted; one that is about to come is waited for. */
	for (int i = 0; i < 100 && !tw_recorder_watch_triggers(flight->recorder, false); i++)
		nanosleep(&(struct timespec){0, 1000000}, NULL);
	uint64_t missed = tw_recorder_triggers_missed(flight->recorder);
	char figure[TW_FIGURE_BYTES];
	if (missed && !flight->is_quiet)
		tw_say("%s to --snapshot-on without a snapshot of their own (--snapshots, --every).",
		       tw_figure_of(figure, missed, "further call answered", "further calls answered"));
}

static bool is_crash(int status)
{
	bool is_any = WIFSIGNALED(status);
	for (size_t i = 0; i < COUNT_OF(endings); i++)
		is_any = is_any && WTERMSIG(status) != endings[i];
	return is_any;
}

/* Why it is not known where in the program that was. */
static const char *why_no_stack(int number)
{
	if (number == SIGKILL)
		return ": where is not known, because a program does not see that signal come";
	for (size_t i = 0; i < COUNT_OF(fatal); i++)
		if (number == fatal[i])
			return ": where is not known, because nothing could run then (the signal was blocked, the thread had "
			       "no stack left, or the program has its own means to handle it)";
	return ": where is noted down for SEGV, BUS, ILL, FPE, ABRT, TRAP and SYS only";
}

/* The signal that has ended the program. */
static void tell_signal(const struct tw_flight *flight, struct tw_flight_options *options, int number,
			char reason[REASON_BYTES])
{
	struct tw_recorder_crash crash;
	bool is_known = tw_recorder_crash(flight->recorder, flight->child, &crash);
	const char *why = !is_known && flight->on_crash && is_crash(options->wait_status) ? why_no_stack(number) : "";
	snprintf(reason, REASON_BYTES, "the program was ended by SIG%s%s", sigabbrev_np(number), why);
	if (is_known) {
		options->trigger_ticks = crash.ticks;
		options->thread_id = crash.thread_id;
	}
}

void tw_flight_end(struct tw_flight *flight, bool has_ended, int status)
{
	char reason[REASON_BYTES];
	if (!flight->recorder)
		return;
	await_writer(flight, 0);
	signalled_recorder = NULL;
	write_last_call(flight);
	if (!has_ended ||
	    !(flight->on_exit || (flight->on_crash && status != TW_FLIGHT_STATUS_UNKNOWN && is_crash(status))))
		return;
	bool is_known = status != TW_FLIGHT_STATUS_UNKNOWN;
	struct tw_flight_options options = {.ring_set_path = tw_recorder_ring_set_path(flight->recorder),
					    .reason = reason,
					    .process_id = flight->child,
					    .has_ended = is_known,
					    .wait_status = status};
	if (!is_known)
		snprintf(reason, sizeof reason, "the program had ended");
	else if (WIFSIGNALED(status))
		tell_signal(flight, &options, WTERMSIG(status), reason);
	else
		snprintf(reason, sizeof reason, "the program ended with exit code %d", WEXITSTATUS(status));
	write_now(flight, &options);
}
