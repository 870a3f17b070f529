/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal	The run-time reports every event of processes at the right point: the rules of docs/semantics.md for messages,
 *	life, links, names, scheduling and collections hold for its actors.
 * Method	A runner executes functions of this file under a session with a capture; its lines are compared.
 */
#include "capture.h"

#include <tracewheel/info.h>
#include <tracewheel/match.h>

static struct value p, q;
static struct function waiter_function;

/* Starts runners p and q, and traces p with these flags. */
static void begin(uint32_t flags)
{
	bed_start(&(struct runtime_options){.schedulers = 2});
	named_count = 0;
	p = spawn(me, &run_loop);
	q = spawn(me, &run_loop);
	name_pid(p, "p");
	name_pid(q, "q");
	name_pid(self_pid(me), "me");
	start_recording();
	assert_int_equal(tw_trace_process(session, pid_number(p), true, flags), 1);
}

static void finish(void)
{
	bed_teardown(NULL);
	stop_recording();
	/* The runner's own messages are left out. */
	size_t count = 0;
	for (size_t i = 0; i < recorded_count; i++) {
		const char *text = recorded[i].text;
		if (!strstr(text, "{run,") && !strstr(text, "{ran,"))
			recorded[count++] = recorded[i];
	}
	recorded_count = count;
}

/* ---- messages ---- */

static struct value exchange(struct actor *self, struct value environment)
{
	struct value other = element(environment, 0), dead = element(environment, 1);
	send_to(self, other, TUPLE(heap_of(self), atom("hello"), integer(1)));
	send_to(self, dead, atom("x"));
	send_to(self, self_pid(self), atom("me"));
	receive_value(self, atom("me"), FOREVER);
	receive_match(self, NULL, NONE, 5);
	return ATOM(OK);
}

static struct value to_unregistered(struct actor *self, struct value environment)
{
	send_to(self, atom("unregistered_name"), atom("x"));
	return ATOM(OK);
}

static void test_messages(void **state)
{
	begin(TW_FLAG_SEND | TW_FLAG_RECEIVE | TW_FLAG_MONOTONIC_TIMESTAMP);
	struct value dead = spawn(me, &run_loop), reference = monitor(me, dead);
	name_pid(dead, "dead");
	send_to(me, dead, ATOM(STOP));
	assert_true(is_same(element(next_message(), 1), reference));
	run(p, exchange, TUPLE(heap_of(me), q, dead));
	assert_text(run(p, to_unregistered, NIL), "{EXIT,{badarg,[]}}");
	finish();
	EXPECT(NONE, "p send {hello,1} q", "p send_to_non_existing_process x dead", "p send me p", "p receive me",
	       "p receive timeout", "p send x unregistered_name");
}

/* Match specifications see the whole of a message too large for a record. */
static struct value send_lists(struct actor *self, struct value other)
{
	for (int64_t count = 2999; count <= 3001; count++) {
		struct value list = NIL;
		KEEP(self, list);
		for (int64_t i = 0; i < count; i++)
			list = cons(heap_of(self), integer(1000000 + i), list);
		send_to(self, other, list);
	}
	return ATOM(OK);
}

static void test_large_messages(void **state)
{
	static const char long_ones[] = "[{['_','$1'],[{'==',{length,'$1'},3000}],[]}]";
	begin(TW_FLAG_SEND | TW_FLAG_MONOTONIC_TIMESTAMP);
	struct tw_match_error error;
	assert_int_equal(tw_trace_send_text(session, long_ones, sizeof long_ones - 1, &error), 1);
	run(p, send_lists, q);
	finish();
	assert_int_equal(recorded_count, 1);
	assert_int_equal(strncmp(recorded[0].text, "p send [1002999,1002998,", 24), 0);
}

/* ---- life, links, names ---- */

static struct value wait_for_x(struct actor *self, const struct value *arguments)
{
	receive(self);
	return NIL;
}
static struct function waiter_function = FUNCTION("test", "waiter", 0, wait_for_x);

static struct value spawn_linked(struct actor *self, struct value environment)
{
	return spawn_link(self, &waiter_function);
}

static struct value unlink_and_names(struct actor *self, struct value child)
{
	unlink_from(self, child);
	register_name(self, atom("nnn"), self_pid(self));
	unregister_name(self, atom("nnn"));
	return ATOM(OK);
}

static void test_procs(void **state)
{
	begin(TW_FLAG_PROCS | TW_FLAG_SET_ON_SPAWN | TW_FLAG_MONOTONIC_TIMESTAMP);
	struct value child = run(p, spawn_linked, NIL);
	name_pid(child, "c");
	run(p, unlink_and_names, child);
	struct value reference = monitor(me, child);
	send_to(me, child, atom("x"));
	assert_true(is_same(element(next_message(), 1), reference));
	finish();
	EXPECT(child, "c spawned p {test,waiter,[]}", "c getting_linked p", "c getting_unlinked p", "c exit normal");
	EXPECT(p, "p spawn c {test,waiter,[]}", "p link c", "p unlink c", "p register nnn", "p unregister nnn",
	       "p exit killed");
}

static struct value register_me(struct actor *self, struct value name)
{
	register_name(self, name, self_pid(self));
	return ATOM(OK);
}

static struct value link_it(struct actor *self, struct value pid)
{
	link_to(self, pid);
	return ATOM(OK);
}

static void test_exit(void **state)
{
	begin(TW_FLAG_PROCS | TW_FLAG_EXITING | TW_FLAG_MONOTONIC_TIMESTAMP);
	run(p, register_me, atom("nnn2"));
	run(p, link_it, q);
	run(q, link_it, q);
	struct value reference = monitor(me, p);
	exit_signal(me, q, atom("bad"));
	assert_true(is_same(element(next_message(), 1), reference));
	assert_true(is_none(whereis(me, atom("nnn2"))));
	finish();
	EXPECT(p, "p register nnn2", "p link q", "p exit bad", "p unregister nnn2", "p out_exited 0");
}

static struct value trap(struct actor *self, struct value environment)
{
	process_flag(self, FLAG_TRAP_EXIT, true);
	return ATOM(OK);
}

static struct value first_message(struct actor *self, struct value environment)
{
	return receive(self);
}

static void test_trapped_exit(void **state)
{
	begin(TW_FLAG_PROCS | TW_FLAG_RECEIVE | TW_FLAG_MONOTONIC_TIMESTAMP);
	run(p, trap, NIL);
	run(p, link_it, q);
	exit_signal(me, q, atom("bad"));
	assert_text(element(run(p, first_message, NIL), 2), "bad");
	exit_signal(me, p, ATOM(KILL));
	monitor(me, p);
	next_message();
	finish();
	char exit_line[64];
	snprintf(exit_line, sizeof exit_line, "p receive {'EXIT',<0.%u.0>,bad}", pid_number(q));
	EXPECT(p, "p link q", "p getting_unlinked q", exit_line, "p exit killed");
}

/* ---- sensitive ---- */

static struct value loc(struct actor *self, const struct value *arguments)
{
	return arguments[0];
}
static struct function loc_function = LOCAL_FUNCTION("test", "loc", 1, loc);

static struct value be_sensitive(struct actor *self, struct value environment)
{
	process_flag(self, FLAG_SENSITIVE, true);
	call(self, &loc_function, integer(1));
	send_to(self, self_pid(self), atom("x"));
	process_flag(self, FLAG_SENSITIVE, false);
	call(self, &loc_function, integer(2));
	return ATOM(OK);
}

static void test_sensitive(void **state)
{
	module_load((struct function *const[]){&loc_function}, 1);
	begin(TW_FLAG_CALL | TW_FLAG_SEND | TW_FLAG_MONOTONIC_TIMESTAMP);
	assert_int_equal(tw_trace_function(session, "test", "loc", 1, TW_MATCH_TRUE, TW_FUNCTION_LOCAL), 1);
	run(p, be_sensitive, NIL);
	finish();
	assert_int_equal(recorded_count, 1);
	assert_int_equal(strncmp(recorded[0].text, "p call loc/1", 12), 0);
}

/* ---- scheduling ---- */

static struct value wait_a_little(struct actor *self, struct value environment)
{
	receive_match(self, NULL, NONE, 5);
	return ATOM(OK);
}

static void test_running(void **state)
{
	begin(TW_FLAG_RUNNING | TW_FLAG_MONOTONIC_TIMESTAMP);
	run(p, wait_a_little, NIL);
	run(p, wait_a_little, NIL);
	finish();
	/* It may find its second message before it has waited. */
	assert_true(recorded_count >= 5);
	for (size_t i = 0; i < recorded_count; i++) {
		const char *tag = i % 2 ? "p out {runner,loop,0}" : "p in {runner,loop,0}";
		assert_string_equal(recorded[i].text, tag);
	}
}

/* ---- collections ---- */

static struct value collect_now(struct actor *self, struct value environment)
{
	garbage_collect(self);
	for (int i = 0; i < 200; i++) {
		TUPLE(heap_of(self), integer(1), integer(2));
		receive_match(self, NULL, NONE, 0);
	}
	return ATOM(OK);
}

static void test_gc(void **state)
{
	begin(TW_FLAG_GARBAGE_COLLECTION | TW_FLAG_MONOTONIC_TIMESTAMP);
	run(p, collect_now, NIL);
	finish();
	assert_true(recorded_count >= 4);
	assert_string_equal(recorded[0].text, "p gc_major_start");
	assert_string_equal(recorded[1].text, "p gc_major_end");
	for (size_t i = 2; i < recorded_count; i++)
		assert_string_equal(recorded[i].text, i % 2 ? "p gc_minor_end" : "p gc_minor_start");
}

/* ---- words ---- */

/* A cons is three words here. */
static void take_conses(struct actor *self, int count)
{
	for (int i = 0; i < count; i++)
		cons(heap_of(self), integer(i), NIL);
}

static struct value inner(struct actor *self, const struct value *arguments)
{
	take_conses(self, 2);
	garbage_collect(self);
	take_conses(self, 1);
	return NIL;
}
static struct function inner_function = FUNCTION("test", "inner", 0, inner);

static struct value outer(struct actor *self, const struct value *arguments)
{
	take_conses(self, 300);
	call(self, &inner_function);
	garbage_collect(self);
	take_conses(self, 4);
	return NIL;
}
static struct function outer_function = FUNCTION("test", "outer", 0, outer);

static struct value call_outer(struct actor *self, struct value environment)
{
	take_conses(self, 7);
	call(self, &outer_function);
	take_conses(self, 7);
	return ATOM(OK);
}

/* {call_memory,[{Pid,Count,Words}]} */
static void assert_words(struct tw_session *of, const char *name, int64_t words)
{
	struct tw_term mfa, list, row = {0};
	struct tw_arena arena;
	int64_t value = -1;

	tw_arena_init(&arena, SIZE_MAX);
	mfa = tw_term_tuple(&arena,
			    (struct tw_term[]){tw_term_atom_z("test"), tw_term_atom_z(name),
					       tw_term_integer(&arena, 0)},
			    3);
	assert_int_equal(tw_trace_info(of, mfa, tw_term_atom_z("call_memory"), &arena, &list), 0);
	row = tw_term_head(tw_term_element(list, 1));
	assert_int_equal(tw_term_tuple_count(row), 3);
	assert_int_equal(tw_term_get_int64(tw_term_element(row, 2), &value), 0);
	assert_int_equal(value, words);
	tw_arena_fini(&arena);
}

/* 153, 155: collections neither add nor remove words; words of no function are counted for none. */
static void test_words(void **state)
{
	struct tw_session *other;

	module_load((struct function *const[]){&inner_function, &outer_function}, 2);
	begin(TW_FLAG_CALL);
	assert_int_equal(tw_session_create("other", NULL, &other), 0);
	tw_trace_process(other, pid_number(p), true, TW_FLAG_CALL);
	assert_int_equal(tw_trace_function(session, "test", "outer", 0, TW_MATCH_TRUE, TW_FUNCTION_CALL_MEMORY), 1);
	assert_int_equal(tw_trace_function(other, "test", "outer", 0, TW_MATCH_TRUE, TW_FUNCTION_CALL_MEMORY), 1);
	assert_int_equal(tw_trace_function(other, "test", "inner", 0, TW_MATCH_TRUE, TW_FUNCTION_CALL_MEMORY), 1);
	run(p, call_outer, NIL);
	assert_words(session, "outer", 3 * 307);
	assert_words(other, "outer", 3 * 304);
	assert_words(other, "inner", 3 * 3);
	tw_session_destroy(other);
	tw_session_put(other);
	finish();
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_words),
					   cmocka_unit_test(test_messages),
					   cmocka_unit_test(test_large_messages),
					   cmocka_unit_test(test_procs),
					   cmocka_unit_test(test_exit),
					   cmocka_unit_test(test_trapped_exit),
					   cmocka_unit_test(test_sensitive),
					   cmocka_unit_test(test_running),
					   cmocka_unit_test(test_gc)};
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	free(recorded);
	return failed;
}
