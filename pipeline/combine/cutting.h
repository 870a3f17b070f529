/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cutting.h - what cut.c (segments and definitions) and cut_events.c (events and losses) share.
 *
 * Threads  one.
 */
#ifndef TW_PIPELINE_CUTTING_H
#define TW_PIPELINE_CUTTING_H

#include "pipeline/block/redact.h"
#include "pipeline/combine/copy.h"
#include "pipeline/combine/strip.h"
#include "tracewheel/cut.h"

struct tw_cutting {
	struct tw_capture *capture;
	const struct tw_cut_options *options;
	struct tw_cut_result *result;
	struct tw_copy copy;	  /* its segment is the one that is written */
	struct tw_map *places;	  /* by image: the selected places; NULL: all */
	bool *streams;		  /* by stream: is it selected? */
	uint8_t *records;	  /* of the block that is made */
	uint8_t *stripped;	  /* one record */
	struct tw_arena arena;	  /* for that */
	struct tw_redact *redact; /* NULL: nothing is replaced */
};

/* Does the image have events or losses in the selection? */
bool tw_cutting_has_events(const struct tw_cutting *cutting, uint32_t image);

/* Writes those of the image to the open segment. Returns 0 or an error. */
int tw_cutting_events(struct tw_cutting *cutting, uint32_t image);

#endif
