/* SPDX-License-Identifier: Apache-2.0 */
/*
 * writer.h - write a capture of past events: from another tracer's file, or made up for a test.
 *
 *	tw_capture_writer_create -> definitions, events and losses in any number -> tw_capture_writer_finish
 *
 * The caller gives each event its time; a run-time that traces itself as it runs uses producer.h, whose events have the same
 * form.  The capture has one image and one session.
 *
 * Order	events of one stream, and those of one process, keep the order of their writes, whatever their times; others are
 *		ordered by time.
 * Threads	one at a time for each writer.
 * Units	*_ns are nanoseconds; times may count from any moment; wall_offset_ns relates them to CLOCK_REALTIME.
 * Errors	those of tracewheel/error.h.  After a failed write, call tw_capture_writer_abort().  Link with
 *		libtracewheel-capture.
 */
#ifndef TRACEWHEEL_WRITER_H
#define TRACEWHEEL_WRITER_H

#include "tracewheel/capture.h"
#include "tracewheel/producer.h"

#ifdef __cplusplus
extern "C" {
#endif

struct tw_capture_writer;

/* Strings borrow until return; NULL is "". */
struct tw_capture_writer_options {
	const char *path;	 /* of the capture; its parent must exist */
	bool force;		 /* replace an existing capture; never anything that is not a capture */
	const char *program;	 /* shown as the program that was traced */
	const char *command;	 /* shown as its command line */
	const char *session;	 /* the session's name */
	uint64_t wall_offset_ns; /* CLOCK_REALTIME is the time of an event plus this, modulo 2^64 */
};

/*
 * tw_capture_writer_create - begin a capture.
 *
 * @options	borrows.
 * @out		gives: tw_capture_writer_finish() and tw_capture_writer_abort() take.
 *
 * Errors: TW_EEXIST (something is at the path, and `force` is not set or it is not a capture), TW_ENOENT (no parent), TW_EPERM,
 * TW_ENOSPC, TW_EIO, TW_ENOMEM, TW_EBADARG.
 */
int tw_capture_writer_create(const struct tw_capture_writer_options *options, struct tw_capture_writer **out);

/* As the functions of producer.h of the same names. */
int tw_capture_writer_define_module(struct tw_capture_writer *writer, struct tw_producer_name name, uint32_t *id);
int tw_capture_writer_define_function(struct tw_capture_writer *writer, uint32_t module, struct tw_producer_name name,
				      unsigned arity, uint32_t *id);
/* @out: filled in; must stay in place until the writer ends. */
int tw_capture_writer_define_process(struct tw_capture_writer *writer, bool is_port, uint64_t number, uint32_t serial,
				     struct tw_producer_name name, struct tw_producer_process *out);
int tw_capture_writer_name_process(struct tw_capture_writer *writer, const struct tw_producer_process *process,
				   bool is_port, uint64_t number, uint32_t serial, struct tw_producer_name name);
int tw_capture_writer_note(struct tw_capture_writer *writer, struct tw_producer_name text);

/* The largest number of streams. */
#define TW_CAPTURE_WRITER_STREAMS_MAX 1100

/*
 * tw_capture_writer_event - the next event of a process.
 *
 * @stream	0 .. TW_CAPTURE_WRITER_STREAMS_MAX - 1: the number of the scheduler that it happened on.
 *
 * Errors: TW_EBADARG (no such stream, too many words), and those of writing.
 */
int tw_capture_writer_event(struct tw_capture_writer *writer, uint32_t stream, uint64_t time_ns,
			    struct tw_producer_process *process, const struct tw_producer_event *event);

/* Records that @count events are missing between the stream's last event and its next one; @time_ns is that of the last. */
int tw_capture_writer_loss(struct tw_capture_writer *writer, uint32_t stream, uint64_t time_ns,
			   enum tw_lost_cause cause, uint64_t count);

/*
 * The source ends before its last event: events of unknown number are missing.  The account of the capture says so
 * (TW_MISSING_CUT), and no view takes it for complete.
 */
void tw_capture_writer_cut(struct tw_capture_writer *writer);

/* Takes the writer and completes the capture; on error, removes it. */
int tw_capture_writer_finish(struct tw_capture_writer *writer);
/* Takes the writer and removes the incomplete capture; NULL is allowed. */
void tw_capture_writer_abort(struct tw_capture_writer *writer);

#ifdef __cplusplus
}
#endif

#endif
