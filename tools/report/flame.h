/* SPDX-License-Identifier: Apache-2.0 */
/* flame.h - the parts of `tracewheel flame`: the page, and the sentences in it. */
#ifndef TW_TOOLS_FLAME_H
#define TW_TOOLS_FLAME_H

#include "tools/common/select.h"
#include "tools/report/report.h"
#include "tools/report/sides.h"
#include "views/folds/memory.h"

/* Nodes with less than this share of all time and of all calls are drawn together, as "(N smaller)". */
#define TW_FLAME_LEAST 0.01 /* in percent */

/* --memory: the bytes that frames are as wide as. */
struct tw_flame_memory {
	const char *name;  /* peak, live or allocated */
	const char *title; /* "memory at its peak" */
};
/* NULL: there is none of that name. @name: NULL: the peak. */
const struct tw_flame_memory *tw_flame_memory_kind(const char *name);

struct tw_flame {
	struct tw_selection selection;
	double least_percent;
	bool is_least_given;
	bool is_folded;
	bool is_off;			/* --off */
	bool is_by_process, is_by_kind; /* --by KEY; process: the first alone */
	enum tw_process_kind by;
	struct tw_sides sides;		    /* --diff */
	const struct tw_flame_memory *kind; /* --memory; NULL: not */
	struct tw_memory memory;	    /* made for it */
	/* For a page with more than the graph; NULL: none. Further members of its data, each with a comma before it, and what stands behind it. */
	bool (*put_more)(struct tw_out *out, void *context);
	void *context;
	const char *more_page;
};

/* The page of a capture, or of two sides of captures. Returns 0 or an error. */
int tw_flame_page(struct tw_out *out, const struct tw_flame *flame, const struct tw_calltree *tree,
		  const struct tw_capture_filter *filter, const char *path);
int tw_flame_diff_page(struct tw_out *out, const struct tw_flame *flame);

/*
 * tw_flame_memory_make - the tree of the stacks that allocated memory, whose times are bytes, and calls those that allocated.
 *
 * @tree	zeroed.
 *
 * Returns 0, TW_ENOTSUP (no calls of memory were recorded) or another error; the tree and the memory are freed in any case.
 */
int tw_flame_memory_make(struct tw_flame *flame, struct tw_calltree *tree, struct tw_capture *capture,
			 const struct tw_capture_filter *filter);

/* Before the tree is made: its sums are wanted by thread and time. @parts: zeroed; borrowed by the tree. */
void tw_flame_want_parts(struct tw_calltree *tree, struct tw_parts *parts, const struct tw_capture *capture,
			 const struct tw_capture_filter *filter);
/*
 * The member "parts": the page's nodes by thread and slice of time; nothing if there is one of both, or too many.
 *
 * @written	by node of the tree: its number on the page. The tree's parts are used up.
 *
 * Returns false without memory.
 */
bool tw_flame_parts(struct tw_out *out, const struct tw_calltree *tree, const uint32_t *written);

/* Objects of JSON, one a sentence, with a comma between them. @least_percent: of the whole; smaller frames are drawn together. */
void tw_flame_notes(struct tw_out *out, const struct tw_calltree *tree, const struct tw_capture_filter *filter,
		    bool has_times, double least_percent);
void tw_flame_memory_notes(struct tw_out *out, const struct tw_flame *flame, const struct tw_calltree *tree,
			   double least_percent);
void tw_flame_diff_notes(struct tw_out *out, const struct tw_sides *sides, double least_percent);

#endif
