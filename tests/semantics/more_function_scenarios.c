/* SPDX-License-Identifier: Apache-2.0 */
/*
 * more_function_scenarios.c - documented, but not recorded: functions, returns, counters (docs/semantics.md I to N, S).
 */
#include "bed.h"

#define CALLS(name, function, argument)                     \
	CODE(name)                                          \
	{                                                   \
		(void)env;                                  \
		return call(self, &(function), (argument)); \
	}

CALLS(calls_loc_1, tro_calls_loc, integer(1))
CALLS(calls_ext_1, tro_calls_ext, integer(1))
CALLS(down_0, tro_down, integer(0))
CALLS(down_9, tro_down, integer(9))
CALLS(mid_x, tro_mid, atom("x"))

/* ---- I: kinds ---- */

static struct tw_term called_locally_and_remotely(struct bed *b, const char *options)
{
	struct st x = st(b, "call");
	struct tw_term local;

	function(b, x.s, "tro:loc/1", "true", options);
	run(b, x.p, calls_loc_1);
	local = ev(b, x.s);
	run(b, x.p, calls_ext_1);
	return LIST(b, local, ev(b, x.s));
}

static struct tw_term s_call_global_only_external(struct bed *b)
{
	return called_locally_and_remotely(b, "global");
}

static struct tw_term s_call_local_both(struct bed *b)
{
	return called_locally_and_remotely(b, "local");
}

static struct tw_term three_kinds(struct bed *b, struct sess *s)
{
	struct tw_term traced = info_mfa(b, s, "tro:loc/1", "traced"), meta = info_mfa(b, s, "tro:loc/1", "meta");

	return lit(b, "{%t,%t,%t}", traced, meta, info_mfa(b, s, "tro:loc/1", "call_count"));
}

static struct tw_term s_exclusive_global_local(struct bed *b)
{
	struct sess *s = s(b, tracer_as(b, "t"));
	struct tw_term rows[3];

	function(b, s, "tro:loc/1", "true", "local,meta,call_count");
	rows[0] = three_kinds(b, s);
	function(b, s, "tro:loc/1", "true", "global");
	rows[1] = three_kinds(b, s);
	function(b, s, "tro:loc/1", "true", "local");
	rows[2] = three_kinds(b, s);
	return list_of(b, rows, 3);
}

/* Clearing needs the name of the kind. */
static struct tw_term s_kinds_by_name(struct bed *b)
{
	static const struct {
		const char *spec, *options;
	} steps[] = {{"true", "local"}, {"false", "global"}, {"false", "local"}, {"true", ""}, {"false", ""}};
	struct sess *s = s(b, tracer_as(b, "t"));
	struct tw_term rows[5];

	for (unsigned i = 0; i < 5; i++) {
		function(b, s, "tro:loc/1", steps[i].spec, steps[i].options);
		rows[i] = info_mfa(b, s, "tro:loc/1", "traced");
	}
	return list_of(b, rows, 5);
}

static struct tw_term s_ms_replaced_and_kept(struct bed *b)
{
	static const struct {
		const char *spec, *options;
	} steps[] = {{"[{[a],[],[]}]", "local"}, {"[{[b],[],[]}]", "local"}, {"true", "call_count"}, {"true", "local"}};
	struct sess *s = s(b, tracer_as(b, "t"));
	struct tw_term rows[4];

	for (unsigned i = 0; i < 4; i++) {
		function(b, s, "tro:loc/1", steps[i].spec, steps[i].options);
		rows[i] = info_mfa(b, s, "tro:loc/1", "match_spec");
	}
	return list_of(b, rows, 4);
}

CODE(sends_to_itself)
{
	(void)env;
	send_to(self, self_pid(self), atom("m"));
	receive_value(self, atom("m"), FOREVER);
	return call(self, &tro_calls_loc, integer(1));
}

/* A head of another length than the event's is accepted, and never matches. */
static struct tw_term s_head_wrong_length(struct bed *b)
{
	static const char *const flags[] = {"call", "send", "receive"};
	struct tw_term rows[3];

	for (unsigned i = 0; i < 3; i++) {
		struct value t = tracer_as(b, "t"), p = tracee(b, "p");
		struct sess *s = s(b, t);
		int64_t set = i == 0   ? function(b, s, "tro:loc/1", "[{['_','_'],[],[]}]", "local")
			      : i == 1 ? send_pattern(b, s, "[{['_'],[],[]}]")
				       : recv_pattern(b, s, "[{['_','_'],[],[]}]");

		process(b, s, p, true, flags[i]);
		run(b, p, sends_to_itself);
		rows[i] = lit(b, "{%t,%t}", answer(b, set), ev(b, s));
	}
	return list_of(b, rows, 3);
}

static struct tw_term states(struct bed *b, struct sess *s, const char *name, const char *mfa)
{
	static const char *const items[] = {"traced",	  "match_spec", "meta",	       "meta_match_spec",
					    "call_count", "call_time",	"call_memory", "all"};
	struct tw_term rows[8];

	for (unsigned i = 0; i < 8; i++)
		rows[i] = info_mfa(b, s, mfa, items[i]);
	return lit(b, "{%a,%t}", name, list_of(b, rows, 8));
}

static struct tw_term s_info_function_states(struct bed *b)
{
	struct sess *s = s(b, tracer_as(b, "t"));
	struct tw_term rows[4];

	rows[0] = states(b, s, "nofun", "tro:nofun/1");
	rows[1] = states(b, s, "untraced", "tro:f1/1");
	function(b, s, "tro:f1/1", "true", "global");
	rows[2] = states(b, s, "global", "tro:f1/1");
	function(b, s, "tro:mid/1", "true", "meta");
	rows[3] = states(b, s, "meta", "tro:mid/1");
	return list_of(b, rows, 4);
}

/* ---- N: counters ---- */

static struct tw_term counted(struct bed *b, struct sess *s, const char *spec)
{
	int64_t set = function(b, s, "tro:down/1", spec, "call_count");

	return lit(b, "{%t,%t}", answer(b, set), info_mfa(b, s, "tro:down/1", "call_count"));
}

static struct tw_term s_call_count(struct bed *b)
{
	struct sess *s = s(b, tracer_as(b, "t"));
	struct value p = tracee(b, "p");
	struct tw_term rows[8];

	function(b, s, "tro:down/1", "true", "call_count");
	rows[0] = info_mfa(b, s, "tro:down/1", "call_count");
	run(b, p, down_9);
	rows[1] = info_mfa(b, s, "tro:down/1", "call_count");
	function(b, s, "tro:down/1", "pause", "call_count");
	run(b, p, down_9);
	rows[2] = counted(b, s, "pause");
	rows[3] = counted(b, s, "true");
	run(b, p, down_9);
	rows[4] = counted(b, s, "restart");
	run(b, p, down_0);
	rows[5] = info_mfa(b, s, "tro:down/1", "call_count");
	rows[6] = counted(b, s, "false");
	rows[7] = counted(b, s, "restart");
	return list_of(b, rows, 8);
}

CODE(thrice_down_once_mid)
{
	(void)env;
	for (unsigned i = 0; i < 3; i++)
		call(self, &tro_down, integer(0));
	return call(self, &tro_mid, atom("x"));
}

static struct tw_term row(struct bed *b, struct tw_term counts)
{
	struct tw_term rows = tw_term_element(counts, 1), first;

	if (tw_term_type(rows) != TW_TYPE_CONS)
		return counts;
	first = lit_nth(rows, 0);
	return lit(b, "{%t,%t}", tw_term_element(first, 1),
		   boolean(tw_term_type(tw_term_element(first, 2)) == TW_TYPE_INTEGER));
}

static struct tw_term s_call_time_apart(struct bed *b)
{
	struct st x = st(b, "call");
	struct tw_term down;

	function(b, x.s, "tro:down/1", "true", "call_time");
	function(b, x.s, "tro:mid/1", "true", "call_time");
	run(b, x.p, thrice_down_once_mid);
	down = row(b, info_mfa(b, x.s, "tro:down/1", "call_time"));
	return lit(b, "{%t,%t}", down, row(b, info_mfa(b, x.s, "tro:mid/1", "call_time")));
}

/* ---- M: meta ---- */

static struct tw_term s_meta(struct bed *b)
{
	struct sess *s = s(b, tracer_as(b, "t"));
	struct value p = tracee(b, "p");
	struct tw_term events;

	function(b, s, "tro:mid/1", "true", "meta");
	run(b, p, mid_x);
	events = ev(b, s);
	return lit(b, "{%t,%t}", events, info_pid(b, s, p, "flags"));
}

static struct tw_term s_meta_message_and_local(struct bed *b)
{
	struct st x = st(b, "call");

	function(b, x.s, "tro:mid/1", "true", "local");
	function(b, x.s, "tro:mid/1", "[{'_',[],[{message,hi}]}]", "meta");
	run(b, x.p, mid_x);
	return ev(b, x.s);
}

static struct tw_term s_meta_ignores_flags(struct bed *b)
{
	struct st x = st(b, "call,silent,arity,return_to,monotonic_timestamp");

	function(b, x.s, "tro:mid/1", "true", "meta");
	run(b, x.p, mid_x);
	return ev(b, x.s);
}

/* ---- J, K: silent, returns, exceptions ---- */

const struct scenario more_function_scenarios[] = {
	SCENARIO(s_call_global_only_external),
	SCENARIO(s_call_local_both),
	SCENARIO(s_exclusive_global_local),
	SCENARIO(s_kinds_by_name),
	SCENARIO(s_ms_replaced_and_kept),
	SCENARIO(s_head_wrong_length),
	SCENARIO(s_info_function_states),
	SCENARIO(s_call_count),
	SCENARIO(s_call_time_apart),
	SCENARIO(s_meta),
	SCENARIO(s_meta_message_and_local),
	SCENARIO(s_meta_ignores_flags),
	{0},
};
