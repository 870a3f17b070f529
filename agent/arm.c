/* SPDX-License-Identifier: Apache-2.0 */
/*
 * arm.c - examines objects as they come and go: a plan for new ones, whose places are then armed.
 *
 *  1 scan: list the loaded objects, pin the new ones, find their slots                       loader's locks
 *    (ask the command for layouts of the new ones, for a bounded time)
 *  2 seize the permit; scan again if a newer scan was applied meanwhile
 *  3 forget objects that were unloaded or replaced: their slots are never written again
 *  4 stage modules, functions and places of the plan for the session; add the new objects to the known ones
 *  5 commit, drop the permit
 *  6 unpin the new objects (which may run destructors)                                       loader's locks
 *
 * Between 1 and 6 nothing in the plan can be unloaded.  Two threads may examine the same objects at once: the second
 * one finds the places of the first.
 */
#include "agent/agent.h"
#include "agent/leave.h"

#include "base/clock.h"
#include "base/filter.h"
#include "base/sys.h"
#include "breakpoints/breakpoints.h"
#include "breakpoints/patch.h"
#include "pipeline/hit/aggregate.h"
#include "pipeline/hit/callers.h"
#include "pipeline/format/definitions.h"
#include "pipeline/hit/hit.h"
#include "pipeline/thread/thread.h"
#include "session/change.h"
#include "session/definitions.h"
#include "session/native.h"
#include "session/places.h"
#include "session/session.h"
#include "session/setting.h"
#include "tracewheel/error.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/single_threaded.h>

/* How long dlopen() waits for another thread's dlclose(), during which nothing may be written. */
#define CLOSING_NS UINT64_C(1000000000)
#define NAP_NS	   UINT64_C(50000)
/* Limit of retries while threads are found binding slots. */
#define BINDING_NAPS 20

static struct tw_agent_config config;

/* Those of a size together: libc keeps little thread-local memory for libraries that are opened late. */
static __thread bool was_alone;	 /* no other thread ran when this one forked */
static __thread bool is_put_off; /* entries wait for a dlclose() to end */
static __thread bool is_looking;
static __thread unsigned own_closings; /* number of the program's dlclose calls this thread is inside */
static __thread unsigned closings;     /* number of handles we are closing, with slots suspended */
/* This library's frame while it works: libc calls made on our behalf also pass armed slots and must not be recorded. */
static __thread const void *own_work;
/* In a forked child: what a thread of the parent was unloading is not known, and slots are suspended until the next scan. */
static _Atomic bool has_unseen_closing;

void tw_agent_arm_init(struct tw_agent_config *new_config)
{
	tw_agent_returns_init(new_config);
	if (new_config->has_aggregation)
		tw_aggregate_begin(&new_config->aggregation);
	config = *new_config;
	tw_agent_demote_init();
	tw_agent_places_init(&config);
	tw_agent_entries_init(&config);
}

bool tw_agent_is_looking(void)
{
	return is_looking;
}

/* ---- a scan ---- */

/* Makes up for what could not be written meanwhile: as each write, before the recorder takes back all, or not at all. */
static void resume(struct tw_permit *permit)
{
	bool is_going_on = tw_agent_written_begin();

	tw_patch_resume(permit);
	if (is_going_on)
		tw_agent_written_end();
}

/* After tw_patch_suspend(), and after what was unloaded since was forgotten. */
static void resume_slots(void)
{
	struct tw_permit *permit;

	if (tw_permit_seize(&permit)) {
		tw_patch_resume(NULL);
		return;
	}
	resume(permit);
	tw_permit_drop(permit);
}

/* Nothing more is armed when the recording has ended. */
static void arm(struct tw_permit *permit, const struct tw_plan *plan)
{
	if (!tw_agent_written_begin())
		return;
	tw_agent_layouts_update(&config, &tw_agent_ring_set);
	tw_agent_arm_plan(permit, plan);
	tw_change_commit(permit);
	tw_agent_written_end();
}

/* Steps 2 to 5.  @closed	of the closings that came before the scan. */
static bool apply(const struct tw_plan *plan, unsigned closed)
{
	bool is_whole;
	struct tw_permit *permit;

	if (tw_change_begin(&permit))
		return false;
	if (tw_known_is_outdated(plan->set)) {
		tw_change_end(permit, 0);
		return true;
	}
	tw_agent_returns_see(plan->set);
	is_whole = tw_known_update(permit, plan);
	/* The objects that these have unloaded were found. */
	for (; closed; closed--, closings--)
		resume(permit);
	arm(permit, plan);
	for (size_t i = 0; i < plan->set->count; i++) {
		is_put_off |= plan->is_put_off[i];
		if (plan->is_new[i])
			tw_known_add(&plan->set->objects[i], plan->is_put_off[i]);
	}
	tw_change_end(permit, 0);
	if (is_whole && !is_put_off)
		tw_known_saw(plan->set);
	return true;
}

/* Between steps 1 and 2: asks for layouts of new objects.  The command waits for none of our locks. */
static void ask(const struct tw_plan *plan)
{
	const struct tw_sym_object *missing;
	struct tw_permit *permit;

	if (!config.ask_ns || tw_agent_is_over() || tw_permit_seize(&permit))
		return;
	missing = tw_agent_layouts_missing(&config, plan);
	tw_permit_drop(permit);
	if (missing)
		tw_agent_layouts_ask(&config, &tw_agent_ring_set, missing);
}

static bool is_anything_due(void)
{
	struct tw_permit *permit;
	bool is_due;

	if (tw_permit_seize(&permit))
		return false;
	is_due = tw_patch_is_due(permit);
	tw_permit_drop(permit);
	return is_due;
}

/* When the recording has ended, slots that hold their targets were taken back. */
static unsigned bind_once(struct tw_permit *permit, unsigned *late)
{
	unsigned found;

	if (!tw_got_may_be_bound(permit) || !tw_agent_written_begin())
		return 0;
	found = tw_got_bind_again(permit, late);
	tw_agent_written_end();
	return found;
}

/*
 * A thread may be binding a slot that was armed before it was bound; it overwrites the slot as soon as it runs.  The
 * next scan, or the end of the program, finds later overwrites and reports them.
 */
static void bind_again(unsigned naps)
{
	unsigned found = 1, late = 0;
	struct tw_permit *permit;

	if (tw_agent_is_over())
		return;
	do {
		unsigned late_now = 0;

		if (naps)
			tw_sys_sleep(NAP_NS);
		if (tw_permit_seize(&permit))
			break;
		found = bind_once(permit, &late_now);
		tw_permit_drop(permit);
		late += late_now;
	} while (found && naps-- > 1);
	if (late)
		tw_agent_tell(
			"some calls were not seen for a while: a thread was binding their slots when these were armed");
}

void tw_agent_bind_again(void)
{
	bind_again(0);
}

static void tell_of_closing(void)
{
	tw_agent_tell(
		"calls of an object that was opened while another thread closed one were not traced at first: that took "
		"too long");
}

/*
 * While a thread closes a handle, changes of any thread are deferred until it is done.  An object opened meanwhile
 * should be traced from its first call, so this waits.  It gives up after CLOSING_NS, because the other thread may be
 * in a destructor that waits for this one.
 */
static void await_closings(void)
{
	static const _Atomic uint32_t never;
	uint64_t begun = tw_clock_monotonic_ns();

	if (own_closings)
		return;
	/* After the end of the recording, nothing is written for it. */
	while (!tw_agent_is_over() && is_anything_due()) {
		if (tw_clock_monotonic_ns() - begun > CLOSING_NS) {
			tell_of_closing();
			return;
		}
		tw_sys_futex_wait(&never, 0, NAP_NS);
	}
}

/* Entries are not planted while another thread is inside dlclose(): waits for it, as await_closings() does. */
static void await_suspension(uint64_t begun_ns)
{
	static const _Atomic uint32_t never;

	while (tw_patch_suspension_count() && tw_clock_monotonic_ns() - begun_ns < CLOSING_NS)
		tw_sys_futex_wait(&never, 0, NAP_NS);
}

/* Returns false when nothing is left to do. */
static bool update_once(void)
{
	unsigned closed = closings;
	struct tw_plan *plan;
	bool was_applied;

	is_put_off = false;
	if (config.has_no_functions || !tw_known_is_change())
		return false;
	tw_agent_lead();
	if (tw_plan_make(&config, tw_known_has, NULL, &plan))
		return false;
	ask(plan);
	was_applied = apply(plan, closed);
	tw_plan_destroy(plan);
	return was_applied;
}

/*
 * Unpinning may close an object's last handle and unload it; slots then stay suspended until the next round has found
 * out what was unloaded.  Destructors may open and close more objects; the number of rounds is limited.
 */
static void update_all(void)
{
	uint64_t begun_ns = tw_clock_monotonic_ns();
	unsigned rounds = 0;

	while (rounds++ < 8 && update_once()) {
		if (!is_put_off || own_closings || closings)
			continue;
		await_suspension(begun_ns);
		rounds -= tw_clock_monotonic_ns() - begun_ns < CLOSING_NS;
	}
	if (is_put_off && !own_closings && !closings)
		tell_of_closing();
	bind_again(__libc_single_threaded ? 0 : BINDING_NAPS);
	tw_agent_returns_check();
	for (; closings > 1; closings--)
		tw_patch_resume(NULL);
	if (closings) {
		closings = 0;
		resume_slots();
	}
	await_closings();
	/* Failed symbol lookups left a message that is not the program's. */
	dlerror();
}

/* An object is unpinned.  If nothing was unloaded meanwhile, nothing has to be found out. */
static int close_while_looking(int (*close)(void *), void *handle)
{
	uint64_t loaded, unloaded, unloaded_now;
	int result;

	tw_sym_counts(&loaded, &unloaded);
	/* Destructors are the program's code, and are recorded. */
	tw_thread_end_own_work(own_work != NULL);
	result = close(handle);
	if (own_work)
		tw_thread_begin_own_work(own_work);
	tw_sym_counts(&loaded, &unloaded_now);
	if (unloaded_now == unloaded)
		resume_slots();
	else
		closings++;
	return result;
}

/* When the recording has been left meanwhile, nothing is written any more. */
static void update_if_active(void)
{
	if (!tw_agent_enter())
		return;
	tw_agent_update();
	tw_agent_leave();
}

int tw_agent_close(int (*close)(void *), void *handle)
{
	int result;

	/* Destructors run in here and objects are unloaded: no slot is written until it is known which. */
	tw_patch_suspend();
	if (is_looking)
		return close_while_looking(close, handle);
	own_closings++;
	result = close(handle);
	/* Under a seccomp filter this thread cannot find out what was unloaded: nothing is written any more. */
	if (!tw_thread_may_call_system())
		return result;
	update_if_active();
	own_closings--;
	resume_slots();
	/* Objects that a destructor has opened are planted only now. */
	if (is_put_off)
		update_if_active();
	return result;
}

/* One thread's scan resumes slots for it.  It was set before the child had a second thread. */
static unsigned take_unseen_closing(void)
{
	bool is_there = true;

	/* RELAXED agent.unseen: one thread takes it; the permit orders what is written then. */
	return tw_cas_relaxed(&has_unseen_closing, &is_there, false);
}

void tw_agent_update(void)
{
	int saved_errno = errno, cancel_state;

	if (is_looking || !tw_thread_may_call_system())
		return;
	is_looking = true;
	closings += take_unseen_closing();
	/* dlopen() and dlclose() are no cancellation points, but reading files is one. */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
	own_work = __builtin_frame_address(0);
	if (!tw_thread_join() || !tw_thread_begin_own_work(own_work))
		own_work = NULL;
	update_all();
	tw_thread_end_own_work(own_work != NULL);
	pthread_setcancelstate(cancel_state, NULL);
	is_looking = false;
	errno = saved_errno;
}

/* ---- leaving a recording ---- */

static bool is_never_known(const struct tw_sym_object *object, void *unused)
{
	(void)object, (void)unused;
	return false;
}

/* Steps 2 and 3 of a scan.  False: another one must follow. */
static bool forget_unloaded(const struct tw_plan *plan, unsigned closed)
{
	bool is_whole = false;
	struct tw_permit *permit;

	if (tw_change_begin(&permit))
		return false;
	if (!tw_known_is_outdated(plan->set)) {
		is_whole = tw_known_update(permit, plan);
		for (; closed; closed--, closings--)
			resume(permit);
	}
	tw_change_end(permit, 0);
	return is_whole;
}

/* Code that is written at the end lies in objects that are loaded, and pinned until it is written. */
static bool disarm(void (*end)(void))
{
	/* Neither sleds, entries nor slots: all objects are pinned, and none is examined. */
	static const struct tw_agent_config nothing = {.is_local = true, .is_global = true, .has_no_functions = true};
	bool is_done = false;

	for (unsigned rounds = 0; rounds < 8 && (!is_done || closings); rounds++) {
		unsigned closed = closings;
		struct tw_plan *plan;

		if (tw_plan_make(&nothing, is_never_known, NULL, &plan))
			break;
		if (forget_unloaded(plan, closed) && !is_done) {
			end();
			is_done = true;
		}
		tw_plan_destroy(plan);
	}
	for (; closings > 1; closings--)
		tw_patch_resume(NULL);
	if (closings) {
		closings = 0;
		resume_slots();
	}
	return is_done;
}

bool tw_agent_disarm(void (*end)(void))
{
	bool is_done;

	is_looking = true;
	own_work = __builtin_frame_address(0);
	if (!tw_thread_join() || !tw_thread_begin_own_work(own_work))
		own_work = NULL;
	is_done = disarm(end);
	tw_thread_end_own_work(own_work != NULL);
	is_looking = false;
	return is_done;
}

void tw_agent_arm_fini(void)
{
	tw_agent_config_fini(&config);
	tw_known_doubt();
	tw_agent_tell_again();
}

void tw_agent_arm_before_fork(void)
{
	was_alone = __libc_single_threaded;
}

/*
 * Another thread may have held ld.so's lock, which nobody gives back in the child: a scan would wait for ever.  The child's own
 * dlopen() and dlclose() take that lock anyway, and scan.
 */
static void put_off_scan(bool was_closing)
{
	if (was_closing) {
		/* RELAXED agent.unseen: the child has one thread. */
		tw_store_relaxed(&has_unseen_closing, true);
	} else {
		resume_slots();
	}
}

/*
 * A thread that was inside dlclose() does not exist in the child, and its suspension would last forever.  It is unknown
 * what it has unloaded so far: nothing is written before a scan has found out.
 */
void tw_agent_arm_after_fork(void)
{
	bool was_closing = tw_patch_suspension_count() > closings + own_closings;

	tw_agent_tell_again();
	tw_patch_after_fork_in_child(closings + own_closings + 1);
	if (!was_alone) {
		put_off_scan(was_closing);
		return;
	}
	/* As inside a dlclose() of its own: this thread does not wait for itself. */
	own_closings++;
	tw_agent_update();
	own_closings--;
	resume_slots();
	/* Objects that were being opened are planted only now. */
	if (is_put_off)
		tw_agent_update();
}
