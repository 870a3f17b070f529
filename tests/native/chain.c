/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal	117 for native code: in a chain of tail calls the first are seen to return, and the returns of the others are
 *	reported as lost; another session beside it has its own.
 * Method	Two functions of a library that tail call each other, 10 and 1,000 times.
 */
#include "tests/unit/session_bed.h"
#include "tracewheel/match.h"

int chain_ping(int a);
int chain_alone(int a);

static void set(struct bed *bed, const char *function, const struct tw_match_program *program)
{
	assert_int_equal(tw_trace_function_match(bed->session, "libnativechain", function, TW_ARITY_ANY, program,
						 TW_FUNCTION_LOCAL),
			 1);
}

static void open_traced(struct bed *bed, const char *name)
{
	struct tw_rs_options options = {.ring_bytes = 1 << 20, .cap_bytes = 1 << 22, .has_fixed_rings = true};

	open_bed_with(bed, name, &options);
	tw_trace_process(bed->session, TW_PID_ALL, true, TW_FLAG_CALL);
}

static void long_chains_are_told(void **state)
{
	static const char spec[] = "[{'_',[],[{return_trace}]}]";
	static const int lengths[] = {10, 1000};
	struct tw_match_program *program;
	struct bed bed, other;
	uint64_t lost = 0;

	assert_int_equal(tw_match_compile_text(spec, sizeof spec - 1, NULL, &program, NULL), 0);
	open_traced(&bed, "chain");
	open_traced(&other, "other");
	set(&bed, "chain_ping", program);
	set(&bed, "chain_pong", program);
	set(&other, "chain_alone", program);
	for (unsigned i = 0; i < TW_COUNT_OF(lengths); i++) {
		static struct tw_rb_record *records[8192];
		int calls = 0, returns = 0;
		unsigned n;

		assert_int_equal(chain_ping(lengths[i]), lengths[i] % 2);
		n = take(&bed, records, 8192);
		for (unsigned r = 0; r < n; r++) {
			calls += TW_RB_HEAD_KIND(records[r]->head) == TW_EVENT_CALL;
			returns += TW_RB_HEAD_KIND(records[r]->head) == TW_EVENT_RETURN_FROM;
		}
		lost = count_lost(&bed) - lost;
		assert_int_equal(calls, lengths[i] + 1);
		assert_int_equal(returns + (int)lost, lengths[i] + 1);
		assert_true(returns > 10);
	}
	assert_true(lost > 0);
	assert_int_equal(chain_alone(1), 2);
	assert_int_equal(count_events(&other), 2);
	assert_int_equal(count_lost(&other), 0);
	close_bed(&other);
	close_bed(&bed);
	tw_match_destroy(program);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(long_chains_are_told)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
