/* SPDX-License-Identifier: Apache-2.0 */
/*
 * info.h - the settings of sessions, as Erlang terms.
 *
 * The answers are those of Erlang's trace:info/3 and trace:session_info/1, so existing code can show and compare
 * them.  Processes are pids, ports are ports, functions {Module,Function,Arity}, sessions {Name,Id}, where Id is the
 * session's weak id.
 *
 * Threads  any, outside of hits.  Inside a transaction of the calling thread the answers are those after its commit.
 * Arena    the caller's: answers live in it.
 * Source   OTP: trace:info/3, trace:session_info/1, as of OTP 29.
 */
#ifndef TRACEWHEEL_INFO_H
#define TRACEWHEEL_INFO_H

#include "tracewheel/session.h"
#include "tracewheel/term.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * tw_trace_info - the settings of one session.
 *
 * @what	a pid, new, new_processes, a port, new_ports (items flags, tracer); {M,F,A} without wildcards (traced,
 *		match_spec, meta, meta_match_spec, call_count, call_time, call_memory, all); on_load (the same); send,
 *		'receive' (match_spec); system (all).
 * @item	an atom.
 * @out		{Item,Value}; undefined for a process or port that does not exist.
 *
 * Values of functions: false where nothing is set, undefined where there is no such function.
 *
 *	traced			global, local
 *	match_spec		[], or the specification; likewise meta_match_spec
 *	meta, tracer		destination of the events: {capture,Path}; [] for none
 *	call_count		an integer; on_load: true; likewise
 *	call_time		[{Pid,Count,Seconds,Microseconds}]
 *	call_memory		[{Pid,Count,Words}]; for both, tw_counts_refused() counts calls that found no space
 *	all			[{Item,Value}] of all of them; of system: {system,[busy_port,{long_gc,1},...]}
 *
 * Errors: TW_EBADARG (other things, other items), TW_EDEAD, TW_EDEADLK in a hit, TW_ENOMEM (the arena is full).
 */
int tw_trace_info(struct tw_session *session, struct tw_term what, struct tw_term item, struct tw_arena *arena,
		  struct tw_term *out);

/*
 * tw_session_info - the sessions that affect a process, a port, a function or a kind of event.
 *
 * @what	all; a pid; a port; {M,F,A} without wildcards; new, new_processes; new_ports; on_load; send, 'receive'.
 * @out		[{Name,Id}], newest first; undefined for a process, port or function that does not
 *		exist.
 *
 * all, send and 'receive' give every session: each has a pattern for messages, which accepts all of them at first.
 * Errors: TW_EBADARG, TW_EDEADLK in a hit, TW_ENOMEM (the arena is full).
 */
int tw_session_info(struct tw_term what, struct tw_arena *arena, struct tw_term *out);

#ifdef __cplusplus
}
#endif

#endif
