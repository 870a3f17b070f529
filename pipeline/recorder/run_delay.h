/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_delay.h - threads that were ready to run and got no processor: samples of what the kernel counts.
 *
 * The second and third number of /proc/PID/task/TID/schedstat are the time that a thread has waited for a processor and
 * how often it got one.  They change when a wait ends.  A wait is noticed at the sample that follows its end; what
 * happened between two samples is one event.
 *
 * Threads  those of the writer.
 */
#ifndef TW_PIPELINE_RUN_DELAY_H
#define TW_PIPELINE_RUN_DELAY_H

#include "pipeline/recorder/writer.h"

struct tw_run_delay {
	uint64_t limit_ns; /* 0: off */
	uint64_t due_ns;   /* when the next sample is taken */
	uint64_t cost_ns;  /* processor time of the last sample */
};

/*
 * tw_run_delay_sample - take a sample of each thread with a ring, if it is due, and record the waits that reach the limit.
 *
 * A record stands behind what its thread has committed by then.  Threads that run processes of a run-time are left out: their
 * records would be taken for the process'.  Samples of many threads are taken less often, so that they take at most a
 * hundredth of a processor.  Their time is the lesser of the last two: in a virtual machine the time that the host took
 * from one of them may be counted as its own, a hundred times a sample.
 */
void tw_run_delay_sample(struct tw_writer *writer, struct tw_run_delay *run_delay, uint64_t now_ns);

/* How long the recorder may sleep for it. */
uint64_t tw_run_delay_rest_ns(const struct tw_run_delay *run_delay, uint64_t now_ns, uint64_t longest_ns);

#endif
