/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run.h - a run of writes: memory of the program that is open for writing, from tw_patch_begin() to tw_patch_end().
 *
 * The permit carries it, so one thread has it at a time.  Shared by the files of this room that write.
 */
#ifndef TW_BREAKPOINTS_RUN_H
#define TW_BREAKPOINTS_RUN_H

#include "breakpoints/maps.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tw_open_text;
struct tw_place;

struct tw_patch_run {
	bool is_begun;
	bool may_write;	       /* it began while no thread had suspended writing; else the writes are due */
	unsigned thread_count; /* read once per run; 0: not read */
	struct tw_mappings mappings;
	/* Text: whole mappings. */
	struct tw_open_text *texts;
	size_t text_count, text_capacity;
	/* Slots: one page.  Neighbouring slots come one after another; 0: none is open. */
	uintptr_t open_page;
	int open_protection;
	/* Entries whose jumps are written at its end, and those that could not be written, ever. */
	struct tw_place **entries;
	size_t entry_count, entry_capacity;
	bool has_sites; /* some of them are NOPs of probes */
	uint32_t unplanted_count;
	/* Sleds of which another process makes one instruction at its end, while all threads are stopped. */
	struct tw_place **sleds;
	size_t sled_count, sled_capacity;
	/* Kept beyond the run: writes are due once writing is no longer suspended. */
	bool is_slot_due, is_sled_due;
};

void tw_run_begin(struct tw_patch_run *run);
/* Restores the protection of all memory that was opened. */
void tw_run_end(struct tw_patch_run *run);

/*
 * tw_run_open_text - make the executable mapping at an address writable in addition, until the run ends.
 *
 * Errors: TW_EPERM (no such mapping, or the system refuses), TW_ENOMEM.
 */
int tw_run_open_text(struct tw_patch_run *run, uintptr_t address);

/* Makes a page with that protection writable, until the run ends or opens another page; false: the system refuses. */
bool tw_run_open_page(struct tw_patch_run *run, uintptr_t page, int protection);

/* True if the process has only one thread.  Read once per run. */
bool tw_run_has_one_thread(struct tw_patch_run *run);

/* In a forked child: a run of a thread that does not exist here is over. */
void tw_run_after_fork_in_child(struct tw_patch_run *run);

#endif
