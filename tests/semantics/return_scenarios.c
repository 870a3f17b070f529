/* SPDX-License-Identifier: Apache-2.0 */
/* return_scenarios.c - docs/semantics.md J, K: call, return_from, exception_from, return_to, silent. */
#include "bed.h"

#define RETURN_TRACE	"[{'_',[],[{return_trace}]}]"
#define EXCEPTION_TRACE "[{'_',[],[{exception_trace}]}]"

/* run(P, fun() -> NAME(ARGUMENT) end) */
#define CALLS(name, function, argument)                     \
	CODE(name)                                          \
	{                                                   \
		(void)env;                                  \
		return call(self, &(function), (argument)); \
	}

CALLS(top_x, tro_top, atom("x"))
CALLS(rt_x, tro_rt, atom("x"))
CALLS(rtt_x, tro_rtt, atom("x"))
CALLS(calls_ext_1, tro_calls_ext, integer(1))
CALLS(rc_die, tro_rc, atom("die"))
CALLS(top_die, tro_top, atom("die"))

static void set_three(struct bed *b, struct sess *s, const char *const names[3], const char *spec)
{
	for (unsigned i = 0; i < 3; i++)
		function(b, s, names[i], spec, "local");
}

static const char *const top_mid_bot[] = {"tro:top/1", "tro:mid/1", "tro:bot/1"};
static const char *const caught_mid_bot[] = {"tro:caught/1", "tro:mid/1", "tro:bot/1"};

static struct tw_term s_return_trace(struct bed *b)
{
	struct st x = st(b, "call");

	function(b, x.s, "tro:_/_", "false", "local");
	set_three(b, x.s, top_mid_bot, RETURN_TRACE);
	run(b, x.p, top_x);
	return ev(b, x.s);
}

static struct tw_term s_return_to(struct bed *b)
{
	struct st x = st(b, "call,return_to");

	set_three(b, x.s, top_mid_bot, "true");
	run(b, x.p, rt_x);
	return ev(b, x.s);
}

static struct tw_term s_return_to_tail(struct bed *b)
{
	static const char *const names[] = {"tro:t1/1", "tro:t2/1", "tro:t3/1"};
	struct st x = st(b, "call,return_to");

	function(b, x.s, "tro:ttop/1", "true", "local");
	set_three(b, x.s, names, "true");
	run(b, x.p, rtt_x);
	return ev(b, x.s);
}

static struct tw_term s_return_to_global_none(struct bed *b)
{
	struct st x = st(b, "call,return_to");

	function(b, x.s, "tro:loc/1", "true", "global");
	run(b, x.p, calls_ext_1);
	return ev(b, x.s);
}

static struct tw_term s_return_to_exception(struct bed *b)
{
	struct st x = st(b, "call,return_to");
	struct tw_term result;

	set_three(b, x.s, caught_mid_bot, "true");
	result = shown(b, run(b, x.p, rc_die));
	return lit(b, "{%t,%t}", result, ev(b, x.s));
}

CODE(catch_top)
{
	(void)env;
	catch_call(self, top_die, NONE);
	return ATOM(OK);
}

static struct tw_term s_exception_trace_some(struct bed *b)
{
	struct st x = st(b, "call");

	function(b, x.s, "tro:top/1", EXCEPTION_TRACE, "local");
	function(b, x.s, "tro:mid/1", RETURN_TRACE, "local");
	function(b, x.s, "tro:bot/1", "true", "local");
	run(b, x.p, catch_top);
	return ev(b, x.s);
}

/* Actors' exceptions carry no stack: [] stands for it. */
static struct tw_term s_exception_all_three_flags(struct bed *b)
{
	struct st x = st(b, "call,return_to");
	struct tw_term events, terms[8];

	set_three(b, x.s, caught_mid_bot, EXCEPTION_TRACE);
	run(b, x.p, rc_die);
	events = ev(b, x.s);
	if (lit_count(events) != 8 ||
	    !tw_term_is_equal(lit_nth(events, 6),
			      lit(b, "{trace,p,return_from,{tro,caught,1},{c,{'EXIT',{oops,[]}}}}")))
		return events;
	for (unsigned i = 0; i < 8; i++)
		terms[i] = lit_nth(events, i);
	terms[6] = lit(b, "{trace,p,return_from,{tro,caught,1},{c,{'EXIT',{oops,"
			  "[{tro,bot,1,[{file,\"tro.erl\"},{line,53}]},{tro,mid,1,[{file,\"tro.erl\"},{line,51}]},"
			  "{tro,caught,1,[{file,\"tro.erl\"},{line,60}]},{tro,rc,1,[{file,\"tro.erl\"},{line,116}]},"
			  "{tro,tloop,0,[{file,\"tro.erl\"},{line,37}]}]}}}}");
	return list_of(b, terms, 8);
}

CODE(seven_calls)
{
	static const char *const arguments[] = {"a", "back", "go", "b", "back", "stop", "c"};

	(void)env;
	for (unsigned i = 0; i < 7; i++)
		call_remote(self, &tro_f1, atom(arguments[i]));
	return ATOM(OK);
}

static struct tw_term s_silent(struct bed *b)
{
	struct st x = st(b, "call,silent");
	struct tw_term flags;

	function(b, x.s, "tro:f1/1",
		 "[{[go],[],[{silent,false}]},{[stop],[],[{silent,true}]},{[back],[],[{return_trace}]},{'_',[],[]}]",
		 "local");
	run(b, x.p, seven_calls);
	flags = info_pid(b, x.s, x.p, "flags");
	return lit(b, "{%t,%t}", ev(b, x.s), flags);
}

/* ---- frames that are open when a session ends ---- */

static struct value run_slow(struct actor *self, const struct value *a)
{
	struct value result = call(self, &tro_slow, self_pid(self));

	send_to(self, a[0], TUPLE(heap_of(self), atom("ran"), self_pid(self), result));
	receive_value(self, atom("stop"), FOREVER);
	return ATOM(OK);
}
static struct function run_slow_function = FUNCTION("tro", "run_slow", 1, run_slow);

static struct tw_term pending(struct bed *b, bool is_destroyed)
{
	struct value t = tracer_as(b, "t"), p, message;
	struct sess *s = s(b, t);
	struct tw_term result;

	function(b, s, "tro:slow/1", RETURN_TRACE, "local");
	trace_process(s, TW_PID_NEW, true, "call");
	p = spawn(b->me, &run_slow_function, self_pid(b->me));
	name_it(b, p, "p");
	pause_ms(30);
	if (is_destroyed)
		destroy(b, s);
	else
		function(b, s, "tro:slow/1", "false", "local");
	send_to(b->me, p, atom("go"));
	if (!outside_receive(b->me, 60000, &message))
		return tw_term_atom_z("no_answer");
	result = shown(b, element(message, 2));
	pause_ms(20);
	return lit(b, "{%t,%t}", result, ev(b, s));
}

static struct tw_term s_destroy_pending_return_trace(struct bed *b)
{
	return pending(b, true);
}

static struct tw_term s_disable_pending_return_trace(struct bed *b)
{
	return pending(b, false);
}

const struct scenario return_scenarios[] = {
	SCENARIO(s_return_trace),
	SCENARIO(s_return_to),
	SCENARIO(s_return_to_tail),
	SCENARIO(s_return_to_global_none),
	SCENARIO(s_return_to_exception),
	SCENARIO(s_exception_trace_some),
	SCENARIO(s_exception_all_three_flags),
	SCENARIO(s_silent),
	SCENARIO(s_destroy_pending_return_trace),
	SCENARIO(s_disable_pending_return_trace),
	{0},
};
