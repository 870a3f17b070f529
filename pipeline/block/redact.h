/* SPDX-License-Identifier: Apache-2.0 */
/*
 * redact.h - replaces what regular expressions match in the text of records and definitions by asterisks, one for each byte.
 *
 * Text is what arguments and results point to (strings, memory), paths of descriptors, strings and binaries in terms, labels of processes,
 * and the command line. Numbers and names stay. Lengths do not change, so that a record can be changed where it lies.
 *
 * Expressions  POSIX extended, without regard to case. If one has groups, what they match is replaced, else the whole match.
 *		Each sees one text as it was recorded, which may be cut.
 * Threads	one.
 */
#ifndef TW_PIPELINE_REDACT_H
#define TW_PIPELINE_REDACT_H

#include "tracewheel/layout.h"

#include <stddef.h>
#include <stdint.h>

struct tw_redact;

/* The note that a capture has of it. */
#define TW_REDACT_NOTE "text that --redact names is replaced by '*'"

/*
 * tw_redact_create - compile the expressions.
 *
 * @patterns	borrows until the call returns.
 * @out		gives.
 * Errors: TW_EBADARG (not an expression, or it matches the empty text), TW_ENOMEM.
 */
int tw_redact_create(const char *const *patterns, size_t count, struct tw_redact **out);
/* The same for the lines "redact EXPRESSION" of a configuration.  NULL without an error: there are none. */
int tw_redact_create_lines(const char *config, struct tw_redact **out);
void tw_redact_destroy(struct tw_redact *redact);

/*
 * tw_redact_record - change a record in place.
 *
 * @record	aligned to a word; its size is that of its head, which the caller has checked.
 * @layout	of the function whose call or return it is; NULL: it has none.
 */
void tw_redact_record(struct tw_redact *redact, const struct tw_layout *layout, uint8_t *record);

/* The same for a definition; @type is of enum tw_def_type. */
void tw_redact_definition(struct tw_redact *redact, uint32_t type, uint8_t *payload, size_t bytes);

/* How many records were changed. */
uint64_t tw_redact_count(const struct tw_redact *redact);

#endif
