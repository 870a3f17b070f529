/* SPDX-License-Identifier: Apache-2.0 */
/*
 * strip.h - takes out of records and definitions what the program handled, and where its files were.
 *
 * Threads  one.
 */
#ifndef TW_PIPELINE_STRIP_H
#define TW_PIPELINE_STRIP_H

#include "pipeline/format/format.h"
#include "tracewheel/term.h"

#include <stdbool.h>

/* The most bytes of a record, and of what replaces it. */
#define TW_STRIP_RECORD_BYTES (UINT32_C(1) << 16)

/*
 * tw_strip_record - copy a record without arguments, messages and reasons.
 *
 * Calls have no arguments, and returns a number at most. Of the terms of other events pids and ports stay, and names; the others
 * become '...'.
 *
 * @arena	for terms while it runs.
 * @to		has TW_STRIP_RECORD_BYTES.
 */
void tw_strip_record(struct tw_arena *arena, const uint8_t *record, uint8_t *to);

/*
 * tw_strip_definition - the same for a definition: paths become names of files, the command line the program's name; layouts, notes, the
 * host's name, labels of processes and descriptions of descriptors go.
 *
 * @head	in, out: its size.
 * @payload	in, out: it only becomes shorter.
 *
 * Returns false if nothing is left.
 */
bool tw_strip_definition(struct tw_definition_head *head, uint8_t *payload);

/* "b.c" of "/a/b.c". */
const char *tw_strip_folders(const char *path, size_t *bytes);

#endif
