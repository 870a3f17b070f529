/* SPDX-License-Identifier: Apache-2.0 */
/*
 * urcu.c - a program that uses the same flavour of liburcu as we do.
 *
 * Hits register their thread with liburcu, which aborts when a thread registers twice.  A program's
 * own registration comes here first, as ours does, and both are counted: the first registers, the
 * last takes the registration away.  Read sections nest by themselves.
 */
#include "base/atomic.h"
#include "base/export.h"

#include <dlfcn.h>

typedef void (*register_fn)(void);

void urcu_memb_register_thread(void);
void urcu_memb_unregister_thread(void);

static _Atomic(register_fn) real_register, real_unregister;
static __thread unsigned registrations;

static register_fn find(_Atomic(register_fn) *known, const char *name)
{
	/* RELAXED agent.real: whoever comes first finds the same answer. */
	register_fn real = tw_load_relaxed(known);

	if (!real) {
		*(void **)&real = dlsym(RTLD_NEXT, name);
		/* RELAXED agent.real: as above. */
		tw_store_relaxed(known, real);
	}
	return real;
}

/* Before any thread joins in the middle of something, where the loader must not be asked. */
__attribute__((constructor(101))) static void find_both(void)
{
	find(&real_register, "urcu_memb_register_thread");
	find(&real_unregister, "urcu_memb_unregister_thread");
}

TW_API void urcu_memb_register_thread(void)
{
	if (registrations++ == 0)
		find(&real_register, "urcu_memb_register_thread")();
}

TW_API void urcu_memb_unregister_thread(void)
{
	if (--registrations == 0)
		find(&real_unregister, "urcu_memb_unregister_thread")();
}
