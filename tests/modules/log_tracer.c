/* SPDX-License-Identifier: Apache-2.0 */
/*
 * log_tracer.c - a tracer module that writes a line for each event to standard error: TAG, state, term, extra.
 *
 * Its state says how it behaves: crash, no_answer, or anything else.
 */
#include <tracewheel/tracer.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int is_state(struct tw_term state, const char *name)
{
	const char *text = tw_term_atom_name(state, NULL);

	return text && !strcmp(text, name);
}

static enum tw_tracer_answer enabled(enum tw_tracer_tag tag, struct tw_term state, struct tw_term tracee)
{
	(void)tag;
	(void)tracee;
	return is_state(state, "no_answer") ? (enum tw_tracer_answer)7 : TW_TRACER_TRACE;
}

static void trace(enum tw_tracer_tag tag, struct tw_term state, struct tw_term tracee, struct tw_term term,
		  const struct tw_tracer_options *options)
{
	char line[1024], text[3][300] = {"", "", ""};
	int bytes;

	(void)tracee;
	if (is_state(state, "crash"))
		abort();
	tw_term_format(state, TW_PRINT_WRITE, text[0], sizeof text[0]);
	tw_term_format(term, TW_PRINT_WRITE, text[1], sizeof text[1]);
	if (!tw_term_is_none(options->extra))
		tw_term_format(options->extra, TW_PRINT_WRITE, text[2], sizeof text[2]);
	bytes = snprintf(line, sizeof line, "log: %s %s %s %s\n", tw_tracer_tag_name(tag), text[0], text[1], text[2]);
	if (write(STDERR_FILENO, line, (size_t)bytes) < 0)
		abort();
}

const struct tw_tracer_module tracewheel_tracer = {.bytes = sizeof tracewheel_tracer,
						   .name = "log",
						   .enabled = enabled,
						   .trace = trace};
