/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unframed.h - named functions without call frame information whose returns must not be watched.
 *
 * Hand-written code often has none.  Such a function has no entry, but calls of it are recorded through slots; if it keeps its
 * return address for later (another getcontext()), that must be the true one.
 *
 * Threads  one belongs to one thread.
 */
#ifndef TW_PLAN_UNFRAMED_H
#define TW_PLAN_UNFRAMED_H

#include "plan/scan.h"

struct tw_unframed {
	const struct tw_scan *scan;
	const struct tw_elf_sections *sections; /* whose functions are examined */
	size_t next;
};

void tw_unframed_init(struct tw_unframed *unframed, const struct tw_scan *scan);

/*
 * tw_unframed_next - the next function that uses its return address, other than by returning.
 *
 * Returns the first of its names, others follow it in sections->functions; NULL: none begins below the limit.
 */
const struct tw_elf_function *tw_unframed_next(struct tw_unframed *unframed, uint64_t limit);

#endif
