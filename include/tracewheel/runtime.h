/* SPDX-License-Identifier: Apache-2.0 */
/*
 * runtime.h - events that a run-time system reports of its processes: messages, life, links, scheduling, collections.
 *
 * Each call below is one load of one word and a branch that is not taken, as long as no session wants that kind of event
 * of any process.  Check before calls that need a term, so that the term is built only if a session wants the event:
 *
 *	if (tw_process_wants(sender, TW_WANTS_SEND)) {
 *		struct tw_term message = to_term(&arena, m), to = tw_process_term(&arena, receiver);
 *
 *		tw_process_send(sender, message, to);
 *	}
 *
 * docs/embedding.md is the guide, from a minimal to a full embedding.
 *
 * Process	Every call names the process that the event belongs to.  It may be made by the thread that runs the process
 *		or by any other; the events of a process have the order of the calls, as far as the program orders those (by
 *		its own locks, or because they come from one thread): exactly, independent of the processors' clocks.
 * Threads	any, also several at once for one process, up to tw_process_exit(), which must be the last call for it.
 *		Keeps errno.  In a signal handler inside of a hit the event is counted as lost.  No locks and no system
 *		calls, except that spawn, register, link with inheritance, sensitive and exit take a short lock.
 * Terms	borrow until the call returns.  Terms that do not fit a record (8 KiB with its head), or are nested
 *		deeper than 64 levels, are cut, and '...' marks the cut: see tw_term_copy().
 * Source	OTP: trace:process/4, the trace messages of its flags.
 */
#ifndef TRACEWHEEL_RUNTIME_H
#define TRACEWHEEL_RUNTIME_H

#include "tracewheel/function.h"
#include "tracewheel/kinds.h"
#include "tracewheel/process.h"
#include "tracewheel/term.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Kinds of events that sessions can want of processes. */
enum {
	TW_WANTS_SEND = 1,
	TW_WANTS_RECEIVE = 2,
	TW_WANTS_PROCS = 4,
	TW_WANTS_RUNNING = 8,
	TW_WANTS_EXITING = 16,
	TW_WANTS_GARBAGE_COLLECTION = 32,
	TW_WANTS_LINKS = 64,	/* links, for flags inherited through them */
	TW_WANTS_MAILBOX = 128, /* lengths of mailboxes */
	TW_WANTS_PORTS = 256,	/* life and links of ports: port.h */
	TW_WANTS_RUNNING_PORTS = 512,
	/* For system monitors, about all processes: */
	TW_WANTS_PORT_SCHEDULES = 1 << 13,
	TW_WANTS_COLLECTIONS = 1 << 14, /* collections and their sizes */
	TW_WANTS_BUSY = 1 << 15,	/* processes that wait for a busy port */
	TW_WANTS_SEQ = 1 << 16		/* no session's: a process has a token of sequential tracing: seq.h */
};

/* The OR of the kinds wanted of all processes.  Written by the library only. */
extern uint32_t tw_runtime_wanted;

/* Does any session want one of these kinds, of any process?  One load. */
static inline bool tw_runtime_wants(uint32_t kinds)
{
	return __builtin_expect((__atomic_load_n(&tw_runtime_wanted, __ATOMIC_RELAXED) & kinds) != 0, 0);
}

bool tw_process_wants_any(const struct tw_process *process, uint32_t kinds);

/* Does any session want one of these kinds of this process?  NULL: no. */
static inline bool tw_process_wants(const struct tw_process *process, uint32_t kinds)
{
	return tw_runtime_wants(kinds) && tw_process_wants_any(process, kinds);
}

/* The process that the calling thread runs or is; NULL: none.  Lends. */
struct tw_process *tw_process_current(void);

/* The pid as a term; none for NULL or where the arena is full. */
struct tw_term tw_process_term(struct tw_arena *arena, const struct tw_process *process);

/* ---- life ---- */

/* Zeroed fields mean none. */
struct tw_spawn {
	const char *name;	   /* borrows: shown beside the pid, cut at 31 bytes */
	struct tw_process *parent; /* the spawning process; NULL: none, and then no events of a parent */
	struct tw_term entry;	   /* {M,F,Args}: the initial call; none: by `function` */
	bool is_linked;		   /* as by spawn_link */
	const struct tw_declared_function *function; /* initial function; NULL: {undefined,undefined,[]} */
	const struct tw_term *arguments;	     /* borrows: Args of `function` */
	size_t argument_count;
};

/*
 * tw_process_spawn - spawn a process.
 *
 * Events: spawn (and link) of the parent, then spawned (and getting_linked) as the child's first.  In every session
 * the child has the flags of new processes, and those that it inherits from its parent by set_on_spawn,
 * set_on_first_spawn and, when linked, set_on_link and set_on_first_link.
 *
 * If the parent has a token of sequential tracing (seq.h), the child gets it; the thread that runs the parent must then make
 * this call.
 *
 * @options	borrows.
 * @out		gives; tw_process_exit() takes.
 * Errors: TW_EBADARG (an entry that is not a tuple of three), TW_ENOMEM, TW_EDEADLK in a hit.
 * Source: flags procs, set_on_spawn, set_on_first_spawn, set_on_link, set_on_first_link.
 */
int tw_process_spawn(const struct tw_spawn *options, struct tw_process **out);

/*
 * tw_process_exiting - the process begins to exit.  Events: exit, then unregister if it is registered.
 *
 * From now on it is scheduled in and out as an exiting process (flag exiting, not running).  The processes linked to
 * it report with tw_process_getting_unlinked().  tw_process_exit() (process.h) ends the process with event
 * out_exited; without this call it makes the events of an exit with reason normal.
 *
 * @reason	none: normal.
 */
void tw_process_exiting(struct tw_process *process, struct tw_term reason);

/*
 * tw_process_register - the process gets a name, replacing any earlier one; the event belongs to this process, not to
 * the caller.
 *
 * @name	an atom.  One name names one process: a previous owner must be unregistered first.
 *
 * Match specifications can name the process by it from now on.
 * Errors: TW_EBADARG (not an atom, or another process has the name), TW_EDEADLK in a hit.
 */
int tw_process_register(struct tw_process *process, struct tw_term name);
/* Removes the name.  Errors: TW_EBADARG (it has none), TW_EDEADLK in a hit. */
int tw_process_unregister(struct tw_process *process);

/*
 * A sensitive process makes no events at all.  Its flags are kept.  Source: process_flag(sensitive, _).
 * Errors: TW_EDEADLK in a hit.
 */
int tw_process_sensitive(struct tw_process *process, bool is_sensitive);

/* The out-of-line halves; call those below. */
void tw_runtime_link(struct tw_process *process, struct tw_process *other);
void tw_runtime_linked(struct tw_process *process, tw_pid other, unsigned what);
enum {
	TW_LINK = TW_CAPTURE_LINK,
	TW_UNLINK = TW_CAPTURE_UNLINK,
	TW_GETTING_LINKED = TW_CAPTURE_GETTING_LINKED,
	TW_GETTING_UNLINKED = TW_CAPTURE_GETTING_UNLINKED
};

/* The process links to another one, which inherits its flags by set_on_link and set_on_first_link. */
static inline void tw_process_link(struct tw_process *process, struct tw_process *other)
{
	if (tw_runtime_wants(TW_WANTS_PROCS | TW_WANTS_LINKS))
		tw_runtime_link(process, other);
}

/*
 * The process links to one that no longer exists, or to itself: no inheritance.  OTP: the event is made all the same,
 * before the effects of noproc.
 */
static inline void tw_process_link_to_nobody(struct tw_process *process, tw_pid other)
{
	if (tw_runtime_wants(TW_WANTS_PROCS))
		tw_runtime_linked(process, other, TW_LINK);
}

/* The process removes the link. */
static inline void tw_process_unlink(struct tw_process *process, tw_pid other)
{
	if (tw_runtime_wants(TW_WANTS_PROCS))
		tw_runtime_linked(process, other, TW_UNLINK);
}

/* The other end of a link: `from` has linked to this process. */
static inline void tw_process_getting_linked(struct tw_process *process, tw_pid from)
{
	if (tw_runtime_wants(TW_WANTS_PROCS))
		tw_runtime_linked(process, from, TW_GETTING_LINKED);
}

/* The other end of a link: `from` has removed the link, or has exited. */
static inline void tw_process_getting_unlinked(struct tw_process *process, tw_pid from)
{
	if (tw_runtime_wants(TW_WANTS_PROCS))
		tw_runtime_linked(process, from, TW_GETTING_UNLINKED);
}

/* ---- messages ---- */

void tw_runtime_send(struct tw_process *sender, struct tw_term message, struct tw_term to, bool is_to_nobody);
void tw_runtime_receive(struct tw_process *receiver, struct tw_term message, struct tw_term sender);
void tw_runtime_timeout(struct tw_process *receiver);

/*
 * tw_process_send - the process sends a message.
 *
 * @to	the receiver as the program wrote it: a pid, a registered name, {Name,Node}.
 *
 * A message to an unregistered name is a send as well.  Call this before the message can be received.
 */
static inline void tw_process_send(struct tw_process *sender, struct tw_term message, struct tw_term to)
{
	if (tw_runtime_wants(TW_WANTS_SEND))
		tw_runtime_send(sender, message, to, false);
}

/* A send to a pid that names no process (any more): send_to_non_existing_process. */
static inline void tw_process_send_to_nobody(struct tw_process *sender, struct tw_term message, struct tw_term to)
{
	if (tw_runtime_wants(TW_WANTS_SEND))
		tw_runtime_send(sender, message, to, true);
}

/*
 * tw_process_receive - a message enters the process' mailbox.  Called by the thread that puts it there, before it can
 * be taken out, and under the mailbox's lock if it has one: then the events have the order of the mailbox.
 *
 * @message	a trapped exit signal is the message {'EXIT',From,Reason}.
 * @sender	a pid or port; none: not known (undefined).  The node of the identifier, if any, is the Node of recv patterns.
 */
static inline void tw_process_receive(struct tw_process *receiver, struct tw_term message, struct tw_term sender)
{
	if (tw_runtime_wants(TW_WANTS_RECEIVE))
		tw_runtime_receive(receiver, message, sender);
}

/* Waiting for a message timed out. */
static inline void tw_process_receive_timeout(struct tw_process *receiver)
{
	if (tw_runtime_wants(TW_WANTS_RECEIVE))
		tw_runtime_timeout(receiver);
}

/*
 * tw_process_mailbox - the number of waiting messages, called when it has changed.
 *
 * @length	includes messages that the process has not examined yet.
 *
 * Event: long_message_queue true when the length reaches the Enable of a session's monitor, false when it falls to its
 * Disable; not wanted while no monitor is set.  Either the process itself calls this, when it fetches messages and when it
 * takes one out (Erlang's way); or every thread that changes the mailbox calls it, under the mailbox's lock: then the events
 * have the order of the lengths.  Not after tw_process_exiting().  Source: trace:system/3, long_message_queue.
 */
void tw_runtime_mailbox(struct tw_process *process, uint64_t length);
static inline void tw_process_mailbox(struct tw_process *process, uint64_t length)
{
	if (tw_runtime_wants(TW_WANTS_MAILBOX))
		tw_runtime_mailbox(process, length);
}

/* ---- scheduling: tw_process_in() and tw_process_out() of process.h, with the function ---- */

/*
 * tw_process_in_at - as tw_process_in(), with the function where the process continues.  Event: in or in_exiting.
 *
 * @function	declared; NULL: not known, the event has 0.  tw_process_in() is this with NULL.
 */
void tw_process_in_at(struct tw_process *process, const struct tw_declared_function *function);
/* As tw_process_out(), with the function where it stopped.  Event: out or out_exiting; none if no process is in. */
void tw_process_out_at(const struct tw_declared_function *function);

/* ---- busy ports ---- */

void tw_runtime_busy(struct tw_process *process, struct tw_term port, bool is_dist);

/*
 * tw_process_busy_port - the process begins to wait because it sends to a port that takes no more at present.
 *
 * @port	a port, as a term; none: undefined.
 *
 * Event: busy_port of every session that monitors it.  Source: trace:system/3, busy_port.
 */
static inline void tw_process_busy_port(struct tw_process *process, struct tw_term port)
{
	if (tw_runtime_wants(TW_WANTS_BUSY))
		tw_runtime_busy(process, port, false);
}

/* The same of a port that leads to another node, for a message to a process there.  Event: busy_dist_port. */
static inline void tw_process_busy_dist_port(struct tw_process *process, struct tw_term port)
{
	if (tw_runtime_wants(TW_WANTS_BUSY))
		tw_runtime_busy(process, port, true);
}

/* ---- garbage collections ---- */

/* In words; the last, wordsize, at a start the words needed, at an end the words reclaimed. */
struct tw_gc_sizes {
#define TW_GC_ROW(NAME, field) uint64_t field;
	TW_GC_SIZES(TW_GC_ROW)
#undef TW_GC_ROW
};

enum tw_gc_event {
	TW_GC_MINOR_START = TW_CAPTURE_GC_MINOR_START,
	TW_GC_MINOR_END = TW_CAPTURE_GC_MINOR_END,
	TW_GC_MAJOR_START = TW_CAPTURE_GC_MAJOR_START,
	TW_GC_MAJOR_END = TW_CAPTURE_GC_MAJOR_END,
	TW_GC_MAX_HEAP_SIZE = TW_CAPTURE_GC_MAX_HEAP_SIZE /* the limit was reached: the process is killed */
};

void tw_runtime_gc(struct tw_process *process, enum tw_gc_event event, const struct tw_gc_sizes *sizes);

/*
 * tw_process_gc - a collection of this process begins or ends, or the process is killed by its limit in one.
 *
 * @sizes	borrows.
 *
 * System monitors measure the time from the start to the end (long_gc), and the blocks at the end (large_heap).  A collection
 * in which TW_GC_MAX_HEAP_SIZE is reported makes neither event.  A run-time that needs time to determine the sizes checks
 * first: tw_runtime_wants(TW_WANTS_GARBAGE_COLLECTION | TW_WANTS_COLLECTIONS).
 */
static inline void tw_process_gc(struct tw_process *process, enum tw_gc_event event, const struct tw_gc_sizes *sizes)
{
	if (tw_runtime_wants(TW_WANTS_GARBAGE_COLLECTION | TW_WANTS_COLLECTIONS))
		tw_runtime_gc(process, event, sizes);
}

/* ---- time ---- */

/*
 * The clock of events: nanoseconds of CLOCK_MONOTONIC.  An event made between two calls has a stamp between their
 * results, within the error of converting ticks that docs/embedding.md gives.  Signal handlers: yes.
 */
int64_t tw_monotonic_time_ns(void);

/*
 * The next of the integers that strict_monotonic stamps carry: greater than all given before, in any thread.
 * Source: erlang:unique_integer([monotonic]).  Signal handlers: yes.
 */
int64_t tw_unique_integer_monotonic(void);

#ifdef __cplusplus
}
#endif

#endif
