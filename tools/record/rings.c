/* SPDX-License-Identifier: Apache-2.0 */
/* rings.c - what the options say of the rings: their policy, and whether one fits into the limit for all. */
#include "tools/record/rings.h"
#include "tools/tool.h"

#include <string.h>

/* The recorder's defaults (tracewheel/consumer.h). */
#define CAP_BYTES_DEFAULT (UINT64_C(256) << 20)
#define RING_HEAD_BYTES	  4096

bool tw_rings_set_policy(struct tw_recorder_options *options, const struct tw_command *command, const char *word)
{
	static const char *const words[] = {"drop", "block", "overwrite"};
	for (int i = 0; i < 3; i++) {
		if (strcmp(word, words[i]) == 0) {
			options->policy = (enum tw_recorder_policy)i;
			return true;
		}
	}
	return tw_refuse(command, "--on-full is drop, block or overwrite, not '%s'.", word);
}

bool tw_rings_are_too_large(const struct tw_recorder_options *options, const struct tw_command *command)
{
	char ring[TW_FIGURE_BYTES], cap[TW_FIGURE_BYTES];
	uint64_t ring_bytes = options->ring_bytes ? options->ring_bytes : TW_RING_BYTES_DEFAULT;
	uint64_t cap_bytes = options->cap_bytes ? options->cap_bytes : CAP_BYTES_DEFAULT;
	/* A ring has a page beside its data. */
	if (ring_bytes + RING_HEAD_BYTES <= cap_bytes)
		return false;
	tw_usage(
		command,
		"one ring of %s, and 4 KiB beside it, does not fit into --ring-cap, which is %s for all threads together; --ring makes it smaller.",
		tw_figure_bytes(ring, ring_bytes), tw_figure_bytes(cap, cap_bytes));
	return true;
}
