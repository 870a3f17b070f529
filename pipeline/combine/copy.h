/* SPDX-License-Identifier: Apache-2.0 */
/*
 * copy.h - the segments of one capture into the folder of another.
 *
 * Threads  one.
 */
#ifndef TW_PIPELINE_COPY_H
#define TW_PIPELINE_COPY_H

#include "pipeline/combine/retime.h"

struct tw_copy {
	int directory_fd; /* of the new capture */
	uint64_t capture_id;
	const struct tw_merge_options *options;
	struct tw_merge_result *result;
	struct tw_block_encoder *encoder;
	struct tw_block_decoder *index_decoder, *decoder;
	uint8_t *raw;
	/* Added to the numbers of the present input, so that they differ from those before it. */
	uint64_t ring_lease_base, image_lease_base;
	uint32_t segment_base;
	/* The conversion of the present input's times; NULL: they stay as they are. */
	struct tw_retime *retime;
	const struct tw_merge_input *input;
	/* Missing data of all inputs, for the first segment. */
	uint64_t account[TW_ACCOUNT_CAUSES];
	bool has_account;
	uint32_t *numbers; /* of segments that are written, still called .part */
	uint32_t number_count, number_capacity;
	struct tw_segment segment;
	int error;
};

/* Returns 0, TW_ENOMEM or TW_EIO. tw_copy_fini() in any case. */
int tw_copy_init(struct tw_copy *copy);
void tw_copy_fini(struct tw_copy *copy);

/* Copies all segments of copy->input. Returns 0 or an error; then no file is open. */
int tw_copy_input(struct tw_copy *copy);

/* ---- what cut.c shares ---- */

/* Returns whether the definition holds a lease or a time, which it gives its new value. */
bool tw_copy_move_definition(const struct tw_copy *copy, const struct tw_definition_head *head, uint8_t *payload);
/* Adds a definition of a structure and a text at *used, which it moves. */
void tw_copy_put_definition(uint8_t *bytes, uint32_t *used, uint32_t type, const void *fixed, size_t fixed_bytes,
			    const char *text, size_t text_bytes);
/* The header of a segment of the new capture, made from one of the input. */
struct tw_segment_header tw_copy_header(struct tw_copy *copy, const struct tw_segment_header *from);
/* Writes copy->account to the open segment. */
int tw_copy_account(struct tw_copy *copy, const struct tw_format_clock *clock);
/* Writes index and trailer; the file keeps its name .part until all are written. Returns 0 or an error. */
int tw_copy_seal(struct tw_copy *copy);

#endif
