/* SPDX-License-Identifier: Apache-2.0 */
/*
 * main.c - the command `tracewheel`: one table of commands. As with git, a command may also be a program of its own:
 * `tracewheel NAME` runs `tracewheel-NAME`.
 */
#include "tools/attach/as_user.h"
#include "tools/common/near.h"
#include "tools/common/options_file.h"
#include "tools/tool.h"

#include "tracewheel/symbols.h"

#include <stdio.h>

struct row {
	const char *name;
	const char *summary;
	int (*run)(int argc, char **argv); /* NULL: the program tracewheel-NAME */
};

static const struct row rows[] = {
	{"record", "run a program and record its calls", tw_tool_record},
	{"attach", "record a program that runs already", tw_tool_attach},
	{"detach", "end what attach has begun; the program goes on", tw_tool_detach},
	{"snapshot", "write what a flight recorder holds as a capture", tw_tool_snapshot},
	{"list", "who records what on this machine, and dormant agents", tw_tool_list},
	{"top", "calls by function and thread, while a program runs", tw_tool_top},
	{"report", "times and calls by function, caller and thread; messages; losses", tw_tool_report},
	{"why-late", "the slowest messages, and what delayed each of them", tw_tool_why_late},
	{"seq", "follow one request through processes, threads and nodes", tw_tool_seq},
	{"print", "every event in order of time: text, Erlang terms, JSON", tw_tool_print},
	{"flame", "a flame graph: one page for a browser", tw_tool_flame},
	{"merge", "merge captures of several nodes into one, with one clock", tw_tool_merge},
	{"cut", "write a part of a capture as one of its own, to send or to keep", tw_tool_cut},
	{"info", "summarise a capture", tw_tool_info},
	{"functions", "list what can be traced in a program, and how", tw_tool_functions},
	{"convert", "convert to files of viewers, to and from those of Erlang's tools", tw_tool_convert},
	{"compact", "make entry sleds cost less while not traced", tw_tool_compact},
	{"recover", "complete a capture that was cut off", tw_tool_recover},
	{"match", "try a match specification or a condition", tw_tool_match},
	{"ship", "store segments and their summaries in a folder or a bucket", NULL},
	{"fleet", "ask the summaries of many machines, in a folder or bucket", NULL},
	{"sql", "ask a capture in SQL; write it as an SQLite database", NULL},
	{"stress", "prove changes under load on this machine", NULL},
};

static void print_help(FILE *to)
{
	fprintf(to, "tracewheel - what did my program call, with what, how long did it take, and what\n"
		    "             came before? For native Linux programs as they are\n\n"
		    "Usage: tracewheel COMMAND [OPTION]... [ARGUMENT]...\n\nCommands:\n");
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		fprintf(to, "  %-11s %s\n", rows[i].name, rows[i].summary);
	fprintf(to, "\n"
		    "  --help      this text; `tracewheel COMMAND --help` explains one command\n"
		    "  --version   version and build\n\n"
		    "COMMAND @FILE takes options from a file: words as in a shell, # comments.\n"
		    "Any other COMMAND is the program tracewheel-COMMAND, in the folder of this\n"
		    "command or in PATH.\n\n"
		    "Examples:\n"
		    "  tracewheel record -t 'libsqlite3:_' -- sqlite3 app.db < work.sql\n"
		    "  tracewheel report sqlite3.tw\n"
		    "  tracewheel print --from 1.5 --to 1.6 sqlite3.tw\n\n"
		    "Exit codes: 0, 1 failure, 2 usage, 125 to 127 the program could not be started;\n"
		    "record passes on the program's own (128 + signal when it was killed).\n");
}

static void print_version(void)
{
	printf("tracewheel " TW_VERSION " (Linux x86-64; LZ4, XXH3; built by "
#if defined __clang__
	       "clang " __clang_version__
#else
	       "gcc " __VERSION__
#endif
	       ")\n");
}

static int say_missing(const char *name, const char *best)
{
	tw_say(*best ? "there is no command '%s', and no program tracewheel-%s; did you mean %s?"
		     : "there is no command '%s', and no program tracewheel-%s in the folder of this command or in PATH.",
	       name, name, best);
	fputs("`tracewheel --help` lists the commands.\n", stderr);
	return TW_EXIT_USAGE;
}

int main(int argc, char **argv)
{
	const char *word = argc > 1 ? argv[1] : "";
	char *help[] = {argv[0], argc > 2 ? argv[2] : NULL, "--help", NULL};
	/* `tracewheel help record` is `tracewheel record --help`. */
	if (strcmp(word, "help") == 0 && argc > 2) {
		word = argv[2];
		argc = 3;
		argv = help;
	}
	if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0 || strcmp(word, "help") == 0) {
		print_help(stdout);
		return tw_flush_stdout() ? TW_EXIT_OK : TW_EXIT_FAILURE;
	}
	if (strcmp(word, "--version") == 0 || strcmp(word, "version") == 0) {
		print_version();
		return tw_flush_stdout() ? TW_EXIT_OK : TW_EXIT_FAILURE;
	}
	if (argc > 2 && !tw_options_files(&argc, &argv))
		return TW_EXIT_USAGE;
	struct tw_near near = {.wanted = word};
	const struct row *row = rows;
	while (row < rows + sizeof rows / sizeof *rows && strcmp(word, row->name) != 0)
		tw_near_see(&near, row++->name);
	tw_symbols_map_files();
	tw_as_user_arguments(argv);
	bool is_known = row < rows + sizeof rows / sizeof *rows;
	if (is_known && row->run)
		return row->run(argc - 1, argv + 1);
	int code = tw_run_program(word, argv + 1);
	if (code != TW_EXIT_OK)
		return code;
	if (is_known)
		return tw_fail(
			"%s is the program tracewheel-%s, which is neither in the folder of this command nor in PATH; install "
			"them together%s.",
			word, word,
			strcmp(word, "sql") == 0 ? " (it is built where libsqlite3-dev is installed)"
			: strcmp(word, "ship") == 0 || strcmp(word, "fleet") == 0
				? " (package tracewheel-fleet; it is built where libcurl4-openssl-dev, libjansson-dev, libssl-dev "
				  "and libzstd-dev are installed)"
				: "");
	if (*word)
		return say_missing(word, near.best);
	print_help(stderr);
	return TW_EXIT_USAGE;
}
