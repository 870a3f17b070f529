/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tracer.h - tracer modules: C functions that are called for each event, in place of a queue or a capture.
 *
 *	static enum tw_tracer_answer enabled(enum tw_tracer_tag tag, struct tw_term state, struct tw_term tracee)
 *	{
 *		return tag == TW_TRACER_TAG_SEND || tag == TW_TRACER_TAG_STATUS ? TW_TRACER_TRACE : TW_TRACER_DISCARD;
 *	}
 *	static void trace(enum tw_tracer_tag tag, struct tw_term state, struct tw_term tracee, struct tw_term term,
 *			  const struct tw_tracer_options *options)
 *	{
 *		...				tracee sent `term` to options->extra
 *	}
 *	const struct tw_tracer_module mine = {
 *		.bytes = sizeof mine, .name = "mine", .enabled = enabled, .trace = trace };
 *
 *	struct tw_tracer tracer = { .kind = TW_TRACER_MODULE, .module = &mine, .state = pid };
 *
 * For each event the `enabled` callback is asked first, before the match specification runs and before terms are
 * built.  If it answers TW_TRACER_TRACE and the match specification accepts the event, the `trace` callback is called
 * once. docs/tracer-modules.md is the guide.
 *
 * Threads	Callbacks are called on the thread that makes the event, in the middle of the traced call: several at
 *		once, in signal handlers if calls of those are traced, and on the sender's thread for `receive`.
 * Callbacks	may use memory, locks and files of their own.  They must return: no longjmp, exception or end of the thread.
 *		Traced functions that a callback calls, and messages that it reports, make no events; those are counted
 *		(struct tw_tracer_stats).  Calls that change sessions return TW_EDEADLK.  The program waits while a callback
 *		runs, and so does every change of a session that removes a setting.  The program's errno is preserved.
 * Terms	are lent until the callback returns; the state lives as long as the session.
 * Source	OTP: erl_tracer(3).
 */
#ifndef TRACEWHEEL_TRACER_H
#define TRACEWHEEL_TRACER_H

#include "tracewheel/kinds.h"
#include "tracewheel/session.h"
#include "tracewheel/term.h"

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * The reason for the call of a callback.  OTP: trace tags.  Events are those of TW_TRACE_KINDS(), with the numbers of enum
 * tw_capture_kind.  Their callbacks are named by the group: enabled_send and trace_send; of RUNNING enabled_running_procs and
 * trace_running_procs.  Of a port, PROCS are enabled_ports and trace_ports, and RUNNING enabled_running_ports and
 * trace_running_ports.
 */
enum tw_tracer_tag {
	/*
	 * Not an event: asks whether the tracer is still active.  Passed to `enabled` only, which answers TW_TRACER_REMOVE or
	 * anything else. Asked when flags are set and inspected, before each call, and when a traced process is
	 * scheduled in.
	 */
	TW_TRACER_TAG_STATUS = 1,
	/*
	 * Sequential tracing (seq.h), for the system tracer: passed to `enabled` and `trace`, never to more specific ones.
	 * The tracee is the process for `enabled`, and the label for `trace`, whose term is {send,Serial,From,To,Message},
	 * with 'receive' or print in place of send.  TW_TRACER_REMOVE unsets the system tracer.
	 */
	TW_TRACER_TAG_SEQ_TRACE = 2,
#define TW_TAG_ROW(NAME, number, word, group, first, second) TW_TRACER_TAG_##NAME = number,
	TW_TRACE_KINDS(TW_TAG_ROW)
#undef TW_TAG_ROW
};

/* The answers of `enabled`; any other number discards the event and is counted. */
enum tw_tracer_answer {
	TW_TRACER_TRACE = 1,
	TW_TRACER_DISCARD,
	/*
	 * The tracer is gone: the tracee loses all its flags in this session, and the event is not made.  If the event
	 * belongs to a process that this thread does not run, only the event is dropped, and the next one asks again.
	 */
	TW_TRACER_REMOVE
};

/* The requested kind of time stamp; the callback reads the clock itself. */
enum tw_tracer_stamp {
	TW_TRACER_STAMP_NONE = 0,
	TW_TRACER_STAMP_MONOTONIC,	  /* tw_monotonic_time_ns() */
	TW_TRACER_STAMP_STRICT_MONOTONIC, /* the same and tw_unique_integer_monotonic() */
	TW_TRACER_STAMP_TIMESTAMP,	  /* the time of day */
	TW_TRACER_STAMP_CPU_TIMESTAMP	  /* the CPU time of the program */
};

/* The options of an event; none or 0: absent.  OTP: the keys of trace_opts(). */
struct tw_tracer_options {
	enum tw_tracer_stamp timestamp;
	uint32_t scheduler_id;		  /* 0: not requested */
	struct tw_term extra;		  /* the fifth element of OTP's tuple: Value, To, the other process' {M,F,A} */
	struct tw_term match_spec_result; /* X of {message,X} */
};

/*
 * @state	tracer.state: a copy that never changes.
 * @tracee	a pid or a port; for TW_TRACER_TAG_SEQ_TRACE a label; undefined for the status of new processes.
 */
typedef enum tw_tracer_answer tw_tracer_enabled_fn(enum tw_tracer_tag tag, struct tw_term state, struct tw_term tracee);
/*
 * @term	the fourth element of OTP's tuple: {M,F,Args} or {M,F,Arity}, a message, a pid, [{heap_size,N},...].
 * @options	lends.
 */
typedef void tw_tracer_trace_fn(enum tw_tracer_tag tag, struct tw_term state, struct tw_term tracee,
				struct tw_term term, const struct tw_tracer_options *options);

/*
 * The callbacks. Read once, when the session is made; the object that contains a callback stays loaded from then on.
 * A missing enabled_X or trace_X (NULL) means `enabled` or `trace`, independently.
 */
struct tw_tracer_module {
	uint32_t bytes;		       /* sizeof(struct tw_tracer_module) */
	uint32_t reserved;	       /* 0 */
	const char *name;	       /* borrows: the name shown by info, an atom */
	tw_tracer_enabled_fn *enabled; /* mandatory */
	tw_tracer_trace_fn *trace;     /* mandatory */
	tw_tracer_enabled_fn *enabled_call;
	tw_tracer_trace_fn *trace_call;
	tw_tracer_enabled_fn *enabled_garbage_collection;
	tw_tracer_trace_fn *trace_garbage_collection;
	tw_tracer_enabled_fn *enabled_ports;
	tw_tracer_trace_fn *trace_ports;
	tw_tracer_enabled_fn *enabled_procs;
	tw_tracer_trace_fn *trace_procs;
	tw_tracer_enabled_fn *enabled_receive;
	tw_tracer_trace_fn *trace_receive;
	tw_tracer_enabled_fn *enabled_running_ports;
	tw_tracer_trace_fn *trace_running_ports;
	tw_tracer_enabled_fn *enabled_running_procs;
	tw_tracer_trace_fn *trace_running_procs;
	tw_tracer_enabled_fn *enabled_send;
	tw_tracer_trace_fn *trace_send;
};

/* The symbol that a shared object defines, for tracer.module_path and `tracewheel record --tracer`. */
extern __attribute__((visibility("default"))) const struct tw_tracer_module tracewheel_tracer;
#define TW_TRACER_MODULE_SYMBOL "tracewheel_tracer"

/* Counts of one session, since it was made. */
struct tw_tracer_stats {
	uint64_t nested;       /* events inside a callback, or inside another hit of the thread: not made */
	uint64_t no_thread;    /* events of threads that were ending, or that a filter kept from joining: not made */
	uint64_t wrong_answer; /* events discarded because `enabled` answered something else */
	uint64_t removed;      /* processes that lost their flags because `enabled` answered TW_TRACER_REMOVE */
};

/* Threads: any.  Errors: TW_EBADARG: not a session with a tracer module. */
int tw_tracer_module_stats(struct tw_session *session, struct tw_tracer_stats *out);

/* A tag as OTP writes it; NULL: none. */
const char *tw_tracer_tag_name(enum tw_tracer_tag tag);

/*
 * tw_tracer_message - the message that a queue would have received: {trace,Pid,call,{M,F,Args}}, {seq_trace,Label,Info}.
 *
 * For tests and for tracers that write messages.  Takes the time stamp that options ask for now.
 * Returns none when the arena is full.  Threads: the arena's; in callbacks with an arena that does not allocate.
 */
struct tw_term tw_tracer_message(struct tw_arena *arena, enum tw_tracer_tag tag, struct tw_term tracee,
				 struct tw_term term, const struct tw_tracer_options *options);

#ifdef __cplusplus
}
#endif

#endif
