/* SPDX-License-Identifier: Apache-2.0 */
/*
 * name.c - a thread that gives itself a name: its rings have the last one, also when it lives too briefly for the recorder
 * to read it from /proc.  prctl(PR_SET_NAME) passes through confine.c.
 */
#include "base/atomic.h"
#include "base/export.h"
#include "pipeline/hit/hit.h"

#include <dlfcn.h>
#include <pthread.h>

typedef int (*name_fn)(pthread_t, const char *);

static _Atomic(name_fn) real_name;

static name_fn find_name(void)
{
	/* RELAXED agent.real: whoever comes first finds the same answer. */
	name_fn real = tw_load_relaxed(&real_name);

	if (!real) {
		*(void **)&real = dlsym(RTLD_NEXT, "pthread_setname_np");
		/* RELAXED agent.real: as above. */
		tw_store_relaxed(&real_name, real);
	}
	return real;
}

__attribute__((constructor(101))) static void find_early(void)
{
	find_name();
}

TW_API int pthread_setname_np(pthread_t thread, const char *name)
{
	int error = find_name()(thread, name);

	if (!error && pthread_equal(thread, pthread_self()))
		tw_thread_named(name);
	return error;
}
