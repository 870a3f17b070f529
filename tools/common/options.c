/* SPDX-License-Identifier: Apache-2.0 */
/* options.c - one table of options for the parser and for --help, so that they never differ. */
#include "tools/tool.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

#define OPTIONS_MAX 48
/* Where the explanations start in --help. */
#define HELP_COLUMN 26

struct table {
	struct option longs[OPTIONS_MAX + 2];
	char shorts[2 * OPTIONS_MAX + 4];
};

static struct table *make_table(const struct tw_command *command)
{
	const struct tw_option *options = command->options;
	struct table *table = calloc(1, sizeof *table);
	if (!table)
		return NULL;
	size_t count = 0;
	char *letter = table->shorts;
	if (command->has_command)
		*letter++ = '+'; /* options end where the command begins */
	*letter++ = ':';
	for (; options->name && count < OPTIONS_MAX; options++) {
		table->longs[count++] =
			(struct option){options->name,
					!options->argument            ? no_argument
					: options->argument[0] == '[' ? optional_argument
								      : required_argument,
					NULL, options->key};
		if (options->key < 256) {
			*letter++ = (char)options->key;
			if (options->argument)
				*letter++ = ':';
		}
	}
	table->longs[count] = (struct option){"help", no_argument, NULL, 'h'};
	*letter = 'h';
	return table;
}

static void print_option(const struct tw_option *option)
{
	char head[80];
	int n = option->key < 256 ? snprintf(head, sizeof head, "  -%c, ", option->key)
				  : snprintf(head, sizeof head, "      ");
	n += snprintf(head + n, sizeof head - (size_t)n, "--%s%s%s", option->name,
		      option->argument && option->argument[0] != '[' ? " " : "", option->argument ? option->argument : "");
	printf("%s", head);
	int column = n;
	for (const char *line = option->help; *line;) {
		size_t bytes = strcspn(line, "\n");
		if (column >= HELP_COLUMN) {
			printf("\n");
			column = 0;
		}
		printf("%*s%.*s\n", HELP_COLUMN - column, "", (int)bytes, line);
		column = 0;
		line += bytes + (line[bytes] == '\n');
	}
}

static void print_help(const struct tw_command *command)
{
	printf("Usage: tracewheel %s %s\n%s\n\nOptions:\n", command->name, command->arguments,
	       command->summary);
	for (const struct tw_option *option = command->options; option->name; option++)
		print_option(option);
	print_option(&(struct tw_option){'h', "help", NULL, "this text"});
	printf("\nExamples:\n%s", command->examples);
}

int tw_options_next(struct tw_options *options)
{
	struct table *table = options->table;
	if (!table) {
		table = options->table = make_table(options->command);
		if (!table) {
			tw_say("no memory.");
			return TW_OPTIONS_BAD;
		}
		optind = 0;
	}
	int key = getopt_long(options->argc, options->argv, table->shorts, table->longs, NULL);
	options->value = optarg;
	if (key == -1) {
		options->index = optind;
		free(table);
		options->table = NULL;
		return TW_OPTIONS_END;
	}
	if (key == 'h') {
		print_help(options->command);
		fflush(stdout);
		return TW_OPTIONS_HELPED;
	}
	if (key == ':')
		tw_usage(options->command, "%s wants a value.", options->argv[optind - 1]);
	else if (key == '?')
		tw_usage(options->command, "there is no option %s.",
			 optopt > 0 && optopt < 256 ? (char[]){'-', (char)optopt, 0}
						    : options->argv[optind - 1]);
	else
		return key;
	return TW_OPTIONS_BAD;
}

int tw_options_exit(int answer)
{
	return answer == TW_OPTIONS_HELPED ? TW_EXIT_OK : TW_EXIT_USAGE;
}

int tw_usage(const struct tw_command *command, const char *format, ...)
{
	va_list list;
	va_start(list, format);
	fprintf(stderr, "tracewheel %s: ", command->name);
	tw_say_list(format, list);
	va_end(list);
	fprintf(stderr, "Usage: tracewheel %s %s\n`tracewheel %s --help` explains and has examples.\n",
		command->name, command->arguments, command->name);
	return TW_EXIT_USAGE;
}

const char *tw_options_capture(struct tw_options *options)
{
	int count = options->argc - options->index;
	if (count == 1 && options->argv[options->index][0])
		return options->argv[options->index];
	if (count < 1)
		tw_usage(options->command, "which capture? Give the name of a folder such as sqlite3.tw.");
	else
		tw_usage(options->command, "one capture at a time.");
	return NULL;
}

const char *tw_options_take(struct tw_options *options, tw_options_take_fn *take, void *request, int *code)
{
	int key;
	*code = TW_EXIT_USAGE;
	while ((key = tw_options_next(options)) > 0) {
		if (!take(request, key, options->value))
			return NULL;
	}
	if (key == TW_OPTIONS_END)
		return tw_options_capture(options);
	*code = tw_options_exit(key);
	return NULL;
}
