/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hit.h - the plain structures that a hit reads: threads, tracees, sessions.
 *
 * session/ writes them, by the rules beside each field; hits only read them, except for the thread's own words.
 * Sessions are bits; a *thread ring* is a thread's producing end of one session's ring.
 *
 *	struct tw_hit_tls (thread-local) --> struct tw_tracee (the one this thread runs)
 *	        |                                  wants_call: a bit for each session
 *	        +--> struct tw_thread
 *	                 thread rings[session] --> a ring
 */
#ifndef TW_PIPELINE_HIT_H
#define TW_PIPELINE_HIT_H

#include "base/sys.h"
#include "breakpoints/breakpoints.h"
#include "pipeline/hit/arguments.h"
#include "match/match.h"
#include "pipeline/format/event.h"
#include "pipeline/hit/frame.h"
#include "pipeline/hit/process_memory.h"
#include "pipeline/hit/walk.h"
#include "progress/progress.h"
#include "ringbuf/ringset.h"

/* Kinds of runtime events (runtime_event.h); TW_WANTS_* of tracewheel/runtime.h are these as bits. */
enum tw_want {
	TW_WANT_SEND,
	TW_WANT_RECEIVE,
	TW_WANT_PROCS,
	TW_WANT_RUNNING,
	TW_WANT_EXITING,
	TW_WANT_GARBAGE_COLLECTION,
	TW_WANT_KINDS
};

/* Where a process' time, or words, are counted for one session: see count.h. */
struct tw_thread_counts;
struct tw_account {
	uint64_t since; /* ticks, or allocated_words */
	uint64_t on;	/* the id of the account that runs now, and its row: see account.h */
	uint8_t key;	/* session and kind: the lowest bit is 1 for time; 0: free */
};

/*
 * A process in OTP's sense. By default each thread is one; a run-time declares its own. A tracee's memory is freed
 * after a grace period in which no thread ran it.
 */
struct tw_tracee {
	/* Read by every hit; written by control and by match programs, by read-modify-write only. */
	TW_CACHELINE_ALIGNED _Atomic uint64_t wants_call; /* sessions that want calls of this tracee */
	_Atomic uint64_t special;			  /* of these, sessions that need more than a plain
							   * record */
	_Atomic uint64_t silent;			  /* of these, sessions without call events */
	_Atomic uint64_t wants_return_to;		  /* of these, sessions that want return_to as well */
	_Atomic uint64_t tracer_of;			  /* sessions that this tracee is the tracer of; all while it is
				       * sensitive: no meta events */
	_Atomic uint64_t counts_call; /* sessions that count its time and words, where they count any */
	/* Raised each time it is scheduled in, and for each event that another thread makes of it. */
	_Atomic uint64_t run_seq;
	uint32_t tracee_id; /* not reused before 2^32 processes of the image */
	uint32_t pid_number;
	int32_t thread_id; /* the kernel's; 0: a process of a run-time */
	/* Indexed by session: what the heads of records carry (TW_EVENT_FLAG_*), and all flags (session.h's). */
	_Atomic uint8_t record_flags[TW_SESSIONS_MAX];
	TW_CACHELINE_ALIGNED _Atomic uint32_t flags[TW_SESSIONS_MAX];
	_Atomic uint32_t all_flags; /* the OR over sessions */
	/* Indexed by kind of event (enum tw_want): the sessions that want such events of this tracee. */
	TW_CACHELINE_ALIGNED _Atomic uint64_t wants[TW_WANT_KINDS];
	/* Sessions for which other threads make events of it: its own thread checks run_seq before each record. */
	_Atomic uint64_t others_make;
	_Atomic uint64_t special_alone; /* sessions in `special` for another reason than others_make */
	/* Control: under the lock of session/tracee.c. */
	_Atomic uint64_t described; /* sessions whose definitions name it */
	struct tw_tracee *next, **link;
	struct tw_term registered_name; /* none, or an atom */
	uint8_t counted;		/* its contribution to tw_runtime_wanted */
	bool is_sensitive;
	/* Written by the thread that runs or ends it. */
	bool is_exiting;
	bool is_in; /* scheduled in, and not out since */
	char name[32];
	/* Written by the thread that runs it only. */
	bool has_accounts;
	uint64_t allocated_words;
	struct tw_account accounts[TW_ACCOUNTS];
	struct tw_block *further_accounts; /* see account.h */
	struct tw_process_memory memory;
};

/*
 * The properties of a session that a hit needs; one entry for each bit. Written while no place and no tracee has the
 * bit.
 */
struct tw_hit_session {
	struct tw_rs *rs;
	uint32_t session_index; /* the session's number in definitions: never reused in the image */
	/* Which messages: TW_WANT_SEND, TW_WANT_RECEIVE. NULL: all; &tw_hit_no_message: none. PAIR hit.pattern. */
	const struct tw_match_program *_Atomic patterns[2];
	_Atomic uint64_t epoch; /* tw_hit_epoch when the session was made */
};
#pragma GCC visibility push(hidden)
extern struct tw_hit_session tw_hit_sessions[TW_SESSIONS_MAX];
extern const struct tw_match_program tw_hit_no_message;
/* Raised for each session before anything of it can be seen; tells the session from later ones in the same slot. */
extern _Atomic uint64_t tw_hit_epoch;
/*
 * Sessions whose `timestamp` is CPU time. Changed by read-modify-write under the registry's lock; special to every
 * tracee so stamped.
 */
extern _Atomic uint64_t tw_hit_cpu_stamped;
/* Sessions that are alive and have rings; a bit is cleared before a wait for thread progress. */
extern _Atomic uint64_t tw_hit_alive;
#pragma GCC visibility pop

struct tw_thread_ring {
	struct tw_rb_producer producer;
	uint64_t run_stamp;	  /* of the last record: if it differs from the thread's, a switch record is
				   * due */
	uint64_t retry_ticks;	  /* without a ring: the last attempt failed; the next one is made after this */
	bool has_waited_for_ring; /* without success */
	bool is_inherited;	  /* by fork, during a hit: the ring is memory of this process that nothing
				   * reads */
};

/* One joined thread, from a pool that is never unmapped. */
struct tw_thread {
	/* The word of its read sections: written at each hit, read by threads that wait for thread progress. */
	TW_CACHELINE_ALIGNED struct tw_progress_reader reader;
	struct tw_thread *next, **link; /* under the lock of thread.c */
	uint32_t scheduler_id;		/* from 1; reused after the thread has left */
	uint32_t is_scheduler;		/* declared as a scheduler: has no tracee of its own */
	uint64_t start_ticks;		/* when it joined: tells it from other threads with the same number */
	/* 1 + the session whose ring this thread waits for outside of a read section; 0: none. PAIR hit.waiting. */
	_Atomic uint32_t waiting_session;
	struct tw_tracee *own_tracee;		     /* the thread as a process; NULL for schedulers */
	struct tw_tracee *saved_tracee;		     /* the thread's own tracee, saved while it emits another's event;
					  * else NULL */
	uintptr_t stack_low, stack_high;	     /* the stack that the thread began with; 0: not known */
	uintptr_t jumping_from;			     /* the frame that reports the calls that a longjmp leaves, while it
					  * does; 0: none */
	uintptr_t busy_frame;			     /* the frame where our own work began; 0: none is in progress */
	uint64_t busy_signals;			     /* the signals that were blocked then */
	struct tw_process_memory memory;	     /* for chains while it runs no process: see chain.h */
	struct tw_thread_counts *_Atomic own_counts; /* kept when the thread leaves */
	bool has_no_counts;			     /* without success */
	struct tw_match_run run;
	unsigned run_session;		    /* the session whose program runs */
	uint64_t vectors[8];		    /* of the current call, once its program has entered the
					     * interpreter */
	const struct tw_hit_call *run_call; /* the program's arguments; set while a program of calls runs */
	_Alignas(16) uint8_t scratch[TW_MATCH_SCRATCH_BYTES_MIN]; /* for a run of a match program */
	/*
	 * Terms encoded for a record: all that fits one record beside its head, a stamp, a count and a switch record.
	 */
	_Alignas(16) uint8_t terms[TW_RB_RECORD_BYTES_MAX - 256];
	uint64_t arguments[TW_ARG_WORDS_MAX]; /* of the current call, where they are typed */
	uint64_t callers[TW_STACK_DEPTH_MAX]; /* of the current call, where they are recorded */
	struct tw_thread_ring rings[TW_SESSIONS_MAX];
};

/*
 * In a hit the state is the address of the hit's frame, which tells a nested hit from one that was left by longjmp.
 * It is one word, so that no signal can arrive between "in a hit" and "in which".
 */
enum tw_thread_state {
	TW_THREAD_NEW = 0,
	TW_THREAD_READY,
	TW_THREAD_ENDED,
	TW_THREAD_NO_CLOCK, /* may not read the clock */
	TW_THREAD_JOINING,
	TW_THREAD_BUSY, /* does our own work: its calls of libc are no events, but those of its signal
			 * handlers are */
	TW_THREAD_IN_HIT
};

/* At most 64 bytes: programs that dlopen() the library have little static thread-local storage. */
struct tw_hit_tls {
	uintptr_t state;	  /* enum tw_thread_state, or a frame; written by this thread and its signal handlers */
	struct tw_tracee *tracee; /* the tracee that this thread runs; &tw_hit_nobody: none */
	struct tw_thread *thread;
	uint64_t run_stamp; /* raised at each change of tracee */
	uint64_t run_seq;   /* of the tracee, for switch records */
};
#pragma GCC visibility push(hidden)
extern __thread struct tw_hit_tls tw_hit_tls;
extern struct tw_tracee tw_hit_nobody;
#pragma GCC visibility pop

/*
 * tw_hit_begin - enter a hit that is identified by this frame.
 *
 * False: the thread is not ready (tw_hit_make_ready()). The state changes in one step, because a signal handler may
 * switch to a coroutine that comes here too, and come back while that one is inside a hit.
 */
static inline __attribute__((always_inline)) bool tw_hit_begin(struct tw_hit_tls *t, const void *frame)
{
	return tw_likely(tw_cas_own(&t->state, TW_THREAD_READY, (uintptr_t)frame));
}

static inline __attribute__((always_inline)) void tw_hit_end(struct tw_hit_tls *t)
{
	tw_compiler_barrier();
	t->state = TW_THREAD_READY;
}

/*
 * Ends a hit for which the thread had to be made ready: restores the state of the work that a signal handler
 * interrupted.
 */
static inline void tw_hit_go_back(struct tw_hit_tls *t)
{
	if (tw_unlikely(t->state == TW_THREAD_READY && t->thread->busy_frame))
		t->state = TW_THREAD_BUSY;
}

/* Is the calling thread inside a hit? */
static inline bool tw_hit_is_under_way(void)
{
	return tw_hit_tls.state >= TW_THREAD_IN_HIT;
}

/*
 * Set by session/ before anything is armed: makes the tracee of a thread at its first hit. Called with signals
 * blocked. Returns &tw_hit_nobody on failure.
 */
typedef struct tw_tracee *(*tw_hit_make_tracee_fn)(struct tw_thread *thread, int thread_id);
/* Adds a tracee to the definitions of a session before a record names it. Called with signals blocked. */
typedef void (*tw_hit_describe_fn)(struct tw_tracee *tracee, unsigned session);
/* A thread leaves: its own tracee exits. */
typedef void (*tw_hit_exit_tracee_fn)(struct tw_tracee *tracee);
/* The first hit in a forked child; called once, with signals blocked; may open the gate again. */
typedef void (*tw_hit_forked_fn)(void);
struct tw_hit_host {
	void (*prepare_run)(struct tw_thread *thread); /* tw_hit_prepare_run(): a thread joins */
	tw_hit_make_tracee_fn make_tracee;
	tw_hit_describe_fn describe;
	tw_hit_exit_tracee_fn exit_tracee;
	/*
	 * A thread that is a process has joined, or is about to leave: emits its events. Called with signals blocked.
	 */
	tw_hit_exit_tracee_fn thread_began, thread_ends;
	tw_hit_forked_fn forked;
	/* A thread that passes on its flags calls pthread_create with these arguments, which may be changed. */
	void (*makes_thread)(uint64_t *words);
	/* The effects of match programs on processes: session/effects.c. Vector registers may be used. */
	int (*trace)(unsigned session, struct tw_term who, struct tw_term off, struct tw_term on);
	void (*silence)(unsigned session, bool is_silent);
	/* A ring set that is never unmapped, and its session's bit: threads that have left count their losses there. */
	struct tw_rs *pinned_rs;
	uint32_t pinned_session;
	struct tw_term node; /* the result of node(): an atom; none: nonode@nohost */
};
extern struct tw_hit_host tw_hit_host;

/* ---- thread.c: joining, leaving, rings ---- */

/* The last time that a thread without the clock lost an event: the time of the losses of all such threads. */
extern _Atomic uint64_t tw_hit_no_clock_ticks;

/* Joins the calling thread unless it has joined; false if it cannot (it has ended). */
bool tw_thread_join(void);
/* As tw_thread_join(), in the middle of a hit: keeps vector registers. */
bool tw_hit_join(void);
/* The calling thread has a new name: writes it to its rings. Keeps errno; makes no system call. */
void tw_thread_named(const char *name);

/*
 * tw_thread_forbid_clock - the thread is about to make reading the processor's clock a fault (strict seccomp,
 * PR_TSC_SIGSEGV).
 *
 * From here on its calls are only counted, as lost for want of a ring, without a time of their own. Returns the value
 * for tw_thread_allow_clock(), which is called if the kernel refused the request.
 */
uintptr_t tw_thread_forbid_clock(void);
void tw_thread_allow_clock(uintptr_t state);
/* Enables leaving at thread exit. Called once, early, before any thread hits. */
void tw_thread_init(void);
/* Conditions under which a record is still wanted after a wait. Sessions made during the wait never want it. */
struct tw_recheck {
	const struct tw_place *place;  /* this place must still be set for the session; NULL: none */
	const _Atomic uint64_t *wants; /* this word of the tracee must still hold the session's bit; NULL:
				        * none */
};
/*
 * Both may leave the read section to wait for space. Afterwards *todo holds only the other sessions that still want
 * the record. False: the record is counted as lost, or is no longer wanted.
 *
 * tw_thread_ring_catch_up - takes a ring and writes a switch record, where they are due before a record.
 * tw_thread_ring_wait - waits for space for `bytes`.
 */
bool tw_thread_ring_catch_up(struct tw_hit_tls *t, const struct tw_recheck *recheck, unsigned session, uint64_t ticks,
			     uint64_t *todo);
bool tw_thread_ring_wait(struct tw_hit_tls *t, const struct tw_recheck *recheck, unsigned session, uint32_t bytes,
			 uint64_t ticks, uint64_t *todo);
/* Takes the rings of a session from all threads, when no hit can use them any more. */
void tw_threads_end_rings(unsigned session);
/* Switches this thread to another tracee; NULL: none. */
void tw_thread_run(struct tw_tracee *tracee);
/*
 * Called before a record of a session in others_make: other threads make events of the tracee that this thread runs.
 * If another thread has made one since this thread's last record, begins a new run.
 */
void tw_thread_open_run(struct tw_hit_tls *t);
/* A run gets its number at its first record: it follows all runs that others have made, and precedes all later ones. */
#define TW_RUN_DUE UINT64_MAX
static inline void tw_thread_number_run(struct tw_hit_tls *t)
{
	if (t->run_seq == TW_RUN_DUE) {
		/*
		 * PAIR tracee.run_seq: release: what this thread made of the tracee comes before its next run, on any
		 * thread. PAIR tracee.run_seq: acquire: what others made of it, and ended by this same line, comes
		 * before this run.
		 */
		t->run_seq = tw_fetch_add_acq_rel(&t->tracee->run_seq, 1) + 1;
	}
}
static inline void tw_thread_follow_runs(struct tw_hit_tls *t)
{
	struct tw_tracee *tracee = t->tracee;

	/* RELAXED hit.others_make: a change is seen by this record or by the next. */
	if (tw_likely(!tw_load_relaxed(&tracee->others_make)))
		return;
	/* RELAXED tracee.follow: if this thread can know of another's event, it sees its number. */
	if (!t->run_seq || tw_load_relaxed(&tracee->run_seq) != t->run_seq)
		tw_thread_open_run(t);
}
/*
 * In a forked child only this thread is left, with thread rings that are not its own. tw_threads_let_go_in_child()
 * suffices for safety (from there on nothing of the parent is written), may be called in a signal handler, and is
 * part of the first.
 */
void tw_threads_after_fork_in_child(void);
void tw_threads_let_go_in_child(void);
void tw_threads_before_fork(void);
void tw_threads_after_fork_in_parent(void);

/*
 * The stack for the calling thread's signal handlers, as far as it is known: the thread has set it (SS_ONSTACK) or
 * had it when it joined. Zeros: none. Set before the kernel is told, so that no handler runs on an unknown stack.
 */
extern __thread struct tw_sys_signal_stack tw_thread_signal_stack;
/*
 * True if each thread that sets a signal stack reports it there. Otherwise the kernel is asked when a hit may have
 * been left by a jump.
 */
extern bool tw_thread_hears_signal_stacks;

/* Was the current hit certainly left by a jump? Called by a later hit, with its frame. */
bool tw_hit_was_abandoned(const struct tw_hit_tls *t, const void *frame);
/*
 * The same for a thread that does our own work. JOINING: the call is our own; NEW: a signal handler made it, or the
 * work was left by a jump. For a handler's call the thread is ready until tw_hit_go_back().
 */
enum tw_thread_state tw_thread_look_who_calls(struct tw_hit_tls *t, const void *frame);
/* Ends the abandoned hit: its read section, its wait. Changes only our own state. */
void tw_hit_leave_abandoned(struct tw_hit_tls *t);
/* False in a child that shares this process' memory (vfork). */
bool tw_thread_is_own_process(void);
/* Waits, for a limited time, until no thread waits for a ring or for space. */
void tw_threads_await_calls(void);
/* Allocates memory for all that the rings of this process may hold, while system calls are still possible. */
void tw_threads_populate_rings(void);
/*
 * Between these the calling thread's calls are ours and no events, though they pass traced slots; those of its signal
 * handlers are the program's. @frame: of the function that works, or of one of its callers. False: the thread is
 * inside a hit, or has not joined, and there is nothing to end. Makes a system call.
 */
bool tw_thread_begin_own_work(const void *frame);
void tw_thread_end_own_work(bool has_begun);
/* The calling thread is about to jump and set %rsp to this. Ends the hit that it leaves. */
void tw_thread_jumps(uintptr_t to);
/* Restores the tracee that the thread ran before it made an event of another: runtime_event.c. */
void tw_hit_give_back(struct tw_hit_tls *t);

/* A call in the general case. */
struct tw_hit_call {
	const uint64_t *words;
	unsigned count;		     /* of words */
	unsigned recorded_count;     /* how many of them the record holds */
	const struct tw_term *terms; /* instead of words; NULL: words */
	unsigned term_count;
	bool is_local;		      /* without the module's name */
	struct tw_frame_wants *frame; /* NULL: the call's end will not be reported */
};

/*
 * The general case of hit.c, in special.c: match programs, range tests, counters, strict and CPU time stamps, meta.
 * Adds what those sessions want of the call's end to call->frame, which begins as zeros. Returns the mask of sessions
 * that still want this call; after a wait some may not.
 */
uint64_t tw_hit_special(struct tw_hit_tls *t, struct tw_place *place, uint64_t todo, const struct tw_hit_call *call);

/* The verdict of a match program on a call. */
enum tw_hit_verdict {
	TW_HIT_UNWANTED, /* no clause matched */
	TW_HIT_PLAIN,	 /* a plain event */
	TW_HIT_MORE	 /* actions, an extra element, or no event: see tw_hit_decided() */
};
/* Runs the part's program over the words; its result stays in the thread's run. */
static inline enum tw_hit_verdict tw_hit_run(struct tw_hit_tls *t, const struct tw_bp_part *part,
					     const struct tw_hit_call *call)
{
	struct tw_thread *thread = t->thread;
	enum tw_match_verdict verdict;

	thread->run_session = part->session;
	thread->run_call = call;
	verdict = tw_match_run_raw(part->program, call->words, call->count, &thread->run);
	if (verdict == TW_MATCH_NO)
		return TW_HIT_UNWANTED;
	return verdict == TW_MATCH_YES && !thread->run.result.actions ? TW_HIT_PLAIN : TW_HIT_MORE;
}
/* Carries out what the last tw_hit_run() decided. Returns as tw_hit_special(). */
uint64_t tw_hit_decided(struct tw_hit_tls *t, struct tw_place *place, const struct tw_bp_part *part,
			const struct tw_hit_call *call);

/* Makes a thread ready to run match programs. */
void tw_hit_prepare_run(struct tw_thread *thread);

/* The next number of tw_unique_integer_monotonic(), from one counter shared by all threads that use such stamps. */
uint64_t tw_hit_unique_integer(void);

/*
 * tw_hit_native - the hit of trampolines that can watch the call end.
 *
 * @words	the six integer argument registers.
 * @slot	the address of its return address.
 * @out		gives: what must be kept of the call, for tw_frame_return() and the other ends.
 *
 * Records the call. Returns true if a frame should be opened. Keeps errno and vector registers.
 */
bool tw_hit_native(struct tw_place *place, const uint64_t *words, uint64_t *slot, struct tw_frame_wants *out);

/*
 * The rest of tw_hit_native(), for a thread that has entered the hit (its state is the call's frame). Leaves the read
 * section.
 */
bool tw_hit_native_inside(struct tw_place *place, const uint64_t *words, uint64_t *slot, struct tw_frame_wants *out);

/* Sessions made after that epoch: in data kept since then, their bits mean earlier sessions. */
uint64_t tw_hit_newer_than(uint64_t epoch);

/*
 * Handles a thread that is not ready for a hit: joins it, or leaves a hit that was abandoned. 0: ready now;
 * TW_THREAD_IN_HIT: nested in another hit; TW_THREAD_ENDED, TW_THREAD_JOINING: no hit is possible.
 */
enum tw_thread_state tw_hit_make_ready(struct tw_hit_tls *t, const void *frame);
/* Counts one record for each of these sessions as lost inside another hit. Called in a read section. */
void tw_hit_count_nested(struct tw_hit_tls *t, uint64_t sessions);
/* The same on a thread that has left, or may not read the clock: counted for the session that is never destroyed. */
void tw_hit_count_pinned(uint64_t sessions, enum tw_thread_state state);

#endif
