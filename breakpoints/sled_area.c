/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sled_area.c - stubs within +-2 GiB of the sleds that jump to them.
 *
 * An area is a run of pages near an object:
 *
 *	code, read and execute		stub n:	pushq table[n].resume	after the sled's jump
 *						pushq table[n].place
 *						call  *entry		tw_sled_entry, anywhere in our text
 *						lea   16(%rsp), %rsp
 *						jmp   *-16(%rsp)	continues where the place's word now points
 *					...
 *					entry
 *					a file for debuggers (debug_file.h), which holds
 *					call frame information of all stubs: sled_frames.c
 *	table, read and write		table[n]
 *
 * The code depends only on its position in the area: it is written once, before it is made executable, and never
 * again.  No page is ever writable and executable.
 */
#include "breakpoints/debug_file.h"
#include "breakpoints/entry.h"
#include "breakpoints/near.h"
#include "breakpoints/sled.h"
#include "breakpoints/unwind.h"

#include "tracewheel/error.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define STUB_BYTES  32u
#define STUBS	    2016u
#define TAIL_BYTES  1024u /* the entry, and the file */
#define CODE_BYTES  (STUBS * STUB_BYTES + TAIL_BYTES)
#define TABLE_BYTES 32768u
#define AREA_BYTES  (CODE_BYTES + TABLE_BYTES)

#define FRAMES_AT    (sizeof(char *) + TW_DEBUG_HEAD_BYTES)
#define SYMBOLS_AT   (FRAMES_AT + TW_SLED_FRAMES_BYTES)
#define SYMBOLS	     2u
#define STRINGS_AT   (SYMBOLS_AT + SYMBOLS * TW_DEBUG_SYMBOL_BYTES)
#define STRING_BYTES 128u

_Static_assert(STUB_BYTES == TW_SLED_STUB_BYTES && STRINGS_AT + STRING_BYTES <= TAIL_BYTES, "both fit");
_Static_assert(CODE_BYTES % TW_PAGE_BYTES == 0 && TABLE_BYTES % TW_PAGE_BYTES == 0, "whole pages");
/* The data of a stub. */
struct row {
	void *_Atomic resume;
	struct tw_place *_Atomic place;
};
_Static_assert(STUBS * sizeof(struct row) <= TABLE_BYTES, "a row for each stub");

struct area {
	struct area *next;
	uint8_t *code;
	uint32_t used;
	uint32_t free_count;
	uint16_t free[STUBS]; /* used stubs whose places are gone */
	struct tw_debug_file file;
};

static struct area *_Atomic areas; /* newest first; never removed */

static struct row *table_of(const struct area *area)
{
	return (struct row *)(void *)(area->code + CODE_BYTES);
}

static void put_displacement(uint8_t *at, const void *target)
{
	int32_t displacement = (int32_t)((intptr_t)target - (intptr_t)(at + 4));

	memcpy(at, &displacement, sizeof displacement);
}

static void write_code(struct area *area)
{
	static const char code[] = "\xff\x35\0\0\0\0\xff\x35\0\0\0\0\xff\x15\0\0\0\0"
				   "\x48\x8d\x64\x24\x10\xff\x64\x24\xf0";
	uint8_t *entry = area->code + (size_t)STUBS * STUB_BYTES;
	const char *target = tw_sled_entry;

	memcpy(entry, &target, sizeof target);
	for (uint32_t n = 0; n < STUBS; n++) {
		uint8_t *stub = area->code + (size_t)n * STUB_BYTES;

		memset(stub, 0xcc, STUB_BYTES);
		memcpy(stub, code, sizeof code - 1);
		put_displacement(stub + 2, &table_of(area)[n].resume);
		put_displacement(stub + 8, &table_of(area)[n].place);
		put_displacement(stub + 14, entry);
	}
	tw_sled_write_frames(entry + FRAMES_AT, area->code, STUBS * STUB_BYTES, table_of(area));
}

static void name_code(struct area *area)
{
	uint8_t *entry = area->code + (size_t)STUBS * STUB_BYTES;

	area->file = (struct tw_debug_file){.code = area->code,
					    .code_bytes = STUBS * STUB_BYTES,
					    .head = entry + sizeof(char *),
					    .frames = entry + FRAMES_AT + TW_SLED_HEADER_BYTES,
					    .frame_bytes = TW_SLED_FRAMES_BYTES - TW_SLED_HEADER_BYTES,
					    .symbols = entry + SYMBOLS_AT,
					    .symbols_max = SYMBOLS,
					    .strings = (char *)entry + STRINGS_AT,
					    .string_bytes_max = STRING_BYTES};
	tw_debug_file_begin(&area->file);
	tw_debug_file_add(&area->file, area->code, STUBS * STUB_BYTES, "tracewheel");
	tw_debug_file_show(&area->file);
}

static struct area *first_area(void)
{
	/* RELAXED sled.areas: under the permit, which all writers hold. */
	return tw_load_relaxed(&areas);
}

static struct tw_unwind_code code_of(const struct area *area)
{
	const uint8_t *end = area->code + STUBS * STUB_BYTES;

	return (struct tw_unwind_code){area->code, end, end + FRAMES_AT, TW_SLED_HEADER_BYTES};
}

bool tw_unwind_find_code(uintptr_t pc, struct tw_unwind_code *out)
{
	/* PAIR sled.areas: acquire; release in make_area(). */
	for (const struct area *area = tw_load_acquire(&areas); area; area = area->next) {
		if (pc - (uintptr_t)area->code >= STUBS * STUB_BYTES)
			continue;
		*out = code_of(area);
		return true;
	}
	return tw_entry_find_code(pc, out);
}

int tw_unwind_each_code(tw_unwind_visit_fn visit, void *arg)
{
	int result = 0;

	/* PAIR sled.areas: acquire; release in make_area(). */
	for (const struct area *area = tw_load_acquire(&areas); area && !result; area = area->next) {
		const struct tw_unwind_code code = code_of(area);

		result = visit(&code, arg);
	}
	return result ? result : tw_entry_each_code(visit, arg);
}

static int make_area(uintptr_t from, struct area **out)
{
	struct area *area = calloc(1, sizeof *area);

	if (!area)
		return TW_ENOMEM;
	area->code = tw_near_map(from, from, AREA_BYTES);
	if (!area->code)
		goto free_area;
	write_code(area);
	name_code(area);
	if (mprotect(area->code, CODE_BYTES, PROT_READ | PROT_EXEC))
		goto unmap;
	area->next = first_area();
	/*
	 * PAIR sled.areas: release; acquire in tw_unwind_find_code().  An unwinder on any thread, or in a handler, sees the
	 * whole area.  Without it, it could follow a list that is not written yet.
	 */
	tw_store_release(&areas, area);
	*out = area;
	return 0;
unmap:
	tw_debug_file_hide(&area->file);
	munmap(area->code, AREA_BYTES);
	free(area);
	return TW_EPERM;
free_area:
	free(area);
	return TW_ENOMEM;
}

int tw_sled_take_stub(struct tw_place *place, uintptr_t resume, void **out)
{
	struct area *area;
	uint32_t number;
	int error = 0;

	for (area = first_area(); area; area = area->next)
		if ((area->used < STUBS || area->free_count) && tw_near_reaches((uintptr_t)area->code, resume, resume))
			break;
	if (!area)
		error = make_area(resume, &area);
	if (error)
		return error;
	number = area->free_count ? area->free[--area->free_count] : area->used++;
	/* RELAXED sled.table: written under the permit; read by a stub only after a jump to it was written.
	 */
	tw_store_relaxed(&table_of(area)[number].resume, (void *)resume);
	/* RELAXED sled.table: as above. */
	tw_store_relaxed(&table_of(area)[number].place, place);
	place->shown = resume;
	*out = area->code + (size_t)number * STUB_BYTES;
	return 0;
}

void tw_sled_give_stub(struct tw_place *place)
{
	uintptr_t stub = (uintptr_t)place->stub;
	struct area *area = first_area();

	while (stub - (uintptr_t)area->code >= CODE_BYTES)
		area = area->next;
	area->free[area->free_count++] = (uint16_t)((stub - (uintptr_t)area->code) / STUB_BYTES);
	place->stub = NULL;
}

void tw_sled_each(void (*visit)(struct tw_patch_run *run, struct tw_place *place), struct tw_patch_run *run)
{
	for (struct area *area = first_area(); area; area = area->next)
		for (uint32_t n = 0; n < area->used; n++)
			/* RELAXED sled.table: as above. */
			visit(run, tw_load_relaxed(&table_of(area)[n].place));
}
