/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal	Functions of loaded objects are set by name like declared ones: global by their callers' slots, local and
 *	counters by their entry sleds, on_load when an object was opened later.
 * Method	A library with sleds that the test is linked with, and the same as a plugin; calls from outside and
 *	inside it, with their events and counts.
 */
#include "tests/unit/session_bed.h"

#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <unistd.h>

int work_one(int a);
int work_two(int a);

static struct bed bed;
static struct tw_session *s;

static int set(const char *function, enum tw_match match, uint32_t flags)
{
	return tw_trace_function(s, "libnativework", function, TW_ARITY_ANY, match, flags);
}

static const char *info(const char *what, const char *item)
{
	static char text[512];
	char buffer[4096];
	struct tw_arena arena;
	struct tw_term term, out = {0};
	int error;

	tw_arena_init_fixed(&arena, buffer, sizeof buffer);
	assert_int_equal(tw_term_parse(&arena, what, strlen(what), &term, NULL), 0);
	error = tw_trace_info(s, term, tw_term_atom_z(item), &arena, &out);
	if (error)
		return error == TW_EBADARG ? "badarg" : tw_strerror(error);
	tw_term_format(out, TW_PRINT_PRETTY, text, sizeof text);
	return text;
}

static int open_session(void **state)
{
	open_bed(&bed, "native");
	s = bed.session;
	return tw_trace_process(s, TW_PID_ALL, true, TW_FLAG_CALL) < 0;
}

static int close_session(void **state)
{
	close_bed(&bed);
	assert_int_equal(work_two(1), 7);
	return 0;
}

/* Events of a call from outside, which calls another function of the library. */
static unsigned events(void)
{
	assert_int_equal(work_two(1), 7);
	return count_events(&bed);
}

static void global_by_slots(void **state)
{
	assert_int_equal(set("work_one", TW_MATCH_TRUE, 0), 1);
	/* Not the call that its own library makes. */
	count_events(&bed);
	assert_int_equal(events(), 0);
	assert_int_equal(work_one(1), 4);
	assert_true(count_events(&bed) >= 1);
	assert_string_equal(info("{libnativework,work_one,'_'}", "traced"), "{traced,global}");
	/* These have no caller with a slot. */
	assert_int_equal(set("hidden", TW_MATCH_TRUE, 0), 0);
	assert_int_equal(set("work_alone", TW_MATCH_TRUE, 0), 0);
	assert_int_equal(set("_", TW_MATCH_TRUE, TW_FUNCTION_GLOBAL), 2);
	assert_int_equal(events(), 1);
	assert_int_equal(set("_", TW_MATCH_FALSE, TW_FUNCTION_LOCAL), 4);
	assert_int_equal(events(), 1);
	assert_int_equal(set("_", TW_MATCH_FALSE, 0), 2);
	assert_int_equal(events(), 0);
	assert_string_equal(info("{libnativework,work_one,'_'}", "all"), "{all,false}");
}

static void local_by_sleds(void **state)
{
	uint64_t count = 0;

	assert_int_equal(set("_", TW_MATCH_TRUE, TW_FUNCTION_LOCAL | TW_FUNCTION_CALL_COUNT), 4);
	events();
	/* work_two, work_one and hidden */
	assert_int_equal(events(), 3);
	assert_string_equal(info("{libnativework,hidden,'_'}", "call_count"), "{call_count,2}");
	assert_int_equal(tw_trace_call_count(s, "libnativework", "hidden", TW_ARITY_ANY, &count), 1);
	assert_int_equal(count, 2);
	assert_int_equal(tw_trace_call_count(s, "libnativework", "hidden", 1, &count), TW_EBADARG);
	assert_int_equal(tw_trace_call_count(s, "libnativework", "nothing", TW_ARITY_ANY, &count), TW_EBADARG);
	assert_string_equal(info("{libnativework,hidden,'_'}", "traced"), "{traced,local}");
	assert_int_equal(tw_trace_function(s, "libnativework.so", "hidden", TW_ARITY_ANY, TW_MATCH_PAUSE,
					   TW_FUNCTION_CALL_COUNT),
			 1);
	events();
	assert_string_equal(info("{libnativework,hidden,'_'}", "call_count"), "{call_count,2}");
	/* Global ends local on the same function, and the other way round. */
	assert_int_equal(set("work_one", TW_MATCH_TRUE, 0), 1);
	assert_string_equal(info("{libnativework,work_one,'_'}", "all"),
			    "{all,[{traced,global},{match_spec,[]},{meta,false},{meta_match_spec,false},"
			    "{call_memory,false},{call_time,false},{call_count,false}]}");
	assert_int_equal(events(), 2);
	assert_int_equal(set("work_one", TW_MATCH_TRUE, TW_FUNCTION_LOCAL), 1);
	assert_string_equal(info("{libnativework,work_one,'_'}", "traced"), "{traced,local}");
	assert_int_equal(events(), 3);
}

static void missing_objects(void **state)
{
	assert_int_equal(tw_trace_function(s, "libnothing", "_", TW_ARITY_ANY, TW_MATCH_TRUE, 0), 0);
	assert_int_equal(set("nothing", TW_MATCH_TRUE, TW_FUNCTION_LOCAL), 0);
	assert_int_equal(tw_trace_function(s, "libnativework", "work_one", 1, TW_MATCH_TRUE, TW_FUNCTION_LOCAL), 0);
	assert_string_equal(info("{libnativework,nothing,'_'}", "traced"), "badarg");
	assert_string_equal(info("{libnativework,work_one,1}", "traced"), "{traced,undefined}");
	assert_int_equal(tw_module_load(NULL), TW_EBADARG);
	assert_int_equal(tw_module_load("libnothing"), 0);
	assert_int_equal(tw_trace_begin(), 0);
	assert_int_equal(tw_module_load("libnativework"), TW_EDEADLK);
	assert_int_equal(set("work_two", TW_MATCH_TRUE, TW_FUNCTION_LOCAL), 1);
	assert_int_equal(tw_trace_function(s, "libnothing", "_", TW_ARITY_ANY, TW_MATCH_TRUE, 0), 0);
	assert_int_equal(events(), 0);
	assert_int_equal(tw_trace_commit(), 1);
	assert_int_equal(events(), 1);
}

static void an_object_opened_later(void **state)
{
	int (*one)(int), (*two)(int);
	void *handle;

	assert_int_equal(tw_trace_on_load(s, TW_MATCH_TRUE, NULL, TW_FUNCTION_LOCAL), 0);
	handle = dlopen(PLUGIN, RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
	assert_non_null(handle);
	two = (int (*)(int))dlsym(handle, "work_two");
	one = (int (*)(int))dlsym(handle, "work_one");
	assert_int_equal(two(1), 7);
	assert_int_equal(count_events(&bed), 0);
	assert_int_equal(tw_module_load("libnativeplugin"), 1);
	assert_string_equal(info("{libnativeplugin,work_one,'_'}", "traced"), "{traced,local}");
	assert_int_equal(two(1), 7);
	count_events(&bed);
	assert_int_equal(two(1), 7);
	assert_int_equal(count_events(&bed), 3);
	/* Known already: later settings stay. */
	tw_trace_function(s, "libnativeplugin", "work_one", TW_ARITY_ANY, TW_MATCH_FALSE, TW_FUNCTION_LOCAL);
	assert_int_equal(tw_module_load("libnativeplugin"), 1);
	assert_int_equal(two(1), 7);
	assert_int_equal(count_events(&bed), 2);
	/* It stays loaded, so its places may be written. */
	dlclose(handle);
	assert_int_equal(one(1), 4);
	assert_int_equal(tw_trace_function(s, "libnativeplugin", "_", TW_ARITY_ANY, TW_MATCH_TRUE, TW_FUNCTION_LOCAL),
			 4);
	count_events(&bed);
	assert_int_equal(one(1), 4);
	assert_int_equal(count_events(&bed), 2);
}

static _Atomic bool must_end;

static void *idle(void *unused)
{
	while (!must_end)
		usleep(1000);
	return NULL;
}

/* gcc's NOPs are several instructions: another thread may be between them, or return there from a handler. */
static void sleds_are_left_alone_beside_other_threads(void **state)
{
	void *handle = dlopen(LATE, RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
	int (*two)(int);
	pthread_t thread;

	assert_non_null(handle);
	two = (int (*)(int))dlsym(handle, "work_two");
	must_end = false;
	assert_int_equal(pthread_create(&thread, NULL, idle, NULL), 0);
	assert_int_equal(tw_trace_function(s, "libnativelate", "_", TW_ARITY_ANY, TW_MATCH_TRUE, TW_FUNCTION_LOCAL), 4);
	assert_string_equal(info("{libnativelate,work_two,'_'}", "traced"), "{traced,false}");
	assert_int_equal(two(1), 7);
	assert_int_equal(count_events(&bed), 0);
	must_end = true;
	pthread_join(thread, NULL);
	assert_int_equal(tw_trace_function(s, "libnativelate", "_", TW_ARITY_ANY, TW_MATCH_TRUE, TW_FUNCTION_LOCAL), 4);
	assert_int_equal(two(1), 7);
	assert_int_equal(count_events(&bed), 3);
}

/* Sets a specification that selects the calls for which `condition` is true. */
static void only_if(const char *function, const char *test, struct tw_match_program **program)
{
	struct tw_match_error error;
	char text[256];

	snprintf(text, sizeof text, "[{'_',[],[{message,%s}]}]", test);
	assert_int_equal(tw_match_compile_text(text, strlen(text), NULL, program, &error), 0);
	assert_int_equal(tw_trace_function_match(s, "libnativework", function, TW_ARITY_ANY, *program,
						 TW_FUNCTION_LOCAL),
			 1);
}

static void callers_are_functions_that_are_known(void **state)
{
	struct tw_match_program *programs[4];

	only_if("hidden", "{'=:=',{caller},{const,{libnativework,work_one,'_'}}}", &programs[0]);
	count_events(&bed);
	assert_int_equal(events(), 1);
	only_if("work_one", "{'=:=',{element,2,{caller_line}},{const,work_two}}", &programs[1]);
	assert_int_equal(events(), 2);
	/* Counters beside it change nothing. */
	assert_int_equal(set("work_one", TW_MATCH_TRUE, TW_FUNCTION_CALL_TIME), 1);
	assert_int_equal(events(), 2);
	/* The test itself has no sleds, but its object was named: the offset in it. */
	only_if("work_two", "{is_binary,{element,2,{caller}}}", &programs[2]);
	assert_int_equal(events(), 3);
	assert_int_equal(work_one(1), 4);
	assert_int_equal(count_events(&bed), 1);
	only_if("work_two", "{'=:=',{current_stacktrace},[]}", &programs[3]);
	assert_int_equal(events(), 3);
	set("_", TW_MATCH_FALSE, TW_FUNCTION_LOCAL | TW_FUNCTION_CALL_TIME);
	for (int i = 0; i < 4; i++)
		tw_match_destroy(programs[i]);
}

static void *call_twice(void *unused)
{
	for (int i = 0; i < 2; i++)
		if (work_two(1) != 7)
			return s;
	return NULL;
}

/* This program contains the library, so the library's calls of libc pass traced slots. */
static void our_own_calls_are_no_first_hits(void **state)
{
	pthread_t thread;
	void *result;

	assert_true(tw_trace_function(s, "libc", "__errno_location", TW_ARITY_ANY, TW_MATCH_TRUE, 0) >= 1);
	assert_int_equal(set("_", TW_MATCH_TRUE, 0), 2);
	assert_int_equal(pthread_create(&thread, NULL, call_twice, NULL), 0);
	pthread_join(thread, &result);
	assert_null(result);
	assert_true(count_events(&bed) >= 1);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(global_by_slots, open_session, close_session),
		cmocka_unit_test_setup_teardown(local_by_sleds, open_session, close_session),
		cmocka_unit_test_setup_teardown(callers_are_functions_that_are_known, open_session, close_session),
		cmocka_unit_test_setup_teardown(missing_objects, open_session, close_session),
		cmocka_unit_test_setup_teardown(sleds_are_left_alone_beside_other_threads, open_session, close_session),
		cmocka_unit_test_setup_teardown(our_own_calls_are_no_first_hits, open_session, close_session),
		cmocka_unit_test_setup_teardown(an_object_opened_later, open_session, close_session),
	};

	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
