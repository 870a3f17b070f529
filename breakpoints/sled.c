/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sled.c - entry sleds: NOPs at a function's entry, of which five bytes become a jump.
 *
 *	sled	| NOPs | window: 5 bytes | NOPs |   body
 *
 *	aligned one aligned word of eight bytes holds the whole window: it is one NOP or one jump, and one store
 *		converts between them
 *	parked	no such window (too few NOPs, or none at the right offset): the window is
 *			a9 rel32	test $rel32, %eax	or
 *			e9 rel32	jmp stub
 *		with the same last four bytes, and a store of one byte converts between them.  test changes the flags,
 *		which are not used at a function's entry.
 *
 * Why not patch by int3, as kernels do where no store is atomic? A thread that has SIGTRAP blocked when it executes
 * one is killed, and programs often block all signals in their threads.
 *
 * tw_sled_prepare() makes the window one instruction.  gcc's NOPs are one byte each, and a thread stopped between two
 * of them would resume inside the jump: so this is done only while the process has one thread (mostly before main()).
 * With more threads nothing in the process proves that none is stopped there: a signal handler that interrupted one of the
 * NOPs returns to it at any later time.  Such sleds are written by another process, which stops all threads and looks
 * (tw_entry_write_held), or left unchanged.  Clang's NOPs, and those of `tracewheel compact`,
 * have maximum length: if one store suffices, other threads may run meanwhile.
 *
 * Text is made writable in addition to executable, one mapping at a time, and restored: once per run of changes (2 us
 * in all, plus about 1 us for each page written for the first time, which becomes a private copy).  Outside the
 * window only NOPs of the same sled are ever written.
 */
#include "breakpoints/sled.h"

#include "base/grow.h"
#include "breakpoints/entry.h"
#include "symbols/symbols.h"
#include "tracewheel/error.h"

#include <string.h>

#define JUMP_BYTES TW_SYM_JUMP_BYTES
#define JUMP	   0xe9
#define PARKED	   0xa9
/* The rest of a longer sled is not used. */
#define SLED_BYTES_MAX 32u

/* ---- which bytes ---- */

/* The new contents of a sled: bytes from `from` to `to` are rewritten, including the window at `offset`. */
struct layout {
	unsigned offset, from, to;
	bool is_parked;
	bool is_ready;	   /* the window is one instruction already */
	bool is_one_start; /* a thread can be at the first of these bytes, and at no other */
	bool is_held;	   /* another process makes it ready */
};

/* A bit for each byte at which an instruction starts, and for the end. */
static uint64_t decode(const struct tw_place *place, unsigned *end)
{
	unsigned most = place->sled_bytes < SLED_BYTES_MAX ? place->sled_bytes : SLED_BYTES_MAX;
	const uint8_t *at = place->where;
	uint64_t starts = 1;

	*end = 0;
	while (*end < most) {
		unsigned bytes = tw_sym_nop_bytes(at + *end, most - *end);

		if (!bytes)
			break;
		*end += bytes;
		starts |= UINT64_C(1) << *end;
	}
	return starts;
}

static bool is_aligned(const struct tw_place *place, unsigned offset)
{
	return (((uintptr_t)place->where + offset) & 7) <= 8 - JUMP_BYTES;
}

static unsigned next_start(uint64_t starts, unsigned from)
{
	return from + (unsigned)__builtin_ctzll(starts >> from);
}

static void fill_layout(struct layout *layout, uint64_t starts)
{
	unsigned offset = layout->offset;

	layout->from = offset;
	while (!(starts >> layout->from & 1))
		layout->from--;
	layout->to = next_start(starts, offset + JUMP_BYTES);
	layout->is_one_start = next_start(starts, layout->from + 1) == layout->to;
	layout->is_ready = layout->is_one_start && layout->from == offset && layout->to == offset + JUMP_BYTES;
}

/* ---- writing ---- */

static uint8_t *window_of(const struct tw_place *place)
{
	return (uint8_t *)place->where + place->sled_offset;
}

static void put_jump(const struct tw_place *place, uint8_t *out, uint8_t opcode)
{
	int32_t displacement = (int32_t)((intptr_t)place->stub - (intptr_t)(window_of(place) + JUMP_BYTES));

	out[0] = opcode;
	memcpy(out + 1, &displacement, sizeof displacement);
}

/* Bytes that lie in one aligned word, by one store. */
TW_WRITES_CODE static void store_in_word(uint8_t *at, const uint8_t *bytes, size_t count)
{
	uintptr_t offset = (uintptr_t)at & 7;
	_Atomic uint64_t *word = (_Atomic uint64_t *)(void *)(at - offset);
	/* RELAXED sled.code: no other thread writes code. */
	uint64_t value = tw_load_relaxed(word);

	memcpy((uint8_t *)&value + offset, bytes, count);
	/* PROGRESS sled.code: stubs and places are seen since step 3 + code; who runs what: step 5, 9 + code.
	 */
	tw_store_release(word, value);
}

/* Writes while no other thread runs. */
TW_WRITES_CODE static void store_alone(uint8_t *at, const uint8_t *bytes, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		/* RELAXED sled.code: there is one thread. */
		tw_store_relaxed((_Atomic uint8_t *)&at[i], bytes[i]);
	}
}

static void put_nops(uint8_t *out, size_t count)
{
	static const uint8_t nops[9][9] = {
		{0x90},
		{0x66, 0x90},
		{0x0f, 0x1f, 0x00},
		{0x66, 0x0f, 0x1f, 0x00}, /* begins like the NOP of nine bytes, of which only the fourth byte changes */
		{0x0f, 0x1f, 0x44, 0x00, 0x00},
		{0x66, 0x0f, 0x1f, 0x44, 0x00, 0x00},
		{0x0f, 0x1f, 0x80, 0x00, 0x00, 0x00, 0x00},
		{0x0f, 0x1f, 0x84, 0x00, 0x00, 0x00, 0x00, 0x00},
		{0x66, 0x0f, 0x1f, 0x84, 0x00, 0x00, 0x00, 0x00, 0x00},
	};

	while (count) {
		size_t bytes = count < 9 ? count : 9;

		memcpy(out, nops[bytes - 1], bytes);
		out += bytes;
		count -= bytes;
	}
}

/* Fills the bytes from `from` to `to`, with the window as one NOP instruction; returns their number. */
static unsigned put_ready(const struct tw_place *place, const struct layout *layout, uint8_t *out)
{
	unsigned before = layout->offset - layout->from;

	put_nops(out, before);
	put_nops(out + before, JUMP_BYTES);
	if (layout->is_parked)
		put_jump(place, out + before, PARKED);
	put_nops(out + before + JUMP_BYTES, layout->to - layout->offset - JUMP_BYTES);
	return layout->to - layout->from;
}

/* Is one store enough, while other threads run the sled?  Fills the range of bytes that differ. */
static bool is_one_store(const struct tw_place *place, const struct layout *layout, unsigned *first, unsigned *last)
{
	const uint8_t *at = (const uint8_t *)place->where + layout->from;
	uint8_t bytes[SLED_BYTES_MAX];

	if (layout->is_parked || !layout->is_one_start)
		return false;
	*first = 0;
	*last = put_ready(place, layout, bytes) - 1;
	while (*first < *last && bytes[*first] == at[*first])
		++*first;
	while (*last > *first && bytes[*last] == at[*last])
		--*last;
	return ((uintptr_t)at + *first) / 8 == ((uintptr_t)at + *last) / 8;
}

static void make_ready(struct tw_place *place, const struct layout *layout)
{
	uint8_t bytes[SLED_BYTES_MAX], *at = (uint8_t *)place->where + layout->from;
	unsigned first, last, count = put_ready(place, layout, bytes);

	if (is_one_store(place, layout, &first, &last))
		store_in_word(at + first, bytes + first, last - first + 1);
	else
		store_alone(at, bytes, count);
}

/*
 * Chooses an aligned window: preferably one that needs no change, else one store, else the first.
 */
static int choose(const struct tw_place *place, struct layout *layout)
{
	unsigned end, first, last, best = 0;
	uint64_t starts = decode(place, &end);

	if (end < JUMP_BYTES)
		return TW_ENOTSUP;
	*layout = (struct layout){.is_parked = true};
	fill_layout(layout, starts);
	layout->is_ready = false;
	for (unsigned offset = 0; offset + JUMP_BYTES <= end && best < 3; offset++) {
		struct layout found = {.offset = offset};
		unsigned rank;

		if (!is_aligned(place, offset))
			continue;
		fill_layout(&found, starts);
		rank = found.is_ready ? 3 : is_one_store(place, &found, &first, &last) ? 2 : 1;
		if (rank > best)
			*layout = found;
		best = rank > best ? rank : best;
	}
	return 0;
}

/* ---- while all threads are stopped ---- */

static bool may_be_held(const struct tw_place *place, const struct layout *layout)
{
	uintptr_t from = (uintptr_t)place->where + layout->from;

	return tw_entry_write_held && layout->to - layout->from <= TW_ENTRY_CHANGE_BYTES_MAX &&
	       from % TW_PAGE_BYTES + layout->to - layout->from <= TW_PAGE_BYTES;
}

void tw_sled_change_of(const struct tw_place *place, struct tw_entry_change *out)
{
	struct layout layout = {.offset = place->sled_offset, .is_parked = place->is_parked};
	unsigned end;

	fill_layout(&layout, decode(place, &end));
	out->at = (uintptr_t)place->where + layout.from;
	out->count = put_ready(place, &layout, out->after);
	memcpy(out->before, (const void *)out->at, out->count);
}

static bool is_ready(const struct tw_place *place)
{
	uint8_t bytes[JUMP_BYTES];

	put_nops(bytes, sizeof bytes);
	if (place->is_parked)
		put_jump(place, bytes, PARKED);
	return !memcmp(window_of(place), bytes, sizeof bytes);
}

void tw_sled_plant(struct tw_patch_run *run)
{
	if (run->sled_count)
		tw_entry_write_held(run->sleds, run->sled_count);
	for (size_t i = 0; i < run->sled_count; i++)
		run->sleds[i]->is_back = !is_ready(run->sleds[i]);
	run->sled_count = 0;
}

/* Does everything that can fail, in an order that needs no undo. */
static int prepare(struct tw_patch_run *run, struct tw_place *place)
{
	struct layout layout;
	unsigned first, last;
	int error = choose(place, &layout);

	if (error)
		return error;
	error = tw_run_open_text(run, (uintptr_t)place->where + layout.from);
	if (!error)
		error = tw_run_open_text(run, (uintptr_t)place->where + layout.to - 1);
	layout.is_held =
		!layout.is_ready && !is_one_store(place, &layout, &first, &last) && !tw_run_has_one_thread(run);
	if (!error && layout.is_held && !may_be_held(place, &layout))
		return TW_ENOTSUP;
	if (!error && layout.is_held && !tw_grow(run->sleds, run->sled_count, run->sled_capacity))
		return TW_ENOMEM;
	/* Threads that are in the stub of a sled that was taken back continue behind the same window. */
	if (!error && place->stub && place->sled_offset != layout.offset)
		return TW_ENOTSUP;
	if (!error && !place->stub)
		error = tw_sled_take_stub(place, (uintptr_t)place->where + layout.offset + JUMP_BYTES, &place->stub);
	if (error)
		return error;
	place->is_back = layout.is_held;
	place->sled_offset = (uint8_t)layout.offset;
	place->is_parked = layout.is_parked;
	if (layout.is_held)
		run->sleds[run->sled_count++] = place;
	else if (!layout.is_ready)
		make_ready(place, &layout);
	return 0;
}

int tw_sled_prepare(struct tw_patch_run *run, struct tw_place *place)
{
	bool is_alone = !run->is_begun;
	int error;

	if (place->is_gone)
		return TW_ENOTSUP;
	if (place->stub && !place->is_back)
		return 0;
	if (is_alone)
		tw_run_begin(run);
	error = prepare(run, place);
	if (is_alone) {
		tw_sled_plant(run);
		tw_run_end(run);
	}
	return error;
}

/* This succeeded before; if it fails now, the sled is left unchanged. */
static void write_window(struct tw_patch_run *run, struct tw_place *place, bool is_armed)
{
	uint8_t bytes[JUMP_BYTES], *window = window_of(place);

	if (tw_run_open_text(run, (uintptr_t)window))
		return;
	put_jump(place, bytes, is_armed ? JUMP : PARKED);
	if (!is_armed && !place->is_parked)
		put_nops(bytes, JUMP_BYTES);
	store_in_word(window, bytes, place->is_parked ? 1 : JUMP_BYTES);
}

static void change(struct tw_patch_run *run, struct tw_place *place, bool is_armed)
{
	bool is_alone = !run->is_begun;

	if (place->is_gone || !place->stub || place->is_back)
		return;
	if (is_alone)
		tw_run_begin(run);
	place->is_due = !run->may_write;
	if (place->is_due)
		run->is_sled_due = true;
	else
		write_window(run, place, is_armed);
	if (is_alone)
		tw_run_end(run);
}

size_t tw_sled_written(const struct tw_place *place, uint8_t out[8], uintptr_t *at)
{
	if (place->is_due || place->is_back)
		return 0;
	put_jump(place, out, JUMP);
	*at = (uintptr_t)window_of(place);
	return JUMP_BYTES;
}

void tw_sled_install(struct tw_patch_run *run, struct tw_place *place)
{
	change(run, place, true);
}

void tw_sled_uninstall(struct tw_patch_run *run, struct tw_place *place)
{
	change(run, place, false);
}

static void make_up(struct tw_patch_run *run, struct tw_place *place)
{
	if (place->is_due && tw_bp_list && tw_bp_list->is_left(place))
		place->is_due = false;
	else if (place->is_due)
		change(run, place, place->is_installed);
	else
		return;
	if (tw_bp_list && place->is_installed && !place->is_due)
		tw_bp_list->see_written(place);
}

void tw_sled_make_up(struct tw_patch_run *run)
{
	if (!run->is_sled_due)
		return;
	run->is_sled_due = false;
	tw_sled_each(make_up, run);
}
