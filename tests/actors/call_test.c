/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal	Calls of the run-time's functions give call, return_from, exception_from and return_to as Erlang's do: through
 *	calls, tail calls and exceptions; the caller is the function that control returns to.
 * Method	The functions of the recorded scenarios, played on the run-time; the lines are those of the recordings.
 */
#include "capture.h"

#include <tracewheel/match.h>

static struct value p;
static struct function top_function, mid_function, bot_function, caught_function, rt_function, rc_function;
static struct function ttop_function, t1_function, t2_function, t3_function, rtt_function;

/* ---- module tro: top(X) -> [mid(X) | 1]. mid(X) -> [bot(X) | 2]. bot(die) -> error(oops); bot(X) -> X. ---- */

static struct value top(struct actor *self, const struct value *arguments)
{
	return cons(heap_of(self), call(self, &mid_function, arguments[0]), integer(1));
}

static struct value mid(struct actor *self, const struct value *arguments)
{
	return cons(heap_of(self), call(self, &bot_function, arguments[0]), integer(2));
}

static struct value bot(struct actor *self, const struct value *arguments)
{
	if (is_same(arguments[0], atom("die")))
		raise_error(self, atom("oops"));
	return arguments[0];
}

static struct value call_mid(struct actor *self, struct value x)
{
	return call(self, &mid_function, x);
}

/* caught(X) -> R = (catch mid(X)), {c, R}.  Without the stack trace, which differs. */
static struct value caught(struct actor *self, const struct value *arguments)
{
	struct exception exception;
	struct value result = try_call(self, call_mid, arguments[0], &exception);
	return TUPLE(heap_of(self), atom("c"), exception.class ? exception.value : result);
}

static struct value rt(struct actor *self, const struct value *arguments)
{
	return TUPLE(heap_of(self), atom("r"), call(self, &top_function, arguments[0]));
}

static struct value rc(struct actor *self, const struct value *arguments)
{
	return TUPLE(heap_of(self), atom("r"), call(self, &caught_function, arguments[0]));
}

/* ---- ttop(X) -> [t1(X)]. t1(X) -> t2(X). t2(X) -> t3(X). t3(X) -> X. ---- */

static struct value ttop(struct actor *self, const struct value *arguments)
{
	return cons(heap_of(self), call(self, &t1_function, arguments[0]), NIL);
}

static struct value t1(struct actor *self, const struct value *arguments)
{
	return tail_call(self, &t2_function, arguments[0]);
}

static struct value t2(struct actor *self, const struct value *arguments)
{
	return tail_call(self, &t3_function, arguments[0]);
}

static struct value t3(struct actor *self, const struct value *arguments)
{
	return arguments[0];
}

static struct value rtt(struct actor *self, const struct value *arguments)
{
	return TUPLE(heap_of(self), atom("r"), call(self, &ttop_function, arguments[0]));
}

static struct function top_function = FUNCTION("tro", "top", 1, top);
static struct function mid_function = FUNCTION("tro", "mid", 1, mid);
static struct function bot_function = FUNCTION("tro", "bot", 1, bot);
static struct function caught_function = FUNCTION("tro", "caught", 1, caught);
static struct function rt_function = FUNCTION("tro", "rt", 1, rt);
static struct function rc_function = FUNCTION("tro", "rc", 1, rc);
static struct function ttop_function = FUNCTION("tro", "ttop", 1, ttop);
static struct function t1_function = FUNCTION("tro", "t1", 1, t1);
static struct function t2_function = FUNCTION("tro", "t2", 1, t2);
static struct function t3_function = FUNCTION("tro", "t3", 1, t3);
static struct function rtt_function = FUNCTION("tro", "rtt", 1, rtt);

static struct function *const functions[] = {&top_function, &mid_function, &bot_function,  &caught_function,
					     &rt_function,  &rc_function,  &ttop_function, &t1_function,
					     &t2_function,  &t3_function,  &rtt_function};

/* ---- the bed ---- */

static void begin(uint32_t flags)
{
	module_load(functions, sizeof functions / sizeof *functions);
	bed_start(&(struct runtime_options){.schedulers = 2});
	named_count = 0;
	p = spawn(me, &run_loop);
	name_pid(p, "p");
	start_recording();
	assert_int_equal(tw_trace_process(session, pid_number(p), true, flags | TW_FLAG_MONOTONIC_TIMESTAMP), 1);
}

static struct tw_match_program *programs[8];
static unsigned program_count;

/* @specification	NULL: none. */
static void trace(const char *name, const char *specification)
{
	if (!specification) {
		assert_int_equal(tw_trace_function(session, "tro", name, 1, TW_MATCH_TRUE, TW_FUNCTION_LOCAL), 1);
		return;
	}
	struct tw_match_program **program = &programs[program_count++];
	struct tw_match_options options = {.target = TW_MATCH_CALL};
	struct tw_match_error error;
	assert_int_equal(tw_match_compile_text(specification, strlen(specification), &options, program, &error), 0);
	assert_int_equal(tw_trace_function_match(session, "tro", name, 1, *program, TW_FUNCTION_LOCAL), 1);
}

static void finish(void)
{
	stop_recording();
	bed_teardown(NULL);
	while (program_count)
		tw_match_destroy(programs[--program_count]);
}

static struct value call_rt(struct actor *self, struct value x)
{
	return call(self, &rt_function, x);
}

static struct value call_rtt(struct actor *self, struct value x)
{
	return call(self, &rtt_function, x);
}

static struct value call_rc(struct actor *self, struct value x)
{
	return call(self, &rc_function, x);
}

static struct value call_top(struct actor *self, struct value x)
{
	return call(self, &top_function, x);
}

/* ---- lines as recorded: s_return_trace, s_return_to, ... ---- */

static void test_return_trace(void **state)
{
	begin(TW_FLAG_CALL);
	trace("top", "[{'_',[],[{return_trace}]}]");
	trace("mid", "[{'_',[],[{return_trace}]}]");
	trace("bot", "[{'_',[],[{return_trace}]}]");
	assert_text(run(p, call_top, atom("x")), "[[x|2]|1]");
	finish();
	EXPECT(p, "p call top/1 [x]", "p call mid/1 [x]", "p call bot/1 [x]", "p return_from bot/1 x",
	       "p return_from mid/1 [x|2]", "p return_from top/1 [[x|2]|1]");
}

static void test_return_to(void **state)
{
	begin(TW_FLAG_CALL | TW_FLAG_RETURN_TO);
	trace("top", NULL);
	trace("mid", NULL);
	trace("bot", NULL);
	run(p, call_rt, atom("x"));
	finish();
	EXPECT(p, "p call top/1 [x]", "p call mid/1 [x]", "p call bot/1 [x]", "p return_to {tro,mid,1}",
	       "p return_to {tro,top,1}", "p return_to {tro,rt,1}");
}

static void test_return_to_tail(void **state)
{
	begin(TW_FLAG_CALL | TW_FLAG_RETURN_TO);
	trace("ttop", NULL);
	trace("t1", NULL);
	trace("t2", NULL);
	trace("t3", NULL);
	run(p, call_rtt, atom("x"));
	finish();
	EXPECT(p, "p call ttop/1 [x]", "p call t1/1 [x]", "p call t2/1 [x]", "p call t3/1 [x]",
	       "p return_to {tro,ttop,1}", "p return_to {tro,rtt,1}");
}

static void test_exception_some(void **state)
{
	begin(TW_FLAG_CALL);
	trace("top", "[{'_',[],[{exception_trace}]}]");
	trace("mid", "[{'_',[],[{return_trace}]}]");
	trace("bot", NULL);
	assert_text(run(p, call_top, atom("die")), "{EXIT,{oops,[]}}");
	finish();
	EXPECT(p, "p call top/1 [die]", "p call mid/1 [die]", "p call bot/1 [die]",
	       "p exception_from top/1 {error,oops}");
}

static void test_exception_all(void **state)
{
	begin(TW_FLAG_CALL | TW_FLAG_RETURN_TO);
	trace("caught", "[{'_',[],[{exception_trace}]}]");
	trace("mid", "[{'_',[],[{exception_trace}]}]");
	trace("bot", "[{'_',[],[{exception_trace}]}]");
	run(p, call_rc, atom("die"));
	finish();
	EXPECT(p, "p call caught/1 [die]", "p call mid/1 [die]", "p call bot/1 [die]",
	       "p exception_from bot/1 {error,oops}", "p exception_from mid/1 {error,oops}",
	       "p return_to {tro,caught,1}", "p return_from caught/1 {c,oops}", "p return_to {tro,rc,1}");
}

static void test_caller(void **state)
{
	begin(TW_FLAG_CALL);
	trace("bot", "[{'_',[],[{message,{caller}}]}]");
	trace("t3", "[{'_',[],[{message,{caller}}]}]");
	run(p, call_rt, atom("x"));
	run(p, call_rtt, atom("x"));
	finish();
	EXPECT(p, "p call bot/1 [x] {tro,mid,1}", "p call t3/1 [x] {tro,ttop,1}");
}

/* A reloaded module is a new one: the settings of the old functions do not apply to the new, except by on_load. */
static struct value hello(struct actor *self, const struct value *arguments)
{
	return arguments[0];
}
static struct function hello_function = FUNCTION("dummy", "hello", 1, hello);
static struct function *const dummy[] = {&hello_function};

static struct value call_hello(struct actor *self, struct value x)
{
	return call_remote(self, &hello_function, x);
}

static void test_loading(void **state)
{
	begin(TW_FLAG_CALL);
	assert_int_equal(tw_trace_function(session, "dummy", "hello", 1, TW_MATCH_TRUE, TW_FUNCTION_LOCAL), 0);
	module_load(dummy, 1);
	assert_int_equal(tw_trace_function(session, "dummy", "hello", 1, TW_MATCH_TRUE, TW_FUNCTION_LOCAL), 1);
	run(p, call_hello, atom("traced"));
	module_unload("dummy");
	module_load(dummy, 1);
	run(p, call_hello, atom("not_traced"));
	assert_int_equal(tw_trace_on_load(session, TW_MATCH_TRUE, NULL, TW_FUNCTION_LOCAL), 0);
	module_unload("dummy");
	module_load(dummy, 1);
	run(p, call_hello, atom("by_on_load"));
	finish();
	EXPECT(p, "p call hello/1 [traced]", "p call hello/1 [by_on_load]");
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_return_trace),	  cmocka_unit_test(test_return_to),
					   cmocka_unit_test(test_return_to_tail), cmocka_unit_test(test_exception_some),
					   cmocka_unit_test(test_exception_all),  cmocka_unit_test(test_caller),
					   cmocka_unit_test(test_loading)};
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	free(recorded);
	return failed;
}
