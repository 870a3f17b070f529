/* SPDX-License-Identifier: Apache-2.0 */
/*
 * output.h - messages, figures, text in large pieces, untrusted names, JSON.
 *
 * Messages go to standard error; only the requested result goes to standard output.
 *
 * Threads  one: the command's own.
 */
#ifndef TW_VIEWS_OUTPUT_H
#define TW_VIEWS_OUTPUT_H

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

/* ---- messages ---- */

/* Prints "tracewheel: " and one sentence on standard error. */
void tw_say(const char *format, ...) __attribute__((format(printf, 1, 2)));
void tw_say_list(const char *format, va_list list);
/* The same; returns TW_EXIT_FAILURE. */
int tw_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* The same; returns false. */
bool tw_complain(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The width of the terminal on a file descriptor, or 80 if it is none (COLUMNS takes precedence). */
int tw_terminal_columns(int fd);
/* Must lines fit a width, that of a terminal or COLUMNS? */
bool tw_width_is_wanted(int fd);
/*
 * Is colour wanted on this file descriptor? As --color says; by default on a terminal, if NO_COLOR is unset or empty
 * and TERM is not dumb.
 */
bool tw_colour_is_wanted(int fd);
/* The value of --color: auto, always or never; false for any other. */
bool tw_colour_choose(const char *when);

/* Shows the progress of a long operation: on standard error, if that is a terminal, after one second. */
struct tw_meter {
	const char *what;
	uint64_t started_ns;
	uint64_t shown_ns;
	bool is_shown;
	bool is_terminal;
};
void tw_meter_start(struct tw_meter *meter, const char *what);
/* Cheap enough to be called often: reads the clock and does little else. total 0: unknown. */
void tw_meter_at(struct tw_meter *meter, uint64_t done, uint64_t total);
void tw_meter_stop(struct tw_meter *meter);

/* Flushes stdio's output. False: it could not be written, which has been reported. */
bool tw_flush_stdout(void);

/* ---- figures ---- */

#define TW_FIGURE_BYTES 64

/* Each writes less than TW_FIGURE_BYTES bytes into text and returns it. */
const char *tw_figure_count(char *text, uint64_t count); /* 1,234,567 */
/* A count and the words behind it, of at most 30 bytes: 1 event was, 1,234 events were. */
const char *tw_figure_of(char *text, uint64_t count, const char *one, const char *more);
const char *tw_figure_short(char *text, double value);	   /* 1.23 M */
const char *tw_figure_bytes(char *text, uint64_t bytes);   /* 12.3 MiB */
const char *tw_figure_seconds(char *text, double seconds); /* 1.23 s, 45.6 ms */
const char *tw_figure_duration(char *text, uint64_t ns);   /* 1.23 us: at most seven characters up to 99,999 s */
const char *tw_figure_moment(char *text, uint64_t ns);	   /* 1.234567890: seconds, as --from takes them */

/* "64K", "4MiB", "1G": false if it is not a size. */
bool tw_parse_bytes(const char *text, uint64_t *out);
/* "1.5", "200ms", "3us", "2m": in seconds without a unit; false if it is not a duration. */
bool tw_parse_duration(const char *text, uint64_t *out_ns);
/* The same, in milliseconds without a unit. */
bool tw_parse_milliseconds(const char *text, uint64_t *out_ns);
bool tw_parse_count(const char *text, uint64_t *out);
/* "250000", "10M", "2k", of a rate "1M/s" as well: 1 at least, with decimal factors. */
bool tw_parse_decimal(const char *text, bool is_rate, uint64_t *out);

/* ---- output: standard output in large pieces ---- */

#define TW_OUT_BYTES (256 << 10)
/* The bytes that may be written after tw_out_reserve() without another check. */
#define TW_OUT_SLACK (16 << 10)

struct tw_out {
	int fd;
	int error; /* an errno of the first failed write; nothing is written after it */
	size_t used;
	uint64_t flushed_bytes; /* bytes written before those in data */
	bool is_quoted;		/* JSON in a page: see page.h */
	char data[TW_OUT_BYTES + TW_OUT_SLACK];
};

/* fd: negative for text that stays in memory; text that does not fit is lost. */
void tw_out_init(struct tw_out *out, int fd);
/* CLOCK_MONOTONIC. Signal handlers: yes. */
uint64_t tw_now_ns(void);

/* The next output that is made for standard output begins with this text. Borrows: a constant. */
void tw_out_before(const char *text);
/* Returns 0 or the errno of the first failure. */
int tw_out_flush(struct tw_out *out);
/* Any length is possible. */
void tw_out_bytes(struct tw_out *out, const void *data, size_t bytes);
void tw_out_text(struct tw_out *out, const char *text);
void tw_out_format(struct tw_out *out, const char *format, ...) __attribute__((format(printf, 2, 3)));
/*
 * tw_out_mark - the present position of the output, for tw_out_cancel().
 *
 * The next TW_OUT_SLACK bytes can be removed, even if the output is flushed in between.
 */
uint64_t tw_out_mark(struct tw_out *out);
/* Removes the output after a mark. False: there is more than can be removed, and all of it stays. */
bool tw_out_cancel(struct tw_out *out, uint64_t mark);
/* The exit code of a command that has written everything: reports a failed write, except to a closed pipe. */
int tw_out_finish(struct tw_out *out);
/* The same of a file that was opened for it, which is closed; if it could not be written to its end it is removed. */
int tw_out_finish_file(struct tw_out *out, const char *path);
/* Removes such a file, and says so; devices and pipes are left. */
void tw_out_remove_part(const char *path);

/* Makes space for TW_OUT_SLACK bytes written by the functions below, which do not check. */
static inline void tw_out_reserve(struct tw_out *out)
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
/* With leading zeros, in `digits` digits, at most 20. */
void tw_put_digits(struct tw_out *out, uint64_t value, unsigned digits);
void tw_put_hex(struct tw_out *out, uint64_t value);

/* ---- untrusted names: clean.c ---- */

/* The most bytes that one character is turned into. */
#define TW_CLEAN_PIECE_BYTES 16

/* Is a character more than visible: a control character, or a mark for the direction of writing? */
static inline bool tw_is_unsafe(uint32_t code)
{
	return code < 0x20 || (code >= 0x7f && code < 0xa0) || code == 0x200e || code == 0x200f ||
	       (code >= 0x2028 && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069) || code == 0xfeff;
}
/* The bytes of the character at text, which has `left` bytes; 0: it is not UTF-8. */
size_t tw_utf8_next(const char *text, size_t left, uint32_t *code);
/* The most of the first `bytes` of a text that cut no character. */
static inline size_t tw_utf8_part(const char *text, size_t bytes)
{
	while (bytes && ((unsigned char)text[bytes] & 0xc0) == 0x80)
		bytes--;
	return bytes;
}
/* The text with U+FFFD in place of bytes that are not UTF-8, as JSON has it: for readers that want nothing else. Lent until the next call. */
const char *tw_utf8_text(const char *text);
/*
 * Writes one character for people into TW_CLEAN_PIECE_BYTES: unchanged, or as \n, \x1b, \u202e. Returns the bytes
 * read.
 */
size_t tw_clean_piece(const char *text, size_t left, char *out, size_t *out_bytes);
/* Cleans a whole name: at most `capacity` bytes, whole characters only. */
size_t tw_clean(const char *text, size_t bytes, char *out, size_t capacity);
void tw_out_clean(struct tw_out *out, const char *text, size_t bytes);
void tw_out_name(struct tw_out *out, const char *name);
/* Arguments separated by zero bytes, written as for a shell, in about `capacity` columns. */
void tw_out_command(struct tw_out *out, const char *command, size_t bytes, size_t capacity);

/* ---- JSON: written as it is made ---- */

struct tw_json {
	struct tw_out *out;
	unsigned depth;
	bool has_members[16];
	bool is_spread; /* one member per line */
};

/* A name is NULL inside arrays. */
void tw_json_open(struct tw_json *json, const char *name, char bracket);
void tw_json_close(struct tw_json *json, char bracket);
void tw_json_u64(struct tw_json *json, const char *name, uint64_t value);
void tw_json_i64(struct tw_json *json, const char *name, int64_t value);
void tw_json_double(struct tw_json *json, const char *name, double value);
/* Nanoseconds, written in seconds. */
void tw_json_seconds(struct tw_json *json, const char *name, uint64_t ns);
void tw_json_bool(struct tw_json *json, const char *name, bool value);
void tw_json_text(struct tw_json *json, const char *name, const char *value, size_t bytes);
void tw_json_string(struct tw_json *json, const char *name, const char *value);
/* A JSON string with its quotes; bytes that are not UTF-8 become U+FFFD. */
void tw_json_quote(struct tw_out *out, const char *text, size_t bytes);

#endif
