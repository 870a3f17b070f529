/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal	Changes, alone and in transactions, commit or are dropped as a whole: the functions traced and counted
 *	afterwards agree with a simple model, including counters.
 * Method	Random changes of three sessions over six functions; a copy of the model is what a transaction works
 *	on, and is kept or dropped with it.  After each, every function is called once and all events and counts
 *	are compared.  The seed is printed, and taken from TW_CHANGE_SEED.
 */
#include "session_bed.h"
#include "tests/common/random.h"

#include <stdio.h>
#include <stdlib.h>

#define SESSIONS  3
#define FUNCTIONS 6
#define ROUNDS	  3000

static struct tw_declared_function f[FUNCTIONS] = {
	TW_DECLARED_FUNCTION("change", "f0", 1), TW_DECLARED_FUNCTION("change", "f1", 1),
	TW_DECLARED_FUNCTION("change", "f2", 1), TW_DECLARED_FUNCTION("other", "f3", 1),
	TW_DECLARED_FUNCTION("other", "f4", 1),	 TW_DECLARED_FUNCTION("other", "f5", 1),
};

/* A session's setting for a function. */
struct setting {
	bool is_traced;
	bool is_counted;
	bool is_paused; /* counted before, and the count is kept */
	uint64_t count;
};
struct model {
	struct setting settings[SESSIONS][FUNCTIONS];
};

static struct bed beds[SESSIONS];
static uint64_t seed;

static unsigned draw(unsigned below)
{
	return (unsigned)random_below(&seed, below);
}

static void change_setting(struct setting *s, enum tw_match match, uint32_t flags)
{
	switch (match) {
	case TW_MATCH_TRUE:
		s->is_traced |= (flags & TW_FUNCTION_LOCAL) != 0;
		if (flags & TW_FUNCTION_CALL_COUNT)
			s->is_counted = true, s->is_paused = false, s->count = 0;
		break;
	case TW_MATCH_FALSE:
		s->is_traced &= !(flags & TW_FUNCTION_LOCAL);
		if (flags & TW_FUNCTION_CALL_COUNT)
			s->is_counted = s->is_paused = false;
		break;
	case TW_MATCH_RESTART:
		if ((flags & TW_FUNCTION_CALL_COUNT) && (s->is_counted || s->is_paused))
			s->is_counted = true, s->is_paused = false, s->count = 0;
		break;
	case TW_MATCH_PAUSE:
		if ((flags & TW_FUNCTION_CALL_COUNT) && s->is_counted)
			s->is_counted = false, s->is_paused = true;
		break;
	}
}

/* One random call of tw_trace_function(), to the library and to the model. */
static void change(struct model *model)
{
	static const char *const modules[] = {"change", "other", "_"};
	unsigned session = draw(SESSIONS), module = draw(3), one = draw(2) && module < 2 ? draw(3) : 3;
	enum tw_match match = (enum tw_match)draw(4);
	uint32_t flags = 1 + draw(3);
	const char *name = one < 3 ? f[module * 3 + one].name : "_";
	int wanted = one < 3 ? 1 : module < 2 ? 3 : 6;

	assert_int_equal(tw_trace_function(beds[session].session, modules[module], name, TW_ARITY_ANY, match, flags),
			 wanted);
	for (unsigned i = 0; i < FUNCTIONS; i++)
		if ((module == 2 || i / 3 == module) && (one == 3 || i % 3 == one))
			change_setting(&model->settings[session][i], match, flags);
}

static void compare(struct model *model)
{
	for (unsigned i = 0; i < FUNCTIONS; i++) {
		tw_call1(&f[i], i);
		for (unsigned s = 0; s < SESSIONS; s++) {
			struct setting *setting = &model->settings[s][i];
			uint64_t count = 0;

			setting->count += setting->is_counted;
			assert_int_equal(count_events(&beds[s]), setting->is_traced);
			assert_int_equal(tw_trace_call_count(beds[s].session, f[i].module, f[i].name, 1, &count),
					 setting->is_counted || setting->is_paused);
			if (setting->is_counted || setting->is_paused)
				assert_int_equal(count, setting->count);
		}
	}
}

static void changes_and_transactions_do_what_the_model_says(void **state)
{
	struct model model = {0};

	for (unsigned s = 0; s < SESSIONS; s++) {
		open_bed(&beds[s], "change");
		tw_trace_process(beds[s].session, TW_PID_ALL, true, TW_FLAG_CALL);
	}
	for (unsigned round = 0; round < ROUNDS; round++) {
		if (draw(2)) {
			change(&model);
		} else {
			struct model staged = model;

			assert_int_equal(tw_trace_begin(), 0);
			for (unsigned n = draw(6); n; n--)
				change(&staged);
			if (draw(2)) {
				assert_true(tw_trace_commit() >= 0);
				model = staged;
			} else {
				assert_int_equal(tw_trace_abort(), 0);
			}
		}
		compare(&model);
	}
	for (unsigned s = 0; s < SESSIONS; s++)
		close_bed(&beds[s]);
	for (unsigned i = 0; i < FUNCTIONS; i++)
		assert_int_equal(f[i].armed, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(changes_and_transactions_do_what_the_model_says)};

	seed = getenv("TW_CHANGE_SEED") ? strtoull(getenv("TW_CHANGE_SEED"), NULL, 0) : tw_clock_monotonic_ns();
	printf("seed %llu\n", (unsigned long long)seed);
	fflush(stdout);
	for (unsigned i = 0; i < FUNCTIONS; i++)
		assert_int_equal(tw_function_declare(&f[i]), 0);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
