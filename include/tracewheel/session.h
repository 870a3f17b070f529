/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session.h - trace sessions: which events are traced, of which processes and functions, and where they go.
 *
 * Sessions are isolated: each has its own tracer, its own flags on processes and its own settings on
 * functions, and none can see or change another's.  A call that two sessions trace gives one event to each.
 *
 *	struct tw_session *session;
 *	struct tw_tracer tracer = { .kind = TW_TRACER_CAPTURE, .capture_path = "mine.tw" };
 *
 *	tw_session_create("mine", &tracer, &session);
 *	tw_trace_process(session, TW_PID_ALL, true, TW_FLAG_CALL | TW_FLAG_MONOTONIC_TIMESTAMP);
 *	tw_trace_function(session, "vm", "_", TW_ARITY_ANY, TW_MATCH_TRUE, TW_FUNCTION_LOCAL);
 *	...
 *	tw_session_destroy(session);
 *	tw_session_put(session);
 *
 * Handles    Counted: create and get give one, put takes one.  Putting the last one destroys the session in the
 *	      background; put never waits.  A weak id never keeps a session alive.
 * Threads    any, outside of hits; changes are served in order of arrival and return when every thread sees them.
 * Errors     those of tracewheel/error.h, and TW_EDEADLK inside a hit from every call that makes a change.
 * Weak ids   tw_session_lock() makes a handle of one: lock, call, put; it returns TW_EDEAD for a destroyed session.
 * Source     OTP: module trace (session_create/3, session_destroy/1, process/4, function/4).
 */
#ifndef TRACEWHEEL_SESSION_H
#define TRACEWHEEL_SESSION_H

#include "tracewheel/error.h"
#include "tracewheel/process.h"
#include "tracewheel/term.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct tw_session;
struct tw_tracer_module;

/* Identifies a session without keeping it alive; 0 is none.  Never reused in a process. */
typedef uint64_t tw_session_weak;

/* Destination of a session's events, fixed for its life. */
enum tw_tracer_kind {
	TW_TRACER_NONE = 0, /* nowhere: for counters.  OTP: undefined */
	TW_TRACER_CAPTURE,  /* a directory on disk, written by a thread of the library.  OTP: a port */
	TW_TRACER_QUEUE,    /* messages received by the program itself: queue.h.  OTP: a pid */
	/*
	 * The bytes of a capture, written in sequence to a pipe, a socket or a file, for tw_capture_open_stream() and
	 * `tracewheel print -` (report, flame and info read it when it has ended).  Written by a thread of the library, at most
	 * 20 ms late.  When the reader goes away, the tracer is gone, as in queue.h; there is no SIGPIPE.  A reader that stops
	 * delays that thread, and the program only as on_full allows.  OTP: a port.
	 */
	TW_TRACER_STREAM,
	TW_TRACER_MODULE /* callbacks, called by the thread that makes the event: tracer.h.  OTP: {Module,State} */
};

/* Policy of a thread whose ring is full. */
enum tw_on_full { TW_ON_FULL_DROP = 0, TW_ON_FULL_BLOCK, TW_ON_FULL_OVERWRITE };

/* Zeroed fields mean the defaults. */
struct tw_tracer {
	enum tw_tracer_kind kind;
	const char *capture_path; /* borrows */
	bool force;		  /* replace an existing capture */
	enum tw_on_full on_full;
	uint64_t ring_bytes; /* a power of two from 64 KiB to 1 GiB; 0: 4 MiB, for a queue 1 MiB */
	uint64_t cap_bytes;  /* limit for all rings of this session; 0: 256 MiB */
	/*
	 * TW_TRACER_QUEUE: the process that is the tracer, independent of the receiving thread; 0: the receiving
	 * process.  A process that does not exist (any more) is accepted: then the tracer is gone from the beginning.
	 */
	tw_pid tracer_pid;
	int stream_fd; /* TW_TRACER_STREAM: borrows: duplicated */
	/*
	 * TW_TRACER_MODULE: borrows, copied; or the path of a shared object that exports one (with a slash, or searched for
	 * by dlopen()), which stays loaded.  The state is copied; none: the empty list.
	 */
	const struct tw_tracer_module *module;
	const char *module_path;
	struct tw_term state;
};

/*
 * tw_session_create - make a session.
 *
 * @name	borrows: 0 .. 255 bytes of UTF-8; need not be unique.
 * @tracer	borrows; NULL: none.
 * @out		gives a handle.
 *
 * The number of sessions is not limited, but only 64 can have settings: setting in another returns TW_ELIMIT.
 *
 * Errors: TW_EBADARG, TW_ENOMEM, and those of making a capture
 * (TW_EEXIST, TW_ENOENT, TW_EPERM, TW_ENOSPC, TW_EIO); TW_ENOTSUP when libtracewheel-capture is not found.
 * With a tracer module: TW_EBADARG where a mandatory callback or the exported structure is missing, TW_ENOENT where the
 * shared object cannot be loaded.
 * Source: trace:session_create/3.
 */
int tw_session_create(const char *name, const struct tw_tracer *tracer, struct tw_session **out);

/* Adds a handle; returns the session. */
struct tw_session *tw_session_get(struct tw_session *session);
/* Removes a handle; NULL is allowed.  Removing the last one destroys the session in the background. */
void tw_session_put(struct tw_session *session);

tw_session_weak tw_session_weak_of(const struct tw_session *session);
/* Makes a handle from a weak id.  TW_EDEAD when the session is destroyed. */
int tw_session_lock(tw_session_weak weak, struct tw_session **out);

/*
 * tw_session_destroy - end a session: when this returns, all its flags and breakpoints are removed, its capture is
 * complete, and it makes no more events.  Handles stay valid, and every call with them returns TW_EDEAD.
 *
 * Returns 1, or 0 when it was destroyed before.  Source: trace:session_destroy/1.
 */
int tw_session_destroy(struct tw_session *session);
/* The same by weak id: 1, or TW_EBADARG when the session no longer exists. */
int tw_session_destroy_weak(tw_session_weak weak);

/* The session's name; lends as long as the handle. */
const char *tw_session_name(const struct tw_session *session);

/* Clears sessions whose last handle was put; returns their number.  Any change of a session does so too. */
int tw_progress(void);

/* ---- processes ---- */

/* Flags of a process in a session.  OTP's names. */
enum {
	TW_FLAG_CALL = 1 << 0,
	TW_FLAG_ARITY = 1 << 1, /* events carry the arity in place of the arguments */
	TW_FLAG_TIMESTAMP = 1 << 2,
	TW_FLAG_STRICT_MONOTONIC_TIMESTAMP = 1 << 3,
	TW_FLAG_MONOTONIC_TIMESTAMP = 1 << 4,
	TW_FLAG_SILENT = 1 << 5, /* match specifications run, but there are no call events */
	TW_FLAG_SEND = 1 << 6,
	TW_FLAG_RECEIVE = 1 << 7,
	TW_FLAG_PROCS = 1 << 8, /* spawn, exit, links, registered names */
	TW_FLAG_RUNNING = 1 << 9,
	TW_FLAG_RUNNING_PROCS = 1 << 10, /* as running */
	TW_FLAG_EXITING = 1 << 11,
	TW_FLAG_GARBAGE_COLLECTION = 1 << 12,
	TW_FLAG_RETURN_TO = 1 << 13, /* with call */
	/*
	 * A thread that is a process spawns by pthread_create; inheritance needs a call by that name in some object (not
	 * by a pointer, nor as thrd_create).  A flag that a match specification sets takes effect there after the next
	 * change of a session.
	 */
	TW_FLAG_SET_ON_SPAWN = 1 << 14,
	TW_FLAG_SET_ON_FIRST_SPAWN = 1 << 15, /* takes precedence over set_on_spawn */
	TW_FLAG_SET_ON_LINK = 1 << 16,
	TW_FLAG_SET_ON_FIRST_LINK = 1 << 17, /* takes precedence over set_on_link */
	TW_FLAG_SCHEDULER_ID = 1 << 18,
	TW_FLAG_PORTS = 1 << 19,	 /* ports only */
	TW_FLAG_RUNNING_PORTS = 1 << 20, /* ports only */
	/*
	 * A flag of the whole session, set or cleared for TW_PID_ALL only: `timestamp` shows the processor time that all
	 * threads of the program have used, {0,Secs,MicroSecs}, not the time of day.  The other two kinds of stamp do not
	 * change, and no process has it among its flags.  Each such stamp costs a system call, in which the kernel adds up
	 * all threads.  Captures contain the time of each event as well.  OTP: a flag of the node, for all sessions.
	 */
	TW_FLAG_CPU_TIMESTAMP = 1 << 21,
	TW_FLAG_ALL = (1 << 21) - 1 /* every flag except cpu_timestamp, even silent */
};

/*
 * tw_trace_process - set or clear flags.
 *
 * @pid		a process, or TW_PID_ALL (existing and new ones), TW_PID_EXISTING, TW_PID_NEW.
 * @how		true: add the flags; false: remove them.
 * @flags	TW_FLAG_*; 0 changes nothing.
 *
 * Among time stamps, timestamp takes precedence over strict_monotonic, and that over monotonic; all are kept, and
 * removing one activates the next.
 * Returns the number of processes: 1 for a pid, 0 for TW_PID_NEW and where @flags has no flag of processes;
 * TW_EBADARG for a pid that does not exist, an unknown flag, TW_FLAG_CPU_TIMESTAMP without TW_PID_ALL or where the
 * system refuses that clock (then nothing is changed), TW_EDEAD.
 * Source: trace:process/4.
 */
int tw_trace_process(struct tw_session *session, tw_pid pid, bool how, uint32_t flags);

/* The flags of a process in this session, or of new ones (TW_PID_NEW).  TW_EBADARG, TW_EDEAD. */
int tw_trace_process_flags(struct tw_session *session, tw_pid pid, uint32_t *flags);

/*
 * tw_process_flag_name - a flag as OTP writes it.
 *
 * @bit		one TW_FLAG_*.  Returns a constant; NULL: no flag.
 */
const char *tw_process_flag_name(uint32_t bit);
/* The flag of that name, `all` included; 0: none. */
uint32_t tw_process_flag_named(const char *name);

/* ---- functions ---- */

/* Any arity. */
#define TW_ARITY_ANY (-2147483647 - 1)

/* The operation on the functions.  OTP: false | true | restart | pause; match specs have separate calls. */
enum tw_match { TW_MATCH_FALSE = 0, TW_MATCH_TRUE = 1, TW_MATCH_RESTART = 2, TW_MATCH_PAUSE = 3 };

/*
 * Kinds of function tracing: global alone, or any combination of the others.  Setting global removes the others from
 * that function in this session, and setting any of them removes global.
 */
enum {
	/* Call events of processes with TW_FLAG_CALL, for local and global calls. */
	TW_FUNCTION_LOCAL = 1,
	/* Counts calls by every process, whatever its flags. */
	TW_FUNCTION_CALL_COUNT = 2,
	/* Call events for calls that name the module, of exported functions.  0 means this as well. */
	TW_FUNCTION_GLOBAL = 4,
	/* Call events of every process, whatever its flags, stamped as by TW_FLAG_TIMESTAMP. */
	TW_FUNCTION_META = 8,
	/* Counts calls and time, by process with TW_FLAG_CALL. */
	TW_FUNCTION_CALL_TIME = 16,
	/* Counts calls and allocated words, by process with TW_FLAG_CALL. */
	TW_FUNCTION_CALL_MEMORY = 32
};

/*
 * tw_trace_function - trace calls of functions, or stop tracing them.
 *
 * @module, @function	names; "_" is any.  Only OTP's wildcards are accepted: M:F/any, M:_/any, _:_/any.
 * @arity	TW_ARITY_ANY, or that of the function; an impossible arity matches none.
 * @match	TW_MATCH_TRUE sets the kinds afresh: without a match specification, counters at 0.  TW_MATCH_FALSE
 *		removes the named kinds and no others.  TW_MATCH_RESTART zeroes the named counters and resumes
 *		counting, TW_MATCH_PAUSE suspends it; both have no effect where that kind is not counted.
 * @flags	TW_FUNCTION_*.
 *
 * Returns the number of functions that match; TW_EBADARG, TW_ELIMIT (then nothing is changed), TW_EDEAD, TW_ENOMEM.
 * TW_ELIMIT: a process has 1,048,576 counters of TW_FUNCTION_CALL_COUNT, one for each function and session, and as many of
 * call_time and call_memory together; setting one of these again takes a second one until the change is visible.
 * Inside a transaction the change becomes visible with tw_trace_commit().
 * Source: trace:function/4.
 */
int tw_trace_function(struct tw_session *session, const char *module, const char *function, int arity,
		      enum tw_match match, uint32_t flags);

/*
 * tw_trace_function_match - trace the calls that a match specification accepts.
 *
 * @program	of tw_match_compile() for TW_MATCH_CALL; borrows until other calls have replaced or removed it
 *		everywhere, or the session is destroyed.
 * @flags	TW_FUNCTION_GLOBAL (or 0); or TW_FUNCTION_LOCAL, TW_FUNCTION_META or both, each with its own
 *		specification.  Counters may be set in the same call, and have none.
 *
 * The specification sees the words of a call as integers.  The X of {message,X} is the last element of the event.
 * Replaces an earlier specification of these kinds; TW_MATCH_TRUE removes it.
 * Result and errors as for tw_trace_function().  Source: trace:function/4 with a match specification.
 */
struct tw_match_program;
int tw_trace_function_match(struct tw_session *session, const char *module, const char *function, int arity,
			    const struct tw_match_program *program, uint32_t flags);

/*
 * tw_trace_on_load - set tracing for functions declared from now on; existing ones are not affected.
 *
 * @match	TW_MATCH_TRUE or TW_MATCH_FALSE, by kinds as above; the other two have no effect.
 * @program	with TW_MATCH_TRUE, borrows as above; NULL: every call.
 *
 * Returns 0; TW_EBADARG, TW_EDEAD.  Source: trace:function/4 of on_load.
 */
int tw_trace_on_load(struct tw_session *session, enum tw_match match, const struct tw_match_program *program,
		     uint32_t flags);

/*
 * tw_trace_call_count - read a counter.
 *
 * @arity	that of the function; TW_ARITY_ANY: a function of a loaded object, whose arity is not known.
 *
 * Returns 1 and the count, or 0 when the function is not counted in this session; TW_EBADARG when there
 * is no such function, TW_EDEAD.  Source: trace:info/3, call_count.
 */
int tw_trace_call_count(struct tw_session *session, const char *module, const char *function, int arity,
			uint64_t *count);

/*
 * tw_counts_refused - number of calls since the program began that call_time and call_memory did not count, in any
 * session, for lack of space.  A thread has 65,536 rows, one for each function, session and process that it counted.  A
 * process has 256 bytes for each nine pairs of session and counter beyond the first four, and for each open call with
 * more than four of them to report, up to 16 MiB with its chains of tail calls.  While this number does not grow, these
 * counters are complete, for any number of sessions.  Threads: any.
 */
uint64_t tw_counts_refused(void);

/* ---- messages ---- */

struct tw_match_error;

/*
 * tw_trace_send, tw_trace_recv - select the messages for which processes with the flag send (receive) make events.
 *
 * @match	TW_MATCH_TRUE: all, as in a new session; TW_MATCH_FALSE: none.  Either removes a specification.
 *
 * Returns 1; TW_EBADARG (restart, pause), TW_EDEAD, TW_EDEADLK.  Source: trace:send/3, trace:recv/3.
 */
int tw_trace_send(struct tw_session *session, enum tw_match match);
int tw_trace_recv(struct tw_session *session, enum tw_match match);

/*
 * The same by a match specification over [Receiver, Message] or [Node, Sender, Message], as Erlang text or as a term.
 *
 * @spec	borrows; [] is the same as TW_MATCH_TRUE.
 * @error	set on TW_EBADARG and TW_ELIMIT of the specification; may be NULL.
 *
 * Receiver is as the program wrote it: a pid or a registered name.  The X of {message,X} is the last element of the
 * event.  A process with flag silent makes no events while a specification is set.  Functions without a meaning here
 * are refused: match.h, TW_MATCH_SEND and TW_MATCH_RECEIVE.
 * Returns 1; TW_EBADARG, TW_ELIMIT, TW_ENOMEM, TW_EDEAD, TW_EDEADLK: then nothing is changed.
 */
int tw_trace_send_text(struct tw_session *session, const char *text, size_t bytes, struct tw_match_error *error);
int tw_trace_recv_text(struct tw_session *session, const char *text, size_t bytes, struct tw_match_error *error);
int tw_trace_send_spec(struct tw_session *session, struct tw_term spec, struct tw_match_error *error);
int tw_trace_recv_spec(struct tw_session *session, struct tw_term spec, struct tw_match_error *error);

/* ---- the system ---- */

/*
 * tw_trace_system - start or stop monitoring a system event of all processes and ports.
 *
 * @event	an atom.
 * @value	false ends the monitor; otherwise by event:
 *
 *	long_gc			N: a collection takes N milliseconds or more; 0 means 1
 *	long_schedule		N: a process or port runs for N milliseconds or more without a pause; 0 means 1
 *	large_heap		N: all blocks of a heap have N words or more after a collection; less than 16384 means 16384
 *	long_message_queue	{Disable,Enable}, 0 <= Disable < Enable: numbers of waiting messages
 *	busy_port		true: a process waits because it sends to a busy port
 *	busy_dist_port		true: the same for a port to another node
 *
 * The session's queue receives {monitor,PidOrPort,Event,Info}, never with a time stamp, whatever the flags of the process;
 * events of the tracer itself are not reported.  The run-time reports what monitors measure (tracewheel/runtime.h); threads
 * that are processes report nothing (`tracewheel record --long-schedule` samples those).  A later value replaces an earlier
 * one; each message queue then counts as short until its length is reported again.  A run or collection that began before
 * any session had the monitor is not measured.
 *
 * Returns 0, also when the tracer is gone (then nothing is set).  Errors: TW_EBADARG (the session's tracer is not a queue; an
 * unknown event; any other value, limits above 2^64 - 1 included), TW_EDEAD, TW_EDEADLK, TW_ELIMIT.
 * Inside a transaction the change takes effect at once.  Source: trace:system/3.
 */
int tw_trace_system(struct tw_session *session, struct tw_term event, struct tw_term value);

/* ---- several changes, one switch ---- */

/*
 * tw_trace_begin - collect changes of functions, in any sessions, until one of the two calls below.
 *
 * They become visible at one moment, for all threads.  Meanwhile the thread holds the permit: changes by other
 * threads wait, and so do dlopen() and dlclose() in traced programs.  Flags of processes are not collected: they
 * change at once.  Errors: TW_EDEADLK inside another transaction of this thread.
 */
int tw_trace_begin(void);
/*
 * Makes the changes visible; returns the number of places changed.  TW_EBADARG without begin; if a change failed for
 * lack of memory or space, its error, and all changes are discarded.
 */
int tw_trace_commit(void);
/* Discards the changes.  TW_EBADARG without begin. */
int tw_trace_abort(void);

#ifdef __cplusplus
}
#endif

#endif
