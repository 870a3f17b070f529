/* SPDX-License-Identifier: Apache-2.0 */
/*
 * target.h - the folder of a capture that is made of others: complete, or not there.
 *
 * Threads  one.
 */
#ifndef TW_PIPELINE_TARGET_H
#define TW_PIPELINE_TARGET_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

struct tw_target {
	const char *path; /* borrowed */
	bool is_forced;	  /* replace a capture there; never anything else, nor one being recorded */
	char part[PATH_MAX];
	int fd; /* of the unfinished folder, for its segments; -1: none */
};

/* May something be written to the path? 0, TW_EEXIST, or why that cannot be known. */
int tw_target_check(const struct tw_target *target);
/* Makes the unfinished folder. Returns 0 or an error; then tw_target_drop(). */
int tw_target_open(struct tw_target *target);
/* Removes it. */
void tw_target_drop(struct tw_target *target);
/* Gives the segments with these numbers and the folder their names. Returns 0 or an error; then tw_target_drop(). */
int tw_target_publish(struct tw_target *target, const uint32_t *numbers, uint32_t count);

#endif
