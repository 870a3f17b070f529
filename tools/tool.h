/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tool.h - what the commands share: options, messages, figures, output, JSON.
 *
 * A command is `int NAME(int argc, char **argv)` with argv[0] the command's name; it answers the exit
 * code.  Everything for people goes to standard error, but for the answer that was asked for.
 *
 * Threads  one: the command's own.
 */
#ifndef TW_TOOLS_TOOL_H
#define TW_TOOLS_TOOL_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Exit codes.  The last three are those of env(1): the traced program was not started. */
enum {
	TW_EXIT_OK = 0,
	TW_EXIT_FAILURE = 1,
	TW_EXIT_USAGE = 2,
	TW_EXIT_NOT_STARTED = 125,
	TW_EXIT_NOT_EXECUTABLE = 126,
	TW_EXIT_NOT_FOUND = 127
};

int tw_tool_record(int argc, char **argv);
int tw_tool_print(int argc, char **argv);
int tw_tool_report(int argc, char **argv);
int tw_tool_flame(int argc, char **argv);
int tw_tool_info(int argc, char **argv);
int tw_tool_functions(int argc, char **argv);
int tw_tool_match(int argc, char **argv);
int tw_tool_recover(int argc, char **argv);
int tw_tool_compact(int argc, char **argv);
int tw_tool_stress(int argc, char **argv);

/* ---- options: one table, from which both the parser and --help are made ---- */

struct tw_option {
	int key;	      /* a letter, or a number from 256 on where there is none */
	const char *name;     /* the long name */
	const char *argument; /* its name in the help; NULL: takes none; "[=WORD]": may have one */
	const char *help;     /* a text that is wrapped: \n is a blank there */
};

struct tw_command {
	const char *name;
	const char *arguments;		 /* "[OPTION]... NAME.tw" */
	const char *summary;		 /* wrapped; lines that begin with a blank, and empty ones, begin paragraphs */
	const struct tw_option *options; /* up to the first without a name */
	const char *examples;		 /* lines */
	bool has_command;		 /* another program's command line follows, with options of its own */
	bool has_colour;		 /* takes --color */
};

/* Zeroed at first, but for command, argc and argv. */
struct tw_options {
	const struct tw_command *command;
	int argc;
	char **argv;
	const char *value; /* of the option just answered */
	int index;	   /* of the first argument that is no option, at the end */
	void *table;
};

/* What tw_options_next() answers besides the keys. */
enum { TW_OPTIONS_END = 0, TW_OPTIONS_HELPED = -1, TW_OPTIONS_BAD = -2, TW_OPTIONS_UNHELPED = -3 };

/*
 * tw_options_next - the next option's key.
 *
 * Options end at the first other argument.  --help is printed here (TW_OPTIONS_HELPED; TW_OPTIONS_UNHELPED where that failed); what is
 * wrong with an option has been said (TW_OPTIONS_BAD).  All of them want the command to end: tw_options_exit().
 */
int tw_options_next(struct tw_options *options);
int tw_options_exit(int answer);
/* Says that the arguments are not right, and where to look.  Answers TW_EXIT_USAGE. */
int tw_usage(const struct tw_command *command, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Takes an option into what the command keeps of its options; false when it was wrong, which has been said. */
typedef bool tw_options_take_fn(void *request, int key, const char *value);
/*
 * tw_options_take - all options, and the capture's path behind them.
 *
 * Answers NULL where the command ends here: *code is its exit code then.
 */
const char *tw_options_take(struct tw_options *options, tw_options_take_fn *take, void *request, int *code);
/* The one capture that a reading command wants, the newest of this folder where none is named; NULL after having said what is wrong. */
const char *tw_options_capture(struct tw_options *options);

/* ---- messages ---- */

/* "tracewheel: " and one sentence, on standard error. */
void tw_say(const char *format, ...) __attribute__((format(printf, 1, 2)));
void tw_say_list(const char *format, va_list list);
/* The same, and answers TW_EXIT_FAILURE. */
int tw_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The width of the terminal on a file descriptor, or 80 where there is none (COLUMNS is obeyed). */
int tw_terminal_columns(int fd);
/* Are lines to fit a width: that of a terminal, or COLUMNS? */
bool tw_width_is_wanted(int fd);
/* Is colour wanted on this file descriptor?  As --color says; else a terminal, NO_COLOR unset or empty, TERM not dumb. */
bool tw_colour_is_wanted(int fd);
/* The value of --color: auto, always or never; false for any other. */
bool tw_colour_choose(const char *when);

/* How far a long piece of work is: on standard error, if that is a terminal, after one second. */
struct tw_meter {
	const char *what;
	uint64_t started_ns;
	uint64_t shown_ns;
	bool is_shown;
	bool is_terminal;
};
void tw_meter_start(struct tw_meter *meter, const char *what);
/* Call it often: it looks at the clock and does little else.  total 0: unknown. */
void tw_meter_at(struct tw_meter *meter, uint64_t done, uint64_t total);
void tw_meter_stop(struct tw_meter *meter);

/* What was printed by stdio.  False: it could not be written, which has been said. */
bool tw_flush_stdout(void);

/* ---- figures ---- */

#define TW_FIGURE_BYTES 32

/* All write a string of less than TW_FIGURE_BYTES into text and answer it. */
const char *tw_figure_count(char *text, uint64_t count);   /* 1,234,567 */
const char *tw_figure_short(char *text, double value);	   /* 1.23 M */
const char *tw_figure_bytes(char *text, uint64_t bytes);   /* 12.3 MiB */
const char *tw_figure_seconds(char *text, double seconds); /* 1.23 s, 45.6 ms */
const char *tw_figure_duration(char *text, uint64_t ns);   /* 1.23 us: at most seven characters up to 99,999 s */

/* "64K", "4MiB", "1G": false when it is not a size. */
bool tw_parse_bytes(const char *text, uint64_t *out);
/* "1.5", "200ms", "3us", "2m": seconds unless a unit says otherwise; false when it is not a duration. */
bool tw_parse_duration(const char *text, uint64_t *out_ns);
/* The same, in milliseconds where no unit stands. */
bool tw_parse_milliseconds(const char *text, uint64_t *out_ns);
bool tw_parse_count(const char *text, uint64_t *out);

/* ---- output: standard output in large pieces ---- */

#define TW_OUT_BYTES (256 << 10)
/* What fits behind tw_out_room() without another look. */
#define TW_OUT_SLACK (16 << 10)

struct tw_out {
	int fd;
	int error; /* an errno of the first write that failed; nothing is written after it */
	size_t used;
	uint64_t flushed_bytes; /* that stood here before, and are written */
	char data[TW_OUT_BYTES + TW_OUT_SLACK];
};

/* fd: negative for text that is only made here; what finds no room in it is lost. */
void tw_out_init(struct tw_out *out, int fd);
/* Answers 0 or the errno of the first failure. */
int tw_out_flush(struct tw_out *out);
/* Of any length. */
void tw_out_bytes(struct tw_out *out, const void *data, size_t bytes);
void tw_out_text(struct tw_out *out, const char *text);
void tw_out_format(struct tw_out *out, const char *format, ...) __attribute__((format(printf, 2, 3)));
/*
 * tw_out_mark - where the output stands, for tw_out_cancel().
 *
 * The next TW_OUT_SLACK bytes can be taken back, whatever is flushed between.
 */
uint64_t tw_out_mark(struct tw_out *out);
/* Takes back what was written since a mark.  False: more was written than can be taken back, and all of it stays. */
bool tw_out_cancel(struct tw_out *out, uint64_t mark);
/* The exit code for a command that has written all: says what failed, but for a closed pipe. */
int tw_out_finish(struct tw_out *out);

/* Makes room for TW_OUT_SLACK bytes of the calls below, which do not look. */
static inline void tw_out_room(struct tw_out *out)
{
	if (out->used > TW_OUT_BYTES)
		tw_out_flush(out);
}

static inline void tw_put_char(struct tw_out *out, char c)
{
	out->data[out->used++] = c;
}

/* At most TW_OUT_SLACK / 4 bytes. */
static inline void tw_put(struct tw_out *out, const void *data, size_t bytes)
{
	memcpy(out->data + out->used, data, bytes);
	out->used += bytes;
}

void tw_put_u64(struct tw_out *out, uint64_t value);
/* With leading zeros, `digits` of them at most 20. */
void tw_put_digits(struct tw_out *out, uint64_t value, unsigned digits);
void tw_put_hex(struct tw_out *out, uint64_t value);

/* ---- names from elsewhere: clean.c ---- */

/* What one character may become. */
#define TW_CLEAN_PIECE_BYTES 16

/* Does a character do something other than being seen: a control character, or a mark of writing's direction? */
static inline bool tw_is_unsafe(uint32_t code)
{
	return code < 0x20 || (code >= 0x7f && code < 0xa0) || code == 0x200e || code == 0x200f ||
	       (code >= 0x2028 && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069) || code == 0xfeff;
}
/* The bytes of the character at text, of `left` that are there; 0: it is not UTF-8. */
size_t tw_utf8_next(const char *text, size_t left, uint32_t *code);
/* So many of the first `bytes` of a text that no character is cut. */
static inline size_t tw_utf8_part(const char *text, size_t bytes)
{
	while (bytes && ((unsigned char)text[bytes] & 0xc0) == 0x80)
		bytes--;
	return bytes;
}
/* One character for people, into TW_CLEAN_PIECE_BYTES: as it is, or as \n, \x1b, \u202e.  Answers what it takes. */
size_t tw_clean_piece(const char *text, size_t left, char *out, size_t *out_bytes);
/* A whole name: at most room bytes, and no part of a character. */
size_t tw_clean(const char *text, size_t bytes, char *out, size_t room);
void tw_out_clean(struct tw_out *out, const char *text, size_t bytes);
void tw_out_name(struct tw_out *out, const char *name);
/* Arguments that end in zero bytes, as one would write them in a shell, in about `room` columns. */
void tw_out_command(struct tw_out *out, const char *command, size_t bytes, size_t room);

/* ---- JSON: written in order, never held ---- */

struct tw_json {
	struct tw_out *out;
	unsigned depth;
	bool has_members[16];
	bool is_spread; /* one member a line */
};

/* A name is NULL inside arrays. */
void tw_json_open(struct tw_json *json, const char *name, char bracket);
void tw_json_close(struct tw_json *json, char bracket);
void tw_json_u64(struct tw_json *json, const char *name, uint64_t value);
void tw_json_double(struct tw_json *json, const char *name, double value);
void tw_json_bool(struct tw_json *json, const char *name, bool value);
void tw_json_text(struct tw_json *json, const char *name, const char *value, size_t bytes);
/* A JSON string with its quotes; bytes that are not UTF-8 become U+FFFD. */
void tw_json_quote(struct tw_out *out, const char *text, size_t bytes);

#endif
