/* SPDX-License-Identifier: Apache-2.0 */
/* top.h - the two ways in which `top` shows a table, and what they know of it. */
#ifndef TW_TOOLS_TOP_H
#define TW_TOOLS_TOP_H

#include "tools/top/table.h"
#include "views/output/output.h"

struct tw_command;
struct tw_top_view;

/* Results of take(); above 0 it goes on. */
enum tw_top_taken { TW_TOP_ENDED, TW_TOP_ROUND, TW_TOP_PIECE };

/* A table that is shown: of calls (calls.c), or of the processes of an Erlang node (node.c). */
struct tw_top_kind {
	const char *keys; /* the last line of the screen */
	/* Takes in what comes next; while it is paused, nothing of a round. Returns what it was, or an error. */
	int (*take)(const struct tw_top_view *view, bool is_paused);
	/* As text, each returns @text: the sentence above, the titles, a row. */
	const char *(*head)(const void *table, char text[TW_TOP_LINE_BYTES]);
	const char *(*titles)(const void *table, char text[TW_TOP_LINE_BYTES]);
	const char *(*line)(const void *table, uint32_t row, char text[TW_TOP_LINE_BYTES]);
	/* The members of a round, with the first @count rows. */
	void (*json)(const void *table, struct tw_json *json, uint32_t count);
	uint32_t (*row_count)(const void *table);
	bool (*is_active)(const void *table, uint32_t row); /* has it done something in this round? */
	const char *(*order_name)(const void *table);
	/* Keys: what stands between rounds is arranged again by arrange(), which returns 0 or an error. */
	void (*next_order)(void *table);
	void (*swap)(void *table);  /* the other rows */
	void (*reset)(void *table); /* numbers begin at 0 */
	int (*arrange)(void *table);
	/* Is there a further table to print as text? That is then shown; else the first. NULL: there is one table. */
	bool (*next_part)(void *table);
};

struct tw_top_view {
	const struct tw_top_kind *kind;
	void *table;
	char *filter;		    /* of TW_TOP_FILTER_BYTES: names contain it */
	struct tw_capture *capture; /* of calls: a stream */
	int fd;			    /* from which it is read */
	bool is_json;
	uint64_t rounds;    /* 0: until the stream ends */
	uint32_t row_count; /* the most that are shown; 0: all */
};

extern const struct tw_top_kind tw_top_of_calls;

/*
 * tw_top_lines, tw_top_screen - show the table once for each round, as lines or on the terminal.
 *
 * Returns 1 when the stream has ended, 0 when the user has seen enough, or an error.
 */
int tw_top_lines(const struct tw_top_view *view);
int tw_top_screen(const struct tw_top_view *view);
/* The lines of one round; false: standard output is gone. */
bool tw_top_put(const struct tw_top_view *view);
/* Options that both commands have; false: wrong, which has been reported. */
bool tw_top_set_every(const struct tw_command *command, uint64_t *out_ns, const char *value);
bool tw_top_set_format(const struct tw_command *command, struct tw_top_view *view, const char *value);
bool tw_top_set_number(const struct tw_command *command, uint64_t *out, const char *option, const char *value);

/* The command `top --erlang`. Returns the exit code. */
int tw_top_node(int argc, char **argv);

#endif
