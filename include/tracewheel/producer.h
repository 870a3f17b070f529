/* SPDX-License-Identifier: Apache-2.0 */
/*
 * producer.h - write events into the rings of a recorder in another process.
 *
 * For run-time systems that trace by their own means, with sessions, flags and match specifications of their own, and
 * want rings and captures for the events: the tracer in the Erlang VM is one (erlang/).  A run-time without tracing of its
 * own declares functions and processes instead: function.h, process.h, runtime.h.
 *
 * A recorder (consumer.h, or `tracewheel record --erlang`) creates a ring set.  This process joins it as one more image.  Each
 * thread that makes events has a ring of its own; threads share only the run counter of each process.
 *
 * Events	of a process have the order of their writes, as far as the caller orders those (by its own locks, or because
 *		they come from one thread): exactly, independent of the processors' clocks.
 * Losses	are counted by cause in the ring set, and the capture shows them where they happened.
 * Threads	tw_producer_write() and its thread argument: the thread that joined; all else any, except tw_producer_close().
 *		Not in signal handlers, not in a forked child.
 * Cost		a call event without words: about 20 ns.
 */
#ifndef TRACEWHEEL_PRODUCER_H
#define TRACEWHEEL_PRODUCER_H

#include "tracewheel/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct tw_producer;
struct tw_producer_thread;

/*
 * tw_producer_open - join a ring set.
 *
 * @ring_set_path	as tw_recorder_ring_set_path() gives it; borrows.
 * @session_name	shown by views; borrows.
 * @out			gives: tw_producer_close() takes.
 *
 * Errors: TW_ENOENT, TW_EPERM, TW_EFORMAT, TW_EVERSION, TW_ENOMEM, TW_ENOSPC, TW_EIO, TW_ELIMIT; TW_ENOTSUP in another pid
 * namespace.
 */
int tw_producer_open(const char *ring_set_path, const char *session_name, struct tw_producer **out);

/* Ends all rings and leaves the set; the recorder drains what is left.  No other call may run or follow; NULL is allowed. */
void tw_producer_close(struct tw_producer *producer);

/* True once the recorder wants no more events, or is gone.  Cost: two loads. */
bool tw_producer_is_closed(const struct tw_producer *producer);

/* Names borrow: UTF-8 of the given length, cut at 1020 bytes. */
struct tw_producer_name {
	const char *text;
	size_t bytes;
};

/*
 * tw_producer_define_module, tw_producer_define_function - give a module an id, and a function of it one for its events.
 *
 * @id		gives the id; defining the same name twice gives two.
 * Errors: TW_ENOSPC: the log of definitions is full.
 */
int tw_producer_define_module(struct tw_producer *producer, struct tw_producer_name name, uint32_t *id);
int tw_producer_define_function(struct tw_producer *producer, uint32_t module, struct tw_producer_name name,
				unsigned arity, uint32_t *id);

/*
 * tw_producer_sum_calls - the calls of a function that made no events, as the run-time has counted them: views show these beside the events.
 *
 * @function	an id; once for each.
 * @calls	how many; 1 at least.
 * @total_ns	what all of them together took; TW_PRODUCER_NO_TIME: not known.
 *
 * Threads: one at a time.
 * Errors: TW_ENOSPC, TW_ENOMEM; TW_ELIMIT: there are too many functions.
 */
#define TW_PRODUCER_NO_TIME UINT64_MAX
int tw_producer_sum_calls(struct tw_producer *producer, uint32_t function, uint64_t calls, uint64_t total_ns);

/* A process or port, in the caller's memory; must stay in place until tw_producer_close(). */
struct tw_producer_process {
	uint32_t id;	  /* 0: not defined */
	uint64_t run_seq; /* written by the library only */
};

/*
 * tw_producer_define_process - give a process an id.
 *
 * @number, @serial	as in the pid <0.Number.Serial>, or port #Port<0.Number>.
 * @name		shown beside the pid; may be empty.
 * @out			initialised.
 * Errors: TW_ENOSPC.
 */
int tw_producer_define_process(struct tw_producer *producer, bool is_port, uint64_t number, uint32_t serial,
			       struct tw_producer_name name, struct tw_producer_process *out);

/* Gives the process a later name; views show the last one. */
int tw_producer_name_process(struct tw_producer *producer, const struct tw_producer_process *process, bool is_port,
			     uint64_t number, uint32_t serial, struct tw_producer_name name);

/* The kind of a process, by which views group processes; each may be empty, and is cut at 255 bytes. */
struct tw_producer_origin {
	struct tw_producer_name initial_call; /* the function with which it began */
	struct tw_producer_name behaviour;
	struct tw_producer_name application;
	struct tw_producer_name label;
};

/* Tells the origin of a process; a later one takes its place. */
int tw_producer_describe_process(struct tw_producer *producer, const struct tw_producer_process *process, bool is_port,
				 uint64_t number, uint32_t serial, const struct tw_producer_origin *origin);

/* Names the Erlang node that this process is.  Views of several nodes match the messages between them by these names. */
int tw_producer_name_node(struct tw_producer *producer, struct tw_producer_name name);

/* A note for people, shown by `tracewheel info`; borrows. */
int tw_producer_note(struct tw_producer *producer, struct tw_producer_name text);

/*
 * tw_producer_join - let the calling thread write events.
 *
 * @scheduler_id	of the thread's events.
 *
 * Returns NULL without memory.  Lends until tw_producer_leave() or tw_producer_close().
 */
struct tw_producer_thread *tw_producer_join(struct tw_producer *producer, uint32_t scheduler_id);
/* The thread writes no more events. */
void tw_producer_leave(struct tw_producer_thread *thread);

/* The flags of an event, as TW_CAPTURE_FLAG_* of capture.h. */
enum {
	TW_PRODUCER_STAMP_MONOTONIC = 1,
	TW_PRODUCER_STAMP_STRICT = 2, /* words[0] is the unique integer */
	TW_PRODUCER_STAMP_WALL = 3,   /* with TW_PRODUCER_CPU_TIME in the kind: words[0] is CPU time in ns */
	TW_PRODUCER_SCHEDULER_ID = 8,
	TW_PRODUCER_ARITY = 16,
	TW_PRODUCER_EXTRA = 32,
	TW_PRODUCER_TERMS = 64
};

/* A bit added to the kind. */
#define TW_PRODUCER_CPU_TIME 128

/* The largest number of words of an event. */
#define TW_PRODUCER_WORDS_MAX 1000

struct tw_producer_event {
	uint8_t kind;	 /* TW_CAPTURE_* of capture.h: a kind that is an event of a process */
	uint8_t flags;	 /* TW_PRODUCER_* */
	uint16_t count;	 /* of words; at most TW_PRODUCER_WORDS_MAX */
	uint32_t id;	 /* of the function; 0: none */
	uint64_t *words; /* borrows; docs/format.md describes payloads.  NULL: no words */
};

enum tw_producer_outcome { TW_PRODUCER_WRITTEN, TW_PRODUCER_LOST };

/*
 * tw_producer_write - write an event of the process, stamped now.
 *
 * @process	shares: other threads may write its events, too.
 *
 * A lost event is counted.  Waits only where the recorder's policy is to block, and never longer than the recorder makes
 * progress.
 */
enum tw_producer_outcome tw_producer_write(struct tw_producer_thread *thread, struct tw_producer_process *process,
					   const struct tw_producer_event *event);

/* Counts an event that could not be written for lack of a definition, a process or a thread.  Threads: any. */
void tw_producer_count_lost(struct tw_producer *producer);

/* The counts of the calling process, over all threads. */
struct tw_producer_counts {
	uint64_t written;
	uint64_t lost;
	uint64_t rings;
	uint64_t definitions_refused;
};
void tw_producer_count(struct tw_producer *producer, struct tw_producer_counts *out);

#ifdef __cplusplus
}
#endif

#endif
