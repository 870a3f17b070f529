/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal	Sessions are created and end as OTP's do, and their settings are reported in OTP's terms.
 * Method	Sessions over rings of the test; answers compared as text.  Each case is named by its lines in
 *	docs/semantics.md.
 */
#include "tests/unit/session_bed.h"
#include "tracewheel/match.h"

#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

static struct tw_declared_function f1 = TW_DECLARED_FUNCTION("tro", "f1", 1);

static char memory[65536];
static struct tw_arena arena;

static struct tw_term parse(const char *text)
{
	struct tw_term term;

	tw_arena_init_fixed(&arena, memory, sizeof memory);
	assert_int_equal(tw_term_parse(&arena, text, strlen(text), &term, NULL), 0);
	return term;
}

static const char *shown(int error, struct tw_term out)
{
	static char text[4096];

	if (error)
		return error == TW_EBADARG ? "badarg" : error == TW_EDEAD ? "dead" : "another error";
	tw_term_format(out, TW_PRINT_PRETTY, text, sizeof text);
	return text;
}

static const char *info(struct tw_session *s, const char *what, const char *item)
{
	struct tw_term term = parse(what), out = {0};
	int error = tw_trace_info(s, term, tw_term_atom_z(item), &arena, &out);

	return shown(error, out);
}

static const char *info_pid(struct tw_session *s, tw_pid pid, const char *item)
{
	char text[32];

	snprintf(text, sizeof text, "<0.%llu.0>", (unsigned long long)pid);
	return info(s, text, item);
}

static const char *session_info(const char *what)
{
	struct tw_term term = parse(what), out = {0};
	int error = tw_session_info(term, &arena, &out);

	return shown(error, out);
}

static const char *session_info_pid(tw_pid pid)
{
	char text[32];

	snprintf(text, sizeof text, "<0.%llu.0>", (unsigned long long)pid);
	return session_info(text);
}

/* Is the session in the list of sessions that affect it? */
static bool is_member(struct tw_session *s, const char *answer)
{
	char weak[300];

	snprintf(weak, sizeof weak, "{%s,%llu}", tw_session_name(s), (unsigned long long)tw_session_weak_of(s));
	return strstr(answer, weak) != NULL;
}

static tw_pid dead_pid(void)
{
	struct tw_process *process;
	tw_pid pid;

	assert_int_equal(tw_process_create("dead", &process), 0);
	pid = tw_process_pid(process);
	tw_process_exit(process);
	return pid;
}

/* ---- A, B ---- */

static void line_1_two_sessions_of_one_name(void **state)
{
	struct tw_session *a, *b;
	char expected[200];

	assert_int_equal(tw_session_create("same", NULL, &a), 0);
	assert_int_equal(tw_session_create("same", NULL, &b), 0);
	assert_true(tw_session_weak_of(a) != tw_session_weak_of(b));
	snprintf(expected, sizeof expected, "[{same,%llu},{same,%llu}]", (unsigned long long)tw_session_weak_of(b),
		 (unsigned long long)tw_session_weak_of(a));
	assert_string_equal(session_info("all"), expected);
	tw_session_put(a);
	tw_session_put(b);
	assert_string_equal(session_info("all"), "[]");
}

static void line_2_what_create_refuses(void **state)
{
	const struct tw_tracer no_such = {.kind = (enum tw_tracer_kind)99};
	const struct tw_tracer no_path = {.kind = TW_TRACER_CAPTURE};
	const struct tw_tracer no_policy = {.kind = TW_TRACER_CAPTURE,
					    .capture_path = "/tmp",
					    .on_full = (enum tw_on_full)9};
	struct tw_session *s = NULL;
	char name[257];

	memset(name, 'x', 256);
	name[256] = '\0';
	assert_int_equal(tw_session_create(NULL, NULL, &s), TW_EBADARG);
	assert_int_equal(tw_session_create(name, NULL, &s), TW_EBADARG);
	assert_int_equal(tw_session_create("x", NULL, NULL), TW_EBADARG);
	assert_int_equal(tw_session_create("x", &no_such, &s), TW_EBADARG);
	assert_int_equal(tw_session_create("x", &no_path, &s), TW_EBADARG);
	assert_int_equal(tw_session_create("x", &no_policy, &s), TW_EBADARG);
	assert_int_equal(tw_session_create("not \xff UTF-8", NULL, &s), TW_EBADARG);
	assert_null(s);
	assert_string_equal(session_info("all"), "[]");
	assert_int_equal(tw_session_create("", NULL, &s), 0);
	assert_true(strncmp(session_info("all"), "[{'',", 5) == 0);
	tw_session_destroy(s);
	tw_session_put(s);
}

static void line_9_10_11_12_destroy_once(void **state)
{
	struct tw_session *s;
	tw_session_weak weak;

	assert_int_equal(tw_session_create("once", NULL, &s), 0);
	weak = tw_session_weak_of(s);
	assert_int_equal(tw_session_destroy(s), 1);
	assert_int_equal(tw_session_destroy(s), 0);
	assert_int_equal(tw_session_destroy_weak(weak), TW_EBADARG);
	tw_session_put(s);
	assert_int_equal(tw_session_destroy_weak(weak), TW_EBADARG);
	assert_int_equal(tw_session_create("weakly", NULL, &s), 0);
	assert_int_equal(tw_session_destroy_weak(tw_session_weak_of(s)), 1);
	assert_int_equal(tw_session_destroy(s), 0);
	tw_session_put(s);
	assert_int_equal(tw_session_destroy(NULL), TW_EBADARG);
	assert_int_equal(tw_session_destroy_weak(0), TW_EBADARG);
	assert_int_equal(tw_session_destroy_weak(UINT64_MAX), TW_EBADARG);
	assert_int_equal(tw_session_lock(0, &s), TW_EDEAD);
}

/* All settings of a session, and checks that each is reported as removed. */
static void set_everything(struct tw_session *s, tw_pid pid)
{
	static const char spec[] = "[{['_',x],[],[]}]";

	assert_int_equal(tw_trace_process(s, pid, true, TW_FLAG_CALL | TW_FLAG_SEND | TW_FLAG_SET_ON_SPAWN), 1);
	assert_int_equal(tw_trace_process(s, TW_PID_NEW, true, TW_FLAG_CALL), 0);
	assert_int_equal(tw_trace_function(s, "tro", "f1", 1, TW_MATCH_TRUE,
					   TW_FUNCTION_LOCAL | TW_FUNCTION_META | TW_FUNCTION_CALL_COUNT |
						   TW_FUNCTION_CALL_TIME | TW_FUNCTION_CALL_MEMORY),
			 1);
	assert_int_equal(tw_trace_on_load(s, TW_MATCH_TRUE, NULL, TW_FUNCTION_LOCAL), 0);
	assert_int_equal(tw_trace_send_text(s, spec, strlen(spec), NULL), 1);
	assert_int_equal(tw_trace_recv(s, TW_MATCH_FALSE), 1);
}

static void line_13_every_call_with_a_destroyed_session(void **state)
{
	struct tw_match_program *program;
	struct tw_session *s;
	uint32_t flags = 77;
	uint64_t count = 77;

	assert_int_equal(tw_match_compile_text("[{'_',[],[]}]", 13, NULL, &program, NULL), 0);
	assert_int_equal(tw_session_create("gone", NULL, &s), 0);
	assert_int_equal(tw_session_destroy(s), 1);
	assert_int_equal(tw_trace_process(s, TW_PID_ALL, true, TW_FLAG_CALL), TW_EDEAD);
	assert_int_equal(tw_trace_process_flags(s, tw_process_self(), &flags), TW_EDEAD);
	assert_int_equal(tw_trace_function(s, "tro", "f1", 1, TW_MATCH_TRUE, 0), TW_EDEAD);
	assert_int_equal(tw_trace_function_match(s, "tro", "f1", 1, program, 0), TW_EDEAD);
	assert_int_equal(tw_trace_on_load(s, TW_MATCH_TRUE, NULL, 0), TW_EDEAD);
	assert_int_equal(tw_trace_send(s, TW_MATCH_TRUE), TW_EDEAD);
	assert_int_equal(tw_trace_recv(s, TW_MATCH_TRUE), TW_EDEAD);
	assert_int_equal(tw_trace_call_count(s, "tro", "f1", 1, &count), TW_EDEAD);
	assert_string_equal(info_pid(s, tw_process_self(), "flags"), "dead");
	assert_string_equal(info(s, "{tro,f1,1}", "all"), "dead");
	assert_string_equal(info(s, "on_load", "all"), "dead");
	assert_string_equal(info(s, "send", "match_spec"), "dead");
	assert_int_equal(flags, 77);
	assert_int_equal(count, 77);
	tw_session_put(s);
	tw_match_destroy(program);
	assert_int_equal(f1.armed, 0);
}

static void line_14_15_16_17_the_last_handle(void **state)
{
	struct bed bed;
	struct tw_session *s, *again;
	tw_session_weak weak;

	open_bed(&bed, "counted");
	s = bed.session;
	weak = tw_session_weak_of(s);
	set_everything(s, tw_process_self());
	assert_int_equal(tw_session_lock(weak, &again), 0);
	assert_ptr_equal(again, s);
	/* A strong handle elsewhere keeps it alive. */
	tw_session_put(s);
	assert_int_equal(tw_progress(), 0);
	assert_true(is_member(again, session_info("all")));
	assert_int_equal(tw_trace_process(again, tw_process_self(), true, TW_FLAG_CALL), 1);
	/* A weak one does not. */
	tw_session_put(again);
	assert_int_equal(tw_session_lock(weak, &again), TW_EDEAD);
	assert_int_equal(tw_progress(), 1);
	assert_string_equal(session_info("all"), "[]");
	assert_string_equal(session_info("{tro,f1,1}"), "[]");
	assert_int_equal(tw_session_destroy_weak(weak), TW_EBADARG);
	assert_int_equal(f1.armed, 0);
	tw_rs_destroy(&bed.rs);
}

static void line_18_19_24_what_destroy_takes_away(void **state)
{
	struct bed first, second;
	struct tw_declared_function later = TW_DECLARED_FUNCTION("later", "f", 0);
	struct tw_process *process;
	char before[2048], weak[64];

	open_bed(&first, "first");
	open_bed(&second, "second");
	set_everything(first.session, tw_process_self());
	set_everything(second.session, tw_process_self());
	tw_call1(&f1, 1);
	snprintf(before, sizeof before, "%s", info(second.session, "{tro,f1,1}", "match_spec"));
	assert_int_equal(tw_session_destroy(first.session), 1);
	snprintf(weak, sizeof weak, "[{second,%llu}]", (unsigned long long)tw_session_weak_of(second.session));
	assert_string_equal(session_info("{tro,f1,1}"), weak);
	assert_string_equal(session_info("on_load"), weak);
	assert_string_equal(session_info("new"), weak);
	assert_string_equal(session_info("send"), weak);
	assert_string_equal(session_info_pid(tw_process_self()), weak);
	/* The other session's settings are unchanged, and its events continue; the first keeps its events. */
	assert_string_equal(info(second.session, "{tro,f1,1}", "match_spec"), before);
	assert_string_equal(info(second.session, "send", "match_spec"), "{match_spec,[{['_',x],[],[]}]}");
	assert_string_equal(info(second.session, "'receive'", "match_spec"), "{match_spec,false}");
	assert_string_equal(info(second.session, "new", "flags"), "{flags,[call]}");
	assert_true(count_events(&first) >= 1);
	count_events(&second);
	tw_call1(&f1, 1);
	assert_int_equal(count_events(&first), 0);
	assert_true(count_events(&second) >= 1);
	assert_int_equal(tw_function_declare(&later), 0);
	assert_int_equal(tw_process_create("later", &process), 0);
	assert_string_equal(session_info("{later,f,0}"), weak);
	assert_string_equal(session_info_pid(tw_process_pid(process)), weak);
	tw_process_exit(process);
	assert_int_equal(tw_module_unload("later"), 1);
	close_bed(&second);
	tw_session_put(first.session);
	tw_rs_destroy(&first.rs);
	assert_int_equal(f1.armed, 0);
}

static _Atomic bool is_stopping;
static _Atomic uint64_t result;

static void *loop(void *unused)
{
	uint64_t sum = 0;

	while (!is_stopping) {
		tw_call1(&f1, 1);
		sum++;
	}
	result = sum;
	return NULL;
}

static void line_20_destroy_in_a_traced_loop(void **state)
{
	pthread_t thread;
	struct bed bed;

	is_stopping = false;
	result = 0;
	pthread_create(&thread, NULL, loop, NULL);
	open_bed(&bed, "in flight");
	tw_trace_process(bed.session, TW_PID_ALL, true, TW_FLAG_CALL);
	tw_trace_function(bed.session, "tro", "f1", 1, TW_MATCH_TRUE, TW_FUNCTION_LOCAL);
	while (!count_events(&bed))
		usleep(100);
	assert_int_equal(tw_session_destroy(bed.session), 1);
	count_events(&bed);
	assert_string_equal(session_info_pid(tw_process_self()), "[]");
	usleep(1000);
	assert_int_equal(count_events(&bed), 0);
	is_stopping = true;
	pthread_join(thread, NULL);
	assert_true(result > 0);
	tw_session_put(bed.session);
	tw_rs_destroy(&bed.rs);
}

static _Atomic int winners;

static void *destroy(void *session)
{
	winners += tw_session_destroy(session);
	return NULL;
}

static void line_22_one_destroyer_wins(void **state)
{
	for (int round = 0; round < 50; round++) {
		struct tw_session *s;
		pthread_t threads[4];

		winners = 0;
		assert_int_equal(tw_session_create("raced", NULL, &s), 0);
		for (int i = 0; i < 4; i++)
			pthread_create(&threads[i], NULL, destroy, s);
		for (int i = 0; i < 4; i++)
			pthread_join(threads[i], NULL);
		assert_int_equal(winners, 1);
		tw_session_put(s);
	}
}

/* ---- C ---- */

static void expect_members(struct tw_session *s, tw_pid pid, bool is_set)
{
	static const char *const always[] = {"all", "send", "'receive'"};
	static const char *const if_set[] = {"new", "new_processes", "{tro,f1,1}", "on_load"};

	for (size_t i = 0; i < TW_COUNT_OF(always); i++)
		assert_true(is_member(s, session_info(always[i])));
	for (size_t i = 0; i < TW_COUNT_OF(if_set); i++)
		assert_int_equal(is_member(s, session_info(if_set[i])), is_set);
	assert_int_equal(is_member(s, session_info_pid(pid)), is_set);
}

static void line_26_to_30_session_info(void **state)
{
	static const char *const bad[] = {"system", "foo",     "{a,b}", "{'_','_','_'}", "{tro,'_','_'}", "{tro,f1,x}",
					  "17",	    "\"tro\"", "[]",	"{tro,f1,1,1}",	 "<9.1.0>"};
	tw_pid pid = tw_process_self();
	struct bed bed;

	open_bed(&bed, "mysess");
	expect_members(bed.session, pid, false);
	set_everything(bed.session, pid);
	expect_members(bed.session, pid, true);
	assert_string_equal(session_info("{tro,nofun,1}"), "undefined");
	assert_string_equal(session_info("{nomod,f,1}"), "undefined");
	assert_string_equal(session_info("{tro,f1,256}"), "undefined");
	assert_string_equal(session_info_pid(dead_pid()), "undefined");
	for (size_t i = 0; i < TW_COUNT_OF(bad); i++)
		assert_string_equal(session_info(bad[i]), "badarg");
	/* A paused counter is a setting. */
	tw_trace_function(bed.session, "tro", "f1", 1, TW_MATCH_FALSE, 59);
	assert_false(is_member(bed.session, session_info("{tro,f1,1}")));
	tw_trace_function(bed.session, "tro", "f1", 1, TW_MATCH_TRUE, TW_FUNCTION_CALL_COUNT);
	tw_trace_function(bed.session, "tro", "f1", 1, TW_MATCH_PAUSE, TW_FUNCTION_CALL_COUNT);
	assert_true(is_member(bed.session, session_info("{tro,f1,1}")));
	close_bed(&bed);
}

/* ---- P ---- */

static void line_171_172_174_functions(void **state)
{
	static const char *const items[] = {"traced",	  "match_spec", "meta",	       "meta_match_spec",
					    "call_count", "call_time",	"call_memory", "all"};
	struct tw_session *s;
	char expected[64];

	assert_int_equal(tw_session_create("info", NULL, &s), 0);
	for (size_t i = 0; i < TW_COUNT_OF(items); i++) {
		snprintf(expected, sizeof expected, "{%s,undefined}", items[i]);
		assert_string_equal(info(s, "{tro,nofun,1}", items[i]), expected);
		snprintf(expected, sizeof expected, "{%s,false}", items[i]);
		assert_string_equal(info(s, "{tro,f1,1}", items[i]), expected);
	}
	tw_trace_function(s, "tro", "f1", 1, TW_MATCH_TRUE, 0);
	assert_string_equal(info(s, "{tro,f1,1}", "all"),
			    "{all,[{traced,global},{match_spec,[]},{meta,false},{meta_match_spec,false},"
			    "{call_memory,false},{call_time,false},{call_count,false}]}");
	assert_string_equal(info(s, "{tro,f1,1}", "meta"), "{meta,false}");
	/* 179 */
	assert_string_equal(info(s, "{tro,f1,'_'}", "traced"), "badarg");
	assert_string_equal(info(s, "{'_','_','_'}", "traced"), "badarg");
	assert_string_equal(info(s, "{tro,'_',1}", "traced"), "badarg");
	assert_string_equal(info(s, "{tro,f1,1}", "flags"), "badarg");
	assert_string_equal(info(s, "{tro,f1,1}", "foo"), "badarg");
	assert_string_equal(info(s, "system", "flags"), "badarg");
	tw_session_destroy(s);
	tw_session_put(s);
}

static void line_40_170_175_176_processes_and_events(void **state)
{
	const uint32_t flags = TW_FLAG_CALL | TW_FLAG_SEND | TW_FLAG_ARITY | TW_FLAG_TIMESTAMP | TW_FLAG_SET_ON_SPAWN |
			       TW_FLAG_MONOTONIC_TIMESTAMP;
	tw_pid self = tw_process_self(), dead = dead_pid();
	struct bed bed;
	struct tw_session *s;

	open_bed(&bed, "info");
	s = bed.session;
	assert_string_equal(info_pid(s, self, "flags"), "{flags,[]}");
	assert_string_equal(info_pid(s, self, "tracer"), "{tracer,[]}");
	assert_string_equal(info_pid(s, self, "foo"), "badarg");
	assert_string_equal(info_pid(s, dead, "flags"), "undefined");
	assert_string_equal(info_pid(s, dead, "tracer"), "undefined");
	assert_string_equal(info_pid(s, dead, "foo"), "badarg");
	for (int i = 0; i < 2; i++) {
		const char *new = i ? "new" : "new_processes";

		assert_string_equal(info(s, new, "flags"), "{flags,[]}");
		assert_string_equal(info(s, new, "tracer"), "{tracer,[]}");
		assert_string_equal(info(s, new, "foo"), "badarg");
	}
	assert_string_equal(info(s, "send", "match_spec"), "{match_spec,true}");
	assert_string_equal(info(s, "'receive'", "match_spec"), "{match_spec,true}");
	assert_string_equal(info(s, "send", "all"), "badarg");
	assert_string_equal(info(s, "send", "foo"), "badarg");
	tw_trace_process(s, self, true, flags);
	assert_string_equal(info_pid(s, self, "flags"),
			    "{flags,[arity,call,set_on_spawn,send,monotonic_timestamp,timestamp]}");
	assert_true(strncmp(info_pid(s, self, "tracer"), "{tracer,{capture,", 17) == 0);
	tw_trace_process(s, self, true, TW_FLAG_ALL);
	assert_string_equal(
		info_pid(s, self, "flags"),
		"{flags,[running_procs,running_ports,ports,scheduler_id,silent,return_to,arity,"
		"garbage_collection,exiting,running,set_on_first_link,set_on_link,set_on_first_spawn,procs,call,"
		"set_on_spawn,'receive',send,monotonic_timestamp,strict_monotonic_timestamp,timestamp]}");
	tw_trace_process(s, self, false, TW_FLAG_ALL);
	assert_string_equal(info_pid(s, self, "flags"), "{flags,[]}");
	assert_string_equal(info_pid(s, self, "tracer"), "{tracer,[]}");
	close_bed(&bed);
}

static void line_136_137_140_175_a_tracer_that_goes(void **state)
{
	const struct tw_tracer tracer = {.kind = TW_TRACER_QUEUE, .tracer_pid = 0, .ring_bytes = 1 << 16};
	struct tw_term message;
	struct tw_session *s;
	char mine[64];
	tw_pid self = tw_process_self();

	assert_int_equal(tw_session_create("queue", &tracer, &s), 0);
	set_everything(s, self);
	tw_arena_init_fixed(&arena, memory, sizeof memory);
	/* The receiving process is the tracer. */
	tw_queue_receive(s, 0, &arena, &message);
	snprintf(mine, sizeof mine, "{tracer,<0.%llu.0>}", (unsigned long long)self);
	assert_string_equal(info_pid(s, self, "tracer"), mine);
	snprintf(mine, sizeof mine, "{meta,<0.%llu.0>}", (unsigned long long)self);
	assert_string_equal(info(s, "{tro,f1,1}", "meta"), mine);
	assert_int_equal(tw_queue_close(s), 0);
	assert_string_equal(info_pid(s, self, "flags"), "{flags,[]}");
	assert_string_equal(info_pid(s, self, "tracer"), "{tracer,[]}");
	assert_string_equal(info(s, "{tro,f1,1}", "traced"), "{traced,local}");
	assert_string_equal(info(s, "{tro,f1,1}", "meta"), mine);
	tw_call1(&f1, 1);
	assert_string_equal(info(s, "{tro,f1,1}", "meta"), "{meta,[]}");
	assert_string_equal(info(s, "{tro,f1,1}", "meta_match_spec"), "{meta_match_spec,[]}");
	/* Set again, it starts from the beginning. */
	assert_int_equal(tw_trace_function(s, "tro", "f1", 1, TW_MATCH_TRUE, TW_FUNCTION_META), 1);
	assert_string_equal(info(s, "{tro,f1,1}", "meta"), mine);
	assert_true(is_member(s, session_info("all")));
	assert_false(is_member(s, session_info_pid(self)));
	assert_int_equal(tw_session_destroy(s), 1);
	tw_session_put(s);
}

static void a_full_arena_gives_an_error(void **state)
{
	struct tw_session *s;

	assert_int_equal(tw_session_create("full", NULL, &s), 0);
	tw_trace_function(s, "tro", "f1", 1, TW_MATCH_TRUE, TW_FUNCTION_LOCAL);
	for (size_t capacity = 0; capacity < 512; capacity += 16) {
		struct tw_term what = parse("{tro,f1,1}"), out = {12345};
		struct tw_arena small;
		int error;

		tw_arena_init_fixed(&small, memory + sizeof memory / 2, capacity);
		error = tw_trace_info(s, what, tw_term_atom_z("all"), &small, &out);
		assert_true(error == 0 || error == TW_ENOMEM);
		assert_true(error == 0 || out.word == 12345);
		out.word = 12345;
		tw_arena_reset(&small);
		error = tw_session_info(what, &small, &out);
		assert_true(error == 0 || error == TW_ENOMEM);
		assert_true(error == 0 || out.word == 12345);
	}
	tw_session_destroy(s);
	tw_session_put(s);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(line_1_two_sessions_of_one_name),
		cmocka_unit_test(line_2_what_create_refuses),
		cmocka_unit_test(line_9_10_11_12_destroy_once),
		cmocka_unit_test(line_13_every_call_with_a_destroyed_session),
		cmocka_unit_test(line_14_15_16_17_the_last_handle),
		cmocka_unit_test(line_18_19_24_what_destroy_takes_away),
		cmocka_unit_test(line_20_destroy_in_a_traced_loop),
		cmocka_unit_test(line_22_one_destroyer_wins),
		cmocka_unit_test(line_26_to_30_session_info),
		cmocka_unit_test(line_171_172_174_functions),
		cmocka_unit_test(line_40_170_175_176_processes_and_events),
		cmocka_unit_test(line_136_137_140_175_a_tracer_that_goes),
		cmocka_unit_test(a_full_arena_gives_an_error),
	};

	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	assert_int_equal(tw_function_declare(&f1), 0);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
