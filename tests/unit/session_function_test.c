/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal	tw_trace_function() behaves as trace:function/4: which functions match, which kinds exclude which, which are
 *	removed by which, counters that pause and restart, functions that come and go.
 * Method	Declared functions of two modules, one of them not exported, called with and without the module's name.
 *	Each case is named by its line in docs/semantics.md, and played alone and beside a session that traces
 *	everything and must not be affected.
 */
#include "tests/unit/session_bed.h"
#include "term/term.h"
#include "tracewheel/match.h"

#include <stdio.h>

static struct tw_declared_function f1 = TW_DECLARED_FUNCTION("tro", "f1", 1);
static struct tw_declared_function loc = {.arity = 1, .module = "tro", .name = "loc", .flags = TW_DECLARED_LOCAL};
static struct tw_declared_function loc2 = TW_DECLARED_FUNCTION("tro", "loc", 2);
static struct tw_declared_function other = TW_DECLARED_FUNCTION("other", "f1", 1);

static struct bed bed, beside;
static struct tw_session *s;

static int set(const char *function, int arity, enum tw_match match, uint32_t flags)
{
	return tw_trace_function(s, "tro", function, arity, match, flags);
}

/* The settings of f1 as text; undefined functions by other names. */
static const char *info_of(const char *what_text, const char *item)
{
	static char text[512];
	char buffer[4096];
	struct tw_arena arena;
	struct tw_term what, out = {0};
	int error;

	tw_arena_init_fixed(&arena, buffer, sizeof buffer);
	assert_int_equal(tw_term_parse(&arena, what_text, strlen(what_text), &what, NULL), 0);
	error = tw_trace_info(s, what, tw_term_atom_z(item), &arena, &out);
	if (error)
		return error == TW_EBADARG ? "badarg" : tw_strerror(error);
	tw_term_format(out, TW_PRINT_PRETTY, text, sizeof text);
	return text;
}

static const char *f1_is(const char *item)
{
	return info_of("{tro,f1,1}", item);
}

static void open_session(bool is_beside)
{
	open_bed(&bed, "function");
	s = bed.session;
	tw_trace_process(s, TW_PID_ALL, true, TW_FLAG_CALL);
	if (!is_beside)
		return;
	open_bed(&beside, "beside");
	tw_trace_process(beside.session, TW_PID_ALL, true, TW_FLAG_CALL);
	assert_true(tw_trace_function(beside.session, "_", "_", TW_ARITY_ANY, TW_MATCH_TRUE,
				      TW_FUNCTION_LOCAL | TW_FUNCTION_CALL_COUNT) >= 4);
}

static void close_session(bool is_beside)
{
	close_bed(&bed);
	if (!is_beside)
		return;
	count_events(&beside);
	tw_call1(&f1, 1);
	assert_int_equal(count_events(&beside), 1);
	close_bed(&beside);
}

/* Plays a case alone, and beside another session. */
static void play(void (*one)(void))
{
	for (int is_beside = 0; is_beside < 2; is_beside++) {
		open_session(is_beside);
		one();
		close_session(is_beside);
	}
	assert_int_equal(f1.armed | loc.armed | loc2.armed | other.armed, 0);
}

/* Events of a qualified call, and of a local one. */
static unsigned qualified(void)
{
	tw_call1(&f1, 1);
	return count_events(&bed);
}

static unsigned local(void)
{
	tw_local_call1(&f1, 1);
	return count_events(&bed);
}

/* ---- 86 to 91: which functions match, refusals ---- */

static void counts(void)
{
	assert_int_equal(set("f1", 1, TW_MATCH_TRUE, 0), 1);
	assert_int_equal(set("f1", 1, TW_MATCH_TRUE, TW_FUNCTION_LOCAL), 1);
	assert_int_equal(set("nofun", 1, TW_MATCH_TRUE, 0), 0);
	assert_int_equal(tw_trace_function(s, "nomod", "_", TW_ARITY_ANY, TW_MATCH_TRUE, 0), 0);
	assert_int_equal(set("f1", TW_ARITY_ANY, TW_MATCH_TRUE, TW_FUNCTION_LOCAL), 1);
	assert_int_equal(set("loc", TW_ARITY_ANY, TW_MATCH_TRUE, TW_FUNCTION_LOCAL), 2);
	assert_int_equal(set("_", TW_ARITY_ANY, TW_MATCH_TRUE, TW_FUNCTION_LOCAL), 3);
	/* 98: any number of times. */
	for (int i = 0; i < 5; i++)
		assert_int_equal(tw_trace_function(s, "_", "_", TW_ARITY_ANY, TW_MATCH_TRUE, TW_FUNCTION_LOCAL), 4);
	assert_int_equal(qualified(), 1);
	/* 88 */
	assert_int_equal(tw_trace_function(s, "_", "_", 1, TW_MATCH_TRUE, 0), TW_EBADARG);
	assert_int_equal(tw_trace_function(s, "_", "f", TW_ARITY_ANY, TW_MATCH_TRUE, 0), TW_EBADARG);
	assert_int_equal(set("_", 1, TW_MATCH_TRUE, 0), TW_EBADARG);
	/* 89 */
	assert_int_equal(set("f1", -1, TW_MATCH_TRUE, 0), 0);
	assert_int_equal(set("f1", 256, TW_MATCH_TRUE, 0), 0);
}

static void line_86_88_89_98_counts(void **state)
{
	play(counts);
}

static void only_exported(void)
{
	assert_int_equal(set("loc", 1, TW_MATCH_TRUE, TW_FUNCTION_GLOBAL), 0);
	assert_int_equal(set("loc", TW_ARITY_ANY, TW_MATCH_TRUE, 0), 1);
	tw_call1(&loc, 1);
	assert_int_equal(count_events(&bed), 0);
	assert_int_equal(set("loc", 1, TW_MATCH_TRUE, TW_FUNCTION_LOCAL), 1);
	tw_call1(&loc, 1);
	assert_int_equal(count_events(&bed), 1);
}

static void line_87_global_matches_exported_functions_only(void **state)
{
	play(only_exported);
}

static struct tw_match_program *compile(const char *text)
{
	struct tw_match_program *program = NULL;

	assert_int_equal(tw_match_compile_text(text, strlen(text), NULL, &program, NULL), 0);
	return program;
}

static void refused(void)
{
	static const uint32_t bad[] = {TW_FUNCTION_GLOBAL | TW_FUNCTION_LOCAL,
				       TW_FUNCTION_GLOBAL | TW_FUNCTION_META,
				       TW_FUNCTION_GLOBAL | TW_FUNCTION_CALL_COUNT,
				       TW_FUNCTION_GLOBAL | TW_FUNCTION_CALL_TIME,
				       TW_FUNCTION_GLOBAL | TW_FUNCTION_CALL_MEMORY,
				       64,
				       1u << 31};
	struct tw_match_program *program = compile("[{[1],[],[]}]");
	char before[512];

	assert_int_equal(set("f1", 1, TW_MATCH_TRUE, TW_FUNCTION_LOCAL | TW_FUNCTION_META), 1);
	snprintf(before, sizeof before, "%s", f1_is("all"));
	for (size_t i = 0; i < TW_COUNT_OF(bad); i++) {
		for (int match = TW_MATCH_FALSE; match <= TW_MATCH_PAUSE; match++)
			assert_int_equal(set("f1", 1, (enum tw_match)match, bad[i]), TW_EBADARG);
		assert_int_equal(tw_trace_on_load(s, TW_MATCH_TRUE, NULL, bad[i]), TW_EBADARG);
	}
	assert_int_equal(set("f1", 1, (enum tw_match)4, TW_FUNCTION_LOCAL), TW_EBADARG);
	assert_int_equal(set(NULL, 1, TW_MATCH_TRUE, 0), TW_EBADARG);
	assert_int_equal(tw_trace_function(NULL, "tro", "f1", 1, TW_MATCH_TRUE, 0), TW_EBADARG);
	/* A specification, and nothing but a counter. */
	for (uint32_t flags = TW_FUNCTION_CALL_COUNT; flags <= TW_FUNCTION_CALL_MEMORY; flags *= 2)
		if (flags & (TW_FUNCTION_CALL_COUNT | TW_FUNCTION_CALL_TIME | TW_FUNCTION_CALL_MEMORY))
			assert_int_equal(tw_trace_function_match(s, "tro", "f1", 1, program, flags), TW_EBADARG);
	assert_int_equal(tw_trace_function_match(s, "tro", "f1", 1, NULL, 0), TW_EBADARG);
	assert_int_equal(tw_trace_on_load(s, TW_MATCH_FALSE, program, 0), TW_EBADARG);
	assert_string_equal(f1_is("all"), before);
	assert_string_equal(info_of("on_load", "all"), "{all,false}");
	tw_trace_function(s, "_", "_", TW_ARITY_ANY, TW_MATCH_FALSE, TW_FUNCTION_LOCAL | TW_FUNCTION_META);
	tw_match_destroy(program);
}

static void line_90_91_bad_arguments_change_nothing(void **state)
{
	play(refused);
}

/* ---- 92 to 97: kinds ---- */

static void without_counter(void)
{
	static const uint32_t kinds[] = {0,
					 TW_FUNCTION_LOCAL,
					 TW_FUNCTION_META,
					 TW_FUNCTION_CALL_COUNT,
					 TW_FUNCTION_CALL_TIME,
					 TW_FUNCTION_CALL_MEMORY};

	for (size_t i = 0; i < TW_COUNT_OF(kinds); i++) {
		assert_int_equal(set("f1", 1, TW_MATCH_RESTART, kinds[i]), 1);
		assert_int_equal(set("f1", 1, TW_MATCH_PAUSE, kinds[i]), 1);
		assert_string_equal(f1_is("all"), "{all,false}");
	}
	assert_int_equal(set("f1", 1, TW_MATCH_TRUE, TW_FUNCTION_LOCAL | TW_FUNCTION_CALL_COUNT), 1);
	qualified();
	assert_int_equal(set("f1", 1, TW_MATCH_PAUSE, TW_FUNCTION_LOCAL), 1);
	assert_int_equal(set("f1", 1, TW_MATCH_RESTART, TW_FUNCTION_CALL_TIME), 1);
	assert_int_equal(qualified(), 1);
	assert_string_equal(f1_is("call_count"), "{call_count,2}");
}

static void line_92_151_pause_and_restart_change_nothing_without_the_counter(void **state)
{
	play(without_counter);
}

/* Events of local calls with 0, 1 and 2 words: the number of words is the caller's. */
static unsigned local_of_any_count(void)
{
	const uint64_t words[3] = {1, 2, 3};

	tw_local_call0(&f1);
	tw_local_call1(&f1, 1);
	tw_local_call2(&f1, 1, 2);
	tw_local_call_words(&f1, words, 3);
	return count_events(&bed);
}

static void global_and_local_calls(void)
{
	set("f1", 1, TW_MATCH_TRUE, TW_FUNCTION_GLOBAL);
	assert_int_equal(qualified(), 1);
	assert_int_equal(local(), 0);
	assert_int_equal(local_of_any_count(), 0);
	set("f1", 1, TW_MATCH_TRUE, TW_FUNCTION_LOCAL);
	assert_int_equal(qualified(), 1);
	assert_int_equal(local(), 1);
	assert_int_equal(local_of_any_count(), 4);
}

static void line_93_global_sees_calls_that_name_the_module(void **state)
{
	play(global_and_local_calls);
}

static void exclusive(void)
{
	static const uint32_t locals[] = {TW_FUNCTION_LOCAL, TW_FUNCTION_META, TW_FUNCTION_CALL_COUNT,
					  TW_FUNCTION_CALL_TIME, TW_FUNCTION_CALL_MEMORY};
	static const char all_global[] = "{all,[{traced,global},{match_spec,[]},{meta,false},{meta_match_spec,false},"
					 "{call_memory,false},{call_time,false},{call_count,false}]}";

	set("f1", 1, TW_MATCH_TRUE, 63 & ~(uint32_t)TW_FUNCTION_GLOBAL);
	set("f1", 1, TW_MATCH_TRUE, 0);
	assert_string_equal(f1_is("all"), all_global);
	for (size_t i = 0; i < TW_COUNT_OF(locals); i++) {
		set("f1", 1, TW_MATCH_TRUE, TW_FUNCTION_GLOBAL);
		assert_string_equal(f1_is("all"), all_global);
		set("f1", 1, TW_MATCH_TRUE, locals[i]);
		assert_string_equal(f1_is("traced"), i ? "{traced,false}" : "{traced,local}");
	}
	/* A paused counter is removed, too. */
	set("f1", 1, TW_MATCH_TRUE, TW_FUNCTION_CALL_COUNT);
	set("f1", 1, TW_MATCH_PAUSE, TW_FUNCTION_CALL_COUNT);
	set("f1", 1, TW_MATCH_TRUE, 0);
	assert_string_equal(f1_is("all"), all_global);
}

static void line_94_global_and_local_kinds_end_each_other(void **state)
{
	play(exclusive);
}

static void off_by_kind(void)
{
	const uint32_t locals = 63 & ~(uint32_t)TW_FUNCTION_GLOBAL;

	set("f1", 1, TW_MATCH_TRUE, TW_FUNCTION_LOCAL);
	set("f1", 1, TW_MATCH_FALSE, 0);
	set("f1", 1, TW_MATCH_FALSE, TW_FUNCTION_GLOBAL);
	assert_string_equal(f1_is("traced"), "{traced,local}");
	set("f1", 1, TW_MATCH_TRUE, 0);
	set("f1", 1, TW_MATCH_FALSE, locals);
	assert_string_equal(f1_is("traced"), "{traced,global}");
	set("f1", 1, TW_MATCH_FALSE, 0);
	assert_string_equal(f1_is("all"), "{all,false}");
	/* 96 */
	set("f1", 1, TW_MATCH_TRUE, locals);
	set("f1", 1, TW_MATCH_FALSE, TW_FUNCTION_LOCAL);
	assert_string_equal(f1_is("traced"), "{traced,false}");
	assert_string_equal(f1_is("meta_match_spec"), "{meta_match_spec,[]}");
	assert_string_equal(f1_is("call_count"), "{call_count,0}");
	assert_string_equal(f1_is("call_time"), "{call_time,[]}");
	assert_string_equal(f1_is("call_memory"), "{call_memory,[]}");
	set("f1", 1, TW_MATCH_FALSE, TW_FUNCTION_META | TW_FUNCTION_CALL_TIME);
	assert_string_equal(f1_is("meta"), "{meta,false}");
	assert_string_equal(f1_is("call_time"), "{call_time,false}");
	assert_string_equal(f1_is("call_memory"), "{call_memory,[]}");
	set("f1", 1, TW_MATCH_FALSE, TW_FUNCTION_CALL_COUNT | TW_FUNCTION_CALL_MEMORY);
	assert_string_equal(f1_is("all"), "{all,false}");
}

static void line_95_96_each_kind_is_removed_by_its_name(void **state)
{
	play(off_by_kind);
}

static void specs(void)
{
	struct tw_match_program *one = compile("[{[1],[],[]}]"), *two = compile("[{['$1'],[{'>','$1',5}],[]}]");

	assert_int_equal(tw_trace_function_match(s, "tro", "f1", 1, one, TW_FUNCTION_LOCAL | TW_FUNCTION_META), 1);
	assert_int_equal(tw_trace_function_match(s, "tro", "f1", 1, two, TW_FUNCTION_LOCAL), 1);
	assert_string_equal(f1_is("match_spec"), "{match_spec,[{['$1'],[{'>','$1',5}],[]}]}");
	assert_string_equal(f1_is("meta_match_spec"), "{meta_match_spec,[{[1],[],[]}]}");
	set("f1", 1, TW_MATCH_FALSE, TW_FUNCTION_META);
	assert_int_equal(qualified(), 0);
	set("f1", 1, TW_MATCH_TRUE, TW_FUNCTION_CALL_COUNT);
	assert_int_equal(qualified(), 0);
	assert_string_equal(f1_is("match_spec"), "{match_spec,[{['$1'],[{'>','$1',5}],[]}]}");
	set("f1", 1, TW_MATCH_TRUE, TW_FUNCTION_LOCAL);
	assert_string_equal(f1_is("match_spec"), "{match_spec,[]}");
	assert_int_equal(qualified(), 1);
	/* The same for a global one, and its specification is not the local one's. */
	assert_int_equal(tw_trace_function_match(s, "tro", "f1", 1, one, 0), 1);
	assert_string_equal(f1_is("match_spec"), "{match_spec,[{[1],[],[]}]}");
	assert_int_equal(qualified(), 1);
	assert_int_equal(local(), 0);
	set("f1", 1, TW_MATCH_TRUE, TW_FUNCTION_CALL_COUNT);
	assert_string_equal(f1_is("match_spec"), "{match_spec,false}");
	tw_match_destroy(one);
	tw_match_destroy(two);
}

static void line_97_172_173_specs_are_replaced_and_kept(void **state)
{
	play(specs);
}

static void line_99_a_specification_nested_too_deeply_is_a_limit(void **state)
{
	for (int depth = 300; depth <= 300000; depth *= 10) {
		struct tw_match_program *program;
		struct tw_arena arena;
		struct tw_term guard = tw_term_bool(true), clause[3];

		tw_arena_init(&arena, SIZE_MAX);
		for (int i = 0; i < depth; i++)
			guard = tw_term_tuple(&arena, (struct tw_term[]){tw_term_atom_z("not"), guard}, 2);
		clause[0] = tw_term_atom_z("_");
		clause[1] = tw_term_cons(&arena, guard, tw_term_nil());
		clause[2] = tw_term_nil();
		assert_int_equal(tw_match_compile(tw_term_cons(&arena, tw_term_tuple(&arena, clause, 3), tw_term_nil()),
						  NULL, &program, NULL),
				 TW_ELIMIT);
		tw_arena_fini(&arena);
	}
}

/* ---- 100, 101, 160: functions that come and go ---- */

static void on_load(void)
{
	struct tw_declared_function hello = TW_DECLARED_FUNCTION("tro_dummy", "hello", 1);
	struct tw_declared_function hidden = {.arity = 1,
					      .module = "tro_dummy",
					      .name = "hidden",
					      .flags = TW_DECLARED_LOCAL};
	struct tw_match_program *program = compile("[{'_',[],[]}]");

	assert_string_equal(info_of("on_load", "all"), "{all,false}");
	assert_string_equal(info_of("on_load", "traced"), "{traced,false}");
	assert_int_equal(tw_trace_on_load(s, TW_MATCH_TRUE, program, TW_FUNCTION_LOCAL), 0);
	assert_string_equal(info_of("on_load", "all"),
			    "{all,[{traced,local},{match_spec,[{'_',[],[]}]},{meta,false},{meta_match_spec,false},"
			    "{call_count,false}]}");
	assert_int_equal(tw_function_declare(&hello), 0);
	tw_call1(&hello, 1);
	assert_int_equal(count_events(&bed), 1);
	assert_string_equal(info_of("{tro_dummy,hello,1}", "traced"), "{traced,local}");
	assert_string_equal(info_of("{tro_dummy,hello,1}", "match_spec"), "{match_spec,[{'_',[],[]}]}");
	/* Existing functions are left alone, and declaring twice changes nothing. */
	assert_string_equal(f1_is("all"), "{all,false}");
	tw_trace_function(s, "tro_dummy", "_", TW_ARITY_ANY, TW_MATCH_FALSE, TW_FUNCTION_LOCAL);
	assert_int_equal(tw_function_declare(&hello), 0);
	assert_string_equal(info_of("{tro_dummy,hello,1}", "all"), "{all,false}");
	/* Kinds as for functions: global ends the local ones, and a kind goes by its name. */
	assert_int_equal(tw_trace_on_load(s, TW_MATCH_TRUE, NULL, TW_FUNCTION_CALL_COUNT), 0);
	assert_string_equal(info_of("on_load", "call_count"), "{call_count,true}");
	assert_int_equal(tw_trace_on_load(s, TW_MATCH_FALSE, NULL, 0), 0);
	assert_string_equal(info_of("on_load", "traced"), "{traced,local}");
	assert_int_equal(tw_trace_on_load(s, TW_MATCH_TRUE, NULL, 0), 0);
	assert_string_equal(info_of("on_load", "traced"), "{traced,global}");
	assert_string_equal(info_of("on_load", "call_count"), "{call_count,false}");
	assert_int_equal(tw_function_declare(&hidden), 0);
	assert_string_equal(info_of("{tro_dummy,hidden,1}", "all"), "{all,false}");
	assert_int_equal(tw_module_unload("tro_dummy"), 2);
	assert_int_equal(tw_function_declare(&hello), 0);
	assert_string_equal(info_of("{tro_dummy,hello,1}", "traced"), "{traced,global}");
	assert_int_equal(tw_trace_on_load(s, TW_MATCH_FALSE, NULL, 0), 0);
	assert_string_equal(info_of("on_load", "all"), "{all,false}");
	assert_int_equal(tw_module_unload("tro_dummy"), 1);
	tw_match_destroy(program);
}

static void line_100_177_on_load(void **state)
{
	play(on_load);
}

static void reload(void)
{
	struct tw_declared_function old = TW_DECLARED_FUNCTION("tro_dummy", "hello", 1);
	struct tw_declared_function new = TW_DECLARED_FUNCTION("tro_dummy", "hello", 1);

	assert_int_equal(tw_function_declare(&old), 0);
	assert_int_equal(tw_trace_function(s, "tro_dummy", "hello", 1, TW_MATCH_TRUE,
					   TW_FUNCTION_LOCAL | TW_FUNCTION_CALL_COUNT),
			 1);
	tw_call1(&old, 1);
	assert_int_equal(count_events(&bed), 1);
	assert_int_equal(tw_module_unload("tro_dummy"), 1);
	assert_int_equal(tw_module_unload("tro_dummy"), 0);
	assert_int_equal(old.armed, 0);
	assert_int_equal(tw_trace_function(s, "tro_dummy", "_", TW_ARITY_ANY, TW_MATCH_TRUE, TW_FUNCTION_LOCAL), 0);
	assert_string_equal(info_of("{tro_dummy,hello,1}", "all"), "{all,undefined}");
	assert_int_equal(tw_function_declare(&new), 0);
	assert_string_equal(info_of("{tro_dummy,hello,1}", "all"), "{all,false}");
	assert_int_equal(tw_trace_function(s, "tro_dummy", "_", TW_ARITY_ANY, TW_MATCH_TRUE, TW_FUNCTION_LOCAL), 1);
	/* 102: old code that still runs */
	tw_call1(&old, 1);
	assert_int_equal(count_events(&bed), 0);
	tw_call1(&new, 1);
	assert_int_equal(count_events(&bed), 1);
	assert_int_equal(tw_module_unload("tro_dummy"), 1);
}

static void line_101_102_160_a_new_version_begins_untraced(void **state)
{
	play(reload);
	assert_int_equal(tw_module_unload(NULL), TW_EBADARG);
	assert_int_equal(tw_trace_begin(), 0);
	assert_int_equal(tw_module_unload("tro"), TW_EDEADLK);
	assert_int_equal(tw_trace_abort(), 0);
}

/* ---- 105, 149 to 159: sessions side by side, counters ---- */

static void line_105_fifty_sessions_get_one_event_each(void **state)
{
	static struct bed many[50];
	const struct tw_rs_options options = {.ring_bytes = 1 << 16, .cap_bytes = 1 << 18, .has_fixed_rings = true};

	for (int i = 0; i < 50; i++) {
		open_bed_with(&many[i], "many", &options);
		tw_trace_process(many[i].session, tw_process_self(), true, TW_FLAG_CALL);
		assert_int_equal(tw_trace_function(many[i].session, "tro", "f1", 1, TW_MATCH_TRUE, TW_FUNCTION_LOCAL),
				 1);
	}
	tw_call1(&f1, 1);
	for (int i = 0; i < 50; i++)
		assert_int_equal(count_events(&many[i]), 1);
	for (int i = 0; i < 50; i++)
		close_bed(&many[i]);
	assert_int_equal(f1.armed, 0);
}

static void call_count(void)
{
	tw_trace_process(s, TW_PID_ALL, false, TW_FLAG_CALL);
	set("f1", 1, TW_MATCH_TRUE, TW_FUNCTION_CALL_COUNT);
	assert_string_equal(f1_is("call_count"), "{call_count,0}");
	qualified();
	local();
	assert_string_equal(f1_is("call_count"), "{call_count,2}");
	assert_string_equal(f1_is("call_count"), "{call_count,2}");
	set("f1", 1, TW_MATCH_PAUSE, TW_FUNCTION_CALL_COUNT);
	qualified();
	assert_string_equal(f1_is("call_count"), "{call_count,2}");
	set("f1", 1, TW_MATCH_TRUE, TW_FUNCTION_CALL_COUNT);
	qualified();
	assert_string_equal(f1_is("call_count"), "{call_count,1}");
	set("f1", 1, TW_MATCH_PAUSE, TW_FUNCTION_CALL_COUNT);
	set("f1", 1, TW_MATCH_RESTART, TW_FUNCTION_CALL_COUNT);
	assert_string_equal(f1_is("call_count"), "{call_count,0}");
	qualified();
	assert_string_equal(f1_is("call_count"), "{call_count,1}");
	set("f1", 1, TW_MATCH_FALSE, TW_FUNCTION_CALL_COUNT);
	assert_string_equal(f1_is("call_count"), "{call_count,false}");
	for (int i = 0; i < 5; i++) {
		assert_int_equal(tw_trace_function(s, "_", "_", TW_ARITY_ANY, TW_MATCH_TRUE, TW_FUNCTION_CALL_COUNT),
				 4);
		assert_int_equal(tw_trace_function(s, "_", "_", TW_ARITY_ANY, TW_MATCH_FALSE, TW_FUNCTION_CALL_COUNT),
				 4);
	}
}

static void line_149_150_158_159_call_count(void **state)
{
	play(call_count);
}

static void line_157_counters_of_two_sessions_are_their_own(void **state)
{
	struct bed second;
	uint64_t count;

	open_session(false);
	open_bed(&second, "second");
	set("f1", 1, TW_MATCH_TRUE, TW_FUNCTION_CALL_COUNT);
	for (int i = 0; i < 5; i++)
		tw_call1(&f1, 1);
	assert_int_equal(tw_trace_function(second.session, "tro", "f1", 1, TW_MATCH_TRUE, TW_FUNCTION_CALL_COUNT), 1);
	tw_call1(&f1, 1);
	tw_call1(&f1, 1);
	set("f1", 1, TW_MATCH_PAUSE, TW_FUNCTION_CALL_COUNT);
	tw_call1(&f1, 1);
	assert_string_equal(f1_is("call_count"), "{call_count,7}");
	close_session(false);
	tw_call1(&f1, 1);
	assert_int_equal(tw_trace_call_count(second.session, "tro", "f1", 1, &count), 1);
	assert_int_equal(count, 4);
	close_bed(&second);
}

/* The rows of a counter by process: how many there are, and the first one's count. */
static unsigned rows(const char *item, unsigned long long *count)
{
	const char *text = f1_is(item);
	unsigned long long pid;
	unsigned n = 0;

	assert_true(strchr(text, '[') != NULL);
	if (sscanf(strchr(text, '['), "[{<0.%llu.0>,%llu,", &pid, count) == 2)
		assert_int_equal(pid, tw_process_self());
	for (; (text = strstr(text, "{<")); text++)
		n++;
	return n;
}

static void by_process(void)
{
	static const struct {
		uint32_t flag;
		const char *item;
	} kinds[] = {{TW_FUNCTION_CALL_TIME, "call_time"}, {TW_FUNCTION_CALL_MEMORY, "call_memory"}};
	unsigned long long count = 0;

	for (int i = 0; i < 2; i++) {
		set("f1", 1, TW_MATCH_TRUE, kinds[i].flag);
		assert_int_equal(rows(kinds[i].item, &count), 0);
		for (int n = 0; n < 10; n++)
			n % 2 ? qualified() : local();
		assert_int_equal(rows(kinds[i].item, &count), 1);
		assert_int_equal(count, 10);
		set("f1", 1, TW_MATCH_PAUSE, kinds[i].flag);
		qualified();
		assert_int_equal(rows(kinds[i].item, &count), 1);
		assert_int_equal(count, 10);
		set("f1", 1, TW_MATCH_RESTART, kinds[i].flag);
		assert_int_equal(rows(kinds[i].item, &count), 0);
		qualified();
		rows(kinds[i].item, &count);
		assert_int_equal(count, 1);
		/* A counter that a dropped transaction restarted has its old value. */
		assert_int_equal(tw_trace_begin(), 0);
		set("f1", 1, TW_MATCH_RESTART, kinds[i].flag);
		assert_int_equal(rows(kinds[i].item, &count), 0);
		assert_int_equal(tw_trace_abort(), 0);
		rows(kinds[i].item, &count);
		assert_int_equal(count, 1);
		/* Without the flag no process is counted. */
		tw_trace_process(s, TW_PID_ALL, false, TW_FLAG_CALL);
		qualified();
		rows(kinds[i].item, &count);
		assert_int_equal(count, 1);
		tw_trace_process(s, TW_PID_ALL, true, TW_FLAG_CALL);
		set("f1", 1, TW_MATCH_FALSE, kinds[i].flag);
	}
	assert_string_equal(f1_is("all"), "{all,false}");
}

static void line_152_153_counters_by_process(void **state)
{
	play(by_process);
}

/* Transactions: kinds, counters by process and on_load are restored when they are dropped. */
static void forgotten(void)
{
	char before[512];

	set("f1", 1, TW_MATCH_TRUE, TW_FUNCTION_LOCAL | TW_FUNCTION_CALL_COUNT | TW_FUNCTION_CALL_TIME);
	qualified();
	snprintf(before, sizeof before, "%s", f1_is("all"));
	assert_int_equal(tw_trace_begin(), 0);
	for (int i = 0; i < 3; i++) {
		set("f1", 1, TW_MATCH_RESTART, TW_FUNCTION_CALL_COUNT | TW_FUNCTION_CALL_TIME);
		set("f1", 1, TW_MATCH_TRUE, TW_FUNCTION_META | TW_FUNCTION_CALL_MEMORY);
		set("f1", 1, TW_MATCH_TRUE, 0);
	}
	assert_int_equal(tw_trace_on_load(s, TW_MATCH_TRUE, NULL, 0), 0);
	assert_string_equal(f1_is("traced"), "{traced,global}");
	assert_string_equal(info_of("on_load", "traced"), "{traced,global}");
	assert_int_equal(tw_trace_abort(), 0);
	assert_string_equal(f1_is("all"), before);
	assert_string_equal(info_of("on_load", "traced"), "{traced,false}");
}

static void a_dropped_transaction_leaves_nothing(void **state)
{
	play(forgotten);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(line_86_88_89_98_counts),
		cmocka_unit_test(line_87_global_matches_exported_functions_only),
		cmocka_unit_test(line_90_91_bad_arguments_change_nothing),
		cmocka_unit_test(line_92_151_pause_and_restart_change_nothing_without_the_counter),
		cmocka_unit_test(line_93_global_sees_calls_that_name_the_module),
		cmocka_unit_test(line_94_global_and_local_kinds_end_each_other),
		cmocka_unit_test(line_95_96_each_kind_is_removed_by_its_name),
		cmocka_unit_test(line_97_172_173_specs_are_replaced_and_kept),
		cmocka_unit_test(line_99_a_specification_nested_too_deeply_is_a_limit),
		cmocka_unit_test(line_100_177_on_load),
		cmocka_unit_test(line_101_102_160_a_new_version_begins_untraced),
		cmocka_unit_test(line_105_fifty_sessions_get_one_event_each),
		cmocka_unit_test(line_149_150_158_159_call_count),
		cmocka_unit_test(line_152_153_counters_by_process),
		cmocka_unit_test(line_157_counters_of_two_sessions_are_their_own),
		cmocka_unit_test(a_dropped_transaction_leaves_nothing),
	};

	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	assert_int_equal(tw_function_declare(&f1), 0);
	assert_int_equal(tw_function_declare(&loc), 0);
	assert_int_equal(tw_function_declare(&loc2), 0);
	assert_int_equal(tw_function_declare(&other), 0);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
