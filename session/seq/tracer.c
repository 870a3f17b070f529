/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tracer.c - sequential tracing: the system tracer, the epoch, the counts.
 *
 * The gate is the bit TW_WANTS_SEQ of tw_runtime_wanted. It opens with the first token and closes at a reset, which also begins
 * another epoch:
 *
 *	a process that makes a token	1 the epoch		2 the gate: open, or under the lock: open it, the epoch again
 *	reset, under the lock		1 close the gate	2 the next epoch
 *
 * A token of the present epoch therefore implies an open gate: a process that reads the new epoch sees the gate closed.
 */
#include "base/clock.h"
#include "pipeline/thread/seq_label.h"
#include "pipeline/thread/thread.h"
#include "session/change.h"
#include "session/definitions.h"
#include "session/seq/seq.h"
#include "session/session.h"
#include "session/watched.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static _Atomic uint64_t counts[TW_SEQ_COUNTS], reported[TW_SEQ_COUNTS];
/* In this epoch a thread that is a process had a token: pthread_create is watched. */
static _Atomic bool threads_have_tokens;

void tw_seq_count(enum tw_seq_count what)
{
	/* RELAXED seq.counts: numbers for people; nothing depends on them. */
	tw_fetch_add_relaxed(&counts[what], 1);
}

void tw_seq_count_refused(int error)
{
	tw_seq_count(error == TW_EVERSION					      ? TW_SEQ_REFUSED_VERSION
		     : error == TW_ELIMIT || error == TW_ENOMEM || error == TW_ENOENT ? TW_SEQ_REFUSED_LIMIT
										      : TW_SEQ_REFUSED_DAMAGED);
}

static uint64_t count_of(enum tw_seq_count what)
{
	/* RELAXED seq.counts: as above. */
	return tw_load_relaxed(&counts[what]);
}

TW_API void tw_seq_stats(struct tw_seq_stats *out)
{
	*out = (struct tw_seq_stats){.overflowed = count_of(TW_SEQ_OVERFLOWED),
				     .damaged = count_of(TW_SEQ_DAMAGED),
				     .foreign = count_of(TW_SEQ_FOREIGN),
				     .forgotten = count_of(TW_SEQ_FORGOTTEN),
				     .refused_damaged = count_of(TW_SEQ_REFUSED_DAMAGED),
				     .refused_version = count_of(TW_SEQ_REFUSED_VERSION),
				     .refused_limit = count_of(TW_SEQ_REFUSED_LIMIT),
				     .labels_forgotten = tw_seq_labels_forgotten()};
}

/* The counts since this was last called. */
static uint64_t take(enum tw_seq_count what)
{
	uint64_t count = count_of(what), before;

	/* RELAXED seq.counts: as above. */
	before = tw_load_relaxed(&reported[what]);
	/* RELAXED seq.counts: as above. */
	tw_store_relaxed(&reported[what], count);
	return count - before;
}

void tw_seq_tell(struct tw_session *session)
{
	static const char *const words[TW_SEQ_COUNTS] = {
		[TW_SEQ_OVERFLOWED] = "beyond the last serial",
		[TW_SEQ_DAMAGED] = "damaged",
		[TW_SEQ_FOREIGN] = "of another process that was not decoded",
		[TW_SEQ_FORGOTTEN] = "whose label was removed from the full table",
		[TW_SEQ_REFUSED_DAMAGED] = "refused because their bytes are cut or damaged",
		[TW_SEQ_REFUSED_VERSION] = "refused because their version is not known",
		[TW_SEQ_REFUSED_LIMIT] = "refused because of their label",
	};
	char text[512] = "requests are not followed past tokens that were dropped: ";
	size_t used = strlen(text), first = used;

	/* RELAXED seq.tracer: a note may be missing if another session becomes the tracer meanwhile. */
	if (!session->rs || session->queue || session->slot >= TW_SESSIONS_MAX ||
	    !(tw_load_relaxed(&tw_seq_tracer) >> session->slot & 1))
		return;
	for (enum tw_seq_count what = 0; what < TW_SEQ_COUNTS; what++) {
		uint64_t count = take(what);

		if (count && used < sizeof text)
			used += (size_t)snprintf(text + used, sizeof text - used, "%s%llu %s", used > first ? ", " : "",
						 (unsigned long long)count, words[what]);
	}
	if (used > first)
		tw_define_note(session, text);
}

/* ---- this OS process ---- */

static void make_key(void)
{
	uint64_t mixed = (tw_clock_monotonic_ns() ^ (uint64_t)getpid() << 32) * UINT64_C(0x9e3779b97f4a7c15);

	tw_seq_process_key = (uint32_t)(mixed >> 32) | 1;
}

void tw_seq_init(void)
{
	make_key();
}

void tw_seq_after_fork_in_child(void)
{
	make_key();
	/* RELAXED seq.tracer: the child has one thread; the rings are the parent's. */
	tw_store_relaxed(&tw_seq_tracer, 0);
	/* RELAXED seq.counts: the parent tells what it has counted. */
	for (enum tw_seq_count what = 0; what < TW_SEQ_COUNTS; what++)
		tw_store_relaxed(&reported[what], count_of(what));
}

/* ---- the gate ---- */

uint32_t tw_seq_open(void)
{
	/* PAIR seq.epoch: acquire; release in tw_seq_reset_trace(), which has closed the gate before. */
	uint32_t epoch = tw_load_acquire(&tw_seq_epoch);

	if (tw_seq_is_active())
		return epoch;
	/* A token from outside may be the first thing that a program asks for: the key is made here. */
	tw_session_init();
	tw_registry_lock();
	tw_flags_seq(true);
	/* RELAXED seq.epoch: changed under the lock. */
	epoch = tw_load_relaxed(&tw_seq_epoch);
	tw_registry_unlock();
	return epoch;
}

void tw_seq_thread_has_token(void)
{
	/* RELAXED seq.threads: a change follows in tw_watched_follow(), by this thread or another. */
	if (tw_load_relaxed(&threads_have_tokens))
		return;
	/* RELAXED seq.threads: as above. */
	tw_store_relaxed(&threads_have_tokens, true);
	tw_watched_mark_due();
}

bool tw_seq_threads_have_tokens(void)
{
	/* RELAXED seq.threads: as above. */
	return tw_load_relaxed(&threads_have_tokens);
}

TW_API int tw_seq_reset_trace(void)
{
	tw_session_init();
	if (tw_hit_is_under_way())
		return TW_EDEADLK;
	tw_registry_lock();
	tw_flags_seq(false);
	/* RELAXED seq.epoch: changed under the lock. */
	uint32_t next = tw_load_relaxed(&tw_seq_epoch) + 1;

	/*
	 * PAIR seq.epoch: release; acquire in tw_seq_is_current() and tw_seq_open(). A thread that sees the new epoch sees the gate
	 * closed; without it, it could make a token of this epoch that no receiver looks at.
	 */
	tw_store_release(&tw_seq_epoch, next ? next : 1);
	/* RELAXED seq.threads: under the registry's lock. A thread that gets a token meanwhile sets it again. */
	if (tw_load_relaxed(&threads_have_tokens)) {
		/* RELAXED seq.threads: as above. */
		tw_store_relaxed(&threads_have_tokens, false);
		tw_watched_mark_due();
	}
	tw_registry_unlock();
	tw_watched_follow();
	return 0;
}

/* ---- the system tracer ---- */

static struct tw_session *tracer_locked(void)
{
	/* RELAXED seq.tracer: under the registry's lock, or removed by its module: then this call came before. */
	uint64_t bit = tw_load_relaxed(&tw_seq_tracer);

	return bit ? tw_session_at((unsigned)__builtin_ctzll(bit)) : NULL;
}

void tw_seq_forget_locked(unsigned slot)
{
	/* PROGRESS seq.tracer: the thread that clears a session waits for thread progress before its rings are freed. */
	tw_fetch_and_seq_cst(&tw_seq_tracer, ~(UINT64_C(1) << slot));
}

/* Under the registry's lock; 0: none. */
static tw_session_weak weak_locked(void)
{
	struct tw_session *session = tracer_locked();

	return session ? tw_session_weak_of(session) : 0;
}

static struct tw_session *handle_of(tw_session_weak weak)
{
	struct tw_session *session;

	return weak && tw_session_lock(weak, &session) == 0 ? session : NULL;
}

static int check(const struct tw_session *session)
{
	if (!tw_session_is_alive(session))
		return TW_EDEAD;
	return (session->rs || session->module) && tw_session_takes_flags(session) ? 0 : TW_EBADARG;
}

TW_API int tw_seq_set_system_tracer(struct tw_session *session, struct tw_session **previous)
{
	tw_session_weak before = 0;
	int error = 0;

	tw_session_init();
	if (tw_hit_is_under_way())
		return TW_EDEADLK;
	tw_registry_lock();
	if (session)
		error = check(session);
	if (session && !error)
		error = tw_session_assign_slot_locked(session);
	if (!error) {
		before = weak_locked();
		/*
		 * PAIR seq.tracer: release, as part of the exchange; acquire in sessions_of() of runtime_event.c: the session has
		 * its rings, or its callbacks.
		 */
		tw_exchange_seq_cst(&tw_seq_tracer, session ? UINT64_C(1) << session->slot : 0);
	}
	tw_registry_unlock();
	if (previous && !error)
		*previous = handle_of(before);
	return error;
}

TW_API struct tw_session *tw_seq_get_system_tracer(void)
{
	tw_session_weak weak;

	tw_registry_lock();
	weak = weak_locked();
	tw_registry_unlock();
	return handle_of(weak);
}
