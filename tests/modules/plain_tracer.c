/* SPDX-License-Identifier: Apache-2.0 */
/* plain_tracer.c - the smallest tracer module in a shared object: wants everything, does nothing. */
#include <tracewheel/tracer.h>

static enum tw_tracer_answer enabled(enum tw_tracer_tag tag, struct tw_term state, struct tw_term tracee)
{
	(void)tag;
	(void)state;
	(void)tracee;
	return TW_TRACER_TRACE;
}

static void trace(enum tw_tracer_tag tag, struct tw_term state, struct tw_term tracee, struct tw_term term,
		  const struct tw_tracer_options *options)
{
	(void)tag;
	(void)state;
	(void)tracee;
	(void)term;
	(void)options;
}

const struct tw_tracer_module tracewheel_tracer = {.bytes = sizeof tracewheel_tracer,
						   .name = "plain",
						   .enabled = enabled,
						   .trace = trace};
