/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stress_inside.h - shared by the files of `tracewheel stress`.
 *
 *	stress.c	the command: options and output
 *	stress_run.c	one run: set-up, threads, the end
 *	stress_call.c	threads that make calls: all the time, or only for a moment
 *	stress_work.c	the functions that they call through sleds and slots, and the expected results
 *	stress_entry_work.c	the same functions without sleds
 *	stress_entries.c	plants their entries
 *	stress_change.c	threads that change what is traced meanwhile
 *	stress_read.c	checks the capture
 */
#ifndef TW_TOOLS_STRESS_INSIDE_H
#define TW_TOOLS_STRESS_INSIDE_H

#include "tools/stress/stress.h"

#include <tracewheel/tracewheel.h>

#include <limits.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Pairs of sleds whose calls are counted, and functions of each half that are recorded: one of each kind of place. */
#define TW_STRESS_SLED_PAIRS 4u
#define TW_STRESS_LATENCIES  (1u << 20)
/* Each caller makes one recorded round after this many calls. */
#define TW_STRESS_CALLS_PER_ROUND 4096u

struct tw_stress;
struct tw_stress_caller;

/* The functions of one kind, with entry sleds or without, which are planted. */
struct tw_stress_form {
	const char *const *names;	 /* by which they are set; ends with NULL */
	const char *const (*counted)[2]; /* TW_STRESS_SLED_PAIRS, by half; end with NULL */
	const char *const *numbered;	 /* those that are recorded, by half */
	/* Call all of them, and check the results. */
	void (*call)(struct tw_stress_caller *caller, uint64_t n);
	void (*call_counted)(struct tw_stress_caller *caller);
	uint64_t (*call_numbered)(int half, uint64_t n);
	/* Ends the thread by pthread_exit(), from inside of that many calls. */
	void (*leave)(uint64_t depth);
};
extern const struct tw_stress_form tw_stress_with_sleds, tw_stress_with_entries;

/* A thread that makes calls. */
struct tw_stress_caller {
	struct tw_stress *stress;
	pthread_t thread;
	uint64_t random;
	uint64_t calls[TW_STRESS_PLACES];
	uint64_t pair_calls, rounds;
	bool is_brief, is_recorded;
};

struct tw_stress {
	const struct tw_stress_options *options;
	const struct tw_stress_form *form;
	struct tw_stress_result *result;
	uint32_t pairs; /* of declared functions */
	char (*names)[2][24];
	struct tw_declared_function (*functions)[2]; /* [pair][half] */
	struct tw_session *counting, *capturing;
	struct tw_match_program *returning; /* requests the ends of calls */
	struct tw_match_program *catching, *refusing;
	char program[64]; /* the name of this program's object */
	char directory[PATH_MAX], capture_path[PATH_MAX + 16];
	uint64_t *latencies;
	uint64_t *counted; /* by pair, sleds after the others: calls of both halves */
	int half;	   /* the one that is counted when the switcher has ended */
	_Atomic bool stop;
	/*
	 * The number of switches begun and ended: odd during a switch. A caller that reads the same even number
	 * before and after its calls knows which of them must be in the capture.
	 */
	_Atomic uint32_t phase;
	_Atomic uint64_t calls[TW_STRESS_PLACES], pair_calls, numbered, changes, churners, threads, stalls, failed,
		wrong;
	_Atomic int error;
	pthread_mutex_t lock; /* of the error sentences */
};

/* Records one sentence about an error; printf's format. */
void tw_stress_tell(struct tw_stress *stress, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Records an error of the library, and returns its argument. */
int tw_stress_check(struct tw_stress *stress, const char *call, int result);

static inline uint64_t tw_stress_draw(uint64_t *state, uint64_t below)
{
	*state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (*state >> 33) % below;
}

static inline bool tw_stress_does(const struct tw_stress *stress, unsigned what)
{
	unsigned does = stress->options->what;

	return (does & TW_STRESS_ENTRIES ? does | TW_STRESS_SLEDS : does) & what;
}

/* Does the switch of this number request the ends of calls as well? */
static inline bool tw_stress_is_returning(const struct tw_stress *stress, uint32_t number)
{
	uint64_t random = stress->options->seed + number;

	return tw_stress_does(stress, TW_STRESS_RETURNS) && tw_stress_draw(&random, 2);
}

uint64_t tw_stress_now_ns(void);

/* ---- stress_work.c ---- */

/* The names by which slots are set; ends with NULL.  By half: those that are recorded. */
extern const char *const tw_stress_slots[], *const tw_stress_numbered_slots[2];
extern struct tw_declared_function tw_stress_numbered_declared[2], tw_stress_marker;

/* Calls all of them, and checks the results. */
void tw_stress_call_slots(struct tw_stress_caller *caller, uint64_t n);
/* Makes one recorded call, by half; the second returns the result that it must have, as a word. */
void tw_stress_call_numbered(struct tw_stress_caller *caller, enum tw_stress_place place, int half, uint64_t n);
uint64_t tw_stress_numbered_answer(enum tw_stress_place place, int half, uint64_t n);

/* ---- stress_entries.c ---- */

/* Plants the entries of these functions of this program: while there is one thread.  An error of tracewheel/error.h. */
int tw_stress_plant(const struct tw_stress_form *form);

/* ---- threads ---- */

void *tw_stress_call(void *caller); /* struct tw_stress_caller */
void *tw_stress_idle(void *stress);
void *tw_stress_come_and_go(void *stress);
void *tw_stress_switch(void *stress);
void *tw_stress_churn(void *stress);
/* Adds the counters of a half, which have been stopped, to those of its pairs. */
void tw_stress_sum_half(struct tw_stress *stress, int half);
/* Stops a thread that makes calls; installed as a signal's handler. */
void tw_stress_hold_up(int signal);

/* ---- the end ---- */

int tw_stress_read(struct tw_stress *stress);

#endif
