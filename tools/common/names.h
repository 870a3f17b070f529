/* SPDX-License-Identifier: Apache-2.0 */
/*
 * names.h - what the events of a capture are called, made once and looked up by number.
 *
 * A place's text depends on the format; it is made before the first event is printed, so that a line
 * is little more than a few copies.  Numbers without a definition get a text that says so.
 */
#ifndef TW_TOOLS_NAMES_H
#define TW_TOOLS_NAMES_H

#include "tracewheel/capture.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tw_name {
	char *text;
	uint32_t bytes;
};

/* So much is shown of the name of a process. */
#define TW_NAME_PROCESS_BYTES 64

/* The names of one kind of thing in one image, by id. */
struct tw_names {
	struct tw_name *at;
	uint32_t count;
};

/*
 * tw_names_places - a text for each place of an image.
 *
 * @make	writes at most room bytes and answers how many it wrote.
 * Answers false without memory.
 */
#define TW_NAME_ROOM 4096
typedef size_t tw_names_make(const struct tw_capture_place *place, char *text, size_t room);
bool tw_names_places(struct tw_names *names, const struct tw_capture *capture, uint32_t image, tw_names_make *make);
void tw_names_free(struct tw_names *names);

/* A C++ or Rust linkage name as people write it: free(); NULL for all others. */
char *tw_name_demangled(const char *name);
/* For people: demangled, and nothing in it that a terminal would obey.  MODULE:FUNCTION/ARITY with _ for what is not known; '?' for what the capture does
 * not define. */
size_t tw_name_function(const struct tw_capture_function *function, char *text, size_t room);
/* The arity as a string: a number or _. */
size_t tw_name_arity(uint32_t arity, char *text, size_t room);
/* A name as an Erlang atom: quoted where Erlang asks for it. */
size_t tw_name_atom(const char *name, char *text, size_t room);
/* The name of a function as all views have it: demangled.  Lends until the next call. */
const char *tw_name_shown(const char *linkage);
/* The same as an Erlang atom: of at most 255 characters. */
#define TW_NAME_ATOM_BYTES 2048
size_t tw_name_function_atom(const char *linkage, char *text, size_t room);
/* Members of an object: module, function, linkage where that is another name, arity where it is known. */
struct tw_json;
void tw_json_function(struct tw_json *json, const struct tw_capture_function *function);
/* {'module',function,Arity}, but for the closing brace and what stands in the place of the arity. */
size_t tw_name_mfa_open(const struct tw_capture_function *function, char *text, size_t room);

/* The pid of a tracee, <0.number.serial>; where it is not defined, from its number alone. */
size_t tw_name_pid(const struct tw_capture *capture, uint32_t image, uint32_t tracee_id, char *text, size_t room);

/*
 * A code address as the module that it lies in and the distance from the module's start: the module; NULL
 * where no module of the image holds it.
 */
const struct tw_capture_module *tw_name_address(const struct tw_capture *capture, uint32_t image, uint64_t address,
						uint64_t *offset);

/*
 * The process images of a capture in the order in which they began, without those of which nothing is
 * known: at most `room` of them.  Answers how many.
 */
size_t tw_names_images(const struct tw_capture *capture, const struct tw_capture_image **images, size_t room);

/* "exit code 3", "killed by signal 11 (SIGSEGV)" into text; false where it is not known.  is_well: exit code 0. */
#define TW_ENDING_BYTES 64
bool tw_name_ending(const struct tw_capture *capture, char *text, bool *is_well);
/* The member "ending": {"exit_code": N} or {"signal": N, "name": "SIGSEGV"}; nothing where it is not known. */
void tw_json_ending(struct tw_json *json, const struct tw_capture *capture);

/* For the summary of a command that opens its capture by tw_names_open(). */
#define TW_STREAM_HELP                                                                                                                                                                              \
	"\nWithout a name: the newest capture of this folder. Instead of a capture's folder, - is a stream on standard input, of `tracewheel record -o -` or of a program that traces itself, and " \
	"waited for to its end; FILE is such a stream in a file. One that was cut off is shown up to there, with exit code 1."

/* The capture in the current folder that was written to last: NAME.tw.  False: there is none. */
bool tw_names_newest(char *name, size_t room);

/*
 * tw_names_open - opens a capture for a command: says what is wrong, and answers NULL.
 *
 * @path	a folder; "-" is standard input, and what is no folder a file: both hold a stream, which is waited for
 *		to its end, and read as often as any capture.  NAME.tw where NAME is not there, or is something else.
 */
struct tw_capture *tw_names_open(const char *path);
/* The same, but that a stream is read while it comes, once. */
struct tw_capture *tw_names_open_stream(const char *path, bool *is_stream);
/* Of a capture that has no end: "it is being recorded", or that its recorder died and what to do. */
const char *tw_names_unfinished(void);
/*
 * The exit code of a command that would end with this one: TW_EXIT_FAILURE where parts of what was recorded are missing against
 * everybody's will (tw_missing_is_failure()), which is said on standard error.
 */
int tw_names_exit(const struct tw_capture *capture, const char *path, int code);
/* The same, after having said on standard error what could not be read. */
int tw_names_end(const struct tw_capture *capture, const char *path, int code);

#endif
