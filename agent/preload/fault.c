/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fault.c - handlers of faults see the program's own instructions, not the copies that run in place of them.
 *
 * The first instructions of a traced function run as a copy elsewhere (breakpoints/entry.c).  Run-times that handle
 * faults look the interrupted instruction up in tables of their own, and profilers ask for its function.  The handlers
 * of these signals are therefore called through a function of ours.  It puts the original address into the context, and the
 * address of the copy back if the handler has left it unchanged.  An address that the handler has set is obeyed.
 *
 * Everywhere else it jumps to the handler, which then finds its frames as without it.  The program is told of its own
 * handlers only.  A handler that is set by a system call, or in an object that finds libc's functions without us, is
 * called by the kernel as before.
 *
 * Threads: any, signal handlers too.
 */
#include "agent/preload/real.h"
#include "base/export.h"
#include "breakpoints/entry.h"

#include <signal.h>
#include <stdint.h>
#include <ucontext.h>

#define SIGNALS 32

typedef void (*handler_fn)(int, siginfo_t *, void *);
typedef int (*action_fn)(int, const struct sigaction *, struct sigaction *);
typedef void (*set_fn)(int);
typedef set_fn (*signal_fn)(int, set_fn);

/* The program's handlers.  Never NULL once ours is set for that signal. */
static _Atomic(uintptr_t) handlers[SIGNALS];
static _Atomic bool is_watching;

TW_REAL(action_fn, action, "sigaction")
TW_REAL(action_fn, inner_action, "__sigaction")
TW_REAL(signal_fn, signal, "signal")
TW_REAL(signal_fn, bsd_signal, "bsd_signal")
TW_REAL(signal_fn, ssignal, "ssignal")
TW_REAL(signal_fn, sysv_signal, "sysv_signal")
TW_REAL(signal_fn, inner_sysv_signal, "__sysv_signal")
TW_REAL(signal_fn, sigset, "sigset")

static bool is_watched(int number)
{
	/* RELAXED agent.faults: set before anything is traced; a stale value leaves a handler as the program sets it. */
	return tw_load_relaxed(&is_watching) &&
	       (number == SIGSEGV || number == SIGBUS || number == SIGFPE || number == SIGILL || number == SIGPROF);
}

static handler_fn handler_of(int number)
{
	/* PAIR agent.handler: acquire; release in keep().  The handler's own data is visible, as through the kernel. */
	return (handler_fn)tw_load_acquire(&handlers[number]);
}

static TAIL_CALLING void call_handler(int number, siginfo_t *info, void *context)
{
	greg_t *pc = &((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];
	uintptr_t there = (uintptr_t)*pc, shown = tw_entry_original(there);

	if (!shown)
		TAIL_CALL handler_of(number)(number, info, context);
	*pc = (greg_t)shown;
	/* The fault is at the instruction itself, not at memory that it uses. */
	if ((uintptr_t)info->si_addr == there)
		info->si_addr = (void *)shown;
	handler_of(number)(number, info, context);
	*pc = (greg_t)((uintptr_t)*pc == shown ? there : tw_entry_moved((uintptr_t)*pc, there));
}

static bool is_handler(uintptr_t handler)
{
	return handler != (uintptr_t)SIG_DFL && handler != (uintptr_t)SIG_IGN && handler != (uintptr_t)SIG_ERR &&
	       handler != (uintptr_t)SIG_HOLD && handler != (uintptr_t)call_handler;
}

/* Returns the handler to be set in place of the program's. */
static uintptr_t keep(int number, uintptr_t handler)
{
	if (!is_handler(handler))
		return handler;
	/* PAIR agent.handler: release; acquire in handler_of().  Before the kernel knows of it. */
	tw_store_release(&handlers[number], handler);
	return (uintptr_t)call_handler;
}

static int set_action(action_fn real, int number, const struct sigaction *action, struct sigaction *old_action)
{
	struct sigaction ours, before;
	handler_fn last;
	int result;

	if (!is_watched(number))
		return real(number, action, old_action);
	last = handler_of(number);
	if (action) {
		ours = *action;
		ours.sa_sigaction = (handler_fn)keep(number, (uintptr_t)action->sa_sigaction);
	}
	result = real(number, action ? &ours : NULL, &before);
	if (result && last)
		keep(number, (uintptr_t)last);
	if (result || !old_action)
		return result;
	*old_action = before;
	if (before.sa_sigaction == call_handler)
		old_action->sa_sigaction = last;
	return 0;
}

TW_API int sigaction(int number, const struct sigaction *action, struct sigaction *old_action)
{
	return set_action(find_action(), number, action, old_action);
}

int __sigaction(int number, const struct sigaction *action, struct sigaction *old_action);
TW_API int __sigaction(int number, const struct sigaction *action, struct sigaction *old_action)
{
	return set_action(find_inner_action(), number, action, old_action);
}

static set_fn set_signal(signal_fn real, int number, set_fn handler)
{
	handler_fn last;
	set_fn before;

	if (!is_watched(number))
		return real(number, handler);
	last = handler_of(number);
	before = real(number, (set_fn)keep(number, (uintptr_t)handler));
	if (before == SIG_ERR && last)
		keep(number, (uintptr_t)last);
	return (uintptr_t)before == (uintptr_t)call_handler ? (set_fn)(uintptr_t)last : before;
}

#define SETTER(name, find)                                  \
	set_fn name(int number, set_fn handler);            \
	TW_API set_fn name(int number, set_fn handler)      \
	{                                                   \
		return set_signal(find(), number, handler); \
	}

SETTER(signal, find_signal)
SETTER(bsd_signal, find_bsd_signal)
SETTER(ssignal, find_ssignal)
SETTER(sysv_signal, find_sysv_signal)
SETTER(__sysv_signal, find_inner_sysv_signal)
SETTER(sigset, find_sigset)

/* Before the first copy is run. */
static void watch(void)
{
	/* RELAXED agent.faults: as above. */
	tw_store_relaxed(&is_watching, true);
	/* Handlers that constructors of libraries have set before. */
	for (int number = 1; number < SIGNALS; number++) {
		struct sigaction action;

		if (is_watched(number) && !find_action()(number, NULL, &action) &&
		    is_handler((uintptr_t)action.sa_sigaction))
			sigaction(number, &action, NULL);
	}
}

/* Looked up early: these may be called in handlers, which must not call the loader. */
__attribute__((constructor(101))) static void find_early(void)
{
	find_action();
	find_inner_action();
	find_signal();
	find_bsd_signal();
	find_ssignal();
	find_sysv_signal();
	find_inner_sysv_signal();
	find_sigset();
	tw_entry_before_first = watch;
}
