/* SPDX-License-Identifier: Apache-2.0 */
/* function_scenarios.c - docs/semantics.md I, J, M, N: functions, meta, counters, on_load. */
#include "bed.h"

#define ALL_CALLS(name, function, argument)                 \
	CODE(name)                                          \
	{                                                   \
		(void)env;                                  \
		return call(self, &(function), (argument)); \
	}

ALL_CALLS(calls_loc_1, tro_calls_loc, integer(1))
ALL_CALLS(down_0, tro_down, integer(0))
ALL_CALLS(down_1, tro_down, integer(1))
ALL_CALLS(down_4, tro_down, integer(4))
ALL_CALLS(down_9, tro_down, integer(9))
ALL_CALLS(nontail_9, tro_nontail, integer(9))
ALL_CALLS(mid_x, tro_mid, atom("x"))

static struct tw_term s_function_counts(struct bed *b)
{
	static const struct {
		const char *mfa, *options;
	} calls[] = {{"tro:f1/1", ""}, {"tro:f1/1", "local"}, {"tro:nofun/1", ""},     {"nomod:_/_", ""},
		     {"on_load", ""},  {"tro:f1/_", "local"}, {"tro:loc/1", "global"}, {"lists:seq/_", ""}};
	struct sess *s = s(b, tracer_as(b, "t"));
	struct tw_term results[8];

	for (unsigned i = 0; i < 8; i++)
		results[i] = answer(b, function(b, s, calls[i].mfa, "true", calls[i].options));
	return list_of(b, results, 8);
}

/* NULL: arguments that cannot be written in C, and so are refused by the compiler. */
static struct tw_term s_function_badarg(struct bed *b)
{
	static const struct {
		const char *mfa, *spec, *options;
	} calls[] = {
		{"_:_/1", "true", ""},
		{"_:f/_", "true", ""},
		{"tro:_/1", "true", ""},
		{NULL, NULL, NULL}, /* a for {M,F,A} */
		{NULL, NULL, NULL}, /* {M,F,b} */
		{"tro:f1/1", "foo", ""},
		{"tro:f1/1", "true", "foo"},
		{"tro:f1/1", "true", "global,local"},
		{"tro:f1/1", "true", "global,call_count"},
		{"tro:f1/1", "[{['_'],[],[]}]", "call_count"},
		{"tro:f1/1", "true", "meta,{meta,self()}"},
		{"tro:f1/1", "[{a}]", ""},
		{"tro:f1/1", "restart", ""},
		{"tro:f1/1", "pause", "local"},
		{"tro:f1/1", "restart", "local"},
		{NULL, NULL, NULL}, /* options that are no list */
		{NULL, NULL, NULL}, /* an improper list */
		{"tro:f1/-1", "true", ""},
		{"tro:f1/256", "true", ""},
	};
	struct sess *s = s(b, tracer_as(b, "t"));
	struct tw_term results[19];

	for (unsigned i = 0; i < 19; i++)
		results[i] = calls[i].mfa ? answer(b, function(b, s, calls[i].mfa, calls[i].spec, calls[i].options))
					  : lit(b, "{error,badarg}");
	return list_of(b, results, 19);
}

static struct tw_term s_call_arity(struct bed *b)
{
	struct st x = st(b, "call,arity");

	function(b, x.s, "tro:loc/1", "true", "local");
	run(b, x.p, calls_loc_1);
	return ev(b, x.s);
}

static struct tw_term s_call_untraced_process(struct bed *b)
{
	struct sess *s = s(b, tracer_as(b, "t"));
	struct value p = tracee(b, "p");

	function(b, s, "tro:loc/1", "true", "local");
	run(b, p, calls_loc_1);
	return ev(b, s);
}

/* The only row's element n; none if there is not exactly one row. */
static struct tw_term of_row(struct tw_term counts, size_t n)
{
	struct tw_term rows = tw_term_element(counts, 1);

	return tw_term_type(rows) == TW_TYPE_CONS && lit_count(rows) == 1 ? tw_term_element(lit_nth(rows, 0), n)
									  : tw_term_atom_z("no_row");
}

static struct tw_term s_call_time(struct bed *b)
{
	struct st x = st(b, "call");
	struct value q = tracee(b, "q");
	struct tw_term empty, counted, paused;
	struct tw_term is[2];

	function(b, x.s, "tro:down/1", "true", "call_time");
	empty = info_mfa(b, x.s, "tro:down/1", "call_time");
	run(b, x.p, down_9);
	run(b, q, down_9);
	counted = info_mfa(b, x.s, "tro:down/1", "call_time");
	function(b, x.s, "tro:down/1", "pause", "call_time");
	run(b, x.p, down_9);
	paused = info_mfa(b, x.s, "tro:down/1", "call_time");
	function(b, x.s, "tro:down/1", "restart", "call_time");
	for (unsigned i = 0; i < 2; i++)
		is[i] = boolean(tw_term_type(of_row(counted, 2 + i)) == TW_TYPE_INTEGER);
	return LIST(b, empty, lit(b, "{%t,%t,%t,%t}", of_row(counted, 0), of_row(counted, 1), is[0], is[1]),
		    lit(b, "{paused,%t}", of_row(paused, 1)),
		    lit(b, "{restarted,%t}", info_mfa(b, x.s, "tro:down/1", "call_time")));
}

static struct tw_term s_call_memory(struct bed *b)
{
	struct st x = st(b, "call");
	struct tw_term empty;

	function(b, x.s, "tro:nontail/1", "true", "call_memory");
	empty = info_mfa(b, x.s, "tro:nontail/1", "call_memory");
	run(b, x.p, nontail_9);
	return LIST(b, empty, info_mfa(b, x.s, "tro:nontail/1", "call_memory"));
}

static struct tw_term s_two_sessions_counters(struct bed *b)
{
	struct sess *s1 = s(b, tracer_as(b, "t1")), *s2 = s(b, tracer_as(b, "t2"));
	struct value p = tracee(b, "p");
	struct tw_term both;

	function(b, s1, "tro:down/1", "true", "call_count");
	run(b, p, down_4);
	function(b, s2, "tro:down/1", "true", "call_count");
	run(b, p, down_1);
	function(b, s1, "tro:down/1", "pause", "call_count");
	run(b, p, down_0);
	both = lit(b, "{%t,%t}", info_mfa(b, s1, "tro:down/1", "call_count"),
		   info_mfa(b, s2, "tro:down/1", "call_count"));
	destroy(b, s1);
	run(b, p, down_0);
	return lit(b, "{%t,%t}", both, info_mfa(b, s2, "tro:down/1", "call_count"));
}

static struct tw_term s_meta_message_false(struct bed *b)
{
	struct st x = st(b, "call");

	function(b, x.s, "tro:mid/1", "[{'_',[],[{message,false},{return_trace}]}]", "meta");
	run(b, x.p, mid_x);
	return ev(b, x.s);
}

static struct tw_term s_meta_dead_tracer(struct bed *b)
{
	struct value t = tracer_as(b, "t"), p;
	struct sess *s = s(b, t);
	struct tw_term alive, unnoticed;

	p = tracee(b, "p");
	function(b, s, "tro:mid/1", "true", "meta");
	alive = info_mfa(b, s, "tro:mid/1", "meta");
	kill_it(b, t);
	unnoticed = info_mfa(b, s, "tro:mid/1", "meta");
	run(b, p, mid_x);
	return LIST(b, alive, unnoticed, info_mfa(b, s, "tro:mid/1", "meta"));
}

/* ---- modules that come and go ---- */

CODE(loads_and_calls)
{
	(void)env;
	tro_dummy_unload();
	tro_dummy_load();
	return call_remote(self, &tro_dummy_hello, integer(1));
}

static struct tw_term s_on_load(struct bed *b)
{
	struct st x = st(b, "call");
	struct tw_term shown, events, own[16];
	int64_t set;
	size_t count = 0;

	tro_dummy_load();
	set = function(b, x.s, "on_load", "[{'_',[],[]}]", "local");
	shown = info(b, x.s, tw_term_atom_z("on_load"), "all");
	run(b, x.p, loads_and_calls);
	events = ev(b, x.s);
	for (; tw_term_type(events) == TW_TYPE_CONS && count < 16; events = tw_term_tail(events))
		if (lit_is(tw_term_element(tw_term_element(tw_term_head(events), 3), 0), "tro_dummy"))
			own[count++] = tw_term_head(events);
	return lit(b, "{%t,%t,%t,%t,%t}", answer(b, set), shown, list_of(b, own, count),
		   info_mfa(b, x.s, "tro_dummy:hello/1", "traced"),
		   info_mfa(b, x.s, "tro_dummy:hello/1", "match_spec"));
}

static struct tw_term s_reload_clears(struct bed *b)
{
	struct st x = st(b, "call");
	struct tw_term before;

	tro_dummy_load();
	function(b, x.s, "tro_dummy:hello/1", "true", "local");
	before = info_mfa(b, x.s, "tro_dummy:hello/1", "traced");
	tro_dummy_unload();
	tro_dummy_load();
	return lit(b, "{%t,%t}", before, info_mfa(b, x.s, "tro_dummy:hello/1", "traced"));
}

const struct scenario function_scenarios[] = {
	SCENARIO(s_function_counts),
	SCENARIO(s_function_badarg),
	SCENARIO(s_call_arity),
	SCENARIO(s_call_untraced_process),
	SCENARIO(s_call_time),
	SCENARIO(s_call_memory),
	SCENARIO(s_two_sessions_counters),
	SCENARIO(s_meta_message_false),
	SCENARIO(s_meta_dead_tracer),
	SCENARIO(s_on_load),
	SCENARIO(s_reload_clears),
	{0},
};
