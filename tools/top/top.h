/* SPDX-License-Identifier: Apache-2.0 */
/* top.h - the two ways in which `top` shows its table. */
#ifndef TW_TOOLS_TOP_H
#define TW_TOOLS_TOP_H

#include "tools/top/table.h"

struct tw_top_view {
	struct tw_top *top;
	struct tw_capture *capture; /* a stream */
	int fd;			    /* from which it is read */
	bool is_json;
	uint64_t rounds;    /* 0: until the stream ends */
	uint32_t row_count; /* the most that are shown; 0: all */
};

/*
 * tw_top_lines, tw_top_screen - read the stream, and show the table once for each mark of it, as lines or on the terminal.
 *
 * Returns 1 when the stream has ended, 0 when the user has seen enough, or an error.
 */
int tw_top_lines(const struct tw_top_view *view);
int tw_top_screen(const struct tw_top_view *view);
/* The lines of one round; false: standard output is gone. */
bool tw_top_put(const struct tw_top_view *view);

#endif
