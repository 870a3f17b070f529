/* SPDX-License-Identifier: Apache-2.0 */
/*
 * python_late.c - frames of a CPython 3.11 that runs already: a recording begins and ends in the middle of them.
 *
 *  1 find		the interpreter's functions, before anything is recorded; the reasons why not are the answer to `attach`
 *  2 settle	a thread of ours takes the interpreter's lock (GIL) and sets the evaluation, or takes it away
 *  3 wait		for that thread, a second at most
 *
 * The lock is held where the evaluation is changed, since a thread that evaluates looks at that pointer twice, with the lock.  No thread of
 * the program is needed for it: one that waits in a call of the system has given the lock away, and one that runs gives it to a thread that
 * has waited for 5 ms.  While a call of C keeps it, no function of Python runs on any thread, so that none is missed: the thread of ours waits on,
 * and does then what is wanted then.
 *
 * Threads  that of dormant.c, if nothing else is said.
 */
#include "agent/agent.h"
#include "agent/leave.h"
#include "agent/python.h"

#include "base/atomic.h"
#include "base/clock.h"
#include "base/filter.h"
#include "base/sys.h"
#include "pipeline/thread/thread.h"
#include "symbols/symbols.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

#define THREAD_NAME "tw-python"
#define STACK_BYTES (256u << 10)
#define PATIENCE_NS UINT64_C(1000000000)
/* A thread of ours ends without having done its work if the interpreter ends: the next one finds that. */
#define TRIES 3

/* The number of the recording that is to be; 0: none. */
static _Atomic uint32_t wanted;
static uint32_t recordings;
static void *pin; /* keeps the interpreter's object loaded */
static bool is_left_behind;
static bool has_kept_items; /* by whom has the interpreter's lock */

/* Written by the thread that settles, read when it has been joined. */
static struct {
	uint32_t is; /* the recording that is, or whose reasons are told */
	const char *why;
} settled;

static pthread_t settler;
static bool has_settler;

/* ---- the thread that settles ---- */

static const char *begin(uint32_t recording)
{
	const char *why = tw_python_install(tw_py.main_interpreter(), recording);

	if (!why) {
		tw_python_keep_items();
		has_kept_items = true;
	}
	return why;
}

static const char *end(void)
{
	const char *why = tw_python_remove();

	if (has_kept_items)
		tw_python_free_items();
	has_kept_items = false;
	return why;
}

static void settle_with(struct tw_py_thread *thread)
{
	tw_py.take_lock(thread);
	/* RELAXED agent.python_wanted: the thread that has written it looks again when this one has ended. */
	uint32_t to = tw_load_relaxed(&wanted);

	settled.why = to ? begin(to) : end();
	settled.is = to;
	tw_py.clear_thread(thread);
	tw_py.delete_current();
}

static void *settle(void *unused)
{
	/* Calls that the interpreter makes here are none of the program's. */
	bool is_own = tw_thread_join() && tw_thread_begin_own_work(__builtin_frame_address(0));
	struct tw_py_thread *thread;

	prctl(PR_SET_NAME, THREAD_NAME);
	if (!tw_py.is_initialized() || tw_py.is_finalizing()) {
		settled.why = "the interpreter has ended";
		/* RELAXED agent.python_wanted: as above. */
		settled.is = tw_load_relaxed(&wanted);
	} else {
		thread = tw_py.make_thread(tw_py.main_interpreter());
		if (thread) {
			settle_with(thread);
		} else {
			settled.why = "there is no memory for a thread of the interpreter";
			/* RELAXED agent.python_wanted: as above. */
			settled.is = tw_load_relaxed(&wanted);
		}
	}
	tw_thread_end_own_work(is_own);
	return unused;
}

/* All signals are blocked in it, as in the calling thread. */
static bool make_settler(void)
{
	pthread_attr_t attributes;

	if (!tw_process_may_call_system() || pthread_attr_init(&attributes))
		return false;
	pthread_attr_setstacksize(&attributes, STACK_BYTES);
	has_settler = !pthread_create(&settler, &attributes, settle, NULL);
	pthread_attr_destroy(&attributes);
	return has_settler;
}

static bool is_settled(void)
{
	/* RELAXED agent.python_wanted: written by this thread. */
	return !has_settler && settled.is == tw_load_relaxed(&wanted);
}

/* False: the lock is not free yet. */
static bool await_settled(uint64_t most_ns)
{
	uint64_t end_ns = tw_clock_monotonic_ns() + most_ns;
	const struct timespec end = {.tv_sec = (time_t)(end_ns / 1000000000), .tv_nsec = (long)(end_ns % 1000000000)};

	for (unsigned i = 0; i < TRIES && !is_settled(); i++) {
		if (!has_settler && !make_settler()) {
			settled.why = "the program may have no more threads, or none of the tracer's";
			break;
		}
		if (pthread_clockjoin_np(settler, NULL, CLOCK_MONOTONIC, &end))
			return false;
		has_settler = false;
	}
	return true;
}

/* ---- finding ---- */

/* In what the program was linked with; else in any object, as one that it has opened for itself. */
static bool find(struct tw_py_api *api, char *why)
{
	bool is_found = tw_python_find(RTLD_DEFAULT, api, why);
	struct tw_sym_set *set;

	if (is_found || tw_sym_load(&set))
		return is_found;
	for (size_t i = 0; i < set->count && !is_found; i++) {
		void *handle = NULL;

		if (set->objects[i].role != TW_SYM_ORDINARY || !tw_sym_pin(&set->objects[i], &handle))
			continue;
		is_found = tw_python_find(handle, api, why);
		tw_sym_unpin(handle);
	}
	tw_sym_unload(set);
	return is_found;
}

/* The program itself needs none. */
static void pin_object(const struct tw_py_api *api)
{
	struct link_map *map = NULL;
	Dl_info info;

	if (!pin && dladdr1(api->runtime, &info, (void **)&map, RTLD_DL_LINKMAP) && map && *map->l_name)
		pin = dlopen(map->l_name, RTLD_LAZY | RTLD_NOLOAD);
}

bool tw_agent_python_may_attach(char why[TW_AGENT_WHY_BYTES])
{
	struct tw_py_api api;
	const char *refused;
	bool is_found;

	*why = '\0';
	/* One that waits for the lock uses what was found before. */
	if (has_settler && !await_settled(0))
		return true;
	is_found = find(&api, why);
	dlerror();
	if (!is_found)
		snprintf(why, TW_AGENT_WHY_BYTES,
			 "this program is no Python, or an interpreter that exports none of its functions");
	else if (!*why && (!api.is_initialized() || api.is_finalizing()))
		snprintf(why, TW_AGENT_WHY_BYTES, "its interpreter has not begun to run, or has ended");
	else if (!*why && (refused = tw_python_is_refused(&api, api.main_interpreter())))
		snprintf(why, TW_AGENT_WHY_BYTES, "%s", refused);
	if (*why)
		return false;
	tw_py = api;
	pin_object(&api);
	return true;
}

/* ---- a recording ---- */

/* A note, if there is something to say of how it began. */
static void tell_begun(void)
{
	void *first;

	if (settled.why) {
		tw_python_tell_why(settled.why);
		return;
	}
	first = tw_py.first_interpreter();
	if (first && tw_py.next_interpreter(first))
		tw_agent_tell("functions of Python are not recorded in sub-interpreters");
}

void tw_agent_python_attach(void)
{
	is_left_behind = false;
	/* RELAXED agent.python_wanted: settle_with() says why. */
	tw_store_relaxed(&wanted, ++recordings);
	if (await_settled(PATIENCE_NS))
		tell_begun();
	else
		tw_agent_tell(
			"functions of Python are recorded later than others: the interpreter's lock (GIL) was not free for 1 s, "
			"as during a long call of C; no function of Python runs meanwhile");
}

void tw_agent_python_settle(void)
{
	if (has_settler && await_settled(0))
		tell_begun();
}

bool tw_agent_python_leave(void)
{
	static uint64_t begun_ns;

	/* RELAXED agent.python_wanted: settle_with() says why. */
	if (tw_load_relaxed(&wanted)) {
		/* RELAXED agent.python_wanted: settle_with() says why. */
		tw_store_relaxed(&wanted, 0);
		begun_ns = tw_clock_monotonic_ns();
	}
	if (is_settled() || is_left_behind)
		return true;
	if (await_settled(1000000)) {
		if (settled.why)
			tw_python_tell_why(settled.why);
		return true;
	}
	is_left_behind = tw_clock_monotonic_ns() - begun_ns > PATIENCE_NS;
	if (is_left_behind)
		tw_agent_tell(
			"the function that evaluates Python's frames is still set, and records nothing: the interpreter's lock "
			"(GIL) was not free for 1 s, as during a long call of C; it is taken away as soon as it is");
	return is_left_behind;
}

void tw_agent_python_forget(void)
{
	if (!is_settled() || !pin)
		return;
	dlclose(pin);
	pin = NULL;
}

void tw_agent_python_after_fork_in_child(void)
{
	has_settler = false;
	/* RELAXED agent.python_wanted: the child has one thread. */
	tw_store_relaxed(&wanted, 0);
	/* That thread is inside of fork(), whether it has the lock or not: no evaluation is just being looked up. */
	tw_python_remove();
	settled.is = 0;
}
