/* SPDX-License-Identifier: Apache-2.0 */
/*
 * seq.h - sequential tracing: follow one request through the messages, spawns and exits of all processes that it reaches.
 *
 * A process that sets its trace token starts a trace.  The token passes invisibly with each message that the process
 * sends to the receiver, and on with the messages that the receiver sends.  Each send, receive and print with a token is an
 * event for the system tracer, a session:
 *
 *	tw_seq_set_system_tracer(session, NULL);
 *	tw_seq_set_label(label);	   a trace begins: each request has its label
 *	tw_seq_set_flags(TW_SEQ_SEND | TW_SEQ_RECEIVE | TW_SEQ_PRINT, true);
 *	...
 *	tw_seq_set_token(NULL, NULL);		   this process leaves the trace
 *
 * A run-time system carries the token: tw_seq_send() gives it 64 bytes for each message, tw_seq_receive() takes them when the
 * receiver takes the message.  In a program without processes of its own each thread is one: the token passes to threads that
 * it creates, and through a queue of any kind with tw_seq_pass() and tw_seq_accept().  docs/seq-trace.md is the guide.
 *
 * Off		While no process of this OS process has had a token since the program began, or since
 *		tw_seq_reset_trace(), each call of a run-time costs one load and one branch.
 * Process	A process' token and clocks belong to the thread that runs it.  Functions without a process parameter
 *		concern the calling process: the one that the thread runs (process.h), or the thread itself.
 * Threads	any.  Not in signal handlers.  Inside a hit only match specifications use tokens.  Keeps errno.
 * Units	A serial counts how often a token was passed on, -2^59 .. 2^59 - 1.  OTP's serials wrap there (at 27 bits in
 *		old documents) and then order nothing; here a message beyond the last serial carries no token and is counted.
 * Errors	those of tracewheel/error.h.
 * Source	OTP: seq_trace(3); the order of events there, by the algorithm in "Serial".
 */
#ifndef TRACEWHEEL_SEQ_H
#define TRACEWHEEL_SEQ_H

#include "tracewheel/process.h"
#include "tracewheel/runtime.h"
#include "tracewheel/session.h"
#include "tracewheel/term.h"

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * A trace token, as a message carries it.  Opaque: valid in this OS process only, until tw_seq_reset_trace()
 * (tw_seq_encode() makes bytes for other processes).  In an empty token words[0] is 0 and the other words are undefined.
 * A copy is as good as the original.
 */
struct tw_seq_token {
	uint64_t words[8];
};

/* Flags of a token.  OTP: send, 'receive', print, timestamp, strict_monotonic_timestamp, monotonic_timestamp. */
enum {
	TW_SEQ_SEND = 1,    /* an event for each message sent with this token */
	TW_SEQ_RECEIVE = 2, /* and for each one received */
	TW_SEQ_PRINT = 4,   /* and for tw_seq_print() */
	/* Time stamps: the first of these three that is set applies; all are kept. */
	TW_SEQ_TIMESTAMP = 8,			/* time of day */
	TW_SEQ_STRICT_MONOTONIC_TIMESTAMP = 16, /* {monotonic time in ns, unique integer} */
	TW_SEQ_MONOTONIC_TIMESTAMP = 32,	/* monotonic time in ns */
	TW_SEQ_FLAGS = 63
};

/* Has any process of this OS process had a token since the last reset?  One load. */
static inline bool tw_seq_is_active(void)
{
	return tw_runtime_wants(TW_WANTS_SEQ);
}

static inline bool tw_seq_token_is_empty(const struct tw_seq_token *token)
{
	return !token || !token->words[0];
}

/* ---- the token of the calling process ---- */

/* The token; empty if it has none.  Source: seq_trace:get_token/0. */
void tw_seq_get_token(struct tw_seq_token *out);
/*
 * tw_seq_set_token - replace the token.
 *
 * @token	borrows; from tw_seq_get_token() or a message.  The process takes over its serial and becomes its sender.
 *		NULL or empty: the process has no token from now on, and keeps its clocks.
 * @old		set to the previous token; NULL: not wanted.
 *
 * Errors: TW_EBADARG (damaged, of another OS process, or its label was removed from the table), TW_ENOMEM; TW_EDEADLK in a
 * hit.  Source: seq_trace:set_token/1.
 */
int tw_seq_set_token(const struct tw_seq_token *token, struct tw_seq_token *old);
/*
 * The components that most programs set.  A process without a token gets one: label 0, no flags, and its own clock.
 *
 * @label	any term of at most 2048 bytes in the external format.  One that is neither an integer of 60 bits nor an atom is
 *		kept in a table: see struct tw_seq_stats.
 *
 * Errors: TW_EBADARG (no term; unknown flags), TW_ELIMIT (the label is too long), TW_ENOMEM; TW_EDEADLK in a hit.
 * Source: seq_trace:set_token/2.
 */
int tw_seq_set_label(struct tw_term label);
/* Sets (@how true) or clears flags, TW_SEQ_*. */
int tw_seq_set_flags(unsigned flags, bool how);

/*
 * The same in terms, exactly as OTP's functions of these names.
 *
 * tw_seq_token_term	[] or {Flags,Label,Serial,From,Previous}; none where the arena is full.
 * tw_seq_set_token_term	such a term.  @old: the previous token when @token is [], else `ok`.
 * tw_seq_component	@component: label, serial, send, 'receive', print, timestamp, strict_monotonic_timestamp or
 *			monotonic_timestamp.  @out: {Component,Value}, or [] for label and serial of no token.
 * tw_seq_set_component	@old: the value before; of no token 0, {0,0}, false.
 *
 * @old, @out	built in @arena; both may be NULL.
 * Errors: as above; TW_EBADARG as OTP's badarg and function_clause.  A serial is a pair of integers, also negative ones.
 */
struct tw_term tw_seq_token_term(struct tw_arena *arena);
int tw_seq_set_token_term(struct tw_arena *arena, struct tw_term token, struct tw_term *old);
int tw_seq_component(struct tw_arena *arena, struct tw_term component, struct tw_term *out);
int tw_seq_set_component(struct tw_arena *arena, struct tw_term component, struct tw_term value, struct tw_term *old);

/* The out-of-line halves of the calls below. */
void tw_runtime_seq_send(struct tw_process *process, struct tw_term to, struct tw_term message,
			 struct tw_seq_token *out);
void tw_runtime_seq_receive(struct tw_process *process, const struct tw_seq_token *token, struct tw_term message);
void tw_runtime_seq_print(struct tw_term label, struct tw_term info);
bool tw_runtime_seq_wants(const struct tw_process *process, const struct tw_seq_token *token, unsigned flag);

/*
 * tw_seq_print - an event of this process, if it has a token with the flag print.  The serial advances in any case.
 *
 * @label	tw_seq_print_label: an event only if the token's label is exactly this.
 *
 * Source: seq_trace:print/1,2.
 */
static inline void tw_seq_print(struct tw_term info)
{
	if (tw_seq_is_active())
		tw_runtime_seq_print((struct tw_term){0}, info);
}
static inline void tw_seq_print_label(struct tw_term label, struct tw_term info)
{
	if (tw_seq_is_active())
		tw_runtime_seq_print(label, info);
}

/*
 * tw_seq_reset_trace - empty all tokens of this OS process, also those in messages, and set all clocks to 0.
 *
 * Takes effect at one moment, in O(1): all earlier tokens become invalid.  Errors: TW_EDEADLK in a hit.
 * Source: seq_trace:reset_trace/0.
 */
int tw_seq_reset_trace(void);

/* ---- run-time systems: messages ---- */

/*
 * tw_seq_send - the process sends a message or an exit signal to another process.
 *
 * @process	the sender; NULL: none, and the token is empty.
 * @to		as reported: a pid (also for a registered name), {Name,Node}, an alias.  The receiver exists: a message that
 *		goes nowhere is not reported.
 * @message	for an exit signal through a link {'EXIT',Pid,Reason}.  Build it only if tw_seq_wants_send() is true; otherwise
 *		pass none.
 * @out		the token, to be kept with the message until tw_seq_receive().
 *
 * Called by the thread that runs the sender, before the message can be received.  Signals that carry no token in OTP are not
 * reported: exit/2, 'DOWN' of monitors, messages of ports.
 */
static inline void tw_seq_send(struct tw_process *process, struct tw_term to, struct tw_term message,
			       struct tw_seq_token *out)
{
	if (tw_seq_is_active())
		tw_runtime_seq_send(process, to, message, out);
	else
		out->words[0] = 0;
}

/*
 * tw_seq_receive - the process takes a message (matches it): its token becomes that of the message, empty or not.
 *
 * @token	borrows; NULL: empty.  Tokens from before the last reset count as empty; so do damaged ones and those of another
 *		OS process, which are counted (struct tw_seq_stats).
 * @message	none if tw_seq_wants_receive() is false.
 *
 * Not called for messages of ports and 'DOWN' messages, which leave the token as it is, nor for time-outs, nor for
 * exit signals that do not become messages.
 */
static inline void tw_seq_receive(struct tw_process *process, const struct tw_seq_token *token, struct tw_term message)
{
	if (tw_seq_is_active())
		tw_runtime_seq_receive(process, token, message);
}

/* Will a send or receive make an event, which needs the terms? */
static inline bool tw_seq_wants_send(const struct tw_process *process)
{
	return tw_seq_is_active() && tw_runtime_seq_wants(process, NULL, TW_SEQ_SEND);
}
static inline bool tw_seq_wants_receive(const struct tw_process *process, const struct tw_seq_token *token)
{
	return tw_seq_is_active() && tw_runtime_seq_wants(process, token, TW_SEQ_RECEIVE);
}

/* tw_process_spawn() passes the parent's token on, with the events of a spawn request and its reply. */

/* ---- threads ---- */

/*
 * The same for programs without a run-time of their own, around a queue of any kind: the sending thread calls tw_seq_pass()
 * and puts the token into the queue beside its work; the thread that takes the work calls tw_seq_accept().
 *
 * @to		the receiver, if it is known; none: undefined.
 */
static inline void tw_seq_pass(struct tw_seq_token *out, struct tw_term to, struct tw_term message)
{
	if (tw_seq_is_active())
		tw_runtime_seq_send(tw_process_current(), to, message, out);
	else
		out->words[0] = 0;
}
static inline void tw_seq_accept(const struct tw_seq_token *token, struct tw_term message)
{
	if (tw_seq_is_active())
		tw_runtime_seq_receive(tw_process_current(), token, message);
}

/* ---- the system tracer ---- */

/*
 * tw_seq_set_system_tracer - choose the one session that gets the events of sequential tracing.
 *
 * @session	borrows: with a queue, a capture, a stream or a module.  NULL: none.  It does not keep the session alive: when that
 *		is destroyed, or its tracer is gone, there is no system tracer any more.
 * @previous	gives a handle (tw_session_put()), or NULL for none; NULL: not wanted.
 *
 * Independent of the session's other settings.  A process that is sensitive, or is the session's tracer, makes no events.
 * Errors: TW_EBADARG (a session without tracer, or whose tracer is gone), TW_EDEAD, TW_ELIMIT, TW_EDEADLK in a hit.
 * Source: seq_trace:set_system_tracer/1.
 */
int tw_seq_set_system_tracer(struct tw_session *session, struct tw_session **previous);
/* Gives a handle; NULL: none.  Source: seq_trace:get_system_tracer/0. */
struct tw_session *tw_seq_get_system_tracer(void);

/* ---- to other OS processes and machines ---- */

/*
 * A token outside of its OS process has the label's term and a sender that names its node: an Erlang node by its name, any
 * other OS process as 'tw-PID-START@BOOT' (START: field 22 of /proc/PID/stat; BOOT: the first 8 digits of the kernel's boot id).
 *
 * Sending	write the token that tw_seq_send() or tw_seq_pass() returned.  Empty and invalid tokens are written as the empty
 *		token.
 * Receiving	read the token and pass it to tw_seq_receive() or tw_seq_accept().  No byte is trusted.  A token that is refused
 *		is counted in struct tw_seq_stats; the message then has none.
 * Errors	of receiving: TW_EFORMAT (cut, damaged, none), TW_EVERSION (of a later version of the format), TW_ELIMIT (a label
 *		that cannot be held: too long, nested deeper than 64 levels, or with new atoms while half of the table of atoms is
 *		used), TW_ENOMEM.  Sending and receiving: TW_EDEADLK in a hit.
 * Threads	any.
 */

/* Enough for every token; most take less than 100. */
#define TW_SEQ_ENCODED_BYTES_MAX 3200

/*
 * tw_seq_encode, tw_seq_decode - a token as bytes; docs/seq-trace.md has the format.
 *
 * @used_bytes	set to the bytes of the token.  Decoding, NULL: bytes after it are an error.
 *
 * Errors: TW_ENOSPC (encoding), and those above.
 */
int tw_seq_encode(const struct tw_seq_token *token, void *buffer, size_t bytes, size_t *used_bytes);
int tw_seq_decode(const void *data, size_t bytes, size_t *used_bytes, struct tw_seq_token *out);

/* Our member takes up to 259 characters; more than 512 are left for the members of others. */
#define TW_SEQ_TRACESTATE_BYTES 1024

/* Values of two HTTP headers, each ending in NUL. */
struct tw_seq_headers {
	char traceparent[56];
	char tracestate[TW_SEQ_TRACESTATE_BYTES];
};

#define TW_SEQ_TRACE_ID_BYTES 16
/* The node of a sender that stands for the parent-id of a trace that began elsewhere. */
#define TW_SEQ_FOREIGN_NODE "traceparent@w3c"

/* The process that handed a token on, and the serial: {_,current}. */
struct tw_seq_sender {
	uint32_t number, serial; /* of the pid */
	uint32_t creation;
	int64_t current;
	const char *node; /* of the pid; borrows */
	size_t node_bytes;
};

/*
 * tw_seq_trace_id - the trace-id of all tokens with this label.
 *
 * @node	of pids in the label that name none.
 *
 * Errors: TW_ELIMIT (the label is too long for a token), TW_ENOMEM.  Threads: any.
 */
int tw_seq_trace_id(struct tw_term label, struct tw_term node, unsigned char out[TW_SEQ_TRACE_ID_BYTES]);
/* The parent-id that such a token is handed on with: never 0.  Threads: any. */
uint64_t tw_seq_parent_id(const struct tw_seq_sender *sender);
/* Is the sender the parent-id of a trace that began elsewhere?  Threads: any. */
bool tw_seq_is_foreign(const struct tw_seq_sender *sender);

/*
 * tw_seq_to_traceparent - a token as W3C trace context.
 *
 * The token is the first member of tracestate, `tw=`.  trace-id is the label if that is a binary of 16 bytes, not all 0;
 * otherwise it is a hash of the label.  parent-id is a hash of the sender and the serial.  The flag sampled is set if the
 * token makes events.
 *
 * @received_*	the headers that the request came with, or NULL: if they have the same trace-id, the members of others and the
 *		flag random are passed on.
 *
 * Errors: TW_EBADARG (the empty token: send no headers), TW_ELIMIT (the label, beyond about 100 bytes, does not fit a member of
 * 256 characters), TW_ENOMEM, TW_EDEADLK.  Source: W3C Trace Context, level 2.
 */
int tw_seq_to_traceparent(const struct tw_seq_token *token, const char *received_traceparent,
			  const char *received_tracestate, struct tw_seq_headers *out);
/*
 * tw_seq_from_traceparent - the token of W3C trace context.
 *
 * If tracestate has a token of ours whose label fits trace-id, that one.  Otherwise a token of a trace that began elsewhere:
 * its label is trace-id, a binary of 16 bytes; its serial {0,0}; its sender parent-id in two halves, as a pid of the node
 * 'traceparent@w3c'; its flags send, 'receive' and print if sampled is set, else none.
 *
 * @tracestate	several headers joined with commas; NULL: none.  An invalid one is ignored, and so is a member `tw` that is another
 *		tracer's, or a token of ours that cannot be read (damaged, of a later version, with a label that cannot be held), which is
 *		counted in struct tw_seq_stats: traceparent alone is enough to follow the request.
 *
 * Errors: TW_EFORMAT (traceparent is invalid), and those above.
 */
int tw_seq_from_traceparent(const char *traceparent, const char *tracestate, struct tw_seq_token *out);

/*
 * tw_seq_to_erlang, tw_seq_from_erlang - a token as Erlang's nodes exchange it: {Flags,Label,Serial,From,Previous}, [] for the
 * empty one, in the external term format.
 *
 * The encoding begins with the version byte 131, which must be left out inside a control message of the distribution
 * protocol (SEND_TT, REG_SEND_TT, EXIT_TT, EXIT2_TT).  Decoding accepts both forms.
 */
int tw_seq_to_erlang(const struct tw_seq_token *token, void *buffer, size_t bytes, size_t *used_bytes);
int tw_seq_from_erlang(const void *data, size_t bytes, struct tw_seq_token *out);

/* Messages that could not be followed, since the program began. */
struct tw_seq_stats {
	uint64_t overflowed; /* sends and prints beyond the last serial: their tokens were dropped */
	uint64_t damaged;    /* tokens with invalid words, or of another version */
	uint64_t foreign;    /* tokens of another OS process that came without tw_seq_decode() */
	uint64_t forgotten;  /* tokens whose label was removed from the table */
	/* Labels removed from the table, which holds the 131,072 that were used last, or fewer if they are long. */
	uint64_t labels_forgotten;
	/* Refused by tw_seq_decode(), tw_seq_from_traceparent() and tw_seq_from_erlang(), or left out of tracestate by the second: */
	uint64_t refused_damaged; /* cut, damaged, or no token */
	uint64_t refused_version; /* of another version of the format */
	uint64_t refused_limit;	  /* with a label that this process cannot hold */
};
void tw_seq_stats(struct tw_seq_stats *out);

#ifdef __cplusplus
}
#endif

#endif
