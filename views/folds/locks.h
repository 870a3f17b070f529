/* SPDX-License-Identifier: Apache-2.0 */
/*
 * locks.h - waits of threads for locks, and the threads that held them: from calls of pthread_mutex_*,
 * pthread_rwlock_* and pthread_cond_* with arguments and returns (`record --locks`).
 *
 *	 thread A   lock()  return           unlock()
 *	            --|-------|---- holds -----|--
 *	 thread B              lock()                       return
 *	            ------------|---- waits, A holds --|--o--|---- holds
 *
 * A lock is held from the return of the call that took it until the call that releases it, or that waits on a
 * condition with it: so no two holders overlap. A wait is a call to take a lock that another thread holds when the
 * call begins, or takes meanwhile; it lasts until the call returns, and the part in which another thread held the
 * lock is attributed to this pair of threads, unless it ends within TW_LOCK_SKEW_NS. Readers of a rwlock do not wait for readers, and a try never waits. A call that
 * took longer than TW_LOCK_LONG_NS although no thread was seen to hold the lock is slow, not a wait: the thread did
 * not run, or a holder was not recorded.
 *
 * A gap of a thread begins at its first lost event, not where the loss stands in the capture: from there on the thread is
 * no known holder, its open call is not counted, and it is known again from its next call on. Locks that one thread takes
 * and another releases, and signals, are unknown from a gap of any thread of the process on.
 *
 * Memory  about 300 bytes a lock, 48 for each pair of threads that met there (limits below, beyond which locks are only
 *	   counted), 32 for each loss.
 */
#ifndef TW_VIEWS_LOCKS_H
#define TW_VIEWS_LOCKS_H

#include "views/folds/gaps.h"
#include "views/folds/histogram.h"
#include "views/folds/marks.h"
#include "base/map.h"

#include "tracewheel/capture.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TW_LOCKS_MAX	  (UINT32_C(1) << 20)
#define TW_LOCK_PAIRS_MAX (UINT32_C(1) << 20)
#define TW_LOCK_LONG_NS	  20000
/* The clocks of two processors may differ by so much: a lock that is released so soon after a call to take it may have been free. */
#define TW_LOCK_SKEW_NS 100
#define TW_LOCK_READERS 16 /* the most readers of one lock that are known at a time */
#define TW_LOCK_NONE	TW_GAP_NO_THREAD

enum tw_lock_kind { TW_LOCK_MUTEX, TW_LOCK_RWLOCK, TW_LOCK_CONDITION, TW_LOCK_KINDS };

struct tw_lock_wait; /* a call in progress */

struct tw_lock_holder {
	uint32_t thread; /* TW_LOCK_NONE: unknown, or none */
	uint32_t gaps;	 /* of the thread, when it took the lock */
};

struct tw_lock_row {
	uint64_t address;
	uint64_t site; /* a return address: the call that made it, or used it first; 0: not recorded */
	uint32_t image;
	uint32_t number;
	uint8_t kind;
	bool is_made_there; /* the site is that of its initialisation */
	bool is_ended;	    /* destroyed: the next lock at this address is another one */
	bool is_handed;	    /* one thread took it, another released it */
	/* The holders. */
	struct tw_lock_holder writer;
	uint32_t depth;
	uint32_t gaps; /* of the image, up to which the holders are known */
	uint64_t since_ns;
	struct tw_lock_holder readers[TW_LOCK_READERS]; /* the oldest first */
	uint32_t reader_count, known_readers;		/* those beyond TW_LOCK_READERS are only counted */
	struct tw_lock_wait *waiting;
	/* Conditions only. */
	uint32_t signaller;
	uint64_t signalled_ns;
	/* Sums. */
	uint64_t taken, busy; /* acquired; not acquired by a try or within a time */
	uint64_t waits, wait_ns, wait_max_ns, wait_max_at_ns;
	uint64_t held_ns, held_max_ns;
	uint64_t signals, timeouts;
	uint64_t slow, slow_ns; /* calls */
	uint32_t pairs;		/* the first of them + 1 */
};

/* One thread waited while another held the lock (for a condition: until another signalled). */
struct tw_lock_pair {
	uint32_t lock, waiter, holder; /* holder TW_LOCK_NONE: none was seen */
	uint64_t times, ns, max_ns;
	uint64_t last; /* the last wait that it counted */
	uint32_t next; /* of the lock, + 1 */
};

/* A wait, or a part of one. */
struct tw_lock_waited {
	const struct tw_lock_row *lock;
	uint32_t waiter;
	uint32_t
		by; /* the thread that held the lock, for most of a whole wait, or signalled the condition; TW_LOCK_NONE: none is known */
	uint64_t begin_ns; /* of the whole wait */
	uint64_t ns;
};

/*
 * For another fold that reads the same events after this one, so that its stacks are still those before the event, which is
 * tw_locks.event. All, or none.
 */
struct tw_locks_calls {
	/* The thread has taken the lock, or signals the condition. */
	void (*took)(void *context, const struct tw_lock_row *lock, uint32_t thread);
	/* A part of a wait, in which one thread held the lock. */
	void (*was_held)(void *context, const struct tw_lock_waited *part);
	/* A wait ends. */
	void (*waited)(void *context, const struct tw_lock_waited *wait);
	void *context;
};

struct tw_locks {
	struct tw_capture *capture;
	struct tw_locks_calls on;
	const struct tw_capture_event *event; /* the one in progress */
	struct tw_lock_row *locks;
	uint32_t count, capacity;
	struct tw_map by_address;
	struct tw_lock_pair *pairs;
	uint32_t pair_count, pair_capacity;
	struct tw_lock_thread *threads; /* by number of the capture's threads */
	uint32_t thread_count;
	struct tw_marks places;	      /* the effect of a call */
	struct tw_lock_image *images; /* by image: its gaps so far */
	struct tw_gaps losses;
	uint64_t wait_count; /* numbers of waits */
	/* Shown by every view. */
	uint64_t calls, gaps, dropped; /* dropped: calls that were open at a gap, or never returned */
	uint64_t lost, overwritten;    /* events in the gaps: overwritten ones are not among the lost */
	uint64_t wordless;	       /* calls without arguments, or returns without a value */
	bool are_full;
	bool has_no_memory;
};

/*
 * tw_locks_begin - the fold that follows locks; tw_locks_end() after its pass.
 *
 * @locks	`on` is set between the two.
 * @fold	is written; it refers to the locks.
 *
 * Returns 0 or an error; tw_locks_free() in both cases.
 */
struct tw_fold;
int tw_locks_begin(struct tw_locks *locks, struct tw_capture *capture, const struct tw_capture_filter *filter,
		   struct tw_fold *fold);
void tw_locks_end(struct tw_locks *locks);
/* The two around a pass of their own, for the times and streams that a filter selects. Returns 0 or an error; tw_locks_free() in both cases. */
int tw_locks_make(struct tw_locks *locks, struct tw_capture *capture, const struct tw_capture_filter *filter);
void tw_locks_free(struct tw_locks *locks);

/* "mutex", "rwlock", "condition" */
const char *tw_lock_kind_name(unsigned kind);

/*
 * The parts of a lock's name, "app:table_lock" or "0x7f00a0 made in app:open_table table.c:12": the symbol that contains
 * it ("" if there is none), and its site.
 */
#define TW_LOCK_NAME_BYTES 400
size_t tw_lock_symbol(const struct tw_locks *locks, const struct tw_lock_row *lock, char *text);
size_t tw_lock_site(const struct tw_locks *locks, const struct tw_lock_row *lock, char *text);
/* A stream of a thread, which has its name. NULL: the thread is not known. */
const struct tw_capture_stream *tw_lock_thread(const struct tw_locks *locks, uint32_t thread);
/* Called before the capture is closed. */
void tw_lock_names_forget(void);

struct tw_screen;
struct tw_json;
void tw_report_locks(const struct tw_screen *screen, const struct tw_locks *locks, size_t top);
/* top, pairs: the most locks, and pairs of threads of each; 0: all. */
void tw_report_locks_json(struct tw_json *json, const struct tw_locks *locks, uint64_t zero_ns, size_t top,
			  size_t pairs);

#endif
