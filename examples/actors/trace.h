/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trace.h - everything that the run-time reports to Tracewheel, in one place.
 *
 *	where				what					trace flag
 *	run() in scheduler.c		trace_in, trace_out			running
 *	spawn_with, actor_bury		trace_spawn, trace_ended		procs, exiting
 *	say_goodbye			trace_exiting				procs
 *	link_to, take_signal		trace_signal, trace_unlink, ...		procs
 *	register_name			trace_register, trace_unregister	procs
 *	send_to				trace_send				send
 *	signal_push, under the lock	trace_signal				receive
 *	send_to, tell_end, take_message	trace_token_sent, _received, ...	sequential tracing
 *	take_signals, take_message	trace_mailbox				monitors: long_message_queue
 *	call_with			trace_enter, trace_tail, trace_leave	call, return_to
 *	raise_exception			trace_raise				exception_from
 *	port.c				trace_port_open, trace_port_in, ...	ports, running_ports, send, receive
 *	collect				trace_gc_start, trace_gc_end		garbage_collection
 *	call_with, raise_exception	words of the heap, since the last	call_memory
 *
 * Each hook tests one word while no session traces.  The run-time has values of its own, so the slow paths in trace.c
 * make terms of them, only if a session wants the event.  With ACTORS_NO_TRACE nothing remains, not even the library.
 */
#ifndef ACTORS_TRACE_H
#define ACTORS_TRACE_H

#include "run.h"

#ifdef ACTORS_NO_TRACE

#define trace_scheduler()					   ((void)0)
#define trace_in(actor)						   ((void)0)
#define trace_out(actor)					   ((void)0)
#define trace_ended(actor)					   ((void)0)
#define trace_exiting(self, reason)				   ((void)0)
#define trace_sensitive(self, is)				   ((void)0)
#define trace_register(actor, name)				   ((void)0)
#define trace_unregister(actor)					   ((void)0)
#define trace_link_to_nobody(self, pid)				   ((void)0)
#define trace_unlink(self, pid)					   ((void)0)
#define trace_getting_linked(self, pid)				   ((void)0)
#define trace_getting_unlinked(self, pid)			   ((void)0)
#define trace_send(self, to, pid, message)			   ((void)0)
#define trace_signal(actor, signal)				   ((void)0)
#define trace_signal_made(signal)				   ((void)(signal))
#define trace_token_sent(self, pid, signal)			   ((void)(signal))
#define trace_token_exits(self, pid, signal)			   ((void)(signal))
#define trace_token_none(signal)				   ((void)(signal))
#define trace_token_received(self, signal)			   ((void)(signal))
#define trace_mailbox(self, length)				   ((void)(length))
#define trace_timeout(self)					   ((void)0)
#define trace_take(skipped)					   ((void)(skipped))
#define trace_wait()						   ((void)0)
#define trace_mailboxes()					   ((void)0)
#define trace_enter(self, frame, kind)				   ((void)(kind))
#define trace_tail(self, frame, kind)				   ((void)0)
#define trace_leave(self, frame, result)			   ((void)0)
#define trace_raise(self, to, class, value)			   ((void)0)
#define trace_gc_start(self, is_major)				   ((void)0)
#define trace_gc_end(self, is_major, reclaimed)			   ((void)reclaimed)
#define trace_gc_max_heap_size(self)				   ((void)0)
#define trace_declare(function)					   ((void)(function))
#define trace_unload(module)					   ((void)0)
#define trace_port_open(runtime, self, is_listening, port)	   ((void)(port), next_number(runtime))
#define trace_port_close(port, reason)				   ((void)(port))
#define trace_port_command(port, from, bytes, count)		   ((void)(port))
#define trace_port_close_asked(port, from)			   ((void)(from))
#define trace_port_send(port, to, message)			   ((void)(port))
#define trace_port_in(port, command)				   ((void)(port))
#define trace_port_out(port, command)				   ((void)(port))
#define trace_spawn(parent, child, function, arguments, is_linked) next_number((child)->runtime)

#else

#include <tracewheel/port.h>
#include <tracewheel/runtime.h>
#include <tracewheel/seq.h>

/* ---- the slow paths: a session may want the event ---- */

void trace_send_slow(struct actor *self, struct value to, struct value pid, struct value message);
void trace_signal_slow(struct actor *actor, struct signal *signal);
void trace_token_send_slow(struct actor *self, struct value pid, struct signal *signal, bool is_exit);
void trace_token_receive_slow(struct actor *self, const struct signal *signal);
void trace_call_slow(struct call_frame *frame, enum call_kind kind, bool is_tail);
void trace_leave_slow(struct call_frame *frame, struct value result);
void trace_gc_slow(struct actor *self, enum tw_gc_event event, size_t words);

/* ---- life; returns the number of the pid ---- */

uint64_t trace_spawn(struct actor *parent, struct actor *child, struct function *function,
		     const struct value *arguments, bool is_linked);
void trace_exiting(struct actor *self, struct value reason);

static inline void trace_ended(struct actor *actor)
{
	tw_process_exit(actor->process);
}

static inline void trace_sensitive(struct actor *self, bool is_sensitive)
{
	tw_process_sensitive(self->process, is_sensitive);
}

void trace_register(struct actor *actor, struct value name);

static inline void trace_unregister(struct actor *actor)
{
	tw_process_unregister(actor->process);
}

/* ---- links: reported by the linking actor, in trace_signal(); otherwise by the actor that learns of it ---- */

static inline uint64_t trace_pid(struct value pid)
{
	return (uint64_t)number_of(pid) >> SLOTS_BITS;
}

static inline void trace_link_to_nobody(struct actor *self, struct value pid)
{
	tw_process_link_to_nobody(self->process, trace_pid(pid));
}

static inline void trace_unlink(struct actor *self, struct value pid)
{
	tw_process_unlink(self->process, trace_pid(pid));
}

static inline void trace_getting_linked(struct actor *self, struct value pid)
{
	tw_process_getting_linked(self->process, trace_pid(pid));
}

static inline void trace_getting_unlinked(struct actor *self, struct value pid)
{
	tw_process_getting_unlinked(self->process, trace_pid(pid));
}

/* ---- messages ---- */

/* Before the message can be received. */
static inline void trace_send(struct actor *self, struct value to, struct value pid, struct value message)
{
	if (tw_runtime_wants(TW_WANTS_SEND))
		trace_send_slow(self, to, pid, message);
}

/* Under the lock of the mailbox that the signal enters: a message is received, a link is made. */
static inline void trace_signal(struct actor *actor, struct signal *signal)
{
	if (tw_runtime_wants(TW_WANTS_RECEIVE | TW_WANTS_PROCS | TW_WANTS_LINKS))
		trace_signal_slow(actor, signal);
}

/* ---- sequential tracing: the token that passes with messages and exit signals ---- */

static inline void trace_signal_made(struct signal *signal)
{
	signal->traced.token.words[0] = 0;
	signal->traced.is_carrier = false;
}

/* Before the signal can be received: a message, */
static inline void trace_token_sent(struct actor *self, struct value pid, struct signal *signal)
{
	signal->traced.is_carrier = true;
	if (tw_seq_is_active())
		trace_token_send_slow(self, pid, signal, false);
}

/* or an exit signal through a link. */
static inline void trace_token_exits(struct actor *self, struct value pid, struct signal *signal)
{
	signal->traced.is_carrier = true;
	if (tw_seq_is_active())
		trace_token_send_slow(self, pid, signal, true);
}

/* Passes without token; its receiver has none afterwards. */
static inline void trace_token_none(struct signal *signal)
{
	signal->traced.is_carrier = true;
}

/* The actor takes the message. */
static inline void trace_token_received(struct actor *self, const struct signal *signal)
{
	if (tw_seq_is_active())
		trace_token_receive_slow(self, signal);
}

/* The messages that the actor has fetched and not taken: reported by itself only, as in Erlang. */
static inline void trace_mailbox(struct actor *self, uint64_t length)
{
	tw_process_mailbox(self->process, length);
}

static inline void trace_timeout(struct actor *self)
{
	tw_process_receive_timeout(self->process);
}

/* mailbox:take/1 and mailbox:wait/0, by which `tracewheel why-late` knows the contents of a queue. */
extern struct tw_declared_function trace_mailbox_take, trace_mailbox_wait;
void trace_mailboxes(void);

/* The actor takes a message that comes after `skipped` others. */
static inline void trace_take(uint64_t skipped)
{
	tw_call1(&trace_mailbox_take, skipped);
}

/* It has examined all messages without a match: it is about to wait. */
static inline void trace_wait(void)
{
	tw_call0(&trace_mailbox_wait);
}

/* ---- ports; an actor in the middle of one is not scheduled out ---- */

/* Returns the number of the port.  self: the actor that opens it; NULL: none. */
uint64_t trace_port_open(struct runtime *runtime, struct actor *self, bool is_listening, tw_port *port);
void trace_port_command_slow(tw_port port, struct value from, const void *bytes, size_t count);
void trace_port_send_slow(tw_port port, struct value to, struct value message);

static inline void trace_port_close(tw_port port, const char *reason)
{
	tw_port_close(port, tw_term_atom_z(reason));
}

/* {Pid,{command,Bytes}} */
static inline void trace_port_command(tw_port port, struct value from, const void *bytes, size_t count)
{
	if (tw_port_wants(port, TW_WANTS_RECEIVE))
		trace_port_command_slow(port, from, bytes, count);
}

static inline void trace_port_close_asked(tw_port port, struct value from)
{
	tw_port_request(port, trace_pid(from), TW_PORT_CLOSE, (struct tw_term){0});
}

static inline void trace_port_send(tw_port port, struct value to, struct value message)
{
	if (tw_port_wants(port, TW_WANTS_SEND))
		trace_port_send_slow(port, to, message);
}

#define trace_port_in(port, command)  tw_port_in((port), (command))
#define trace_port_out(port, command) tw_port_out((port), (command))

/* ---- scheduling ---- */

static inline void trace_scheduler(void)
{
	tw_scheduler_declare();
}

/* The actor that the thread runs: for queries where a call returns to. */
extern _Thread_local struct actor *trace_running;

/* The function in which it continues: the innermost that has not returned. */
static inline const struct tw_declared_function *trace_place(const struct actor *actor)
{
	const struct function *function = actor->frame ? actor->frame->function : actor->entry;
	return function ? &function->traced : NULL;
}

static inline void trace_in(struct actor *actor)
{
	trace_running = actor;
	tw_process_in_at(actor->process, trace_place(actor));
}

static inline void trace_out(struct actor *actor)
{
	tw_process_out_at(trace_place(actor));
}

/* ---- functions ---- */

/* The frame is the actor's innermost already, so the stack of trace.c begins with its caller. */
static inline void trace_enter(struct actor *self, struct call_frame *frame, enum call_kind kind)
{
	frame->traced.is_open = 0;
	if (tw_is_armed(&frame->function->traced))
		trace_call_slow(frame, kind, false);
}

static inline void trace_tail(struct actor *self, struct call_frame *frame, enum call_kind kind)
{
	if (tw_is_armed(&frame->function->traced))
		trace_call_slow(frame, kind, true);
}

static inline void trace_leave(struct actor *self, struct call_frame *frame, struct value result)
{
	if (__builtin_expect(frame->traced.is_open != 0, 0))
		trace_leave_slow(frame, result);
}

/* The exception leaves every frame up to that of the function that catches it; NULL: none. */
void trace_raise(struct actor *self, struct call_frame *to, enum exception_class class, struct value value);

static inline void trace_declare(struct function *function)
{
	tw_function_declare(&function->traced);
}

static inline void trace_unload(const char *module)
{
	tw_module_unload(module);
}

/* ---- collections ---- */

static inline void trace_gc_start(struct actor *self, bool is_major)
{
	if (tw_runtime_wants(TW_WANTS_GARBAGE_COLLECTION | TW_WANTS_COLLECTIONS))
		trace_gc_slow(self, is_major ? TW_GC_MAJOR_START : TW_GC_MINOR_START, 0);
}

static inline void trace_gc_end(struct actor *self, bool is_major, size_t reclaimed)
{
	if (tw_runtime_wants(TW_WANTS_GARBAGE_COLLECTION | TW_WANTS_COLLECTIONS))
		trace_gc_slow(self, is_major ? TW_GC_MAJOR_END : TW_GC_MINOR_END, reclaimed);
}

static inline void trace_gc_max_heap_size(struct actor *self)
{
	if (tw_runtime_wants(TW_WANTS_GARBAGE_COLLECTION | TW_WANTS_COLLECTIONS))
		trace_gc_slow(self, TW_GC_MAX_HEAP_SIZE, 0);
}

#endif

#endif
