/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal:   random specifications mean here what they mean to the Erlang system of this machine.
 * Method: random cases are written to a file; erlang:match_spec_test/3 answers all of them through
 *	   oracle.escript, tw_match_test() answers here, and the answers are compared as terms.  A case that
 *	   differs is made smaller, asking both again, until nothing can be left out, and printed ready
 *	   to paste.
 *
 * match_differential ORACLE [COUNT [SEED]]	20,000 cases, or 5,000 in the short form
 *
 * Exit status: 0 all equal, 1 a difference, 77 skipped because escript is missing.
 */
#include "../unit/sanitized_help.h"
#include "differential.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { EXIT_SKIPPED = 77, REPORTED_MAX = 3, CANDIDATES_MAX = 1500 };

struct text {
	char *bytes;
	size_t count;
};

static char folder[] = "/tmp/tracewheel-match.XXXXXX";

static const char *path_of(const char *name)
{
	static char path[sizeof(folder) + 20];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	return path;
}

static void clean_up(void)
{
	unlink(path_of("cases"));
	unlink(path_of("answers"));
	rmdir(folder);
}

static void die(const char *what)
{
	fprintf(stderr, "match_differential: %s: %s\n", what, strerror(errno));
	exit(EXIT_FAILURE);
}

/* ---- both sides ---- */

static int drain(struct tw_sink *sink)
{
	size_t bytes = (size_t)(sink->at - sink->start);

	sink->at = sink->start;
	return fwrite(sink->start, 1, bytes, sink->context) == bytes ? 0 : TW_EIO;
}

static void print(FILE *file, struct tw_term term)
{
	char buffer[4096];
	struct tw_sink sink = {.start = buffer,
			       .at = buffer,
			       .end = buffer + sizeof(buffer),
			       .drain = drain,
			       .context = file};

	if (tw_term_print(term, TW_PRINT_WRITE, &sink) != 0 || drain(&sink) != 0)
		die("printing a term");
}

static void write_cases(const struct tw_term *cases, uint32_t count)
{
	FILE *file = fopen(path_of("cases"), "w");
	uint32_t i;

	if (!file)
		die(path_of("cases"));
	for (i = 0; i < count; i++) {
		print(file, cases[i]);
		fputs(".\n", file);
	}
	if (fclose(file) != 0)
		die(path_of("cases"));
}

/* escript ORACLE cases > answers */
static void run_oracle(const char *oracle)
{
	pid_t child;
	int status;

	fflush(stdout);
	child = fork();
	if (child < 0)
		die("fork");
	if (child == 0) {
		if (!freopen(path_of("answers"), "w", stdout))
			_exit(EXIT_FAILURE);
		execlp("escript", "escript", oracle, path_of("cases"), (char *)NULL);
		_exit(errno == ENOENT ? EXIT_SKIPPED : EXIT_FAILURE);
	}
	if (waitpid(child, &status, 0) != child)
		die("waitpid");
	if (WIFEXITED(status) && WEXITSTATUS(status) == EXIT_SKIPPED) {
		printf("SKIPPED: there is no escript; Debian's package erlang-base has it\n");
		exit(EXIT_SKIPPED);
	}
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
		fprintf(stderr, "match_differential: the oracle failed\n");
		exit(EXIT_FAILURE);
	}
}

static struct text read_answers(void)
{
	FILE *file = fopen(path_of("answers"), "r");
	struct text text;

	if (!file || fseek(file, 0, SEEK_END) != 0)
		die(path_of("answers"));
	text.count = (size_t)ftell(file);
	rewind(file);
	text.bytes = malloc(text.count + 1);
	if (!text.bytes || fread(text.bytes, 1, text.count, file) != text.count)
		die(path_of("answers"));
	fclose(file);
	return text;
}

/* {ok,Result,Flags} or {error,[]}; {raised,badarg}. */
static struct tw_term answer_here(struct tw_arena *arena, struct tw_term c)
{
	int is_table = tw_term_tuple_count(c) == 3;
	struct tw_match_options options = {.target = is_table ? TW_MATCH_TABLE : TW_MATCH_CALL};
	struct tw_term target = tw_term_element(c, is_table ? 1 : 0);
	struct tw_term tuple[3] = {tw_term_atom_z("raised"), tw_term_atom_z("badarg"), tw_term_nil()};
	struct tw_match_program *program;
	struct tw_match_answer answer;
	int error;

	if (!is_table && tw_term_type(target) != TW_TYPE_CONS && tw_term_type(target) != TW_TYPE_NIL)
		return tw_term_tuple(arena, tuple, 2);
	error = tw_match_compile(tw_term_element(c, is_table ? 2 : 1), &options, &program, NULL);
	if (error) {
		tuple[0] = tw_term_atom_z("error");
		return tw_term_tuple(arena, tuple, 2);
	}
	error = tw_match_test(program, target, arena, &answer);
	tw_match_destroy(program);
	if (error)
		return tw_term_tuple(arena, tuple, 2);
	if (answer.is_exception_trace)
		tuple[2] = tw_term_cons(arena, tw_term_atom_z("exception_trace"), tuple[2]);
	if (answer.is_return_trace)
		tuple[2] = tw_term_cons(arena, tw_term_atom_z("return_trace"), tuple[2]);
	tuple[0] = tw_term_atom_z("ok");
	tuple[1] = answer.result;
	return tw_term_tuple(arena, tuple, 3);
}

static int is_error(struct tw_term answer)
{
	return tw_term_is_same(tw_term_element(answer, 0), tw_term_atom_z("error"));
}

static int is_same_answer(struct tw_term here, struct tw_term there)
{
	return is_error(here) ? is_error(there) : tw_term_is_equal(here, there);
}

/* ---- reports ---- */

/*
 * Asks the oracle about some cases; returns the first that differs, with both answers, or -1.
 *
 * @wrong	counts those that differ.
 */
static int64_t compare(const char *oracle, struct tw_arena *arena, const struct tw_term *cases, uint32_t count,
		       struct tw_term answers[2], uint32_t *wrong)
{
	struct text text;
	struct tw_parser parser = {0};
	struct tw_term here, there;
	int64_t first = -1;
	uint32_t i;

	write_cases(cases, count);
	run_oracle(oracle);
	text = read_answers();
	parser.text = text.bytes;
	parser.bytes = text.count;
	*wrong = 0;
	for (i = 0; i < count; i++) {
		if (tw_parse_next(&parser, arena, &there) != 0) {
			fprintf(stderr, "match_differential: answer %u cannot be read: %s\n", i + 1,
				parser.error.message ? parser.error.message : "the file ends");
			exit(EXIT_FAILURE);
		}
		here = answer_here(arena, cases[i]);
		if (is_same_answer(here, there))
			continue;
		if (first < 0) {
			first = i;
			answers[0] = there;
			answers[1] = here;
		}
		++*wrong;
	}
	free(text.bytes);
	return first;
}

static void shrink(const char *oracle, struct tw_arena *arena, struct tw_term c)
{
	static struct tw_term candidates[CANDIDATES_MAX];
	struct tw_term answers[2];
	int64_t first = 0;
	uint32_t wrong;
	int round;

	compare(oracle, arena, &c, 1, answers, &wrong);
	for (round = 0; round < 60; round++) {
		uint32_t count = smaller_cases(arena, c, candidates, CANDIDATES_MAX);
		struct tw_term found[2];

		first = count ? compare(oracle, arena, candidates, count, found, &wrong) : -1;
		if (first < 0)
			break;
		c = candidates[first];
		answers[0] = found[0];
		answers[1] = found[1];
	}
	print(stdout, c);
	printf(".\n  Erlang: ");
	print(stdout, answers[0]);
	printf("\n  here:   ");
	print(stdout, answers[1]);
	printf("\n");
}

int main(int argc, char **argv)
{
	uint32_t count = argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 10) : test_sample(20000, 4);
	uint64_t seed = argc > 3 ? strtoull(argv[3], NULL, 10) : 20240521;
	struct tw_term *cases = calloc(count, sizeof(*cases));
	struct tw_arena arena;
	struct random r = {.state = seed * UINT64_C(0x9e3779b97f4a7c15) + 1, .arena = &arena};
	struct tw_term answers[2];
	uint32_t wrong = 0;
	uint32_t reported;
	uint32_t i = 0;

	if (argc < 2 || !cases) {
		fprintf(stderr, "usage: match_differential ORACLE [COUNT [SEED]]\n");
		return 2;
	}
	if (!mkdtemp(folder))
		die(folder);
	atexit(clean_up);
	tw_arena_init(&arena, SIZE_MAX);
	for (i = 0; i < count; i++)
		cases[i] = random_case(&r);
	printf("seed %llu, %u cases\n", (unsigned long long)seed, count);
	compare(argv[1], &arena, cases, count, answers, &wrong);
	printf("%u differ\n", wrong);
	for (i = 0, reported = 0; wrong && i < count && reported < REPORTED_MAX; reported++) {
		uint32_t ignored;
		int64_t first = compare(argv[1], &arena, cases + i, count - i, answers, &ignored);

		if (first < 0)
			break;
		shrink(argv[1], &arena, cases[i + first]);
		i += (uint32_t)first + 1;
	}
	tw_arena_fini(&arena);
	free(cases);
	return wrong ? EXIT_FAILURE : EXIT_SUCCESS;
}
