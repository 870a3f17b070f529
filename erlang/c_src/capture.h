/* SPDX-License-Identifier: Apache-2.0 */
/*
 * capture.h - one recording, as the VM's threads see it: the state of the tracer.
 *
 * A capture is a resource of the VM, and the tracer's state is the term that names it.  It lives as long as any tracee has the
 * tracer, any callback runs with it or any process keeps the term; the destructor waits for no one.  It hands the
 * rings to a thread of its own, because giving back their memory takes milliseconds.
 *
 *	open	a recorder's ring set is joined; events are written until
 *	over	a limit is reached, or stop was asked for: then enabled/3 answers `remove`, and trace/5 writes nothing
 *
 * Threads  any thread of the VM makes events: schedulers, dirty schedulers, async and port threads.  Each gets a struct thread at
 *	    its first event, which only it writes.
 */
#ifndef TRACEWHEEL_ERLANG_CAPTURE_H
#define TRACEWHEEL_ERLANG_CAPTURE_H

#include "encode.h"
#include "measure.h"

#include <tracewheel/producer.h>

#include <pthread.h>

#define THREADS_MAX 4096
#define WORDS_MAX   TW_PRODUCER_WORDS_MAX
/* The most bytes that the encoded terms of an event may take. */
#define TERMS_BYTES_MAX ((WORDS_MAX - 4) * 8)
/* The least that is allowed for a term that names a process or a function. */
#define NAME_BYTES 512

/* Why a capture is over.  The first reason stays. */
enum over {
	NOT_OVER,
	OVER_STOPPED,
	OVER_EVENTS,
	OVER_RATE,
	OVER_TIME,
	OVER_RECORDER,
	OVER_OWNER,
	OVER_TRACER,
	OVER_REASONS
};

/* Why an event was lost before it came to a ring.  The capture counts these among events without a ring. */
enum unmade {
	UNMADE_NO_THREAD,     /* no memory for the thread, or more than THREADS_MAX */
	UNMADE_NO_DEFINITION, /* its process, function or name cannot be defined, or not in time */
	UNMADE_UNKNOWN,	      /* a kind of event that this version does not know */
	UNMADE_CAUSES
};

/* Things that a note tells: events lost, by enum unmade, and terms cut. */
enum { NOTED_CUT = UNMADE_CAUSES, NOTED_KINDS };

/*
 * The tracer module and later versions of this library know a capture by these functions alone, which begin it: the library that
 * made it serves it, and is never unloaded.  Members are only ever added at the end.
 */
#define CALLBACKS_VERSION UINT64_C(0x74772d6e69663034) /* "tw-nif04" */
struct callbacks {
	uint64_t version;
	ERL_NIF_TERM (*enabled)(ErlNifEnv *env, void *capture, const ERL_NIF_TERM argv[]);
	ERL_NIF_TERM (*trace)(ErlNifEnv *env, void *capture, const ERL_NIF_TERM argv[]);
	void (*destroy)(void *capture);
	/* tracewheel_nif's functions of these names. */
	ERL_NIF_TERM (*finish)(ErlNifEnv *env, void *capture, const ERL_NIF_TERM argv[]);
	ERL_NIF_TERM (*info)(ErlNifEnv *env, void *capture, const ERL_NIF_TERM argv[]);
	ERL_NIF_TERM (*name)(ErlNifEnv *env, void *capture, const ERL_NIF_TERM argv[]);
	/* The process that serves the capture is gone. */
	void (*abandon)(void *capture);
	ERL_NIF_TERM (*note)(ErlNifEnv *env, void *capture, const ERL_NIF_TERM argv[]); /* as above */
	ERL_NIF_TERM (*sum)(ErlNifEnv *env, void *capture, const ERL_NIF_TERM argv[]);
	ERL_NIF_TERM (*newcomers)(ErlNifEnv *env, void *capture, const ERL_NIF_TERM argv[]);
	ERL_NIF_TERM (*describe)(ErlNifEnv *env, void *capture, const ERL_NIF_TERM argv[]);
};

struct function_entry {
	struct entry entry; /* M, F, arity */
	uint32_t id;
};

struct process_entry {
	struct entry entry; /* the pid or port */
	struct tw_producer_process process;
	struct identity identity;
	int is_port;
	struct process_entry *next; /* among newcomers */
};

struct thread {
	struct tw_producer_thread *producer;
	/* The amount that it may still write before it asks for more. */
	uint64_t allowed;
	struct process_entry *last; /* the process of its last event */
	_Atomic uint64_t cut_terms; /* written by the thread */
	struct identity_cache identities;
	uint64_t words[WORDS_MAX];
};

/* 0: no limit. */
struct limits {
	uint64_t events;
	uint64_t per_second;
	uint64_t time_ns;
	uint64_t term_bytes, term_depth, term_elements; /* of one term */
	uint64_t is_blocking;				/* nothing may be lost: a thread waits as long as it takes */
};

struct capture {
	const struct callbacks *callbacks;
	struct tw_producer *producer;
	_Atomic int over; /* enum over */
	struct limits limits;
	ERL_NIF_TERM own_pid; /* the process that serves the capture is not traced */
	const struct atom_entry *node;
	struct encode_bounds bounds;
	ErlNifTime start_ns;
	_Atomic uint64_t granted;	    /* events that threads have been allowed */
	_Atomic uint64_t granted_in_second; /* of one second since the start: rate.h */
	_Atomic uint64_t unique;	    /* the last integer of a strict time stamp */
	_Atomic uint64_t unmade[UNMADE_CAUSES];
	/* Notes in the capture: of each kind that it happened; how often, and why the trace ended. */
	_Atomic int is_noted[NOTED_KINDS], is_told;
	struct measures measures;
	struct table atoms, functions, processes;
	struct process_entry
		*newcomers; /* defined, and not yet asked for: the last one first.  Under the lock of definitions */
	/* Held by a thread that adds to `functions` or `processes`, or defines a name: so the producer's own lock is always free. */
	pthread_mutex_t *definitions;
	_Atomic(struct thread *) threads[THREADS_MAX];
};

extern const struct callbacks capture_callbacks;

/* Sets *capture, zeroed before; an error of tracewheel/error.h, and then capture_fini() still ends it. */
int capture_init(ErlNifEnv *env, struct capture *capture, const char *ring_set_path, const char *name,
		 ERL_NIF_TERM node);
void capture_fini(struct capture *capture);
void capture_end(struct capture *capture, enum over why);
/* Counts a lost event. */
void capture_count_unmade(struct capture *capture, enum unmade cause);
/* Terms of which a part was cut, of all threads. */
uint64_t capture_cut_terms(struct capture *capture);
/* Notes in the capture, the first time, that something was cut or lost: a VM that is killed tells nothing later.  Waits for no lock. */
void capture_note(struct capture *capture, unsigned what);
/* Notes in the capture how much was cut or lost, and the limit that ended it: once, when no more events are made. */
void capture_tell(struct capture *capture);

/* The calling thread's; NULL: it cannot have one. */
struct thread *capture_thread(struct capture *capture);

/*
 * capture_allow - may this thread write one more event?  Slow path of a test of thread->allowed.
 *
 * Limits are kept by handing out events in lots, smaller ones as a limit comes near: so the total is never more than the limit, and
 * at most a few less.
 */
int capture_allow(struct capture *capture, struct thread *thread);

/* The lock of definitions, for all but events. */
void capture_lock(struct capture *capture);
void capture_unlock(struct capture *capture);

/*
 * capture_process, capture_function, capture_name - what events need defined.
 *
 * A thread that defines something may be preempted then.  Others that define wait for it no longer than 300 us, or, if the capture
 * is blocking, as long as it takes; all else goes on.
 */
/* NULL: it could not be defined. */
struct process_entry *capture_process(ErlNifEnv *env, struct capture *capture, ERL_NIF_TERM tracee);
/* The id of M:F/Arity; 0: it could not be defined. */
uint32_t capture_function(ErlNifEnv *env, struct capture *capture, ERL_NIF_TERM module, ERL_NIF_TERM function,
			  unsigned arity);
/* False: it could not be defined; what the log of definitions has no space for, the producer counts. */
int capture_name(ErlNifEnv *env, struct capture *capture, ERL_NIF_TERM process, ERL_NIF_TERM name);

int capture_describe(ErlNifEnv *env, struct capture *capture, ERL_NIF_TERM process,
		     const struct tw_producer_origin *origin);

/* serve.c: what tracewheel_nif asks of a capture. */
ERL_NIF_TERM serve_finish(ErlNifEnv *env, void *capture, const ERL_NIF_TERM argv[]);
ERL_NIF_TERM serve_info(ErlNifEnv *env, void *capture, const ERL_NIF_TERM argv[]);
ERL_NIF_TERM serve_name(ErlNifEnv *env, void *capture, const ERL_NIF_TERM argv[]);
ERL_NIF_TERM serve_sum(ErlNifEnv *env, void *capture, const ERL_NIF_TERM argv[]);
ERL_NIF_TERM serve_newcomers(ErlNifEnv *env, void *capture, const ERL_NIF_TERM argv[]);
ERL_NIF_TERM serve_describe(ErlNifEnv *env, void *capture, const ERL_NIF_TERM argv[]);
ERL_NIF_TERM serve_note(ErlNifEnv *env, void *capture, const ERL_NIF_TERM argv[]);

/* event.c */
void event_init(ErlNifEnv *env);
ERL_NIF_TERM event_enabled(ErlNifEnv *env, void *capture, const ERL_NIF_TERM argv[]);
ERL_NIF_TERM event_trace(ErlNifEnv *env, void *capture, const ERL_NIF_TERM argv[]);

#endif
