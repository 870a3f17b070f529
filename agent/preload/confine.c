/* SPDX-License-Identifier: Apache-2.0 */
/*
 * confine.c - a thread that forbids itself system calls or reading the processor's clock.
 *
 * After strict seccomp or prctl(PR_SET_TSC, PR_TSC_SIGSEGV), rdtsc faults in the calling thread, and every hit reads
 * that clock.  Such a thread is no longer traced, and its calls are counted as lost.
 *
 * A seccomp filter may end the program at any system call.  Thus it must be known before it is set (base/filter.h),
 * whether a library uses prctl() or, like libseccomp, syscall().  The same holds for system call user dispatch, by which Wine
 * and other run-times turn system calls of the code that they run into signals.
 *
 * Capabilities are a thread's own, too: the agent's thread follows the program's (leave.h).
 */
#include "agent/agent.h"
#include "agent/leave.h"
#include "agent/preload/crash.h"
#include "agent/preload/real.h"
#include "base/export.h"
#include "base/filter.h"
#include "pipeline/hit/hit.h"
#include "pipeline/thread/thread.h"

#include <linux/seccomp.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

/* syscall() takes any number of arguments; on this processor they are passed like those of a function with seven. */
typedef long (*syscall_fn)(long, long, long, long, long, long, long);
typedef int (*prctl_fn)(int, ...);
typedef int (*capset_fn)(void *, const void *);

TW_REAL(prctl_fn, prctl, "prctl")
TW_REAL(syscall_fn, syscall, "syscall")
TW_REAL(capset_fn, capset, "capset")

/* Looked up early: a child of vfork() or a handler must not call the loader. */
__attribute__((constructor(101))) static void find_early(void)
{
	find_prctl();
	find_syscall();
	find_capset();
}

static bool forbids_clock(long option, unsigned long first)
{
	return (option == PR_SET_SECCOMP && first == SECCOMP_MODE_STRICT) ||
	       (option == PR_SET_TSC && first == PR_TSC_SIGSEGV);
}

/* ---- filters ---- */

static void tell_once(_Atomic bool *is_noted, const char *text)
{
	if (!tw_agent_enter())
		return;
	/* RELAXED agent.told: one note only. */
	if (!tw_exchange_acq_rel(is_noted, true))
		tw_agent_tell(text);
	tw_agent_leave();
}

static void tell_filter(void)
{
	static _Atomic bool is_noted;

	tell_once(
		&is_noted,
		"the program asked for a seccomp filter: threads that it may hold for make no more system calls of the "
		"tracer; they lose events when their rings are full, and without a ring; what they load is not traced");
}

/* A child of vfork() may confine itself; that is another process. */
static bool begin(enum tw_filter_scope scope, struct tw_filter_change *change)
{
	if (!tw_thread_is_own_process())
		return false;
	tell_filter();
	tw_crash_end();
	*change = tw_filter_begin(scope);
	if (scope == TW_FILTER_ALL_THREADS)
		tw_threads_await_calls();
	tw_threads_populate_rings();
	return true;
}

static long set_filter(long number, long a, long b, long c, long d, long e, long f, enum tw_filter_scope scope,
		       bool gives_fd)
{
	struct tw_filter_change change;
	bool has_begun = begin(scope, &change);
	long result = find_syscall()(number, a, b, c, d, e, f);

	if (has_begun)
		tw_filter_end(change, result == 0 || (gives_fd && result > 0));
	return result;
}

/* ---- system call user dispatch ---- */

#ifndef PR_SET_SYSCALL_USER_DISPATCH
#define PR_SET_SYSCALL_USER_DISPATCH 59
#endif
#define SYS_DISPATCH_OFF 0

/* The state that is needed while the selector forbids calls.  Some programs switch dispatch off and on all the time. */
static void prepare_dispatch(void)
{
	static __thread bool is_prepared;
	static _Atomic bool is_noted;

	if (is_prepared || !tw_thread_may_call_system())
		return;
	is_prepared = true;
	tell_once(
		&is_noted,
		"the program asked for system call user dispatch: while a thread's system calls are dispatched, the tracer "
		"makes none there; it loses events when the thread's ring is full, and without a ring");
	tw_threads_populate_rings();
}

/* a: mode, start and length of the code whose calls are never dispatched, selector. */
static int set_dispatch(const unsigned long a[4])
{
	struct tw_dispatch wanted = {(const volatile uint8_t *)a[3], a[0] != SYS_DISPATCH_OFF}, before;
	int result;

	/* A child of vfork() shares this memory, but not the setting.  Asking takes a system call. */
	if (tw_thread_may_call_system() && !tw_thread_is_own_process())
		return find_prctl()(PR_SET_SYSCALL_USER_DISPATCH, a[0], a[1], a[2], a[3]);
	if (!wanted.is_on) {
		result = find_prctl()(PR_SET_SYSCALL_USER_DISPATCH, a[0], a[1], a[2], a[3]);
		if (!result)
			tw_dispatch_set(wanted);
		return result;
	}
	prepare_dispatch();
	before = tw_dispatch_set(wanted);
	result = find_prctl()(PR_SET_SYSCALL_USER_DISPATCH, a[0], a[1], a[2], a[3]);
	if (result)
		tw_dispatch_set(before);
	return result;
}

/* ---- functions the program calls ---- */

/* As in libc: always four arguments, whatever the caller passed. */
TW_API int prctl(int option, ...)
{
	unsigned long a[4];
	uintptr_t state;
	va_list list;
	int result;

	va_start(list, option);
	for (unsigned i = 0; i < 4; i++)
		a[i] = va_arg(list, unsigned long);
	va_end(list);
	if (option == PR_SET_SECCOMP && a[0] == SECCOMP_MODE_FILTER)
		return (int)set_filter(SYS_prctl, option, (long)a[0], (long)a[1], (long)a[2], (long)a[3], 0,
				       TW_FILTER_THREAD, false);
	if (option == PR_SET_SYSCALL_USER_DISPATCH)
		return set_dispatch(a);
	if (!forbids_clock(option, a[0])) {
		result = find_prctl()(option, a[0], a[1], a[2], a[3]);
		if (option == PR_SET_NAME && result == 0)
			tw_thread_named((const char *)a[0]);
		if ((option == PR_SET_KEEPCAPS || option == PR_SET_SECUREBITS) && result == 0)
			tw_agent_rights_changed();
		return result;
	}
	state = tw_thread_forbid_clock();
	result = find_prctl()(option, a[0], a[1], a[2], a[3]);
	if (result)
		tw_thread_allow_clock(state);
	return result;
}

/* libc has it, and no header of its own. */
int capset(void *header, const void *data);

TW_API int capset(void *header, const void *data)
{
	int result = find_capset()(header, data);

	if (result == 0)
		tw_agent_rights_changed();
	return result;
}

static __attribute__((noinline)) long call_watched(long number, long a, long b, long c, long d, long e, long f)
{
	if (number == SYS_sigaltstack)
		return sigaltstack((const stack_t *)a, (stack_t *)b);
	if (number == SYS_prctl)
		return prctl((int)a, b, c, d, e);
	if (number == SYS_capset)
		return capset((void *)a, (const void *)b);
	if (number != SYS_seccomp) {
		long child = find_syscall()(number, a, b, c, d, e, f);

		if (child == 0)
			tw_threads_let_go_in_child();
		else if (child > 0)
			tw_preload_child_began();
		return child;
	}
	if (a == SECCOMP_SET_MODE_STRICT) {
		/*
		 * With the caller's flags: libseccomp passes invalid flags to find out whether the kernel knows the
		 * call.
		 */
		uintptr_t state = tw_thread_forbid_clock();
		long result = find_syscall()(number, a, b, c, d, e, f);

		if (result)
			tw_thread_allow_clock(state);
		return result;
	}
	if (a != SECCOMP_SET_MODE_FILTER)
		return find_syscall()(number, a, b, c, d, e, f);
	return set_filter(number, a, b, c, d, e, f,
			  (unsigned long)b & SECCOMP_FILTER_FLAG_TSYNC ? TW_FILTER_ALL_THREADS : TW_FILTER_THREAD,
			  (unsigned long)b & SECCOMP_FILTER_FLAG_NEW_LISTENER);
}

long tw_preload_syscall(long number, long a, long b, long c, long d, long e, long f) __asm__("syscall");

TW_API TAIL_CALLING long tw_preload_syscall(long number, long a, long b, long c, long d, long e, long f)
{
	syscall_fn real = find_syscall();

	if (tw_unlikely(number == SYS_seccomp || number == SYS_prctl || number == SYS_sigaltstack ||
			number == SYS_capset || tw_preload_makes_child(number, a, b)))
		TAIL_CALL call_watched(number, a, b, c, d, e, f);
	TAIL_CALL real(number, a, b, c, d, e, f);
}
