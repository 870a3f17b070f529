/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal	A tracer module is called as OTP's erl_tracer documents it.
 * Method	Processes that this thread runs, and a module that logs each callback; every case with one session and
 *		with two, whose logs must be equal.  The numbers in the names are those of docs/semantics.md.
 */
#include "session_ears.h"

ENABLED(enabled_call)
TRACE(trace_call)
ENABLED(enabled_garbage_collection)
TRACE(trace_garbage_collection)
ENABLED(enabled_procs)
TRACE(trace_procs)
ENABLED(enabled_receive)
TRACE(trace_receive)
ENABLED(enabled_running_procs)
TRACE(trace_running_procs)
ENABLED(enabled_send)
TRACE(trace_send)
ENABLED(enabled_ports)
TRACE(trace_ports)

/* ---- cases ---- */

static void line_3_213_without_the_mandatory_callbacks(void **state)
{
	static const struct tw_tracer_module bad[] = {
		{.bytes = sizeof general, .name = "m", .enabled = enabled},
		{.bytes = sizeof general, .name = "m", .trace = trace},
		{.bytes = sizeof general, .enabled = enabled, .trace = trace},
		{.bytes = 8, .name = "m", .enabled = enabled, .trace = trace},
		{.bytes = sizeof general, .reserved = 1, .name = "m", .enabled = enabled, .trace = trace},
		{.bytes = sizeof general, .name = "\xff", .enabled = enabled, .trace = trace},
	};
	struct tw_tracer tracer = {.kind = TW_TRACER_MODULE};
	struct tw_session *session = NULL;

	assert_int_equal(tw_session_create("m", &tracer, &session), TW_EBADARG);
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		tracer.module = &bad[i];
		assert_int_equal(tw_session_create("m", &tracer, &session), TW_EBADARG);
	}
	tracer.module = NULL;
	tracer.module_path = "/nowhere/tracer.so";
	assert_int_equal(tw_session_create("m", &tracer, &session), TW_ENOENT);
	tracer.module_path = "libm.so.6";
	assert_int_equal(tw_session_create("m", &tracer, &session), TW_EBADARG);
	assert_null(session);
}

static void line_6_225_is_loaded_and_stays(void **state)
{
	struct tw_tracer tracer = {.kind = TW_TRACER_MODULE, .module_path = TEST_MODULE};
	void *object;

	for (unsigned i = 0; i < session_count; i++) {
		assert_int_equal(tw_session_create("loaded", &tracer, &sessions[i]), 0);
		assert_int_equal(tw_trace_process(sessions[i], tw_process_pid(p), true, TW_FLAG_SEND), 1);
		assert_int_equal(flags_of(i, tw_process_pid(p)), TW_FLAG_SEND);
	}
	close_sessions();
	object = dlopen(TEST_MODULE, RTLD_LAZY | RTLD_NOLOAD);
	assert_non_null(object);
	dlclose(object);
}

static void line_214_a_call_is_asked_for_twice(void **state)
{
	static const struct tw_tracer_module with_pair = {MANDATORY, .enabled_call = enabled_call,
							  .trace_call = trace_call};

	hear_calls(&general);
	ears[0].is_quiet = ears[1].is_quiet = false;
	tw_process_in(p);
	forget();
	tw_call1(&step, 7);
	expect("enabled trace_status;enabled call;trace call {vm,step,[7]};");
	tw_process_out();
	close_sessions();
	hear_calls(&with_pair);
	ears[0].is_quiet = ears[1].is_quiet = false;
	tw_process_in(p);
	forget();
	tw_call1(&step, 7);
	expect("enabled trace_status;enabled_call call;trace_call call {vm,step,[7]};");
	tw_process_out();
	close_sessions();
}

static void make_each_kind(void)
{
	static const struct tw_gc_sizes sizes = {.heap_size = 1};
	struct tw_process *other;
	struct tw_arena arena;
	char buffer[256];

	tw_process_create("other", &other);
	tw_arena_init_fixed(&arena, buffer, sizeof buffer);
	tw_process_in(p);
	tw_call1(&step, 7);
	tw_process_gc(p, TW_GC_MINOR_START, &sizes);
	tw_process_link(p, other);
	tw_process_receive(p, tw_term_atom_z("hello"), tw_process_term(&arena, other));
	tw_process_send(p, tw_term_atom_z("answer"), tw_process_term(&arena, other));
	tw_process_out();
	tw_process_exit(other);
}

static void line_215_each_callback_falls_back_by_itself(void **state)
{
	static const struct tw_tracer_module halves[2] = {
		{MANDATORY, .enabled_call = enabled_call, .trace_garbage_collection = trace_garbage_collection,
		 .enabled_procs = enabled_procs, .trace_receive = trace_receive,
		 .enabled_running_procs = enabled_running_procs, .trace_send = trace_send,
		 .enabled_ports = enabled_ports},
		{MANDATORY, .trace_call = trace_call, .enabled_garbage_collection = enabled_garbage_collection,
		 .trace_procs = trace_procs, .enabled_receive = enabled_receive,
		 .trace_running_procs = trace_running_procs, .enabled_send = enabled_send, .trace_ports = trace_ports},
	};
	static const char *const heard[2] = {
		"enabled_running_procs in;trace in 0;enabled_call call;trace call {vm,step,[7]};"
		"enabled gc_minor_start;trace_garbage_collection gc_minor_start [{heap_size,1},{heap_block_size,0},"
		"{old_heap_size,0},{old_heap_block_size,0},{stack_size,0},{recent_size,0},{mbuf_size,0},"
		"{bin_vheap_size,0},{bin_vheap_block_size,0},{bin_old_vheap_size,0},{bin_old_vheap_block_size,0},{wordsize,0}];"
		"enabled_procs link;trace link <>;enabled receive;trace_receive receive hello;"
		"enabled send;trace_send send answer;enabled_running_procs out;trace out 0;",
		"enabled in;trace_running_procs in 0;enabled call;trace_call call {vm,step,[7]};"
		"enabled_garbage_collection gc_minor_start;trace gc_minor_start [{heap_size,1},{heap_block_size,0},"
		"{old_heap_size,0},{old_heap_block_size,0},{stack_size,0},{recent_size,0},{mbuf_size,0},"
		"{bin_vheap_size,0},{bin_vheap_block_size,0},{bin_old_vheap_size,0},{bin_old_vheap_block_size,0},{wordsize,0}];"
		"enabled link;trace_procs link <>;enabled_receive receive;trace receive hello;"
		"enabled_send send;trace send answer;enabled out;trace_running_procs out 0;",
	};

	for (unsigned half = 0; half < 2; half++) {
		const struct tw_hit_module *module;

		hear_calls(&halves[half]);
		set_flags(tw_process_pid(p), TW_FLAG_GARBAGE_COLLECTION | TW_FLAG_PROCS | TW_FLAG_RECEIVE |
						     TW_FLAG_SEND | TW_FLAG_RUNNING);
		module = &sessions[0]->module->hit;
		assert_ptr_equal(module->pairs[TW_MODULE_PORTS].enabled, half ? enabled : enabled_ports);
		assert_ptr_equal(module->pairs[TW_MODULE_PORTS].trace, half ? trace_ports : trace);
		make_each_kind();
		for (unsigned i = 0; i < session_count; i++) {
			char *pid = strstr(ears[i].text, "<0."), *end;

			assert_non_null(pid);
			end = strchr(pid, '>');
			assert_non_null(end);
			memmove(pid + 1, end, strlen(end) + 1);
		}
		expect(heard[half]);
		close_sessions();
	}
}

static void line_215_each_callback_alone(void **state)
{
	for (unsigned pair = TW_MODULE_CALL; pair < TW_MODULE_PAIRS; pair++) {
		for (unsigned is_trace = 0; is_trace < 2; is_trace++) {
			struct tw_tracer_module alone = {MANDATORY};
			tw_tracer_enabled_fn **asks = &alone.enabled_call + 2 * (pair - TW_MODULE_CALL);
			const struct tw_hit_module *module;

			if (is_trace)
				*(tw_tracer_trace_fn **)(asks + 1) = trace_call;
			else
				*asks = enabled_call;
			open_sessions(&alone);
			module = &sessions[session_count - 1]->module->hit;
			for (unsigned i = 0; i < TW_MODULE_PAIRS; i++) {
				bool is_alone = i == pair;

				assert_ptr_equal(module->pairs[i].enabled,
						 is_alone && !is_trace ? enabled_call : enabled);
				assert_ptr_equal(module->pairs[i].trace, is_alone && is_trace ? trace_call : trace);
			}
			close_sessions();
		}
	}
}

/* Ports have their own callbacks for life, links and schedules; the tracee is the port. */
static void line_215_226_ports(void **state)
{
	static const struct tw_tracer_module with_pairs = {MANDATORY, .enabled_ports = enabled_ports,
							   .trace_ports = trace_ports,
							   .enabled_running_ports = enabled_running_procs,
							   .trace_running_ports = trace_running_procs};
	static const struct tw_port_options options = {.driver = "pipe"};
	uint32_t flags;
	tw_port port;

	open_sessions(&with_pairs);
	for (unsigned i = 0; i < session_count; i++)
		assert_int_equal(tw_trace_port(sessions[i], TW_PORT_NEW, true,
					       TW_FLAG_PORTS | TW_FLAG_RUNNING_PORTS | TW_FLAG_SEND | TW_FLAG_RECEIVE),
				 0);
	be_quiet();
	forget();
	assert_int_equal(tw_port_open(&options, &port), 0);
	for (unsigned i = 0; i < session_count; i++)
		assert_int_equal(ears[i].tracee_type, TW_TYPE_PORT);
	tw_port_in(port, TW_PORT_COMMAND);
	tw_port_out(port, TW_PORT_COMMAND);
	assert_int_equal(tw_port_close(port, (struct tw_term){0}), 0);
	expect("enabled_ports open;trace_ports open undefined;enabled_running_procs in;trace_running_procs in command;"
	       "enabled_running_procs out;trace_running_procs out command;enabled_ports closed;trace_ports closed normal;");
	/* A port has no thread of its own: `remove` takes effect at once. */
	assert_int_equal(tw_port_open(&options, &port), 0);
	set_answer(TW_TRACER_TAG_IN, TW_TRACER_REMOVE);
	tw_port_in(port, TW_PORT_COMMAND);
	tw_port_out(port, TW_PORT_COMMAND);
	for (unsigned i = 0; i < session_count; i++) {
		assert_int_equal(tw_trace_port_flags(sessions[i], port, &flags), 0);
		assert_int_equal(flags, 0);
	}
	tw_port_close(port, (struct tw_term){0});
	close_sessions();
}

static void line_216_a_status_is_remove_or_anything_else(void **state)
{
	hear_calls(&general);
	set_answer(TW_TRACER_TAG_STATUS, TW_TRACER_DISCARD);
	call_step();
	expect("enabled call;trace call {vm,step,[7]};");
	set_answer(TW_TRACER_TAG_STATUS, 99);
	call_step();
	expect("enabled call;trace call {vm,step,[7]};");
	set_answer(TW_TRACER_TAG_STATUS, TW_TRACER_REMOVE);
	call_step();
	expect("");
	for (unsigned i = 0; i < session_count; i++) {
		assert_int_equal(flags_of(i, tw_process_pid(p)), 0);
		assert_int_equal(stats_of(i).removed, 1);
	}
	close_sessions();
}

/* The tracer goes while the process runs: its next call finds out. */
static void line_214_216_a_status_before_each_call(void **state)
{
	hear_calls(&general);
	tw_process_in(p);
	tw_call1(&step, 7);
	set_answer(TW_TRACER_TAG_STATUS, TW_TRACER_REMOVE);
	forget();
	tw_call1(&step, 7);
	for (unsigned i = 0; i < session_count; i++)
		assert_int_equal(stats_of(i).removed, 1);
	set_answer(TW_TRACER_TAG_STATUS, TW_TRACER_TRACE);
	tw_call1(&step, 7);
	expect("");
	for (unsigned i = 0; i < session_count; i++)
		assert_int_equal(flags_of(i, tw_process_pid(p)), 0);
	tw_process_out();
	close_sessions();
}

static void line_217_discard_and_what_is_no_answer(void **state)
{
	hear_calls(&general);
	set_answer(TW_TRACER_TAG_CALL, TW_TRACER_DISCARD);
	call_step();
	expect("enabled call;");
	set_answer(TW_TRACER_TAG_CALL, 99);
	call_step();
	set_answer(TW_TRACER_TAG_CALL, -1);
	call_step();
	expect("enabled call;enabled call;");
	for (unsigned i = 0; i < session_count; i++)
		assert_int_equal(stats_of(i).wrong_answer, 2);
	/* REMOVE as the answer for an event has the same meaning. */
	set_answer(TW_TRACER_TAG_CALL, TW_TRACER_REMOVE);
	call_step();
	expect("enabled call;");
	call_step();
	expect("");
	close_sessions();
}

/* Another process' thread reports the event: it is not made, and the next one asks again. */
static void line_218_only_the_process_itself_removes(void **state)
{
	struct tw_process *other;

	tw_process_create("other", &other);
	open_sessions(&general);
	set_flags(tw_process_pid(p), TW_FLAG_RECEIVE);
	be_quiet();
	forget();
	set_answer(TW_TRACER_TAG_RECEIVE, TW_TRACER_REMOVE);
	tw_process_in(other);
	tw_process_receive(p, tw_term_atom_z("a"), (struct tw_term){0});
	tw_process_receive(p, tw_term_atom_z("b"), (struct tw_term){0});
	tw_process_out();
	expect("enabled receive;enabled receive;");
	for (unsigned i = 0; i < session_count; i++)
		assert_int_equal(flags_of(i, tw_process_pid(p)), TW_FLAG_RECEIVE);
	tw_process_in(p);
	tw_process_receive(p, tw_term_atom_z("c"), (struct tw_term){0});
	tw_process_out();
	for (unsigned i = 0; i < session_count; i++)
		assert_int_equal(flags_of(i, tw_process_pid(p)), 0);
	close_sessions();
	tw_process_exit(other);
}

static void line_219_the_status_is_asked_when_flags_are_seen(void **state)
{
	open_sessions(&general);
	set_flags(tw_process_pid(p), TW_FLAG_SEND);
	expect("enabled trace_status;");
	assert_int_equal(flags_of(0, tw_process_pid(p)), TW_FLAG_SEND);
	if (session_count > 1)
		flags_of(1, tw_process_pid(p));
	expect("enabled trace_status;");
	tw_process_in(p);
	expect("enabled trace_status;");
	tw_process_out();
	set_answer(TW_TRACER_TAG_STATUS, TW_TRACER_REMOVE);
	for (unsigned i = 0; i < session_count; i++)
		assert_int_equal(flags_of(i, tw_process_pid(p)), 0);
	set_answer(TW_TRACER_TAG_STATUS, TW_TRACER_TRACE);
	set_flags(tw_process_pid(p), TW_FLAG_SEND);
	set_answer(TW_TRACER_TAG_STATUS, TW_TRACER_REMOVE);
	tw_process_in(p);
	tw_process_out();
	set_answer(TW_TRACER_TAG_STATUS, TW_TRACER_TRACE);
	for (unsigned i = 0; i < session_count; i++)
		assert_int_equal(flags_of(i, tw_process_pid(p)), 0);
	/* Those of new processes. */
	for (unsigned i = 0; i < session_count; i++)
		assert_int_equal(tw_trace_process(sessions[i], TW_PID_NEW, true, TW_FLAG_SEND), 0);
	set_answer(TW_TRACER_TAG_STATUS, TW_TRACER_REMOVE);
	for (unsigned i = 0; i < session_count; i++)
		assert_int_equal(flags_of(i, TW_PID_NEW), 0);
	close_sessions();
}

static void line_220_flags_that_do_not_stick(void **state)
{
	open_sessions(&general);
	set_answer(TW_TRACER_TAG_STATUS, TW_TRACER_REMOVE);
	set_flags(tw_process_pid(p), TW_FLAG_SEND);
	for (unsigned i = 0; i < session_count; i++) {
		assert_true(tw_trace_process(sessions[i], TW_PID_EXISTING, true, TW_FLAG_CALL) >= 1);
		assert_int_equal(flags_of(i, tw_process_pid(p)), 0);
		assert_int_equal(flags_of(i, tw_process_self()), 0);
	}
	close_sessions();
}

static void line_221_the_state_is_what_it_was(void **state)
{
	struct tw_term answer;
	struct tw_arena arena;
	char buffer[1024], text[256];

	open_sessions(&general);
	set_flags(tw_process_pid(p), TW_FLAG_SEND);
	for (unsigned i = 0; i < session_count; i++) {
		tw_arena_init_fixed(&arena, buffer, sizeof buffer);
		assert_int_equal(tw_trace_info(sessions[i], tw_process_term(&arena, p), tw_term_atom_z("tracer"),
					       &arena, &answer),
				 0);
		tw_term_format(answer, TW_PRINT_WRITE, text, sizeof text);
		assert_string_equal(text, i ? "{tracer,{ear,{state,1}}}" : "{tracer,{ear,{state,0}}}");
	}
	close_sessions();
}

static void line_50_222_options_only_where_they_apply(void **state)
{
	static const struct {
		uint32_t flag;
		enum tw_tracer_stamp stamp;
	} stamps[] = {{0, TW_TRACER_STAMP_NONE},
		      {TW_FLAG_MONOTONIC_TIMESTAMP, TW_TRACER_STAMP_MONOTONIC},
		      {TW_FLAG_STRICT_MONOTONIC_TIMESTAMP, TW_TRACER_STAMP_STRICT_MONOTONIC},
		      {TW_FLAG_TIMESTAMP, TW_TRACER_STAMP_TIMESTAMP}};
	int64_t number = tw_unique_integer_monotonic(), value;

	hear_calls(&general);
	/* Each takes precedence over those before it. */
	for (size_t i = 0; i < sizeof stamps / sizeof *stamps; i++) {
		set_flags(tw_process_pid(p), stamps[i].flag);
		call_step();
		for (unsigned s = 0; s < session_count; s++) {
			assert_int_equal(ears[s].options.timestamp, stamps[i].stamp);
			assert_int_equal(ears[s].options.scheduler_id, 0);
			assert_true(tw_term_is_none(ears[s].options.extra));
			assert_true(tw_term_is_none(ears[s].options.match_spec_result));
		}
	}
	/* The module makes the stamps itself: the library took no number for one. */
	assert_int_equal(tw_unique_integer_monotonic(), number + 1);
	set_flags(tw_process_pid(p), TW_FLAG_SCHEDULER_ID);
	set_function("[{'_',[],[{message,5},{return_trace}]}]", TW_FUNCTION_LOCAL);
	tw_process_in(p);
	{
		struct tw_frame frame;

		tw_enter1(&step, &frame, 7);
		for (unsigned s = 0; s < session_count; s++) {
			assert_int_not_equal(ears[s].options.scheduler_id, 0);
			assert_int_equal(tw_term_get_int64(ears[s].options.match_spec_result, &value), 0);
			assert_int_equal(value, 5);
			assert_true(tw_term_is_none(ears[s].options.extra));
		}
		forget();
		tw_leave(&frame, 9);
	}
	tw_process_out();
	for (unsigned s = 0; s < session_count; s++) {
		assert_int_equal(tw_term_get_int64(ears[s].options.extra, &value), 0);
		assert_int_equal(value, 9);
		assert_true(tw_term_is_none(ears[s].options.match_spec_result));
	}
	expect("enabled return_from;trace return_from {vm,step,1};");
	close_sessions();
}

static void line_223_enabled_comes_before_the_match_specification(void **state)
{
	hear_calls(&general);
	set_function("[{'_',[],[{silent,true}]}]", TW_FUNCTION_LOCAL);
	set_answer(TW_TRACER_TAG_CALL, TW_TRACER_DISCARD);
	call_step();
	for (unsigned i = 0; i < session_count; i++)
		assert_int_equal(flags_of(i, tw_process_pid(p)), TW_FLAG_CALL);
	set_answer(TW_TRACER_TAG_CALL, TW_TRACER_TRACE);
	forget();
	call_step();
	expect("enabled call;");
	for (unsigned i = 0; i < session_count; i++)
		assert_int_equal(flags_of(i, tw_process_pid(p)), TW_FLAG_CALL | TW_FLAG_SILENT);
	close_sessions();
}

static void *send_to_p(void *arg)
{
	tw_process_in(arg);
	tw_process_receive(p, tw_term_atom_z("hello"), (struct tw_term){0});
	tw_process_out();
	return NULL;
}

static void line_226_on_the_thread_that_makes_the_event(void **state)
{
	struct tw_process *other;
	pthread_t thread;

	tw_process_create("other", &other);
	hear_calls(&general);
	set_flags(tw_process_pid(p), TW_FLAG_RECEIVE);
	call_step();
	for (unsigned i = 0; i < session_count; i++)
		assert_true(pthread_equal(ears[i].thread, pthread_self()));
	pthread_create(&thread, NULL, send_to_p, other);
	pthread_join(thread, NULL);
	for (unsigned i = 0; i < session_count; i++)
		assert_true(pthread_equal(ears[i].thread, thread));
	close_sessions();
	tw_process_exit(other);
}

/* OTP's defect of calling trace_call/5 in place of enabled/3 is not copied. */
static void line_227_meta_of_a_module_with_trace_call(void **state)
{
	static const struct tw_tracer_module with_pair = {MANDATORY, .trace_call = trace_call};
	struct tw_term what, answer;
	struct tw_arena arena;
	char buffer[512], text[64];

	open_sessions(&with_pair);
	set_function(NULL, TW_FUNCTION_META);
	be_quiet();
	call_step();
	for (unsigned i = 0; i < session_count; i++)
		assert_int_equal(ears[i].options.timestamp, TW_TRACER_STAMP_TIMESTAMP);
	expect("enabled call;trace_call call {vm,step,[7]};");
	/* 140, 173: shown until a call has found it dead. */
	tw_arena_init_fixed(&arena, buffer, sizeof buffer);
	assert_int_equal(tw_term_parse(&arena, "{vm,step,1}", 11, &what, NULL), 0);
	assert_int_equal(tw_trace_info(sessions[0], what, tw_term_atom_z("meta"), &arena, &answer), 0);
	tw_term_format(answer, TW_PRINT_WRITE, text, sizeof text);
	assert_string_equal(text, "{meta,{ear,{state,0}}}");
	set_answer(TW_TRACER_TAG_STATUS, TW_TRACER_REMOVE);
	call_step();
	expect("");
	assert_int_equal(tw_trace_info(sessions[0], what, tw_term_atom_z("meta"), &arena, &answer), 0);
	tw_term_format(answer, TW_PRINT_WRITE, text, sizeof text);
	assert_string_equal(text, "{meta,[]}");
	close_sessions();
}

static void line_228_the_tag_of_sequential_tracing(void **state)
{
	assert_string_equal(tw_tracer_tag_name(TW_TRACER_TAG_SEQ_TRACE), "seq_trace");
	assert_string_equal(tw_tracer_tag_name(TW_TRACER_TAG_STATUS), "trace_status");
	assert_null(tw_tracer_tag_name((enum tw_tracer_tag)7));
	assert_null(tw_tracer_tag_name((enum tw_tracer_tag)1000));
}

/* A module whose own process is traced is called for it: only the module can exclude it. */
static void line_229_the_tracers_own_activity(void **state)
{
	hear_calls(&general);
	set_flags(tw_process_self(), TW_FLAG_CALL);
	forget();
	tw_call1(&step, 8);
	expect("enabled call;trace call {vm,step,[8]};");
	close_sessions();
}

static void line_223_a_silent_process(void **state)
{
	hear_calls(&general);
	set_flags(tw_process_pid(p), TW_FLAG_SILENT);
	forget();
	call_step();
	expect("enabled call;");
	close_sessions();
}

static void line_223_calls_that_another_session_counts(void **state)
{
	struct tw_session *counter;
	uint64_t count;

	assert_int_equal(tw_session_create("counter", NULL, &counter), 0);
	assert_int_equal(tw_trace_function(counter, "vm", "step", 1, TW_MATCH_TRUE, TW_FUNCTION_CALL_COUNT), 1);
	hear_calls(&general);
	call_step();
	expect("enabled call;trace call {vm,step,[7]};");
	assert_int_equal(tw_trace_call_count(counter, "vm", "step", 1, &count), 1);
	assert_int_equal(count, 1);
	close_sessions();
	tw_session_destroy(counter);
	tw_session_put(counter);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		BOTH(line_3_213_without_the_mandatory_callbacks),
		BOTH(line_6_225_is_loaded_and_stays),
		BOTH(line_214_a_call_is_asked_for_twice),
		BOTH(line_215_each_callback_falls_back_by_itself),
		BOTH(line_215_each_callback_alone),
		BOTH(line_215_226_ports),
		BOTH(line_216_a_status_is_remove_or_anything_else),
		BOTH(line_214_216_a_status_before_each_call),
		BOTH(line_217_discard_and_what_is_no_answer),
		BOTH(line_218_only_the_process_itself_removes),
		BOTH(line_219_the_status_is_asked_when_flags_are_seen),
		BOTH(line_220_flags_that_do_not_stick),
		BOTH(line_221_the_state_is_what_it_was),
		BOTH(line_50_222_options_only_where_they_apply),
		BOTH(line_223_enabled_comes_before_the_match_specification),
		BOTH(line_223_a_silent_process),
		BOTH(line_223_calls_that_another_session_counts),
		BOTH(line_226_on_the_thread_that_makes_the_event),
		BOTH(line_227_meta_of_a_module_with_trace_call),
		BOTH(line_228_the_tag_of_sequential_tracing),
		BOTH(line_229_the_tracers_own_activity),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
