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
 * Source     OTP: module trace (session_create/3, session_destroy/1, process/4, function/4).
 */
#ifndef TRACEWHEEL_SESSION_H
#define TRACEWHEEL_SESSION_H

#include "tracewheel/error.h"
#include "tracewheel/process.h"

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
	TW_TRACER_CAPTURE   /* a directory on disk, written by a thread of the library.  OTP: a port */
};

/* What a thread does when its ring is full. */
enum tw_on_full { TW_ON_FULL_DROP = 0, TW_ON_FULL_BLOCK, TW_ON_FULL_OVERWRITE };

/* Zeroed fields mean the defaults. */
struct tw_tracer {
	enum tw_tracer_kind kind;
	const char *capture_path; /* borrows */
	bool force;		  /* replace a capture that is there */
	enum tw_on_full on_full;
	uint64_t ring_bytes; /* a power of two from 64 KiB to 1 GiB; 0: 4 MiB */
	uint64_t cap_bytes;  /* of all rings of this session; 0: 256 MiB */
};

/*
 * tw_session_create - make a session.
 *
 * @name	borrows: 0 .. 255 bytes of UTF-8; need not be unique.
 * @tracer	borrows; NULL: none.
 * @out		gives a handle.
 *
 * Errors: TW_EBADARG, TW_ELIMIT (64 sessions at once), TW_ENOMEM, and those of making a capture
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
	TW_FLAG_SILENT = 1 << 5 /* match specifications are run, but there are no call events */
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
 * Returns the number of processes: 1 for a pid, 0 for TW_PID_NEW; TW_EBADARG for a pid that does not
 * exist or an unknown flag (then nothing is changed), TW_EDEAD.
 * Source: trace:process/4.
 */
int tw_trace_process(struct tw_session *session, tw_pid pid, bool how, uint32_t flags);

/* The flags of a process in this session, or of new ones (TW_PID_NEW).  TW_EBADARG, TW_EDEAD. */
int tw_trace_process_flags(struct tw_session *session, tw_pid pid, uint32_t *flags);

/* ---- functions ---- */

/* Any arity. */
#define TW_ARITY_ANY (-1)

/* What to do with the functions.  OTP: false | true | restart | pause; match specs have calls of their own. */
enum tw_match { TW_MATCH_FALSE = 0, TW_MATCH_TRUE = 1, TW_MATCH_RESTART = 2, TW_MATCH_PAUSE = 3 };

enum {
	TW_FUNCTION_LOCAL = 1,	   /* call events of processes with TW_FLAG_CALL */
	TW_FUNCTION_CALL_COUNT = 2 /* counts calls by every process, whatever its flags */
};

/*
 * tw_trace_function - trace calls of functions, or stop it.
 *
 * @module, @function	names; "_" is any.  Only OTP's wildcards are accepted: M:F/any, M:_/any, _:_/any.
 * @arity	0 .. 255 or TW_ARITY_ANY.
 * @flags	TW_FUNCTION_*, at least one; with TW_MATCH_FALSE they name what to remove.
 *
 * TW_MATCH_RESTART zeroes the counters, TW_MATCH_PAUSE keeps them from counting; both change nothing
 * where nothing is counted.
 * Returns the number of functions that match; TW_EBADARG, TW_EDEAD, TW_ENOMEM.
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
 * @flags	TW_FUNCTION_LOCAL.
 *
 * The specification sees the words of a call as integers.  What it adds with {message,X} is the last
 * element of the event.  Replaces an earlier specification; TW_MATCH_TRUE removes it.
 * Returns and errors as tw_trace_function().  Source: trace:function/4 with a match specification.
 */
struct tw_match_program;
int tw_trace_function_match(struct tw_session *session, const char *module, const char *function, int arity,
			    const struct tw_match_program *program, uint32_t flags);

/*
 * tw_trace_call_count - read a counter.
 *
 * Returns 1 and the count, or 0 when the function is not counted in this session; TW_EBADARG when there
 * is no such function, TW_EDEAD.  Source: trace:info/3, call_count.
 */
int tw_trace_call_count(struct tw_session *session, const char *module, const char *function, int arity,
			uint64_t *count);

/* ---- several changes, one switch ---- */

/*
 * tw_trace_begin - collect changes of functions, of any sessions, until one of the two calls below.
 *
 * They become visible at one moment, for all threads.  The thread holds the permit meanwhile: others
 * wait, and so do dlopen() and dlclose() in traced programs.  Not for processes: their flags change
 * at once.  Errors: TW_EDEADLK inside another transaction of this thread.
 */
int tw_trace_begin(void);
/* Makes the changes visible; returns how many places changed.  TW_EBADARG without begin. */
int tw_trace_commit(void);
/* Forgets the changes.  TW_EBADARG without begin. */
int tw_trace_abort(void);

#ifdef __cplusplus
}
#endif

#endif
