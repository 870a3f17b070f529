/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lines.h - the function, file and line of a code address, resolved after the recording.
 *
 * The capture may hold it (tracewheel/cut.h); else the module's file is found by its build-id (tracewheel/debug.h). Without debug information only the names of
 * symbols are known, and without the file nothing. Results are kept until the command ends.
 *
 * Threads  one.
 */
#ifndef TW_VIEWS_LINES_H
#define TW_VIEWS_LINES_H

#include "tracewheel/capture.h"

#include <stdbool.h>

struct tw_line {
	const struct tw_capture_module *module; /* NULL: the address lies in no module */
	uint64_t offset;			/* in the module */
	const char *function;			/* linkage name; NULL: not known */
	const char *file;			/* NULL: not known */
	unsigned line;
	/* The instruction before the address is a call; also true if that is not known (no module, or no file). */
	bool is_return;
	bool is_signal; /* a signal handler returns to it; what it interrupted is the next caller, and has called nothing */
};

/* Resolves a call by its return address. */
void tw_line_of_return(const struct tw_capture *capture, uint32_t image, uint64_t address, struct tw_line *out);

/*
 * The number of words of a stack that are callers: the first, and those up to one that follows no call. Such a word
 * is no return address: a frame pointer of other code led to it, or the recorder has put 0 there, because it could not go on.
 */
uint32_t tw_line_stack_count(const struct tw_capture *capture, uint32_t image, const uint64_t *words, uint32_t count);

struct tw_out;
/* Writes "app:parse at app.c:12", "libc+0x1f2a" without symbols, "0x7f00a0" in no module. */
void tw_line_put(struct tw_out *out, const struct tw_capture *capture, uint32_t image, uint64_t address);
/* The same; @is_instruction: of the instruction at the address, and not of the call before it. */
void tw_line_put_code(struct tw_out *out, const struct tw_capture *capture, uint32_t image, uint64_t address,
		      bool is_instruction);

/* Called before the capture is closed: results refer to it. */
void tw_lines_forget(void);

#endif
