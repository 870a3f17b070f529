/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal:   byte code with any flaw is refused, or runs in bounds.
 * Method: the first byte picks good code to begin with; every nine bytes that follow replace one instruction
 *	   (or append one).  Code that the verifier accepts runs over arguments and scratch memory of exactly the
 *	   size that they are said to have, under the address sanitizer.
 */
#include "match/match.h"
#include "match/ops.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static const char *const specs[] = {
	"[{['$1','$2'],[{'>','$1',4096}],[]}]",
	"[{[{a,'$1'},['$2'|'$1'],#{k => '$3'}],[{is_list,'$2'}],[{message,'$$'}]}]",
	("[{['$1',foo],[{'orelse',{'==',{'+','$1',1},2},{'andalso',{is_atom,'$1'},true}}],[{return_trace}]},"
	 "{'_',[],[{message,#{a => {{'$_',1.5}}}},{silent,true}]}]"),
	"[{['$1'|'_'],[{'xor',{'and',true,{is_map,'$1'}},false}],[{message,{element,1,{{'$1',<<1,2>>}}}}]}]",
	"[{['$1'|'_'],[{'==',{string_at,'$1'},<<97,98>>},{'>',{'band','$1',255},4}],[]}]",
};

/* Reads every byte of the given string, and no more. */
static bool is_string(struct tw_match_run *run, uint64_t address, const void *text, size_t bytes)
{
	const unsigned char *at = text;
	uint64_t sum = 0;

	if (bytes > TW_MATCH_STRING_BYTES_MAX)
		abort();
	for (size_t i = 0; i < bytes; i++)
		sum += at[i];
	return (sum + address) % 2;
}

static const struct tw_match_host host = {.is_string = is_string};

static struct tw_match_code *base_code(uint8_t which, bool is_table)
{
	struct tw_match_options options = {.target = is_table ? TW_MATCH_TABLE : TW_MATCH_CALL};
	const char *text = is_table ? "[{{a,'$1'},[],['$1']}]" : specs[which % TW_COUNT_OF(specs)];
	struct tw_match_code *code;
	struct tw_arena arena;
	struct tw_term spec;

	tw_arena_init(&arena, SIZE_MAX);
	if (tw_term_parse(&arena, text, strlen(text), &spec, NULL) != 0 ||
	    tw_match_code_build(spec, &options, &code, NULL) != 0)
		abort();
	tw_arena_fini(&arena);
	return code;
}

/* Space for some more instructions than the compiler made. */
static void overlay(struct tw_match_code *code, const uint8_t *data, size_t bytes)
{
	uint32_t capacity = code->insn_count + 32;
	struct tw_match_insn *insns = calloc(capacity, sizeof(*insns));

	if (!insns)
		abort();
	memcpy(insns, code->insns, code->insn_count * sizeof(*insns));
	free(code->insns);
	code->insns = insns;
	for (; bytes >= 9; data += 9, bytes -= 9) {
		uint32_t at = data[0] % capacity;

		if (at >= code->insn_count)
			at = code->insn_count < capacity ? code->insn_count++ : capacity - 1;
		memcpy(&insns[at], data + 1, sizeof(*insns));
		insns[at].op = (uint8_t)(insns[at].op % (TW_OP_COUNT + 1));
	}
}

static void run_exactly(const struct tw_match_program *program, unsigned count)
{
	struct tw_match_run run = {.scratch_bytes = TW_MATCH_SCRATCH_BYTES_MIN, .host = count % 2 ? &host : NULL};
	struct tw_term *terms = malloc((count + 1) * sizeof(*terms));
	uint64_t *words = malloc((count + 1) * sizeof(*words));
	unsigned i;

	run.scratch = malloc(TW_MATCH_SCRATCH_BYTES_MIN);
	if (!terms || !words || !run.scratch)
		abort();
	/* One more word is allocated than there are arguments: it must not be used as one. */
	for (i = 0; i <= count; i++) {
		terms[i] = i < count ? program->constants[i % program->code->constant_count] : tw_word(0x22);
		words[i] = i * UINT64_C(0x123456789abcdef1);
	}
	tw_match_run(program, terms, count, &run);
	if (program->code->target != TW_MATCH_TABLE)
		tw_match_run_raw(program, words, count, &run);
	free(run.scratch);
	free(terms);
	free(words);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	struct tw_match_program *program;
	struct tw_match_code *code;
	unsigned count;
	bool is_table;

	if (bytes == 0)
		return 0;
	is_table = data[0] & 128;
	code = base_code(data[0], is_table);
	overlay(code, data + 1, bytes - 1);
	if (tw_match_verify(code, &program, NULL, NULL) != 0) {
		tw_match_code_destroy(code);
		return 0;
	}
	for (count = is_table ? 1 : 0; count <= (is_table ? 1 : 4); count++)
		run_exactly(program, count);
	tw_match_destroy(program);
	return 0;
}
