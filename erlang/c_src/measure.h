/* SPDX-License-Identifier: Apache-2.0 */
/*
 * measure.h - how long a scheduler is held up by one call of the tracer; in builds with -DTRACEWHEEL_MEASURE only.
 *
 * The longest time on the wall is the kernel's as much as ours where other threads want the processor: so the processor time of the
 * calling thread is kept beside it, what the call made the kernel do (pages, waits), and the longest time on the wall of the calls
 * that were not preempted.
 */
#ifndef TRACEWHEEL_ERLANG_MEASURE_H
#define TRACEWHEEL_ERLANG_MEASURE_H

#include <erl_nif.h>
#include <stdatomic.h>
#include <stddef.h>

struct capture;

/* The most of any call so far. */
enum measured {
	MEASURED_CPU_NS,
	MEASURED_WALL_NS,
	MEASURED_UNPREEMPTED_NS, /* on the wall, of calls without an involuntary switch */
	MEASURED_FAULTS,	 /* pages made present */
	MEASURED_WAITS,		 /* voluntary switches: the thread gave up its processor */
	MEASURED_FIGURES
};

struct measures {
	_Atomic uint64_t calls;
	_Atomic uint64_t most[MEASURED_FIGURES];
};

/* event_enabled() and event_trace(), measured. */
ERL_NIF_TERM measure_enabled(ErlNifEnv *env, void *capture, const ERL_NIF_TERM argv[]);
ERL_NIF_TERM measure_trace(ErlNifEnv *env, void *capture, const ERL_NIF_TERM argv[]);

/*
 * For tests, of a thread that is preempted while it defines something: the function tracewheel_hold is defined only once MEASURE_LOST
 * events of other threads were lost for lack of a definition, or after MEASURE_HOLD_MS.
 */
#define MEASURE_LOST	20
#define MEASURE_HOLD_MS 3000
void measure_hold(struct capture *capture, const char *name, size_t bytes);

#endif
