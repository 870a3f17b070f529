/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kinds.h - the kinds of events, one row each: every enumeration and every table of kinds is an expansion of these lists.
 *
 *	X(NAME, number, word, group, first, second)
 *
 *	NAME		of its constants, TW_CAPTURE_*, and of trace messages TW_TRACER_TAG_* (tracer.h)
 *	number		part of the capture format (docs/format.md): never reused, at most 62
 *	word		the tag of OTP's trace message, and `kind` of JSON (docs/json.md)
 *	group		of enum tw_kind_group
 *	first, second	the members of JSON for the terms of the payload; NULL: no such term
 *
 * Terms are the elements of OTP's trace message after the tag, in order. A reader shows kinds from TW_CAPTURE_TERM_FIRST on
 * that it does not know by their terms.
 *
 * Threads	any: constants only.
 */
#ifndef TRACEWHEEL_KINDS_H
#define TRACEWHEEL_KINDS_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Records that are no events of the program, or belong to one; without a message of OTP's. */
#define TW_RECORD_KINDS(X)                                                                                      \
	X(LOSS, 1, "lost", RECORD, NULL, NULL)	 /* events are missing here: struct tw_capture_loss */          \
	X(SWITCH, 2, "in", RECORD, NULL, NULL)	 /* the thread now runs tracee `id`, 0: none; u64 run_seq */    \
	X(STACK, 7, "stack", RECORD, NULL, NULL) /* of the call before it: return addresses, innermost first */ \
	X(OWN_TIME, 8, "own_time", RECORD, NULL,                                                                \
	  NULL) /* of the tracer, from its ticks on; u64 ticks: tw_capture_own_ns() */                          \
	X(THREAD_STATE, 9, "thread_state", RECORD, NULL, NULL) /* from now on; id: enum tw_capture_thread_state */

/*
 * {trace,Pid,Word,...}. Calls and their ends are of place `id`. Without the flag TERMS the payload of a call is its
 * argument words, of a return_from the word, of a return_to the code address that control came back to.
 */
#define TW_TRACE_KINDS(X)                                                                                \
	X(CALL, 3, "call", CALL, "args", NULL)                                                           \
	X(RETURN_FROM, 4, "return_from", CALL, "value", NULL)                                            \
	X(EXCEPTION_FROM, 5, "exception_from", CALL, "exception", NULL) /* {Class,Value} */              \
	X(RETURN_TO, 6, "return_to", CALL, "mfa", NULL)			/* {M,F,A} or undefined; id 0 */ \
	X(SEND, 16, "send", SEND, "message", "to")                                                       \
	X(SEND_TO_NON_EXISTING_PROCESS, 17, "send_to_non_existing_process", SEND, "message", "to")       \
	X(RECEIVE, 18, "receive", RECEIVE, "message", NULL)                                              \
	X(SPAWN, 19, "spawn", PROCS, "other", "mfa")                                                     \
	X(SPAWNED, 20, "spawned", PROCS, "other", "mfa")                                                 \
	X(EXIT, 21, "exit", PROCS, "reason", NULL)                                                       \
	X(REGISTER, 22, "register", PROCS, "name", NULL)                                                 \
	X(UNREGISTER, 23, "unregister", PROCS, "name", NULL)                                             \
	X(LINK, 24, "link", PROCS, "other", NULL)                                                        \
	X(UNLINK, 25, "unlink", PROCS, "other", NULL)                                                    \
	X(GETTING_LINKED, 26, "getting_linked", PROCS, "other", NULL)                                    \
	X(GETTING_UNLINKED, 27, "getting_unlinked", PROCS, "other", NULL)                                \
	X(IN, 28, "in", RUNNING, "mfa", NULL) /* of a port: its command */                               \
	X(OUT, 29, "out", RUNNING, "mfa", NULL)                                                          \
	X(IN_EXITING, 30, "in_exiting", RUNNING, "mfa", NULL)                                            \
	X(OUT_EXITING, 31, "out_exiting", RUNNING, "mfa", NULL)                                          \
	X(OUT_EXITED, 32, "out_exited", RUNNING, "mfa", NULL)                                            \
	X(GC_MINOR_START, 33, "gc_minor_start", GARBAGE_COLLECTION, NULL, NULL) /* words: TW_GC_SIZES */ \
	X(GC_MINOR_END, 34, "gc_minor_end", GARBAGE_COLLECTION, NULL, NULL)                              \
	X(GC_MAJOR_START, 35, "gc_major_start", GARBAGE_COLLECTION, NULL, NULL)                          \
	X(GC_MAJOR_END, 36, "gc_major_end", GARBAGE_COLLECTION, NULL, NULL)                              \
	X(GC_MAX_HEAP_SIZE, 37, "gc_max_heap_size", GARBAGE_COLLECTION, NULL, NULL)                      \
	X(OPEN, 38, "open", PORTS, "other", "driver")                                                    \
	X(CLOSED, 39, "closed", PORTS, "reason", NULL)

/*
 * X(NAME, number, word): sequential tracing, {seq_trace,Label,{Word,Serial,From,To,Message}}. The constants are
 * TW_CAPTURE_SEQ_*, and `kind` of JSON is "seq_" and the word. Of the process that sends, receives or prints; five terms: Label,
 * {Previous,Current}, From, To, Message; To of a print is []. The stamp is the token's.
 */
#define TW_SEQ_KINDS(X)           \
	X(SEND, 40, "send")       \
	X(RECEIVE, 41, "receive") \
	X(PRINT, 42, "print")

/* {monitor,Pid,Event,Info}: system events, never stamped. */
#define TW_SYSTEM_KINDS(X) X(MONITOR, 48, "monitor", MONITOR, "event", "info")

/* X(NAME, field): the words of an event of a garbage collection, in the order of OTP's documentation, which defines each. */
#define TW_GC_SIZES(X)                                        \
	X(HEAP_SIZE, heap_size)                               \
	X(HEAP_BLOCK_SIZE, heap_block_size)                   \
	X(OLD_HEAP_SIZE, old_heap_size)                       \
	X(OLD_HEAP_BLOCK_SIZE, old_heap_block_size)           \
	X(STACK_SIZE, stack_size)                             \
	X(RECENT_SIZE, recent_size)                           \
	X(MBUF_SIZE, mbuf_size)                               \
	X(BIN_VHEAP_SIZE, bin_vheap_size)                     \
	X(BIN_VHEAP_BLOCK_SIZE, bin_vheap_block_size)         \
	X(BIN_OLD_VHEAP_SIZE, bin_old_vheap_size)             \
	X(BIN_OLD_VHEAP_BLOCK_SIZE, bin_old_vheap_block_size) \
	X(WORDSIZE, wordsize)

/* The flag of sessions for which an event is made, and the callbacks of tracer modules that get it (tracer.h). */
enum tw_kind_group {
	TW_GROUP_RECORD,
	TW_GROUP_CALL,
	TW_GROUP_SEND,
	TW_GROUP_RECEIVE,
	TW_GROUP_PROCS,
	TW_GROUP_RUNNING,
	TW_GROUP_GARBAGE_COLLECTION,
	TW_GROUP_PORTS,
	TW_GROUP_SEQ,
	TW_GROUP_MONITOR
};

/* The numbers are those of docs/format.md. */
enum tw_capture_kind {
#define TW_KIND_ROW(NAME, number, word, group, first, second) TW_CAPTURE_##NAME = number,
#define TW_SEQ_ROW(NAME, number, word)			      TW_CAPTURE_SEQ_##NAME = number,
	TW_RECORD_KINDS(TW_KIND_ROW) TW_TRACE_KINDS(TW_KIND_ROW) TW_SEQ_KINDS(TW_SEQ_ROW) TW_SYSTEM_KINDS(TW_KIND_ROW)
#undef TW_KIND_ROW
#undef TW_SEQ_ROW
		TW_CAPTURE_TERM_FIRST = 16 /* and above: terms as payload, but for gc_* */
};

/* The kinds of a group: bit k for kind k, as in struct tw_capture_filter. */
static inline uint64_t tw_kinds_of(enum tw_kind_group group)
{
	uint64_t kinds = 0;

#define TW_KIND_ROW(NAME, number, word, of, first, second) kinds |= (uint64_t)(group == TW_GROUP_##of) << number;
#define TW_SEQ_ROW(NAME, number, word)			   kinds |= (uint64_t)(group == TW_GROUP_SEQ) << number;
	TW_RECORD_KINDS(TW_KIND_ROW)
	TW_TRACE_KINDS(TW_KIND_ROW)
	TW_SEQ_KINDS(TW_SEQ_ROW)
	TW_SYSTEM_KINDS(TW_KIND_ROW)
#undef TW_KIND_ROW
#undef TW_SEQ_ROW
	return kinds;
}

/* Is a kind, of any number, one of the group? */
static inline bool tw_kind_is(unsigned kind, enum tw_kind_group group)
{
	return kind < 64 && (tw_kinds_of(group) >> kind & 1);
}

/*
 * The state of a thread from a TW_CAPTURE_THREAD_STATE event on: its id.  Only captures of `record --sched` have such events, in
 * streams of their own (is_of_states), and only of threads that are their own process.
 *
 * A state lasts to the next event of its stream, but only if no sequence number is missing between them, and not beyond the end of the
 * stream (end_ns, capture.h).
 */
enum tw_capture_thread_state {
	TW_CAPTURE_STATE_UNKNOWN = 0,
	TW_CAPTURE_STATE_RUNNING = 1,	/* it has a processor */
	TW_CAPTURE_STATE_PREEMPTED = 2, /* it could run, and lost the processor, or yielded it */
	TW_CAPTURE_STATE_OFF = 3,	/* it has blocked; also when it could run again, and waits for a processor */
	TW_CAPTURE_STATES
};
enum {
#define TW_GC_ROW(NAME, field) +1
	TW_GC_SIZES_COUNT = 0 TW_GC_SIZES(TW_GC_ROW)
#undef TW_GC_ROW
};

/* The number of sizes that OTP's message of a kind shows, from the first on: gc_max_heap_size has no wordsize. */
static inline unsigned tw_gc_sizes_shown(unsigned kind)
{
	return kind == TW_CAPTURE_GC_MAX_HEAP_SIZE ? TW_GC_SIZES_COUNT - 1 : TW_GC_SIZES_COUNT;
}

#ifdef __cplusplus
}
#endif

#endif
