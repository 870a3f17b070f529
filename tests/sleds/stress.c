/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stress.c - Goal: threads that call functions get the right answers while their sleds are armed and disarmed.
 *
 *	stress [SECONDS [SEED [late]]]
 *
 * Method  Three threads call 64 functions of the program and of a library in a loop and check each answer; a fourth
 *	   arms and disarms some or all of them at random, by the whole recipe and then by its stores alone.  `late`:
 *	   the threads run the functions before the first change of a sled, and each sled is one long NOP.  In the end
 *	   all are armed, and a known number of calls must make as many hits; then none, and no call may.
 */
#include "breakpoints/breakpoints.h"
#include "breakpoints/patch.h"
#include "tests/sleds/sled_places.h"
#include "symbols/symbols.h"
#include "tracewheel/error.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define FUNCTIONS 32u
#define THREADS	  3u
#define PLACES	  64u
#define SESSION	  1u

typedef uint64_t (*work_fn)(uint64_t a, uint64_t b);
extern const work_fn program_work[FUNCTIONS], library_work[FUNCTIONS];

static struct tw_place *places[PLACES];
static bool is_armed[PLACES];
static unsigned place_count, parked_count;
static _Atomic bool must_end;
static __thread uint64_t hits;

struct worker {
	pthread_t thread;
	uint64_t calls, hits, wrong;
};

__attribute__((target("general-regs-only"))) static const char *count(struct tw_place *place, const uint64_t *words,
								      uint64_t *slot)
{
	hits++;
	return NULL;
}

static uint64_t answer(unsigned function, uint64_t a, uint64_t b)
{
	return a * 3 + (function < 24 ? b : 0) + function % 8;
}

static void call_all(struct worker *worker, uint64_t round)
{
	for (unsigned i = 0; i < FUNCTIONS; i++) {
		worker->wrong += program_work[i](round + i, 7) != answer(i, round + i, 7);
		worker->wrong += library_work[i](round, i) != answer(i, round, i);
		worker->calls += 2;
	}
}

static void *work(void *arg)
{
	struct worker *worker = arg;

	/* RELAXED stress.end: a flag that ends the loop. */
	for (uint64_t round = 0; !tw_load_relaxed(&must_end); round++)
		call_all(worker, round);
	worker->hits = hits;
	return NULL;
}

/* ---- places ---- */

/* A sled is given once for each name of its function. */
static bool is_next(const struct tw_sym_sled *sled)
{
	static uintptr_t last;

	if (sled->where == last)
		return false;
	last = sled->where;
	if (sled->refusal)
		die("a sled that cannot be used");
	return true;
}

static void find_places(void)
{
	place_count = add_all_sleds(is_next, places, PLACES);
	if (place_count != PLACES)
		die("not all sleds were found");
}

/* Arms or disarms the sleds from `from` on, in one transaction. */
static void set(unsigned from, unsigned count_, bool armed)
{
	const struct tw_bp_part part = {.actions = TW_ACTION_CALL, .session = SESSION};
	struct tw_permit *permit;

	if (tw_permit_seize(&permit))
		die("no permit");
	tw_patch_begin(permit);
	for (unsigned i = 0; i < count_; i++) {
		unsigned n = (from + i) % PLACES;

		if (is_armed[n] == armed)
			continue;
		if (armed ? tw_bp_stage_set(permit, places[n], &part) : tw_bp_stage_clear(permit, places[n], SESSION))
			die("a sled cannot be armed");
		is_armed[n] = armed;
	}
	tw_patch_end(permit);
	tw_bp_commit(permit);
	tw_permit_drop(permit);
}

static uint64_t change_some(void)
{
	unsigned n = (unsigned)random() % PLACES;

	if (random() % 8 == 0)
		set(n, (unsigned)random() % PLACES, random() % 2);
	else
		set(n, 1, !is_armed[n]);
	return 1;
}

/* The stores alone, as fast as possible: all threads saw all stubs long ago. */
static uint64_t store_some(void)
{
	struct tw_permit *permit;

	if (tw_permit_seize(&permit))
		die("no permit");
	tw_patch_begin(permit);
	for (unsigned i = 0; i < 10000; i++) {
		unsigned n = (unsigned)random() % PLACES;

		if (is_armed[n])
			continue;
		tw_patch_install(permit, places[n]);
		tw_patch_uninstall(permit, places[n]);
	}
	tw_patch_end(permit);
	tw_permit_drop(permit);
	return 20000;
}

static uint64_t repeat(uint64_t (*change)(void), double seconds)
{
	struct timespec begin, now;
	uint64_t changes = 0;

	clock_gettime(CLOCK_MONOTONIC, &begin);
	do {
		changes += change();
		clock_gettime(CLOCK_MONOTONIC, &now);
	} while ((double)(now.tv_sec - begin.tv_sec) + (double)(now.tv_nsec - begin.tv_nsec) / 1e9 < seconds);
	return changes;
}

int main(int argc, char **argv)
{
	double seconds = argc > 1 ? atof(argv[1]) : 1;
	unsigned seed = argc > 2 ? (unsigned)atoi(argv[2]) : (unsigned)time(NULL);
	struct worker workers[THREADS + 1] = {0}, *mine = &workers[THREADS], all = {0};
	bool is_late = argc > 3 && !strcmp(argv[3], "late");
	uint64_t changes, stores;

	printf("seed %u\n", seed);
	srandom(seed);
	tw_bp_trampoline_hit = count;
	find_places();
	/* While there is one thread every window becomes one instruction. */
	if (!is_late)
		set(0, PLACES, true);
	set(0, PLACES, false);
	for (unsigned i = 0; i < THREADS; i++)
		if (pthread_create(&workers[i].thread, NULL, work, &workers[i]))
			die("no thread");
	set(0, PLACES, true);
	for (unsigned i = 0; i < PLACES; i++)
		parked_count += places[i]->is_parked;
	changes = repeat(change_some, seconds / 2);
	set(0, PLACES, false);
	stores = repeat(store_some, seconds / 2);
	/* RELAXED stress.end: as above. */
	tw_store_relaxed(&must_end, true);
	for (unsigned i = 0; i < THREADS; i++) {
		pthread_join(workers[i].thread, NULL);
		all.calls += workers[i].calls;
		all.hits += workers[i].hits;
		all.wrong += workers[i].wrong;
	}
	set(0, PLACES, true);
	call_all(mine, 1);
	if (hits != PLACES)
		die("not every call of an armed function was a hit");
	set(0, PLACES, false);
	call_all(mine, 2);
	if (hits != PLACES)
		die("a call of a disarmed function was a hit");
	printf("%lu calls, %lu hits, %lu changes, %lu stores, %u of %u sleds parked, %lu wrong answers\n", all.calls,
	       all.hits, changes, stores, parked_count, PLACES, all.wrong + mine->wrong);
	return all.wrong + mine->wrong || !all.hits || all.hits >= all.calls;
}
