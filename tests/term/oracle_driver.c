/* SPDX-License-Identifier: Apache-2.0 */
/*
 * oracle_driver.c - the C side of oracle.escript, which documents the files.
 *
 * Ends with 1 and a line about the first term that differs.
 */
#include "term/integer.h"
#include "term/term.h"

#include <stdio.h>
#include <stdlib.h>

struct bytes {
	char *data;
	size_t count;
};

static void die(size_t index, const char *what, struct bytes expected, struct bytes got)
{
	printf("term %zu: %s\n  expected %.*s\n  got      %.*s\n", index, what, (int)expected.count, expected.data,
	       (int)got.count, got.data);
	exit(1);
}

static void check(bool is_good, size_t index, const char *what, struct tw_term term)
{
	static char text[100000];

	if (is_good)
		return;
	tw_term_format(term, TW_PRINT_PRETTY, text, sizeof(text));
	printf("term %zu: %s: %s\n", index, what, text);
	exit(1);
}

static struct bytes load(const char *directory, const char *name)
{
	struct bytes file = {0};
	char path[4096];
	FILE *stream;
	long size;

	snprintf(path, sizeof(path), "%s/%s", directory, name);
	stream = fopen(path, "rb");
	if (!stream || fseek(stream, 0, SEEK_END) != 0 || (size = ftell(stream)) < 0)
		exit(2);
	rewind(stream);
	file.data = malloc((size_t)size + 1);
	file.count = (size_t)size;
	if (!file.data || fread(file.data, 1, file.count, stream) != file.count)
		exit(2);
	fclose(stream);
	return file;
}

static unsigned take_byte(struct bytes *from)
{
	if (from->count < 1)
		exit(2);
	from->count--;
	return (unsigned char)*from->data++;
}

static struct bytes take_sized(struct bytes *from)
{
	size_t count = 0;
	struct bytes taken;
	int i;

	for (i = 0; i < 4; i++)
		count = count << 8 | take_byte(from);
	if (count > from->count)
		exit(2);
	taken = (struct bytes){from->data, count};
	from->data += count;
	from->count -= count;
	return taken;
}

static void put_sized(FILE *stream, const char *data, size_t count)
{
	unsigned char head[] = {(unsigned char)(count >> 24), (unsigned char)(count >> 16), (unsigned char)(count >> 8),
				(unsigned char)count};

	if (fwrite(head, 1, 4, stream) != 4 || fwrite(data, 1, count, stream) != count)
		exit(2);
}

/* ---- terms ---- */

static char output[8 << 20];

static void check_text(struct tw_arena *arena, size_t index, struct tw_term term, enum tw_print_form form,
		       struct bytes expected)
{
	struct tw_sink sink = {.start = output, .at = output, .end = output + sizeof(output)};
	struct tw_parse_error error;
	struct tw_term again;
	struct bytes got;
	int result = tw_term_print(term, form, &sink);

	check(result == 0, index, "print fails", term);
	got = (struct bytes){output, (size_t)(sink.at - output)};
	if (got.count != expected.count || memcmp(got.data, expected.data, got.count) != 0)
		die(index, "the text differs", expected, got);
	result = tw_term_parse(arena, got.data, got.count, &again, &error);
	if (result == TW_EBADARG)
		printf("column %u: %s\n", error.column, error.message);
	check(result == 0, index, "parse fails", term);
	check(tw_term_is_equal(term, again), index, "parse reads another term", again);
	check(tw_term_hash(term) == tw_term_hash(again), index, "equal terms have different hashes", term);
}

static int sign(int order)
{
	return (order > 0) - (order < 0);
}

static void check_order(size_t index, struct tw_term a, struct tw_term b, const unsigned expected[2])
{
	int exact = sign(tw_term_compare_exact(a, b));

	check(sign(tw_term_compare(a, b)) == (int)expected[0] - 1, index, "order", b);
	check(sign(tw_term_compare(b, a)) == 1 - (int)expected[0], index, "order, turned", b);
	check(expected[1] == 3 ? exact != 0 : exact == (int)expected[1] - 1, index, "exact order", b);
	check(sign(tw_term_compare_exact(b, a)) == -exact, index, "exact order, turned", b);
}

static void check_copy(size_t index, struct tw_term term)
{
	struct tw_arena arena;
	struct tw_term copy;

	tw_arena_init(&arena, SIZE_MAX);
	check(tw_term_copy(&arena, term, SIZE_MAX, &copy) == 0, index, "copy fails", term);
	check(tw_term_is_equal(term, copy), index, "the copy differs", copy);
	tw_arena_fini(&arena);
}

static void write_back(FILE *back, size_t index, struct tw_term term)
{
	struct tw_sink sink = {.start = output, .at = output, .end = output + sizeof(output)};

	check(tw_etf_encode(term, tw_word(0), &sink) == 0, index, "encode fails", term);
#ifdef TW_SPOILED_TERM
	/* The negative control: one bit of one term. */
	if (index == TW_SPOILED_TERM)
		sink.at[-1] ^= 1;
#endif
	put_sized(back, output, (size_t)(sink.at - output));
	sink.at = output;
	check(tw_term_print(term, TW_PRINT_PRETTY, &sink) == 0, index, "print fails", term);
	put_sized(back, output, (size_t)(sink.at - output));
}

static size_t check_terms(const char *directory)
{
	struct bytes file = load(directory, "terms"), rest = file;
	struct tw_term before = tw_word(0);
	struct tw_arena arenas[2];
	char path[4096];
	size_t index;
	FILE *back;

	snprintf(path, sizeof(path), "%s/back", directory);
	back = fopen(path, "wb");
	if (!back)
		exit(2);
	tw_arena_init(&arenas[0], SIZE_MAX);
	tw_arena_init(&arenas[1], SIZE_MAX);
	for (index = 0; rest.count > 0; index++) {
		struct tw_arena *arena = &arenas[index % 2];
		bool is_readable = take_byte(&rest);
		unsigned order[2] = {take_byte(&rest), take_byte(&rest)};
		struct bytes etf = take_sized(&rest), written = take_sized(&rest), pretty = take_sized(&rest);
		struct tw_term term = tw_word(0);
		int result;

		tw_arena_reset(arena);
		result = tw_etf_decode(arena, etf.data, etf.count, NULL, NULL, &term);
		if (result != 0)
			printf("term %zu: decode answers %d\n", index, result);
		check(result == 0, index, "decode fails", term);
		check_order(index, index ? before : term, term, order);
		if (is_readable) {
			check_text(arena, index, term, TW_PRINT_WRITE, written);
			check_text(arena, index, term, TW_PRINT_PRETTY, pretty);
		}
		check_copy(index, term);
		write_back(back, index, term);
		before = term;
	}
	fclose(back);
	tw_arena_fini(&arenas[0]);
	tw_arena_fini(&arenas[1]);
	free(file.data);
	return index;
}

/* ---- arithmetic ---- */

static const struct {
	const char *name;
	enum tw_integer_op op;
} binary_ops[] = {
	{"+", TW_INTEGER_ADD},	 {"-", TW_INTEGER_SUB},	    {"*", TW_INTEGER_MUL},   {"div", TW_INTEGER_DIV},
	{"rem", TW_INTEGER_REM}, {"band", TW_INTEGER_BAND}, {"bor", TW_INTEGER_BOR}, {"bxor", TW_INTEGER_BXOR},
	{"bsl", TW_INTEGER_BSL}, {"bsr", TW_INTEGER_BSR},
};

static int to_float(struct tw_arena *arena, struct tw_term a, struct tw_term *out)
{
	double value;
	int error = tw_integer_to_double(a, &value);

	if (error)
		return error;
	*out = tw_term_float(arena, value);
	return 0;
}

static int compute(struct tw_arena *arena, const char *op, struct tw_term a, struct tw_term b, struct tw_term *out)
{
	static const char *const roundings[] = {"round", "trunc", "floor", "ceil"};
	size_t i;

	for (i = 0; i < TW_COUNT_OF(binary_ops); i++) {
		if (strcmp(binary_ops[i].name, op) == 0)
			return tw_integer_binary(arena, binary_ops[i].op, a, b, out);
	}
	for (i = 0; i < TW_COUNT_OF(roundings); i++) {
		if (strcmp(roundings[i], op) == 0)
			return tw_integer_from_double(arena, tw_float_value(a), (enum tw_rounding)i, out);
	}
	if (strcmp(op, "abs") == 0)
		return tw_integer_abs(arena, a, out);
	if (strcmp(op, "bnot") == 0)
		return tw_integer_bnot(arena, a, out);
	return to_float(arena, a, out);
}

static size_t check_sums(const char *directory)
{
	struct bytes file = load(directory, "sums"), rest = file;
	static char memory[64 << 10];
	struct tw_arena arena;
	size_t index;

	for (index = 0; rest.count > 0; index++) {
		struct bytes etf = take_sized(&rest);
		struct tw_term sum, got, expected;
		int error;

		tw_arena_init_fixed(&arena, memory, sizeof(memory));
		check(tw_etf_decode(&arena, etf.data, etf.count, NULL, NULL, &sum) == 0, index, "decode", tw_word(0));
		expected = tw_term_element(sum, 3);
		error = compute(&arena, tw_term_atom_name(tw_term_element(sum, 0), NULL), tw_term_element(sum, 1),
				tw_term_element(sum, 2), &got);
		if (error)
			got = tw_atom(TW_ATOM_ERROR);
		check(tw_term_is_equal(got, expected), index, "sum",
		      tw_term_tuple(&arena, (struct tw_term[]){sum, got}, 2));
	}
	free(file.data);
	return index;
}

int main(int argc, char **argv)
{
	size_t terms, sums;

	if (argc != 2)
		return 2;
	terms = check_terms(argv[1]);
	sums = check_sums(argv[1]);
	printf("%zu terms and %zu sums checked\n", terms, sums);
	return 0;
}
