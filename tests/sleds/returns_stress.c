/* SPDX-License-Identifier: Apache-2.0 */
/*
 * returns_stress.c - Goal: threads whose calls are watched get the right answers, whatever way the calls end, while
 *	watching is switched on and off under them.
 *
 *	returns_stress [SECONDS [SEED]]
 *
 * Method  Three threads run functions that return, tail call another, throw, catch, rethrow and longjmp
 *	   (returns_work.cc), and check each answer.  A fourth arms and disarms their sleds at random, and changes the
 *	   action of a hit: nothing, watch, watch with the personality routine, keep long frames.  Ends must belong to
 *	   kept calls, once each.
 */
#include "breakpoints/breakpoints.h"
#include "breakpoints/patch.h"
#include "tests/sleds/sled_places.h"
#include "breakpoints/returns.h"
#include "breakpoints/unwind.h"
#include "symbols/symbols.h"
#include "tests/common/random.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define THREADS	   3u
#define PLACES_MAX 64u
#define SESSION	   1u
#define REGULAR	   __attribute__((target("general-regs-only")))

uint64_t work_round(uint64_t n);

static struct tw_place *places[PLACES_MAX];
static unsigned place_count;
static _Atomic unsigned how;
static _Atomic bool must_end;
static __thread uint64_t random_state, opened, returned, thrown, bad;

struct worker {
	pthread_t thread;
	uint64_t rounds, wrong, opened, returned, thrown, bad;
};

/* ---- actions of a hit ---- */

REGULAR static const char *hit(struct tw_place *place, const uint64_t *words, uint64_t *slot)
{
	/* RELAXED stress.how: any of them, at any moment. */
	unsigned now = tw_load_relaxed(&how);
	tw_return_word kept[TW_RETURNS_LONG_WORDS] = {(uintptr_t)place, ~(uintptr_t)place};
	const char *way = NULL;

	if (now == 4)
		now = (unsigned)random_below(&random_state, 4);
	if (now)
		opened += tw_returns_open(slot, kept, now == 3, now >= 2, &way);
	return way;
}

REGULAR static uint64_t end_all(struct tw_return_entry *entry)
{
	uint64_t count = 0;

	for (unsigned i = tw_returns_count(entry); i-- > 0;) {
		const tw_return_word *words = tw_returns_frame(entry, i);

		if (!words[0])
			continue;
		bad += words[1] != ~words[0];
		count++;
	}
	tw_returns_close(entry);
	return count;
}

REGULAR static uintptr_t on_return(uint64_t *slot, uint64_t value)
{
	struct tw_return_entry *entry = tw_returns_find(slot);

	if (!entry)
		abort();
	returned += end_all(entry);
	return entry->return_address;
}

static void on_throw(uint64_t *slot, const struct tw_unwind *unwind)
{
	bad += strcmp(unwind->name, "std::runtime_error") != 0;
	thrown += end_all(tw_returns_find(slot));
}

/* ---- the threads ---- */

static void *work(void *arg)
{
	struct worker *worker = arg;

	random_state = (uintptr_t)worker;
	/* RELAXED stress.end: a flag that ends the loop. */
	for (uint64_t n = 0; !tw_load_relaxed(&must_end); n++) {
		worker->wrong += work_round(n);
		worker->rounds++;
	}
	worker->opened = opened;
	worker->returned = returned;
	worker->thrown = thrown;
	worker->bad = bad;
	return NULL;
}

/* ---- places ---- */

static bool is_work(const struct tw_sym_sled *sled)
{
	return !sled->refusal && !strncmp(sled->function, "work_", 5) && strcmp(sled->function, "work_round") != 0;
}

static void find_places(void)
{
	place_count = add_all_sleds(is_work, places, PLACES_MAX);
	if (place_count < 9)
		die("not all sleds were found");
}

static void set(unsigned from, unsigned count, bool armed)
{
	const struct tw_bp_part part = {.actions = TW_ACTION_CALL, .session = SESSION};
	struct tw_permit *permit;

	if (tw_permit_seize(&permit))
		die("no permit");
	tw_patch_begin(permit);
	for (unsigned i = 0; i < count; i++) {
		struct tw_place *place = places[(from + i) % place_count];

		if (armed ? tw_bp_stage_set(permit, place, &part) : tw_bp_stage_clear(permit, place, SESSION))
			die("a sled cannot be armed");
	}
	tw_patch_end(permit);
	tw_bp_commit(permit);
	tw_permit_drop(permit);
}

static uint64_t change_for(double seconds)
{
	struct timespec begin, now;
	uint64_t changes = 0;

	clock_gettime(CLOCK_MONOTONIC, &begin);
	do {
		/* RELAXED stress.how: as above. */
		tw_store_relaxed(&how, (unsigned)random() % 5);
		set((unsigned)random() % place_count, 1 + (unsigned)random() % place_count, random() % 2);
		changes++;
		clock_gettime(CLOCK_MONOTONIC, &now);
	} while ((double)(now.tv_sec - begin.tv_sec) + (double)(now.tv_nsec - begin.tv_nsec) / 1e9 < seconds);
	return changes;
}

int main(int argc, char **argv)
{
	double seconds = argc > 1 ? atof(argv[1]) : 1;
	unsigned seed = argc > 2 ? (unsigned)atoi(argv[2]) : (unsigned)time(NULL);
	struct worker workers[THREADS] = {0}, all = {0};
	const char *reason;
	uint64_t changes;

	printf("seed %u\n", seed);
	srandom(seed);
	if (tw_returns_init(&reason) || tw_unwind_find())
		die("returns cannot be watched here");
	tw_bp_trampoline_hit = hit;
	tw_bp_trampoline_return = on_return;
	tw_bp_trampoline_throw = on_throw;
	find_places();
	/* While there is one thread every window becomes one instruction. */
	set(0, place_count, true);
	for (unsigned i = 0; i < THREADS; i++)
		if (pthread_create(&workers[i].thread, NULL, work, &workers[i]))
			die("no thread");
	changes = change_for(seconds);
	/* RELAXED stress.end: as above. */
	tw_store_relaxed(&must_end, true);
	for (unsigned i = 0; i < THREADS; i++) {
		pthread_join(workers[i].thread, NULL);
		all.rounds += workers[i].rounds;
		all.wrong += workers[i].wrong;
		all.opened += workers[i].opened;
		all.returned += workers[i].returned;
		all.thrown += workers[i].thrown;
		all.bad += workers[i].bad;
	}
	printf("%lu rounds, %lu changes; %lu calls watched, %lu returned, %lu left by exceptions; %lu wrong, %lu bad\n",
	       all.rounds, changes, all.opened, all.returned, all.thrown, all.wrong, all.bad);
	if (all.wrong || all.bad || !all.returned || !all.thrown || all.returned + all.thrown > all.opened)
		die("FAIL");
	printf("PASS\n");
	return 0;
}
