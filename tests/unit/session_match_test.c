/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal	A match specification decides inside the hit which calls are recorded, and with which additions.
 * Method	Calls with known words against specifications that are fused, run by byte code, or match nothing.
 */
#include "tests/unit/session_bed.h"
#include "tracewheel/match.h"
#include "tracewheel/term.h"

static struct tw_declared_function f2 = TW_DECLARED_FUNCTION("m", "f2", 2);

static struct tw_match_program *compile(const char *text)
{
	struct tw_match_program *program = NULL;
	struct tw_match_error error;

	assert_int_equal(tw_match_compile_text(text, strlen(text), NULL, &program, &error), 0);
	return program;
}

static void a_match_spec_decides_which_calls_are_seen(void **state)
{
	static const struct {
		const char *spec;
		uint64_t low, high; /* the calls f2(i, 2 * i) of 0 .. 99 that are recorded */
	} cases[] = {
		{"[{['$1','_'],[{'>','$1',89}],[]}]", 90, 100},
		{"[{['$1','_'],[{'<','$1',5}],[]}]", 0, 5},
		{"[{['_','$1'],[{'>=','$1',100},{'<','$1',120}],[]}]", 50, 60},
		{"[{['$1','$2'],[{'=:=',{'*','$1',2},'$2'},{'<','$1',3}],[]}]", 0, 3},
		{"[{['$1','_'],[{is_atom,'$1'}],[]}]", 0, 0},
		{"[{[7,'_'],[],[]}]", 7, 8},
		{"[{['$1'],[],[]}]", 0, 0},
		{"[{'_',[],[]}]", 0, 100},
	};
	struct bed bed;

	open_bed(&bed, "match");
	tw_trace_process(bed.session, TW_PID_ALL, true, TW_FLAG_CALL);
	for (size_t c = 0; c < TW_COUNT_OF(cases); c++) {
		struct tw_match_program *program = compile(cases[c].spec);
		struct tw_rb_record *r[128];
		unsigned n;

		assert_int_equal(tw_trace_function_match(bed.session, "m", "f2", 2, program, TW_FUNCTION_LOCAL), 1);
		for (uint64_t i = 0; i < 100; i++)
			tw_call2(&f2, i, 2 * i);
		n = take(&bed, r, 128);
		assert_int_equal(n, cases[c].high - cases[c].low);
		for (unsigned i = 0; i < n; i++)
			assert_int_equal(tw_event_payload(r[i])[0], cases[c].low + i);
		assert_int_equal(tw_trace_function(bed.session, "m", "f2", 2, TW_MATCH_FALSE, TW_FUNCTION_LOCAL), 1);
		tw_match_destroy(program);
	}
	assert_int_equal(tw_trace_function_match(bed.session, "m", "f2", 2, NULL, TW_FUNCTION_LOCAL), TW_EBADARG);
	close_bed(&bed);
}

static void a_match_spec_adds_an_element(void **state)
{
	struct tw_match_program *program = compile("[{['$1','$2'],[],[{message,{{'$2',sum,{'+','$1','$2'}}}}]}]");
	struct bed bed;
	struct tw_rb_record *r[4];
	struct tw_term extra;
	struct tw_arena arena;
	char text[64];

	open_bed(&bed, "extra");
	tw_trace_process(bed.session, TW_PID_ALL, true, TW_FLAG_CALL);
	tw_trace_function_match(bed.session, "m", "f2", 2, program, TW_FUNCTION_LOCAL);
	tw_call2(&f2, 40, 2);
	assert_int_equal(take(&bed, r, 4), 1);
	assert_true(TW_RB_HEAD_FLAGS(r[0]->head) & TW_EVENT_FLAG_EXTRA);
	assert_int_equal((uint32_t)tw_event_payload(r[0])[0], 2);
	assert_int_equal(tw_event_payload(r[0])[1], 40);
	tw_arena_init(&arena, 1 << 16);
	assert_int_equal(tw_etf_decode(&arena, tw_event_payload(r[0]) + 3, tw_event_payload(r[0])[0] >> 32, NULL, NULL,
				       &extra),
			 0);
	tw_term_format(extra, TW_PRINT_WRITE, text, sizeof text);
	assert_string_equal(text, "{2,sum,42}");
	tw_arena_fini(&arena);
	close_bed(&bed);
	tw_match_destroy(program);
}

/* Calls f2(I, 0) for each of the numbers; returns the sum of the first recorded words. */
static uint64_t sum_of_calls(struct bed *bed, const uint64_t *numbers, size_t count)
{
	struct tw_rb_record *r[64];
	uint64_t sum = 0;

	for (size_t i = 0; i < count; i++)
		tw_call2(&f2, numbers[i], 0);
	for (unsigned n = take(bed, r, 64); n; n--)
		sum += tw_event_payload(r[n - 1])[0];
	return sum;
}

static void a_match_spec_silences_and_changes_flags(void **state)
{
	static const uint64_t numbers[] = {1, 10, 2, 20, 4};
	struct tw_match_program *silent = compile("[{[10,'_'],[],[{silent,true}]},{[20,'_'],[],[{silent,false}]},"
						  "{'_',[],[]}]");
	struct tw_match_program *once = compile("[{[2,'_'],[],[{trace,[call],[]}]},{'_',[],[]}]");
	struct tw_match_program *arity = compile("[{[10,'_'],[],[{enable_trace,arity}]},{[20,'_'],[],[{trace,[arity],"
						 "[]},{enable_trace,no_such_flag},{message,false}]},{'_',[],[]}]");
	struct bed bed;
	uint32_t flags;

	open_bed(&bed, "effects");
	tw_trace_process(bed.session, tw_process_self(), true, TW_FLAG_CALL);
	tw_trace_function_match(bed.session, "m", "f2", 2, silent, TW_FUNCTION_LOCAL);
	/* 10 silences itself and 2 as well, 20 ends that. */
	assert_int_equal(sum_of_calls(&bed, numbers, 5), 1 + 20 + 4);
	tw_trace_function_match(bed.session, "m", "f2", 2, arity, TW_FUNCTION_LOCAL);
	assert_int_equal(sum_of_calls(&bed, numbers, 2), 1 + 10);
	tw_trace_process_flags(bed.session, tw_process_self(), &flags);
	assert_int_equal(flags, TW_FLAG_CALL | TW_FLAG_ARITY);
	assert_int_equal(sum_of_calls(&bed, numbers + 2, 3), 2 + 4);
	tw_trace_process_flags(bed.session, tw_process_self(), &flags);
	assert_int_equal(flags, TW_FLAG_CALL);
	/* The call that disables itself is still recorded. */
	tw_trace_function_match(bed.session, "m", "f2", 2, once, TW_FUNCTION_LOCAL);
	assert_int_equal(sum_of_calls(&bed, numbers, 5), 1 + 10 + 2);
	tw_trace_process_flags(bed.session, tw_process_self(), &flags);
	assert_int_equal(flags, 0);
	close_bed(&bed);
	tw_match_destroy(silent);
	tw_match_destroy(once);
	tw_match_destroy(arity);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_match_spec_decides_which_calls_are_seen),
		cmocka_unit_test(a_match_spec_adds_an_element),
		cmocka_unit_test(a_match_spec_silences_and_changes_flags),
	};

	assert_int_equal(tw_function_declare(&f2), 0);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
