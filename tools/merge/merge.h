/* SPDX-License-Identifier: Apache-2.0 */
/*
 * merge.h - captures that are being merged, and what was found about their clocks.
 *
 * Threads  one.
 */
#ifndef TW_TOOLS_MERGE_H
#define TW_TOOLS_MERGE_H

#include "tools/merge/messages.h"

#include "tracewheel/merge.h"

#define TW_MERGING_NODE_BYTES 64
#define TW_MERGING_LINE_BYTES 400

struct tw_merging {
	char **paths;
	uint32_t count;
	struct tw_capture **captures;
	char (*nodes)[TW_MERGING_NODE_BYTES]; /* their short names */
	uint32_t *machine_of;		      /* by capture */
	struct tw_align_machine *machines;
	uint32_t machine_count;
	struct tw_align *align;
	struct tw_messages messages;
	struct tw_merge_result result;
	bool is_lacking; /* an input was not complete */
};

/* How the time of a capture was found, as a clause. */
void tw_merging_line(const struct tw_merging *merging, uint32_t capture, char *text, size_t capacity);

void tw_merging_text(struct tw_out *out, const struct tw_merging *merging, const char *path);
void tw_merging_json(struct tw_out *out, const struct tw_merging *merging, const char *path);

#endif
