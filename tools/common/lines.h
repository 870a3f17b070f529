/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lines.h - the function, file and line of a code address, found after the fact.
 *
 * The module's file is looked for by its build-id (tracewheel/debug.h): without debug information there are
 * names of symbols, and without its file nothing.  What was asked for is kept until the command ends.
 *
 * Threads  one.
 */
#ifndef TW_TOOLS_LINES_H
#define TW_TOOLS_LINES_H

#include "tracewheel/capture.h"

#include <stdbool.h>

struct tw_line {
	const struct tw_capture_module *module; /* NULL: no module holds the address */
	uint64_t offset;			/* in the module */
	const char *function;			/* linkage name; NULL: not known */
	const char *file;			/* NULL: not known */
	unsigned line;
	/* A call lies in front of it, or nobody can know: no module holds it, or its file is not there. */
	bool is_return;
};

/* Of a call, by the address that it returns to. */
void tw_line_of_return(const struct tw_capture *capture, uint32_t image, uint64_t address, struct tw_line *out);

/*
 * How many of the words of a stack are callers: the first, and of the others those before one that no call returns to,
 * which somebody has put where a frame pointer of another kind of code led to.
 */
uint32_t tw_line_stack_count(const struct tw_capture *capture, uint32_t image, const uint64_t *words, uint32_t count);

/* Before the capture is closed: what was looked up names parts of it. */
void tw_lines_forget(void);

#endif
