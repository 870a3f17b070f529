/* SPDX-License-Identifier: Apache-2.0 */
/*
 * runtime.h - what a run-time system tells of its processes: messages, life and death, links, scheduling, collections.
 *
 * Each call below is one load of one word and a branch that is not taken, as long as no session wants that kind of event
 * of anybody.  Calls that need a term are asked for first, so that the term is built only for somebody:
 *
 *	if (tw_process_wants(sender, TW_WANTS_SEND)) {
 *		struct tw_term message = to_term(&arena, m), to = tw_process_term(&arena, receiver);
 *
 *		tw_process_send(sender, message, to);
 *	}
 *
 * docs/embedding.md is the guide, from a dozen lines to everything.
 *
 * Whose	Every call names the process that the event belongs to.  It may be made by the thread that runs the process
 *		or by any other; the order of a process' events is that of the calls, as far as the program orders those
 *		(by its own locks, or because they come from one thread): exactly, whatever the clocks of the processors say.
 * Threads	any, also several at once for one process, up to tw_process_exit(), which must be the last call for it.
 *		Keeps errno.  In a signal handler inside of a hit the event is counted as lost.  Neither locks nor calls
 *		the system, but: spawn, register, link with inheritance, sensitive and exit take a short lock.
 * Terms	borrow until the call returns.  What does not fit a record (8 KiB with its head) is cut, and shows where:
 *		see tw_term_copy().  Deeper than 64 levels is cut, too.
 * Source	OTP: trace:process/4, the trace messages of its flags.
 */
#ifndef TRACEWHEEL_RUNTIME_H
#define TRACEWHEEL_RUNTIME_H

#include "tracewheel/function.h"
#include "tracewheel/process.h"
#include "tracewheel/term.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Kinds of events, and what some session wants of some process. */
enum {
	TW_WANTS_SEND = 1,
	TW_WANTS_RECEIVE = 2,
	TW_WANTS_PROCS = 4,
	TW_WANTS_RUNNING = 8,
	TW_WANTS_EXITING = 16,
	TW_WANTS_GARBAGE_COLLECTION = 32,
	TW_WANTS_LINKS = 64,	/* links, for the flags that are inherited by them */
	TW_WANTS_MAILBOX = 128	/* lengths of mailboxes */
};

/* The OR of what is wanted of anybody.  The library's to write. */
extern uint32_t tw_runtime_wanted;

/* Does anybody want one of these kinds, of any process?  One load. */
static inline bool tw_runtime_wants(uint32_t kinds)
{
	return __builtin_expect((__atomic_load_n(&tw_runtime_wanted, __ATOMIC_RELAXED) & kinds) != 0, 0);
}

bool tw_process_wants_any(const struct tw_process *process, uint32_t kinds);

/* Does anybody want one of these kinds of this process?  NULL: no. */
static inline bool tw_process_wants(const struct tw_process *process, uint32_t kinds)
{
	return tw_runtime_wants(kinds) && tw_process_wants_any(process, kinds);
}

/* Whom the calling thread runs, threads that are processes themselves included; NULL: nobody.  Lends. */
struct tw_process *tw_process_current(void);

/* Its pid as a term; none for NULL or where the arena is full. */
struct tw_term tw_process_term(struct tw_arena *arena, const struct tw_process *process);

/* ---- life ---- */

/* Zeroed fields mean: nothing. */
struct tw_spawn {
	const char *name;	   /* borrows: shown beside the pid, cut at 31 bytes */
	struct tw_process *parent; /* who spawns; NULL: nobody, and then there are no events of a parent */
	struct tw_term entry;	   /* {M,F,Args}: what the process begins with; none: what `function` says */
	bool is_linked;		   /* as by spawn_link */
	const struct tw_declared_function *function; /* it begins with; NULL: {undefined,undefined,[]} */
	const struct tw_term *arguments;	     /* borrows: Args of `function` */
	size_t argument_count;
};

/*
 * tw_process_spawn - a process comes to be.
 *
 * Events: spawn (and link) of the parent, then spawned (and getting_linked) as the child's first.  In every session
 * the child has the flags of new processes, and those that it inherits from its parent by set_on_spawn,
 * set_on_first_spawn and, when linked, set_on_link and set_on_first_link.
 *
 * @options	borrows.
 * @out		gives; tw_process_exit() takes.
 * Errors: TW_EBADARG (an entry that is no tuple of three), TW_ENOMEM, TW_EDEADLK in a hit.
 * Source: flags procs, set_on_spawn, set_on_first_spawn, set_on_link, set_on_first_link.
 */
int tw_process_spawn(const struct tw_spawn *options, struct tw_process **out);

/*
 * tw_process_exiting - the process begins to end: exit, then unregister if it is registered.
 *
 * From here on it is scheduled in and out as an exiting process (flag exiting, not running).  Its links' ends tell
 * theirs by tw_process_getting_unlinked().  tw_process_exit() (process.h) is the end: out_exited, and the process is
 * gone; without this call it makes the events of an exit with reason normal.
 *
 * @reason	none: normal.
 */
void tw_process_exiting(struct tw_process *process, struct tw_term reason);

/*
 * tw_process_register - the process gets a name, in place of any it had; the event belongs to it, whoever calls.
 *
 * @name	an atom.  One name names one process: who had it before must be unregistered first.
 *
 * The library knows names from here on: match specifications name processes by them.
 * Errors: TW_EBADARG (no atom, or another process has the name), TW_EDEADLK in a hit.
 */
int tw_process_register(struct tw_process *process, struct tw_term name);
/* The name is gone.  Errors: TW_EBADARG (it has none), TW_EDEADLK in a hit. */
int tw_process_unregister(struct tw_process *process);

/*
 * While it is set the process makes no events at all.  Its flags are kept.  Source: process_flag(sensitive, _).
 * Errors: TW_EDEADLK in a hit.
 */
int tw_process_sensitive(struct tw_process *process, bool is_sensitive);

/* The out-of-line halves; call those below. */
void tw_runtime_link(struct tw_process *process, struct tw_process *other);
void tw_runtime_linked(struct tw_process *process, tw_pid other, unsigned what);
enum { TW_LINK = 24, TW_UNLINK = 25, TW_GETTING_LINKED = 26, TW_GETTING_UNLINKED = 27 };

/* The process links to another, which inherits its flags by set_on_link and set_on_first_link. */
static inline void tw_process_link(struct tw_process *process, struct tw_process *other)
{
	if (tw_runtime_wants(TW_WANTS_PROCS | TW_WANTS_LINKS))
		tw_runtime_link(process, other);
}

/*
 * It links to a process that exists no more, or to itself: nobody inherits.  OTP: the event is made all the same, and in
 * front of what noproc does.
 */
static inline void tw_process_link_to_nobody(struct tw_process *process, tw_pid other)
{
	if (tw_runtime_wants(TW_WANTS_PROCS))
		tw_runtime_linked(process, other, TW_LINK);
}

/* It takes the link away. */
static inline void tw_process_unlink(struct tw_process *process, tw_pid other)
{
	if (tw_runtime_wants(TW_WANTS_PROCS))
		tw_runtime_linked(process, other, TW_UNLINK);
}

/* The other end of a link that `from` made, */
static inline void tw_process_getting_linked(struct tw_process *process, tw_pid from)
{
	if (tw_runtime_wants(TW_WANTS_PROCS))
		tw_runtime_linked(process, from, TW_GETTING_LINKED);
}

/* or took away, or of a process that exited. */
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
 * @to	as the program wrote it: a pid, a registered name, {Name,Node}.
 *
 * A message to an unregistered name is a send as well.  Tell it before the message can be received.
 */
static inline void tw_process_send(struct tw_process *sender, struct tw_term message, struct tw_term to)
{
	if (tw_runtime_wants(TW_WANTS_SEND))
		tw_runtime_send(sender, message, to, false);
}

/* The pid that it sends to names no process (any more): send_to_non_existing_process. */
static inline void tw_process_send_to_nobody(struct tw_process *sender, struct tw_term message, struct tw_term to)
{
	if (tw_runtime_wants(TW_WANTS_SEND))
		tw_runtime_send(sender, message, to, true);
}

/*
 * tw_process_receive - a message enters the process' mailbox: by the thread that puts it there, before it can be taken
 * out, and where the mailbox has a lock, under it: then the events come in the order of the mailbox.
 *
 * @message	a trapped exit signal is the message {'EXIT',From,Reason}.
 * @sender	its pid or port; none: not known (undefined).  Its node, where it has one, is the Node of recv patterns.
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
 * tw_process_mailbox - so many messages wait now; told when it has changed.
 *
 * For system monitors of long message queues; nobody wants it where no monitor is set.
 */
void tw_runtime_mailbox(struct tw_process *process, uint64_t length);
static inline void tw_process_mailbox(struct tw_process *process, uint64_t length)
{
	if (tw_runtime_wants(TW_WANTS_MAILBOX))
		tw_runtime_mailbox(process, length);
}

/* ---- scheduling: tw_process_in() and tw_process_out() of process.h, with the function ---- */

/*
 * tw_process_in_at - as tw_process_in(), and says where the process goes on: in, or in_exiting.
 *
 * @function	declared; NULL: not known, the event has 0.  tw_process_in() is this with NULL.
 */
void tw_process_in_at(struct tw_process *process, const struct tw_declared_function *function);
/* As tw_process_out(), and says where it was: out, or out_exiting.  A process that is not in makes no event. */
void tw_process_out_at(const struct tw_declared_function *function);

/* ---- garbage collections ---- */

/* In words, in the order of OTP's documentation, which says what each is. */
struct tw_gc_sizes {
	uint64_t heap_size;
	uint64_t heap_block_size;
	uint64_t old_heap_size;
	uint64_t old_heap_block_size;
	uint64_t stack_size;
	uint64_t recent_size;
	uint64_t mbuf_size;
	uint64_t bin_vheap_size;
	uint64_t bin_vheap_block_size;
	uint64_t bin_old_vheap_size;
	uint64_t bin_old_vheap_block_size;
	uint64_t wordsize; /* at a start: the need; at an end: what was reclaimed */
};

enum tw_gc_event {
	TW_GC_MINOR_START = 33,
	TW_GC_MINOR_END,
	TW_GC_MAJOR_START,
	TW_GC_MAJOR_END,
	TW_GC_MAX_HEAP_SIZE /* the limit was reached: the process is killed */
};

void tw_runtime_gc(struct tw_process *process, enum tw_gc_event event, const struct tw_gc_sizes *sizes);

/* A collection of this process begins or ends.  @sizes borrows. */
static inline void tw_process_gc(struct tw_process *process, enum tw_gc_event event,
				 const struct tw_gc_sizes *sizes)
{
	if (tw_runtime_wants(TW_WANTS_GARBAGE_COLLECTION))
		tw_runtime_gc(process, event, sizes);
}

/* ---- time ---- */

/*
 * The clock of events: nanoseconds of CLOCK_MONOTONIC.  An event made between two calls has a stamp between their
 * answers, but for the error of converting ticks, which docs/embedding.md gives.  Signal handlers: yes.
 */
int64_t tw_monotonic_time_ns(void);

/*
 * The next of the integers that strict_monotonic stamps carry: above every one handed out before, to whomever.
 * Source: erlang:unique_integer([monotonic]).  Signal handlers: yes.
 */
int64_t tw_unique_integer_monotonic(void);

#ifdef __cplusplus
}
#endif

#endif
