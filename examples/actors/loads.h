/* SPDX-License-Identifier: Apache-2.0 */
/* loads.h - the loads that the command runs: each checks its own result. */
#ifndef ACTORS_LOADS_H
#define ACTORS_LOADS_H

#include "actors.h"

struct load_options {
	uint64_t actors, messages; /* 0: the load's own default */
	double seconds;		   /* 0: the end depends on messages; else on this time */
};

struct load_result {
	bool is_right;
	uint64_t messages, calls;
	char text[160]; /* the result, for people */
};

struct load {
	const char *name;
	const char *help;
	uint64_t actors, messages; /* defaults */
	/* Runs it with the options' figures, all set. */
	struct load_result (*run)(struct actor *outside, const struct load_options *options);
	/* Declares its functions. */
	void (*declare)(void);
};

extern const struct load ring_load, fan_load, chat_load, web_load, gc_load, bank_load, busy_load, self_load;

/* Seconds of CLOCK_MONOTONIC. */
double seconds_now(void);
/* Waits for the atom done from that many actors, and sets the flag that the time is over; false: they do not come. */
bool wait_for_done(struct actor *outside, const struct load_options *options, uint64_t count, uint64_t *sum);
/* Is the time over?  For the functions of loads. */
bool is_time_over(void);

#endif
