/* SPDX-License-Identifier: Apache-2.0 */
/*
 * redacting.h - applies the expressions of a ring set's configuration to what the recorder has copied, before any of it is in a
 * file: the layouts of arguments say where text is.
 *
 * The configuration has the expressions, so that those who complete the capture of a dead recorder, or write what a flight
 * recorder holds, apply them too.
 *
 * Threads  one: the writer's.
 */
#ifndef TW_PIPELINE_REDACTING_H
#define TW_PIPELINE_REDACTING_H

#include "ringbuf/ringset.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tw_redacting;

/* @out: gives; NULL if the configuration has no expressions.  Errors: TW_EBADARG, TW_ENOMEM. */
int tw_redacting_create(const char *config, struct tw_redacting **out);
void tw_redacting_destroy(struct tw_redacting *redacting);

/*
 * tw_redacting_records - change these records of an image in place.
 *
 * Returns 0 or TW_ENOMEM: then they must not be stored.
 */
int tw_redacting_records(struct tw_redacting *redacting, const struct tw_rs *rs, uint32_t image, uint8_t *raw,
			 uint32_t bytes);
/* The same for the payload of a definition. */
void tw_redacting_definition(struct tw_redacting *redacting, uint32_t type, uint8_t *payload, size_t bytes);
/* How many records were changed; NULL: 0. */
uint64_t tw_redacting_count(const struct tw_redacting *redacting);

#endif
