/* SPDX-License-Identifier: Apache-2.0 */
/*
 * convert.h - trace files of Erlang: records of a byte, a size of four bytes (the highest first), and a term.
 *
 *	byte 0	a trace message; the size is that of the external term that follows
 *	byte 1	messages that were dropped; the size is their number, and nothing follows
 *
 * Source	runtime_tools' dbg: trace_port(file, Name), trace_client(file, Name, Handler).
 * Threads	one.
 */
#ifndef TW_TOOLS_CONVERT_H
#define TW_TOOLS_CONVERT_H

#include "views/names/messages.h"
#include "views/names/payload.h"
#include "tools/tool.h"

#include "tracewheel/message.h"
#include "tracewheel/writer.h"

#include <stdio.h>

enum { TW_TTB_TERM = 0, TW_TTB_DROPPED = 1, TW_TTB_HEAD_BYTES = 5 };

/* ---- reading: ttb_read.c ---- */

/* One file after the other, as one sequence of records. */
struct tw_ttb_reader {
	const char *const *paths;
	uint32_t path_count, path; /* `path` is the number of the open file */
	FILE *file;
	uint64_t left; /* bytes of the file that were not read yet */
	uint8_t *term;
	size_t capacity;
	uint32_t size; /* of the term, or the number of dropped messages */
	unsigned op;
	uint64_t records;
};

enum tw_ttb_answer { TW_TTB_RECORD, TW_TTB_END, TW_TTB_CUT, TW_TTB_MALFORMED, TW_TTB_UNREADABLE };

void tw_ttb_open(struct tw_ttb_reader *reader, const char *const *paths, uint32_t count);
/*
 * tw_ttb_next - the next record: op, size and term.
 *
 * TW_TTB_CUT: a file ends inside of a record; the next call goes on with the next file. TW_TTB_MALFORMED: it has no more
 * records that can be found. TW_TTB_UNREADABLE: it cannot be opened or read, errno says why.
 */
enum tw_ttb_answer tw_ttb_next(struct tw_ttb_reader *reader);
/* The file of the last answer. */
const char *tw_ttb_path(const struct tw_ttb_reader *reader);
void tw_ttb_close(struct tw_ttb_reader *reader);

/* ---- from a term to an event: ttb_event.c ---- */

struct tw_ttb_import;

/* The times of the first messages with each kind of stamp, and the node that was traced. */
struct tw_ttb_survey {
	bool has_monotonic, has_wall;
	uint64_t monotonic_ns, wall_ns;
	struct tw_term node; /* none: nonode@nohost */
	bool has_node;
};
/* Adds what one message says. */
void tw_ttb_survey_term(struct tw_ttb_survey *survey, const uint8_t *term, size_t bytes);

/* NULL: no memory. @writer: borrows. @wall_offset_ns: as in writer.h. */
struct tw_ttb_import *tw_ttb_import_create(struct tw_capture_writer *writer, const struct tw_ttb_survey *survey,
					   uint64_t start_ns, uint64_t wall_offset_ns);
void tw_ttb_import_destroy(struct tw_ttb_import *import);
/* Writes the event of a message. Returns 0, TW_EFORMAT (it is not a trace message), or an error of the writer. */
int tw_ttb_import_term(struct tw_ttb_import *import, const uint8_t *term, size_t bytes);
int tw_ttb_import_dropped(struct tw_ttb_import *import, uint64_t count);

/* ---- from events to records: ttb_write.c ---- */

struct tw_ttb_export {
	struct tw_named_message message; /* set its capture before the first event */
	struct tw_out *out;
	int stamp; /* TW_PRINT_STAMP_*; -1: each event's own */
	uint64_t events, dropped;
	struct tw_arena arena; /* of one message */
	char *encoded;	       /* the message, in memory that grows */
	size_t encoded_bytes;
};
void tw_ttb_export_init(struct tw_ttb_export *export, struct tw_out *out, int stamp);
/* Writes one event. Returns 0 or an error. */
int tw_ttb_export_event(struct tw_ttb_export *export, const struct tw_capture_event *event);
void tw_ttb_export_fini(struct tw_ttb_export *export);

#endif
