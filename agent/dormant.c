/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dormant.c - the thread that waits for `tracewheel attach` in a program that was started with the agent and without a command.
 *
 *	dormant		sleeps in a futex, without a time limit
 *	attached	looks now and then whether the command lives: its heartbeat is the lease of the recording
 *	leaving		has ended the recording, and waits until no other thread is inside of the agent
 *	left		waits until the command has taken back what was written, or is gone
 *
 * A program whose first thread has ended alone ends with its last thread, which libc finds by a count that includes this one: from then on
 * this thread looks now and then whether it is the last, and ends the program as libc does.
 *
 * docs/decisions/0048 says why there is a thread, and base/doorbell.h how it is woken.  It blocks all signals, has a small stack, and is
 * made again in each child that the program forks while it is not recorded.
 */
#include "agent/agent.h"
#include "agent/leave.h"

#include "base/atomic.h"
#include "base/clock.h"
#include "base/doorbell.h"
#include "base/filter.h"
#include "base/sys.h"
#include "tracewheel/error.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/stat.h>

/* Touched pages only take memory. */
#define STACK_BYTES (256u << 10)
/* How often an attached agent looks at the lease, and one that leaves looks again; with a recorder that may ask for a demotion more often. */
#define LOOK_NS	       UINT64_C(200000000)
#define LOOK_DEMOTE_NS UINT64_C(25000000)
#define AGAIN_NS       UINT64_C(1000000)
/* How often an agent that came late looks whether all other threads have ended. */
#define LATE_LOOK_NS UINT64_C(1000000000)
/* How often the first thread tries, at its end, to wake a thread that may be at work for a command. */
#define WAKE_TRIES 100
/* A command without a sign of life for this long has lost its recording. */
#define LEASE_NS UINT64_C(5000000000)

_Static_assert(TW_DOORBELL_PATH_BYTES >= TW_RS_PATH_BYTES, "the path of a ring set");
_Static_assert(TW_DOORBELL_WHY_BYTES == TW_AGENT_WHY_BYTES, "a reason");

static struct tw_doorbell bell = {.magic = TW_DOORBELL_MAGIC, .version = TW_DOORBELL_VERSION};
static uint64_t lease_ns;
static bool may_demote;
static pthread_t sleeper;
static bool has_sleeper;
static int process;		 /* that has the thread: a child of vfork() shares this memory */
static _Atomic bool is_replaced; /* the thread is to end, and another one takes its place */
static pthread_key_t first_key;	 /* the first thread has a value, so that its end calls first_thread_ends() */
static _Atomic bool is_first_gone;
static sigset_t program_signals; /* those that the program had blocked when the thread was made */
static bool is_answering;	 /* a request is being done: whatever `state` says, the agent is not asleep */

static _Atomic uint32_t *rung(void)
{
	return (_Atomic uint32_t *)&bell.rung;
}

/* ---- requests ---- */

static uint64_t lease_of(const char *text)
{
	static const char key[] = "lease ";

	for (const char *line = text; line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL)
		if (!strncmp(line, key, sizeof key - 1))
			return strtoull(line + sizeof key - 1, NULL, 10) * 1000000;
	return LEASE_NS;
}

static bool is_owner_gone(void)
{
	return tw_sys_is_process_gone(tw_agent_ring_set.config.owner_process_id,
				      tw_agent_ring_set.config.owner_start_time);
}

static void forget(void)
{
	if (!tw_agent_forget())
		return;
	tw_agent_python_forget();
	bell.own[0] = '\0';
	bell.state = TW_DOORBELL_DORMANT;
}

static void leave(enum tw_doorbell_end why)
{
	bell.end = why;
	bell.state = tw_agent_python_leave() && tw_agent_end() ? TW_DOORBELL_LEFT : TW_DOORBELL_LEAVING;
}

/* A recording that has ended is forgotten for the next one. */
static enum tw_doorbell_outcome attach(void)
{
	bool is_filtered = false;

	if (bell.state == TW_DOORBELL_ATTACHED && is_owner_gone())
		leave(TW_DOORBELL_LEASE);
	if (bell.state == TW_DOORBELL_LEAVING)
		leave(bell.end);
	if (bell.state == TW_DOORBELL_LEFT)
		forget();
	if (bell.state != TW_DOORBELL_DORMANT)
		return TW_DOORBELL_BUSY;
	bell.path[sizeof bell.path - 1] = '\0';
	bell.error = tw_agent_attach(bell.path, &is_filtered, bell.why);
	if (bell.error)
		return is_filtered ? TW_DOORBELL_FILTERED : *bell.why ? TW_DOORBELL_REFUSED : TW_DOORBELL_FAILED;
	memcpy(bell.own, bell.path, sizeof bell.own);
	lease_ns = lease_of(tw_agent_ring_set.text);
	may_demote = tw_agent_is_asked("demotes 1");
	bell.owner = tw_agent_ring_set.config.owner_process_id;
	bell.state = TW_DOORBELL_ATTACHED;
	return TW_DOORBELL_DONE;
}

static bool is_of_this_recording(void)
{
	bell.path[sizeof bell.path - 1] = bell.why[sizeof bell.why - 1] = '\0';
	return !bell.path[0] || !strcmp(bell.path, bell.own);
}

static enum tw_doorbell_outcome detach(void)
{
	if (bell.state != TW_DOORBELL_ATTACHED)
		return TW_DOORBELL_DONE;
	if (!is_of_this_recording())
		return TW_DOORBELL_BUSY;
	if (bell.why[0])
		tw_agent_tell(bell.why);
	leave(TW_DOORBELL_ASKED);
	return TW_DOORBELL_DONE;
}

static enum tw_doorbell_outcome finish(void)
{
	if (bell.state == TW_DOORBELL_LEFT && is_of_this_recording())
		forget();
	return TW_DOORBELL_DONE;
}

/* The command waits for `answered`, and reads the rest then. */
static void answer(uint32_t number)
{
	bell.error = 0;
	is_answering = true;
	if (bell.asked == TW_DOORBELL_ATTACH)
		bell.outcome = attach();
	else if (bell.asked == TW_DOORBELL_DETACH)
		bell.outcome = detach();
	else if (bell.asked == TW_DOORBELL_FORGET)
		bell.outcome = finish();
	is_answering = false;
	/* PROGRESS agent.answered: the command, another process, reads it by a system call, and then what was stored before. */
	tw_store_release((_Atomic uint32_t *)&bell.answered, number);
}

/* ---- the thread ---- */

/* An agent that came late has set no value in the first thread, which says nothing when it ends. */
static bool is_first_ended(void)
{
	char text[64];
	const char *end;
	int fd = tw_sys_open_to_read("/proc/self/stat");
	long got = fd < 0 ? -1 : tw_sys_read(fd, text, sizeof text - 1);

	if (fd >= 0)
		tw_sys_close(fd);
	text[got > 0 ? got : 0] = '\0';
	end = strrchr(text, ')');
	return end && end[1] == ' ' && end[2] == 'Z';
}

/* The first thread stays in the kernel's count until the process has ended. */
static bool is_last_thread(void)
{
	struct stat status;

	/* RELAXED agent.first_gone: it is looked at again soon. */
	return (tw_agent_is_late() || tw_load_relaxed(&is_first_gone)) && tw_process_may_call_system() &&
	       !stat("/proc/self/task", &status) && status.st_nlink <= 2 + 2 &&
	       (!tw_agent_is_late() || is_first_ended());
}

static void look(void)
{
	struct stat status;
	uint64_t beat, now;

	if (bell.state == TW_DOORBELL_LEAVING) {
		leave(bell.end);
		return;
	}
	if (bell.state == TW_DOORBELL_LEFT) {
		if (stat(bell.own, &status) || is_owner_gone())
			forget();
		return;
	}
	/* PAIR rs.closed: acquire; release in tw_rs_close(). */
	if (tw_load_acquire(&tw_agent_ring_set.control->is_closed)) {
		leave(TW_DOORBELL_ASKED);
		return;
	}
	beat = tw_rs_beat(&tw_agent_ring_set);
	now = tw_clock_monotonic_ns();
	if (now > beat && now - beat > lease_ns) {
		tw_agent_tell(
			"the recording ended early: its recorder gave no sign of life, as one that is stopped, or "
			"that waits for its disk");
		leave(TW_DOORBELL_LEASE);
		return;
	}
	tw_agent_python_settle();
	if (may_demote)
		tw_agent_demote();
}

static uint64_t sleep_ns(void)
{
	if (bell.state == TW_DOORBELL_LEAVING)
		return AGAIN_NS;
	if (bell.state == TW_DOORBELL_ATTACHED && may_demote)
		return LOOK_DEMOTE_NS;
	/* RELAXED agent.first_gone: the first thread wakes this one until it has been seen. */
	if (bell.state != TW_DOORBELL_DORMANT || tw_load_relaxed(&is_first_gone))
		return LOOK_NS;
	return tw_agent_is_late() ? LATE_LOOK_NS : UINT64_MAX;
}

/* As libc does behind the last thread; the program's handlers of exit() get its signals. */
static _Noreturn void end_program(void)
{
	pthread_sigmask(SIG_SETMASK, &program_signals, NULL);
	exit(0);
}

static void *wait_for_command(void *unused)
{
	/* By the thread itself: another one would open a file of procfs, which costs several times as much as the thread. */
	prctl(PR_SET_NAME, TW_DOORBELL_THREAD);
	for (;;) {
		/* RELAXED agent.replaced: the other thread joins this one, or takes the word back. */
		if (tw_exchange_acq_rel(&is_replaced, false))
			return unused;
		/* RELAXED agent.rung: the command writes it while this thread is stopped. */
		uint32_t number = tw_load_relaxed(rung());

		if (number != bell.answered)
			answer(number);
		else if (bell.state != TW_DOORBELL_DORMANT)
			look();
		if (is_last_thread())
			end_program();
		tw_sys_futex_wait(rung(), number, sleep_ns());
	}
}

/* The first thread ends, and not the program.  A wake-up between the other thread's look at the word and its sleep would be lost. */
static void first_thread_ends(void *unused)
{
	(void)unused;
	/* RELAXED agent.first_gone: a futex is woken behind it. */
	tw_store_relaxed(&is_first_gone, true);
	for (unsigned i = 0; i < WAKE_TRIES && tw_process_may_call_system() && tw_sys_futex_wake(rung(), 1) < 1; i++)
		tw_sys_sleep(AGAIN_NS);
}

/* Without it, `tracewheel attach` finds no agent in this process: nothing else is different. */
static void make_thread(void)
{
	pthread_attr_t attributes;
	sigset_t all;

	if (pthread_attr_init(&attributes))
		return;
	pthread_attr_setstacksize(&attributes, STACK_BYTES);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &program_signals);
	has_sleeper = !pthread_create(&sleeper, &attributes, wait_for_command, NULL);
	process = tw_sys_process_id();
	if (has_sleeper && tw_sys_thread_id() == process)
		pthread_setspecific(first_key, &bell);
	pthread_sigmask(SIG_SETMASK, &program_signals, NULL);
	pthread_attr_destroy(&attributes);
}

void tw_agent_rights_changed(void)
{
	bool is_gone = false;

	if (!has_sleeper || bell.state != TW_DOORBELL_DORMANT || is_answering || !tw_process_may_call_system() ||
	    process != tw_sys_process_id())
		return;
	/* RELAXED agent.replaced: a futex is woken behind it. */
	tw_exchange_acq_rel(&is_replaced, true);
	for (unsigned i = 0; i < WAKE_TRIES && !is_gone; i++) {
		tw_sys_futex_wake(rung(), 1);
		is_gone = !pthread_tryjoin_np(sleeper, NULL);
		if (!is_gone)
			tw_sys_sleep(AGAIN_NS);
	}
	/* RELAXED agent.replaced: if it has been taken, the thread ends. */
	if (!is_gone && !tw_exchange_acq_rel(&is_replaced, false))
		is_gone = !pthread_join(sleeper, NULL);
	if (is_gone)
		make_thread();
}

/*
 * A child that was forked during a recording has its session, and code that leads to it: it is not attached to.  glibc has kept the stack
 * of the parent's thread, so nothing is allocated here.
 */
static void after_fork_in_child(void)
{
	int saved_errno = errno;

	tw_agent_users_after_fork();
	tw_agent_python_after_fork_in_child();
	bell.answered = bell.rung;
	/* RELAXED agent.first_gone: the child has one thread, its first. */
	tw_store_relaxed(&is_first_gone, false);
	pthread_setspecific(first_key, NULL);
	has_sleeper = false;
	/* RELAXED agent.replaced: as above. */
	tw_store_relaxed(&is_replaced, false);
	if (bell.state == TW_DOORBELL_DORMANT && !is_answering)
		make_thread();
	errno = saved_errno;
}

void tw_agent_wait_for_command(void)
{
	/* The loader ignores most of LD_PRELOAD then, but not all. */
	if (getauxval(AT_SECURE))
		return;
	if (tw_agent_is_late())
		tw_agent_came_late();
	if (pthread_key_create(&first_key, first_thread_ends))
		return;
	/* Behind the thread: the program's malloc() has registered its own handlers then, which run before ours in a child. */
	make_thread();
	pthread_atfork(NULL, NULL, after_fork_in_child);
}
