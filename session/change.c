/* SPDX-License-Identifier: Apache-2.0 */
/*
 * change.c - single changes and transactions: all of a change becomes visible at one moment, or none of it.
 *
 * breakpoints/ stages the places.  Immediate effects of a change on a session (restarted counters, settings for
 * future functions) are recorded here, and undone when the change is aborted.
 */
#include "session/change.h"
#include "session/places.h"
#include "session/session.h"

/* ---- immediate effects of a change, undone when it is aborted ---- */

void tw_change_touch(struct tw_session *session, struct tw_session_place *set)
{
	if (set->is_touched)
		return;
	set->is_touched = true;
	set->was_paused = set->paused;
	set->taken = 0;
	set->next_touched = session->touched;
	session->touched = set->place->place_id + 1;
}

void tw_change_touch_on_load(struct tw_session *session)
{
	if (session->is_on_load_touched)
		return;
	session->is_on_load_touched = true;
	session->on_load_before = session->on_load;
}

/* Frees the counts that are no longer needed.  No hit uses them: they were never active, or a commit has waited since. */
static void finish_counts(struct tw_session_counts *counts, bool is_forgotten)
{
	if (!counts->is_new)
		return;
	tw_counts_destroy(is_forgotten ? counts->now : counts->before);
	if (is_forgotten)
		counts->now = counts->before;
	counts->before = NULL;
	counts->is_new = false;
}

static void finish_session(struct tw_session *session, bool is_forgotten)
{
	while (session->touched) {
		struct tw_session_place *set = tw_session_place_at(session, session->touched - 1);

		if (is_forgotten)
			set->paused = set->was_paused;
		if (is_forgotten && set->taken)
			tw_counter_add(set->counter, set->taken);
		finish_counts(&set->times, is_forgotten);
		finish_counts(&set->memories, is_forgotten);
		set->is_touched = false;
		session->touched = set->next_touched;
	}
	if (session->is_on_load_touched && is_forgotten)
		session->on_load = session->on_load_before;
	session->is_on_load_touched = false;
}

/* Under the permit, so no changed session can have ended. */
static void finish(bool is_forgotten)
{
	tw_registry_lock();
	for (struct tw_session *session = tw_sessions(); session; session = session->next)
		finish_session(session, is_forgotten);
	tw_registry_unlock();
}

/* ---- the permit, alone or in a transaction ---- */

static __thread struct tw_permit *transaction;
static __thread uint64_t transaction_session; /* 1 + the id of the last session that it gave a slot; 0: none */
static __thread int transaction_error;	      /* error of a change in it that failed half-way: it cannot be committed */

void tw_changes_after_fork_in_child(void)
{
	transaction = NULL;
	finish(true);
}

int tw_change_begin(struct tw_permit **permit)
{
	if (transaction) {
		*permit = transaction;
		return 0;
	}
	return tw_permit_seize(permit);
}

/* While the permit is held, no session loses its slot. */
int tw_change_assign_slot(struct tw_session *session)
{
	int error;

	if (transaction && transaction_session == session->id + 1)
		return tw_session_is_alive(session) ? 0 : TW_EDEAD;
	error = tw_session_assign_slot(session);
	if (!error && transaction)
		transaction_session = session->id + 1;
	return error;
}

void tw_change_commit(struct tw_permit *permit)
{
	if (permit != transaction)
		tw_bp_commit(permit);
}

int tw_change_end(struct tw_permit *permit, int result)
{
	if (permit == transaction) {
		/* These two errors occur before anything is staged. */
		if (result < 0 && result != TW_EBADARG && result != TW_EDEAD)
			transaction_error = result;
		return result;
	}
	if (result < 0)
		tw_bp_abort(permit);
	else
		tw_bp_commit(permit);
	finish(result < 0);
	tw_permit_drop(permit);
	return result;
}

void tw_change_end_read(struct tw_permit *permit)
{
	if (permit != transaction)
		tw_permit_drop(permit);
}

/* ---- transactions ---- */

int tw_transaction_begin(void)
{
	struct tw_permit *permit;
	int error = tw_permit_seize(&permit);

	if (!error) {
		transaction = permit;
		transaction_session = 0;
		transaction_error = 0;
	}
	return error;
}

int tw_transaction_commit(void)
{
	struct tw_permit *permit = transaction;
	unsigned changed;

	if (!permit)
		return TW_EBADARG;
	if (transaction_error) {
		int error = transaction_error;

		tw_transaction_abort();
		return error;
	}
	transaction = NULL;
	changed = tw_bp_commit(permit);
	finish(false);
	tw_permit_drop(permit);
	return (int)changed;
}

int tw_transaction_abort(void)
{
	struct tw_permit *permit = transaction;

	if (!permit)
		return TW_EBADARG;
	transaction = NULL;
	tw_bp_abort(permit);
	finish(true);
	tw_permit_drop(permit);
	return 0;
}
