/* SPDX-License-Identifier: Apache-2.0 */
/*
 * activity.h - messages and schedules: messages between processes, run times, and which process waits for which.
 *
 *	 send A -> B     receive B           in B            out B
 *	 ----|---------------|----- wait -----|----- run -----|----
 *
 * A wait begins when a process that is not running receives a message, and ends when it is scheduled in. It is
 * attributed to the process that sent to it last before it received. A time-out is no message. A run does not contain the
 * tracer's own time on its thread.
 *
 * Memory  for each process that is named by an event, and for each pair of sender and receiver up to
 *	   TW_ACTIVITY_PAIRS_MAX; nothing for an event.
 */
#ifndef TW_VIEWS_ACTIVITY_H
#define TW_VIEWS_ACTIVITY_H

#include "views/folds/histogram.h"
#include "views/folds/own_times.h"
#include "views/folds/stacks.h"
#include "base/map.h"

#define TW_ACTIVITY_PAIRS_MAX (UINT32_C(1) << 20)
#define TW_ACTIVITY_LONGEST   10

struct tw_activity_process {
	uint32_t image;
	uint32_t pid_number, pid_serial;
	uint32_t number;
	char *name;	      /* clean; NULL: none */
	uint32_t last_sender; /* a process's number; TW_PLACES_NONE */
	bool is_running;
	uint64_t since_ns;   /* start of its run, if is_running */
	uint64_t own_ns;     /* the tracer's own time on its stream then */
	uint32_t stream;     /* where it runs */
	uint64_t waiting_ns; /* time since which a message waits for it to run; 0: none */
	/* Sums. */
	uint64_t sent, received;
	uint64_t waits, wait_ns, wait_max_ns;
	uint64_t runs, run_ns, run_max_ns;
	uint64_t delays, delay_ns, delay_max_ns; /* ready to run without a processor */
};

struct tw_activity_pair {
	uint32_t sender, receiver; /* numbers of processes; sender TW_PLACES_NONE: not seen */
	uint64_t messages;
	uint64_t waits, wait_ns, wait_max_ns;
};

struct tw_activity_wait {
	uint64_t ns;
	uint64_t at_ns; /* when it began */
	uint32_t sender, receiver;
};

/* A kind of system event of a process: long_gc, busy_port, ... */
struct tw_activity_system {
	uint32_t process;
	char name[24]; /* clean */
	uint64_t times;
	uint64_t longest_ms; /* 0: it has no time */
};

struct tw_activity_scheduler {
	uint32_t image;
	uint32_t scheduler_id;
	uint64_t runs, run_ns;
};

struct tw_activity {
	const struct tw_capture *capture;
	struct tw_activity_process **processes; /* by number */
	uint32_t process_count, process_capacity;
	struct tw_map by_pid;
	struct tw_activity_pair *pairs;
	uint32_t pair_count, pair_capacity;
	struct tw_map by_pair;
	struct tw_activity_system *systems;
	uint32_t system_count, system_capacity;
	struct tw_map by_system;
	struct tw_activity_scheduler *schedulers;
	uint32_t scheduler_count;
	uint32_t *stream_schedulers; /* by stream */
	uint32_t stream_count;
	struct tw_histogram waits, runs;
	struct tw_activity_wait longest[TW_ACTIVITY_LONGEST]; /* longest first */
	uint32_t longest_count;
	uint64_t sent, received, timeouts, to_nobody, spawned, exited, delays, system_events;
	struct tw_own_times own_times;
	bool are_pairs_full;
};

/* Return false without memory. */
bool tw_activity_init(struct tw_activity *activity, const struct tw_capture *capture);
/* Processes the next event; step->stack is its stack. */
bool tw_activity_event(struct tw_activity *activity, const struct tw_capture_event *event, const struct tw_step *step);
void tw_activity_free(struct tw_activity *activity);

static inline bool tw_activity_has_messages(const struct tw_activity *activity)
{
	return activity->sent || activity->received || activity->to_nobody;
}

/* "<0.44.0> worker1" */
size_t tw_activity_name(const struct tw_activity *activity, uint32_t process, char *text, size_t capacity);

#endif
