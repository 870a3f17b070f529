/* SPDX-License-Identifier: Apache-2.0 */
/* gate.c - the words that every hit reads first: the gate, and the function that trampolines call. */
#include "breakpoints/breakpoints.h"

#include <sys/mman.h>

/* A page of its own: fork() wipes it, and a child that is not traced finds 0 and stays silent. */
_Alignas(TW_PAGE_BYTES) struct tw_bp_gate tw_bp_gate;

tw_bp_hit_fn tw_bp_trampoline_hit;
tw_bp_site_fn tw_bp_site_hit;
const char *tw_bp_bare_slot, *tw_bp_bare_sled;

static _Atomic bool is_initialised;
static uint32_t active_index;

void tw_bp_init(void)
{
	/* RELAXED bp.init: written and read under the permit. */
	if (tw_load_relaxed(&is_initialised))
		return;
#ifdef MADV_WIPEONFORK
	madvise(&tw_bp_gate, sizeof tw_bp_gate, MADV_WIPEONFORK);
#endif
	/* RELAXED bp.init: as above. */
	tw_store_relaxed(&is_initialised, true);
	tw_bp_gate_open();
}

void tw_bp_gate_open(void)
{
	/* PAIR bp.active: release; acquire in hit_inside().  The first generation is empty. */
	tw_store_release(&tw_bp_gate.active, active_index + 1);
}

unsigned tw_bp_active_index(void)
{
	return active_index;
}

void tw_bp_switch(void)
{
	active_index = 1 - active_index;
	/*
	 * PAIR bp.active: release; acquire in hit_inside() and the other hits.
	 * Publishes every staged generation at once.  Without it a hit could read parts that are not
	 * written yet.
	 */
	tw_store_release(&tw_bp_gate.active, active_index + 1);
}
