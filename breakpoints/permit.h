/* SPDX-License-Identifier: Apache-2.0 */
/* permit.h - the permit's structure, shared by the files of this room. */
#ifndef TW_BREAKPOINTS_PERMIT_H
#define TW_BREAKPOINTS_PERMIT_H

#include "base/ck_table.h"
#include "breakpoints/breakpoints.h"
#include "breakpoints/run.h"

/* The only permit.  All its fields belong to the thread that holds it. */
struct tw_permit {
	struct tw_place *staged; /* linked by next_staged, ended by the place itself */
	unsigned staged_count;
	bool has_new_code;    /* staged: a place whose installation is code */
	bool has_counting;    /* staged: a place that counts, or did, whose calls' length decides, or with a trigger */
	bool has_uninstalled; /* staged: a place that is not installed */
	bool has_fewer;	      /* staged: a place from which a session removes something */
	struct tw_patch_run run;
	struct tw_module *modules;
	struct tw_module *gone_modules; /* unloaded modules, which may be loaded again */
	/* By module, name and arity: chains, a power of two of them. */
	struct tw_function **function_chains;
	uint32_t function_chain_count;
	struct tw_ck_table places;    /* by address */
	struct tw_place *free_places; /* lie side by side */
	size_t free_count, made_count;
	uint32_t next_module_id;
	uint32_t next_function_id;
	uint32_t next_place_id;
};

/* Does this thread hold it?  Every function with a permit parameter asserts it. */
bool tw_permit_is_held(const struct tw_permit *permit);

#endif
