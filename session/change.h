/* SPDX-License-Identifier: Apache-2.0 */
/* change.h - a change of breakpoints, alone or in a transaction.  Threads: see the permit. */
#ifndef TW_SESSION_CHANGE_H
#define TW_SESSION_CHANGE_H

#include "session/session.h"

/* Seizes the permit, or joins this thread's transaction. */
int tw_change_begin(struct tw_permit **permit);
/* tw_session_assign_slot() with the permit; asks the registry once per transaction. */
int tw_change_assign_slot(struct tw_session *session);
/* Commits what is staged so far, unless in a transaction, which commits it later; tw_change_end() must follow. */
void tw_change_commit(struct tw_permit *permit);
/* Commits and drops the permit, or leaves both to the transaction. */
int tw_change_end(struct tw_permit *permit, int result);
/* Ends a read-only operation: nothing is committed. */
void tw_change_end_read(struct tw_permit *permit);
/* To be called before a change writes to these: aborting restores their present state. */
void tw_change_touch(struct tw_session *session, struct tw_session_place *set);
void tw_change_touch_on_load(struct tw_session *session);

/* As tw_trace_begin(), _commit() and _abort(), without clearing dropped sessions and without following watched slots. */
int tw_transaction_begin(void);
int tw_transaction_commit(void);
int tw_transaction_abort(void);

/* In a forked child: any change in progress, of this thread or of another, is aborted. */
void tw_changes_after_fork_in_child(void);

#endif
