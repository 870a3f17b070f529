/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run.h - inside the run-time: the structures of actors, mailboxes and schedulers, and which thread may touch them.
 *
 *	sender --signal_push()--> mailbox.outer --take_signals()--> mailbox.inner --receive--> its function
 *	any thread, under the	  (the actor, under the lock)	   (the actor alone)
 *	mailbox's lock
 *
 * Everything that reaches an actor from elsewhere is a signal in its mailbox: messages, links, exits, monitors,
 * timeouts.  Thus signals from one sender arrive in the order in which they were sent.
 *
 * An actor is in one of three states: in one run queue, on one scheduler, or waiting (mailbox.is_waiting).  A sender
 * that pushes a signal and finds it waiting clears that flag, under the lock, and queues it.
 *
 * Slots are never freed while the run-time lives: a pid carries its slot's number, and is alive while slot->pid is the
 * same.  Senders compare it under the mailbox's lock, so none reaches an actor that has ended.
 */
#ifndef ACTORS_RUN_H
#define ACTORS_RUN_H

#include "actors.h"
#include "sync.h"
#include "fiber.h"
#include "heap.h"

#include <pthread.h>
#include <setjmp.h>

#define SCHEDULERS_MAX 64
#define SLOTS_BITS     24 /* of a pid's number */
#define CHUNK_SLOTS    1024
#define CHUNKS_MAX     ((1 << SLOTS_BITS) / CHUNK_SLOTS)

struct tw_process;

enum signal_kind {
	SIGNAL_MESSAGE,
	SIGNAL_LINK,
	SIGNAL_UNLINK,
	SIGNAL_EXIT,	  /* exit/2 */
	SIGNAL_LINK_EXIT, /* from a linked actor */
	SIGNAL_MONITOR,
	SIGNAL_DEMONITOR,
	SIGNAL_DOWN,
	SIGNAL_TIMEOUT
};

struct signal {
	struct signal *next;
	enum signal_kind kind;
	struct value from;
	struct value value; /* the message or reason; a value that is not an immediate lies in words */
	uint64_t number;    /* of a monitor or timeout */
	struct traced_signal traced;
	struct fragment words;
};

struct queue {
	struct signal *first, **last;
};

struct mailbox {
	/* Written under the lock, by any thread. */
	_Alignas(64) struct lock lock;
	bool is_waiting;
	/* Read also without the lock, as a hint. */
	_Atomic(bool) is_closed;
	struct queue outer;
	/* Read also without the lock, as a hint: 0 or not. */
	_Atomic(uint64_t) pushed;
	/* The actor's own. */
	_Alignas(64) struct queue inner;
	uint64_t taken;
	uint64_t inner_count; /* of messages */
};

/* A link or monitor. */
struct relation {
	struct relation *next;
	struct value pid;
	uint64_t number;
	bool is_link;
};

/* A call that has not returned. */
struct call_frame {
	struct call_frame *caller;
	struct function *function;
	struct value arguments[ARITY_MAX];
	struct traced_frame traced;
};

struct catcher {
	struct catcher *outer;
	struct call_frame *frame;
	struct kept *kept;
	struct exception *caught;
	jmp_buf point;
};

/* Why a fiber returns to its scheduler. */
enum leave { LEAVE_YIELD, LEAVE_WAIT, LEAVE_END };

struct actor {
	/* The pid's word, 0: the slot is free.  Written under the mailbox's lock. */
	_Atomic(uint64_t) pid;
	struct mailbox mailbox;

	/* The actor's own from here on: of the thread that runs it. */
	struct runtime *runtime;
	struct scheduler *scheduler;
	struct tw_process *process;
	struct heap heap;
	struct fiber fiber;
	struct actor *next; /* in a run queue, or among the free slots */
	uint32_t slot;
	int reductions;
	enum leave leave;
	bool is_trapping, is_sensitive, is_outside, is_ending;
	struct function *entry;
	struct value arguments[ARITY_MAX];
	struct function *tail_function;
	enum call_kind tail_kind;
	struct value tail_arguments[ARITY_MAX];
	struct call_frame *frame;
	struct catcher *catcher;
	struct kept *kept;
	struct relation *relations;
	struct signal *unheard; /* arrived after the one that ended it */
	struct value name;
	uint64_t timeout; /* the number of the current one */
	bool has_timed_out;
	pthread_cond_t called; /* waited for by an outside, with outside_lock */
	pthread_mutex_t outside_lock;
};

struct run_queue {
	_Alignas(64) struct lock lock;
	struct actor *first, **last;
	atomic_uint count;
};

struct scheduler {
	struct run_queue queue;
	struct runtime *runtime;
	unsigned index;
	pthread_t thread;
	struct fiber fiber;
	struct actor *running;
	_Atomic(uint64_t) switches, stolen, sleeps;
	/* Used signals that may be reused, by this thread alone. */
	struct signal *free_signals;
	unsigned free_count;
};

struct timers;
struct poller;

struct runtime {
	struct runtime_options options;
	struct scheduler *schedulers[SCHEDULERS_MAX];

	pthread_mutex_t idle_lock; /* for all fields of this group */
	pthread_cond_t idle;
	atomic_uint sleepers;
	unsigned calls; /* wake-ups of sleepers that are not yet noticed */
	bool is_stopping;
	atomic_uint next_scheduler;

	unsigned started; /* threads */

	pthread_mutex_t slots_lock; /* for all fields of this group */
	_Atomic(struct actor *) chunks[CHUNKS_MAX];
	uint32_t slot_count;
	struct actor *free_slots;
	uint64_t alive;
	pthread_cond_t all_ended;
	bool is_closed; /* no more spawns */
	uint64_t spawned, ended, collections;

	pthread_mutex_t names_lock;
	struct name {
		struct value name, pid;
	} * names;
	size_t name_count, name_capacity;

	_Atomic(uint64_t) next_number; /* for pids without tracing, references, ports */
	struct poller *poller;
};

/* ---- mailbox.c ---- */

void mailbox_init(struct mailbox *mailbox);
/* Frees what is in it. */
void mailbox_fini(struct mailbox *mailbox);
/* A signal with a copy of the value; never NULL. */
struct signal *signal_make(struct scheduler *scheduler, enum signal_kind kind, struct value from, struct value value);
void signal_free(struct scheduler *scheduler, struct signal *signal);
/* Takes the signal.  False: the actor does not exist (any more). */
bool signal_push(struct runtime *runtime, struct scheduler *by, struct value to, struct signal *signal);
/* The signals since the last call, in their order. */
struct signal *take_outer(struct mailbox *mailbox);
/* Sets the flag that it waits; false: a signal came. */
bool mailbox_wait(struct mailbox *mailbox);
void queue_push(struct queue *queue, struct signal *signal);

static inline bool mailbox_has_news(struct mailbox *mailbox)
{
	/* RELAXED actors.news: a hint; a waiter checks again under the lock. */
	return load_relaxed(&mailbox->pushed) != mailbox->taken;
}

/* ---- scheduler.c ---- */

/* Queues an actor that can run: on the scheduler whose thread calls, or (NULL) on any. */
void make_runnable(struct runtime *runtime, struct scheduler *by, struct actor *actor);
/* Returns to the scheduler, until the actor is scheduled in again. */
void leave(struct actor *self, enum leave why);
int schedulers_start(struct runtime *runtime);
void schedulers_stop(struct runtime *runtime);

/* ---- actor.c ---- */

/* The slot of a pid, whose actor may have ended; NULL: never existed. */
struct actor *slot_of(struct runtime *runtime, struct value pid);
/* After its last switch: frees the slot. */
void actor_bury(struct actor *actor);
/* Ends the calling actor: closes its mailbox, and notifies linked and watching actors. */
_Noreturn void actor_end(struct actor *self, struct value reason);

/* ---- signals.c ---- */

/* Acts on all signals; ends the actor if one says so. */
void take_signals(struct actor *self);
/* Closes the mailbox, and notifies linked and watching actors. */
void say_goodbye(struct actor *self, struct value reason);
void add_relation(struct actor *self, struct value pid, uint64_t number, bool is_link);
/* Sends a signal about the actor; false: no such actor. */
bool signal_to(struct actor *self, struct value to, enum signal_kind kind, struct value value, uint64_t number);

/* ---- names.c ---- */

void names_forget(struct actor *self);
struct value name_find(struct runtime *runtime, struct value name);

/* ---- collect.c ---- */

/* The variables in which collections begin. */
size_t roots_of(struct actor *self);
/* At a safe point. */
void collect(struct actor *self, bool is_major);

/* ---- poller.c, timer.c, port.c: one thread that waits for sockets and for time ---- */

int poller_start(struct runtime *runtime);
void poller_stop(struct runtime *runtime);
/* Requests a timeout signal after a time; returns its number. */
uint64_t timer_start(struct runtime *runtime, int64_t ms, struct value to, struct signal *signal);
bool timer_cancel(struct runtime *runtime, uint64_t number);
void ports_forget(struct actor *self);

static inline uint64_t next_number(struct runtime *runtime)
{
	/* RELAXED actors.number: it only has to be unique. */
	return add_relaxed(&runtime->next_number, 1) + 1;
}

/* A counter that its own thread writes and others read. */
static inline void count_up(_Atomic(uint64_t) *figure, uint64_t by)
{
	/* RELAXED actors.figures: figures of a moment. */
	store_relaxed(figure, load_relaxed(figure) + by);
}

static inline struct value pid_of(const struct actor *actor)
{
	/* RELAXED actors.own_pid: its own, which changes only before it runs and after. */
	return (struct value){load_relaxed((_Atomic(uint64_t) *)&actor->pid)};
}

#endif
