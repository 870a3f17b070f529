/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal	Frames end correctly whatever the control path does meanwhile: no return without its call, none twice, counters
 *	exact at the end; no report of a sanitizer.
 * Method	Threads call, tail call and throw without a pause, while the main thread creates sessions, sets and
 *	clears return_trace, meta, call_time and call_count, and destroys them; each ring is then read as a stack.
 */
#include "tests/unit/session_bed.h"
#include "tracewheel/match.h"
#include "tracewheel/term.h"

#include <pthread.h>
#include <unistd.h>

enum { THREADS = 3, ROUNDS = 60, FUNCTIONS = 3 };

static struct tw_declared_function functions[FUNCTIONS] = {
	TW_DECLARED_FUNCTION("r", "a", 2),
	TW_DECLARED_FUNCTION("r", "b", 2),
	TW_DECLARED_FUNCTION("r", "c", 2),
};
static _Atomic bool is_stopping;

static void work(uint64_t depth, uint64_t i)
{
	struct tw_frame frame;

	tw_enter2(&functions[i % FUNCTIONS], &frame, depth, i);
	if (i % 3 == 0)
		tw_tail2(&functions[(i + 1) % FUNCTIONS], &frame, depth, i);
	if (depth < 4)
		work(depth + 1, i / 2);
	if (i % 7 == 0) {
		struct tw_raise raise = TW_RAISE(TW_CLASS_EXIT, tw_term_nil());

		tw_unwind(&frame, &raise);
		tw_caught(&raise, NULL);
	} else {
		tw_leave(&frame, i);
	}
}

static void *run(void *arg)
{
	/* RELAXED test.stop: a flag. */
	for (uint64_t i = 0; !tw_load_relaxed(&is_stopping); i++)
		work(0, i);
	return NULL;
}

/* Checks one thread: each end belongs to an open call.  After a loss nothing is known. */
static unsigned check_stretch(const uint8_t *at, int64_t bytes)
{
	uint32_t stack[4096];
	unsigned depth = 0, ends = 0;

	for (int64_t b = 0; b < bytes;) {
		uint64_t head = ((const struct tw_rb_record *)(at + b))->head;
		unsigned kind = TW_RB_HEAD_KIND(head);

		b += TW_RB_HEAD_BYTES(head);
		if (kind == TW_EVENT_LOSS || depth == TW_COUNT_OF(stack))
			return ends;
		if (kind == TW_EVENT_CALL)
			stack[depth++] = TW_RB_HEAD_ID(head);
		if (kind != TW_EVENT_RETURN_FROM && kind != TW_EVENT_EXCEPTION_FROM)
			continue;
		/* The calls above were left open when they were no longer traced. */
		while (depth && stack[depth - 1] != TW_RB_HEAD_ID(head))
			depth--;
		assert_int_not_equal(depth, 0);
		depth--;
		ends++;
	}
	return ends;
}

static unsigned check(struct bed *bed)
{
	unsigned ends = 0;

	for (uint32_t i = 0; i < tw_rs_scan(&bed->rs); i++) {
		const uint8_t *at;
		uint64_t end;
		int64_t bytes = tw_rb_peek(tw_rs_ring(&bed->rs, i), 0, TW_BLOCK_RAW_BYTES_MAX, &at, &end);

		ends += bytes > 0 ? check_stretch(at, bytes) : 0;
	}
	return ends;
}

static void one_round(const struct tw_match_program *program, int round)
{
	struct bed bed;
	uint64_t count;

	open_bed(&bed, "race");
	tw_trace_function_match(bed.session, "r", "_", TW_ARITY_ANY, program, TW_FUNCTION_LOCAL);
	tw_trace_process(bed.session, TW_PID_ALL, true, TW_FLAG_CALL | TW_FLAG_RETURN_TO);
	if (round % 2)
		tw_trace_function(bed.session, "r", "a", 2, TW_MATCH_TRUE,
				  TW_FUNCTION_CALL_COUNT | TW_FUNCTION_CALL_TIME);
	if (round % 3 == 0)
		tw_trace_function_match(bed.session, "r", "b", 2, program, TW_FUNCTION_META);
	if (round % 4 == 0)
		tw_trace_function(bed.session, "r", "_", TW_ARITY_ANY, TW_MATCH_FALSE, TW_FUNCTION_LOCAL);
	usleep(2000);
	if (round % 2)
		assert_int_equal(tw_trace_call_count(bed.session, "r", "a", 2, &count), 1);
	check(&bed);
	close_bed(&bed);
}

static void frames_end_whatever_control_does(void **state)
{
	static const char text[] = "[{'_',[],[{exception_trace}]}]";
	struct tw_match_program *program;
	pthread_t thread[THREADS];

	assert_int_equal(tw_match_compile_text(text, strlen(text), NULL, &program, NULL), 0);
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, run, NULL), 0);
	for (int round = 0; round < ROUNDS; round++)
		one_round(program, round);
	/* RELAXED test.stop: a flag. */
	tw_store_relaxed(&is_stopping, true);
	for (int i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	tw_match_destroy(program);
}

/* One thread, nothing changes: every call has its end, in order. */
static void a_quiet_thread_has_every_end(void **state)
{
	static const char text[] = "[{'_',[],[{exception_trace}]}]";
	struct tw_match_program *program;
	struct bed bed;
	unsigned calls = 0;

	assert_int_equal(tw_match_compile_text(text, strlen(text), NULL, &program, NULL), 0);
	open_bed(&bed, "quiet");
	tw_trace_function_match(bed.session, "r", "_", TW_ARITY_ANY, program, TW_FUNCTION_LOCAL);
	tw_trace_process(bed.session, tw_process_self(), true, TW_FLAG_CALL);
	for (uint64_t i = 0; i < 20; i++) {
		work(0, i);
		for (uint64_t depth = 0, k = i; depth < 5; depth++, k /= 2)
			calls += 1 + (k % 3 == 0);
	}
	assert_int_equal(check(&bed), calls);
	close_bed(&bed);
	tw_match_destroy(program);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_quiet_thread_has_every_end),
		cmocka_unit_test(frames_end_whatever_control_does),
	};

	for (int i = 0; i < FUNCTIONS; i++)
		assert_int_equal(tw_function_declare(&functions[i]), 0);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
