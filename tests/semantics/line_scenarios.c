/* SPDX-License-Identifier: Apache-2.0 */
/* line_scenarios.c - lines of the checklist that no other scenario covers, named by their numbers. */
#include "bed.h"

#define CALLS(name, function, argument)                     \
	CODE(name)                                          \
	{                                                   \
		(void)env;                                  \
		return call(self, &(function), (argument)); \
	}

CALLS(mid_x, tro_mid, atom("x"))
CALLS(rt_x, tro_rt, atom("x"))
CALLS(down_0, tro_down, integer(0))

static struct tw_term flags_sorted(struct bed *b, struct sess *s, struct value pid)
{
	return sorted(b, tw_term_element(info_pid(b, s, pid, "flags"), 1));
}

/* ---- F, G: order, names, inheritance ---- */

CODE(f1_go)
{
	(void)env;
	return call(self, &tro_f1, atom("go"));
}

/* A message is reported before the call that it causes, and messages sent because of it after that call. */
static struct tw_term s_line_57_receive_before_its_calls(struct bed *b)
{
	struct st x = st(b, "receive,call,send");

	function(b, x.s, "tro:f1/1", "true", "local");
	run(b, x.p, f1_go);
	return elements(b, 3, ev(b, x.s));
}

/* Another process registers p: p's events, not its own. */
static struct tw_term s_line_62_register_of_another(struct bed *b)
{
	struct st x = st(b, "procs");

	process(b, x.s, self_pid(b->me), true, "procs");
	register_name(b->me, atom("line_62"), x.p);
	unregister_name(b->me, atom("line_62"));
	return ev_own(b, x.s);
}

CODE(spawns_one)
{
	(void)env;
	return spawn(self, &run_loop);
}

static struct tw_term s_line_76_flags_stay_with_each(struct bed *b)
{
	struct st x = st(b, "send,set_on_spawn");
	struct value first = run(b, x.p, spawns_one), second = run(b, x.p, spawns_one);

	process(b, x.s, x.p, false, "all");
	process(b, x.s, second, false, "all");
	return LIST(b, flags_sorted(b, x.s, x.p), flags_sorted(b, x.s, first), flags_sorted(b, x.s, second));
}

/* Nothing is inherited from a dead tracer. */
static struct tw_term s_line_78_no_flags_of_a_dead_tracer(struct bed *b)
{
	struct st x = st(b, "send,set_on_spawn");
	struct tw_term before = flags_sorted(b, x.s, run(b, x.p, spawns_one));

	kill_it(b, x.t);
	return LIST(b, before, flags_sorted(b, x.s, run(b, x.p, spawns_one)));
}

CODE(spawns_linked)
{
	(void)env;
	return spawn_link(self, &run_loop);
}

/* The child's first events. */
static struct tw_term s_line_79_first_events_of_a_linked_child(struct bed *b)
{
	struct st x = st(b, "procs,set_on_link");
	struct tw_term tags[8], events;
	size_t count = 0;

	name_it(b, run(b, x.p, spawns_linked), "c");
	for (events = ev(b, x.s); tw_term_type(events) == TW_TYPE_CONS; events = tw_term_tail(events))
		if (lit_is(tw_term_element(tw_term_head(events), 1), "c") && count < 8)
			tags[count++] = tw_term_element(tw_term_head(events), 2);
	return list_of(b, tags, count);
}

/* ---- J: silent ---- */

/* ---- K: two sessions, callers ---- */

static const char *const top_mid_bot[] = {"tro:top/1", "tro:mid/1", "tro:bot/1"};

static struct sess *returns_of(struct bed *b, struct value p, unsigned functions)
{
	struct sess *s = s(b, tracer_as(b, "t"));

	process(b, s, p, true, "call,return_to");
	for (unsigned i = 0; i < 3; i++)
		if (functions >> i & 1)
			function(b, s, top_mid_bot[i], "[{'_',[],[{return_trace}]}]", "local");
	return s;
}

CODE(calls_ttop_x)
{
	(void)env;
	return call(self, &tro_ttop, atom("x"));
}

#define LOOPS 20000

/* serve(N, Pid): a server loop that reports after a number of rounds, and then waits forever. */
static struct function serve_function;
static struct value serve(struct actor *self, const struct value *a)
{
	if (number_of(a[0]) == LOOPS) {
		send_to(self, a[1], atom("looped"));
		receive_value(self, atom("never"), FOREVER);
	}
	return tail_call(self, &serve_function, integer(number_of(a[0]) + 1), a[1]);
}
static struct function serve_function = FUNCTION("tro_loop", "serve", 2, serve);

/* The returns of a chain beside another process' loop, which another session traces: alive, killed, untraced. */
static struct tw_term s_line_132_beside_a_loop(struct bed *b)
{
	static const char *const names[] = {"tro:ttop/1", "tro:t1/1", "tro:t2/1", "tro:t3/1"};
	static struct function *const functions[] = {&serve_function};
	struct st x = st(b, "call");
	struct sess *other = s(b, tracer_as(b, "t2"));
	struct tw_term events[3];
	struct value looper, message;

	module_load(functions, 1);
	for (unsigned i = 0; i < 4; i++)
		function(b, x.s, names[i], "[{'_',[],[{return_trace}]}]", "local");
	function(b, other, "tro_loop:serve/2", "[{'_',[],[{return_trace}]}]", "local");
	trace_process(other, TW_PID_NEW, true, "call,return_to");
	looper = spawn(b->me, &serve_function, integer(0), self_pid(b->me));
	trace_process(other, TW_PID_NEW, false, "call,return_to");
	outside_receive(b->me, 60000, &message);
	run(b, x.p, calls_ttop_x);
	events[0] = ev(b, x.s);
	kill_it(b, looper);
	run(b, x.p, calls_ttop_x);
	events[1] = ev(b, x.s);
	destroy(b, other);
	run(b, x.p, calls_ttop_x);
	events[2] = ev(b, x.s);
	module_unload("tro_loop");
	return list_of(b, events, 3);
}

/* Every pair of different settings of three functions: the events of each session alone, and beside the other. */
static struct tw_term s_line_132_each_as_if_alone(struct bed *b)
{
	struct value p = tracee(b, "p");
	struct tw_term alone[8];
	int different = 0;

	b->makes_twins = false;
	for (unsigned i = 0; i < 8; i++) {
		struct sess *s = returns_of(b, p, i);

		b->name_count--; /* each tracer is a t: few names suffice */
		run(b, p, rt_x);
		alone[i] = ev(b, s);
		destroy(b, s);
	}
	for (unsigned i = 0; i < 64; i++) {
		struct sess *first, *second;

		if (i / 8 >= i % 8)
			continue; /* twins already have equal settings */
		first = returns_of(b, p, i / 8);
		second = returns_of(b, p, i % 8);
		b->name_count -= 2;
		run(b, p, rt_x);
		different += !tw_term_is_equal(ev(b, first), alone[i / 8]);
		different += !tw_term_is_equal(ev(b, second), alone[i % 8]);
		destroy(b, first);
		destroy(b, second);
	}
	return lit(b, "{%t,%d}", alone[2], different);
}

/* ---- L, M, N ---- */

/* Old and new processes; without the tracer, which here runs code like them. */
static struct tw_term s_line_146_meta_and_the_tracer(struct bed *b)
{
	struct value p = tracee(b, "p"), t = tracee(b, "t"), later;
	struct sess *s;
	struct tw_term rows[8], message;
	uint64_t reference;
	size_t count = 0;

	b->makes_twins = false;
	s = s(b, t);
	function(b, s, "tro:mid/1", "true", "meta");
	later = tracee(b, "later");
	run(b, t, mid_x);
	run(b, p, mid_x);
	run(b, later, mid_x);
	run(b, t, mid_x);
	tw_delivered(s->session, TW_PID_ALL, &reference);
	while (count < 8 && !tw_queue_receive(s->session, UINT64_C(2000000000), &b->arena, &message) &&
	       !lit_is(tw_term_element(message, 0), "trace_delivered"))
		rows[count++] = named(b, message);
	return list_of(b, rows, count);
}

static struct tw_term s_line_156_rows_end_with_the_tracer(struct bed *b)
{
	struct st x = st(b, "call");
	struct tw_term counts[2];

	function(b, x.s, "tro:down/1", "true", "call_time");
	for (unsigned i = 0; i < 2; i++) {
		struct tw_term rows;

		run(b, x.p, down_0);
		rows = tw_term_element(info_mfa(b, x.s, "tro:down/1", "call_time"), 1);
		counts[i] = tw_term_type(rows) == TW_TYPE_CONS ? tw_term_element(tw_term_head(rows), 1) : rows;
		if (i == 0)
			kill_it(b, x.t);
	}
	return list_of(b, counts, 2);
}

/* ---- S: match specifications in traces ---- */

CODE(f1_of_each)
{
	for (; is_box(env, BOX_CONS); env = tail(env))
		call(self, &tro_f1, head(env));
	return ATOM(OK);
}

/* f1 of 1, 2, 3, 4, a, true, {1,1} and {1,2}; an answer is the argument, or {Argument,Extra}. */
static struct tw_term told(struct bed *b, struct st *x, const char *spec)
{
	struct heap *heap = heap_of(b->me);
	struct value arguments = cons(heap, TUPLE(heap, integer(1), integer(2)), NIL);
	struct tw_term rows[16], events;
	size_t count = 0;
	int64_t set = function(b, x->s, "tro:f1/1", spec, "local");

	if (set < 0)
		return answer(b, set);
	arguments = cons(heap, TUPLE(heap, integer(1), integer(1)), arguments);
	arguments = cons(heap, atom("a"), cons(heap, ATOM(TRUE), arguments));
	for (int i = 4; i > 0; i--)
		arguments = cons(heap, integer(i), arguments);
	run_with(b, x->p, f1_of_each, arguments);
	for (events = ev(b, x->s); tw_term_type(events) == TW_TYPE_CONS; events = tw_term_tail(events)) {
		struct tw_term event = tw_term_head(events),
			       argument = tw_term_head(tw_term_element(tw_term_element(event, 3), 2));

		rows[count++] = tw_term_tuple_count(event) == 5 ? lit(b, "{%t,%t}", argument, tw_term_element(event, 4))
								: argument;
	}
	return list_of(b, rows, count);
}

static struct tw_term told_each(struct bed *b, const char *const *specs, size_t count)
{
	struct st x = st(b, "call");
	struct tw_term rows[16];

	for (size_t i = 0; i < count; i++)
		rows[i] = told(b, &x, specs[i]);
	return list_of(b, rows, count);
}

#define TOLD_EACH(b, ...) \
	told_each((b), (const char *const[]){__VA_ARGS__}, sizeof(const char *const[]){__VA_ARGS__} / sizeof(char *))

/* The first clause that matches, and no other. */
static struct tw_term s_line_195_first_clause(struct bed *b)
{
	return TOLD_EACH(b, "[{[1],[],[{message,first}]},{[2],[false],[{message,never}]},"
			    "{['$1'],[{is_integer,'$1'}],[{message,second}]},{[3],[],[{message,third}]}]");
}

/* Only true is true; a guard that raises fails its clause alone. */
static struct tw_term s_line_196_guards(struct bed *b)
{
	return TOLD_EACH(b, "[{['$1'],['$1'],[]}]",
			 "[{['$1'],[{'>',{'+','$1',1},3}],[{message,sum}]},{['$1'],[{is_atom,'$1'}],[]}]",
			 "[{['$1'],[{is_integer,'$1'},{'<','$1',3}],[]}]");
}

/* A failing call in a body gives 'EXIT', and the rest is executed. */
static struct tw_term s_line_197_bodies(struct bed *b)
{
	return TOLD_EACH(b, "[{[1],[],[{'+',a,1},{message,done}]},{[2],[],[{message,{'+',a,1}}]},"
			    "{[3],[],[{message,before},{hd,[]}]}]");
}

static struct tw_term s_line_198_last_message(struct bed *b)
{
	return TOLD_EACH(b, "[{[1],[],[{message,a},{message,b}]},{[2],[],[{message,a},{message,true}]},"
			    "{[3],[],[{message,a},{message,false}]},{[4],[],[{message,false},{message,c}]}]");
}

static struct tw_term s_line_199_no_token_no_event(struct bed *b)
{
	return TOLD_EACH(b, "[{'_',[],[{message,{is_seq_trace}}]}]");
}

/* p is not traced: a meta event's specification gives it flags, and the session's tracer. */
static struct tw_term s_line_206_meta_enables(struct bed *b)
{
	struct sess *s = s(b, tracer_as(b, "t"));
	struct value p = tracee(b, "p");
	struct tw_term tracer;

	function(b, s, "tro:mid/1", "[{'_',[],[{enable_trace,procs}]}]", "meta");
	run(b, p, mid_x);
	tracer = info_pid(b, s, p, "tracer");
	register_name(b->me, atom("line_206"), p);
	unregister_name(b->me, atom("line_206"));
	return LIST(b, flags_sorted(b, s, p), tracer, elements(b, 3, ev(b, s)));
}

static struct tw_term s_line_207_variables(struct bed *b)
{
	return TOLD_EACH(b, "[{[{'$1','$1'}],[],[{message,same}]},{[{'$2','$1'}],[],[{message,'$$'}]},"
			    "{['$7'],[{is_atom,'$7'}],[{message,'$_'}]},{[1.0],[],[{message,float}]}]");
}

static struct tw_term s_line_208_heads(struct bed *b)
{
	return TOLD_EACH(b, "[{'_',[],[]}]", "[{'$1',[{'==',{hd,'$1'},a}],[]}]", "[{a,[],[]}]", "[{{a},[],[]}]");
}

static struct tw_term s_line_209_refused(struct bed *b)
{
	return TOLD_EACH(b, "[{['$1'],[{message,x}],[]}]", "[{['$1'],[{'==','$2',1}],[]}]",
			 "[{['$1'],[],[{message,'$2'}]}]", "[{['$1'],[{set_tcw,1}],[]}]",
			 "[{['$1'],[{return_trace}],[]}]");
}

/* Operands that are no booleans. */
static struct tw_term s_line_210_no_booleans(struct bed *b)
{
	return TOLD_EACH(b, "[{['$1'],[{'not','$1'}],[]},{['$1'],[{'xor','$1',false}],[]}]",
			 "[{[1],[],[{message,{'not',1}}]},{[2],[],[{message,{'and',true,x}}]},"
			 "{[3],[],[{message,{'andalso',x,true}}]},{[4],[],[{message,{'andalso',true,x}}]},"
			 "{[a],[],[{message,{'orelse',false,x}}]}]");
}

static struct tw_term s_line_211_which_operands(struct bed *b)
{
	return TOLD_EACH(
		b, "[{[1],[],[{message,{{{'orelse',true,{hd,[]}}}}}]},{[2],[],[{message,{'or',true,{hd,[]}}}]},"
		   "{[3],[],[{message,{{{'andalso',false,{hd,[]}}}}}]},{[4],[],[{message,{'and',false,{hd,[]}}}]}]");
}

const struct scenario line_scenarios[] = {
	SCENARIO(s_line_57_receive_before_its_calls),
	SCENARIO(s_line_62_register_of_another),
	SCENARIO(s_line_76_flags_stay_with_each),
	SCENARIO(s_line_78_no_flags_of_a_dead_tracer),
	SCENARIO(s_line_79_first_events_of_a_linked_child),
	SCENARIO(s_line_132_beside_a_loop),
	SCENARIO(s_line_132_each_as_if_alone),
	SCENARIO(s_line_146_meta_and_the_tracer),
	SCENARIO(s_line_156_rows_end_with_the_tracer),
	SCENARIO(s_line_195_first_clause),
	SCENARIO(s_line_196_guards),
	SCENARIO(s_line_197_bodies),
	SCENARIO(s_line_198_last_message),
	SCENARIO(s_line_199_no_token_no_event),
	SCENARIO(s_line_206_meta_enables),
	SCENARIO(s_line_207_variables),
	SCENARIO(s_line_208_heads),
	SCENARIO(s_line_209_refused),
	SCENARIO(s_line_210_no_booleans),
	SCENARIO(s_line_211_which_operands),
	{0},
};
