/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal	Sessions come, change their flags and patterns and go, while processes live and die, send, link and are
 *	scheduled on other threads: nothing is used after it was freed, and no event is made once a session is
 *	destroyed.
 * Method	Two threads play a run-time without a pause; the main thread creates sessions over rings of its own,
 *	with random flags and patterns.  After each end the rings must not change.  Meant for the sanitizers.
 */
#include "session_bed.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

#ifdef __SANITIZE_THREAD__
#define ROUNDS 60
#else
#define ROUNDS 150
#endif
#define SHARED 4

static _Atomic int is_stopping;
static struct tw_process *shared[SHARED]; /* live all the time: every thread makes events of them */
static struct tw_declared_function step = TW_DECLARED_FUNCTION("actor", "step", 2);

static void live_once(unsigned *seed)
{
	struct tw_process *peer = shared[rand_r(seed) % SHARED], *child;
	struct tw_gc_sizes sizes = {0};
	struct tw_spawn options = {.name = "child", .parent = peer, .is_linked = rand_r(seed) % 2};
	char buffer[256];
	struct tw_arena arena;
	struct tw_term message;

	tw_arena_init_fixed(&arena, buffer, sizeof buffer);
	message = tw_term_tuple(&arena, (struct tw_term[]){tw_term_bool(1), tw_term_integer(&arena, rand_r(seed))}, 2);
	assert_int_equal(tw_process_spawn(&options, &child), 0);
	tw_process_in_at(child, &step);
	tw_call2(&step, 1, 2);
	tw_process_link(child, peer);
	tw_process_getting_linked(peer, tw_process_pid(child));
	tw_process_send(child, message, tw_process_term(&arena, peer));
	tw_process_receive(peer, message, tw_process_term(&arena, child));
	tw_process_receive(child, message, (struct tw_term){0});
	tw_process_sensitive(child, rand_r(seed) % 4 == 0);
	tw_process_gc(child, TW_GC_MAJOR_START, &sizes);
	tw_process_receive_timeout(child);
	tw_process_exiting(child, message);
	tw_process_out_at(&step);
	tw_process_getting_unlinked(peer, tw_process_pid(child));
	tw_process_exit(child);
}

static void *live(void *arg)
{
	unsigned seed = (unsigned)(uintptr_t)arg;

	assert_int_equal(tw_scheduler_declare(), 0);
	/* RELAXED test.stop: a flag. */
	while (!tw_load_relaxed(&is_stopping))
		live_once(&seed);
	return NULL;
}

static void change(struct bed *bed, unsigned *seed)
{
	static const char *const specs[] = {"[]", "[{'_',[],[{message,false}]}]", "[{['_','_'],[],[{message,{self}}]}]",
					    "[{['_','$1','_'],[{is_pid,'$1'}],[]}]"};
	const char *spec = specs[rand_r(seed) % TW_COUNT_OF(specs)];

	switch (rand_r(seed) % 5) {
	case 0:
		tw_trace_process(bed->session, TW_PID_ALL, rand_r(seed) % 2,
				 (uint32_t)rand_r(seed) & (TW_FLAG_ALL | TW_FLAG_CPU_TIMESTAMP));
		break;
	case 1: tw_trace_process(bed->session, TW_PID_ALL, true, TW_FLAG_ALL & ~(uint32_t)TW_FLAG_SILENT); break;
	case 2: assert_int_equal(tw_trace_send_text(bed->session, spec, strlen(spec), NULL), 1); break;
	case 3: assert_int_equal(tw_trace_recv_text(bed->session, spec, strlen(spec), NULL), 1); break;
	default:
		assert_int_equal(tw_trace_send(bed->session, TW_MATCH_FALSE), 1);
		tw_trace_function(bed->session, "actor", "step", 2, rand_r(seed) % 2 ? TW_MATCH_TRUE : TW_MATCH_FALSE,
				  TW_FUNCTION_LOCAL);
	}
}

static uint64_t positions(struct bed *bed)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < tw_rs_scan(&bed->rs); i++)
		sum += tw_rb_committed(tw_rs_ring(&bed->rs, i));
	return sum;
}

/* On a busy machine the other threads may not be scheduled at all in a round. */
static void wait_for_events(struct bed *bed)
{
	for (int i = 0; i < 20000 && !positions(bed); i++)
		sched_yield();
}

static void sessions_come_and_go_in_a_storm_of_events(void **state)
{
	unsigned seed = 1, some = 0;
	pthread_t threads[2];

	for (int i = 0; i < SHARED; i++)
		assert_int_equal(tw_process_create("shared", &shared[i]), 0);
	for (uintptr_t i = 0; i < 2; i++)
		pthread_create(&threads[i], NULL, live, (void *)(i + 2));
	for (int round = 0; round < ROUNDS; round++) {
		struct bed one, two;
		uint64_t moved;

		open_bed(&one, "one");
		open_bed(&two, "two");
		tw_trace_process(one.session, TW_PID_ALL, true, TW_FLAG_SEND | TW_FLAG_RECEIVE | TW_FLAG_PROCS);
		wait_for_events(&one);
		for (int i = 0; i < 6; i++) {
			change(&one, &seed);
			change(&two, &seed);
		}
		assert_int_equal(tw_session_destroy(one.session), 1);
		moved = positions(&one);
		some += moved > 0;
		change(&two, &seed);
		assert_int_equal(positions(&one), moved);
		tw_session_put(one.session);
		tw_rs_destroy(&one.rs);
		close_bed(&two);
	}
	/* RELAXED test.stop: a flag. */
	tw_store_relaxed(&is_stopping, 1);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	for (int i = 0; i < SHARED; i++)
		tw_process_exit(shared[i]);
	assert_true(some > ROUNDS / 2);
	assert_int_equal(tw_runtime_wanted, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(sessions_come_and_go_in_a_storm_of_events)};

	assert_int_equal(tw_function_declare(&step), 0);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
