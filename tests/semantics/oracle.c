/* SPDX-License-Identifier: Apache-2.0 */
/*
 * oracle.c - plays the scenarios, and compares each answer with that of a real Erlang system.
 *
 *	oracle FOLDER			all of them, alone and with twins
 *	oracle FOLDER SCENARIO...	these, and prints the answers
 *	oracle FOLDER --module ...	the same, with tracer modules in place of queues
 *	oracle FOLDER --list		names, and the differences from Erlang with reasons
 *
 * Goal    OTP's trace module and this library behave alike for sessions, processes, functions and messages.
 * Method  tro.term holds lines {Scenario, Answer} recorded on OTP 29, more.term lines that follow from the
 *	   documentation; pids are names in them, times are kinds.
 */
#include "bed.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct scenario *const parts[] = {session_scenarios,	process_scenarios, function_scenarios,
					       message_scenarios,	match_scenarios,   more_scenarios,
					       more_function_scenarios, line_scenarios,	   line_more_scenarios,
					       port_scenarios,		system_scenarios};

/* Their answers are about queues: they receive from the queue itself, or from a monitor of the system. */
static const char *const of_queues[] = {"s_delivered",
					"s_delivered_order",
					"s_line_146_meta_and_the_tracer",
					"s_system_basic",
					"s_lmq_two_sessions",
					"s_line_188_queue_of_an_actor",
					"s_line_190_exit_of_a_long_queue",
					"s_line_192_collections_of_an_actor"};

struct oracle {
	char *texts[2];
	size_t text_count;
	struct tw_arena arena;
	struct tw_term lines[256];
	size_t count;
};

static void read_oracle(const char *folder, const char *name, struct oracle *oracle)
{
	char path[4096];
	FILE *file;
	struct tw_parser parser = {0};
	long bytes;

	snprintf(path, sizeof path, "%s/%s", folder, name);
	file = fopen(path, "r");
	if (!file || fseek(file, 0, SEEK_END) || (bytes = ftell(file)) <= 0) {
		perror(path);
		exit(2);
	}
	rewind(file);
	parser.text = oracle->texts[oracle->text_count++] = malloc((size_t)bytes);
	parser.bytes = fread((char *)parser.text, 1, (size_t)bytes, file);
	fclose(file);
	while (oracle->count < 256 && tw_parse_next(&parser, &oracle->arena, &oracle->lines[oracle->count]) == 0)
		oracle->count++;
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
	struct bed *b = calloc(1, sizeof *b);
	struct tw_term result, expected = recorded(oracle, scenario->name);
	bool is_same;

	tw_arena_init(&b->arena, SIZE_MAX);
	b->has_twins = has_twins;
	b->has_modules = has_modules;
	b->makes_twins = true;
	b->runtime = runtime_start(&(struct runtime_options){.schedulers = 2});
	b->me = outside_create(b->runtime);
	name_it(b, self_pid(b->me), "me");
	tro_load();
	result = scenario->play(b);
	is_same = scenario->differs || (!tw_term_is_none(expected) && tw_term_is_equal(result, expected));
	if (is_shown || !is_same)
		printf("%s%s:\n  %s\n", scenario->name, has_twins ? ", with twins" : "", lit_text(result));
	if (!is_same)
		printf("recorded:\n  %s\n", tw_term_is_none(expected) ? "nothing" : lit_text(expected));
	close_sessions(b);
	for (size_t i = 0; i < b->program_count; i++)
		tw_match_destroy(b->programs[i]);
	outside_destroy(b->me);
	runtime_stop(b->runtime);
	tw_arena_fini(&b->arena);
	free(b);
	return is_same;
}

static bool is_asked(int count, char **names, const char *name)
{
	for (int i = 0; i < count; i++)
		if (!strcmp(names[i], name))
			return true;
	return count == 0;
}

static bool is_of_queues(const char *name)
{
	for (size_t i = 0; i < sizeof of_queues / sizeof *of_queues; i++)
		if (!strcmp(name, of_queues[i]))
			return true;
	return false;
}

static int list(void)
{
	for (size_t part = 0; part < sizeof parts / sizeof *parts; part++)
		for (const struct scenario *scenario = parts[part]; scenario->name; scenario++)
			printf("%-36s %s\n", scenario->name, scenario->differs ? scenario->differs : "");
	return 0;
}

int main(int argc, char **argv)
{
	static struct oracle oracle;
	unsigned played = 0, failed = 0;
	bool has_modules = false;

	if (argc < 2)
		return 2;
	if (argc > 2 && !strcmp(argv[2], "--module")) {
		has_modules = true;
		argv[2] = argv[1];
		argv++;
		argc--;
	}
	if (argc == 3 && !strcmp(argv[2], "--list"))
		return list();
	tw_arena_init(&oracle.arena, SIZE_MAX);
	read_oracle(argv[1], "tro.term", &oracle);
	read_oracle(argv[1], "more.term", &oracle);
	for (size_t part = 0; part < sizeof parts / sizeof *parts; part++)
		for (const struct scenario *scenario = parts[part]; scenario->name; scenario++)
			for (unsigned twins = 0; twins < 2 && is_asked(argc - 2, argv + 2, scenario->name); twins++) {
				if (has_modules && is_of_queues(scenario->name))
					continue;
				played++;
				failed += !play(&oracle, scenario, twins, argc > 2, has_modules);
			}
	printf("%u plays of %zu recorded scenarios, %u answered otherwise\n", played, oracle.count, failed);
	tw_arena_fini(&oracle.arena);
	free(oracle.texts[0]);
	free(oracle.texts[1]);
	return failed || !played;
}
