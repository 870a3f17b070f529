/* SPDX-License-Identifier: Apache-2.0 */
/* watch.c - waits for the end of a recorded program and its children, and handles signals meanwhile. */
#include "tools/record/watch.h"

#include "tools/record/children.h"
#include "tools/record/flight.h"
#include "tools/record/late_code.h"
#include "tools/record/limits.h"
#include "tools/record/progress.h"
#include "tools/record/group_signals.h"
#include "tools/record/metrics.h"
#include "tools/tool.h"

#include <errno.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* The longest sleep in one round; signals cut it short. */
#define POLL_NS UINT64_C(1000000000)
/* The longest sleep while waiting for other processes, whose end sends no signal. */
#define OTHERS_POLL_NS UINT64_C(100000000)
/* The longest sleep while there are limits. */
#define LIMITS_POLL_NS UINT64_C(50000000)

/*
 * A signal that was sent to this process alone is passed on to the program.  Whether the program's whole group has got
 * it too is known after this time: `timeout`, and service managers, send to the command first and to the others then.
 * Signals within this time count as one request to stop.
 */
#define GROUP_NS UINT64_C(100000000)
#define ROUND_NS UINT64_C(10000000)
/* The longest wait beyond that for a counting process that has the signal pending and does not run. */
#define BEHIND_NS    UINT64_C(2000000000)
#define SIGNAL_COUNT 4

/* ---- signals: counted here, handled between two rounds ---- */

static const int numbers[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGCHLD, SIGUSR1};

enum sent {
	SENT_NOT,
	SENT_BY_TERMINAL, /* by the terminal, which signals the whole process group */
	SENT_TO_UNKNOWN,
};

static struct tw_recorder *volatile signalled_recorder;
static volatile sig_atomic_t stops_asked;
static volatile sig_atomic_t stop_signal;
static volatile sig_atomic_t to_pass_on[SIGNAL_COUNT]; /* by index of numbers: enum sent */
static uint64_t stop_ns;			       /* of the last that counted; only for the handler */

static void on_signal(int number, siginfo_t *info, void *unused)
{
	(void)unused;
	int saved = errno;
	if (number == SIGUSR1) {
		tw_progress_ask();
	} else if (number != SIGCHLD) {
		if (!stops_asked || tw_now_ns() - stop_ns >= GROUP_NS) {
			stop_ns = tw_now_ns();
			stops_asked++;
		}
		stop_signal = number;
		for (int i = 0; i < SIGNAL_COUNT; i++)
			if (numbers[i] == number)
				to_pass_on[i] = info->si_code > 0 ? SENT_BY_TERMINAL : SENT_TO_UNKNOWN;
		if (signalled_recorder)
			tw_recorder_hurry(signalled_recorder);
	}
	if (signalled_recorder)
		tw_recorder_wake(signalled_recorder);
	errno = saved;
}

void tw_watch_signals(void)
{
	struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_RESTART}, found;
	/* One at a time: the handler compares times. */
	for (int i = 0; i < SIGNAL_COUNT; i++)
		sigaddset(&action.sa_mask, numbers[i]);
	for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
		/* A signal to stop that the parent had set to be ignored (nohup, a shell's background job) stays ignored. */
		if (sigaction(numbers[i], NULL, &found) == 0 && (i >= SIGNAL_COUNT || found.sa_handler != SIG_IGN))
			sigaction(numbers[i], &action, NULL);
	}
}

void tw_watch_recorder(struct tw_recorder *recorder)
{
	signalled_recorder = recorder;
}

bool tw_watch_is_asked_to_stop(void)
{
	return stops_asked != 0;
}

int tw_watch_signal(void)
{
	return stop_signal;
}

static bool is_count_behind(void)
{
	bool is_behind = false;
	for (int i = 0; i < SIGNAL_COUNT; i++)
		is_behind |= to_pass_on[i] && tw_group_signals_are_behind(numbers[i]);
	return is_behind;
}

/* When it is known whether the program has got the signals of to_pass_on; 0: none is left. */
static uint64_t pass_on_ns;
static uint64_t give_up_ns; /* when the counting process is waited for no more */

/* Forgets those that the group has got. Are any left? */
static bool are_left(void)
{
	bool is_any = false;
	for (int i = 0; i < SIGNAL_COUNT; i++) {
		if (to_pass_on[i] && tw_group_signals_got(numbers[i]))
			to_pass_on[i] = SENT_NOT;
		is_any |= to_pass_on[i] != SENT_NOT;
	}
	return is_any;
}

/* Passes on signals that the program has not received. */
static void pass_on(pid_t child)
{
	bool is_any = are_left();
	uint64_t now = tw_now_ns();
	if (is_any && !pass_on_ns) {
		pass_on_ns = now + (tw_group_signals_are_counted() ? GROUP_NS : 0);
		give_up_ns = pass_on_ns + BEHIND_NS;
	}
	if (is_any && now >= pass_on_ns && now < give_up_ns && is_count_behind())
		pass_on_ns = now + 2 * ROUND_NS;
	if (is_any && now < pass_on_ns)
		return;
	/* Again: it may have counted since, and what it counts is pending no more. */
	is_any = is_any && are_left();
	pass_on_ns = 0;
	if (!is_any)
		return;
	for (int i = 0; i < SIGNAL_COUNT; i++) {
		if (to_pass_on[i] == SENT_TO_UNKNOWN)
			kill(child, numbers[i]);
		to_pass_on[i] = SENT_NOT;
	}
}

/* It came before the program did, which has not received it, whoever else has. */
static void pass_on_first(pid_t child)
{
	kill(child, stop_signal);
	for (int i = 0; i < SIGNAL_COUNT; i++) {
		to_pass_on[i] = SENT_NOT;
		tw_group_signals_got(numbers[i]);
	}
}

/* ---- until the end ---- */

/* Has the program ended? If so, sets *status. */
static bool poll_child(pid_t child, int *status)
{
	/* While the recorder stops threads of the child (ptrace), their stops are reported here too: these are not ours to take. */
	siginfo_t info = {0};
	int error = waitid(P_PID, (id_t)child, &info, WEXITED | WNOHANG | WNOWAIT) ? errno : 0;
	bool is_ended = info.si_code == CLD_EXITED || info.si_code == CLD_KILLED || info.si_code == CLD_DUMPED;
	if (error == ECHILD || (is_ended && waitpid(child, status, WNOHANG) == child))
		return true;
	return false;
}

static bool is_over(const struct tw_watch *watch)
{
	struct tw_recorder_stats stats;
	if (!watch->limits || !tw_limits_are_set(watch->limits))
		return false;
	tw_recorder_stats(watch->recorder, &stats);
	return tw_limits_are_reached(watch->limits, watch->recorder, &stats);
}

/* The first process has ended: waits until the last one has, a signal comes, or the reader of the stream is gone. */
static void drain_the_others(const struct tw_watch *watch, struct tw_progress *progress)
{
	struct tw_recorder_stats stats = {0};
	bool has_said = watch->is_quiet || !isatty(STDERR_FILENO);
	while (!stops_asked && !stats.last_error && !is_over(watch) && tw_children_are_left(watch->recorder)) {
		if (!has_said)
			tw_progress_clear(progress);
		if (!has_said)
			tw_say("the program has ended; processes that it has started still run, and are traced. Ctrl-C ends "
			       "the recording.");
		has_said = true;
		tw_recorder_poll(watch->recorder, OTHERS_POLL_NS);
		tw_late_code_poll(watch->late);
		tw_progress_poll(progress);
		tw_flight_poll(watch->flight);
		tw_metrics_poll(watch->metrics, watch->recorder);
		if (watch->is_stream)
			tw_recorder_stats(watch->recorder, &stats);
	}
}

static bool watch_with(const struct tw_watch *watch, int *status, struct tw_progress *progress)
{
	struct tw_recorder_stats stats = {0};
	bool has_limits = watch->limits && tw_limits_are_set(watch->limits);
	int seen = 0;
	if (stops_asked)
		pass_on_first(watch->child);
	if (has_limits)
		tw_limits_begin(watch->limits);
	for (;;) {
		tw_recorder_poll(watch->recorder, pass_on_ns ? ROUND_NS : has_limits ? LIMITS_POLL_NS : POLL_NS);
		tw_late_code_poll(watch->late);
		tw_progress_poll(progress);
		tw_flight_poll(watch->flight);
		tw_metrics_poll(watch->metrics, watch->recorder);
		/* The reader of the stream is gone: the program continues untraced. */
		if (watch->is_stream)
			tw_recorder_stats(watch->recorder, &stats);
		if (stats.last_error)
			tw_recorder_close(watch->recorder);
		if (poll_child(watch->child, status)) {
			/* At once: this is the time at which it ended. */
			tw_recorder_child_ended(watch->recorder, *status);
			if (watch->waits_for_all && !stats.last_error)
				drain_the_others(watch, progress);
			return true;
		}
		pass_on(watch->child);
		if ((stops_asked > 1 && !pass_on_ns) || is_over(watch))
			return false;
		if (stops_asked != seen)
			tw_progress_clear(progress);
		if (stops_asked != seen && !watch->is_quiet && isatty(STDERR_FILENO))
			tw_say("the program has received the signal; a second Ctrl-C stops recording at once.");
		seen = stops_asked;
	}
}

bool tw_watch_child(pid_t child, int *status)
{
	for (;;) {
		uint64_t sleep_ns = pass_on_ns ? ROUND_NS : OTHERS_POLL_NS;
		if (poll_child(child, status))
			return true;
		pass_on(child);
		if (stops_asked > 1 && !pass_on_ns)
			return false;
		/* A signal cuts it short, that of the child's end too. */
		nanosleep(&(struct timespec){0, (long)sleep_ns}, NULL);
	}
}

bool tw_watch(const struct tw_watch *watch, int *status)
{
	struct tw_progress progress = {.recorder = watch->recorder, .is_shown = watch->shows_progress};
	bool has_ended = watch_with(watch, status, &progress);
	tw_progress_clear(&progress);
	return has_ended;
}
