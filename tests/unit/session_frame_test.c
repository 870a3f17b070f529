/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal	The ends of calls are reported as in OTP: return_from, exception_from, return_to; and which session gets them
 *	when functions, flags and sessions change while frames are open.  Meta events, callers, terms as arguments.
 * Method	A program of declared functions with a stack of its own plays calls, tail calls and exceptions; the
 *	contents of the rings are written as text.
 */
#include "tests/unit/session_bed.h"
#include "tracewheel/match.h"
#include "tracewheel/term.h"

#include <stdio.h>

enum { TOP, F, G, H, FUNCTIONS };

static struct tw_declared_function functions[FUNCTIONS] = {
	TW_DECLARED_FUNCTION("m", "top", 0), /* never traced */
	TW_DECLARED_FUNCTION("m", "f", 1),
	TW_DECLARED_FUNCTION("m", "g", 1),
	TW_DECLARED_FUNCTION("m", "h", 1),
};

/* ---- a run-time with a stack ---- */

static struct activation {
	int function;
	struct tw_frame frame;
} stack[16];
static int depth;

static unsigned walk(struct tw_stack_entry *out, unsigned capacity, void *arg)
{
	unsigned count = 0;

	/* A function being entered or left has its activation at that time. */
	for (int i = depth - 2; i >= 0 && count < capacity; i--, count++) {
		const struct tw_declared_function *f = &functions[stack[i].function];

		out[count] = (struct tw_stack_entry){f->module, f->name, f->arity, 10 + (uint32_t)i, "m.vm"};
	}
	return count;
}

static void begin(void)
{
	depth = 1;
	stack[0] = (struct activation){.function = TOP};
}

static void enter(int function, uint64_t a)
{
	stack[depth++].function = function;
	tw_enter1(&functions[function], &stack[depth - 1].frame, a);
}

static void tail(int function, uint64_t a)
{
	struct tw_frame_call call = {.words = &a, .count = 1};

	stack[depth - 1].function = function;
	tw_tail(&functions[function], &stack[depth - 1].frame, &call);
}

static void leave(uint64_t value)
{
	tw_leave(&stack[depth - 1].frame, value);
	depth--;
}

/* An exception that the activation of that index catches. */
static void throw_to(int catcher, enum tw_exception_class exception_class, const char *reason)
{
	struct tw_raise raise = TW_RAISE(exception_class, tw_term_atom_z(reason));
	const struct tw_declared_function *f = &functions[stack[catcher].function];
	struct tw_stack_entry entry = {f->module, f->name, f->arity, 0, NULL};

	while (depth - 1 > catcher)
		tw_unwind(&stack[--depth].frame, &raise);
	tw_caught(&raise, &entry);
}

/* ---- recorded events as text ---- */

static const char *name_of_place(uint32_t id)
{
	for (int i = 0; i < FUNCTIONS; i++)
		if (functions[i].place->place_id == id)
			return functions[i].name;
	return "?";
}

static void write_event(const struct tw_rb_record *record, char *text, size_t capacity)
{
	static const char *const kinds[] = {"", "", "", "call", "return_from", "exception_from", "return_to"};
	unsigned kind = TW_RB_HEAD_KIND(record->head), flags = TW_RB_HEAD_FLAGS(record->head);
	const uint64_t *payload = tw_event_payload(record);
	const char *stamp = (flags & TW_EVENT_FLAG_STAMP_MASK) == TW_STAMP_TIMESTAMP ? "ts " : "";
	size_t at = (size_t)snprintf(text, capacity, "%s%s", stamp, kinds[kind]);

	if (kind != TW_EVENT_RETURN_TO)
		at += (size_t)snprintf(text + at, capacity - at, " %s", name_of_place(TW_RB_HEAD_ID(record->head)));
	if (flags & (TW_EVENT_FLAG_TERMS | TW_EVENT_FLAG_EXTRA)) {
		bool has_terms = flags & TW_EVENT_FLAG_TERMS;
		const char *from = (const char *)(payload + 1 + (has_terms ? 0 : (uint32_t)payload[0]));
		struct tw_arena arena;
		struct tw_term term;
		size_t used;

		for (uint32_t i = 0; !has_terms && i < (uint32_t)payload[0]; i++)
			at += (size_t)snprintf(text + at, capacity - at, " %lu", payload[1 + i]);
		tw_arena_init(&arena, 1 << 20);
		for (uint32_t i = 0; i < (has_terms ? (uint32_t)payload[0] : 1); i++, from += used) {
			assert_int_equal(tw_etf_decode(&arena, from, 8000, NULL, &used, &term), 0);
			at += (size_t)snprintf(text + at, capacity - at, " ");
			tw_term_format(term, TW_PRINT_WRITE, text + at, capacity - at);
			at += strlen(text + at);
		}
		tw_arena_fini(&arena);
	} else {
		for (uint32_t i = 0; i < tw_event_payload_words(record->head); i++)
			at += (size_t)snprintf(text + at, capacity - at, " %lu", payload[i]);
	}
}

#define EXPECT(bed, ...)    expect(bed, __LINE__, (const char *[]){__VA_ARGS__, NULL})
#define EXPECT_NOTHING(bed) expect(bed, __LINE__, (const char *[]){NULL})

static void expect(struct bed *bed, int line, const char *const *wanted)
{
	struct tw_rb_record *r[64];
	unsigned n = take(bed, r, 64), i = 0;
	char text[512];

	for (unsigned k = 0; k < n; k++) {
		if (TW_RB_HEAD_KIND(r[k]->head) < TW_EVENT_CALL)
			continue;
		write_event(r[k], text, sizeof text);
		/* A star matches the rest. */
		if (wanted[i] && strchr(wanted[i], '*') && strlen(text) > strcspn(wanted[i], "*"))
			text[strcspn(wanted[i], "*")] = '\0';
		if (!wanted[i] || strncmp(text, wanted[i], strcspn(wanted[i], "*")) != 0 ||
		    text[strcspn(wanted[i], "*")])
			print_error("line %d, event %u: \"%s\", not \"%s\"\n", line, i, text,
				    wanted[i] ? wanted[i] : "nothing");
		assert_non_null(wanted[i]);
		assert_memory_equal(text, wanted[i], strcspn(wanted[i], "*"));
		assert_int_equal(text[strcspn(wanted[i], "*")], 0);
		i++;
	}
	if (wanted[i])
		print_error("line %d: nothing in place of \"%s\"\n", line, wanted[i]);
	assert_null(wanted[i]);
}

static struct tw_match_program *compile(const char *text)
{
	struct tw_match_program *program = NULL;

	assert_int_equal(tw_match_compile_text(text, strlen(text), NULL, &program, NULL), 0);
	return program;
}

static void set(struct bed *bed, int function, const struct tw_match_program *program)
{
	const struct tw_declared_function *f = &functions[function];

	assert_int_equal(tw_trace_function_match(bed->session, f->module, f->name, (int)f->arity, program,
						 TW_FUNCTION_LOCAL),
			 1);
}

static void open_traced(struct bed *bed, uint32_t flags)
{
	open_bed(bed, "frames");
	tw_trace_process(bed->session, tw_process_self(), true, TW_FLAG_CALL | flags);
	begin();
}

#define RETURNS	   "[{'_',[],[{return_trace}]}]"
#define EXCEPTIONS "[{'_',[],[{exception_trace}]}]"

/* ---- K ---- */

static void returns_come_innermost_first(void **state)
{
	struct tw_match_program *returns = compile(RETURNS);
	struct bed bed;

	open_traced(&bed, 0);
	set(&bed, F, returns);
	set(&bed, G, returns);
	enter(F, 1);
	enter(G, 2);
	leave(20);
	leave(10);
	EXPECT(&bed, "call f 1", "call g 2", "return_from g 20", "return_from f 10");
	/* 117: tail calls, in reverse order of the calls. */
	enter(F, 1);
	tail(G, 2);
	tail(H, 3);
	tail(F, 4);
	leave(7);
	EXPECT(&bed, "call f 1", "call g 2", "call f 4", "return_from f 7", "return_from g 7", "return_from f 7");
	/* A function that is not traced tail calls one that is. */
	enter(H, 1);
	tail(G, 2);
	leave(8);
	EXPECT(&bed, "call g 2", "return_from g 8");
	/* 118: an exception is no return. */
	enter(F, 1);
	throw_to(0, TW_CLASS_EXIT, "gone");
	EXPECT(&bed, "call f 1");
	close_bed(&bed);
	tw_match_destroy(returns);
}

static void exceptions_close_every_frame(void **state)
{
	struct tw_match_program *returns = compile(RETURNS), *exceptions = compile(EXCEPTIONS);
	struct bed bed;

	open_traced(&bed, TW_FLAG_RETURN_TO);
	set(&bed, F, exceptions);
	set(&bed, G, returns);
	set(&bed, H, exceptions);
	/* 118, 119, 124, 128: f catches the exception that h throws through g. */
	enter(F, 1);
	enter(G, 2);
	enter(H, 3);
	throw_to(1, TW_CLASS_THROW, "ball");
	leave(5);
	EXPECT(&bed, "call f 1", "call g 2", "call h 3", "exception_from h {throw,ball}", "return_to {m,f,1}",
	       "return_from f 5", "return_to {m,top,0}");
	/* Tail calls end by the same exception. */
	enter(H, 1);
	tail(F, 2);
	throw_to(0, TW_CLASS_ERROR, "badarg");
	EXPECT(&bed, "call h 1", "call f 2", "exception_from f {error,badarg}", "exception_from h {error,badarg}",
	       "return_to {m,top,0}");
	close_bed(&bed);
	tw_match_destroy(returns);
	tw_match_destroy(exceptions);
}

static void return_to_names_who_goes_on(void **state)
{
	struct tw_match_program *returns = compile(RETURNS), *quiet = compile("[{'_',[],[{message,false},"
									      "{return_trace}]}]");
	struct bed bed;

	open_traced(&bed, TW_FLAG_RETURN_TO);
	set(&bed, G, returns);
	/* 122, 126, 127: to h, which is not traced. */
	enter(H, 1);
	enter(G, 2);
	leave(20);
	leave(10);
	EXPECT(&bed, "call g 2", "return_from g 20", "return_to {m,h,1}");
	/* 123: a chain gives one. */
	enter(G, 1);
	tail(G, 2);
	leave(3);
	EXPECT(&bed, "call g 1", "call g 2", "return_from g 3", "return_from g 3", "return_to {m,top,0}");
	/* 129 */
	set(&bed, G, quiet);
	enter(G, 1);
	leave(3);
	EXPECT(&bed, "return_from g 3");
	/* 131: the first function has no caller. */
	set(&bed, G, returns);
	depth = 0;
	enter(G, 1);
	leave(3);
	EXPECT(&bed, "call g 1", "return_from g 3", "return_to undefined");
	begin();
	/* 125: traced globally there is none. */
	tw_trace_function(bed.session, "m", "g", 1, TW_MATCH_FALSE, TW_FUNCTION_LOCAL);
	tw_trace_function(bed.session, "m", "g", 1, TW_MATCH_TRUE, TW_FUNCTION_GLOBAL);
	enter(G, 1);
	leave(3);
	EXPECT(&bed, "call g 1");
	close_bed(&bed);
	tw_match_destroy(returns);
	tw_match_destroy(quiet);
}

static void changes_while_a_frame_is_open(void **state)
{
	struct tw_match_program *returns = compile(RETURNS);
	struct bed bed, next;

	open_traced(&bed, 0);
	set(&bed, F, returns);
	/* 130: the function, the process, */
	enter(F, 1);
	tw_trace_function(bed.session, "m", "f", 1, TW_MATCH_FALSE, TW_FUNCTION_LOCAL);
	leave(2);
	EXPECT(&bed, "call f 1", "return_from f 2");
	set(&bed, F, returns);
	enter(F, 3);
	tw_trace_process(bed.session, tw_process_self(), false, TW_FLAG_CALL);
	leave(4);
	EXPECT(&bed, "call f 3");
	tw_trace_process(bed.session, tw_process_self(), true, TW_FLAG_CALL);
	/* and the session, whose slot another one takes. */
	enter(F, 5);
	close_bed(&bed);
	open_bed(&next, "next");
	tw_trace_process(next.session, tw_process_self(), true, TW_FLAG_CALL);
	set(&next, F, returns);
	leave(6);
	EXPECT_NOTHING(&next);
	enter(F, 7);
	leave(8);
	EXPECT(&next, "call f 7", "return_from f 8");
	close_bed(&next);
	tw_match_destroy(returns);
}

static void silent_calls_open_no_frame(void **state)
{
	struct tw_match_program *program =
		compile("[{[1],[],[{silent,true},{return_trace}]},"
			"{[2],[],[{silent,false},{return_trace}]},{'_',[],[{return_trace}]}]");
	struct bed bed;

	open_traced(&bed, 0);
	set(&bed, F, program);
	/* 111: f(1) is silent; f(2) inside it is recorded, and ends. */
	enter(F, 1);
	enter(F, 2);
	leave(20);
	leave(10);
	EXPECT(&bed, "call f 2", "return_from f 20");
	/* 108: calls are recorded or not; a recorded call has its end. */
	enter(F, 3);
	enter(F, 1);
	leave(0);
	leave(0);
	EXPECT(&bed, "call f 3", "return_from f 0");
	close_bed(&bed);
	tw_match_destroy(program);
}

static void two_sessions_see_what_each_would_alone(void **state)
{
	struct tw_match_program *returns = compile(RETURNS);
	struct bed a, b;

	open_traced(&a, TW_FLAG_RETURN_TO);
	open_bed(&b, "other");
	tw_trace_process(b.session, tw_process_self(), true, TW_FLAG_CALL | TW_FLAG_STRICT_MONOTONIC_TIMESTAMP);
	set(&a, F, returns);
	set(&b, G, returns);
	enter(F, 1);
	tail(G, 2);
	leave(3);
	EXPECT(&a, "call f 1", "return_from f 3", "return_to {m,top,0}");
	assert_int_equal(count_events(&b), 2);
	close_bed(&a);
	close_bed(&b);
	tw_match_destroy(returns);
}

/* ---- terms, callers ---- */

static void arguments_and_values_are_terms(void **state)
{
	struct tw_match_program *program = compile("[{['$1'],[{is_list,'$1'}],[{message,{{got,'$1'}}},{return_trace}]},"
						   "{[{a,'_'}],[],[]}]");
	struct tw_arena arena;
	struct tw_frame frame;
	struct tw_term list, tuple, huge;
	static char zeros[9000];
	struct bed bed;

	tw_arena_init(&arena, 1 << 20);
	list = tw_term_string(&arena, "\001\002", 2);
	tuple = tw_term_tuple(&arena, (struct tw_term[]){tw_term_atom_z("a"), list}, 2);
	huge = tw_term_tuple(&arena, (struct tw_term[]){tw_term_atom_z("a"), tw_term_binary(&arena, zeros, 9000)}, 2);
	open_traced(&bed, 0);
	set(&bed, F, program);
	tw_enter_terms(&functions[F], &frame, &list, 1);
	tw_leave_term(&frame, tuple);
	tw_call_terms(&functions[F], &tuple, 1);
	tw_call_terms(&functions[F], &huge, 1);
	EXPECT(&bed, "call f [[1,2]] {got,[1,2]}", "return_from f {a,[1,2]}", "call f [{a,[1,2]}]",
	       "call f [{a,{'...',<<0,0,0*");
	assert_int_equal(count_lost(&bed), 0);
	close_bed(&bed);
	tw_arena_fini(&arena);
	tw_match_destroy(program);
}

static void callers_come_from_the_run_time(void **state)
{
	struct tw_match_program *caller = compile("[{[1],[],[{message,{caller}}]},{[2],[],[{message,{caller_line}}]},"
						  "{[3],[],[{message,{current_stacktrace}}]}]");
	struct bed bed;

	open_traced(&bed, 0);
	set(&bed, G, caller);
	enter(H, 0);
	enter(G, 1);
	tail(G, 2);
	tail(G, 3);
	depth = 1;
	EXPECT(&bed, "call g 1 {m,h,1}", "call g 2 {m,h,1,{[109,46,118,109],11}}",
	       "call g 3 "
	       "[{m,h,1,[{file,[109,46,118,109]},{line,11}]},{m,top,0,[{file,[109,46,118,109]},{line,10}]}]");
	close_bed(&bed);
	tw_match_destroy(caller);
}

/* ---- M ---- */

static void meta_sees_every_process(void **state)
{
	struct tw_match_program *meta = compile("[{[1],[],[{return_trace}]},{[2],[],[{message,false},{return_trace}]},"
						"{[3],[],[{message,x}]}]");
	struct bed bed;

	open_bed(&bed, "meta");
	begin();
	assert_int_equal(tw_trace_function_match(bed.session, "m", "f", 1, meta, TW_FUNCTION_META), 1);
	enter(F, 1);
	leave(10);
	enter(F, 2);
	leave(20);
	enter(F, 3);
	leave(30);
	enter(F, 4);
	leave(40);
	/* 142, 144 */
	EXPECT(&bed, "ts call f 1", "ts return_from f 10", "ts return_from f 20", "ts call f 3 x");
	/* 143, 145: local first; the process' flags are the local part's. */
	tw_trace_process(bed.session, tw_process_self(), true, TW_FLAG_CALL);
	tw_trace_function(bed.session, "m", "f", 1, TW_MATCH_TRUE, TW_FUNCTION_LOCAL);
	enter(F, 1);
	leave(10);
	EXPECT(&bed, "call f 1", "ts call f 1", "ts return_from f 10");
	/* The last to end began first. */
	tw_trace_function_match(bed.session, "m", "f", 1, meta, TW_FUNCTION_LOCAL);
	enter(F, 1);
	leave(10);
	EXPECT(&bed, "call f 1", "ts call f 1", "ts return_from f 10", "return_from f 10");
	tw_trace_process(bed.session, tw_process_self(), true, TW_FLAG_SILENT);
	enter(F, 1);
	leave(10);
	EXPECT(&bed, "ts call f 1", "ts return_from f 10");
	close_bed(&bed);
	tw_match_destroy(meta);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(returns_come_innermost_first),
		cmocka_unit_test(exceptions_close_every_frame),
		cmocka_unit_test(return_to_names_who_goes_on),
		cmocka_unit_test(changes_while_a_frame_is_open),
		cmocka_unit_test(silent_calls_open_no_frame),
		cmocka_unit_test(two_sessions_see_what_each_would_alone),
		cmocka_unit_test(arguments_and_values_are_terms),
		cmocka_unit_test(callers_come_from_the_run_time),
		cmocka_unit_test(meta_sees_every_process),
	};

	for (int i = 0; i < FUNCTIONS; i++)
		assert_int_equal(tw_function_declare(&functions[i]), 0);
	tw_runtime_stack(walk, NULL);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
