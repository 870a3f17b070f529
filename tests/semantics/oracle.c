/* SPDX-License-Identifier: Apache-2.0 */
/*
 * oracle.c - plays the scenarios that are C, and compares each answer with that of a real Erlang system.
 *
 *	semantics_oracle FILE			all of them, alone and with twins
 *	semantics_oracle FILE SCENARIO...	these, and prints the answers
 *	semantics_oracle FILE --module ...	the same, with tracer modules in place of queues
 *
 * Goal    OTP's trace module and this library behave alike where data cannot say how (README.md): handles, races, ports.
 * Method  The file, oracle/c.term, holds lines {Scenario, Answer}, recorded on OTP 29 or taken from the documentation; pids are
 *	   names in them, times are kinds.
 */
#include "../unit/sanitized_help.h"
#include "bed.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LINES_MAX 64

static const struct scenario *const parts[] = {session_scenarios, race_scenarios, port_scenarios};

struct oracle {
	struct tw_arena arena;
	struct tw_term lines[LINES_MAX];
	size_t count;
};

static char *read_oracle(const char *path, struct oracle *oracle)
{
	struct tw_parser parser = {0};
	char *text = lit_read(path, &parser.bytes);

	parser.text = text;
	while (oracle->count < LINES_MAX && tw_parse_next(&parser, &oracle->arena, &oracle->lines[oracle->count]) == 0)
		oracle->count++;
	return text;
}

static struct tw_term recorded(const struct oracle *oracle, const char *name)
{
	for (size_t i = 0; i < oracle->count; i++)
		if (lit_is(tw_term_element(oracle->lines[i], 0), name))
			return tw_term_element(oracle->lines[i], 1);
	return (struct tw_term){0};
}

static bool play(const struct oracle *oracle, const struct scenario *scenario, bool has_twins, bool is_shown,
		 bool has_modules)
{
	struct bed *b = bed_create(has_twins, has_modules);
	struct tw_term result, expected = recorded(oracle, scenario->name);
	bool is_same;

	tro_load();
	result = scenario->play(b);
	is_same = !tw_term_is_none(expected) && tw_term_is_equal(result, expected);
	if (is_shown || !is_same)
		printf("%s%s:\n  %s\n", scenario->name, has_twins ? ", with twins" : "", lit_text(result));
	if (!is_same)
		printf("recorded:\n  %s\n", tw_term_is_none(expected) ? "nothing" : lit_text(expected));
	bed_destroy(b);
	return is_same;
}

static bool is_asked(int count, char **names, const char *name)
{
	for (int i = 0; i < count; i++)
		if (!strcmp(names[i], name))
			return true;
	return count == 0;
}

int main(int argc, char **argv)
{
	static struct oracle oracle;
	unsigned played = 0, failed = 0, number = 0;
	bool has_modules = false;
	char *text;

	if (argc < 2)
		return 2;
	if (argc > 2 && !strcmp(argv[2], "--module")) {
		has_modules = true;
		argv[2] = argv[1];
		argv++;
		argc--;
	}
	/* Under a sanitizer each scenario is played once: with its twin by rings, or by a module, in turn. */
	tw_arena_init(&oracle.arena, SIZE_MAX);
	text = read_oracle(argv[1], &oracle);
	for (size_t part = 0; part < sizeof parts / sizeof *parts; part++)
		for (const struct scenario *scenario = parts[part]; scenario->name; scenario++)
			for (unsigned twins = 0; twins < 2 && is_asked(argc - 2, argv + 2, scenario->name); twins++) {
				if (twins != (number++ / 2 + has_modules) % 2 && test_stride(2) > 1)
					continue;
				played++;
				failed += !play(&oracle, scenario, twins, argc > 2, has_modules);
			}
	printf("%u plays of %zu recorded scenarios, %u answered otherwise\n", played, oracle.count, failed);
	tw_arena_fini(&oracle.arena);
	free(text);
	return failed || !played;
}
