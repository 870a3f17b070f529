/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stress_call.c - threads that make calls while others change what is traced.
 *
 *	callers		call everything at full speed, check the results, and now and then make a recorded round
 *	brief ones	do the same for a moment; their first hit comes in the middle, and some end inside of calls
 *	idle ones	have joined thread progress once and sleep: no thread may have to wait for them
 *	stopped ones	a signal handler sleeps, or spins, or makes calls too, wherever the thread was
 */
#include "tools/stress/stress_inside.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>

/* The caller that runs on this thread, for the handler. */
static __thread struct tw_stress_caller *mine;

static bool is_brief_enough(const struct tw_stress_caller *caller, uint64_t passes)
{
	return !caller->is_brief || passes < 20;
}

/*
 * A recorded round: of each kind a call of half a, then of each a call of half b, then a mark with the number of the
 * round and the phase at its beginning and end.
 */
static void call_round(struct tw_stress_caller *caller)
{
	struct tw_stress *s = caller->stress;
	uint64_t n = ++caller->rounds;
	uint32_t before = s->phase;

	for (int half = 0; half < 2; half++)
		for (unsigned place = 0; place < TW_STRESS_PLACES; place++)
			if (tw_stress_does(s, 1u << place))
				tw_stress_call_numbered(caller, (enum tw_stress_place)place, half, n);
	tw_call2(&tw_stress_marker, n, (uint64_t)before << 32 | s->phase);
}

/* Returns about how many calls it made. */
static uint64_t call_once(struct tw_stress_caller *caller, uint64_t n)
{
	struct tw_stress *s = caller->stress;
	uint64_t calls = 1;

	if (tw_stress_does(s, TW_STRESS_DECLARED)) {
		for (uint32_t i = 0; i < s->pairs; i++) {
			tw_call0(&s->functions[i][0]);
			tw_call0(&s->functions[i][1]);
		}
		caller->pair_calls += s->pairs;
		caller->calls[TW_STRESS_AT_DECLARED] += 2 * (uint64_t)s->pairs;
		calls += 2 * (uint64_t)s->pairs;
	}
	if (tw_stress_does(s, TW_STRESS_SLEDS)) {
		s->form->call_counted(caller);
		s->form->call(caller, n);
		calls += 40;
	}
	if (tw_stress_does(s, TW_STRESS_SLOTS)) {
		tw_stress_call_slots(caller, n);
		calls += 15;
	}
	return calls;
}

static void account(struct tw_stress_caller *caller)
{
	struct tw_stress *s = caller->stress;

	for (unsigned place = 0; place < TW_STRESS_PLACES; place++)
		s->calls[place] += caller->calls[place];
	s->pair_calls += caller->pair_calls;
	if (caller->is_recorded)
		s->numbered += caller->rounds;
}

void *tw_stress_call(void *arg)
{
	struct tw_stress_caller *caller = arg;
	struct tw_stress *s = caller->stress;
	uint64_t calls = 0, passes = 0;

	mine = caller;
	if (caller->is_recorded)
		tw_stress_check(s, "tw_trace_process",
				tw_trace_process(s->capturing, tw_process_self(), true, TW_FLAG_CALL));
	while (!s->stop && is_brief_enough(caller, passes)) {
		calls += call_once(caller, ++passes + (caller->random & 0xffff));
		if (calls >= TW_STRESS_CALLS_PER_ROUND && caller->is_recorded) {
			call_round(caller);
			calls = 0;
		}
	}
	account(caller);
	mine = NULL;
	return NULL;
}

/* ---- threads that come and go ---- */

static void leave(void *left)
{
	++*(uint64_t *)left;
}

/* Ends by returning, or from inside of calls. */
static void *call_briefly(void *arg)
{
	struct tw_stress_caller *caller = arg;
	uint64_t left = 0;

	pthread_cleanup_push(leave, &left);
	tw_stress_call(caller);
	if (tw_stress_does(caller->stress, TW_STRESS_SLEDS | TW_STRESS_RETURNS) && tw_stress_draw(&caller->random, 2))
		caller->stress->form->leave(tw_stress_draw(&caller->random, 6));
	pthread_cleanup_pop(1);
	return caller;
}

void *tw_stress_come_and_go(void *arg)
{
	struct tw_stress *s = arg;
	uint64_t random = s->options->seed ^ 0x77;

	while (!s->stop) {
		struct tw_stress_caller caller = {.stress = s, .is_brief = true};

		caller.random = tw_stress_draw(&random, UINT32_MAX);
		/* Each recorded one is a stream of the capture. */
		caller.is_recorded = tw_stress_draw(&random, 64) == 0;
		if (pthread_create(&caller.thread, NULL, call_briefly, &caller)) {
			tw_stress_tell(s, "a thread could not be made");
			break;
		}
		pthread_join(caller.thread, NULL);
		s->threads += 1;
		if (tw_stress_draw(&random, 2))
			sched_yield();
	}
	return NULL;
}

void *tw_stress_idle(void *arg)
{
	struct tw_stress *s = arg;
	const struct timespec nap = {0, 20000000};

	/* The marker is traced only in processes with flags: this thread joins, and is not recorded. */
	tw_call2(&tw_stress_marker, 0, 0);
	while (!s->stop)
		nanosleep(&nap, NULL);
	return NULL;
}

/* ---- stopped threads ---- */

static void spin(uint64_t ns)
{
	uint64_t end = tw_stress_now_ns() + ns;

	while (tw_stress_now_ns() < end)
		;
}

void tw_stress_hold_up(int signal)
{
	struct tw_stress_caller *caller = mine;
	struct timespec nap = {0, 0};
	int kept = errno;
	uint64_t random;

	if (!caller)
		return;
	random = tw_stress_now_ns() ^ caller->stress->options->seed;
	switch (tw_stress_draw(&random, 4)) {
	case 0: break;
	case 1: spin(tw_stress_draw(&random, 200000)); break;
	case 2:
		nap.tv_nsec = (long)tw_stress_draw(&random, 1000000);
		nanosleep(&nap, NULL);
		break;
	default:
		if (tw_stress_does(caller->stress, TW_STRESS_SLEDS))
			caller->stress->form->call(caller, random & 0xffff);
		if (tw_stress_does(caller->stress, TW_STRESS_SLOTS))
			tw_stress_call_slots(caller, random & 0xffff);
	}
	errno = kept;
}
