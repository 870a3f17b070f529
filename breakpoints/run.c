/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run.c - a run of writes opens memory once per page or mapping, and excludes the unloading of objects.
 *
 * The slots and sleds of an unloaded object disappear with it, and the notification comes only afterwards.  Thus
 * nothing is written around unloading (tw_patch_suspend): a run of writes and an unloading exclude each other by two words;
 * each side writes its own and then reads the other's (PAIR patch.suspend).  A lock would be held while destructors
 * run.
 */
#include "breakpoints/run.h"

#include "base/atomic.h"
#include "base/filter.h"
#include "base/grow.h"
#include "base/limits.h"
#include "breakpoints/patch.h"
#include "tracewheel/error.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>

struct tw_open_text {
	uintptr_t low, high;
	int protection; /* original protection */
};

static _Atomic uint32_t suspensions;
static _Atomic bool is_writing;

/* ---- writes and unloading exclude each other ---- */

/* May memory be written?  If so, no unloading begins until stop_writing(). */
static bool start_writing(void)
{
	/* PAIR patch.suspend: seq_cst; tw_patch_suspend() writes its word and reads this one. */
	tw_store_seq_cst(&is_writing, true);
	/* PAIR patch.suspend: seq_cst; as above. */
	if (tw_load_seq_cst(&suspensions) == 0)
		return true;
	/* PAIR patch.suspend: seq_cst; as above. */
	tw_store_seq_cst(&is_writing, false);
	return false;
}

static void stop_writing(void)
{
	/* PAIR patch.suspend: seq_cst; all writes are done before an unloading begins. */
	tw_store_seq_cst(&is_writing, false);
}

void tw_patch_suspend(void)
{
	/* PAIR patch.suspend: seq_cst; start_writing() writes its word and reads this one. */
	tw_fetch_add_seq_cst(&suspensions, 1);
	/* PAIR patch.suspend: seq_cst; as above. */
	while (tw_load_seq_cst(&is_writing)) {
		if (tw_thread_may_call_system())
			sched_yield();
		else
			tw_cpu_relax();
	}
}

uint32_t tw_patch_suspension_count(void)
{
	/* RELAXED patch.suspended: a hint; the next run of writes finds out. */
	return tw_load_relaxed(&suspensions);
}

void tw_patch_end_suspension(void)
{
	/* PAIR patch.suspend: seq_cst; as above. */
	tw_fetch_add_seq_cst(&suspensions, (uint32_t)-1);
}

void tw_patch_after_fork_in_child(uint32_t suspension_count)
{
	/* RELAXED patch.fork: the child has one thread. */
	tw_store_relaxed(&suspensions, suspension_count);
	/* RELAXED patch.fork: as above; a change in progress is aborted. */
	tw_store_relaxed(&is_writing, false);
}

/* ---- memory that is open for writing ---- */

static bool is_open(const struct tw_patch_run *run, uintptr_t address)
{
	/* The last one first: neighbouring places follow each other. */
	for (size_t i = run->text_count; i-- > 0;)
		if (address >= run->texts[i].low && address < run->texts[i].high)
			return true;
	return false;
}

int tw_run_open_text(struct tw_patch_run *run, uintptr_t address)
{
	const struct tw_mapping *mapping;

	if (is_open(run, address))
		return 0;
	mapping = tw_mapping_at(&run->mappings, address);
	if (!mapping || !(mapping->protection & PROT_EXEC))
		return TW_EPERM;
	if (!tw_grow(run->texts, run->text_count, run->text_capacity))
		return TW_ENOMEM;
	if (!(mapping->protection & PROT_WRITE) &&
	    mprotect((void *)mapping->low, mapping->high - mapping->low, mapping->protection | PROT_WRITE))
		return errno == ENOMEM ? TW_ENOMEM : TW_EPERM;
	run->texts[run->text_count++] = (struct tw_open_text){mapping->low, mapping->high, mapping->protection};
	return 0;
}

static void close_texts(struct tw_patch_run *run)
{
	for (size_t i = 0; i < run->text_count; i++) {
		const struct tw_open_text *text = &run->texts[i];

		if (!(text->protection & PROT_WRITE))
			mprotect((void *)text->low, text->high - text->low, text->protection);
	}
	run->text_count = 0;
}

static void close_page(struct tw_patch_run *run)
{
	if (run->open_page)
		mprotect((void *)run->open_page, TW_PAGE_BYTES, run->open_protection);
	run->open_page = 0;
}

bool tw_run_open_page(struct tw_patch_run *run, uintptr_t page, int protection)
{
	if (protection & PROT_WRITE || run->open_page == page)
		return true;
	close_page(run);
	if (mprotect((void *)page, TW_PAGE_BYTES, protection | PROT_WRITE))
		return false;
	run->open_page = page;
	run->open_protection = protection;
	return true;
}

/* Each thread is one directory there. */
bool tw_run_has_one_thread(struct tw_patch_run *run)
{
	struct stat status;

	if (!run->thread_count)
		run->thread_count = stat("/proc/self/task", &status) == 0 && status.st_nlink > 2
					    ? (unsigned)status.st_nlink - 2
					    : 2;
	return run->thread_count == 1;
}

/* ---- a run ---- */

void tw_run_begin(struct tw_patch_run *run)
{
	run->is_begun = true;
	run->may_write = start_writing();
}

void tw_run_end(struct tw_patch_run *run)
{
	close_texts(run);
	close_page(run);
	stop_writing();
	tw_mappings_forget(&run->mappings);
	run->thread_count = 0;
	run->may_write = false;
	run->is_begun = false;
}

void tw_run_after_fork_in_child(struct tw_patch_run *run)
{
	/* Texts that were open stay in the list: the next run closes them. */
	run->is_begun = run->may_write = false;
	run->thread_count = 0;
	run->open_page = 0;
	run->entry_count = run->sled_count = 0;
}
