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
#include "pipeline/hit/open_calls.h"
#include "match/match.h"
#include "pipeline/format/event.h"
#include "pipeline/hit/frame.h"
#include "pipeline/hit/process_memory.h"
#include "pipeline/hit/seq.h"
#include "pipeline/hit/walk.h"
#include "pipeline/thread/space.h"
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
	TW_WANT_KINDS,
	/* For ports only, which have none of the events that use these. */
	TW_WANT_PORTS = TW_WANT_PROCS,
	TW_WANT_RUNNING_PORTS = TW_WANT_RUNNING,
	/* Not of a tracee: a monitor of the system, see monitor.h. */
	TW_WANT_MONITOR = TW_WANT_KINDS,
	/* Nor this, which belongs to the system tracer: seq.h. */
	TW_WANT_SEQ
};

/* The counts of a process' time, or words, for one session: see count.h. */
struct tw_thread_counts;
struct tw_account {
	uint64_t since; /* ticks, or allocated_words */
	uint64_t on;	/* the id of the account that runs now, and its row: see account.h */
	uint8_t key;	/* session and kind: the lowest bit is 1 for time; 0: free */
};

/*
 * A process in OTP's sense. By default each thread is one; a run-time declares its own. A tracee's memory is freed
 * after a grace period in which no thread ran it. Or a port, which no thread runs: its events are made by the threads
 * that use it.
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
	_Atomic uint64_t module_calls; /* of wants_call, those that are special only because their tracer is a module */
	_Atomic uint64_t counts_call;  /* sessions that count its time and words, where they count any */
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
	/* Sessions that have reported its message queue as long. */
	_Atomic uint64_t long_queue;
	_Atomic uint64_t special_alone; /* sessions in `special` for another reason than others_make */
	/* Sessions whose tracer is a module, and that have flags of it: asked for their status when it is scheduled in. */
	_Atomic uint64_t has_modules;
	/* Control: under the lock of session/tracee.c. */
	_Atomic uint64_t described; /* sessions whose definitions name it */
	struct tw_tracee *next, **link;
	struct tw_term registered_name; /* none, or an atom */
	uint32_t port_slot;		/* of a port: its entry in the table of ports; 0: a process */
	uint16_t counted;		/* its contribution to tw_runtime_wanted */
	bool is_sensitive;
	/* Written by threads that run it, end it, or report something of it; perhaps several at once. */
	_Atomic bool is_exiting;
	_Atomic bool is_in; /* scheduled in, and not out since */
	/* The same, for monitor.c: when it was scheduled in and when the collection began, in ticks; 0: not known. */
	_Atomic bool is_over_heap_limit;
	_Atomic uint64_t in_since, gc_since;
	/* Written by the thread that runs it. */
	bool is_inside_port; /* a process that runs a port: scheduled out for sessions with running_procs */
	const struct tw_declared_function *in_function;
	char name[32];
	/* Written by the thread that runs it only. */
	bool has_accounts;
	uint64_t allocated_words;
	struct tw_account accounts[TW_ACCOUNTS];
	struct tw_block *further_accounts; /* see account.h */
	struct tw_process_memory memory;
	struct tw_seq_state seq; /* its token and clocks: by the thread that runs it, or makes it */
};

/* Events of a tracer module that were not made, and processes that it has removed itself from. */
enum tw_module_count {
	TW_MODULE_NESTED,
	TW_MODULE_NO_THREAD,
	TW_MODULE_WRONG_ANSWER,
	TW_MODULE_REMOVED,
	TW_MODULE_COUNTS
};

struct tw_hit_module;

/*
 * The properties of a session that a hit needs; one entry for each bit. Written while no place and no tracee has the
 * bit.
 */
struct tw_hit_session {
	struct tw_rs *rs;
	const struct tw_hit_module *module; /* callbacks in place of records: module.h; NULL: none */
	uint32_t session_index;		    /* the session's number in definitions: never reused in the image */
	/* Which messages: TW_WANT_SEND, TW_WANT_RECEIVE. NULL: all; &tw_hit_no_message: none. PAIR hit.pattern. */
	const struct tw_match_program *_Atomic patterns[2];
	_Atomic uint64_t epoch; /* tw_hit_epoch when the session was made */
	_Atomic uint64_t module_counts[TW_MODULE_COUNTS];
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
/*
 * Sessions whose tracer is a module; special to every tracee that they trace. A bit stays until its slot is given up.
 */
extern _Atomic uint64_t tw_hit_modules;
/* Sessions that are alive and have rings or callbacks; a bit is cleared before a wait for thread progress. */
extern _Atomic uint64_t tw_hit_alive;
#pragma GCC visibility pop

struct tw_thread_ring {
	/* With the first words of the producer one line, of which most records need nothing else. */
	TW_LINE_ALIGNED uint64_t
		run_stamp; /* of the last record: if it differs from the thread's, a switch record is due */
	struct tw_rb_producer producer;
	uint64_t retry_ticks;	  /* without a ring: the last attempt failed; the next one is made after this */
	bool has_waited_for_ring; /* without success */
	bool is_inherited;	  /* by fork, during a hit: the ring is memory of this process that nothing
				   * reads */
};

/* Conditions under which a record is still wanted after a wait. Sessions made during the wait never want it. */
struct tw_recheck {
	const struct tw_place *place;  /* this place must still be set for the session; NULL: none */
	const _Atomic uint64_t *wants; /* this word of the tracee must still hold the session's bit; NULL:
				        * none */
};

/*
 * A hit's work on a thread ring, in steps (wait.h): it lies here and not on the program's stack, which may be small.  A thread is
 * in one hit at a time.
 */
struct tw_ring_work {
	struct tw_hit_tls *t;
	const struct tw_recheck *recheck;
	uint64_t *todo; /* in and out: sessions that still want the hit */
	uint64_t ticks;
	unsigned session;
	uint32_t bytes;
	/* After a step: the word to sleep on, while it has this value, for sleep_ns at most; NULL: the work is done. */
	const _Atomic uint32_t *sleep_word;
	uint32_t sleep_value;
	uint64_t sleep_ns;
	/* Between the steps. */
	bool is_begun, is_new, is_waiting, has_waited, result;
	/* The tracer's own time that is recorded behind records of earlier times; ticks 0: none. */
	struct tw_own_time_behind {
		uint64_t since, ticks;
		enum tw_own_time why;
	} behind;
	uint32_t seen; /* tw_rs_recycled() */
	uint64_t run_stamp, epoch, spent_ns, beat;
	struct tw_space_wait space;
};

/* The key that tells the rows apart in which a thread sums calls up: aggregate.h. */
struct tw_aggregate_key {
	uint32_t place_id, is_rest;
	uint64_t key, number;
};

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

/* A hit of one.c, which is here and not on the program's stack for the same reason. */
struct tw_one_hit {
	struct tw_recheck recheck;
	uint64_t wanted; /* sessions that still want its next record */
	uint64_t ticks;
	uint64_t stamp; /* of the record, if it is of an earlier time than now; 0: ticks */
	const uint64_t *words;
	unsigned count;
	uint8_t flags;
	uint32_t bytes;
	struct tw_rb_record *record;
	uint64_t result[2];
	struct tw_frame_wants wants;
	/* Of a match program. */
	const struct tw_bp_part *part;
	struct tw_hit_call call;
	struct tw_match_result decided;
};

/*
 * The calls in a call that is under way, which are recorded with it if it fulfils its condition: children.h.  Written by the thread, in
 * hits.
 */
struct tw_longer_frame;
struct tw_children {
	struct tw_longer_frame
		*root; /* the outermost open call that may still fulfil its condition; NULL: none, nothing is kept */
	uint64_t root_ticks; /* when it began */
	uint64_t epoch;	     /* of the session */
	uint64_t due_ticks;  /* no open call is long before */
	uint64_t head, tail; /* positions of words: behind the newest record, and of the oldest */
	uint64_t left_out;   /* calls that had to go, or found no space */
	/* While they are recorded: those that began before `since` were left by a jump; of those before `first` the call is not kept. */
	uint64_t since, first;
	uint64_t *words; /* a ring of `capacity`, a power of 2; kept when the thread leaves */
	uint64_t capacity;
	/* Of the call that is being entered: where it continues, NULL: as before; counted with those of all threads. */
	const char *resume_at;
	bool is_of_all;
	/* And if it is so beside what other sessions want: */
	struct tw_place *place;
	const uint64_t *call_words;
	uint64_t *slot;
};

/* One joined thread, from a pool that is never unmapped. */
struct tw_thread {
	/* The word of its read sections: written at each hit, read by threads that wait for thread progress. */
	TW_CACHELINE_ALIGNED struct tw_progress_reader reader;
	struct tw_thread_ring rings[TW_SESSIONS_MAX];
	struct tw_thread *next, **link; /* under the lock of thread.c */
	uint32_t scheduler_id;		/* from 1; reused after the thread has left */
	uint32_t is_scheduler;		/* declared as a scheduler: has no tracee of its own */
	uint64_t start_ticks;		/* when it joined: tells it from other threads with the same number */
	uint64_t end_ticks;		/* when its last destructor had run; 0: before */
	int thread_id;			/* the kernel's */
	bool is_dead;			/* and is being taken apart */
	int *errno_at;			/* its errno, without a call of libc */
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
	uint8_t *signal_stack;			     /* thread/signal_stack.c; NULL: none */
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
	struct tw_ring_work ring_work;
	struct tw_one_hit one;
	struct tw_arg_copying copying; /* of its arguments and results */
	/* A call that is the first of its key, and its number. */
	struct tw_aggregate_key aggregate;
	uint64_t aggregate_number;
	uint64_t own_ticks;		 /* the tracer's own time on it so far: set-up of rings, and waits */
	struct tw_open_calls open_calls; /* calls whose returns need their arguments */
	struct tw_children children;
};

/*
 * In a hit the state is the address of the hit's frame, which tells a nested hit from one that was left by longjmp.
 * It is one word, so that no signal can arrive between "in a hit" and "in which".
 */
enum tw_thread_state {
	TW_THREAD_NEW = 0,
	TW_THREAD_READY,
	TW_THREAD_ENDED,    /* has left, in its last destructor */
	TW_THREAD_UNABLE,   /* could not join: no memory, a filter of system calls */
	TW_THREAD_NO_CLOCK, /* may not read the clock */
	TW_THREAD_VFORKED, /* no thread of this process: a child of vfork(), on one that has not joined; never stored */
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
	/* The thread's own counts, one load nearer than in its structure; NULL: it has counted nothing yet. */
	struct tw_thread_counts *own_counts;
	struct tw_longer_frame *longer; /* the innermost open call whose length decides: longer.h; NULL: none */
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
struct tw_hit_host {
	void (*prepare_run)(struct tw_thread *thread); /* tw_hit_prepare_run(): a thread joins */
	tw_hit_make_tracee_fn make_tracee;
	tw_hit_describe_fn describe;
	tw_hit_exit_tracee_fn exit_tracee;
	/*
	 * A thread that is a process has joined, or is about to leave: emits its events. Called with signals blocked.
	 */
	tw_hit_exit_tracee_fn thread_began, thread_ends;
	/* A thread that passes on its flags calls pthread_create with these arguments, which may be changed. */
	void (*makes_thread)(uint64_t *words);
	/* After that, outside of the hit: the new thread gets the token of this one. */
	void (*passes_token)(const uint64_t *words);
	/* The effects of match programs on processes: session/effects.c. Vector registers may be used. */
	int (*trace)(unsigned session, struct tw_term who, struct tw_term off, struct tw_term on);
	void (*silence)(unsigned session, bool is_silent);
	/* The token of the process that the thread runs, built in @arena, and {set_seq_token,Component,Value}: 0, or an error. */
	struct tw_term (*get_seq_token)(struct tw_arena *arena);
	int (*set_seq_token)(struct tw_term component, struct tw_term value);
	/* A tracer module is gone: the process loses its flags in this session. Called in a hit. */
	void (*remove_tracer)(unsigned session, uint64_t pid);
	/* A ring set that is never unmapped, and its session's bit: threads that have left count their losses there. */
	struct tw_rs *pinned_rs;
	uint32_t pinned_session;
	uint64_t children_words; /* of each thread's ring of struct tw_children: a power of 2 */
	struct tw_term node;	 /* the result of node(): an atom; none: nonode@nohost */
};
extern struct tw_hit_host tw_hit_host;

/* The next number of tw_unique_integer_monotonic(), from one counter shared by all threads that use such stamps. */
uint64_t tw_hit_unique_integer(void);

/*
 * tw_hit_native_inside - the general hit of trampolines that can watch the call end, for a thread that has entered the hit (its state
 * is the call's frame) and its read section. Leaves both.
 *
 * @words	the six integer argument registers.
 * @slot	the address of its return address.
 * @out		gives: what must be kept of the call, for tw_frame_return() and the other ends.
 *
 * Records the call. Returns true if a frame should be opened. Keeps errno and vector registers.
 */
bool tw_hit_native_inside(struct tw_place *place, const uint64_t *words, uint64_t *slot, struct tw_frame_wants *out);
/* Counts a call that tw_hit_make_ready() has refused. */
void tw_hit_native_refused(struct tw_place *place, enum tw_thread_state state, const uint64_t *slot);

/* Sessions made after that epoch: in data kept since then, their bits mean earlier sessions. */
uint64_t tw_hit_newer_than(uint64_t epoch);

/*
 * Handles a thread that is not ready for a hit: joins it, or leaves a hit that was abandoned. 0: ready now;
 * TW_THREAD_IN_HIT: nested in another hit; TW_THREAD_ENDED, TW_THREAD_UNABLE, TW_THREAD_VFORKED, TW_THREAD_JOINING: no hit
 * is possible.
 */
enum tw_thread_state tw_hit_make_ready(struct tw_hit_tls *t, const void *frame);
/*
 * The sessions that lose an event by a call that cannot be recorded.  If calls are only counted, or their length decides, this one
 * is counted instead: for all threads together, by a thread that is not ready.  Uses only what is never freed.
 */
uint64_t tw_hit_losing(const struct tw_bp_generation *generation);
/* Counts one record for each of these sessions as lost inside another hit. Called in a read section. */
void tw_hit_count_nested(struct tw_hit_tls *t, uint64_t sessions);
/* The same on a thread that has left, or may not read the clock: counted for the session that is never destroyed. */
void tw_hit_count_pinned(uint64_t sessions, enum tw_thread_state state);

#endif
