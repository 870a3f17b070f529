/* SPDX-License-Identifier: Apache-2.0 */
/*
 * entry_copies.c - the instructions that jumps displace, re-based, within reach of their functions.
 *
 * An area is a run of pages near an object, for copies of that object's functions alone:
 *
 *	code	copy n:	jmp *word n; padding; instructions; jmp rest of the function; perhaps a literal
 *	words	word n: where the thunk leads
 *	index	where copy n begins, and its frames
 *	frames	of copy n: an .eh_frame_hdr with one row, and its description; one common description first
 *
 * Code is written while its pages are writable, and they become executable at the end of the run of changes
 * (tw_entry_seal_copies); the next run begins with a new page.  No page is ever writable and executable, and none that
 * was executable becomes writable again.
 *
 * When the object has been unloaded, new pages take the place of the area's, and the area waits for another object
 * (tw_entry_forget_copies).  No thread can be in a copy then: it would have to return into the unloaded object.  An
 * unwinder that looks up an address there meanwhile reads the old index, or zeros, which describe nothing; so areas stay
 * mapped and in the list.
 */
#include "breakpoints/entry.h"

#include "base/cacheline.h"
#include "breakpoints/near.h"
#include "symbols/entry_plan.h"
#include "tracewheel/error.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* Copies of one area. */
#define COPIES_MIN 64u
#define COPIES_MAX 12288u
/* More than a copy and its frames take on average; a further area is made where that is not enough. */
#define CODE_BYTES_EACH	  56u
#define FRAMES_BYTES_EACH 72u
#define COPY_BYTES	  (TW_ENTRY_THUNK_BYTES + TW_ENTRY_SPACE_BYTES)
#define COPY_ALIGN	  16u
#define INT3		  0xcc

_Static_assert(COPIES_MAX *(CODE_BYTES_EACH + 8u) + 3 * TW_PAGE_BYTES < (1u << 20),
	       "a jump that reaches an area's start reaches its code and words");

enum {
	CFA_ADVANCE = 0x40,
	CFA_DEF = 0x0c,
	CFA_OFFSET = 0x80,
	RETURN_ADDRESS = 16,
	STACK_POINTER = 7,
	PCREL_SDATA4 = 0x1b,
	UDATA4 = 0x03,
	DATAREL_SDATA4 = 0x3b
};

#define COMMON_BYTES 24u
#define HEADER_BYTES 20u
/* A header, and a description: six words at most before its instructions, an advance, padding. */
#define FRAME_BYTES_MAX (HEADER_BYTES + 17u + 1u + TW_ENTRY_FRAME_BYTES_MAX + 8u)

struct item {
	uint32_t code, frames; /* offsets from their starts */
	const struct tw_bp_entry *entry;
};

struct area {
	/* Constant. */
	struct area *next;
	uint8_t *code;
	uint32_t copies, code_bytes, bytes;
	/* Written under the permit. */
	uintptr_t base; /* of the object */
	bool is_free;
	uint32_t code_used, code_sealed, frames_used;
	_Atomic uint32_t count;
};

static struct area *_Atomic areas; /* newest first; never removed */

static struct area *first_area(void)
{
	/* RELAXED entry.areas: under the permit, which all writers hold. */
	return tw_load_relaxed(&areas);
}

static void *_Atomic *words_of(const struct area *area)
{
	return (void *_Atomic *)(void *)(area->code + area->code_bytes);
}

static struct item *index_of(const struct area *area)
{
	return (struct item *)(void *)(words_of(area) + area->copies);
}

static uint8_t *frames_of(const struct area *area)
{
	return (uint8_t *)(index_of(area) + area->copies);
}

/* ---- call frame information ---- */

static uint8_t *put32(uint8_t *at, uint64_t value)
{
	uint32_t word = (uint32_t)value;

	memcpy(at, &word, sizeof word);
	return at + sizeof word;
}

/* Pads to a multiple of 4 with zeros, which are no-ops, and fills the length at `start`. */
static uint8_t *end_entry(uint8_t *start, uint8_t *at)
{
	while ((at - start) % 4)
		*at++ = 0;
	put32(start, (uint64_t)(at - start - 4));
	return at;
}

/* Version 1, augmentation "zR", factors 1 and -8; the frame at a function's entry. */
static void write_common(uint8_t *start)
{
	static const uint8_t text[] = {1,
				       'z',
				       'R',
				       0,
				       1,
				       0x78,
				       RETURN_ADDRESS,
				       1,
				       PCREL_SDATA4,
				       CFA_DEF,
				       STACK_POINTER,
				       8,
				       CFA_OFFSET | RETURN_ADDRESS,
				       1};

	_Static_assert(8 + sizeof text <= COMMON_BYTES && COMMON_BYTES % 4 == 0, "it fits");
	memset(start, 0, COMMON_BYTES);
	put32(start, COMMON_BYTES - 4);
	memcpy(start + 8, text, sizeof text);
}

/* Returns the end.  The thunk has the frame of the function's entry, from which the plan's instructions go on. */
static uint8_t *write_frames(const struct area *area, uint8_t *header, const uint8_t *code, unsigned code_bytes,
			     const struct tw_bp_entry *entry)
{
	static const uint8_t forms[] = {1, PCREL_SDATA4, UDATA4, DATAREL_SDATA4};
	uint8_t *common = frames_of(area), *own = header + HEADER_BYTES, *at;

	memcpy(header, forms, sizeof forms);
	at = put32(header + 4, (uint64_t)(common - (header + 4)));
	at = put32(at, 1);
	at = put32(at, (uint64_t)(code - header));
	put32(at, (uint64_t)(own - header));
	at = put32(own + 4, (uint64_t)(own + 4 - common));
	at = put32(at, (uint64_t)(code - at));
	at = put32(at, code_bytes);
	*at++ = 0;
	if (entry->row->frame_bytes)
		*at++ = CFA_ADVANCE | TW_ENTRY_THUNK_BYTES;
	memcpy(at, tw_entry_plan_frame(entry->plan, entry->row), entry->row->frame_bytes);
	return end_entry(own, at + entry->row->frame_bytes);
}

static const struct item *find_in(const struct area *area, uintptr_t pc, uint32_t *range)
{
	/* PAIR entry.count: acquire; release in tw_entry_make_copy(). */
	uint32_t low = 0, count = tw_load_acquire(&area->count), high = count,
		 offset = (uint32_t)(pc - (uintptr_t)area->code);
	const struct item *items = index_of(area);

	/* The last copy that begins at the offset or before. */
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (items[middle].code <= offset)
			low = middle + 1;
		else
			high = middle;
	}
	if (!low)
		return NULL;
	/* Fields of a description: length, common, start, range. */
	memcpy(range, frames_of(area) + items[low - 1].frames + HEADER_BYTES + 12, sizeof *range);
	return offset - items[low - 1].code < *range ? &items[low - 1] : NULL;
}

static const struct area *area_of(uintptr_t pc)
{
	/* PAIR entry.areas: acquire; release in make_area(). */
	for (const struct area *area = tw_load_acquire(&areas); area; area = area->next)
		if (pc - (uintptr_t)area->code < area->code_bytes)
			return area;
	return NULL;
}

bool tw_entry_find_code(uintptr_t pc, struct tw_unwind_code *out)
{
	const struct area *area = area_of(pc);
	uint32_t range;
	const struct item *item = area ? find_in(area, pc, &range) : NULL;

	if (!item)
		return false;
	*out = (struct tw_unwind_code){area->code + item->code, area->code + item->code + range,
				       frames_of(area) + item->frames};
	return true;
}

/* ---- copies and originals ---- */

static uintptr_t window_of(const struct tw_bp_entry *entry)
{
	return entry->base + entry->row->value + entry->row->window_offset;
}

uintptr_t tw_entry_original(uintptr_t pc)
{
	const struct area *area = area_of(pc);
	uint32_t range;
	const struct item *item = area ? find_in(area, pc, &range) : NULL;
	const struct tw_entry_plan_row *row;
	const uint8_t *map;
	intptr_t offset;
	unsigned at = 0;

	if (!item)
		return 0;
	row = item->entry->row;
	offset = (intptr_t)(pc - (uintptr_t)area->code - item->code) - (intptr_t)TW_ENTRY_THUNK_BYTES;
	/* The jump back, after the last instruction. */
	if (offset >= row->copy_bytes)
		return window_of(item->entry) + row->window_bytes;
	/* The last instruction that begins at the offset or before; one may be replaced by several. */
	map = tw_entry_plan_map(item->entry->plan, row);
	while (at + 1u < row->map_count && map[2 * at + 3] <= offset)
		at++;
	return window_of(item->entry) + map[2 * at];
}

uintptr_t tw_entry_moved(uintptr_t pc, uintptr_t there)
{
	const struct area *area = area_of(there);
	uint32_t range;
	const struct item *item = area ? find_in(area, there, &range) : NULL;
	const struct tw_entry_plan_row *row = item ? item->entry->row : NULL;
	const uint8_t *map = row ? tw_entry_plan_map(item->entry->plan, row) : NULL;

	for (unsigned i = 1; row && i < row->map_count; i++)
		if (window_of(item->entry) + map[2 * i] == pc)
			return (uintptr_t)area->code + item->code + TW_ENTRY_THUNK_BYTES + map[2 * i + 1];
	return pc;
}

/* ---- areas ---- */

static uint32_t whole_pages(uint32_t bytes)
{
	return (bytes + TW_PAGE_BYTES - 1) & ~(uint32_t)(TW_PAGE_BYTES - 1);
}

/* Enough for all functions of the plan, mostly. */
static uint32_t copies_for(const struct tw_bp_entry *entry)
{
	uint32_t rows = entry->plan->header->row_count;

	return rows < COPIES_MIN ? COPIES_MIN : rows > COPIES_MAX ? COPIES_MAX : rows;
}

static void begin_area(struct area *area, uintptr_t base)
{
	write_common(frames_of(area));
	area->frames_used = COMMON_BYTES;
	area->code_used = area->code_sealed = 0;
	area->base = base;
	area->is_free = false;
}

/* The addresses between which and a copy there are jumps and other references, both included. */
struct reach {
	uintptr_t low, high;
};

/* The window, and what the copy refers to in code and data, which may be far from it. */
static struct reach reach_of(const struct tw_bp_entry *entry, uintptr_t window)
{
	struct reach reach = {window, window};

	for (unsigned i = 0; i < entry->row->fix_count; i++) {
		const struct tw_entry_plan_fix *fix = &entry->plan->fixes[entry->row->first_fix + i];
		uintptr_t target = fix->is_literal ? window : entry->base + fix->target;

		reach.low = target < reach.low ? target : reach.low;
		reach.high = target > reach.high ? target : reach.high;
	}
	return reach;
}

static int make_area(const struct reach *reach, const struct tw_bp_entry *entry, struct area **out)
{
	struct area *area = calloc(1, sizeof *area);

	if (!area)
		return TW_ENOMEM;
	area->copies = copies_for(entry);
	/* Each run of changes begins with a page of its own. */
	area->code_bytes = whole_pages(area->copies * CODE_BYTES_EACH) + 2 * TW_PAGE_BYTES;
	area->bytes =
		area->code_bytes + whole_pages(area->copies * (8u + (uint32_t)sizeof(struct item) + FRAMES_BYTES_EACH) +
					       COMMON_BYTES + FRAME_BYTES_MAX);
	area->code = tw_near_map(reach->low, reach->high, area->bytes);
	if (!area->code)
		goto free_area;
	/* Is executable memory allowed?  Asked now, because the end of a run has no way to refuse. */
	if (mprotect(area->code, area->code_bytes, PROT_READ | PROT_EXEC) ||
	    mprotect(area->code, area->code_bytes, PROT_READ | PROT_WRITE))
		goto unmap;
	begin_area(area, entry->base);
	area->next = first_area();
	/*
	 * PAIR entry.areas: release; acquire in area_of().  An unwinder on any thread, or in a handler, sees the
	 * whole area.  Without it, it could follow a list that is not written yet.
	 */
	tw_store_release(&areas, area);
	*out = area;
	return 0;
unmap:
	munmap(area->code, area->bytes);
	free(area);
	return TW_EPERM;
free_area:
	free(area);
	return TW_ENOMEM;
}

static uint32_t count_of(struct area *area)
{
	/* RELAXED entry.count: under the permit, which all writers hold. */
	return tw_load_relaxed(&area->count);
}

static bool has_space(struct area *area)
{
	return area->code_used + COPY_BYTES + COPY_ALIGN <= area->code_bytes && count_of(area) < area->copies &&
	       (size_t)(frames_of(area) - area->code) + area->frames_used + FRAME_BYTES_MAX <= area->bytes;
}

/* The object's own area, or a free one that is large enough, or a new one. */
static int find_area(const struct reach *reach, const struct tw_bp_entry *entry, struct area **out)
{
	struct area *found = NULL;

	for (struct area *area = first_area(); area; area = area->next) {
		if (!tw_near_reaches((uintptr_t)area->code, reach->low, reach->high))
			continue;
		if (!area->is_free && area->base == entry->base && has_space(area)) {
			*out = area;
			return 0;
		}
		if (area->is_free && area->copies >= copies_for(entry) && (!found || area->copies < found->copies))
			found = area;
	}
	if (!found)
		return make_area(reach, entry, out);
	begin_area(found, entry->base);
	*out = found;
	return 0;
}

void tw_entry_forget_copies(uintptr_t base)
{
	for (struct area *area = first_area(); area; area = area->next) {
		if (area->is_free || area->base != base)
			continue;
		/* PAIR entry.count: release; acquire in find_in(). */
		tw_store_release(&area->count, 0);
		/* If the system has no memory for that, the pages stay as they are, and are never used again. */
		area->is_free = mmap(area->code, area->bytes, PROT_READ | PROT_WRITE,
				     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != MAP_FAILED;
		area->base = UINTPTR_MAX;
		area->code_used = area->code_sealed = 0;
	}
}

static void write_thunk(const struct area *area, uint8_t *thunk, uint32_t number)
{
	thunk[0] = 0xff;
	thunk[1] = 0x25;
	put32(thunk + 2, (uint64_t)((uintptr_t)&words_of(area)[number] - (uintptr_t)(thunk + 6)));
	memset(thunk + 6, INT3, TW_ENTRY_THUNK_BYTES - 6);
}

void *_Atomic *tw_entry_word(const uint8_t *thunk)
{
	int32_t displacement;

	memcpy(&displacement, thunk + 2, sizeof displacement);
	return (void *_Atomic *)(void *)((uintptr_t)thunk + 6 + (uintptr_t)(intptr_t)displacement);
}

int tw_entry_make_copy(const struct tw_bp_entry *entry, uintptr_t window, uint8_t **out)
{
	uint8_t bytes[TW_ENTRY_SPACE_BYTES], *thunk, *end;
	unsigned count;
	const struct reach reach = reach_of(entry, window);
	struct area *area;
	uint32_t number;
	int error = find_area(&reach, entry, &area);

	if (error)
		return error;
	thunk = area->code + area->code_used;
	count = tw_entry_plan_lay_out(entry->plan, entry->row, entry->base, (uintptr_t)thunk + TW_ENTRY_THUNK_BYTES,
				      bytes);
	if (!count)
		return TW_ENOMEM;
	number = count_of(area);
	write_thunk(area, thunk, number);
	memcpy(thunk + TW_ENTRY_THUNK_BYTES, bytes, count);
	count += TW_ENTRY_THUNK_BYTES;
	/* RELAXED entry.word: no jump leads to the thunk yet. */
	tw_store_relaxed(&words_of(area)[number], (void *)(thunk + TW_ENTRY_THUNK_BYTES));
	index_of(area)[number] = (struct item){area->code_used, area->frames_used, entry};
	end = write_frames(area, frames_of(area) + area->frames_used, thunk, count, entry);
	area->frames_used = (uint32_t)(end - frames_of(area));
	for (area->code_used += count; area->code_used % COPY_ALIGN; area->code_used++)
		area->code[area->code_used] = INT3;
	/* PAIR entry.count: release; acquire in find_in(): its index and frames are written. */
	tw_store_release(&area->count, number + 1);
	*out = thunk;
	return 0;
}

bool tw_entry_seal_copies(void)
{
	bool is_right = true;

	for (struct area *area = first_area(); area; area = area->next) {
		uint32_t end = (area->code_used + TW_PAGE_BYTES - 1) & ~(uint32_t)(TW_PAGE_BYTES - 1);

		if (end == area->code_sealed)
			continue;
		memset(area->code + area->code_used, INT3, end - area->code_used);
		is_right &= !mprotect(area->code + area->code_sealed, end - area->code_sealed, PROT_READ | PROT_EXEC);
		area->code_used = area->code_sealed = end;
	}
	return is_right;
}
