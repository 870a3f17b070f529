/* SPDX-License-Identifier: Apache-2.0 */
/*
 * crash.c - handlers for the signals that end a program which has no handler of its own, so that where it was can be written down.
 *
 *	1 the program dies: the kernel calls our handler, which stands in for SIG_DFL
 *	2 the signal, registers and stack are written to the ring set (agent/crash.c)
 *	3 SIG_DFL is set, and the same signal is sent to the thread again, with all that siginfo_t says
 *	4 our handler returns: all registers are what they were, the signal is delivered, and the program dies of it there
 *
 * The wait status, and signal, registers and stacks in the core, are those that they are without us.
 *
 * The program is not told of the handler (fault.c).  One of its own takes its place; when it sets SIG_DFL to die, ours comes back.  One that
 * is set by a system call, or for one signal only (SA_RESETHAND), leaves the program without ours.  A thread whose stack has overflowed, or
 * that has the signal blocked, is ended by the kernel without any handler, unless it has a signal stack (thread/signal_stack.c).
 *
 * Threads: any, signal handlers too.
 */
#include "agent/preload/crash.h"
#include "agent/crash.h"
#include "agent/preload/real.h"
#include "base/filter.h"
#include "base/sys.h"

#include <errno.h>

typedef int (*action_fn)(int, const struct sigaction *, struct sigaction *);

TW_REAL(action_fn, action, "sigaction")

static const int numbers[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGTRAP, SIGSYS};
#define COUNT (sizeof numbers / sizeof *numbers)

/* Bits of the signals for which our handler stands in when the program has none. */
static _Atomic uint32_t watched;

static bool is_watched(int number)
{
	/* RELAXED agent.crash: set before anything is traced; a stale value leaves the program as it is without us. */
	return number > 0 && number < 32 && tw_load_relaxed(&watched) & UINT32_C(1) << number;
}

/* All signals are blocked meanwhile: no other handler of the program runs between the crash and its end. */
static void on_crash(int number, siginfo_t *info, void *context)
{
	int saved_errno = errno;

	if (tw_fault_leave_stub(number, context))
		return;
	tw_agent_crash_tell(info, context);
	tw_sys_default_signal(number);
	/* If that fails, a fault occurs again: nothing has changed. */
	tw_sys_send_again(number, info);
	errno = saved_errno;
}

bool tw_crash_is_handler(uintptr_t handler)
{
	return handler == (uintptr_t)on_crash;
}

void tw_crash_stand_in(int number)
{
	struct sigaction ours = {.sa_sigaction = on_crash, .sa_flags = SA_SIGINFO | SA_ONSTACK};

	if (!is_watched(number))
		return;
	sigfillset(&ours.sa_mask);
	find_action()(number, &ours, NULL);
}

/* Only where nothing else is set: a library of the program's start may have handlers, or ignore one. */
static void watch(void)
{
	struct sigaction found;

	if (!tw_thread_may_call_system())
		return;
	for (size_t i = 0; i < COUNT; i++) {
		/* RELAXED agent.crash: as above. */
		tw_fetch_or_relaxed(&watched, UINT32_C(1) << numbers[i]);
		if (find_action()(numbers[i], NULL, &found) == 0 && found.sa_handler == SIG_DFL)
			tw_crash_stand_in(numbers[i]);
	}
}

void tw_crash_end(void)
{
	struct sigaction found;

	/* RELAXED agent.crash: as above. */
	tw_store_relaxed(&watched, 0);
	for (size_t i = 0; i < COUNT; i++)
		if (find_action()(numbers[i], NULL, &found) == 0 && tw_crash_is_handler((uintptr_t)found.sa_sigaction))
			tw_sys_default_signal(numbers[i]);
}

__attribute__((constructor(101))) static void find_early(void)
{
	find_action();
	tw_agent_crash_watch = watch;
}
