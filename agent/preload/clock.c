/* SPDX-License-Identifier: Apache-2.0 */
/*
 * clock.c - a thread that asks that reading the processor's clock be a fault.
 *
 * Strict seccomp and prctl(PR_SET_TSC, PR_TSC_SIGSEGV) make rdtsc a fault in the thread that asks, and every hit reads
 * that clock.  So such a thread is left alone from there on, and its calls are counted as lost.
 */
#include "base/atomic.h"
#include "base/export.h"
#include "pipeline/hit.h"

#include <dlfcn.h>
#include <linux/seccomp.h>
#include <stdarg.h>
#include <sys/prctl.h>

typedef int (*prctl_fn)(int, ...);

static _Atomic(prctl_fn) real_prctl;

static prctl_fn find_prctl(void)
{
	/* RELAXED agent.real: whoever comes first finds the same answer. */
	prctl_fn real = tw_load_relaxed(&real_prctl);

	if (!real) {
		*(void **)&real = dlsym(RTLD_NEXT, "prctl");
		/* RELAXED agent.real: as above. */
		tw_store_relaxed(&real_prctl, real);
	}
	return real;
}

/* Before a thread asks where the loader must not be asked: in a child of vfork(), in a handler. */
__attribute__((constructor(101))) static void find_early(void)
{
	find_prctl();
}

static bool forbids_clock(int option, unsigned long first)
{
	return (option == PR_SET_SECCOMP && first == SECCOMP_MODE_STRICT) ||
	       (option == PR_SET_TSC && first == PR_TSC_SIGSEGV);
}

/* As libc's: always four arguments, whatever the caller gave. */
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
	if (!forbids_clock(option, a[0]))
		return find_prctl()(option, a[0], a[1], a[2], a[3]);
	state = tw_thread_bar();
	result = find_prctl()(option, a[0], a[1], a[2], a[3]);
	if (result)
		tw_thread_unbar(state);
	return result;
}
