/* SPDX-License-Identifier: Apache-2.0 */
/*
 * site.h - hits of probes that a program brings itself: a probe is a call without an end, whose arguments are where its note says.
 *
 * Registers, constants, and memory of the function's own frame or of the object's data are read at once; other memory by the kernel, which
 * returns an error for an invalid address: the argument is then 0, as under a system call filter.
 *
 * Threads  any, as for hits.  Keeps errno and vector registers.
 */
#ifndef TW_PIPELINE_SITE_H
#define TW_PIPELINE_SITE_H

#include "breakpoints/breakpoints.h"

#include <stdint.h>

/* Of type tw_bp_site_fn. */
void tw_site_hit(struct tw_place *place, const uint64_t registers[16]);

/*
 * tw_site_arguments - the first arguments of a probe, each extended to 64 bits as its sign says; 0 for those that it has not, or that are not
 * known.
 *
 * @out		TW_ARGS_MAX words.
 */
void tw_site_arguments(const struct tw_bp_entry *entry, const uint64_t registers[16], uint64_t *out);

#endif
