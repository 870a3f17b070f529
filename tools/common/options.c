/* SPDX-License-Identifier: Apache-2.0 */
/* options.c - the parser and --help use one table of options, so that they never differ. */
#include "views/names/names.h"
#include "tools/common/near.h"
#include "tools/common/options_file.h"
#include "tools/common/pager.h"
#include "tools/tool.h"

#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* The column of the explanations in --help. */
#define HELP_COLUMN 26
/* The widest line of --help. */
#define HELP_WIDTH 80
/* Keys of options that commands have without listing them. */
#define KEY_COLOUR   4096
#define KEY_NO_PAGER 4097
/* Of keys that are made by TW_SETS(). */
#define SETS	       (1 << 30)
#define SETS_LETTER(n) ((n)&0xff)
#define SETS_OFFSET(n) (((n) & ~SETS) >> 8)

/* The word of the option that is being handled, for messages; NULL: none is. */
static const char *handled;

struct table {
	char *shorts; /* behind longs */
	struct option longs[];
};

/* 0: the option has none. */
static int letter_of(const struct tw_option *option)
{
	return option->key & SETS ? SETS_LETTER(option->key) : option->key < 256 ? option->key : 0;
}

static struct table *make_table(const struct tw_command *command)
{
	const struct tw_option *options = command->options;
	size_t count = 0, rows = 4;
	while (options[rows - 4].name)
		rows++;
	struct table *table = calloc(1, sizeof *table + rows * sizeof *table->longs + 2 * rows);
	if (!table)
		return NULL;
	table->shorts = (char *)&table->longs[rows];
	char *letter = table->shorts;
	if (command->has_command)
		*letter++ = '+'; /* options end at the traced command */
	*letter++ = ':';
	for (; options->name; options++) {
		int key = letter_of(options);
		table->longs[count++] = (struct option){options->name,
							!options->argument	      ? no_argument
							: options->argument[0] == '[' ? optional_argument
										      : required_argument,
							NULL, options->key};
		if (key) {
			*letter++ = (char)key;
			if (options->argument)
				*letter++ = ':';
		}
	}
	table->longs[count++] = (struct option){"help", no_argument, NULL, 'h'};
	if (command->has_colour)
		table->longs[count++] = (struct option){"color", required_argument, NULL, KEY_COLOUR};
	if (command->has_pager)
		table->longs[count] = (struct option){"no-pager", no_argument, NULL, KEY_NO_PAGER};
	*letter = 'h';
	return table;
}

/* ---- help ---- */

/* Prints text from `column` on, and indents the lines that follow. */
static void print_wrapped(const char *text, size_t bytes, int column, int indent, int width)
{
	bool is_first = true;
	for (size_t at = 0; at < bytes;) {
		size_t word = 0;
		while (at + word < bytes && text[at + word] != ' ' && text[at + word] != '\n')
			word++;
		if (!is_first && column + 1 + (int)word > width) {
			printf("\n%*s", indent, "");
			column = indent;
			is_first = true;
		}
		printf("%s%.*s", is_first ? "" : " ", (int)word, text + at);
		column += !is_first + (int)word;
		is_first = false;
		at += word;
		while (at < bytes && (text[at] == ' ' || text[at] == '\n'))
			at++;
	}
	printf("\n");
}

/*
 * The indentation of continuation lines of a paragraph: "  slot  calls of ..." continues below "calls".
 */
static int hanging_indent(const char *line)
{
	size_t blanks = strspn(line, " "), word = blanks ? strcspn(line + blanks, " \n") : 0,
	       more = strspn(line + blanks + word, " ");
	return blanks && more >= 2 ? (int)(blanks + word + more) : (int)blanks;
}

static bool begins_paragraph(const char *line, bool is_in_list)
{
	return *line == ' ' || *line == '\n' || is_in_list;
}

static void print_paragraphs(const char *text, int width)
{
	while (*text) {
		const char *end = text;
		if (*text == '\n') {
			printf("\n");
			text++;
			continue;
		}
		bool is_in_list = *text == ' ';
		do {
			end += strcspn(end, "\n");
			end += *end == '\n';
		} while (*end && !begins_paragraph(end, is_in_list));
		int indent = hanging_indent(text);
		size_t head = is_in_list ? (size_t)indent : 0;
		printf("%.*s", (int)head, text);
		print_wrapped(text + head, (size_t)(end - text) - head, (int)head, indent, width);
		text = end;
	}
}

static void print_option(const struct tw_option *option, int width)
{
	char head[160];
	int n = letter_of(option) ? snprintf(head, sizeof head, "  -%c, ", letter_of(option))
				  : snprintf(head, sizeof head, "      ");
	n += snprintf(head + n, sizeof head - (size_t)n, "--%s%s%s", option->name,
		      option->argument && option->argument[0] != '[' ? " " : "",
		      option->argument ? option->argument : "");
	/* Words to choose from that are too many for a line go on below the first. */
	const char *bar = n > HELP_WIDTH ? memrchr(head, '|', HELP_WIDTH) : NULL;
	if (bar)
		printf("%.*s\n%*s%s\n%*s", (int)(bar + 1 - head), head, 9 + (int)strlen(option->name), "", bar + 1,
		       HELP_COLUMN, "");
	else if (n >= HELP_COLUMN)
		printf("%s\n%*s", head, HELP_COLUMN, "");
	else
		printf("%-*s", HELP_COLUMN, head);
	print_wrapped(option->help, strlen(option->help), HELP_COLUMN, HELP_COLUMN, width);
}

static const struct tw_option help_option = {'h', "help", NULL, "this text"};
static const struct tw_option colour_option =
	{KEY_COLOUR, "color", "auto|always|never",
	 "colours on terminals (auto, the default), or in pipes as well, for less -R; NO_COLOR turns "
	 "them off"};

static const struct tw_option pager_option =
	{KEY_NO_PAGER, "no-pager", NULL,
	 "write to the terminal itself, and not through TRACEWHEEL_PAGER, PAGER or less"};

static void print_help(const struct tw_command *command)
{
	int width = tw_terminal_columns(STDOUT_FILENO);
	width = isatty(STDOUT_FILENO) && width < HELP_WIDTH ? width : HELP_WIDTH;
	printf("Usage: tracewheel %s %s\n", command->name, command->arguments);
	print_paragraphs(command->summary, width);
	printf("\nOptions:\n");
	for (const struct tw_option *option = command->options; option->name; option++)
		print_option(option, width);
	if (command->has_colour)
		print_option(&colour_option, width);
	if (command->has_pager)
		print_option(&pager_option, width);
	print_option(&help_option, width);
	/* Command lines are not wrapped, so that they can be copied. */
	printf("\nExamples:\n");
	for (const char *line = command->examples; *line;) {
		size_t bytes = strcspn(line, "\n");
		if (*line == ' ')
			printf("%.*s\n", (int)bytes, line);
		else
			print_wrapped(line, bytes = strlen(line), 0, 0, width);
		line += bytes + (line[bytes] == '\n');
	}
}

/* ---- unknown options ---- */

/* An option's name as it was written, without its value. */
static size_t written_name(const char *word, char *name, size_t capacity)
{
	size_t dashes = strspn(word, "-"), bytes = strcspn(word + dashes, "=");
	snprintf(name, capacity, "%.*s", (int)bytes, word + dashes);
	return dashes;
}

/* Suggests options that may have been meant: a similar name, or the names with this prefix. */
static void say_unknown(const struct tw_options *options, const struct table *table, const char *word)
{
	char name[64], list[200] = "";
	const char *taken = NULL;
	struct tw_near near = {.wanted = name};
	size_t count = 0, used = 0;
	if (optopt > 0 && optopt < 256 && written_name(word, name, sizeof name) < 2) {
		tw_usage(options->command, "there is no option -%c.", optopt);
		return;
	}
	written_name(word, name, sizeof name);
	for (const struct option *option = table->longs; option->name; option++) {
		tw_near_see(&near, option->name);
		if (strcmp(option->name, name) == 0)
			taken = option->name;
		if (!*name || strncmp(option->name, name, strlen(name)) != 0 || used >= sizeof list)
			continue;
		used += (size_t)snprintf(list + used, sizeof list - used, "%s--%s", count ? ", " : "", option->name);
		count++;
	}
	if (taken)
		tw_usage(options->command, "--%s takes no value.", taken);
	else if (count > 1)
		tw_usage(options->command, "--%s may be one of %s.", name, list);
	else if (*near.best)
		tw_usage(options->command, "there is no option --%s; did you mean --%s?", name, near.best);
	else
		tw_usage(options->command, "there is no option --%s.", name);
}

/* Sets the member of an option that does nothing else; false: it is another. */
static bool set_member(const struct tw_options *options, int key)
{
	const struct tw_option *option = options->command->options;
	while (option->name && option->key != key && letter_of(option) != key)
		option++;
	if (!(option->key & SETS))
		return false;
	char *member = (char *)options->request + SETS_OFFSET(option->key);
	if (option->argument)
		*(const char **)member = options->value;
	else
		*(bool *)member = true;
	return true;
}

/* Handles the options of all commands, and those that set a member; false: the command must handle it. */
static bool take_own(struct tw_options *options, int key, int *answer)
{
	if (key > 0 && set_member(options, key))
		return true;
	if (key == 'h') {
		print_help(options->command);
		*answer = tw_flush_stdout() ? TW_OPTIONS_HELPED : TW_OPTIONS_UNHELPED;
		return true;
	}
	if (key != KEY_COLOUR && key != KEY_NO_PAGER)
		return false;
	*answer = 0;
	if (key == KEY_NO_PAGER) {
		tw_pager_forbid();
		return true;
	}
	if (!tw_colour_choose(options->value)) {
		tw_usage(options->command, "--color is auto, always or never, not '%s'.", options->value);
		*answer = TW_OPTIONS_BAD;
	}
	return true;
}

/* An option of the command, or the end of options, stands where the value of another belongs: a value was forgotten. */
static bool is_forgotten(const struct tw_options *options, const struct table *table)
{
	const char *value = options->value;
	if (!value || value != options->argv[optind - 1] || strncmp(value, "--", 2) != 0)
		return false;
	size_t bytes = strcspn(value + 2, "=");
	if (!bytes)
		return true;
	for (const struct option *option = table->longs; option->name; option++) {
		if (strlen(option->name) == bytes && strncmp(option->name, value + 2, bytes) == 0)
			return true;
	}
	return false;
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
	int key, answer = 0;
	do {
		key = getopt_long(options->argc, options->argv, table->shorts, table->longs, NULL);
		options->value = optarg;
		handled = optind > 0 && optind <= options->argc ? options->argv[optind - 1] : NULL;
		if (key != '?' && key != ':' && is_forgotten(options, table)) {
			optind--;
			key = ':';
		}
	} while (take_own(options, key, &answer) && !answer);
	if (!answer && key != -1 && key != ':' && key != '?')
		return key;
	if (!answer && key == ':')
		tw_usage(options->command, "%s wants a value.", options->argv[optind - 1]);
	else if (!answer && key == '?')
		say_unknown(options, table, options->argv[optind - 1]);
	/* The end of the options. */
	options->index = optind;
	handled = NULL;
	free(table);
	options->table = NULL;
	return answer ? answer : key == -1 ? TW_OPTIONS_END : TW_OPTIONS_BAD;
}

int tw_options_exit(int answer)
{
	return answer == TW_OPTIONS_HELPED     ? TW_EXIT_OK
	       : answer == TW_OPTIONS_UNHELPED ? TW_EXIT_FAILURE
					       : TW_EXIT_USAGE;
}

static void usage(const struct tw_command *command, const char *format, va_list list)
{
	char place[PATH_MAX];
	fprintf(stderr, "tracewheel %s: %s", command->name, tw_options_file_place(handled, place, sizeof place));
	tw_say_list(format, list);
	fprintf(stderr, "Usage: tracewheel %s %s\n`tracewheel %s --help` explains and has examples.\n", command->name,
		command->arguments, command->name);
}

int tw_usage(const struct tw_command *command, const char *format, ...)
{
	va_list list;
	va_start(list, format);
	usage(command, format, list);
	va_end(list);
	return TW_EXIT_USAGE;
}

bool tw_refuse(const struct tw_command *command, const char *format, ...)
{
	va_list list;
	va_start(list, format);
	usage(command, format, list);
	va_end(list);
	return false;
}

const char *tw_options_capture(struct tw_options *options)
{
	int count = options->argc - options->index;
	if (count == 1 && options->argv[options->index][0])
		return options->argv[options->index];
	static char newest[NAME_MAX + 1];
	struct stat input;
	/* The user may have left out the - of a stream. */
	if (count < 1 && fstat(STDIN_FILENO, &input) == 0 && S_ISFIFO(input.st_mode)) {
		tw_usage(options->command, "which capture? Its name, or - for the stream on standard input.");
		return NULL;
	}
	if (count < 1 && tw_names_newest(newest, sizeof newest)) {
		tw_say("%s, the newest capture here.", newest);
		return newest;
	}
	if (count < 1)
		tw_usage(options->command,
			 "which capture? There is none in this folder; `tracewheel record` makes one.");
	else if (count == 1)
		tw_usage(options->command, "which capture? Its name is empty.");
	else
		tw_usage(options->command, "one capture at a time, not %d.", count);
	return NULL;
}

bool tw_options_read(struct tw_options *options, tw_options_take_fn *take, void *request, int *code)
{
	int key;
	options->request = request;
	*code = TW_EXIT_USAGE;
	while ((key = tw_options_next(options)) > 0) {
		if (!take(request, key, options->value))
			return false;
	}
	if (key != TW_OPTIONS_END)
		*code = tw_options_exit(key);
	return key == TW_OPTIONS_END;
}

int tw_options_words(struct tw_options *options, tw_options_take_fn *take, void *request, const char **words,
		     uint32_t *count)
{
	int code;
	while (tw_options_read(options, take, request, &code)) {
		if (options->index >= options->argc)
			return -1;
		words[(*count)++] = options->argv[options->index];
		options->argc -= options->index;
		options->argv += options->index;
	}
	return code;
}

const char *tw_options_take(struct tw_options *options, tw_options_take_fn *take, void *request, int *code)
{
	return tw_options_read(options, take, request, code) ? tw_options_capture(options) : NULL;
}
