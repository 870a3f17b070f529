/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal	Four threads create, use, drop and destroy sessions at random while others run traced code: no leak, no use
 *	after free, no event once destroy has returned, weak ids always harmless, bad arguments refused and nothing left
 *	at the end.
 * Method	All settings of a session, in and out of transactions, on functions that stay, on a module that is
 *	unloaded and declared again all the time, and on processes that come and go.  Each session's rings belong to the
 *	test and are unmapped right after destroy: a late event is a crash.  TW_RACE_SECONDS is the time (0.6 by
 *	default); the seed is printed, and taken from TW_RACE_SEED.
 */
#include "check_help.h"
#include "tests/unit/session_bed.h"
#include "tracewheel/match.h"
#include "tests/common/random.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#define MAKERS	  4
#define CALLERS	  2
#define FUNCTIONS 4
#define WEAK_IDS  16

static struct tw_declared_function f[FUNCTIONS] = {
	TW_DECLARED_FUNCTION("churn", "f0", 1),
	TW_DECLARED_FUNCTION("churn", "f1", 1),
	TW_DECLARED_FUNCTION("churn", "f2", 1),
	{.arity = 1, .module = "churn", .name = "f3", .flags = TW_DECLARED_LOCAL},
};

/* Functions of a module that comes and goes: each time another structure, so that a thread may call an old one. */
static struct tw_declared_function loaded[20000];
static _Atomic unsigned loaded_now;

static struct tw_match_program *programs[3];
static _Atomic bool is_stopping;
static _Atomic uint64_t weak_ids[WEAK_IDS];
static uint64_t seed;

/* ---- what is traced ---- */

static void *call(void *arg)
{
	uint64_t *calls = arg;

	while (!is_stopping) {
		for (unsigned i = 0; i < 64; i++, (*calls)++) {
			if (i % 3)
				tw_call1(&f[i % FUNCTIONS], i);
			else
				tw_local_call1(&f[i % FUNCTIONS], i);
		}
		tw_call1(&loaded[tw_load_acquire(&loaded_now)], 1);
	}
	return NULL;
}

static void *come_and_go(void *unused)
{
	uint64_t random = seed ^ 99;

	while (!is_stopping) {
		struct tw_process *process;
		unsigned next = tw_load_acquire(&loaded_now) + 1;

		if (next < TW_COUNT_OF(loaded)) {
			CHECK(tw_module_unload("loaded") == 1);
			loaded[next] = (struct tw_declared_function)TW_DECLARED_FUNCTION("loaded", "g", 1);
			CHECK(tw_function_declare(&loaded[next]) == 0);
			tw_store_release(&loaded_now, next);
		}
		CHECK(tw_process_create("short", &process) == 0);
		tw_process_in(process);
		for (unsigned i = 0; i < random_below(&random, 50); i++)
			tw_call1(&f[i % FUNCTIONS], i);
		tw_process_exit(process);
	}
	return NULL;
}

/* ---- sessions ---- */

static bool is_expected(int result)
{
	return result >= 0 || result == TW_EDEAD;
}

static void set_something(struct tw_session *session, uint64_t *random)
{
	static const uint32_t kinds[] = {0,
					 TW_FUNCTION_GLOBAL,
					 TW_FUNCTION_LOCAL,
					 TW_FUNCTION_META,
					 TW_FUNCTION_CALL_COUNT,
					 TW_FUNCTION_CALL_TIME | TW_FUNCTION_CALL_MEMORY,
					 TW_FUNCTION_LOCAL | TW_FUNCTION_CALL_COUNT | TW_FUNCTION_CALL_TIME};
	static const char *const modules[] = {"churn", "loaded", "_", "nothing"};
	const char *module = modules[random_below(random, 4)];
	uint32_t flags = kinds[random_below(random, TW_COUNT_OF(kinds))];
	enum tw_match match = (enum tw_match)random_below(random, 4);

	switch (random_below(random, 8)) {
	case 0: CHECK(is_expected(tw_trace_on_load(session, match, NULL, flags))); break;
	case 1:
		CHECK(is_expected(tw_trace_process(session, random_below(random, 2) ? TW_PID_ALL : TW_PID_NEW,
						   random_below(random, 2),
						   (uint32_t)random_below(random, TW_FLAG_ALL) & TW_FLAG_ALL)));
		CHECK(is_expected(
			tw_trace_process(session, TW_PID_ALL, random_below(random, 2), TW_FLAG_CPU_TIMESTAMP)));
		break;
	case 2: CHECK(is_expected(tw_trace_process(session, tw_process_self(), true, TW_FLAG_CALL))); break;
	case 3:
		CHECK(is_expected(
			tw_trace_function_match(session, module, "_", TW_ARITY_ANY, programs[random_below(random, 3)],
						random_below(random, 2) ? TW_FUNCTION_LOCAL : TW_FUNCTION_META)));
		break;
	case 4:
		CHECK(is_expected(tw_trace_send(session, random_below(random, 2) ? TW_MATCH_TRUE : TW_MATCH_FALSE)));
		break;
	default: CHECK(is_expected(tw_trace_function(session, module, "_", TW_ARITY_ANY, match, flags)));
	}
}

static void ask(struct tw_session *session, uint64_t *random)
{
	static const char *const what[] = {"{churn,f0,1}", "{loaded,g,1}", "on_load", "new", "send", "{no,such,1}"};
	static const char *const items[] = {"all", "call_count", "call_time", "match_spec", "flags", "tracer"};
	const char *text = what[random_below(random, TW_COUNT_OF(what))];
	char buffer[8192], weak[64];
	struct tw_arena arena, large = {0};
	struct tw_term term, item, out = {0};
	int error;

	tw_arena_init_fixed(&arena, buffer, sizeof buffer);
	CHECK(tw_term_parse(&arena, text, strlen(text), &term, NULL) == 0);
	item = tw_term_atom_z(items[random_below(random, TW_COUNT_OF(items))]);
	error = tw_trace_info(session, term, item, &arena, &out);
	if (error == TW_ENOMEM) {
		/* The times of hundreds of processes that came and went, on a busy machine, fit here. */
		tw_arena_init(&large, SIZE_MAX);
		error = tw_trace_info(session, term, item, &large, &out);
	}
	CHECK(error == 0 || error == TW_EBADARG || error == TW_EDEAD);
	CHECK(error || tw_term_format(out, TW_PRINT_WRITE, weak, sizeof weak) > 0);
	tw_arena_fini(&large);
	tw_arena_reset(&arena);
	error = tw_session_info(tw_term_atom_z("all"), &arena, &out);
	CHECK(error == 0);
}

static void misuse(struct tw_session *session, uint64_t *random)
{
	CHECK(tw_trace_function(session, "churn", "f0", 1, TW_MATCH_TRUE, TW_FUNCTION_GLOBAL | TW_FUNCTION_LOCAL) ==
	      TW_EBADARG);
	CHECK(tw_trace_function(session, "_", "f0", 1, TW_MATCH_TRUE, 0) == TW_EBADARG);
	CHECK(tw_trace_function_match(session, "churn", "f0", 1, programs[0], TW_FUNCTION_CALL_COUNT) == TW_EBADARG);
	CHECK(tw_trace_process(session, TW_PID_ALL, true, UINT32_C(1) << (22 + random_below(random, 10))) ==
	      TW_EBADARG);
	CHECK(tw_trace_commit() == TW_EBADARG && tw_trace_abort() == TW_EBADARG);
}

/* Uses an id whose session may have been destroyed long ago. */
static void use_weak(uint64_t *random)
{
	tw_session_weak weak = weak_ids[random_below(random, WEAK_IDS)];
	struct tw_session *session;
	int result;

	if (random_below(random, 4) == 0) {
		result = tw_session_destroy_weak(weak);
		CHECK(result == 0 || result == 1 || result == TW_EBADARG);
		return;
	}
	result = tw_session_lock(weak, &session);
	CHECK(result == 0 || result == TW_EDEAD);
	if (result)
		return;
	set_something(session, random);
	ask(session, random);
	CHECK(tw_session_weak_of(session) == weak);
	tw_session_put(session);
}

/* One or two sessions at one moment, or not at all. */
static void use_together(struct tw_session *session, uint64_t *random)
{
	CHECK(tw_trace_begin() == 0);
	for (unsigned i = 0; i < 4; i++)
		set_something(session, random);
	if (random_below(random, 2))
		CHECK(tw_trace_commit() >= 0);
	else
		CHECK(tw_trace_abort() == 0);
}

static void live_one_life(uint64_t *random)
{
	const struct tw_rs_options options = {.ring_bytes = 1 << 16,
					      .cap_bytes = 1 << 19,
					      .has_fixed_rings = true,
					      .policy = random_below(random, 2) ? TW_RB_DROP : TW_RB_OVERWRITE};
	struct tw_rs rs;
	struct tw_session *session;
	uint32_t image;
	bool has_rings = random_below(random, 4) != 0;

	if (has_rings) {
		CHECK(tw_rs_create(&rs, &options) == 0 && tw_rs_image_claim(&rs, &image) == 0);
		CHECK(tw_session_make("churn", &rs, &session) == 0);
	} else {
		CHECK(tw_session_create("churn", NULL, &session) == 0);
	}
	weak_ids[random_below(random, WEAK_IDS)] = tw_session_weak_of(session);
	for (uint64_t i = random_below(random, 12); i > 0; i--) {
		switch (random_below(random, 6)) {
		case 0: use_weak(random); break;
		case 1: use_together(session, random); break;
		case 2: ask(session, random); break;
		case 3: misuse(session, random); break;
		default: set_something(session, random);
		}
	}
	if (has_rings || random_below(random, 2)) {
		tw_session_destroy(session);
		/* Destroyed, by whichever thread: the rings' memory, which a late event would need, is unmapped. */
		if (has_rings)
			tw_rs_destroy(&rs);
		CHECK(tw_trace_function(session, "churn", "f0", 1, TW_MATCH_TRUE, 0) == TW_EDEAD);
	}
	tw_session_put(session);
}

static void *live(void *arg)
{
	uint64_t random = seed + (uintptr_t)arg;

	while (!is_stopping)
		live_one_life(&random);
	return NULL;
}

static void nothing_is_left(void)
{
	char buffer[1024];
	struct tw_arena arena;
	struct tw_term out;
	struct tw_session *session;
	uint32_t flags = 1;

	tw_progress();
	tw_arena_init_fixed(&arena, buffer, sizeof buffer);
	assert_int_equal(tw_session_info(tw_term_atom_z("all"), &arena, &out), 0);
	assert_int_equal(tw_term_type(out), TW_TYPE_NIL);
	for (unsigned i = 0; i < FUNCTIONS; i++)
		assert_int_equal(f[i].armed, 0);
	assert_int_equal(loaded[tw_load_acquire(&loaded_now)].armed, 0);
	for (unsigned i = 0; i < WEAK_IDS; i++)
		assert_int_equal(tw_session_lock(weak_ids[i], &session), TW_EDEAD);
	assert_int_equal(tw_session_create("after", NULL, &session), 0);
	assert_int_equal(tw_trace_process_flags(session, TW_PID_NEW, &flags), 0);
	assert_int_equal(flags, 0);
	tw_session_put(session);
	tw_progress();
}

static void four_threads_at_random(void **state)
{
	const char *text = getenv("TW_RACE_SECONDS");
	uint64_t end = tw_clock_monotonic_ns() + (uint64_t)((text ? strtod(text, NULL) : 0.6) * 1e9);
	pthread_t makers[MAKERS], callers[CALLERS], other;
	uint64_t calls[CALLERS] = {0};

	for (uintptr_t i = 0; i < MAKERS; i++)
		assert_int_equal(pthread_create(&makers[i], NULL, live, (void *)(i * 12345)), 0);
	for (int i = 0; i < CALLERS; i++)
		assert_int_equal(pthread_create(&callers[i], NULL, call, &calls[i]), 0);
	assert_int_equal(pthread_create(&other, NULL, come_and_go, NULL), 0);
	while (tw_clock_monotonic_ns() < end)
		tw_progress();
	is_stopping = true;
	for (int i = 0; i < MAKERS; i++)
		pthread_join(makers[i], NULL);
	for (int i = 0; i < CALLERS; i++) {
		pthread_join(callers[i], NULL);
		assert_true(calls[i] > 0);
	}
	pthread_join(other, NULL);
	nothing_is_left();
}

int main(void)
{
	static const char *const specs[] = {"[{[1],[],[]}]", "[{['$1'],[{'>','$1',30}],[{message,'$1'}]}]",
					    "[{'_',[],[{enable_trace,call},{message,false}]}]"};
	const struct CMUnitTest tests[] = {cmocka_unit_test(four_threads_at_random)};
	int failed;

	seed = getenv("TW_RACE_SEED") ? strtoull(getenv("TW_RACE_SEED"), NULL, 0) : tw_clock_monotonic_ns();
	printf("seed %llu\n", (unsigned long long)seed);
	fflush(stdout);
	for (int i = 0; i < 3; i++)
		assert_int_equal(tw_match_compile_text(specs[i], strlen(specs[i]), NULL, &programs[i], NULL), 0);
	for (unsigned i = 0; i < FUNCTIONS; i++)
		assert_int_equal(tw_function_declare(&f[i]), 0);
	loaded[0] = (struct tw_declared_function)TW_DECLARED_FUNCTION("loaded", "g", 1);
	assert_int_equal(tw_function_declare(&loaded[0]), 0);
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	for (int i = 0; i < 3; i++)
		tw_match_destroy(programs[i]);
	return failed;
}
