/* SPDX-License-Identifier: Apache-2.0 */
/*
 * recorder.h - what recorder.c (rounds) and finish.c (the end) share.
 *
 * Threads  one: the recorder's.
 */
#ifndef TW_PIPELINE_RECORDER_H
#define TW_PIPELINE_RECORDER_H

#include "pipeline/recorder/asked.h"
#include "pipeline/recorder/confined.h"
#include "pipeline/recorder/pace.h"
#include "pipeline/recorder/run_delay.h"
#include "pipeline/recorder/thread_states.h"
#include "pipeline/recorder/writer.h"

/* A line in the text of a ring set: the absolute path of the capture that it is drained into. */
#define TW_RECORDER_CAPTURE_KEY "capture "
/* Another, of a flight recorder: how many nanoseconds are kept; 0: all that the rings hold. */
#define TW_RECORDER_FLIGHT_KEY "flight "

struct tw_recorder {
	struct tw_writer writer;
	uint64_t started_ns;
	uint64_t reaped_ns;
	struct tw_confined confined;
	struct tw_run_delay run_delay;
	struct tw_thread_states states;
	struct tw_holder holder;
	struct tw_asked asked;
	uint32_t reaped_image; /* the next to check for death */
	uint64_t retry_ns;     /* no write before this, after one that failed */
	struct tw_pace pace;
	uint64_t round_ns;	     /* time of the last round */
	int32_t child;		     /* whose ending is waited for; 0: none */
	uint64_t counts_reported_ns; /* when a stream got the numbers of counted calls */
	uint64_t streamed_ns;	     /* the last round that took everything for a stream */
	enum tw_recorder_policy policy;
	bool is_finishing;
	bool is_flight;	  /* as the option: nothing is stored */
	bool ends_inside; /* as the option */
	bool holds_soon;  /* as the option, until the first round */
};

#endif
