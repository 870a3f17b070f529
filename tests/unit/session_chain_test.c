/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal	117, 123, 132: a chain of tail calls gives each of its calls its end however long it is, last first, and to each
 *	session what it would have alone.  Its memory belongs to the process: other processes have their own, and it is
 *	freed with the frame and with the process. return_to alone needs none.  Ends that find no memory are counted.
 * Method	Chains of a million calls over rings that have space for all of their ends, read back one by one; blocks
 *	are counted.  Random calls, tail calls, returns and exceptions under random settings of two sessions, against a
 *	model of what one session sees.
 */
#include "pipeline/hit/process_memory.h"
#include "tests/unit/sanitized_help.h"
#include "tests/unit/session_bed.h"
#include "tracewheel/match.h"
#include "tracewheel/runtime.h"
#include "tests/common/random.h"

enum { F, G, H, FUNCTIONS };

/* A multiple of eight: a quarter of the calls is an even number. */
#define CALLS ((int)test_rounds(1000000, 8) / 8 * 8)

static struct tw_declared_function functions[FUNCTIONS] = {
	TW_DECLARED_FUNCTION("m", "f", 0),
	TW_DECLARED_FUNCTION("m", "g", 0),
	TW_DECLARED_FUNCTION("m", "h", 0),
};

/* Calls themselves are left out of the rings. */
#define RETURNS	   "[{'_',[],[{message,false},{return_trace}]}]"
#define EXCEPTIONS "[{'_',[],[{message,false},{exception_trace}]}]"

static struct tw_match_program *returns, *exceptions;
/* How many blocks a process may have spare. */
enum { SPARE = 80 };

static void open_wide(struct bed *bed, const char *name)
{
	struct tw_rs_options options = {.ring_bytes = 1 << 25, .cap_bytes = 1 << 27, .has_fixed_rings = true};

	open_bed_with(bed, name, &options);
}

/* Two sessions that trace the process' calls. */
static void open_two(struct bed *a, struct bed *b, const struct tw_process *process)
{
	open_wide(a, "a");
	open_wide(b, "b");
	trace_in(a, process, TW_FLAG_CALL);
	trace_in(b, process, TW_FLAG_CALL);
}

static void set(struct bed *bed, int function, const struct tw_match_program *program)
{
	assert_int_equal(tw_trace_function_match(bed->session, "m", functions[function].name, 0, program,
						 TW_FUNCTION_LOCAL),
			 1);
}

static void tail(struct tw_frame *frame, int function)
{
	struct tw_frame_call call = {.count = 0};

	tw_tail(&functions[function], frame, &call);
}

/* f, g, f, g, ... or f, f, ...: so many calls. */
static void make_chain(struct tw_frame *frame, long calls, bool do_alternate)
{
	tw_enter0(&functions[F], frame);
	for (long i = 1; i < calls; i++)
		tail(frame, do_alternate && i % 2 ? G : F);
}

struct ends {
	enum tw_event_kind kind;
	const int *expected;
	int turns;
	long count;
};

static void read_end(struct tw_rb_record *record, void *context)
{
	struct ends *ends = context;

	if (TW_RB_HEAD_KIND(record->head) != ends->kind)
		return;
	if (ends->kind != TW_EVENT_RETURN_TO)
		assert_int_equal(TW_RB_HEAD_ID(record->head),
				 functions[ends->expected[ends->count % ends->turns]].place->place_id);
	ends->count++;
}

/* The events of a kind in the rings since the last call; each must be of the next of these functions, in turn. */
static long read_ends(struct bed *bed, enum tw_event_kind kind, const int *expected, int turns)
{
	struct ends ends = {kind, expected, turns, 0};

	for_each_record(bed, read_end, &ends);
	return ends.count;
}
#define ENDS(bed, kind, ...) \
	read_ends((bed), (kind), (const int[]){__VA_ARGS__}, (int)TW_COUNT_OF(((const int[]){__VA_ARGS__})))

static uint64_t lost(struct bed *bed, enum tw_rb_cause cause)
{
	uint64_t count = 0;

	for (uint32_t i = 0; i < tw_rs_scan(&bed->rs); i++)
		count += tw_rs_ring(&bed->rs, i)->lost[cause];
	return count;
}

static struct tw_process *new_process(void)
{
	struct tw_process *process;

	assert_int_equal(tw_process_create("looper", &process), 0);
	tw_process_in(process);
	return process;
}

static void end_process(struct tw_process *process)
{
	tw_process_out();
	tw_process_exit(process);
}

static void a_million_calls_have_a_million_ends(void **state)
{
	uint32_t blocks = tw_blocks_in_use();
	struct tw_process *process = new_process();
	struct tw_frame frame;
	struct bed a, b;

	open_two(&a, &b, process);
	set(&a, F, returns);
	set(&a, G, returns);
	/* 132: b sees every other call. */
	set(&b, G, returns);
	make_chain(&frame, CALLS, true);
	tw_leave_void(&frame);
	assert_int_equal(ENDS(&a, TW_EVENT_RETURN_FROM, G, F), CALLS);
	assert_int_equal(ENDS(&b, TW_EVENT_RETURN_FROM, G), CALLS / 2);
	/* An exception ends them all as well. */
	set(&a, F, exceptions);
	set(&a, G, exceptions);
	set(&b, G, exceptions);
	{
		struct tw_raise raise = TW_RAISE(TW_CLASS_ERROR, tw_term_atom_z("e"));

		make_chain(&frame, CALLS / 4, true);
		tw_unwind(&frame, &raise);
		tw_caught(&raise, NULL);
	}
	assert_int_equal(ENDS(&a, TW_EVENT_EXCEPTION_FROM, G, F), CALLS / 4);
	assert_int_equal(ENDS(&b, TW_EVENT_EXCEPTION_FROM, G), CALLS / 8);
	assert_int_equal(count_lost(&a) + count_lost(&b), 0);
	/* The memory of the chains is freed. */
	assert_in_range(tw_blocks_in_use(), blocks, blocks + SPARE);
	end_process(process);
	assert_int_equal(tw_blocks_in_use(), blocks);
	close_bed(&a);
	close_bed(&b);
}

static void a_loop_takes_nothing_from_others(void **state)
{
	uint32_t blocks = tw_blocks_in_use();
	struct tw_process *looper = new_process(), *process;
	struct tw_frame loop, inner, frame;
	struct bed a, b;

	open_wide(&a, "a");
	open_wide(&b, "b");
	trace_in(&a, looper, TW_FLAG_CALL);
	set(&a, F, returns);
	make_chain(&loop, CALLS, false);
	/* A server loop, however long, is one entry. */
	assert_in_range(tw_blocks_in_use(), blocks + 1, blocks + SPARE);
	/* And a chain that goes back and forth uses only its own memory. */
	set(&a, G, returns);
	make_chain(&inner, CALLS, true);
	assert_true(tw_blocks_in_use() > blocks + CALLS / 32);
	tw_process_out();
	process = new_process();
	trace_in(&b, process, TW_FLAG_CALL);
	for (int i = F; i <= H; i++)
		set(&b, i, returns);
	tw_enter0(&functions[F], &frame);
	tail(&frame, G);
	tail(&frame, H);
	tw_leave_void(&frame);
	assert_int_equal(ENDS(&b, TW_EVENT_RETURN_FROM, H, G, F), 3);
	assert_int_equal(count_lost(&a) + count_lost(&b), 0);
	end_process(process);
	/* The looper is killed in its loop; its frames are left to no process, or to another one, and find nothing. */
	tw_process_exit(looper);
	assert_int_equal(tw_blocks_in_use(), blocks);
	tw_leave_void(&inner);
	tw_leave_void(&loop);
	assert_int_equal(ENDS(&a, TW_EVENT_RETURN_FROM, F), 0);
	close_bed(&a);
	close_bed(&b);
}

static void return_to_alone_takes_nothing(void **state)
{
	struct tw_process *process = new_process();
	uint32_t blocks = tw_blocks_in_use();
	struct tw_frame frame;
	struct bed a, b;

	open_wide(&a, "a");
	open_wide(&b, "b");
	trace_in(&a, process, TW_FLAG_CALL | TW_FLAG_RETURN_TO);
	trace_in(&b, process, TW_FLAG_CALL | TW_FLAG_RETURN_TO);
	assert_int_equal(tw_trace_function(a.session, "m", "f", 0, TW_MATCH_TRUE, TW_FUNCTION_LOCAL), 1);
	assert_int_equal(tw_trace_function(b.session, "m", "g", 0, TW_MATCH_TRUE, TW_FUNCTION_LOCAL), 1);
	make_chain(&frame, CALLS / 4, true);
	assert_int_equal(tw_blocks_in_use(), blocks);
	tw_leave_void(&frame);
	/* 123 */
	assert_int_equal(ENDS(&a, TW_EVENT_RETURN_TO, F), 1);
	assert_int_equal(ENDS(&b, TW_EVENT_RETURN_TO, F), 1);
	/* Counters need no memory either, and return to the function before the chain. */
	assert_int_equal(tw_trace_function(a.session, "m", "_", TW_ARITY_ANY, TW_MATCH_TRUE, TW_FUNCTION_CALL_TIME),
			 FUNCTIONS);
	make_chain(&frame, CALLS / 4, true);
	assert_int_equal(tw_blocks_in_use(), blocks);
	tw_leave_void(&frame);
	end_process(process);
	close_bed(&a);
	close_bed(&b);
}

/* With return_from as well: the position of the one return_to. */
static void return_to_comes_behind_the_first_that_asked(void **state)
{
	static const enum tw_event_kind kinds[2][3] = {
		{TW_EVENT_RETURN_FROM, TW_EVENT_RETURN_FROM, TW_EVENT_RETURN_TO},
		/* 125: what is traced globally asks for none, and so g is the first that does. */
		{TW_EVENT_RETURN_FROM, TW_EVENT_RETURN_TO, TW_EVENT_RETURN_FROM},
	};
	struct tw_process *process = new_process();

	for (int is_global = 0; is_global < 2; is_global++) {
		struct tw_match_program *shown = NULL;
		struct tw_rb_record *records[16];
		struct tw_frame frame;
		struct bed bed;
		unsigned n, k = 0;

		assert_int_equal(tw_match_compile_text("[{'_',[],[{return_trace}]}]", 27, NULL, &shown, NULL), 0);
		open_bed(&bed, "order");
		trace_in(&bed, process, TW_FLAG_CALL | TW_FLAG_RETURN_TO);
		set(&bed, G, shown);
		assert_int_equal(tw_trace_function_match(bed.session, "m", "f", 0, shown,
							 is_global ? TW_FUNCTION_GLOBAL : TW_FUNCTION_LOCAL),
				 1);
		tw_enter0(&functions[F], &frame);
		tail(&frame, G);
		tw_leave_void(&frame);
		n = take(&bed, records, 16);
		for (unsigned r = 0; r < n; r++) {
			if (TW_RB_HEAD_KIND(records[r]->head) <= TW_EVENT_CALL)
				continue;
			assert_true(k < 3);
			assert_int_equal(TW_RB_HEAD_KIND(records[r]->head), kinds[is_global][k++]);
		}
		assert_int_equal(k, 3);
		close_bed(&bed);
		tw_match_destroy(shown);
	}
	end_process(process);
}

/* One thread, and as many calls as its memory allows: nothing for the thread sanitizer. */
static void leave_to_others(void)
{
	if (UNDER_TSAN && !getenv("TW_TEST_LONG"))
		skip();
}

static void events_without_space_are_counted(void **state)
{
	const long calls = 2100000;
	uint32_t blocks = tw_blocks_in_use();
	struct tw_process *process;
	struct tw_rs_options options = {.ring_bytes = 1 << 26, .cap_bytes = 1 << 27, .has_fixed_rings = true};
	struct tw_frame frame;
	struct bed bed;
	long ends;

	leave_to_others();
	process = new_process();
	open_bed_with(&bed, "limit", &options);
	trace_in(&bed, process, TW_FLAG_CALL);
	set(&bed, F, returns);
	set(&bed, G, returns);
	make_chain(&frame, calls, true);
	/* Nothing is lost as long as nothing has ended. */
	assert_int_equal(count_lost(&bed), 0);
	assert_in_range(tw_blocks_in_use(), TW_PROCESS_BLOCKS_MAX - TW_TAIL_BLOCKS_LEFT,
			TW_PROCESS_BLOCKS_MAX + blocks);
	tw_leave_void(&frame);
	ends = ENDS(&bed, TW_EVENT_RETURN_FROM, F, G);
	assert_true(ends >= 1500000);
	assert_int_equal(ends + (long)lost(&bed, TW_RB_LOST_FULL), calls);
	assert_int_equal(count_lost(&bed), lost(&bed, TW_RB_LOST_FULL));
	end_process(process);
	assert_int_equal(tw_blocks_in_use(), blocks);
	close_bed(&bed);
}

/* The ends that a thread without a ring sees, and those for which its chain has no memory. */
static void *make_chain_without_ring(void *arg)
{
	struct bed *bed = arg;
	struct tw_process *process = new_process();
	struct tw_frame frame;

	trace_in(bed, process, TW_FLAG_CALL);
	make_chain(&frame, 2100000, true);
	tw_leave_void(&frame);
	end_process(process);
	return NULL;
}

static void events_without_a_ring_are_counted(void **state)
{
	struct tw_rs_options options = {.ring_bytes = 1 << 16, .cap_bytes = (1 << 16) + 4096, .has_fixed_rings = true};
	struct tw_process *process = new_process();
	struct tw_frame frame;
	pthread_t thread;
	struct bed bed;

	open_bed_with(&bed, "ringless", &options);
	set(&bed, F, returns);
	set(&bed, G, returns);
	/* This thread has the only ring. */
	trace_in(&bed, process, TW_FLAG_CALL);
	make_chain(&frame, 1, false);
	tw_leave_void(&frame);
	assert_int_equal(ENDS(&bed, TW_EVENT_RETURN_FROM, F), 1);
	pthread_create(&thread, NULL, make_chain_without_ring, &bed);
	pthread_join(thread, NULL);
	assert_int_equal(tw_rs_head(&bed.rs, 0)->no_ring_lost, 2100000);
	assert_int_equal(count_lost(&bed), 0);
	end_process(process);
	close_bed(&bed);
}

static void memory_of_a_session_is_freed(void **state)
{
	uint32_t blocks = tw_blocks_in_use();
	struct tw_process *process = new_process();
	struct tw_frame frame;
	struct bed a, b;

	open_two(&a, &b, process);
	set(&a, F, returns);
	set(&b, F, returns);
	set(&b, G, returns);
	make_chain(&frame, CALLS, true);
	/* b's part is the larger one; but the chain is freed with the last of them. */
	close_bed(&b);
	tw_process_out();
	tw_process_in(process);
	assert_true(tw_blocks_in_use() > blocks + CALLS / 32);
	close_bed(&a);
	tw_process_out();
	tw_process_in(process);
	assert_in_range(tw_blocks_in_use(), blocks, blocks + SPARE);
	tw_leave_void(&frame);
	end_process(process);
	assert_int_equal(tw_blocks_in_use(), blocks);
}

static void memory_of_a_session_is_freed_by_the_next(void **state)
{
	struct tw_process *process = new_process();
	uint32_t blocks;
	struct tw_frame frame;
	struct bed a, b;

	open_wide(&a, "a");
	trace_in(&a, process, TW_FLAG_CALL);
	set(&a, F, returns);
	set(&a, G, returns);
	make_chain(&frame, CALLS, true);
	blocks = tw_blocks_in_use();
	close_bed(&a);
	/* Another session has its bit now, and traces the same loop. */
	open_wide(&b, "b");
	trace_in(&b, process, TW_FLAG_CALL);
	set(&b, F, returns);
	set(&b, G, returns);
	for (int i = 0; i < 10; i++)
		tail(&frame, i % 2 ? G : F);
	assert_true(tw_blocks_in_use() < blocks - CALLS / 32);
	tw_leave_void(&frame);
	assert_int_equal(ENDS(&b, TW_EVENT_RETURN_FROM, G, F), 10);
	assert_int_equal(count_lost(&b), 0);
	end_process(process);
	close_bed(&b);
}

/* ---- random chains, against a model of one session's events ---- */

enum setting { NOTHING, PLAIN, SHOWN, HIDDEN, GLOBAL, RAISING, SETTINGS };

struct entry {
	int function;
	enum setting setting;
};

/* The settings of one session, and the events it must see. */
struct viewer {
	struct bed bed;
	enum setting settings[FUNCTIONS];
	bool has_return_to;
	struct entry frames[8][64];
	int counts[8];
	struct {
		enum tw_event_kind kind;
		int function;
	} expected[4096];
	int count;
};

static void expect(struct viewer *v, enum tw_event_kind kind, int function)
{
	v->expected[v->count].kind = kind;
	v->expected[v->count++].function = function;
}

static bool asks_for_return_to(const struct viewer *v, enum setting setting)
{
	return v->has_return_to && (setting == PLAIN || setting == SHOWN || setting == RAISING);
}

static void model_call(struct viewer *v, int depth, int function)
{
	enum setting setting = v->settings[function];

	v->frames[depth][v->counts[depth]++] = (struct entry){function, setting};
	if (setting != NOTHING && setting != HIDDEN)
		expect(v, TW_EVENT_CALL, function);
}

/* The ends of a frame's calls.  Returns whether some call requests return_to, which for a return is reported here. */
static bool model_end(struct viewer *v, int depth, bool is_exception)
{
	int first = -1;

	for (int i = 0; i < v->counts[depth] && first < 0; i++)
		if (asks_for_return_to(v, v->frames[depth][i].setting))
			first = i;
	for (int i = v->counts[depth] - 1; i >= 0; i--) {
		struct entry entry = v->frames[depth][i];

		if (is_exception && entry.setting == RAISING)
			expect(v, TW_EVENT_EXCEPTION_FROM, entry.function);
		if (!is_exception && entry.setting >= SHOWN)
			expect(v, TW_EVENT_RETURN_FROM, entry.function);
		if (!is_exception && i == first)
			expect(v, TW_EVENT_RETURN_TO, 0);
	}
	return first >= 0;
}

static void compare(struct viewer *v)
{
	struct tw_rb_record *records[4096];
	unsigned n = take(&v->bed, records, 4096);
	int at = 0;

	for (unsigned i = 0; i < n; i++) {
		enum tw_event_kind kind = TW_RB_HEAD_KIND(records[i]->head);

		if (kind < TW_EVENT_CALL)
			continue;
		assert_true(at < v->count);
		assert_int_equal(kind, v->expected[at].kind);
		if (kind != TW_EVENT_RETURN_TO)
			assert_int_equal(TW_RB_HEAD_ID(records[i]->head),
					 functions[v->expected[at].function].place->place_id);
		at++;
	}
	assert_int_equal(at, v->count);
	v->count = 0;
}

static unsigned below(unsigned bound)
{
	static uint64_t random = 88172645463325252u;

	return (unsigned)random_below(&random, bound);
}

static void choose(struct viewer *v, const struct tw_process *process, struct tw_match_program *const *programs)
{
	tw_trace_process(v->bed.session, tw_process_pid(process), false, TW_FLAG_ALL);
	v->has_return_to = below(3);
	trace_in(&v->bed, process, TW_FLAG_CALL | (v->has_return_to ? TW_FLAG_RETURN_TO : 0));
	for (int f = F; f <= H; f++) {
		const char *name = functions[f].name;

		v->settings[f] = (enum setting)below(SETTINGS);
		tw_trace_function(v->bed.session, "m", name, 0, TW_MATCH_FALSE, TW_FUNCTION_LOCAL);
		tw_trace_function(v->bed.session, "m", name, 0, TW_MATCH_FALSE, TW_FUNCTION_GLOBAL);
		if (v->settings[f] == PLAIN)
			tw_trace_function(v->bed.session, "m", name, 0, TW_MATCH_TRUE, TW_FUNCTION_LOCAL);
		else if (v->settings[f] != NOTHING)
			tw_trace_function_match(v->bed.session, "m", name, 0, programs[v->settings[f]],
						v->settings[f] == GLOBAL ? TW_FUNCTION_GLOBAL : TW_FUNCTION_LOCAL);
	}
}

static void raise_to(struct tw_frame *frames, struct viewer *v, int *depth, int catcher)
{
	struct tw_raise raise = TW_RAISE(TW_CLASS_ERROR, tw_term_atom_z("e"));
	bool asks[2] = {false, false};

	for (; *depth > catcher; --*depth) {
		tw_unwind(&frames[*depth - 1], &raise);
		for (int s = 0; s < 2; s++)
			asks[s] |= model_end(&v[s], *depth - 1, true);
	}
	tw_caught(&raise, NULL);
	for (int s = 0; s < 2; s++)
		if (asks[s])
			expect(&v[s], TW_EVENT_RETURN_TO, 0);
}

/* One step; at the end all return. */
static void step(struct tw_frame *frames, struct viewer *v, int *depth, bool is_end)
{
	int what = is_end ? 9 : (int)below(10), function = (int)below(FUNCTIONS);

	if (!*depth || (what < 3 && *depth < 8)) {
		if (is_end)
			return;
		tw_enter0(&functions[function], &frames[(*depth)++]);
		v[0].counts[*depth - 1] = v[1].counts[*depth - 1] = 0;
	} else if (what < 8 && v->counts[*depth - 1] < 60) {
		tail(&frames[*depth - 1], function);
	} else if (what == 8 && *depth > 1) {
		raise_to(frames, v, depth, (int)below((unsigned)*depth));
		return;
	} else {
		tw_leave_void(&frames[--*depth]);
		for (int s = 0; s < 2; s++)
			model_end(&v[s], *depth, false);
		return;
	}
	for (int s = 0; s < 2; s++)
		model_call(&v[s], *depth - 1, function);
}

static void each_session_sees_what_it_would_alone(void **state)
{
	static const char *const specs[SETTINGS] = {[SHOWN] = "[{'_',[],[{return_trace}]}]",
						    [HIDDEN] = RETURNS,
						    [GLOBAL] = "[{'_',[],[{return_trace}]}]",
						    [RAISING] = "[{'_',[],[{exception_trace}]}]"};
	struct tw_match_program *programs[SETTINGS] = {NULL};
	static struct viewer v[2];
	struct tw_process *process = new_process();

	for (int i = SHOWN; i < SETTINGS; i++)
		assert_int_equal(tw_match_compile_text(specs[i], strlen(specs[i]), NULL, &programs[i], NULL), 0);
	open_wide(&v[0].bed, "a");
	open_wide(&v[1].bed, "b");
	for (int round = 0; round < (int)test_rounds(300, 4); round++) {
		struct tw_frame frames[8];
		int depth = 0;

		choose(&v[0], process, programs);
		choose(&v[1], process, programs);
		for (int i = 0; i < 200; i++)
			step(frames, v, &depth, false);
		while (depth)
			step(frames, v, &depth, true);
		compare(&v[0]);
		compare(&v[1]);
	}
	end_process(process);
	close_bed(&v[0].bed);
	close_bed(&v[1].bed);
	for (int i = SHOWN; i < SETTINGS; i++)
		tw_match_destroy(programs[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_million_calls_have_a_million_ends),
		cmocka_unit_test(a_loop_takes_nothing_from_others),
		cmocka_unit_test(return_to_alone_takes_nothing),
		cmocka_unit_test(return_to_comes_behind_the_first_that_asked),
		cmocka_unit_test(each_session_sees_what_it_would_alone),
		cmocka_unit_test(events_without_space_are_counted),
		cmocka_unit_test(events_without_a_ring_are_counted),
		cmocka_unit_test(memory_of_a_session_is_freed),
		cmocka_unit_test(memory_of_a_session_is_freed_by_the_next),
	};

	for (int i = 0; i < FUNCTIONS; i++)
		assert_int_equal(tw_function_declare(&functions[i]), 0);
	returns = exceptions = NULL;
	assert_int_equal(tw_match_compile_text(RETURNS, strlen(RETURNS), NULL, &returns, NULL), 0);
	assert_int_equal(tw_match_compile_text(EXCEPTIONS, strlen(EXCEPTIONS), NULL, &exceptions, NULL), 0);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
