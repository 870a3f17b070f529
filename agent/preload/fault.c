/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fault.c - handlers of faults see the program's own instructions, not the copies that run in place of them.
 *
 * The first instructions of a traced function run as a copy elsewhere (breakpoints/entry.c).  Run-times that handle
 * faults look the interrupted instruction up in tables of their own, and profilers ask for its function.  The handlers
 * of these signals are therefore called through a function of ours, an adapter.  It puts the original address into the
 * context, and the address of the copy back if the handler has left it unchanged.  An address that the handler has set is
 * obeyed.  A stub that finds too little stack for a hit (breakpoints/entry_stub.c) is left for its copy, and the handler is not
 * called: the stack overflows where it does so without us, or does not.  Everywhere else it jumps to the handler, which then finds its frames as without it.
 *
 * Each handler has an adapter of its own, forever.  Libraries may therefore keep what they find (libjsig calls one handler from
 * another, Go reads handlers by system calls), and handler and flags are exchanged together, by the kernel.
 *
 *	kernel	adapter n	handlers[n]: the program's handler, written once
 *
 * The program is told of its own handlers only.  A handler that is set by a system call, or in an object that finds libc's
 * functions without us, is called by the kernel as before; so is one that finds all adapters taken.
 *
 * Threads: any, signal handlers too.
 */
#include "agent/preload/crash.h"
#include "agent/preload/real.h"
#include "base/export.h"
#include "breakpoints/entry.h"
#include "pipeline/hit/hit.h"

#include <signal.h>
#include <stdint.h>
#include <ucontext.h>

#define SIGNALS	 32
#define ADAPTERS 64
#define TRIES	 8

typedef void (*handler_fn)(int, siginfo_t *, void *);
typedef int (*action_fn)(int, const struct sigaction *, struct sigaction *);
typedef void (*set_fn)(int);
typedef set_fn (*signal_fn)(int, set_fn);

/* The program's handlers, in the order in which they were first set; 0: free from here on. */
static _Atomic(uintptr_t) handlers[ADAPTERS];
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
	return tw_load_relaxed(&is_watching) && (number == SIGSEGV || number == SIGBUS || number == SIGFPE ||
						 number == SIGILL || number == SIGTRAP || number == SIGPROF);
}

/* ---- adapters ---- */

static bool is_handler(uintptr_t handler)
{
	return handler != (uintptr_t)SIG_DFL && handler != (uintptr_t)SIG_IGN && handler != (uintptr_t)SIG_ERR &&
	       handler != (uintptr_t)SIG_HOLD;
}

static handler_fn handler_of(unsigned adapter)
{
	/* PAIR agent.handler: acquire; release in wrapped().  The handler's own data is visible, as through the kernel. */
	return (handler_fn)tw_load_acquire(&handlers[adapter]);
}

/* A program that steps itself is shown each instruction where it runs; only an int3 of its own is a fault. */
static bool is_translated(int number, const siginfo_t *info, const void *context)
{
	uintptr_t pc = (uintptr_t)((const ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];

	if (number == SIGTRAP && info->si_code == TRAP_TRACE)
		return false;
	return tw_entry_original(pc) || tw_entry_without_hit(pc);
}

/* With SA_RESETHAND the handler is not there any more for the fault that may follow. */
static bool is_set(int number)
{
	struct sigaction now;

	return find_action() && !find_action()(number, NULL, &now) && is_handler((uintptr_t)now.sa_sigaction);
}

/* Goes on without the hit, which is counted. */
bool tw_fault_leave_stub(int number, void *context)
{
	greg_t *pc = &((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];
	uintptr_t copy = number == SIGSEGV || number == SIGBUS ? tw_entry_without_hit((uintptr_t)*pc) : 0;

	if (!copy || !is_set(number))
		return false;
	*pc = (greg_t)copy;
	tw_hit_count_pinned(UINT64_C(1) << tw_hit_host.pinned_session, TW_THREAD_UNABLE);
	return true;
}

static void call_shown(handler_fn handler, int number, siginfo_t *info, void *context)
{
	greg_t *pc = &((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];
	uintptr_t there = (uintptr_t)*pc, shown = tw_entry_original(there);

	if (tw_fault_leave_stub(number, context))
		return;
	/* At a site, the stub has moved the stack pointer where it looks for too little stack. */
	if (!shown) {
		handler(number, info, context);
		return;
	}
	*pc = (greg_t)shown;
	/* The fault is at the instruction itself, not at memory that it uses. */
	if ((uintptr_t)info->si_addr == there)
		info->si_addr = (void *)shown;
	handler(number, info, context);
	*pc = (greg_t)((uintptr_t)*pc == shown ? there : tw_entry_moved((uintptr_t)*pc, there));
}

#define ADAPTER(n)                                                                       \
	static TAIL_CALLING void adapter_##n(int number, siginfo_t *info, void *context) \
	{                                                                                \
		handler_fn handler = handler_of(n);                                      \
                                                                                         \
		if (!is_translated(number, info, context))                               \
			TAIL_CALL handler(number, info, context);                        \
		call_shown(handler, number, info, context);                              \
	}
/* In octal. */
#define ROW(use, n) \
	use(0##n##0) use(0##n##1) use(0##n##2) use(0##n##3) use(0##n##4) use(0##n##5) use(0##n##6) use(0##n##7)
#define EACH(use) ROW(use, 0) ROW(use, 1) ROW(use, 2) ROW(use, 3) ROW(use, 4) ROW(use, 5) ROW(use, 6) ROW(use, 7)
EACH(ADAPTER)
#define ADDRESS(n) adapter_##n,
static const handler_fn adapters[] = {EACH(ADDRESS)};
_Static_assert(sizeof adapters / sizeof *adapters == ADAPTERS, "an adapter for each handler");

/* Returns the program's handler if it is one of ours, or what it is. */
static uintptr_t unwrapped(uintptr_t handler)
{
	for (unsigned i = 0; i < ADAPTERS; i++)
		if (handler == (uintptr_t)adapters[i])
			return (uintptr_t)handler_of(i);
	return handler;
}

/* Returns the handler to be set in place of the program's. */
static uintptr_t wrapped(uintptr_t handler)
{
	if (!is_handler(handler) || unwrapped(handler) != handler)
		return handler;
	for (unsigned i = 0; i < ADAPTERS; i++) {
		uintptr_t known = 0;

		/* PAIR agent.handler: release; acquire in handler_of().  Before the kernel knows of the adapter. */
		if (tw_cas_acq_rel(&handlers[i], &known, handler) || known == handler)
			return (uintptr_t)adapters[i];
	}
	return handler;
}

/* ---- wrappers ---- */

/* The program's view of the handler that was set. */
static void show(struct sigaction *action)
{
	if (tw_crash_is_handler((uintptr_t)action->sa_sigaction))
		*action = (struct sigaction){.sa_handler = SIG_DFL};
	else
		action->sa_sigaction = (handler_fn)unwrapped((uintptr_t)action->sa_sigaction);
}

static int set_action(action_fn real, int number, const struct sigaction *action, struct sigaction *old_action)
{
	bool is_default = action && action->sa_handler == SIG_DFL;
	struct sigaction ours;
	int result;

	if (action) {
		ours = *action;
		if (is_watched(number))
			ours.sa_sigaction = (handler_fn)wrapped((uintptr_t)action->sa_sigaction);
	}
	result = real(number, action ? &ours : NULL, old_action);
	if (!result && old_action)
		show(old_action);
	if (!result && is_default)
		tw_crash_stand_in(number);
	return result;
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
	uintptr_t ours = is_watched(number) ? wrapped((uintptr_t)handler) : (uintptr_t)handler;
	uintptr_t old = (uintptr_t)real(number, (set_fn)ours);

	if (old != (uintptr_t)SIG_ERR && handler == SIG_DFL)
		tw_crash_stand_in(number);
	return tw_crash_is_handler(old) ? SIG_DFL : (set_fn)unwrapped(old);
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

/*
 * Wraps the handler that is set already.  If another thread sets one meanwhile, that is set again, a few times: the next
 * sigaction() may be a wrapper too, which does not tell what it has.
 */
static void wrap_present(int number)
{
	struct sigaction wanted = {.sa_handler = SIG_DFL}, ours, before = wanted;
	uintptr_t expected;

	if (find_action()(number, NULL, &wanted) || !is_handler((uintptr_t)wanted.sa_sigaction) ||
	    tw_crash_is_handler((uintptr_t)wanted.sa_sigaction))
		return;
	expected = (uintptr_t)wanted.sa_sigaction;
	for (unsigned tries = 0; tries < TRIES; tries++) {
		ours = wanted;
		ours.sa_sigaction = (handler_fn)wrapped((uintptr_t)wanted.sa_sigaction);
		if (find_action()(number, &ours, &before) || (uintptr_t)before.sa_sigaction == expected)
			return;
		expected = (uintptr_t)ours.sa_sigaction;
		wanted = before;
	}
}

/* Before the first copy is run. */
static void watch(void)
{
	/* RELAXED agent.faults: as above. */
	tw_store_relaxed(&is_watching, true);
	/* Handlers that constructors of libraries have set before. */
	for (int number = 1; number < SIGNALS; number++)
		if (is_watched(number))
			wrap_present(number);
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
