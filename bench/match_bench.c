/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Question: what does a match specification add to an event?  Unit: one event of two machine words, of which the first
 * changes.  `fused' is the comparison that the hit path evaluates inline; `byte_code' the same program in the
 * interpreter; both can reject or accept.
 *
 * Peers: OTP rejects a call by a guard in 270 ns (160 without one), LTTng-UST by a filter in 27.6 ns.
 */
#include "bench/bench.h"

#include "match/match.h"

#include <stdio.h>
#include <string.h>

static struct tw_match_program *program_of(const char *spec)
{
	struct tw_match_program *program;
	struct tw_match_error error;

	if (tw_match_compile_text(spec, strlen(spec), NULL, &program, &error) != 0) {
		fprintf(stderr, "match_bench: %s\n", error.text);
		return NULL;
	}
	return program;
}

static _Alignas(16) char scratch[TW_MATCH_SCRATCH_BYTES_DEFAULT];

/* Runs over words from @first on, so that the guards below see 0, 1, 2, ... or all large ones. */
static void run_raw(struct tw_bench *bench, const char *spec, uint64_t first, bool is_accepted)
{
	struct tw_match_program *program = program_of(spec);
	struct tw_match_run run = {.scratch = scratch, .scratch_bytes = sizeof(scratch)};
	uint64_t args[TW_ARGS_MAX] = {0, 7};
	uint64_t accepted = 0;
	uint64_t i, n;

	if (!program) {
		tw_bench_skip(bench, "it does not compile");
		return;
	}
	for (i = 0, n = tw_bench_start(bench); i < n; i++) {
		args[0] = first + (i & 1023);
		accepted += tw_match_run_raw(program, args, 2, &run) != TW_MATCH_NO;
	}
	tw_bench_stop(bench);
	tw_bench_happened(bench, "acceptances", accepted, is_accepted);
	tw_match_destroy(program);
}

static void run_quick(struct tw_bench *bench, const char *spec, uint64_t first, bool is_accepted)
{
	struct tw_match_program *program = program_of(spec);
	uint64_t args[TW_ARGS_MAX] = {0, 7};
	uint64_t accepted = 0;
	uint64_t i, n;

	if (!program || program->quick.op != TW_MATCH_QUICK_RANGE) {
		tw_bench_skip(bench, "it is not fused");
		return;
	}
	for (i = 0, n = tw_bench_start(bench); i < n; i++) {
		args[0] = first + (i & 1023);
		tw_bench_keep(args);
		accepted += tw_match_quick_test(&program->quick, args);
	}
	tw_bench_stop(bench);
	tw_bench_happened(bench, "acceptances", accepted, is_accepted);
	tw_match_destroy(program);
}

static void run_terms(struct tw_bench *bench, const char *spec, const char *list, bool is_accepted)
{
	struct tw_match_program *program = program_of(spec);
	struct tw_match_run run = {.scratch = scratch, .scratch_bytes = sizeof(scratch)};
	struct tw_arena arena;
	struct tw_term args[2];
	struct tw_term term;
	uint64_t accepted = 0;
	uint64_t i, n;

	tw_arena_init(&arena, SIZE_MAX);
	if (!program || tw_term_parse(&arena, list, strlen(list), &term, NULL) != 0) {
		tw_bench_skip(bench, "it does not compile");
		return;
	}
	args[0] = tw_term_head(term);
	args[1] = tw_term_head(tw_term_tail(term));
	for (i = 0, n = tw_bench_start(bench); i < n; i++)
		accepted += tw_match_run(program, args, 2, &run) != TW_MATCH_NO;
	tw_bench_stop(bench);
	tw_bench_happened(bench, "acceptances", accepted, is_accepted);
	tw_match_destroy(program);
	tw_arena_fini(&arena);
}

#define GUARD "[{['$1','$2'],[{'>','$1',4096}],[]}]"

TW_BENCH(match_fused_rejects)
{
	run_quick(bench, GUARD, 0, false);
}

TW_BENCH(match_fused_accepts)
{
	run_quick(bench, GUARD, 5000, true);
}

TW_BENCH(match_byte_code_rejects)
{
	run_raw(bench, GUARD, 0, false);
}

TW_BENCH(match_byte_code_accepts)
{
	run_raw(bench, GUARD, 5000, true);
}

TW_BENCH(match_bits_reject)
{
	run_raw(bench, "[{['$1','$2'],[{'==',{'band','$1',4096},4096}],[]}]", 0, false);
}

/* A guard that the small loop cannot decide. */
TW_BENCH(match_arithmetic_rejects)
{
	run_raw(bench, "[{['$1','$2'],[{'>',{'+','$1','$2'},4096}],[]}]", 0, false);
}

TW_BENCH(match_eight_guards_accept)
{
	run_raw(bench,
		"[{['$1','$2'],[{is_integer,'$1'},{'>','$1',0},{'<','$1',99999},{'/=','$1',7},{is_integer,'$2'},"
		"{'>','$2',0},{'<','$2',99},{'=:=','$2',7}],[]}]",
		5000, true);
}

#define CLAUSE(n) "{['$1','$2'],[{'==','$1'," #n "}],[{message,false}]},"
#define FIFTEEN   \
	CLAUSE(1) \
	CLAUSE(2) \
	CLAUSE(3) \
	CLAUSE(4) \
	CLAUSE(5) \
	CLAUSE(6) \
	CLAUSE(7) \
	CLAUSE(8) CLAUSE(9) CLAUSE(10) CLAUSE(11) CLAUSE(12) CLAUSE(13) CLAUSE(14) CLAUSE(15)

TW_BENCH(match_sixteen_clauses_last_accepts)
{
	run_raw(bench, "[" FIFTEEN "{['$1','$2'],[{'>','$1',4096}],[]}]", 5000, true);
}

TW_BENCH(match_message_accepts)
{
	run_raw(bench, "[{['$1','$2'],[{'>','$1',4096}],[{message,'$1'}]}]", 5000, true);
}

TW_BENCH(match_terms_head_rejects)
{
	run_terms(bench, "[{[foo,'_'],[],[]}]", "[bar,{a,1}]", false);
}

TW_BENCH(match_terms_tuple_accepts)
{
	run_terms(bench, "[{['_',{a,'$1'}],[{'>','$1',0}],[]}]", "[bar,{a,1}]", true);
}
