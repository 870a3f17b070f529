/* SPDX-License-Identifier: Apache-2.0 */
/*
 * name.c - threads that get a name: their rings get the last one even if the thread, or the program, ends before the recorder can read
 * it from /proc. prctl(PR_SET_NAME) passes through confine.c.
 */
#include "agent/preload/real.h"
#include "base/export.h"
#include "pipeline/hit/hit.h"
#include "pipeline/thread/thread.h"

#include <pthread.h>

typedef int (*name_fn)(pthread_t, const char *);

TW_REAL(name_fn, name, "pthread_setname_np")

__attribute__((constructor(101))) static void find_early(void)
{
	find_name();
}

TW_API int pthread_setname_np(pthread_t thread, const char *name)
{
	int error = find_name()(thread, name);

	if (!error && pthread_equal(thread, pthread_self()))
		tw_thread_named(name);
	else if (!error)
		tw_thread_named_other(thread, name);
	return error;
}
