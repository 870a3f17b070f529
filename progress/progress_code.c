/* SPDX-License-Identifier: Apache-2.0 */
/*
 * progress_code.c - barriers that a thread makes all others execute: of memory, and of instructions (no thread runs
 * instructions that it fetched before).
 *
 * Uses membarrier().  If the kernel lacks it, it changes the protection of a page that every processor may have in
 * its translation buffer: the kernel interrupts each processor that runs this process, and the return from an
 * interrupt serialises.
 */
#include "progress/progress.h"
#include "progress/read_side.h"
#include "base/cacheline.h"
#include "base/sys.h"

#include <sys/mman.h>

static _Atomic int is_initialised;
static _Atomic int has_sync_core;

void tw_progress_init(void)
{
	/* PAIR progress.init: acquire; release in tw_progress_init() of the first thread.  The results are seen with it. */
	if (tw_load_acquire(&is_initialised))
		return;
	if (tw_sys_membarrier_register(true) == 0) {
		/* RELAXED progress.sync_core: published by PAIR progress.init. */
		tw_store_relaxed(&has_sync_core, 1);
	}
	if (tw_sys_membarrier_register(false) == 0) {
		/*
		 * RELAXED progress.notes, progress.epoch: from now on waits make readers execute barriers; a reader that still
		 * executes its own has one too many.  Done once, even if several threads come here at the same time.
		 */
		tw_fetch_and_relaxed(&tw_progress_global.notes, ~TW_PROGRESS_HAS_NO_HELP);
		tw_fetch_and_relaxed(&tw_progress_global.epoch, ~TW_PROGRESS_FENCED);
	}
	/* PAIR progress.init: release; acquire in tw_progress_init() of a later thread. */
	tw_store_release(&is_initialised, 1);
}

bool tw_progress_has_code_barrier(void)
{
	/* RELAXED progress.sync_core: written before PAIR progress.init, constant after. */
	return tw_load_relaxed(&has_sync_core);
}

static void interrupt_all(void)
{
	void *page = mmap(NULL, TW_PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (page == MAP_FAILED)
		return;
	*(volatile char *)page = 1;
	mprotect(page, TW_PAGE_BYTES, PROT_NONE);
	munmap(page, TW_PAGE_BYTES);
}

void tw_progress_barrier_everywhere(void)
{
	/* RELAXED progress.notes: constant since tw_progress_init(). */
	bool is_needed = !(tw_load_relaxed(&tw_progress_global.notes) & TW_PROGRESS_HAS_NO_HELP);

	/* A registered membarrier can be refused by a later seccomp filter. */
	if (is_needed && tw_sys_membarrier(false) != 0)
		interrupt_all();
	/* The waiter's own barrier, paired with the readers' own. */
	tw_full_barrier();
}

void tw_progress_wait_code(void)
{
	tw_progress_wait();
	tw_progress_note_code_wait();
	if (!tw_progress_has_code_barrier() || tw_sys_membarrier(true) != 0)
		interrupt_all();
}
