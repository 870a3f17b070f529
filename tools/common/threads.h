/* SPDX-License-Identifier: Apache-2.0 */
/*
 * threads.h - what threads and processes are called beside their numbers.
 *
 *	17512 worker-1		a thread: the kernel's number, and the last name that it had
 *	<0.45.0> clerk		a process that the program's run-time declares,
 *	<0.1.0> main 17511	and beside such a thread, which messages name by its pid
 *
 * A thread may have several streams; their names are those of the one that ended last.  Names are clean (clean.c).
 *
 * Threads  one.  Looked up in a table of the capture at hand, made at the first question.
 */
#ifndef TW_TOOLS_THREADS_H
#define TW_TOOLS_THREADS_H

#include "tracewheel/capture.h"

#include <stdbool.h>
#include <stddef.h>

/* So much is shown of a name. */
#define TW_THREAD_NAME_BYTES 64
#define TW_THREAD_TEXT_BYTES 128

/* The last name of a stream's thread: cleaned, "" where it has none; at most TW_THREAD_NAME_BYTES with its end. */
const char *tw_thread_name(const struct tw_capture *capture, const struct tw_capture_stream *stream, char *text);
/* "17512 worker-1" into TW_THREAD_TEXT_BYTES; answers the bytes. */
size_t tw_thread_text(const struct tw_capture *capture, const struct tw_capture_stream *stream, char *text);

/* The name of a tracee: of a thread its last one.  "" where it has none. */
const char *tw_process_name(const struct tw_capture *capture, uint32_t image, uint32_t tracee_id, char *text);
/* "<0.45.0> clerk", or a thread's text, into TW_THREAD_TEXT_BYTES; answers the bytes. */
size_t tw_process_text(const struct tw_capture *capture, uint32_t image, uint32_t tracee_id, char *text);

/* Is a tracee a thread?  Its number in the system then; 0 for others. */
uint32_t tw_process_thread(const struct tw_capture *capture, uint32_t image, uint32_t tracee_id);

/* Are there processes that are no threads? */
bool tw_processes_are_declared(const struct tw_capture *capture);

/* Do threads have different names, so that they say something? */
bool tw_threads_have_names(const struct tw_capture *capture);

/* Before the capture is closed. */
void tw_threads_forget(void);

#endif
