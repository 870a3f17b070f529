/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loads.h - what the command runs: each load checks its own result.
 */
#ifndef ACTORS_LOADS_H
#define ACTORS_LOADS_H

#include "actors.h"

struct load_options {
	uint64_t actors, messages; /* 0: the load's own default */
	double seconds;		   /* 0: by messages; else until so long has passed */
};

struct load_result {
	bool is_right;
	uint64_t messages, calls;
	char text[160]; /* what came out, for people */
};

struct load {
	const char *name;
	const char *help;
	uint64_t actors, messages; /* defaults */
	/* Runs it with the options' figures, all set. */
	struct load_result (*run)(struct actor *outside, const struct load_options *options);
	/* Makes its functions known. */
	void (*declare)(void);
};

extern const struct load ring_load, fan_load, chat_load, web_load, gc_load, bank_load, busy_load, self_load;

/* Seconds of CLOCK_MONOTONIC. */
double seconds_now(void);
/* Waits for the atom done from so many actors, and sets what says that the time has passed; false: they do
 * not come. */
bool wait_for_done(struct actor *outside, const struct load_options *options, uint64_t count, uint64_t *sum);
/* Has it?  For the functions of loads. */
bool is_time_over(void);

#endif
