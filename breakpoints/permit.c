/* SPDX-License-Identifier: Apache-2.0 */
/*
 * permit.c - the one permit to change code and breakpoints.
 *
 * A ticket lock whose waiters sleep.  Waiters are served in order of arrival, so a thread that changes breakpoints in
 * a loop cannot starve the others.  With it: where all places are found by their addresses.
 */
#include "breakpoints/permit.h"
#include "base/error.h"
#include "base/sys.h"
#include "progress/progress.h"

#include <pthread.h>

const struct tw_bp_list *tw_bp_list;
static struct tw_permit the_permit = {.next_module_id = 1, .next_function_id = 1, .next_place_id = 1};
static _Atomic uint32_t next_ticket;
static _Atomic uint32_t serving;
static __thread bool is_holder;
/* The holder's earlier state: changes read files, and a thread cancelled there would keep the permit forever. */
static __thread uint8_t cancel_state;

bool tw_permit_is_held(const struct tw_permit *permit)
{
	return permit == &the_permit && is_holder;
}

bool tw_permit_is_mine(void)
{
	return is_holder;
}

int tw_permit_seize(struct tw_permit **permit)
{
	uint32_t ticket, now;
	int saved_state;

	if (tw_progress_is_reading() || tw_permit_is_held(&the_permit))
		return TW_EDEADLK;
	tw_progress_init();
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &saved_state);
	/* RELAXED permit.ticket: only the number matters; the order comes with `serving`. */
	ticket = tw_fetch_add_relaxed(&next_ticket, 1);
	/* PAIR permit.serving: acquire; release in tw_permit_drop().  The previous holder has finished. */
	while ((now = tw_load_acquire(&serving)) != ticket)
		tw_sys_futex_wait(&serving, now, UINT64_MAX);
	is_holder = true;
	cancel_state = (uint8_t)saved_state;
	tw_bp_init();
	*permit = &the_permit;
	return 0;
}

void tw_permit_drop(struct tw_permit *permit)
{
	TW_ASSERT(tw_permit_is_held(permit));
	TW_ASSERT(permit->staged_count == 0);
	is_holder = false;
	/* PAIR permit.serving: release (as part of an addition); acquire in tw_permit_seize(). */
	tw_fetch_add_acq_rel(&serving, 1);
	/* All waiters wake up, and one is served: changes are rare, and tickets need no list of waiters. */
	tw_sys_futex_wake(&serving, INT32_MAX);
	pthread_setcancelstate(cancel_state, NULL);
}

void tw_permit_after_fork_in_child(void)
{
	unsigned active = tw_bp_active_index();

	/* A change in progress is aborted; parts that another thread was making are not touched. */
	for (struct tw_place *place = the_permit.staged, *next; place; place = next) {
		next = place->next_staged;
		place->gen[1 - active] = place->gen[active];
		place->is_staged = false;
		place->next_staged = NULL;
	}
	the_permit.staged = NULL;
	the_permit.staged_count = 0;
	tw_run_after_fork_in_child(&the_permit.run);
	is_holder = false;
	/* RELAXED permit.fork: the child has one thread. */
	tw_store_relaxed(&serving, tw_load_relaxed(&next_ticket));
}

struct tw_place *tw_bp_place_at(struct tw_permit *permit, void *where)
{
	struct tw_place *place;

	TW_ASSERT(tw_permit_is_held(permit));
	place = tw_ck_table_get(&permit->places, (uintptr_t)where);
	return place && !place->is_gone ? place : NULL;
}
