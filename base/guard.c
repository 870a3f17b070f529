/* SPDX-License-Identifier: Apache-2.0 */
/* guard.c - see guard.h. */
#include "base/guard.h"
#include "base/atomic.h"

#include <errno.h>
#include <signal.h>

static struct {
	_Atomic(uintptr_t) replace; /* a tw_guard_fn; 0: not set.  PAIR base.guard */
	void *arg;
} guards[TW_GUARDED_KINDS];
static unsigned set_count;
static struct sigaction before;

static void on_sigbus(int number, siginfo_t *info, void *context)
{
	int saved_errno = errno;
	bool is_replaced = false;

	for (int i = 0; i < TW_GUARDED_KINDS && info->si_code == BUS_ADRERR && !is_replaced; i++) {
		/* PAIR base.guard: acquire; release in tw_guard_set(). */
		tw_guard_fn replace = (tw_guard_fn)tw_load_acquire(&guards[i].replace);

		is_replaced = replace && replace(guards[i].arg, (uintptr_t)info->si_addr);
	}
	if (!is_replaced)
		sigaction(SIGBUS, &before, NULL);
	errno = saved_errno;
}

bool tw_guard_set(enum tw_guarded kind, tw_guard_fn replace, void *arg)
{
	struct sigaction action = {.sa_sigaction = on_sigbus, .sa_flags = SA_SIGINFO | SA_RESTART};

	/* RELAXED base.guard: written by this thread. */
	if (tw_load_relaxed(&guards[kind].replace))
		return false;
	guards[kind].arg = arg;
	/* PAIR base.guard: release; acquire in on_sigbus(). */
	tw_store_release(&guards[kind].replace, (uintptr_t)replace);
	if (!set_count++)
		sigaction(SIGBUS, &action, &before);
	return true;
}

void tw_guard_end(enum tw_guarded kind)
{
	/* RELAXED base.guard: nothing of this kind is read any more. */
	tw_store_relaxed(&guards[kind].replace, 0);
	if (!--set_count)
		sigaction(SIGBUS, &before, NULL);
}
