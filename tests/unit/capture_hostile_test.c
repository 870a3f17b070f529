/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal	A recorder survives everything that a program can write into the memory that it shares with it.
 * Method	A member with rings and definitions; random words, and nearly valid ones, are written into control, the
 *	image's head, its table of rings, ring headers, records and definitions, between the rounds of a recorder and
 *	during them.  Any access outside ends the test, with the address sanitizer also a harmless one.  Arguments: the
 *	seed, and for how many seconds to continue with other seeds.
 */
#include "base/clock.h"
#include "base/error.h"
#include "pipeline/recorder/writer.h"
#include "ringbuf/ringset.h"
#include "tests/unit/sanitized_help.h"
#include "tracewheel/consumer.h"
#include "tests/common/random.h"

#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

enum { ROUNDS = 120 };

#define RECORDINGS test_rounds(12, 4)

static uint64_t state = 1;
static struct tw_rs member;
static _Atomic bool is_over;
static uint64_t seconds;
static int nowhere;

static uint64_t random64(void)
{
	return random_word(&state);
}

/* Numbers that pass more checks than most. */
static uint64_t word(void)
{
	switch (random64() % 8) {
	case 0: return 0;
	case 1: return random64() % 64;
	case 2: return UINT64_MAX - random64() % 64;
	case 3: return UINT64_C(1) << random64() % 64;
	case 4: return (random64() % 4096) * TW_PAGE_BYTES;
	case 5: return random64() % 5 | random64() % 32768 << 32;
	case 6: return random64() & UINT32_MAX;
	default: return random64();
	}
}

static void scribble(void *memory, size_t bytes)
{
	size_t at = random64() % (bytes / 8), count = 1 + random64() % 3;

	for (size_t i = at; i < at + count && i < bytes / 8; i++) {
		_Atomic uint64_t *to = (_Atomic uint64_t *)memory + i;

		atomic_store_explicit(to, word(), memory_order_relaxed);
	}
}

static void scribble_anywhere(void)
{
	uint32_t ring = (uint32_t)(random64() % 8);

	switch (random64() % 8) {
	case 0: scribble(member.control, offsetof(struct tw_rs_control, slots) + sizeof(struct tw_rs_slot)); break;
	case 1: scribble(member.control->slots, 8 * sizeof *member.control->slots); break;
	case 2: scribble(member.own.head, offsetof(struct tw_rs_image_head, rings)); break;
	case 3: scribble(member.own.head->rings, 8 * sizeof *member.own.head->rings); break;
	case 4: scribble(member.own.defs, 4096); break;
	default:
		if (ring < member.own.ring_count)
			scribble(member.own.rings[ring], random64() % 2 ? sizeof(struct tw_rb_shared)
									: TW_PAGE_BYTES + member.own.ring_bytes[ring]);
	}
}

static void *scribble_on(void *arg)
{
	while (!atomic_load(&is_over)) {
		scribble_anywhere();
		for (volatile int i = 0; i < 200; i++)
			;
	}
	return NULL;
}

static void fill(struct tw_rb_producer *producer, unsigned records)
{
	for (unsigned i = 0; i < records; i++) {
		void *space;
		enum tw_rb_outcome outcome = tw_rb_reserve(producer, 32, i + 1, &space);

		if (outcome == TW_RB_WAIT && tw_rs_ring_grow(&member, producer))
			outcome = tw_rb_reserve(producer, 32, i + 1, &space);
		if (outcome != TW_RB_OK)
			return;
		((uint64_t *)space)[0] = i + 1;
		((uint64_t *)space)[1] = TW_RB_HEAD(3, 0, 32, i % 7);
		tw_rb_commit(producer, 32);
	}
}

static void record_once(const char *directory, unsigned number, enum tw_recorder_policy policy)
{
	char path[256];
	bool is_stream = policy == TW_RECORDER_BLOCK && number % 2;
	struct tw_recorder_options options = {.path = path,
					      .is_stream = is_stream,
					      .stream_fd = nowhere,
					      .force = true,
					      .policy = policy,
					      .ring_bytes = 1 << 18,
					      .cap_bytes = 1 << 23,
					      .segment_bytes = number % 2 && !is_stream ? 1 << 16 : 0,
					      .segments_kept = number % 4 == 3 && !is_stream ? 2 : 0,
					      .segment_ns = number % 5 == 4 && !is_stream ? 10000000 : 0,
					      .durable_ns = number % 6 == 2 && !is_stream ? 10000000 : 0};
	struct tw_rs_claim who = {.scheduler_id = 1, .tracee_id = 1};
	struct tw_rb_producer producers[3];
	static struct tw_recorder_question question;
	struct tw_recorder *recorder;
	pthread_t thread;
	uint32_t image;

	snprintf(path, sizeof path, "%s/%u.tw", directory, number);
	assert_int_equal(tw_recorder_create(&options, &recorder), 0);
	assert_int_equal(tw_rs_attach(&member, tw_recorder_ring_set_path(recorder)), 0);
	assert_int_equal(tw_rs_image_claim(&member, &image), 0);
	assert_int_equal(tw_rs_defs_append(&member, 4, "definition", 10), 0);
	for (unsigned i = 0; i < 3; i++) {
		assert_true(tw_rs_ring_claim(&member, &who, &producers[i]));
		while (tw_rs_ring_populate(&member, &producers[i], true))
			;
		fill(&producers[i], 1000 * (i + 1) * (i + 1));
	}
	tw_recorder_poll(recorder, 0);
	/* From here on no producer writes: its behaviour on such memory is the program's own problem. */
	atomic_store(&is_over, false);
	pthread_create(&thread, NULL, scribble_on, NULL);
	for (unsigned round = 0; round < ROUNDS; round++) {
		tw_recorder_poll(recorder, 0);
		if (policy == TW_RECORDER_OVERWRITE)
			tw_recorder_snapshot(recorder);
		if (round % 20 == 19)
			tw_recorder_drain(recorder);
	}
	/* Questions of agents, which the command answers. */
	if (tw_recorder_question(recorder, TW_RECORDER_QUESTION_PLANS, &question))
		tw_recorder_answer(recorder, TW_RECORDER_QUESTION_PLANS, question.number, NULL);
	if (tw_recorder_question(recorder, TW_RECORDER_QUESTION_LAYOUTS, &question))
		tw_recorder_answer(recorder, TW_RECORDER_QUESTION_LAYOUTS, question.number, number % 2 ? "text" : NULL);
	tw_recorder_finish(recorder, NULL);
	atomic_store(&is_over, true);
	pthread_join(thread, NULL);
	tw_rs_detach(&member);
	if (!is_stream)
		tw_store_remove(path);
}

static void whatever_a_program_writes(void **unused)
{
	char directory[] = "/tmp/tracewheel-hostile-XXXXXX";

	uint64_t end_ns = tw_clock_monotonic_ns() + seconds * UINT64_C(1000000000);

	assert_non_null(mkdtemp(directory));
	nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
	assert_true(nowhere >= 0);
	for (unsigned i = 0; i < RECORDINGS || tw_clock_monotonic_ns() < end_ns; i++)
		record_once(directory, i, (enum tw_recorder_policy)(i % 3));
	close(nowhere);
	rmdir(directory);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(whatever_a_program_writes)};

	state = argc > 1 ? strtoull(argv[1], NULL, 0) | 1 : (uint64_t)getpid() * 2654435761u | 1;
	seconds = argc > 2 ? strtoull(argv[2], NULL, 0) : 0;
	printf("seed %llu\n", (unsigned long long)state);
	tw_clock_init();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
