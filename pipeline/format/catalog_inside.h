/* SPDX-License-Identifier: Apache-2.0 */
/* catalog_inside.h - what the files of the catalog share. */
#ifndef TW_PIPELINE_CATALOG_INSIDE_H
#define TW_PIPELINE_CATALOG_INSIDE_H

#include "pipeline/format/catalog.h"

#include <string.h>

/* The rest of a record, or of a block. */
struct tw_catalog_input {
	const uint8_t *at;
	size_t left;
};

/* False: so much is not there. */
static inline bool tw_catalog_take(struct tw_catalog_input *input, void *to, size_t bytes)
{
	if (input->left < bytes)
		return false;
	memcpy(to, input->at, bytes);
	input->at += bytes;
	input->left -= bytes;
	return true;
}

/* Adds a copy of the structure, unless its id is known. */
int tw_catalog_add_copy(struct tw_catalog_table *table, uint64_t id, const void *from, size_t bytes);

/* Copies a counted text into a terminated one. Returns 0 or an error. */
int tw_catalog_take_text(struct tw_catalog_input *input, size_t bytes, char **out);
/* Adds an item whose texts were read with this result; frees what is not added. Returns 0 or an error. */
int tw_catalog_add_or_free(struct tw_catalog_table *table, uint64_t id, void *item, int error,
			   void (*free_item)(void *));

/* Records of parts (catalog_part.c).  Return 0 or an error. */
int tw_catalog_part(struct tw_catalog *catalog, struct tw_catalog_input *input);
int tw_catalog_line(struct tw_catalog *catalog, struct tw_catalog_input *input);
int tw_catalog_whole_place(struct tw_catalog *catalog, struct tw_catalog_input *input);
void tw_catalog_free_line(void *line);

/* Records of processes and ports (catalog_tracees.c).  Return 0 or an error. */
int tw_catalog_tracee(struct tw_catalog *catalog, struct tw_catalog_input *input);
void tw_catalog_free_tracee(void *tracee);

/* Records of calls that are counted (catalog_counts.c).  Return 0 or an error. */
int tw_catalog_counted(struct tw_catalog *catalog, struct tw_catalog_input *input);
int tw_catalog_counts(struct tw_catalog *catalog, struct tw_catalog_input *input, bool are_recorded);
int tw_catalog_aggregates(struct tw_catalog *catalog, struct tw_catalog_input *input);

#endif
