/* SPDX-License-Identifier: Apache-2.0 */
/*
 * names.h - names in a capture, made once and looked up by id.
 *
 * A place's text depends on the format; it is made before the first event is printed, so that printing a line takes
 * little more than a few copies. Ids without a definition get a text that says so.
 */
#ifndef TW_VIEWS_NAMES_H
#define TW_VIEWS_NAMES_H

#include "tracewheel/capture.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tw_name {
	char *text;
	uint32_t bytes;
	bool lacks_arity; /* a function's: JSON shows it as NAME/_, people see no arity */
};

/* The names of one kind of thing in one image, by id. */
struct tw_names {
	struct tw_name *at;
	uint32_t count;
};

/*
 * tw_names_places - a text for each place of an image.
 *
 * @make	writes at most `capacity` bytes and returns the number written.
 *
 * Returns false without memory.
 */
#define TW_NAME_TEXT_BYTES 4096
typedef size_t tw_names_make(const struct tw_capture_place *place, char *text, size_t capacity);
bool tw_names_places(struct tw_names *names, const struct tw_capture *capture, uint32_t image, tw_names_make *make);
void tw_names_free(struct tw_names *names);

/* The readable form of a C++ or Rust linkage name, to be freed; NULL for all other names. */
char *tw_name_demangled(const char *name);
/* The same as libstdc++ makes it, which is all that a traced program may have. */
char *tw_name_demangled_inside(const char *name);
/* May it be such a name? */
bool tw_name_is_mangled(const char *name);
/*
 * For people: demangled and cleaned. MODULE:FUNCTION/ARITY, or MODULE:FUNCTION if the arity is not known; '?' if the
 * capture does not define it. With its linkage name in brackets where the capture that tw_names_open() opened has a namesake.
 */
size_t tw_name_function(const struct tw_capture_function *function, char *text, size_t capacity);
/* The arity as a string: a number or _. */
size_t tw_name_arity(uint32_t arity, char *text, size_t capacity);
/* For people, behind a function's name: "/2"; nothing if it is not known. */
size_t tw_name_arity_shown(uint32_t arity, char *text, size_t capacity);
bool tw_name_lacks_arity(const struct tw_capture_function *function);
/* A name as an Erlang atom, quoted if necessary. */
size_t tw_name_atom(const char *name, char *text, size_t capacity);
/* The name of a function as all views show it: demangled. Lent until the next call. */
const char *tw_name_shown(const char *linkage);
/* The same as an Erlang atom of at most 255 characters. */
#define TW_NAME_ATOM_BYTES 2048
size_t tw_name_function_atom(const char *linkage, char *text, size_t capacity);
/* Members of an object: module, function, linkage if it is another name, arity if it is known. */
struct tw_json;
/* The member "name": a name as people see it, and /_ behind it if its arity is not known. */
void tw_json_name(struct tw_json *json, const char *name, size_t bytes, bool lacks_arity);
void tw_json_function(struct tw_json *json, const struct tw_capture_function *function);
/* {'module',function,Arity} without the closing brace, and up to where the arity or the arguments follow. */
size_t tw_name_mfa_open(const struct tw_capture_function *function, char *text, size_t capacity);

/* The pid of a tracee, <0.number.serial>; made from the id alone if it is not defined. */
/* In place of the serial number of a pid: the number is a port's. */
#define TW_SERIAL_OF_PORT UINT32_MAX

/* The serial number of a process, or TW_SERIAL_OF_PORT. */
static inline uint32_t tw_name_serial(const struct tw_capture_tracee *tracee)
{
	return tracee->is_port ? TW_SERIAL_OF_PORT : tracee->pid_serial;
}

/* <0.N.S>, or #Port<0.N>. */
#define TW_NAME_NUMBERS_BYTES 32
const char *tw_name_numbers(uint32_t number, uint32_t serial, char text[TW_NAME_NUMBERS_BYTES]);

/* The same of a process or port of the capture. */
size_t tw_name_pid(const struct tw_capture *capture, uint32_t image, uint32_t tracee_id, char *text, size_t capacity);

/* The module that contains a code address, and the offset in it; NULL: no module of the image contains it. */
const struct tw_capture_module *tw_name_address(const struct tw_capture *capture, uint32_t image, uint64_t address,
						uint64_t *offset);

/*
 * The process images of a capture in the order in which they began, without those that nothing is known of: at most
 * `capacity` of them. Returns their number.
 */
size_t tw_names_images(const struct tw_capture *capture, const struct tw_capture_image **images, size_t capacity);

/* "exit code 3", "killed by signal 11 (SIGSEGV)" into text; false if it is not known. is_well: exit code 0. */
#define TW_ENDING_BYTES 64
bool tw_name_ending(const struct tw_capture *capture, char *text, bool *is_well);
/* "at 3.994000000: the program was ended by SIGSEGV": what caused a flight recorder to write the capture. False: it is none. */
#define TW_TRIGGER_BYTES 512
bool tw_name_trigger(const struct tw_capture *capture, char text[TW_TRIGGER_BYTES]);
/* The process of an Erlang node whose end was the cause ("process <0.85.0> clerk ended: badarg").  False: it was another cause. */
bool tw_name_ended(const struct tw_capture *capture, uint32_t *image, uint32_t *tracee_id);
/*
 * "after 10 s (--time)": when the recording ended by this limit, as a clause.
 */
#define TW_STOP_BYTES 96
const char *tw_name_stop(enum tw_stop why, uint64_t limit, char text[TW_STOP_BYTES]);
/*
 * The member "ending": {"exit_code": N} or {"signal": N, "name": "SIGSEGV"}, and the member "stopped" if the recording ended before the
 * program: {"by": "time"|"events"|"rate"|"asked", "limit": N} ("limit_ns" of time); each only if it is known.  Of a flight recorder's
 * capture also the member "trigger": {"ns": N, "process": N, "thread": N, "call_ns": N, "pid": "<0.85.0>", "reason": "..."}, with ns as in events.
 */
void tw_json_ending(struct tw_json *json, const struct tw_capture *capture);

/*
 * The state kept of a capture until the command ends (lines, threads, names that several functions have) is of one: for a user of several, before
 * another one is asked; NULL before it is closed.
 */
void tw_names_use(const struct tw_capture *capture);

/* For the summary of a command that opens its capture by tw_names_open(). */
#define TW_STREAM_HELP                                                                                                                                                                                  \
	"\nWithout a name: the newest capture in this folder. Instead of a capture's folder, - is a stream on standard input, from `tracewheel record -o -` or a program that traces itself, which is " \
	"read to its end; FILE is a file with such a stream. A stream that was cut off is shown as far as it goes, with exit code 1."

/* The capture in the current folder with the latest write: NAME.tw. False: there is none. */
bool tw_names_newest(char *name, size_t capacity);

/*
 * tw_names_open - open a capture for a command; on an error reports it and returns NULL.
 *
 * @path	a folder; "-" is standard input, and a path that is no folder is a file: both contain a stream, which is
 *		waited for to its end, and can be read any number of times.  NAME.tw, if NAME does not exist or is
 *		something else.
 */
struct tw_capture *tw_names_open(const char *path);
/* The same, except that a stream is read while it arrives, once. */
struct tw_capture *tw_names_open_stream(const char *path, bool *is_stream);
/* tw_capture_follow(), for a command: the same. @or_whole: one that is not recorded any more is opened as tw_names_open() does. */
struct tw_capture *tw_names_follow(const char *path, bool or_whole);
/* Was the capture that was opened last being recorded then? */
bool tw_names_is_recorded(void);
/* The command reads captures again that are being recorded: it is not reported that these have no end yet. */
void tw_names_expect_no_end(void);
/* Describes a capture without an end: "it is being recorded", or that its recorder died and what to do. */
const char *tw_names_unfinished(void);
/*
 * The exit code of a command that would end with this one: TW_EXIT_FAILURE if data is missing by failure
 * (tw_missing_is_failure()), which is reported on standard error.
 */
int tw_names_exit(const struct tw_capture *capture, const char *path, int code);
/* The same, after reporting on standard error what could not be read. */
int tw_names_end(const struct tw_capture *capture, const char *path, int code);

/*
 * Is the image an Erlang VM? There a process receives a message when it looks for messages, and not when one is sent to
 * it: until then the message has waited.
 */
bool tw_names_is_erlang_vm(const struct tw_capture *capture, uint32_t image);

#endif
