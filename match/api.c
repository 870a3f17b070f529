/* SPDX-License-Identifier: Apache-2.0 */
/* api.c - the public calls: compile, verify, destroy, test. */
#include "match/builder.h"
#include "match/parse.h"

#include "base/export.h"

#include <stdio.h>
#include <stdlib.h>

/* Scratch memory of a test run. */
#define TEST_SCRATCH_BYTES ((size_t)4 << 20)
/* On the stack. */
#define TEST_WORDS_SCRATCH_BYTES 16384

static int finish(struct tw_match_code *code, struct tw_match_program **out)
{
	const char *why = "";
	uint32_t place = 0;
	int error = tw_match_verify(code, out, &why, &place);

	/* The verifier accepts everything that the compiler produces. */
	TW_ASSERT(error != TW_EBADARG);
	if (error)
		tw_match_code_destroy(code);
	return error;
}

TW_API int tw_match_compile(struct tw_term spec, const struct tw_match_options *options, struct tw_match_program **out,
			    struct tw_match_error *error)
{
	struct tw_match_code *code;
	int result = tw_match_code_build(spec, options, &code, error);

	return result ? result : finish(code, out);
}

TW_API int tw_match_compile_text(const char *text, size_t bytes, const struct tw_match_options *options,
				 struct tw_match_program **out, struct tw_match_error *error)
{
	struct tw_arena arena;
	struct tw_match_code *code;
	struct tw_term spec;
	int result;

	tw_arena_init(&arena, SIZE_MAX);
	result = tw_match_parse_text(&arena, text, bytes, &spec, error);
	if (!result)
		result = tw_match_code_build_from(spec, options, text, bytes, &code, error);
	tw_arena_fini(&arena);
	return result ? result : finish(code, out);
}

/* The guard of [{Head, [Guard], []}]. */
static struct tw_term guard_of(struct tw_term spec)
{
	return tw_cell(tw_elements(tw_cell(spec)->head)[1])->head;
}

TW_API int tw_match_compile_when(const char *text, size_t bytes, const struct tw_match_options *options,
				 struct tw_match_program **out, struct tw_match_error *error)
{
	struct tw_arena arena;
	struct tw_match_code *code;
	struct tw_term spec;
	int result;

	tw_arena_init(&arena, SIZE_MAX);
	result = tw_match_parse_when(&arena, text, bytes, &spec, error);
	if (!result)
		result = tw_match_code_build(spec, options, &code, error);
	/* Checked second, after invalid guards have been reported. */
	if (!result && options && options->sense != TW_MATCH_SENSE_ANY) {
		result = tw_match_refuse_never(guard_of(spec), options->sense == TW_MATCH_SENSE_WORDS, error);
		if (result)
			tw_match_code_destroy(code);
	}
	tw_arena_fini(&arena);
	return result ? result : finish(code, out);
}

TW_API void tw_match_destroy(struct tw_match_program *program)
{
	if (!program)
		return;
	tw_match_code_destroy(program->code);
	free(program);
}

TW_API struct tw_term tw_match_spec(const struct tw_match_program *program)
{
	return program->code->spec;
}

TW_API enum tw_match_speed tw_match_speed(const struct tw_match_program *program)
{
	if (program->quick.op == TW_MATCH_QUICK_NONE)
		return TW_MATCH_BYTE_CODE;
	return program->quick.op == TW_MATCH_QUICK_RANGE ? TW_MATCH_FUSED : TW_MATCH_ALWAYS;
}

/* ---- a run without effects ---- */

static struct tw_term test_self(struct tw_match_run *run)
{
	return tw_term_pid(tw_match_arena(run), 1, 0);
}

/* The result of get_token/1 without a token; badarg for an invalid component. */
static struct tw_term test_set_seq_token(struct tw_match_run *run, struct tw_term component, struct tw_term value)
{
	static const uint32_t flags[] = {TW_ATOM_SEND,
					 TW_ATOM_RECEIVE,
					 TW_ATOM_PRINT,
					 TW_ATOM_TIMESTAMP,
					 TW_ATOM_MONOTONIC_TIMESTAMP,
					 TW_ATOM_STRICT_MONOTONIC_TIMESTAMP};
	struct tw_term pair[2] = {component, tw_atom(TW_ATOM_FALSE)};
	uint32_t i;

	if (tw_term_is_same(component, tw_atom(TW_ATOM_LABEL)) || tw_term_is_same(component, tw_atom(TW_ATOM_SERIAL)))
		return tw_term_nil();
	for (i = 0; i < TW_COUNT_OF(flags); i++) {
		if (tw_term_is_same(component, tw_atom(flags[i])))
			return tw_term_tuple(tw_match_arena(run), pair, 2);
	}
	return tw_word(0);
}

static bool is_flag(struct tw_term flag)
{
	static const uint32_t flags[] = {TW_ATOM_ALL,
					 TW_ATOM_SEND,
					 TW_ATOM_RECEIVE,
					 TW_ATOM_PROCS,
					 TW_ATOM_CALL,
					 TW_ATOM_SILENT,
					 TW_ATOM_RETURN_TO,
					 TW_ATOM_ARITY,
					 TW_ATOM_GARBAGE_COLLECTION,
					 TW_ATOM_RUNNING,
					 TW_ATOM_RUNNING_PROCS,
					 TW_ATOM_RUNNING_PORTS,
					 TW_ATOM_PORTS,
					 TW_ATOM_EXITING,
					 TW_ATOM_SET_ON_SPAWN,
					 TW_ATOM_SET_ON_LINK,
					 TW_ATOM_TIMESTAMP,
					 TW_ATOM_SET_ON_FIRST_SPAWN,
					 TW_ATOM_SET_ON_FIRST_LINK,
					 TW_ATOM_MONOTONIC_TIMESTAMP,
					 TW_ATOM_STRICT_MONOTONIC_TIMESTAMP};
	uint32_t i;

	for (i = 0; i < TW_COUNT_OF(flags); i++) {
		if (tw_term_is_same(flag, tw_atom(flags[i])))
			return true;
	}
	/* The one flag that is not a predefined atom. */
	return tw_term_is_same(flag, tw_term_atom_z("scheduler_id"));
}

static bool is_flag_list(struct tw_term list)
{
	while (tw_is_cons(list) && is_flag(tw_cell(list)->head))
		list = tw_cell(list)->tail;
	return tw_is_nil(list);
}

static int test_trace(struct tw_match_run *run, struct tw_term tracee, struct tw_term off, struct tw_term on)
{
	if (!tw_term_is_none(tracee) && !tw_term_is_equal(tracee, test_self(run)))
		return -1;
	return is_flag_list(off) && is_flag_list(on) ? 0 : -1;
}

static uint32_t test_set_tcw(struct tw_match_run *run, uint32_t word)
{
	return tw_trace_control_word_get();
}

static int drain_to_stdout(struct tw_sink *sink)
{
	size_t bytes = (size_t)(sink->at - sink->start);

	sink->at = sink->start;
	return fwrite(sink->start, 1, bytes, stdout) == bytes ? 0 : TW_EIO;
}

static void test_display(struct tw_match_run *run, struct tw_term term)
{
	char buffer[1024];
	struct tw_sink sink = {.start = buffer, .at = buffer, .end = buffer + sizeof buffer, .drain = drain_to_stdout};

	if (tw_term_print(term, TW_PRINT_PRETTY, &sink) == 0 && drain_to_stdout(&sink) == 0)
		putchar('\n');
}

static const struct tw_match_host test_host = {
	.self = test_self,
	.set_seq_token = test_set_seq_token,
	.trace = test_trace,
	.set_tcw = test_set_tcw,
	.display = test_display,
};

/* The arguments as an array; TW_EBADARG if they cannot be those of a call. */
static int read_arguments(const struct tw_match_program *program, struct tw_term target,
			  struct tw_term arguments[TW_ARITY_MAX], unsigned *count)
{
	*count = 0;
	if (program->code->target == TW_MATCH_TABLE) {
		arguments[(*count)++] = target;
		return 0;
	}
	if (!tw_is_list(target))
		return TW_EBADARG;
	for (; tw_is_cons(target); target = tw_cell(target)->tail) {
		if (*count == TW_ARITY_MAX)
			return TW_EBADARG;
		arguments[(*count)++] = tw_cell(target)->head;
	}
	return 0; /* the tail of the last cell is ignored, as in OTP */
}

static int copy_result(struct tw_arena *arena, struct tw_match_run *run, enum tw_match_verdict verdict,
		       struct tw_match_answer *answer)
{
	struct tw_match_answer a = {.result = tw_atom(TW_ATOM_FALSE)};
	int error = 0;

	if (verdict != TW_MATCH_NO) {
		a.is_return_trace = (run->result.actions & TW_MATCH_RETURN_TRACE) != 0;
		a.is_exception_trace = (run->result.actions & TW_MATCH_EXCEPTION_TRACE) != 0;
		error = tw_term_copy(arena, run->result.message, SIZE_MAX, &a.result);
	}
	if (error)
		return TW_ENOMEM;
	*answer = a;
	return 0;
}

TW_API int tw_match_test(const struct tw_match_program *program, struct tw_term target, struct tw_arena *arena,
			 struct tw_match_answer *answer)
{
	struct tw_match_run run = {.host = &test_host, .scratch_bytes = TEST_SCRATCH_BYTES, .may_allocate = true};
	struct tw_term arguments[TW_ARITY_MAX];
	unsigned count;
	enum tw_match_verdict verdict;
	int error = read_arguments(program, target, arguments, &count);

	if (error)
		return error;
	run.scratch = malloc(TEST_SCRATCH_BYTES);
	if (!run.scratch)
		return TW_ENOMEM;
	verdict = tw_match_run(program, arguments, count, &run);
	error = copy_result(arena, &run, verdict, answer);
	free(run.scratch);
	return error;
}

TW_API bool tw_match_test_words(const struct tw_match_program *program, const int64_t *words, unsigned count)
{
	_Alignas(16) char scratch[TEST_WORDS_SCRATCH_BYTES];
	struct tw_match_run run = {.host = &test_host, .scratch = scratch, .scratch_bytes = sizeof scratch};

	return tw_match_run_raw(program, (const uint64_t *)words, count, &run) != TW_MATCH_NO;
}
