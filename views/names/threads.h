/* SPDX-License-Identifier: Apache-2.0 */
/*
 * threads.h - names of threads and processes, shown beside their numbers.
 *
 *	17512 worker-1		a thread: the kernel's number, and its last name
 *	<0.45.0> clerk		a process that the program's run-time declares,
 *	<0.1.0> main 17511	and beside such a process a thread, which messages name by its pid
 *
 * In captures of several nodes (merge) both begin with that of the thread or process: "shop:<0.45.0> clerk".
 *
 * If a process had several programs by exec, those of a thread end in the number of the program: "17512 sh (exec 2)".
 *
 * A thread may have several streams; it has the name of the one that ended last. Names are clean (clean.c).
 *
 * Threads  one.  Uses a table of the current capture, built at the first query.
 */
#ifndef TW_VIEWS_THREADS_H
#define TW_VIEWS_THREADS_H

#include "tracewheel/capture.h"

#include <stdbool.h>
#include <stddef.h>

/* The most bytes shown of a name. */
#define TW_THREAD_NAME_BYTES 64
#define TW_THREAD_TEXT_BYTES 208
/* The most bytes shown of the name of a node, and its colon. */
#define TW_NODE_TEXT_BYTES 72

/*
 * The last name of a stream's thread: cleaned, "" if it has none; at most TW_THREAD_NAME_BYTES with the terminating
 * zero.
 */
const char *tw_thread_name(const struct tw_capture *capture, const struct tw_capture_stream *stream, char *text);
/* Writes "17512 worker-1" into TW_THREAD_TEXT_BYTES; returns the bytes. */
size_t tw_thread_text(const struct tw_capture *capture, const struct tw_capture_stream *stream, char *text);

/* The number of threads: that of a stream's thread is below it. */
uint32_t tw_thread_count(const struct tw_capture *capture);

/* The name of a tracee; for a thread its last one. "" if it has none. */
const char *tw_process_name(const struct tw_capture *capture, uint32_t image, uint32_t tracee_id, char *text);
/* Writes "<0.45.0> clerk", or a thread's text, into TW_THREAD_TEXT_BYTES; returns the bytes. */
size_t tw_process_text(const struct tw_capture *capture, uint32_t image, uint32_t tracee_id, char *text);

/* The same without its node. */
size_t tw_process_text_alone(const struct tw_capture *capture, uint32_t image, uint32_t tracee_id, char *text);
/* Writes "shop:" into TW_NODE_TEXT_BYTES, "" in captures of one node; returns the bytes. */
size_t tw_node_text(const struct tw_capture *capture, uint32_t image, char *text);

/*
 * The number of this image among those of its process, from 1, in the order of their starts; 0 where it is the only one.
 * An exec of the same file changes neither process nor program, so only the number tells its events from earlier ones.
 */
uint32_t tw_exec_number(const struct tw_capture *capture, uint32_t image);
/* When the next program of its process began; 0: it had no next one. */
uint64_t tw_exec_ends_ns(const struct tw_capture *capture, uint32_t image);

/* The thread number in the system of a tracee that is a thread; 0 for others. */
uint32_t tw_process_thread(const struct tw_capture *capture, uint32_t image, uint32_t tracee_id);

/* Are there processes that are not threads? */
bool tw_processes_are_declared(const struct tw_capture *capture);

/* Do threads have different names, so that names are useful? */
bool tw_threads_have_names(const struct tw_capture *capture);

/* Called before the capture is closed. */
void tw_threads_forget(void);

#endif
