/* SPDX-License-Identifier: Apache-2.0 */
/*
 * counts.c - counters in shared memory: rows and blocks, taken by members, read and given back by the owner.
 *
 * Memory is made present before it is used: a store into a hole of a full tmpfs would be a SIGBUS in the program.  Once it is open,
 * children inherit the section, unlike rings: a hit that a fork in a signal handler interrupted adds to a word that is
 * still there.  The handlers of fork() replace it at once.
 */
#include "base/error.h"
#include "base/sys.h"
#include "ringbuf/inside.h"

#include <stddef.h>
#include <string.h>

static struct tw_rs_counts *own_section(const struct tw_rs *rs)
{
	return rs->own.counts.mapped_bytes == TW_RS_COUNTS_BYTES ? (struct tw_rs_counts *)(void *)rs->own.counts.mapped
								 : NULL;
}

static bool make_present(const void *at)
{
	uintptr_t page = (uintptr_t)at & ~(uintptr_t)(TW_PAGE_BYTES - 1);

	return tw_sys_populate_write((void *)page, TW_PAGE_BYTES) != -EFAULT;
}

/* ---- member ---- */

int tw_rs_counts_open(struct tw_rs *rs)
{
	struct tw_rs_own_counts *own = &rs->own.counts;
	uint8_t *at;

	if (!own->mapped)
		return TW_ENOTSUP;
	if (own_section(rs))
		return 0;
	at = tw_sys_map_more(own->mapped, own->mapped_bytes, TW_RS_COUNTS_BYTES);
	if (!at)
		return TW_ENOMEM;
	own->mapped = at;
	own->mapped_bytes = TW_RS_COUNTS_BYTES;
	tw_sys_share_with_children(at, TW_RS_COUNTS_BYTES);
	return 0;
}

/* Raises an upper bound to include the number. */
static void include(_Atomic uint32_t *bound, uint32_t number)
{
	/* RELAXED rs.count_bound: the compare-and-swap decides. */
	uint32_t count = tw_load_relaxed(bound);

	/* RELAXED rs.count_bound: it only grows; readers rely on the state of each entry. */
	while (count <= number && !tw_cas_relaxed(bound, &count, number + 1))
		;
}

uint32_t tw_rs_counts_claim(struct tw_rs *rs, const struct tw_rs_count_claim *claim)
{
	struct tw_rs_counts *section = own_section(rs);

	for (uint32_t i = 0; section && i < TW_RS_COUNT_ROWS_MAX; i++) {
		struct tw_rs_count_row *row = &section->rows[i];
		uint32_t state = TW_RS_COUNT_FREE;

		if (!((uintptr_t)row % TW_PAGE_BYTES) && !make_present(row))
			return 0;
		/* RELAXED rs.count_bound: the compare-and-swap decides. */
		if (tw_load_relaxed(&row->state) != TW_RS_COUNT_FREE)
			continue;
		/* PAIR rs.count_row: acquire and release; the owner has freed the blocks of the row. */
		if (!tw_cas_acq_rel(&row->state, &state, TW_RS_COUNT_CLAIMED))
			continue;
		row->tracee_id = claim->tracee_id;
		row->thread_id = claim->thread_id;
		row->is_own_tracee = claim->is_own_tracee;
		/* RELAXED rs.lease: only its being different matters. */
		row->lease = tw_fetch_add_relaxed(&rs->own.counts.last_lease, 1) + 1;
		tw_sys_thread_name(row->thread_name);
		/* PAIR rs.count_row: release; acquire in tw_rs_counts_choose().  The thread of the row is visible. */
		tw_store_release(&row->state, TW_RS_COUNT_LIVE);
		include(&rs->own.head->counting.row_count, i);
		return i + 1;
	}
	return 0;
}

void tw_rs_counts_end(struct tw_rs *rs, uint32_t row)
{
	struct tw_rs_counts *section = own_section(rs);

	if (!section || !row)
		return;
	tw_sys_thread_name(section->rows[row - 1].thread_name);
	/* PAIR rs.count_row: release; acquire in tw_rs_counts_choose().  All its counts are stored. */
	tw_store_release(&section->rows[row - 1].state, TW_RS_COUNT_ENDED);
	/* RELAXED rs.count_ended: tells the owner to look. */
	tw_fetch_add_relaxed(&rs->own.head->counting.ended_count, 1);
}

/* Takes an entry that is 0, for a block that becomes LIVE later. */
static bool take_entry(_Atomic uint64_t *entry, uint32_t row, uint32_t group)
{
	uint64_t none = 0;

	/* PAIR rs.count_block: acquire and release; the owner has read the words of the block. */
	return tw_cas_acq_rel(entry, &none, TW_RS_COUNT_BLOCK(TW_RS_COUNT_CLAIMED, row, group));
}

/* A block that the owner gave back; TW_RS_NONE: none. */
static uint32_t take_free(struct tw_rs *rs, struct tw_rs_counts *section, uint32_t row, uint32_t group)
{
	struct tw_rs_counting *counting = &rs->own.head->counting;
	/* RELAXED rs.count_bound: entries below it are present. */
	uint32_t count = tw_load_relaxed(&counting->block_count);

	/* RELAXED rs.count_free: a hint. */
	if (!tw_load_relaxed(&counting->free_count))
		return TW_RS_NONE;
	for (uint32_t i = 0; i < count && i < TW_RS_COUNT_BLOCKS_MAX; i++) {
		/* RELAXED rs.count_free: the compare-and-swap decides. */
		if (tw_load_relaxed(&section->blocks[i]) || !take_entry(&section->blocks[i], row, group))
			continue;
		/* RELAXED rs.count_free: a hint. */
		tw_fetch_add_relaxed(&counting->free_count, UINT32_MAX);
		return i;
	}
	/* RELAXED rs.count_free: a hint, which was wrong. */
	tw_store_relaxed(&counting->free_count, 0);
	return TW_RS_NONE;
}

/* A block that was never used; TW_RS_NONE: none. */
static uint32_t take_new(struct tw_rs *rs, struct tw_rs_counts *section, uint32_t row, uint32_t group)
{
	_Atomic uint32_t *bound = &rs->own.head->counting.block_count;
	/* RELAXED rs.count_bound: the compare-and-swap decides. */
	uint32_t index = tw_load_relaxed(bound);

	/* RELAXED rs.count_bound: as above. */
	while (index < TW_RS_COUNT_BLOCKS_MAX && !tw_cas_relaxed(bound, &index, index + 1))
		;
	if (index >= TW_RS_COUNT_BLOCKS_MAX || !make_present(&section->blocks[index]) ||
	    !take_entry(&section->blocks[index], row, group))
		return TW_RS_NONE;
	return index;
}

struct tw_rs_count_words *tw_rs_counts_take(struct tw_rs *rs, uint32_t row, uint32_t group)
{
	struct tw_rs_counts *section = own_section(rs);
	uint32_t index;

	if (!section)
		return NULL;
	index = take_free(rs, section, row, group);
	if (index == TW_RS_NONE)
		index = take_new(rs, section, row, group);
	/* Without memory the entry stays taken: it is not tried again. */
	if (index == TW_RS_NONE || !make_present(&section->words[index]))
		return NULL;
	memset(&section->words[index], 0, sizeof section->words[index]);
	/* PAIR rs.count_block: release; acquire in next_block().  The words are zeros. */
	tw_store_release(&section->blocks[index], TW_RS_COUNT_BLOCK(TW_RS_COUNT_LIVE, row, group));
	return &section->words[index];
}

void tw_rs_counts_after_fork_in_child(struct tw_rs *rs)
{
	struct tw_rs_own_counts *own = &rs->own.counts;
	/* RELAXED rs.count_bound: the child has one thread; those of the parent may just have raised it. */
	uint64_t count = tw_load_relaxed(&rs->own.head->counting.block_count);
	uint64_t used_bytes = offsetof(struct tw_rs_counts, words) + (count + 1) * sizeof(struct tw_rs_count_words);

	if (!own->mapped)
		return;
	used_bytes = (used_bytes + TW_PAGE_BYTES - 1) / TW_PAGE_BYTES * TW_PAGE_BYTES;
	if (used_bytes > own->mapped_bytes)
		used_bytes = own->mapped_bytes;
	tw_sys_map_over(own->mapped, used_bytes);
	tw_sys_unmap(own->mapped + used_bytes, own->mapped_bytes - used_bytes);
}

/* ---- owner ---- */

static struct tw_rs_counts *section_of(const struct tw_rs *rs, uint32_t slot)
{
	return (struct tw_rs_counts *)(void *)(rs->images[slot].memory + TW_RS_COUNTS_AT(&rs->config));
}

/* RELAXED rs.count_bound: the states of entries decide; a hostile program may have written any number. */
#define BOUND(rs, slot, bound, most)                                      \
	(tw_load_relaxed(&tw_rs_head(rs, slot)->counting.bound) < (most)  \
		 ? tw_load_relaxed(&tw_rs_head(rs, slot)->counting.bound) \
		 : (most))

bool tw_rs_counts_are_there(const struct tw_rs *rs, uint32_t slot)
{
	return BOUND(rs, slot, block_count, TW_RS_COUNT_BLOCKS_MAX) != 0;
}

uint32_t tw_rs_counts_ended(const struct tw_rs *rs, uint32_t slot)
{
	/* RELAXED rs.count_ended: a hint to look. */
	return tw_load_relaxed(&tw_rs_head(rs, slot)->counting.ended_count);
}

void tw_rs_counts_choose(const struct tw_rs *rs, uint32_t slot, bool only_ended, struct tw_rs_count_choice *out)
{
	uint32_t count = BOUND(rs, slot, row_count, TW_RS_COUNT_ROWS_MAX);
	const struct tw_rs_counts *section = section_of(rs, slot);

	memset(out, 0, sizeof *out);
	out->rows[0] = !only_ended;
	for (uint32_t i = 0; i < count; i++) {
		/* PAIR rs.count_row: acquire; release in tw_rs_counts_claim(), tw_rs_counts_end(). */
		uint32_t state = tw_load_acquire(&section->rows[i].state);

		out->rows[i + 1] = state == TW_RS_COUNT_ENDED || (!only_ended && state != TW_RS_COUNT_FREE);
		out->count += out->rows[i + 1];
	}
}

static void read_row(const struct tw_rs_counts *section, uint64_t entry, struct tw_rs_seen_counts *out)
{
	uint32_t row = (uint32_t)(entry >> 32) & 0xffffff;

	memset(out, 0, offsetof(struct tw_rs_seen_counts, words));
	out->is_recorded = (uint32_t)entry >= TW_RS_COUNT_RECORDED_GROUP;
	out->first_place = (uint32_t)entry % TW_RS_COUNT_RECORDED_GROUP * TW_RS_COUNT_GROUP;
	if (row) {
		const struct tw_rs_count_row *from = &section->rows[row - 1];

		out->lease = from->lease;
		out->tracee_id = from->tracee_id;
		out->thread_id = from->thread_id;
		out->is_own_tracee = from->is_own_tracee;
		memcpy(out->thread_name, from->thread_name, sizeof out->thread_name);
	}
}

static void read_words(const struct tw_rs_counts *section, uint32_t index, struct tw_rs_seen_counts *out)
{
	for (unsigned i = 0; i < TW_RS_COUNT_GROUP; i++) {
		/* RELAXED count.add: calls in progress may or may not be counted. */
		out->words[i] = tw_load_relaxed(&section->words[index].words[i]);
	}
}

/* The next block of the rows chosen, from *at on, which is moved behind it; 0: there is none. */
static uint64_t next_block(const struct tw_rs *rs, uint32_t slot, const struct tw_rs_count_choice *choice, uint32_t *at)
{
	uint32_t count = BOUND(rs, slot, block_count, TW_RS_COUNT_BLOCKS_MAX);
	const struct tw_rs_counts *section = section_of(rs, slot);

	while (*at < count) {
		/* PAIR rs.count_block: acquire; release in tw_rs_counts_take(). */
		uint64_t entry = tw_load_acquire(&section->blocks[(*at)++]);
		uint32_t row = (uint32_t)(entry >> 32) & 0xffffff;

		if (entry >> 56 == TW_RS_COUNT_LIVE && row <= TW_RS_COUNT_ROWS_MAX && choice->rows[row])
			return entry;
	}
	return 0;
}

static int each_of(const struct tw_rs *rs, uint32_t slot, const struct tw_rs_count_choice *choice, bool is_recorded,
		   tw_rs_counts_fn fn, void *arg)
{
	const struct tw_rs_counts *section = section_of(rs, slot);
	struct tw_rs_seen_counts seen;
	uint32_t at = 0;
	int result = 0;

	for (uint64_t entry; !result && (entry = next_block(rs, slot, choice, &at));) {
		if ((uint32_t)entry / TW_RS_COUNT_RECORDED_GROUP != is_recorded)
			continue;
		read_row(section, entry, &seen);
		read_words(section, at - 1, &seen);
		result = fn(arg, &seen);
	}
	return result;
}

int tw_rs_counts_each(const struct tw_rs *rs, uint32_t slot, const struct tw_rs_count_choice *choice,
		      tw_rs_counts_fn fn, void *arg)
{
	int error = each_of(rs, slot, choice, true, fn, arg);

	return error ? error : each_of(rs, slot, choice, false, fn, arg);
}

/* Those of a block that have calls. */
static uint32_t read_aggregates(const struct tw_rs_counts *section, uint32_t index, struct tw_rs_aggregate *out)
{
	const struct tw_rs_aggregate *from = (const struct tw_rs_aggregate *)(const void *)&section->words[index];
	uint32_t count = 0;

	for (unsigned i = 0; i < TW_RS_AGGREGATES; i++) {
		/* PAIR rs.aggregate: acquire; release in make(). */
		uint64_t calls = tw_load_acquire(&from[i].count);

		if (!calls || from[i].place_id >= TW_DEF_IDS_MAX)
			continue;
		out[count].place_id = from[i].place_id;
		out[count].is_rest = from[i].is_rest;
		memcpy(out[count].aggregation, from[i].aggregation, sizeof out->aggregation);
		out[count].key = from[i].key;
		out[count].number = from[i].number;
		/* RELAXED count.add: calls in progress may or may not be counted. */
		tw_store_relaxed(&out[count].sum, tw_load_relaxed(&from[i].sum));
		/* RELAXED count.add: as above. */
		tw_store_relaxed(&out[count++].count, calls);
	}
	return count;
}

int tw_rs_aggregates_each(const struct tw_rs *rs, uint32_t slot, const struct tw_rs_count_choice *choice,
			  tw_rs_aggregates_fn fn, void *arg)
{
	const struct tw_rs_counts *section = section_of(rs, slot);
	struct tw_rs_aggregate aggregates[TW_RS_AGGREGATES];
	struct tw_rs_seen_counts seen;
	uint32_t at = 0, count;
	int result = 0;

	for (uint64_t entry; !result && (entry = next_block(rs, slot, choice, &at));) {
		if ((uint32_t)entry != TW_RS_AGGREGATE_GROUP)
			continue;
		count = read_aggregates(section, at - 1, aggregates);
		if (!count)
			continue;
		read_row(section, entry, &seen);
		result = fn(arg, &seen, aggregates, count);
	}
	return result;
}

void tw_rs_counts_recycle(const struct tw_rs *rs, uint32_t slot, const struct tw_rs_count_choice *choice)
{
	uint32_t count = BOUND(rs, slot, block_count, TW_RS_COUNT_BLOCKS_MAX);
	struct tw_rs_image_head *head = (struct tw_rs_image_head *)(void *)rs->images[slot].memory;
	struct tw_rs_counts *section = section_of(rs, slot);

	for (uint32_t i = 0; i < count; i++) {
		/* RELAXED rs.count_bound: of a row that has ended. */
		uint64_t entry = tw_load_relaxed(&section->blocks[i]);
		uint32_t row = (uint32_t)(entry >> 32) & 0xffffff;

		if (entry >> 56 != TW_RS_COUNT_LIVE || !row || row > TW_RS_COUNT_ROWS_MAX || !choice->rows[row])
			continue;
		/* PAIR rs.count_block: release; acquire in take_entry().  Its words are read. */
		tw_store_release(&section->blocks[i], 0);
		/* RELAXED rs.count_free: a hint. */
		tw_fetch_add_relaxed(&head->counting.free_count, 1);
	}
	for (uint32_t row = 1; row <= TW_RS_COUNT_ROWS_MAX; row++) {
		if (choice->rows[row]) {
			/* PAIR rs.count_row: release; acquire in tw_rs_counts_claim().  Its blocks are free. */
			tw_store_release(&section->rows[row - 1].state, TW_RS_COUNT_FREE);
		}
	}
}
