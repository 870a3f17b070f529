/* SPDX-License-Identifier: Apache-2.0 */
/* permit.h - what the files of this room share about the permit. */
#ifndef TW_BREAKPOINTS_PERMIT_H
#define TW_BREAKPOINTS_PERMIT_H

#include "base/ck_table.h"
#include "breakpoints/breakpoints.h"

/* There is one.  Everything in it belongs to the thread that holds it. */
struct tw_permit {
	struct tw_place *staged; /* linked by next_staged, ended by the place itself */
	unsigned staged_count;
	bool has_new_code;    /* staged: a place whose installation is code */
	bool has_counting;    /* staged: a place that counts, or did */
	bool has_uninstalled; /* staged: a place that is not installed */
	bool has_fewer;	      /* staged: a place of which somebody wants less */
	struct tw_module *modules;
	struct tw_module *gone_modules; /* that were unloaded, and may come back */
	/* By module, name and arity: chains, a power of two of them. */
	struct tw_function **function_chains;
	uint32_t function_chain_count;
	struct tw_ck_table places; /* by address */
	struct tw_place *free_places; /* lie side by side */
	size_t free_count, made_count;
	uint32_t next_module_id;
	uint32_t next_function_id;
	uint32_t next_place_id;
};

/* Is it this thread that holds it?  What every function with a permit as parameter asserts. */
bool tw_permit_is_held(const struct tw_permit *permit);

#endif
