/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session.h - trace sessions: who asks for events, of which processes and functions, and where they go.
 *
 * Sessions are isolated: each has its own tracer, its own flags on processes and its own settings on
 * functions, and none can see or disturb another's.  A call that two sessions want gives one event to
 * each.
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
 * Handles    Counted: create and get give one, put takes one.  When the last is put, the session is
 *	      destroyed in the background; put never waits.  A weak id never keeps a session alive.
 * Threads    any, outside of hits; changes wait for each other (first come, first served) and return
 *	      when every thread sees them.
 * Errors     those of tracewheel/error.h, and TW_EDEADLK inside a hit from every call that changes something.
 * Weak ids   tw_session_lock() makes a handle of one: lock, call, put, and a session that is gone is TW_EDEAD at the lock.
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

/* Names a session without keeping it; 0 names none.  Never reused in a process. */
typedef uint64_t tw_session_weak;

/* Where a session's events go; for its whole life. */
enum tw_tracer_kind {
	TW_TRACER_NONE = 0, /* nowhere: for counters.  OTP: undefined */
	TW_TRACER_CAPTURE,  /* a directory on disk, written by a thread of the library.  OTP: a port */
	TW_TRACER_QUEUE,    /* messages that the program receives itself: queue.h.  OTP: a pid */
	/*
	 * The bytes of a capture, one behind the other, to a pipe, a socket or a file, for tw_capture_open_stream()
	 * and `tracewheel print -` (report, flame and info read it when it has ended).  Written by a thread of the library, at most 20 ms late.  When the reader goes
	 * away the tracer is gone, as in queue.h; there is no SIGPIPE.  A reader that stops holds up that thread
	 * only, and the program as on_full says.  OTP: a port.
	 */
	TW_TRACER_STREAM
};

/* What a thread does when its ring is full. */
enum tw_on_full { TW_ON_FULL_DROP = 0, TW_ON_FULL_BLOCK, TW_ON_FULL_OVERWRITE };

/* Zeroed fields mean the defaults. */
struct tw_tracer {
	enum tw_tracer_kind kind;
	const char *capture_path; /* borrows */
	bool force;		  /* replace a capture that is there */
	enum tw_on_full on_full;
	uint64_t ring_bytes; /* a power of two from 64 KiB to 1 GiB; 0: 4 MiB, of a queue 1 MiB */
	uint64_t cap_bytes;  /* of all rings of this session; 0: 256 MiB */
	/*
	 * TW_TRACER_QUEUE: the process that is the tracer, whoever receives for it; 0: whoever receives.  One that does
	 * not exist (any more) is accepted: then the tracer is gone from the beginning.
	 */
	tw_pid tracer_pid;
	int stream_fd; /* TW_TRACER_STREAM: borrows: duplicated */
};

/*
 * tw_session_create - make a session.
 *
 * @name	borrows: 0 .. 255 bytes of UTF-8; need not be unique.
 * @tracer	borrows; NULL: none.
 * @out		gives a handle.
 *
 * There may be any number of sessions, of which 64 can have set something: beyond that, setting gives TW_ELIMIT.
 *
 * Errors: TW_EBADARG, TW_ENOMEM, and those of making a capture
 * (TW_EEXIST, TW_ENOENT, TW_EPERM, TW_ENOSPC, TW_EIO); TW_ENOTSUP when libtracewheel-capture is not found.
 * Source: trace:session_create/3.
 */
int tw_session_create(const char *name, const struct tw_tracer *tracer, struct tw_session **out);

/* One handle more; returns the session. */
struct tw_session *tw_session_get(struct tw_session *session);
/* One handle less; NULL is allowed.  The last one has the session destroyed in the background. */
void tw_session_put(struct tw_session *session);

tw_session_weak tw_session_weak_of(const struct tw_session *session);
/* From a weak id to a handle.  TW_EDEAD when the session is destroyed. */
int tw_session_lock(tw_session_weak weak, struct tw_session **out);

/*
 * tw_session_destroy - end it: all its flags and breakpoints are gone when this returns, its capture is
 * complete, and no event is made any more.  Handles stay valid, and every call with them gives TW_EDEAD.
 *
 * Returns 1, or 0 when it was destroyed before.  Source: trace:session_destroy/1.
 */
int tw_session_destroy(struct tw_session *session);
/* The same by weak id: 1, or TW_EBADARG when there is no such session any more. */
int tw_session_destroy_weak(tw_session_weak weak);

/* The name it was created with; lends as long as the handle. */
const char *tw_session_name(const struct tw_session *session);

/* Clears sessions whose last handle was put; returns how many.  Any change of a session does so too. */
int tw_progress(void);

/* ---- processes ---- */

/* Flags of a process in a session.  OTP's names. */
enum {
	TW_FLAG_CALL = 1 << 0,
	TW_FLAG_ARITY = 1 << 1, /* events carry the arity in place of the arguments */
	TW_FLAG_TIMESTAMP = 1 << 2,
	TW_FLAG_STRICT_MONOTONIC_TIMESTAMP = 1 << 3,
	TW_FLAG_MONOTONIC_TIMESTAMP = 1 << 4,
	TW_FLAG_SILENT = 1 << 5, /* match specifications are run, but there are no call events */
	TW_FLAG_SEND = 1 << 6,
	TW_FLAG_RECEIVE = 1 << 7,
	TW_FLAG_PROCS = 1 << 8, /* spawn, exit, links, registered names */
	TW_FLAG_RUNNING = 1 << 9,
	TW_FLAG_RUNNING_PROCS = 1 << 10, /* as running */
	TW_FLAG_EXITING = 1 << 11,
	TW_FLAG_GARBAGE_COLLECTION = 1 << 12,
	TW_FLAG_RETURN_TO = 1 << 13, /* with call */
	/*
	 * Threads that are processes spawn by pthread_create: seen where an object calls it by its name (not by a pointer,
	 * nor as thrd_create).  A flag that a match specification sets is seen there after the next change of a session.
	 */
	TW_FLAG_SET_ON_SPAWN = 1 << 14,
	TW_FLAG_SET_ON_FIRST_SPAWN = 1 << 15, /* wins over set_on_spawn */
	TW_FLAG_SET_ON_LINK = 1 << 16,
	TW_FLAG_SET_ON_FIRST_LINK = 1 << 17, /* wins over set_on_link */
	TW_FLAG_SCHEDULER_ID = 1 << 18,
	TW_FLAG_PORTS = 1 << 19,	 /* ports only */
	TW_FLAG_RUNNING_PORTS = 1 << 20, /* ports only */
	/*
	 * The whole session's, and set or cleared for TW_PID_ALL only: what `timestamp` shows is the processor time that
	 * all threads of the program have used, {0,Secs,MicroSecs}, and not the time of day.  The other two kinds of stamp
	 * are as ever, and no process shows it among its flags.  Each event so stamped makes a system call, and the kernel
	 * adds up all threads.  Event times in captures are there as well.  OTP: of the node, in all sessions.
	 */
	TW_FLAG_CPU_TIMESTAMP = 1 << 21,
	TW_FLAG_ALL = (1 << 21) - 1 /* every flag but cpu_timestamp: silent as well */
};

/*
 * tw_trace_process - set or clear flags.
 *
 * @pid		a process, or TW_PID_ALL (existing and new ones), TW_PID_EXISTING, TW_PID_NEW.
 * @how		true: add the flags; false: remove them.
 * @flags	TW_FLAG_*; 0 changes nothing.
 *
 * Of several time stamps timestamp wins over strict_monotonic, and that over monotonic; all are
 * remembered, and removing one shows the next.
 * Returns the number of processes: 1 for a pid, 0 for TW_PID_NEW and where no flag of processes is named;
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

/* What to do with the functions.  OTP: false | true | restart | pause; match specs have calls of their own. */
enum tw_match { TW_MATCH_FALSE = 0, TW_MATCH_TRUE = 1, TW_MATCH_RESTART = 2, TW_MATCH_PAUSE = 3 };

/*
 * The kinds.  Global alone, or any of the others together: setting global ends the others on that function in this
 * session, and setting any of them ends global.
 */
enum {
	/* Call events of processes with TW_FLAG_CALL, however the function is called. */
	TW_FUNCTION_LOCAL = 1,
	/* Counts calls by every process, whatever its flags. */
	TW_FUNCTION_CALL_COUNT = 2,
	/* Call events of calls that name the module, of functions that are exported.  0 means this as well. */
	TW_FUNCTION_GLOBAL = 4,
	/* Call events of every process, whatever its flags, stamped as by TW_FLAG_TIMESTAMP. */
	TW_FUNCTION_META = 8,
	/* Counts calls and time, by process with TW_FLAG_CALL. */
	TW_FUNCTION_CALL_TIME = 16,
	/* Counts calls and allocated words, by process with TW_FLAG_CALL. */
	TW_FUNCTION_CALL_MEMORY = 32
};

/*
 * tw_trace_function - trace calls of functions, or stop it.
 *
 * @module, @function	names; "_" is any.  Only OTP's wildcards are accepted: M:F/any, M:_/any, _:_/any.
 * @arity	TW_ARITY_ANY, or that of the function; what no function can have matches none.
 * @match	TW_MATCH_TRUE sets; what is set begins anew, without a match specification, counters at 0.
 *		TW_MATCH_FALSE removes the kinds named, and only those.  TW_MATCH_RESTART zeroes the counters
 *		named and lets them count, TW_MATCH_PAUSE keeps them from counting; both change nothing where
 *		that kind is not counted.
 * @flags	TW_FUNCTION_*.
 *
 * Returns the number of functions that match; TW_EBADARG (then nothing is changed), TW_EDEAD, TW_ENOMEM.
 * Inside a transaction the change becomes visible with tw_trace_commit().
 * Source: trace:function/4.
 */
int tw_trace_function(struct tw_session *session, const char *module, const char *function, int arity,
		      enum tw_match match, uint32_t flags);

/*
 * tw_trace_function_match - trace the calls that a match specification accepts.
 *
 * @program	of tw_match_compile() for TW_MATCH_CALL; borrows until another call has replaced or removed it
 *		everywhere, or the session is destroyed.
 * @flags	TW_FUNCTION_GLOBAL (or 0); or TW_FUNCTION_LOCAL, TW_FUNCTION_META or both, which each have a
 *		specification of their own.  Counters may be set in the same call, and take none.
 *
 * The specification sees the words of a call as integers.  What it adds with {message,X} is the last
 * element of the event.  Replaces an earlier specification of these kinds; TW_MATCH_TRUE removes it.
 * Returns and errors as tw_trace_function().  Source: trace:function/4 with a match specification.
 */
struct tw_match_program;
int tw_trace_function_match(struct tw_session *session, const char *module, const char *function, int arity,
			    const struct tw_match_program *program, uint32_t flags);

/*
 * tw_trace_on_load - what is to be set on functions that are declared from now on, and none that are there.
 *
 * @match	TW_MATCH_TRUE or TW_MATCH_FALSE, by kinds as above; the other two change nothing.
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
 * tw_counts_refused - how many calls since the program began were not counted by call_time and call_memory, in any
 * session, for want of room: a thread has 65,536 rows, one for each function, session and process that it counted, and a
 * process 256 bytes for each nine pairs of session and counter beyond the first four, and for each open call of which
 * more than four have to be told, up to 16 MiB with its chains of tail calls.
 * While this does not grow, what is read of these counters is whole, for any number of sessions.  Threads: any.
 */
uint64_t tw_counts_refused(void);

/* ---- messages ---- */

struct tw_match_error;

/*
 * tw_trace_send, tw_trace_recv - which messages processes with the flag send (receive) make events of.
 *
 * @match	TW_MATCH_TRUE: all, as in a new session; TW_MATCH_FALSE: none.  Either removes a specification.
 *
 * Returns 1; TW_EBADARG (restart, pause), TW_EDEAD, TW_EDEADLK.  Source: trace:send/3, trace:recv/3.
 */
int tw_trace_send(struct tw_session *session, enum tw_match match);
int tw_trace_recv(struct tw_session *session, enum tw_match match);

/*
 * The same by a match specification over [Receiver, Message] and [Node, Sender, Message]: as Erlang text, or as a term.
 *
 * @spec	borrows; [] is the same as TW_MATCH_TRUE.
 * @error	set on TW_EBADARG and TW_ELIMIT of the specification; may be NULL.
 *
 * Receiver is what the program wrote: a pid, a registered name.  What a specification adds with {message,X} is the
 * last element of the event.  A process with flag silent makes no events where a specification is set.
 * Functions without a meaning here are refused: match.h, TW_MATCH_SEND and TW_MATCH_RECEIVE.
 * Returns 1; TW_EBADARG, TW_ELIMIT, TW_ENOMEM, TW_EDEAD, TW_EDEADLK: then nothing is changed.
 */
int tw_trace_send_text(struct tw_session *session, const char *text, size_t bytes, struct tw_match_error *error);
int tw_trace_recv_text(struct tw_session *session, const char *text, size_t bytes, struct tw_match_error *error);
int tw_trace_send_spec(struct tw_session *session, struct tw_term spec, struct tw_match_error *error);
int tw_trace_recv_spec(struct tw_session *session, struct tw_term spec, struct tw_match_error *error);

/* ---- several changes, one switch ---- */

/*
 * tw_trace_begin - collect changes of functions, of any sessions, until one of the two calls below.
 *
 * They become visible at one moment, for all threads.  The thread holds the permit meanwhile: others
 * wait, and so do dlopen() and dlclose() in traced programs.  Not for processes: their flags change
 * at once.  Errors: TW_EDEADLK inside another transaction of this thread.
 */
int tw_trace_begin(void);
/*
 * Makes the changes visible; returns how many places changed.  TW_EBADARG without begin; the error of one of
 * them that had failed for want of memory or room: then all are forgotten.
 */
int tw_trace_commit(void);
/* Forgets the changes.  TW_EBADARG without begin. */
int tw_trace_abort(void);

#ifdef __cplusplus
}
#endif

#endif
