/* SPDX-License-Identifier: Apache-2.0 */
/*
 * entry_copies.c - stubs, and the instructions that jumps displace, re-based, within reach of their functions.
 *
 * An area is a run of pages near an object, for that object's functions alone:
 *
 *	code	of function n: its stub (entry_stub.c); the copy: instructions, jmp rest of the function, perhaps a literal
 *	data	the address of tw_sled_entry; data n
 *	file	the head of an ELF file for debuggers (debug_file.h), up to the end of the area
 *	header	an .eh_frame_hdr whose row n says where code n begins, and its description
 *	frames	the common description, and one of each function
 *	symbols, strings	of that file: code n has its function's name
 *
 * The header's count is that of all copies that the area has space for.  Rows that are not written yet are 0, which in a sorted
 * table stands behind all others, because code lies below the header.  So a row is added by one store, whoever
 * searches meanwhile, and unwinders may keep the table's address and length.
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
#include "base/search.h"
#include "breakpoints/debug_file.h"
#include "breakpoints/near.h"
#include "breakpoints/sled.h"
#include "symbols/entries.h"
#include "symbols/entry_plan.h"
#include "tracewheel/error.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* Copies of one area. */
#define COPIES_MIN 64u
#define COPIES_MAX 8192u
/* More than a copy and its frames take on average; a further area is made where that is not enough. */
#define CODE_BYTES_EACH	  84u
#define FRAMES_BYTES_EACH 68u
#define STRING_BYTES_EACH 40u
#define CODE_BYTES_MAX	  (TW_ENTRY_AWAY_BYTES + TW_SITE_STUB_BYTES + TW_ENTRY_SPACE_BYTES)
/* (64 was not faster.) */
#define STUB_ALIGN 32u
#define INT3	   0xcc

_Static_assert(COPIES_MAX *(CODE_BYTES_EACH + 32u) + 3 * TW_PAGE_BYTES < (1u << 20),
	       "a jump that reaches an area's start reaches its code and data");

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
#define HEADER_BYTES 12u
/* Rows are aligned to their size. */
#define HEADER_SKIP 4u
/* A description: its fields, the stub, an advance, the copy, padding. */
#define FRAME_BYTES_MAX (17u + TW_SITE_STUB_FRAME_BYTES + 1u + TW_ENTRY_FRAME_BYTES_MAX + 8u)

struct all_data {
	const char *entry; /* tw_sled_entry */
	const char *site_entry;
	uint64_t reserved[2];
	struct tw_entry_data functions[];
};

struct area {
	/* Constant. */
	struct area *next;
	uint8_t *code;
	uint32_t copies, code_bytes, bytes;
	/* Written under the permit. */
	uintptr_t base; /* of the object */
	bool is_free;
	uint32_t code_used, code_sealed, count;
	struct tw_debug_file file; /* frames and what follows them */
};

static struct area *_Atomic areas; /* newest first; never removed */

static struct area *first_area(void)
{
	/* RELAXED entry.areas: under the permit, which all writers hold. */
	return tw_load_relaxed(&areas);
}

static struct all_data *data_of(const struct area *area)
{
	return (struct all_data *)(void *)(area->code + area->code_bytes);
}

static uint8_t *header_of(const struct area *area)
{
	return area->file.head + TW_DEBUG_HEAD_BYTES + HEADER_SKIP;
}

/* The low half of a row is the start of code, the high half its description; both as distances from the header. */
static _Atomic uint64_t *rows_of(const struct area *area)
{
	return (_Atomic uint64_t *)(void *)(header_of(area) + HEADER_BYTES);
}

static uint8_t *frames_of(const struct area *area)
{
	return area->file.frames;
}

static bool is_site(const struct tw_bp_entry *entry)
{
	return entry->row->flags & TW_ENTRY_SITE;
}

static unsigned stub_bytes(const struct tw_bp_entry *entry)
{
	return tw_entry_stub_bytes(is_site(entry));
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

static void write_header(const struct area *area)
{
	static const uint8_t forms[] = {1, PCREL_SDATA4, UDATA4, DATAREL_SDATA4};
	uint8_t *header = header_of(area);

	put32(put32(header + 4, (uint64_t)(frames_of(area) - (header + 4))), area->copies);
	memcpy(header, forms, sizeof forms);
}

/* Returns the end. */
static uint8_t *write_frames(const struct area *area, uint8_t *own, const uint8_t *code, unsigned code_bytes,
			     const struct tw_bp_entry *entry)
{
	uint8_t *at;

	at = put32(own + 4, (uint64_t)(own + 4 - frames_of(area)));
	at = put32(at, (uint64_t)(code - at));
	at = put32(at, code_bytes);
	*at++ = 0;
	if (is_site(entry))
		at = tw_site_write_stub_frames(at, tw_entry_shown(entry));
	else
		at = tw_entry_write_stub_frames(at, tw_entry_shown(entry));
	if (entry->row->frame_bytes && !is_site(entry))
		*at++ = CFA_ADVANCE | (TW_ENTRY_STUB_BYTES - TW_ENTRY_STUB_POPPED);
	memcpy(at, tw_entry_plan_frame(entry->plan, entry->row), entry->row->frame_bytes);
	return end_entry(own, at + entry->row->frame_bytes);
}

struct copy {
	const uint8_t *code, *stub;
	uint32_t bytes; /* of the code */
	const struct tw_bp_entry *entry;
};

static uint64_t row_of(const struct area *area, size_t number)
{
	/* PAIR entry.rows: acquire; release in tw_entry_make_copy(). */
	return tw_load_acquire(&rows_of(area)[number]);
}

static bool find_in(const struct area *area, uintptr_t pc, struct copy *out)
{
	intptr_t offset = (intptr_t)(pc - (uintptr_t)header_of(area));
	size_t low = tw_search(i, area->copies, (int32_t)row_of(area, i) <= offset);
	uint64_t row;

	if (!low)
		return false;
	row = row_of(area, low - 1);
	out->code = header_of(area) + (int32_t)row;
	out->stub = out->code + TW_ENTRY_AWAY_BYTES;
	/* Fields of a description: length, common, start, range. */
	memcpy(&out->bytes, header_of(area) + (row >> 32) + 12, sizeof out->bytes);
	out->entry = data_of(area)->functions[low - 1].entry;
	return out->entry && pc - (uintptr_t)out->code < out->bytes;
}

static const struct area *area_of(uintptr_t pc)
{
	/* PAIR entry.areas: acquire; release in make_area(). */
	for (const struct area *area = tw_load_acquire(&areas); area; area = area->next)
		if (pc - (uintptr_t)area->code < area->code_bytes)
			return area;
	return NULL;
}

static bool find_copy(uintptr_t pc, struct copy *out, const struct area **area)
{
	*area = area_of(pc);
	return *area && find_in(*area, pc, out);
}

bool tw_entry_find_code(uintptr_t pc, struct tw_unwind_code *out)
{
	const struct area *area;
	struct copy copy;

	if (!find_copy(pc, &copy, &area))
		return false;
	*out = (struct tw_unwind_code){copy.code, copy.code + copy.bytes, header_of(area),
				       HEADER_BYTES + area->copies * sizeof *rows_of(area)};
	return true;
}

int tw_entry_each_code(tw_unwind_visit_fn visit, void *arg)
{
	int result = 0;

	/* PAIR entry.areas: acquire; release in make_area(). */
	for (const struct area *area = tw_load_acquire(&areas); area && !result; area = area->next) {
		const struct tw_unwind_code code = {area->code, area->code + area->code_bytes, header_of(area),
						    HEADER_BYTES + area->copies * sizeof *rows_of(area)};

		result = visit(&code, arg);
	}
	return result;
}

/* ---- copies and originals ---- */

static uintptr_t window_of(const struct tw_bp_entry *entry)
{
	return entry->base + entry->row->value + entry->row->window_offset;
}

uintptr_t tw_entry_original(uintptr_t pc)
{
	const struct area *area;
	const struct tw_entry_plan_row *row;
	struct copy copy;
	const uint8_t *map;
	intptr_t offset;
	unsigned at = 0;

	if (!find_copy(pc, &copy, &area))
		return 0;
	row = copy.entry->row;
	offset = (intptr_t)(pc - (uintptr_t)copy.stub);
	/* The stack is not the function's. */
	if (is_site(copy.entry) ? offset >= TW_SITE_STUB_PUSHED && offset < (intptr_t)TW_SITE_STUB_BYTES
				: offset >= TW_ENTRY_STUB_PUSHED && offset < TW_ENTRY_STUB_POPPED)
		return 0;
	offset -= (intptr_t)stub_bytes(copy.entry);
	/* The jump back, after the last instruction. */
	if (offset >= row->copy_bytes)
		return window_of(copy.entry) + row->window_bytes;
	/* The last instruction that begins at the offset or before; one may be replaced by several. */
	map = tw_entry_plan_map(copy.entry->plan, row);
	while (at + 1u < row->map_count && map[2 * at + 3] <= offset)
		at++;
	/* Behind the push that stands for half of a call, the stack is the called function's already. */
	if (row->flags & TW_ENTRY_CALL && at + 1u == row->map_count && offset > map[2 * at + 1])
		return 0;
	return window_of(copy.entry) + map[2 * at];
}

uintptr_t tw_entry_without_hit(uintptr_t pc)
{
	const struct area *area;
	struct copy copy;

	if (!find_copy(pc, &copy, &area))
		return 0;
	if (is_site(copy.entry))
		return pc == (uintptr_t)copy.stub + TW_SITE_STUB_PROBE ? (uintptr_t)copy.stub + TW_SITE_STUB_UNDO : 0;
	return pc == (uintptr_t)copy.stub + TW_ENTRY_STUB_PROBE ? (uintptr_t)copy.stub + TW_ENTRY_STUB_BYTES : 0;
}

uintptr_t tw_entry_moved(uintptr_t pc, uintptr_t there)
{
	const struct area *area;
	struct copy copy;
	const uint8_t *map;

	if (!find_copy(there, &copy, &area))
		return pc;
	map = tw_entry_plan_map(copy.entry->plan, copy.entry->row);
	for (unsigned i = 1; i < copy.entry->row->map_count; i++)
		if (window_of(copy.entry) + map[2 * i] == pc)
			return (uintptr_t)copy.stub + stub_bytes(copy.entry) + map[2 * i + 1];
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
	uint32_t rows = entry->plan->header->row_count + entry->plan->header->site_count;

	return rows < COPIES_MIN ? COPIES_MIN : rows > COPIES_MAX ? COPIES_MAX : rows;
}

static uint32_t whole_words(uint32_t bytes)
{
	return (bytes + 7) & ~7u;
}

/* Places the file behind the code and its data, once these have an address; returns the bytes of the area. */
static uint32_t lay_out(struct area *area)
{
	struct tw_debug_file *file = &area->file;
	uint32_t copies = area->copies,
		 head = area->code_bytes + (uint32_t)(sizeof(struct all_data) + copies * sizeof(struct tw_entry_data)),
		 frames = head + TW_DEBUG_HEAD_BYTES + HEADER_SKIP + HEADER_BYTES + copies * 8u,
		 symbols = whole_words(frames + COMMON_BYTES + copies * FRAMES_BYTES_EACH + FRAME_BYTES_MAX),
		 strings = symbols + (copies + 1) * TW_DEBUG_SYMBOL_BYTES;

	file->symbols_max = copies + 1;
	file->string_bytes_max = copies * STRING_BYTES_EACH;
	if (area->code) {
		file->code = area->code;
		file->code_bytes = area->code_bytes;
		file->head = area->code + head;
		file->frames = area->code + frames;
		file->symbols = area->code + symbols;
		file->strings = (char *)area->code + strings;
	}
	return whole_pages(strings + file->string_bytes_max);
}

static void begin_area(struct area *area, uintptr_t base)
{
	tw_debug_file_begin(&area->file);
	write_common(frames_of(area));
	write_header(area);
	area->file.frame_bytes = COMMON_BYTES;
	data_of(area)->entry = tw_sled_entry;
	data_of(area)->site_entry = tw_site_entry;
	area->code_used = area->code_sealed = area->count = 0;
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
	area->bytes = lay_out(area);
	area->code = tw_near_map(reach->low, reach->high, area->bytes);
	if (!area->code)
		goto free_area;
	lay_out(area);
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

static bool has_space(struct area *area)
{
	return area->code_used + CODE_BYTES_MAX + STUB_ALIGN <= area->code_bytes && area->count < area->copies &&
	       area->file.frame_bytes + FRAME_BYTES_MAX <= (size_t)(area->file.symbols - area->file.frames);
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
		tw_debug_file_hide(&area->file);
		/* If the system has no memory for that, the pages stay as they are, and are never used again. */
		area->is_free = mmap(area->code, area->bytes, PROT_READ | PROT_WRITE,
				     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != MAP_FAILED;
		area->base = UINTPTR_MAX;
		area->code_used = area->code_sealed = area->count = 0;
	}
}

static void fill_data(const struct area *area, struct tw_place *place, const uint8_t *copy)
{
	struct tw_entry_data *data = &data_of(area)->functions[area->count];

	data->entry = place->entry;
	/* RELAXED entry.data: no jump leads to the stub yet.  A site's first value is its copy's address. */
	tw_store_relaxed(&data->next, is_site(place->entry) ? (uint64_t)(uintptr_t)copy : 0);
	/* RELAXED entry.data: as above. */
	tw_store_relaxed(&data->resume, (const void *)copy);
	/* RELAXED entry.data: as above. */
	tw_store_relaxed(&data->place, place);
}

static void name_code(struct area *area, const uint8_t *code, uint32_t bytes, const struct tw_bp_entry *entry)
{
	const char *name = tw_entry_plan_name(entry->plan, entry->row, 0);
	char nameless[TW_SYM_NAMELESS_BYTES];

	if (!name)
		tw_sym_nameless(entry->row->value, nameless);
	tw_debug_file_add(&area->file, code, bytes, name ? name : nameless);
}

static void write_stub(const struct area *area, uint8_t *stub, const struct tw_bp_entry *entry)
{
	const struct all_data *data = data_of(area);

	if (is_site(entry))
		tw_site_write_stub(stub, &data->functions[area->count], &data->site_entry);
	else
		tw_entry_write_stub(stub, &data->functions[area->count], &data->entry);
}

int tw_entry_make_copy(struct tw_place *place, uint8_t **out)
{
	const struct tw_bp_entry *entry = place->entry;
	const struct reach reach = reach_of(entry, (uintptr_t)place->where);
	uint8_t bytes[TW_ENTRY_SPACE_BYTES], *code, *stub, *frame, *end;
	struct area *area;
	unsigned count;
	uint64_t row;
	int error = find_area(&reach, entry, &area);

	if (error)
		return error;
	code = area->code + area->code_used;
	stub = (uint8_t *)(((uintptr_t)code + TW_ENTRY_AWAY_BYTES + STUB_ALIGN - 1) & ~(uintptr_t)(STUB_ALIGN - 1));
	memset(code, INT3, (size_t)(stub - code));
	code = stub - TW_ENTRY_AWAY_BYTES;
	count = tw_entry_plan_lay_out(entry->plan, entry->row, entry->base, (uintptr_t)stub + stub_bytes(entry), bytes);
	if (!count)
		return TW_ENOMEM;
	write_stub(area, stub, entry);
	memcpy(stub + stub_bytes(entry), bytes, count);
	fill_data(area, place, stub + stub_bytes(entry));
	count += TW_ENTRY_AWAY_BYTES + stub_bytes(entry);
	frame = frames_of(area) + area->file.frame_bytes;
	end = write_frames(area, frame, code, count, entry);
	area->file.frame_bytes = (uint32_t)(end - frames_of(area));
	name_code(area, code, count, entry);
	area->code_used = (uint32_t)(code - area->code) + count;
	row = (uint64_t)(frame - header_of(area)) << 32 | (uint32_t)(code - header_of(area));
	/*
	 * PAIR entry.rows: release; acquire in row_of(), and unwinders' own loads.  Without it, they could read an entry and
	 * frames that are not written yet.
	 */
	tw_store_release(&rows_of(area)[area->count], row);
	area->count++;
	*out = stub;
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
		tw_debug_file_show(&area->file);
	}
	return is_right;
}
