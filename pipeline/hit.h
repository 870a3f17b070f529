/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hit.h - what a hit reads: threads, tracees, sessions, as plain structures.
 *
 * session/ writes them, by the rules beside each field; hits only read them, but for the thread's own
 * words.  Sessions are bits; a *lane* is one thread's half of one session: its ring.
 *
 *	struct tw_hit_tls (thread-local) --> struct tw_tracee (whom this thread runs)
 *	        |                                  wants_call: a bit for each session
 *	        +--> struct tw_thread
 *	                 lanes[session] --> a ring
 */
#ifndef TW_PIPELINE_HIT_H
#define TW_PIPELINE_HIT_H

#include "breakpoints/breakpoints.h"
#include "match/match.h"
#include "pipeline/event.h"
#include "ringbuf/ringset.h"

/*
 * A process in OTP's sense.  By default each thread is one; a run-time declares its own.
 * Memory of a tracee is freed after a grace period in which no thread ran it.
 */
struct tw_tracee {
	/* Read by every hit; written by control and by match programs, by read-modify-write only. */
	TW_CACHELINE_ALIGNED _Atomic uint64_t wants_call; /* sessions that want calls of this tracee */
	_Atomic uint64_t special;			   /* of these: more than a plain record */
	_Atomic uint64_t silent;			   /* of these: no call events */
	/* Raised at each scheduling-in, and at each event made for it by another thread. */
	_Atomic uint64_t run_seq;
	uint32_t tracee_id; /* never reused in the image */
	uint32_t pid_number;
	int32_t thread_id; /* the kernel's; 0: a run-time's own process */
	/* By session: what the heads of records carry (TW_EVENT_FLAG_*), and all flags (session.h's). */
	_Atomic uint8_t record_flags[TW_SESSIONS_MAX];
	TW_CACHELINE_ALIGNED _Atomic uint32_t flags[TW_SESSIONS_MAX];
	_Atomic uint32_t all_flags; /* the OR over sessions */
	/* Control: under the lock of session/tracee.c. */
	_Atomic uint64_t described; /* sessions whose definitions name it */
	struct tw_tracee *next, **link;
	bool is_exiting;
	char name[32];
};

/* What a hit must know of a session; one entry a bit.  Written while no place and no tracee has the bit. */
struct tw_hit_session {
	struct tw_rs *rs;
	uint32_t image;
	uint32_t session_index; /* as the definitions name it: never reused in the image */
};
extern struct tw_hit_session tw_hit_sessions[TW_SESSIONS_MAX];

struct tw_lane {
	struct tw_rb_producer producer;
	uint64_t run_stamp; /* of the last record: equal to the thread's, or a switch record is due */
	bool has_waited_for_ring; /* in vain */
};

/* One joined thread.  From a pool that is never unmapped. */
struct tw_thread {
	struct tw_thread *next, **link; /* under the lock of thread.c */
	uint32_t scheduler_id;		/* from 1; reused after the thread has left */
	uint32_t is_scheduler;		/* declared so: no tracee of its own */
	/* 1 + the session whose ring this thread waits for outside of a read section; 0: none.  PAIR hit.waiting. */
	_Atomic uint32_t waiting_session;
	struct tw_tracee *own_tracee; /* the thread as a process; NULL for schedulers */
	struct tw_match_run run;
	unsigned run_session; /* whose program runs */
	_Alignas(16) uint8_t scratch[TW_MATCH_SCRATCH_BYTES_MIN]; /* of a run of a match program */
	_Alignas(16) uint8_t extra[2048];			   /* what it says with {message,X} */
	struct tw_lane lanes[TW_SESSIONS_MAX];
};

/*
 * In a hit the state is the address of the hit's frame, which tells a nested hit from one that was left
 * by longjmp: one word, so that no signal comes between "in a hit" and "in which".
 */
enum tw_thread_state { TW_THREAD_NEW = 0, TW_THREAD_READY, TW_THREAD_ENDED, TW_THREAD_JOINING, TW_THREAD_IN_HIT };

/* At most 64 bytes: programs that dlopen() the library have little room for such words. */
struct tw_hit_tls {
	uintptr_t state; /* enum tw_thread_state, or a frame; written by this thread and its signal handlers */
	struct tw_tracee *tracee; /* whom this thread runs; &tw_hit_nobody: no one */
	struct tw_thread *thread;
	uint64_t run_stamp; /* raised at each change of tracee */
	uint64_t run_seq;   /* of the tracee, for switch records */
};
extern __thread struct tw_hit_tls tw_hit_tls;
extern struct tw_tracee tw_hit_nobody;

/* Is the calling thread inside a hit? */
static inline bool tw_hit_is_under_way(void)
{
	return tw_hit_tls.state >= TW_THREAD_IN_HIT;
}

/*
 * Set by session/ before anything is armed: makes the tracee of a thread that hits for the first time.
 * Signals are blocked.  Returns &tw_hit_nobody where it cannot.
 */
typedef struct tw_tracee *(*tw_hit_make_tracee_fn)(struct tw_thread *thread, int thread_id);
/* Puts a tracee into the definitions of a session before a record names it.  Signals are blocked. */
typedef void (*tw_hit_describe_fn)(struct tw_tracee *tracee, unsigned session);
/* A thread leaves: its own tracee exits. */
typedef void (*tw_hit_exit_tracee_fn)(struct tw_tracee *tracee);
/* A forked child hit something; called once, with signals blocked; may open the gate again. */
typedef void (*tw_hit_forked_fn)(void);
struct tw_hit_host {
	tw_hit_make_tracee_fn make_tracee;
	tw_hit_describe_fn describe;
	tw_hit_exit_tracee_fn exit_tracee;
	tw_hit_forked_fn forked;
	/* What match programs do to processes: session/effects.c.  Vector registers may be used. */
	int (*trace)(unsigned session, struct tw_term who, struct tw_term off, struct tw_term on);
	void (*silence)(unsigned session, bool is_silent);
	/* A ring set that is never unmapped, and its session's bit: where threads count that have left. */
	struct tw_rs *pinned_rs;
	uint32_t pinned_image;
	uint32_t pinned_session;
};
extern struct tw_hit_host tw_hit_host;

/* ---- thread.c: joining, leaving, rings ---- */

/* Joins the calling thread if it has not; false when it cannot be (it has ended). */
bool tw_thread_join(void);
/* The same in the middle of a hit: keeps vector registers. */
bool tw_hit_join(void);
/* Makes the leaving of threads at their exit work: called once, early, before threads hit. */
void tw_thread_init(void);
/*
 * Both may leave the read section to wait for room; what is still wanted of this place afterwards is in
 * *todo.  False: the record is counted as lost, or no longer wanted.
 *
 * tw_lane_catch_up - a ring and a switch record, where they are due before a record.
 * tw_lane_wait - room for `bytes`.
 */
bool tw_lane_catch_up(struct tw_hit_tls *t, struct tw_place *place, unsigned session, uint64_t ticks, uint64_t *todo);
bool tw_lane_wait(struct tw_hit_tls *t, struct tw_place *place, unsigned session, uint32_t bytes, uint64_t ticks,
		  uint64_t *todo);
/* Takes the rings of a session from all threads, when no hit can use them any more. */
void tw_threads_end_lanes(unsigned session);
/* Runs another tracee on this thread; NULL: none. */
void tw_thread_run(struct tw_tracee *tracee);
/* In a forked child: only this thread is left, with lanes that are not its own. */
void tw_threads_after_fork_in_child(void);
void tw_threads_before_fork(void);
void tw_threads_after_fork_in_parent(void);

/* Is this hit under way still, or was it left by longjmp?  Called inside a nested hit. */
bool tw_hit_was_abandoned(const struct tw_hit_tls *t, const void *frame);

/* A call as the general case sees it. */
struct tw_hit_call {
	const uint64_t *words;
	unsigned count;		 /* of words */
	unsigned recorded_count; /* how many of them go into the record */
};

/*
 * The general case of hit.c, in special.c: match programs, range tests, counters, strict time stamps.
 * Returns a mask of who still wants this call, which is not everybody if there was a wait.
 */
uint64_t tw_hit_special(struct tw_hit_tls *t, struct tw_place *place, uint64_t todo, const struct tw_hit_call *call);

/* What a match program says of a call. */
enum tw_hit_verdict {
	TW_HIT_UNWANTED, /* no clause matched */
	TW_HIT_PLAIN,	 /* a plain event */
	TW_HIT_MORE	 /* actions, an extra element, or no event: tw_hit_decided() does it */
};
/* Runs the part's program; its result stays in the thread's run. */
static inline enum tw_hit_verdict tw_hit_run(struct tw_hit_tls *t, const struct tw_bp_part *part,
					     const struct tw_hit_call *call)
{
	struct tw_thread *thread = t->thread;
	enum tw_match_verdict verdict;

	thread->run_session = part->session;
	verdict = tw_match_run_raw(part->program, call->words, call->count, &thread->run);
	if (verdict == TW_MATCH_NO)
		return TW_HIT_UNWANTED;
	return verdict == TW_MATCH_YES && !thread->run.result.actions ? TW_HIT_PLAIN : TW_HIT_MORE;
}
/* Does what the last tw_hit_run() decided.  Returns as tw_hit_special(). */
uint64_t tw_hit_decided(struct tw_hit_tls *t, struct tw_place *place, const struct tw_bp_part *part,
			const struct tw_hit_call *call);

/* Makes a thread ready to run match programs. */
void tw_hit_prepare_run(struct tw_thread *thread);

/* The next number of tw_unique_integer_monotonic(): one shared counter, paid for by those who ask. */
uint64_t tw_hit_unique_integer(void);

/* The hit of trampolines: tw_bp_trampoline_hit points here. */
void tw_hit_slot(struct tw_place *place, const uint64_t *words);

#endif
