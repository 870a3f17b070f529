/* SPDX-License-Identifier: Apache-2.0 */
/*
 * holder.h - the process that stops threads of members for the recorder.
 *
 * While it holds threads it may be stopped itself, or get no processor; then the threads would wait.  If the recorder held them, a
 * stopped recorder would stop the program.  The holder can be ended at any instant without harm (held.c):
 *
 *	the recorder is stopped, or its process group	the holder is in a process group of its own, and goes on
 *	the recorder ends				the kernel ends the holder
 *	the holder is stopped, the recorder too		the kernel's timer continues the holder (tw_hold_guard)
 *	the holder waits for something			it lets threads go after TW_HOLD_NS; else a timer ends it
 *
 * It is started when a job comes and none is there, or is expected soon, keeps no file of the recorder's open, and sleeps between jobs.
 *
 * Threads  the recorder's; the holder ends with the thread that has started it, and is started again.
 */
#ifndef TW_PIPELINE_RECORDER_HOLDER_H
#define TW_PIPELINE_RECORDER_HOLDER_H

#include "pipeline/recorder/held.h"

/* How often a job is given out if the holder is ended in the middle of it. */
#define TW_HOLDER_TRIES 2

struct tw_holder_job {
	/* Called in the holder. */
	void (*run)(struct tw_held *held, const struct tw_rs *rs, struct tw_holder_job *job);
	struct tw_rs_held_request where;
	uint64_t deadline_ns;
	/* The result. */
	enum tw_rs_held_outcome outcome;
	uint32_t number;
	uint64_t left; /* pieces that were not written */
};

enum tw_holder_state {
	TW_HOLDER_BUSY,
	TW_HOLDER_DONE,
	TW_HOLDER_ENDED /* in the middle of the job; or no holder could be started */
};

struct tw_holder_shared;

struct tw_holder {
	struct tw_holder_shared *shared; /* NULL: none has been started */
	int process_id;			 /* 0: none */
	int parent_id;
	uint32_t job_number;
	uint64_t begun_ns;
	struct tw_held held; /* as it is when the holder starts */
};

/* Starts the process, if there is none, so that the first job need not wait for it. */
void tw_holder_prepare(struct tw_holder *holder, const struct tw_rs *rs);
/* Gives a job to the holder; the previous one is done, or ended. */
void tw_holder_begin(struct tw_holder *holder, const struct tw_rs *rs, const struct tw_holder_job *job);
/* To be asked at least every TW_HOLDER_LOOK_NS until the job is no longer BUSY.  DONE: *out is the job with its result. */
#define TW_HOLDER_LOOK_NS UINT64_C(1000000)
enum tw_holder_state tw_holder_look(struct tw_holder *holder, struct tw_holder_job *out);
/* Sleeps until it is time to look. */
void tw_holder_wait(const struct tw_holder *holder);
/* Ends the process, if there is one. */
void tw_holder_end(struct tw_holder *holder);

#endif
