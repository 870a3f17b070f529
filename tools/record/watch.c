/* SPDX-License-Identifier: Apache-2.0 */
/* watch.c - waits for the end of a recorded program and its children, and handles signals meanwhile. */
#include "tools/record/watch.h"

#include "tools/record/children.h"
#include "tools/record/late_code.h"
#include "tools/tool.h"

#include <errno.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

/* The longest sleep in one round; signals cut it short. */
#define POLL_NS UINT64_C(1000000000)
/* The longest sleep while waiting for other processes, whose end sends no signal. */
#define OTHERS_POLL_NS UINT64_C(100000000)

/* ---- signals: counted here, handled between two rounds ---- */

static struct tw_recorder *volatile signalled_recorder;
static volatile sig_atomic_t stops_asked;
static volatile sig_atomic_t stop_signal;
static volatile sig_atomic_t signal_to_pass_on;

static void on_signal(int number, siginfo_t *info, void *unused)
{
	(void)unused;
	int saved = errno;
	if (number != SIGCHLD) {
		stops_asked++;
		stop_signal = number;
		/* The terminal signals the whole process group; kill(1) signals only this process. */
		if (info->si_code <= 0)
			signal_to_pass_on = number;
		if (signalled_recorder)
			tw_recorder_hurry(signalled_recorder);
	}
	if (signalled_recorder)
		tw_recorder_wake(signalled_recorder);
	errno = saved;
}

void tw_watch_signals(void)
{
	static const int numbers[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGCHLD};
	struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_RESTART}, found;
	for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
		/* A signal that the parent had set to be ignored (nohup, a shell's background job) stays ignored. */
		if (sigaction(numbers[i], NULL, &found) == 0 && (numbers[i] == SIGCHLD || found.sa_handler != SIG_IGN))
			sigaction(numbers[i], &action, NULL);
	}
}

void tw_watch_recorder(struct tw_recorder *recorder)
{
	signalled_recorder = recorder;
}

int tw_watch_signal(void)
{
	return stop_signal;
}

/* ---- until the end ---- */

/* Has the program ended? If so, sets *status. Passes on signals that it has not received. */
static bool poll_child(pid_t child, int *status)
{
	/* While the recorder stops threads of the child (ptrace), their stops are reported here too: these are not ours to take. */
	siginfo_t info = {0};
	int error = waitid(P_PID, (id_t)child, &info, WEXITED | WNOHANG | WNOWAIT) ? errno : 0;
	bool is_ended = info.si_code == CLD_EXITED || info.si_code == CLD_KILLED || info.si_code == CLD_DUMPED;
	if (error == ECHILD || (is_ended && waitpid(child, status, WNOHANG) == child))
		return true;
	if (signal_to_pass_on) {
		kill(child, signal_to_pass_on);
		signal_to_pass_on = 0;
	}
	return false;
}

/* The first process has ended: waits until the last one has, a signal comes, or the reader of the stream is gone. */
static void drain_the_others(const struct tw_watch *watch)
{
	struct tw_recorder_stats stats = {0};
	bool has_said = watch->is_quiet || !isatty(STDERR_FILENO);
	while (!stops_asked && !stats.last_error && tw_children_are_left(watch->recorder)) {
		if (!has_said)
			tw_say("the program has ended; processes that it has started still run, and are traced. Ctrl-C ends "
			       "the recording.");
		has_said = true;
		tw_recorder_poll(watch->recorder, OTHERS_POLL_NS);
		tw_late_code_poll(watch->late);
		if (watch->is_stream)
			tw_recorder_stats(watch->recorder, &stats);
	}
}

bool tw_watch(const struct tw_watch *watch, int *status)
{
	struct tw_recorder_stats stats = {0};
	int seen = 0;
	/* Signals that came before the program was started. */
	if (stops_asked)
		signal_to_pass_on = stop_signal;
	for (;;) {
		tw_recorder_poll(watch->recorder, POLL_NS);
		tw_late_code_poll(watch->late);
		/* The reader of the stream is gone: the program continues untraced. */
		if (watch->is_stream)
			tw_recorder_stats(watch->recorder, &stats);
		if (stats.last_error)
			tw_recorder_close(watch->recorder);
		if (poll_child(watch->child, status)) {
			if (watch->waits_for_all && !stats.last_error)
				drain_the_others(watch);
			return true;
		}
		if (stops_asked > 1)
			return false;
		if (stops_asked != seen && !watch->is_quiet && isatty(STDERR_FILENO))
			tw_say("the program has received the signal; a second Ctrl-C stops recording at once.");
		seen = stops_asked;
	}
}
