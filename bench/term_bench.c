/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Question: how many small terms a second do the parser, the printer and the decoder of terms handle?
 * Unit: one small term; a small term is an element of what tracing prints:
 * {trace,<0.83.0>,call,{lists,seq,[1,10]}} has ten (four atoms, two integers, a pid, two tuples, a list).
 */
#include "bench/bench.h"

#include "term/integer.h"
#include "term/term.h"

#include <string.h>

static const char event_text[] = "{trace,<0.83.0>,call,{lists,seq,[1,10]}}";
#define EVENT_TERMS 10

static const char mixed_text[] =
	"#{name => \"a string\",bytes => <<\"some text\">>,price => 12.75,count => 123456789012,"
	"list => [a,b,c,1,2,3],more => {ok,[],#Ref<0.1.2.3>}}";
#define MIXED_TERMS 24

static char memory[1 << 16];

static struct tw_term read_term(struct tw_arena *arena, const char *text)
{
	struct tw_term term = {0};

	TW_BENCH_MUST(!tw_term_parse(arena, text, strlen(text), &term, NULL));
	return term;
}

static void parse(struct tw_bench *bench, const char *text)
{
	struct tw_arena arena;
	struct tw_term term = {0}, other;
	size_t bytes = strlen(text);
	uint64_t parsed = 0;

	tw_arena_init_fixed(&arena, memory, sizeof(memory));
	for (uint64_t i = 0, n = tw_bench_start(bench); i < n; i++) {
		tw_arena_reset(&arena);
		parsed += tw_term_parse(&arena, text, bytes, &term, NULL) == 0;
		tw_bench_keep(&term);
	}
	tw_bench_stop(bench);
	tw_bench_happened(bench, "terms", parsed, 1);
	other = read_term(&arena, text);
	TW_BENCH_MUST(tw_term_compare(term, other) == 0);
}

static void print(struct tw_bench *bench, const char *text)
{
	struct tw_arena arena;
	struct tw_term term;
	char buffer[1000];
	uint64_t bytes = 0;

	tw_arena_init_fixed(&arena, memory, sizeof(memory));
	term = read_term(&arena, text);
	for (uint64_t i = 0, n = tw_bench_start(bench); i < n; i++) {
		struct tw_sink sink = {.start = buffer, .at = buffer, .end = buffer + sizeof(buffer)};

		tw_term_print(term, TW_PRINT_PRETTY, &sink);
		bytes += (uint64_t)(sink.at - buffer);
		tw_bench_keep(buffer);
	}
	tw_bench_stop(bench);
	tw_bench_happened(bench, "characters", bytes, strlen(text));
}

TW_BENCH(term_parse_event, .per_iteration = EVENT_TERMS)
{
	parse(bench, event_text);
}

TW_BENCH(term_parse_mixed, .per_iteration = MIXED_TERMS)
{
	parse(bench, mixed_text);
}

TW_BENCH(term_print_event, .per_iteration = EVENT_TERMS)
{
	print(bench, event_text);
}

TW_BENCH(term_print_mixed, .per_iteration = MIXED_TERMS)
{
	print(bench, mixed_text);
}

TW_BENCH(term_etf_encode_event, .per_iteration = EVENT_TERMS)
{
	struct tw_arena arena;
	struct tw_term term;
	char buffer[1000];
	struct tw_sink once = {.start = buffer, .at = buffer, .end = buffer + sizeof(buffer)};
	uint64_t bytes = 0, sink_bytes;

	tw_arena_init_fixed(&arena, memory, sizeof(memory));
	term = read_term(&arena, event_text);
	TW_BENCH_MUST(!tw_etf_encode(term, tw_word(0), &once));
	sink_bytes = (uint64_t)(once.at - buffer);
	for (uint64_t i = 0, n = tw_bench_start(bench); i < n; i++) {
		struct tw_sink sink = {.start = buffer, .at = buffer, .end = buffer + sizeof(buffer)};

		TW_BENCH_MUST(!tw_etf_encode(term, tw_word(0), &sink));
		bytes += (uint64_t)(sink.at - buffer);
		tw_bench_keep(buffer);
	}
	tw_bench_stop(bench);
	tw_bench_happened(bench, "bytes", bytes, sink_bytes);
}

TW_BENCH(term_etf_decode_event, .per_iteration = EVENT_TERMS)
{
	struct tw_arena arena;
	char buffer[1000];
	struct tw_sink sink = {.start = buffer, .at = buffer, .end = buffer + sizeof(buffer)};
	uint64_t decoded = 0;
	struct tw_term term;

	tw_arena_init_fixed(&arena, memory, sizeof(memory));
	TW_BENCH_MUST(!tw_etf_encode(read_term(&arena, event_text), tw_word(0), &sink));
	for (uint64_t i = 0, n = tw_bench_start(bench); i < n; i++) {
		tw_arena_reset(&arena);
		decoded += tw_etf_decode(&arena, buffer, (size_t)(sink.at - buffer), NULL, NULL, &term) == 0;
		tw_bench_keep(&term);
	}
	tw_bench_stop(bench);
	tw_bench_happened(bench, "terms", decoded, 1);
}

TW_BENCH(term_compare_event, .per_iteration = EVENT_TERMS)
{
	struct tw_arena arena;
	struct tw_term a, b;
	uint64_t equal = 0;
	int order;

	tw_arena_init_fixed(&arena, memory, sizeof(memory));
	a = read_term(&arena, event_text);
	b = read_term(&arena, event_text);
	for (uint64_t i = 0, n = tw_bench_start(bench); i < n; i++) {
		tw_bench_keep(&a);
		TW_BENCH_MUST(!tw_term_try_compare(a, b, 1, &order));
		equal += order == 0;
	}
	tw_bench_stop(bench);
	tw_bench_happened(bench, "equal", equal, 1);
}

TW_BENCH(term_print_float)
{
	struct tw_arena arena;
	struct tw_term term;
	char buffer[100];
	uint64_t bytes = 0;

	tw_arena_init_fixed(&arena, memory, sizeof(memory));
	term = tw_term_float(&arena, 0.1234567890123456);
	for (uint64_t i = 0, n = tw_bench_start(bench); i < n; i++) {
		struct tw_sink sink = {.start = buffer, .at = buffer, .end = buffer + sizeof(buffer)};

		tw_term_print(term, TW_PRINT_WRITE, &sink);
		bytes += (uint64_t)(sink.at - buffer);
		tw_bench_keep(buffer);
	}
	tw_bench_stop(bench);
	tw_bench_happened(bench, "characters", bytes, strlen("0.1234567890123456"));
}

TW_BENCH(term_hash_event, .per_iteration = EVENT_TERMS)
{
	struct tw_arena arena;
	struct tw_term term;
	uint64_t sum = 0;

	tw_arena_init_fixed(&arena, memory, sizeof(memory));
	term = read_term(&arena, event_text);
	for (uint64_t i = 0, n = tw_bench_start(bench); i < n; i++) {
		tw_bench_keep(&term);
		sum += tw_term_hash(term);
	}
	tw_bench_stop(bench);
	tw_bench_happened(bench, "the term's hash", sum, tw_term_hash(term));
}
