/* SPDX-License-Identifier: Apache-2.0 */
/*
 * thread_states.h - when the threads of traced programs ran, were preempted, and were off: from the kernel's switches
 * (base/switches.h) to blocks of a stream of its own for each ring.
 *
 *	switches of all threads		 in   preempted  in      out        in      exit
 *	stream of a thread's ring	 RUNNING PREEMPTED RUNNING OFF      RUNNING UNKNOWN
 *
 * A record is a change: its thread is in this state from its ticks on, up to the next record of the stream, and not beyond the
 * last one.  A loss in the kernel makes the state of every thread unknown, up to each thread's next switch.
 *
 * Threads that run processes of a run-time have no stream: their states would be taken for the process'.
 *
 * Threads  those of the writer.
 * Memory   a hundred bytes a thread of the programs, and up to 8 KiB a ring; 256 KiB while the disk is slow or full, or the
 *	    thread switches very often.
 */
#ifndef TW_PIPELINE_THREAD_STATES_H
#define TW_PIPELINE_THREAD_STATES_H

#include "base/map.h"
#include "base/switches.h"
#include "pipeline/recorder/writer.h"

struct tw_state_thread;
struct tw_state_stream;

/* Zeroed: off; every function does nothing then. */
struct tw_thread_states {
	struct tw_switches *switches;
	struct tw_state_thread *threads;
	uint32_t thread_count, thread_capacity, dead_count;
	struct tw_map by_thread_id;
	struct tw_state_stream *streams;
	uint32_t stream_count, stream_capacity;
	struct tw_map by_lease;
	/* Two moments, between which ns of the switches become ticks. */
	struct tw_clock_snapshot before, now;
	uint64_t blind_until_ns; /* switches up to then are not to be relied on */
	uint64_t due_ns;	 /* the next round */
	uint64_t lost;		 /* switches that the kernel lost, or that could not be stored */
	bool is_asked;		 /* everything is to be in the files */
};

/*
 * tw_thread_states_open - follow the programs that the calling thread starts.
 *
 * Returns 0, or the negative errno of tw_switches_open().
 */
int tw_thread_states_open(struct tw_thread_states *states);
/* Likewise, the threads of a process that runs, and those that it starts.  Returns 0, or the negative errno of tw_switches_open_process(). */
int tw_thread_states_open_process(struct tw_thread_states *states, int32_t process_id);
void tw_thread_states_close(struct tw_thread_states *states);

/*
 * tw_thread_states_round - take in what has happened, and write what is worth a block.
 *
 * @wants_all	write everything.  Called after tw_writer_scan(), and before rings are given back.
 *
 * Returns 0 or the write error; what was not written is kept, up to 256 KiB a ring.
 */
int tw_thread_states_round(struct tw_writer *writer, struct tw_thread_states *states, uint64_t now_ns, bool wants_all);

/* The image ends: writes all of it.  No state of its threads is known any more.  Returns 0 or the write error. */
#define TW_STATES_ALL_IMAGES UINT32_MAX
#define TW_STATES_NO_IMAGE   (UINT32_MAX - 1)
int tw_thread_states_end(struct tw_writer *writer, struct tw_thread_states *states, uint32_t image);

/* How long the recorder may sleep for it. */
uint64_t tw_thread_states_rest_ns(const struct tw_thread_states *states, uint64_t now_ns, uint64_t longest_ns);

#endif
