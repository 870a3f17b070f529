/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tool.h - shared by the commands: their table, options, and what they write (output.h).
 *
 * A command is `int NAME(int argc, char **argv)` with argv[0] the command's name; it returns the exit code.
 *
 * Threads  one: the command's own.
 */
#ifndef TW_TOOLS_TOOL_H
#define TW_TOOLS_TOOL_H

#include "views/output/output.h"

#include <limits.h>

int tw_tool_record(int argc, char **argv);
int tw_tool_attach(int argc, char **argv);
int tw_tool_detach(int argc, char **argv);
int tw_tool_snapshot(int argc, char **argv);
int tw_tool_list(int argc, char **argv);
int tw_tool_top(int argc, char **argv);
int tw_tool_print(int argc, char **argv);
int tw_tool_report(int argc, char **argv);
int tw_tool_flame(int argc, char **argv);
int tw_tool_why_late(int argc, char **argv);
int tw_tool_seq(int argc, char **argv);
int tw_tool_merge(int argc, char **argv);
int tw_tool_cut(int argc, char **argv);
int tw_tool_info(int argc, char **argv);
int tw_tool_functions(int argc, char **argv);
int tw_tool_match(int argc, char **argv);
int tw_tool_recover(int argc, char **argv);
int tw_tool_convert(int argc, char **argv);
int tw_tool_compact(int argc, char **argv);

/* What convert has of print: is it the name of a form of timelines? A whole capture in that form: 0 or an error. */
struct tw_capture;
bool tw_tool_has_timeline(const char *name);
int tw_tool_write_timeline(const char *name, struct tw_capture *capture, struct tw_out *out, uint64_t *events);
/*
 * A whole capture as a folder of the Common Trace Format; its parent exists. @is_forced: replaces a folder that is such a trace, and has
 * nothing but its files. Says what fails, and leaves nothing then. Returns an exit code.
 */
int tw_tool_write_ctf(const char *path, bool is_forced, struct tw_capture *capture, uint64_t *events);

/*
 * The part of print that tracewheel-sql and import tracewheel use: the members that `print --format json` has for this event alone, as an
 * object of JSON; to be freed. NULL: there are none, or they do not fit into the memory of an output.
 */
struct tw_capture_event;
char *tw_tool_details(struct tw_capture *capture, const struct tw_capture_event *event, size_t *bytes);

/* ---- options: the parser and --help use the same table ---- */

struct tw_option {
	int key;	      /* a letter, or a number from 256 on if the option has none; or TW_SETS() */
	const char *name;     /* the long name */
	const char *argument; /* the argument's name in the help; NULL: none; "[=WORD]": optional */
	const char *help;     /* wrapped; \n counts as a blank */
};

/*
 * The key of an option that only sets a member of the command's request: a bool, or with an argument a const char *.
 * @letter	0: it has none.
 */
#define TW_SETS(letter, type, member) (1 << 30 | (int)offsetof(type, member) << 8 | (letter))

struct tw_command {
	const char *name;
	const char *arguments;		 /* "[OPTION]... NAME.tw" */
	const char *summary;		 /* wrapped; empty lines, and lines that begin with a blank, begin
					  * paragraphs */
	const struct tw_option *options; /* ends with an entry without a name */
	const char *examples;		 /* lines */
	bool has_command;		 /* the command line of another program follows, with options of its
					  * own */
	bool has_colour;		 /* takes --color */
	bool has_pager;			 /* takes --no-pager, and calls tw_pager_start() */
};

/* Zeroed at first, except command, argc and argv. */
struct tw_options {
	const struct tw_command *command;
	int argc;
	char **argv;
	const char *value; /* of the option just returned */
	int index;	   /* at the end: of the first argument that is no option */
	void *request;	   /* for TW_SETS(); tw_options_read() sets it */
	void *table;
};

/* Results of tw_options_next() other than keys. */
enum { TW_OPTIONS_END = 0, TW_OPTIONS_HELPED = -1, TW_OPTIONS_BAD = -2, TW_OPTIONS_UNHELPED = -3 };

/*
 * tw_options_next - the next option's key.
 *
 * Options end at the first other argument. --help is printed here (TW_OPTIONS_HELPED; TW_OPTIONS_UNHELPED if that
 * failed); errors in options have been reported (TW_OPTIONS_BAD). In all these cases the command ends with
 * tw_options_exit().
 */
int tw_options_next(struct tw_options *options);
int tw_options_exit(int answer);
/* Reports wrong arguments and refers to the help. Returns TW_EXIT_USAGE. */
int tw_usage(const struct tw_command *command, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The same; returns false. */
bool tw_refuse(const struct tw_command *command, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Handles one option of a command; false: it was wrong, which has been reported. */
typedef bool tw_options_take_fn(void *request, int key, const char *value);
/* Handles all options; @take may be NULL if all set a member. False: the command ends here, and *code is its exit code. */
bool tw_options_read(struct tw_options *options, tw_options_take_fn *take, void *request, int *code);
/*
 * tw_options_words - likewise, where options may precede or follow other words.
 *
 * @words	gets these, behind the first @count; with space for argc.  @options	is used up.
 *
 * Returns an exit code with which the command ends, or -1 to go on.
 */
int tw_options_words(struct tw_options *options, tw_options_take_fn *take, void *request, const char **words,
		     uint32_t *count);
/*
 * tw_options_take - handle all options, and the capture's path after them.
 *
 * Returns NULL if the command ends here: *code is then its exit code.
 */
const char *tw_options_take(struct tw_options *options, tw_options_take_fn *take, void *request, int *code);
/* The capture for a reading command, by default the newest in this folder; NULL: an error, which has been reported. */
const char *tw_options_capture(struct tw_options *options);

/* The path of this program's file. Returns the bytes of its folder, without the slash behind it; -1: /proc cannot be read. */
int tw_command_path(char path[PATH_MAX]);
/*
 * Runs tracewheel-NAME of this command's folder, or else of PATH, with these arguments; argv[0] is set. Returns only if that was
 * impossible: the exit code, which has been reported, or TW_EXIT_OK if there is no such program.
 */
int tw_run_program(const char *name, char **argv);

#endif
