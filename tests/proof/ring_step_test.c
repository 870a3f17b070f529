/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal	A signal handler that jumps out of a ring's producer at any instruction, and a death there, leave a readable
 *	ring with an exact account: each call is an event or is counted, except those that were left.
 * Method	The test single-steps itself (the trap flag) through one call of tw_rb_reserve() and tw_rb_commit() on a
 *	certain path.  Before each instruction the trap's handler plays the consequences of a jump: it leaves the call
 *	where it is and continues with no call (a death), one, some, or more than a whole ring of calls; then the ring's
 *	memory is restored, and the call continues with its next instruction.  If a chunk is given up, handlers also
 *	jump out of two consecutive calls.  A record that is no call (a switch, the tracer's own time) is left like that
 *	as well: then no call is missing.
 */
#include "ringbuf/ringbuf.h"
#include "trap.h"

#include <inttypes.h>
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define RING_BYTES UINT64_C(65536)
#define KIND	   9

struct way {
	const char *what;
	enum tw_rb_policy policy;
	uint32_t bytes;	  /* of each record */
	uint64_t before;  /* calls before the stepped one */
	bool is_consumed; /* the consumer reads everything just before it, and at times afterwards */
	bool is_twice;	  /* two calls are left */
	bool is_no_call;  /* the stepped record is no call */
};

static const struct way ways[] = {
	{"overwrite: a place in the chunk", TW_RB_OVERWRITE, 16, 100, false, false, false},
	{"overwrite: the second chunk, for the first time", TW_RB_OVERWRITE, 16, 512, false, false, false},
	{"overwrite: the second chunk, behind a pad", TW_RB_OVERWRITE, 48, 170, false, false, false},
	{"overwrite: the last chunk, for the first time", TW_RB_OVERWRITE, 16, 7 * 512, false, false, false},
	{"overwrite: gives up the first chunk", TW_RB_OVERWRITE, 16, 8 * 512, false, true, false},
	{"overwrite: gives up the second chunk", TW_RB_OVERWRITE, 16, 9 * 512, false, false, false},
	{"overwrite: gives up the first chunk, behind a pad", TW_RB_OVERWRITE, 48, 8 * 170, false, true, false},
	{"overwrite: the third round", TW_RB_OVERWRITE, 48, 17 * 170, false, false, false},
	{"overwrite: no call, a place in the chunk", TW_RB_OVERWRITE, 16, 100, false, false, true},
	{"overwrite: no call, the second chunk", TW_RB_OVERWRITE, 16, 512, false, false, true},
	{"overwrite: no call, gives up the first chunk", TW_RB_OVERWRITE, 16, 8 * 512, false, false, true},
	{"overwrite: no call, gives up the first chunk, behind a pad", TW_RB_OVERWRITE, 48, 8 * 170, false, false,
	 true},
	{"drop: the last place", TW_RB_DROP, 16, 4095, false, false, false},
	{"drop: full", TW_RB_DROP, 16, 4096, false, false, false},
	{"drop: a look at the tail", TW_RB_DROP, 16, 4096, true, false, false},
	{"drop: full once more", TW_RB_DROP, 48, 1400, false, false, false},
	{"drop: tells what was lost", TW_RB_DROP, 48, 1400, true, false, false},
};
static const uint64_t afters[] = {0, 1, 300, 600, 9000};

static struct tw_rb_producer producer;
static struct tw_rb_shared *shared;
static uint8_t *copy;
static uint8_t *saved;
static sigjmp_buf out;
static volatile sig_atomic_t is_stepping;
static volatile long steps, jump_at; /* jump_at: -1 while each instruction is tried without a jump */
static unsigned wrong;

static __attribute__((noinline)) void put(uint64_t number, uint32_t bytes)
{
	struct tw_rb_record *record;
	uint64_t *words;

	if (tw_rb_reserve(&producer, bytes, number, (void **)&record) != TW_RB_OK)
		return;
	record->ticks = number;
	record->head = TW_RB_HEAD(KIND, 0, bytes, number);
	words = (uint64_t *)record;
	for (uint32_t i = 2; i < bytes / 8; i++)
		words[i] = ~number;
	tw_rb_commit(&producer, bytes);
}

static __attribute__((noinline)) void put_no_call(uint64_t number, uint32_t bytes)
{
	struct tw_rb_record *record;

	if (tw_rb_reserve(&producer, bytes, number, (void **)&record) != TW_RB_OK)
		return;
	memset(record, 0, bytes);
	record->head = TW_RB_HEAD(KIND + 1, 0, bytes, 0);
	tw_rb_commit_uncounted(&producer, bytes);
}

/* The records that the consumer has read so far. */
struct seen {
	uint64_t pos, last, events, lost, told[TW_RB_CAUSES];
	bool is_bad;
};

static const struct way *way;
static struct seen seen;
static uint64_t made;
static unsigned left;

static void look_at(const uint8_t *records, int64_t bytes)
{
	for (int64_t at = 0; at < bytes;) {
		const struct tw_rb_record *record = (const struct tw_rb_record *)(records + at);
		const uint64_t *words = (const uint64_t *)record;
		uint32_t length = TW_RB_HEAD_BYTES(record->head);

		if (TW_RB_HEAD_KIND(record->head) == TW_RB_KIND_LOSS) {
			const struct tw_rb_loss_record *loss = (const struct tw_rb_loss_record *)record;

			for (int cause = 0; cause < TW_RB_CAUSES; cause++) {
				seen.lost += loss->lost[cause];
				seen.told[cause] += loss->lost[cause];
			}
		} else if (TW_RB_HEAD_KIND(record->head) != KIND + 1) {
			seen.events++;
			if (length != way->bytes || record->ticks <= seen.last ||
			    record->ticks != TW_RB_HEAD_ID(record->head))
				seen.is_bad = true;
			for (uint32_t i = 2; i < length / 8; i++)
				if (words[i] != ~record->ticks)
					seen.is_bad = true;
			seen.last = record->ticks;
		}
		at += length;
	}
}

static void drain(void)
{
	const uint8_t *records;
	uint64_t end;
	int64_t bytes;

	do {
		bytes = tw_rb_peek(shared, seen.pos, RING_BYTES, &records, &end);
		if (bytes < 0) {
			seen.is_bad = true;
			return;
		}
		look_at(records, bytes);
		if (end == seen.pos)
			break;
		seen.pos = end;
		tw_rb_consume(shared, end);
	} while (true);
}

/* Continues with this many calls, and checks the account. */
static void go_on(uint64_t after)
{
	struct tw_rb_loss_record rest;
	struct tw_rb_stretch copied;
	uint64_t sum;

	for (uint64_t i = 0; i < after; i++) {
		put(++made, way->bytes);
		if (way->is_consumed && i % 1000 == 0)
			drain();
	}
	if (way->policy == TW_RB_OVERWRITE) {
		int64_t bytes = tw_rb_snapshot(shared, shared->data_bytes, copy, &copied);

		seen.is_bad = seen.is_bad || bytes < 0;
		look_at(copy, bytes);
	} else {
		drain();
	}
	sum = seen.events + seen.lost;
	if (tw_rb_unreported_loss(shared, seen.told, &rest))
		for (int cause = 0; cause < TW_RB_CAUSES; cause++)
			sum += rest.lost[cause];
	if (!seen.is_bad && sum <= made && sum + left >= made)
		return;
	wrong++;
	printf("FAIL: %s; %u calls left before instruction %ld, then %" PRIu64 ": %" PRIu64 " made, %" PRIu64
	       " events and %" PRIu64 " lost%s\n",
	       way->what, left, steps, after, made, seen.events, sum - seen.events,
	       seen.is_bad ? ", the ring cannot be read" : "");
}

/* Leaves the call under way as it stands, in every continuation, and then lets it continue. */
static void try_all(void)
{
	const struct tw_rb_producer producer_then = producer;
	const struct seen seen_then = seen;
	const uint64_t made_then = made;

	memcpy(saved, shared, TW_PAGE_BYTES + RING_BYTES);
	left += !way->is_no_call;
	for (unsigned i = 0; i < sizeof afters / sizeof *afters; i++) {
		go_on(afters[i]);
		memcpy(shared, saved, TW_PAGE_BYTES + RING_BYTES);
		producer = producer_then;
		seen = seen_then;
		made = made_then;
	}
	left -= !way->is_no_call;
}

static void on_trap(int number)
{
	if (!is_stepping)
		return;
	is_stepping = 0;
	if (jump_at < 0)
		try_all();
	else if (steps == jump_at)
		siglongjmp(out, 1);
	steps++;
	is_stepping = 1;
}

static void set_up(void)
{
	memset(shared, 0, TW_PAGE_BYTES + RING_BYTES);
	memset(&seen, 0, sizeof seen);
	made = 0;
	left = 0;
	tw_rb_shared_init(shared, 0, RING_BYTES);
	tw_rb_producer_init(&producer, shared, way->policy);
	while (made < way->before)
		put(++made, way->bytes);
	if (way->is_consumed)
		drain();
}

/* One call, stepped. */
static void step(void)
{
	made += !way->is_no_call;
	steps = 0;
	if (sigsetjmp(out, 1) == 0) {
		is_stepping = 1;
		STEP_ON();
		if (way->is_no_call)
			put_no_call(made, way->bytes);
		else
			put(made, way->bytes);
		STEP_OFF();
		is_stepping = 0;
	} else {
		left++;
	}
}

int main(void)
{
	struct sigaction action = {.sa_handler = on_trap, .sa_flags = SA_NODEFER};
	const size_t bytes = TW_PAGE_BYTES + RING_BYTES;
	unsigned failures = 0;

	sigaction(SIGTRAP, &action, NULL);
	shared = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	copy = malloc(RING_BYTES);
	saved = malloc(bytes);
	if (shared == MAP_FAILED || !copy || !saved)
		return 1;
	for (unsigned i = 0; i < sizeof ways / sizeof *ways; i++) {
		long instructions;

		way = &ways[i];
		wrong = 0;
		jump_at = -1;
		set_up();
		step();
		go_on(0);
		instructions = steps;
		for (long at = 0; way->is_twice && at < instructions; at++) {
			jump_at = at;
			set_up();
			step();
			step();
			go_on(300);
		}
		printf("%-60s %3ld instructions, %u wrong\n", way->what, instructions, wrong);
		failures += wrong || instructions < 10;
	}
	printf("%s\n", failures ? "FAIL" : "PASS");
	return failures != 0;
}
