/* SPDX-License-Identifier: Apache-2.0 */
/* calltree_locks.h - waits for locks within the calls of a tree, of captures of `record --locks`. */
#ifndef TW_VIEWS_CALLTREE_LOCKS_H
#define TW_VIEWS_CALLTREE_LOCKS_H

#include "views/folds/calltree.h"
#include "views/folds/locks.h"

/* Waits for one lock that one thread held for most of each. */
struct tw_call_lock {
	uint32_t lock, by; /* a thread; TW_LOCK_NONE: none is known */
	uint64_t ns;
};

struct tw_call_locks {
	struct tw_locks locks;
	struct tw_fold fold;	   /* of the locks */
	uint64_t from_ns;	   /* of the selection */
	struct tw_call_lock *sums; /* of its waits */
	uint32_t sum_count, sum_capacity;
	struct tw_map by_pair;
};

/*
 * tw_calltree_locks_begin - the fold that follows locks for a tree with follows_locks, behind tw_calltree_begin(): the pass has it before that of the tree.
 *
 * Returns 1; 0 if the capture has no function of locks: the fold is not wanted; or an error.  tw_calltree_free() frees it.
 */
int tw_calltree_locks_begin(struct tw_calltree *tree, const struct tw_capture_filter *filter, struct tw_fold *fold);
/* Are the waits of all calls known? Calls that take locks lack words unless `record --locks` or arguments and results were asked for. */
bool tw_calltree_knows_locks(const struct tw_calltree *tree);
/* Writes the lock that was waited for most, with its time, and of its waits those for the thread that held it most. False: there is none. */
bool tw_calltree_main_lock(const struct tw_calltree *tree, struct tw_call_lock *lock, struct tw_call_lock *held);
void tw_calltree_locks_free(struct tw_calltree *tree);

#endif
