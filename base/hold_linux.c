/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hold_linux.c - stops the threads of another process by ptrace().
 *
 *	1 list the threads in /proc, and look whether each can stop, and which of many run now and then: the slow part, while all run
 *	2 seize all that are new, then interrupt those that wait in the kernel, so that the first does not stand while the last is prepared
 *	3 wait for each, and look where it is; a thread may end instead
 *	4 the same with those that ran.  A server of 500 threads has few: they stand still only from here on, and go on first
 *	5 count: a thread that was not stopped yet may have made another, and then all are listed again
 *
 * Threads end at any time, by SIGKILL even while they are stopped.  A traced thread that has ended must be reaped by
 * its tracer, or the process would never be seen to end; but not the first thread of our own child: its status is for
 * whoever waits for the child.
 */
#include "base/hold.h"

#include "base/clock.h"
#include "base/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* A thread that only lacks a processor stops as soon as it gets one. */
#define DEVICE_NS UINT64_C(20000000)
#define YIELD_NS  UINT64_C(200000)
#define NAP_NS	  20000
/* With fewer threads none waits long, and none is watched before. */
#define WATCHED_THREADS_MIN 64u
#define WATCHED_NS	    UINT64_C(10000000)
/* The kernel's workers for a process (io_uring) never run its code, and cannot be traced: PF_IO_WORKER, PF_USER_WORKER. */
#define WORKER_FLAGS (0x10u | 0x4000u)
/* Below the red zone of a thread that waits in the kernel: aligned, and not used before it has begun its call again. */
#define SPACE_BYTES 144u

/* ---- one thread ---- */

/* The state's letter and the flags (fields 3 and 9); false: it is gone. */
static bool read_state(int process_id, int thread_id, char *state, unsigned *flags)
{
	char text[512], *at;

	*flags = 0;
	if (!tw_sys_read_of_thread(process_id, thread_id, "stat", text, sizeof text) || !(at = strrchr(text, ')')))
		return false;
	return sscanf(at + 1, " %c %*d %*d %*d %*d %*d %u", state, flags) == 2;
}

static bool is_ended(char state)
{
	return state == 'Z' || state == 'X' || state == 'x';
}

static long number_in(const char *text, const char *key)
{
	const char *at = strstr(text, key);

	return at ? strtol(at + strlen(key), NULL, 10) : 0;
}

static long status_number(int process_id, int thread_id, const char *key)
{
	char text[4096];

	return tw_sys_read_of_thread(process_id, thread_id, "status", text, sizeof text) ? number_in(text, key) : 0;
}

/* The status of our own child is left for the caller that waits for it. */
static bool is_to_be_reaped(int process_id, int thread_id)
{
	return thread_id != process_id || status_number(process_id, thread_id, "\nPPid:") != getpid();
}

enum seen { SEEN_NOTHING, SEEN_STOP, SEEN_END };

/* Has the thread stopped or ended?  Takes the report of it. */
static enum seen look(int process_id, int thread_id, int *signal)
{
	siginfo_t info = {0};
	int status;

	if (!waitid(P_PID, (id_t)thread_id, &info, WSTOPPED | WNOHANG | __WALL) && info.si_pid) {
		/* Above the signal: PTRACE_EVENT_STOP.  Else a signal is about to be delivered. */
		*signal = info.si_status >> 8 ? 0 : info.si_status;
		return SEEN_STOP;
	}
	info.si_pid = 0;
	if (waitid(P_PID, (id_t)thread_id, &info, WEXITED | WNOHANG | WNOWAIT | __WALL))
		return errno == ECHILD ? SEEN_END : SEEN_NOTHING;
	/* A traced thread's stop is reported whatever is asked for: it has just stopped, and is looked at again. */
	if (!info.si_pid || info.si_code == CLD_TRAPPED || info.si_code == CLD_STOPPED)
		return SEEN_NOTHING;
	if (is_to_be_reaped(process_id, thread_id))
		waitpid(thread_id, &status, WNOHANG | __WALL);
	return SEEN_END;
}

static bool read_registers(const struct tw_hold *hold, struct tw_held_thread *thread)
{
	struct user_regs_struct registers;

	if (ptrace(PTRACE_GETREGS, thread->thread_id, NULL, &registers))
		return false;
	/* See hold.h. */
	if (tw_waited_repair(&thread->waited, hold->process_id, thread->thread_id, &registers,
			     (registers.rsp - SPACE_BYTES) & ~UINT64_C(15)))
		ptrace(PTRACE_SETREGS, thread->thread_id, NULL, &registers);
	thread->pc = registers.rip;
	thread->call = (int64_t)registers.orig_rax >= 0 ? registers.rip - 2 : 0;
	thread->stack = registers.rsp;
	thread->descriptor = registers.fs_base;
	return true;
}

static enum tw_hold_outcome seize(const struct tw_hold *hold, struct tw_held_thread *thread)
{
	unsigned flags;
	int error;
	char state;

	if (ptrace(PTRACE_SEIZE, thread->thread_id, NULL, NULL) == 0) {
		thread->is_seized = true;
		return TW_HOLD_OK;
	}
	error = errno;
	if (error == ESRCH || !read_state(hold->process_id, thread->thread_id, &state, &flags) || is_ended(state)) {
		thread->is_gone = true;
		return TW_HOLD_OK;
	}
	return status_number(hold->process_id, thread->thread_id, "\nTracerPid:") ? TW_HOLD_TRACED : TW_HOLD_DENIED;
}

/* ---- the guard ---- */

/* libc's timer_create() may allocate. */
static bool make_timer(int signal_number, int *out)
{
	struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = signal_number};

	return syscall(SYS_timer_create, CLOCK_MONOTONIC, &event, out) == 0;
}

bool tw_hold_guard(struct tw_hold *hold)
{
	hold->is_guarded = make_timer(SIGCONT, &hold->continues) && make_timer(SIGKILL, &hold->ends);
	return hold->is_guarded;
}

static void set_timer(int timer, uint64_t first_ns, uint64_t again_ns)
{
	const struct itimerspec time = {{0, (long)again_ns}, {0, (long)first_ns}};

	syscall(SYS_timer_settime, timer, 0, &time, NULL);
}

static void set_guard(struct tw_hold *hold, bool is_set)
{
	if (!hold->is_guarded || hold->is_guard_set == is_set)
		return;
	hold->is_guard_set = is_set;
	set_timer(hold->continues, is_set ? TW_HOLD_CONTINUED_NS : 0, TW_HOLD_CONTINUED_NS);
	set_timer(hold->ends, is_set ? TW_HOLD_ENDED_NS : 0, 0);
}

bool tw_hold_is_due(const struct tw_hold *hold)
{
	return tw_clock_monotonic_ns() - hold->begun_ns > TW_HOLD_NS;
}

/* ---- all threads ---- */

struct listing {
	struct tw_hold *hold;
	enum tw_hold_outcome outcome;
	unsigned next;	/* the kernel lists threads in one order: the one that is expected now */
	unsigned known; /* those of the lists before */
	unsigned total; /* how many threads could run */
};

static bool is_known(struct listing *listing, int thread_id)
{
	const struct tw_held_thread *threads = listing->hold->threads;

	for (unsigned i = 0; i < listing->known; i++, listing->next++) {
		if (listing->next >= listing->known)
			listing->next = 0;
		if (threads[listing->next].thread_id == thread_id)
			return true;
	}
	return false;
}

static unsigned most_threads(const struct tw_hold *hold)
{
	return hold->most ? hold->most : TW_HOLD_THREADS_MAX;
}

/*
 * Adds a thread that is not known yet.  A thread in an uninterruptible wait would not stop, so this is asked before any thread is
 * stopped.
 */
static void add_thread(int folder, const char *name, void *arg)
{
	struct listing *listing = arg;
	struct tw_hold *hold = listing->hold;
	struct tw_held_thread *thread;
	int thread_id = atoi(name);
	unsigned flags;
	char state;

	(void)folder;
	if (thread_id <= 0 || is_known(listing, thread_id) ||
	    !read_state(hold->process_id, thread_id, &state, &flags) || is_ended(state) || flags & WORKER_FLAGS)
		return;
	listing->total++;
	if (state == 'D')
		listing->outcome = TW_HOLD_STUCK;
	if (hold->count == most_threads(hold))
		return;
	thread = &hold->threads[hold->count++];
	*thread = (struct tw_held_thread){.thread_id = thread_id, .was_running = state == 'R'};
	if (state == 'S')
		tw_waited_see(&thread->waited, &hold->waits, hold->process_id, thread_id);
}

static enum tw_hold_outcome list(struct tw_hold *hold, unsigned *total)
{
	struct listing listing = {.hold = hold, .outcome = TW_HOLD_OK, .known = hold->count, .total = hold->count};
	char path[32];
	int tasks;

	snprintf(path, sizeof path, "/proc/%d/task", hold->process_id);
	tasks = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (tasks < 0)
		return TW_HOLD_GONE;
	tw_sys_each_name(tasks, add_thread, &listing);
	close(tasks);
	*total = listing.total;
	return *total > most_threads(hold) ? TW_HOLD_TOO_MANY : listing.outcome;
}

/* How often the thread has got a processor; 0: the kernel does not tell. */
static uint64_t turns_of(int process_id, int thread_id)
{
	char text[128];
	unsigned long long turns;

	return tw_sys_read_of_thread(process_id, thread_id, "schedstat", text, sizeof text) &&
			       sscanf(text, "%*u %*u %llu", &turns) == 1
		       ? turns
		       : 0;
}

/*
 * A thread that works for a moment, again and again, waits when it is listed: it is known by the turns that it gets meanwhile.  If there was no
 * time for two steps, as on a machine whose processors those that run need, all are stopped in one.
 */
static void watch(struct tw_hold *hold)
{
	uint64_t begun = tw_clock_monotonic_ns(), passed_ns;

	for (unsigned i = 0; i < hold->count && hold->is_late; i++)
		hold->threads[i].was_running = true;
	if (hold->count < WATCHED_THREADS_MIN || hold->is_late)
		return;
	for (unsigned i = 0; i < hold->count; i++)
		hold->threads[i].turns = turns_of(hold->process_id, hold->threads[i].thread_id);
	passed_ns = tw_clock_monotonic_ns() - begun;
	if (passed_ns < WATCHED_NS)
		tw_sys_sleep(WATCHED_NS - passed_ns);
	for (unsigned i = 0; i < hold->count; i++)
		hold->threads[i].was_running |=
			hold->threads[i].turns != turns_of(hold->process_id, hold->threads[i].thread_id);
}

/* A thread that only lacks a processor gets ours; a sleep takes longer than most threads to stop. */
static void nap(uint64_t waited_ns)
{
	const struct timespec time = {0, NAP_NS};

	if (waited_ns < YIELD_NS)
		sched_yield();
	else
		nanosleep(&time, NULL);
}

/* Waits the thread for something else than a processor? */
static bool is_in_vain(const struct tw_hold *hold, const struct tw_held_thread *thread, uint64_t waited_ns)
{
	unsigned flags;
	char state;

	return tw_hold_is_due(hold) ||
	       (waited_ns > DEVICE_NS && read_state(hold->process_id, thread->thread_id, &state, &flags) &&
		state == 'D');
}

/* Takes the report of a stop.  False: what the caller looks for in the thread cannot be known. */
static bool see_stop(struct tw_hold *hold, struct tw_held_thread *thread)
{
	thread->is_stopped = read_registers(hold, thread);
	thread->is_gone = !thread->is_stopped;
	return thread->is_gone || !hold->see || hold->see(hold->see_arg, thread);
}

/* Takes the reports of those that have stopped.  Returns one that has not; NULL: none is left, or *is_known is false. */
static const struct tw_held_thread *take_stops(struct tw_hold *hold, bool were_running, bool *is_known)
{
	const struct tw_held_thread *missing = NULL;

	for (unsigned i = 0; i < hold->count; i++) {
		struct tw_held_thread *thread = &hold->threads[i];
		enum seen seen;

		if (!thread->is_seized || thread->is_stopped || thread->is_gone || thread->was_running != were_running)
			continue;
		seen = look(hold->process_id, thread->thread_id, &thread->signal);
		thread->is_gone = seen == SEEN_END;
		if (seen == SEEN_NOTHING)
			missing = thread;
		else if (seen == SEEN_STOP && !see_stop(hold, thread)) {
			*is_known = false;
			return NULL;
		}
	}
	return missing;
}

/* Waits for those that are seized, and were running or not.  The processor is given away once for all of them. */
static bool await_stops(struct tw_hold *hold, bool were_running)
{
	uint64_t begun = tw_clock_monotonic_ns(), waited_ns;
	const struct tw_held_thread *missing;
	bool is_known = true;

	while ((missing = take_stops(hold, were_running, &is_known))) {
		waited_ns = tw_clock_monotonic_ns() - begun;
		if (is_in_vain(hold, missing, waited_ns))
			return false;
		nap(waited_ns);
	}
	return is_known;
}

static void interrupt(const struct tw_hold *hold, unsigned first, bool were_running)
{
	for (unsigned i = first; i < hold->count; i++)
		if (hold->threads[i].is_seized && hold->threads[i].was_running == were_running)
			ptrace(PTRACE_INTERRUPT, hold->threads[i].thread_id, NULL, NULL);
}

/* Steps 2 to 4 for the threads from `first` on. */
static enum tw_hold_outcome stop(struct tw_hold *hold, unsigned first)
{
	enum tw_hold_outcome outcome = TW_HOLD_OK;

	/* A thread that is seized stops by itself where it gets a signal. */
	if (!first) {
		hold->begun_ns = tw_clock_monotonic_ns();
		set_guard(hold, true);
	}
	for (unsigned i = first; i < hold->count && outcome == TW_HOLD_OK; i++)
		outcome = seize(hold, &hold->threads[i]);
	/* All are interrupted also if one was refused, or does not stop: only a thread that stops can be let go. */
	interrupt(hold, first, false);
	if (outcome == TW_HOLD_OK && !await_stops(hold, false))
		outcome = TW_HOLD_STUCK;
	if (!first)
		hold->running_ns = tw_clock_monotonic_ns();
	interrupt(hold, first, true);
	if (outcome == TW_HOLD_OK && !await_stops(hold, true))
		outcome = TW_HOLD_STUCK;
	hold->is_late |= outcome == TW_HOLD_STUCK && tw_hold_is_due(hold);
	return outcome;
}

static long detach(int thread_id, int signal)
{
	return ptrace(PTRACE_DETACH, thread_id, NULL, (void *)(intptr_t)signal);
}

static void keep_late(struct tw_hold *hold, int thread_id)
{
	if (hold->late_count == TW_HOLD_THREADS_MAX)
		return;
	hold->late[hold->late_count].process_id = hold->process_id;
	hold->late[hold->late_count++].thread_id = thread_id;
}

static void let_go(struct tw_hold *hold, bool were_running)
{
	for (unsigned i = 0; i < hold->count; i++) {
		struct tw_held_thread *thread = &hold->threads[i];

		if (!thread->is_seized || thread->was_running != were_running)
			continue;
		/* Not stopped, or killed while it was: its stop or its end is still to be seen. */
		if (!thread->is_stopped || detach(thread->thread_id, thread->signal))
			keep_late(hold, thread->thread_id);
	}
}

void tw_hold_end(struct tw_hold *hold)
{
	let_go(hold, true);
	hold->paused_ns = tw_clock_monotonic_ns() - hold->running_ns;
	let_go(hold, false);
	hold->stood_ns = tw_clock_monotonic_ns() - hold->begun_ns;
	hold->count = 0;
	tw_hold_end_late(hold);
}

bool tw_hold_end_late(struct tw_hold *hold)
{
	unsigned kept = 0;

	for (unsigned i = 0; i < hold->late_count; i++) {
		int thread_id = hold->late[i].thread_id, signal = 0;
		enum seen seen = look(hold->late[i].process_id, thread_id, &signal);

		if (seen == SEEN_END || (seen == SEEN_STOP && !detach(thread_id, signal)))
			continue;
		hold->late[kept++] = hold->late[i];
	}
	hold->late_count = kept;
	/* Whoever lets late threads go does not stand still. */
	if (!hold->count) {
		set_guard(hold, false);
		set_guard(hold, kept != 0);
	}
	return kept != 0;
}

static unsigned count_stopped(const struct tw_hold *hold)
{
	unsigned stopped = 0;

	for (unsigned i = 0; i < hold->count; i++)
		stopped += hold->threads[i].is_stopped;
	return stopped;
}

/*
 * Has the process no other threads than those that have stopped?  The kernel tells their number as links of the folder, for the price of
 * one look; it may count more, as one that has ended and is not reaped.
 */
static bool are_all_stopped(const struct tw_hold *hold)
{
	struct stat status;
	char path[32];

	snprintf(path, sizeof path, "/proc/%d/task", hold->process_id);
	return !stat(path, &status) && status.st_nlink == 2 + count_stopped(hold);
}

enum tw_hold_outcome tw_hold_begin(struct tw_hold *hold, int process_id)
{
	enum tw_hold_outcome outcome;
	unsigned total = 0, before;

	/* Threads of an earlier hold are still ours, and cannot be seized again. */
	if (tw_hold_end_late(hold))
		return TW_HOLD_STUCK;
	hold->process_id = process_id;
	hold->count = 0;
	/* It may have executed another program. */
	hold->waits.has_libc = false;
	do {
		before = hold->count;
		outcome = list(hold, &total);
		if (outcome == TW_HOLD_OK && !before)
			watch(hold);
		if (outcome == TW_HOLD_OK)
			outcome = stop(hold, before);
	} while (outcome == TW_HOLD_OK && hold->count > before && !are_all_stopped(hold));
	if (outcome == TW_HOLD_OK && !count_stopped(hold))
		outcome = TW_HOLD_GONE;
	if (outcome != TW_HOLD_OK)
		tw_hold_end(hold);
	if (outcome == TW_HOLD_TOO_MANY)
		hold->count = total;
	return outcome;
}

/* The first thread may have ended, and then shows no memory. */
static int stopped_thread(const struct tw_hold *hold)
{
	for (unsigned i = 0; i < hold->count; i++)
		if (hold->threads[i].is_stopped)
			return hold->threads[i].thread_id;
	return hold->process_id;
}

size_t tw_hold_read(const struct tw_hold *hold, uint64_t address, void *out, size_t bytes)
{
	int thread_id = stopped_thread(hold);
	size_t done = 0;

	/* A piece that cannot be read as a whole is not read at all, so there is one piece a page. */
	while (done < bytes) {
		struct iovec local, remote[64];
		size_t count = 0, asked = 0;
		ssize_t got;

		while (count < 64 && done + asked < bytes) {
			uint64_t at = address + done + asked, to_end = 4096 - at % 4096;
			size_t piece = bytes - done - asked < to_end ? bytes - done - asked : (size_t)to_end;

			remote[count++] = (struct iovec){(void *)(uintptr_t)at, piece};
			asked += piece;
		}
		local = (struct iovec){(uint8_t *)out + done, asked};
		got = process_vm_readv(thread_id, &local, 1, remote, count, 0);
		if (got <= 0)
			break;
		done += (size_t)got;
		if ((size_t)got < asked)
			break;
	}
	return done;
}

uint64_t tw_hold_first_stack(int process_id)
{
	char text[1024], *at;

	if (!tw_sys_read_of_thread(process_id, process_id, "stat", text, sizeof text) || !(at = strrchr(text, ')')))
		return 0;
	/* Field 28; field 3 is the first behind the name. */
	for (unsigned field = 2; at && field < 28; field++)
		at = strchr(at + 1, ' ');
	return at ? strtoull(at, NULL, 10) : 0;
}
