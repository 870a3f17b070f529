/* SPDX-License-Identifier: Apache-2.0 */
/*
 * entry.c - functions of unmodified objects: a jump over the first instructions, which run as a copy elsewhere.
 *
 *	function  | jmp stub | rest of the window, never executed | rest of the function
 *	stub	  installed: calls tw_sled_entry (sled_x86_64.S)
 *	copy	  follows the stub: the window's instructions; jmp rest of the function
 *
 * The jump is written once: while the process has one thread, or while all others are stopped and none of them is inside
 * the window (tw_entry_write_held), because the window is several instructions, and a thread that is stopped between
 * them would resume inside the jump.  It stays until the recording ends, when another process takes it back (tw_bp_list).
 * Restoring the window's bytes would be safe at any time where one store can do it, but writing the jump again would not.
 * A change, with any number of threads, is therefore one store into a word of ours, which the stub tests; an untraced
 * function costs three jumps.
 *
 * A site, the NOP of a probe in the middle of a function, is planted in the same way, with a stub of its own.
 *
 * The bytes that the plan expects are compared with memory first: another file, another patcher, a debugger's
 * breakpoint or a relocation leave the function as it is.
 *
 * A handler that interrupts the thread while it writes may call the function: so the jump is written by one instruction.
 * For the same reason jumps are written at the end of a run, when all copies are executable.
 */
#include "breakpoints/entry.h"

#include "base/grow.h"
#include "base/cacheline.h"
#include "breakpoints/sled.h"
#include "symbols/entry_plan.h"
#include "tracewheel/error.h"

#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define JUMP	   0xe9
#define JUMP_BYTES 5u
#define INT3	   0xcc

bool tw_entry_fills_windows;
tw_entry_write_held_fn tw_entry_write_held;
void (*tw_entry_before_first)(void);

/* arch_prctl: the features of the thread's user shadow stack (Linux 6.6). */
#define SHADOW_STACK_STATUS  0x5005
#define SHADOW_STACK_ENABLED 1u

static bool is_site(const struct tw_place *place)
{
	return place->entry->row->flags & TW_ENTRY_SITE;
}

/* A displaced call pushes its return address by hand, so the return would be refused. */
static bool has_shadow_stack(void)
{
	unsigned long features = 0;

	return syscall(SYS_arch_prctl, SHADOW_STACK_STATUS, &features) == 0 && features & SHADOW_STACK_ENABLED;
}

bool tw_entry_is_refused_by_shadow_stack(const struct tw_bp_entry *entry)
{
	return entry->row->flags & TW_ENTRY_CALL && has_shadow_stack();
}

static void put_jump(const struct tw_place *place, uint8_t out[JUMP_BYTES])
{
	int32_t displacement = (int32_t)((intptr_t)place->stub - ((intptr_t)place->where + JUMP_BYTES));

	out[0] = JUMP;
	memcpy(out + 1, &displacement, sizeof displacement);
}

/*
 * One instruction stores the eight bytes that begin with the window, or that end with it where these would lie in the
 * next page.  There is one thread, so it needs no alignment.
 */
TW_WRITES_CODE static void write_jump(const struct tw_place *place)
{
	uint8_t *window = place->where;
	unsigned offset = (uintptr_t)window % TW_PAGE_BYTES <= TW_PAGE_BYTES - 8 ? 0 : 8 - JUMP_BYTES;
	uint64_t bytes;

	memcpy(&bytes, window - offset, sizeof bytes);
	put_jump(place, (uint8_t *)&bytes + offset);
	__asm__ volatile("movq %1, %0" : "=m"(*(uint64_t *)(void *)(window - offset)) : "r"(bytes) : "memory");
	for (unsigned i = JUMP_BYTES; tw_entry_fills_windows && i < place->entry->row->window_bytes; i++)
		((volatile uint8_t *)window)[i] = INT3;
}

/* How many bytes of the window change. */
static unsigned changed_bytes(const struct tw_entry_plan_row *row)
{
	return tw_entry_fills_windows ? row->window_bytes : JUMP_BYTES;
}

void tw_entry_change_of(const struct tw_place *place, struct tw_entry_change *out)
{
	out->at = (uintptr_t)place->where;
	out->count = changed_bytes(place->entry->row);
	memcpy(out->before, tw_entry_plan_window(place->entry->plan, place->entry->row), out->count);
	memset(out->after, INT3, out->count);
	put_jump(place, out->after);
}

_Static_assert(TW_ENTRY_WINDOW_BYTES_MAX <= TW_ENTRY_CHANGE_BYTES_MAX, "a change holds a window");

static bool is_jump_written(const struct tw_place *place)
{
	uint8_t jump[JUMP_BYTES];

	put_jump(place, jump);
	return !memcmp(place->where, jump, sizeof jump);
}

void tw_entry_was_taken_back(struct tw_place *place)
{
	place->is_planted = is_jump_written(place);
}

/* Can the window be written?  With other threads: by one piece within a page. */
static int open_window(struct tw_patch_run *run, const struct tw_place *place)
{
	uintptr_t window = (uintptr_t)place->where;
	const struct tw_entry_plan_row *row = place->entry->row;
	int error;

	if (!tw_run_has_one_thread(run))
		return tw_entry_write_held && window % TW_PAGE_BYTES + changed_bytes(row) <= TW_PAGE_BYTES ? 0
													   : TW_ENOTSUP;
	error = tw_run_open_text(run, window);
	return error ? error : tw_run_open_text(run, window + row->window_bytes - 1);
}

/* A site and its function's entry may have bytes in common, and none of these is written before the run ends. */
static bool is_taken(const struct tw_patch_run *run, const struct tw_place *place)
{
	uintptr_t from = (uintptr_t)place->where, end = from + place->entry->row->window_bytes;

	for (size_t i = 0; (run->has_sites || is_site(place)) && i < run->entry_count; i++) {
		const struct tw_place *other = run->entries[i];
		uintptr_t begin = (uintptr_t)other->where;

		if (other != place && begin < end && from < begin + other->entry->row->window_bytes)
			return true;
	}
	return false;
}

/* Does everything that can fail, in an order that needs no undo. */
static int prepare(struct tw_patch_run *run, struct tw_place *place)
{
	const struct tw_bp_entry *entry = place->entry;
	const struct tw_entry_plan_row *row = entry->row;
	uint8_t *stub = place->stub;
	int error;

	if (row->refusal || tw_entry_is_refused_by_shadow_stack(entry))
		return TW_ENOTSUP;
	if (!run->may_write)
		return TW_EINTR;
	error = open_window(run, place);
	if (error)
		return error;
	if (is_taken(run, place) ||
	    memcmp(place->where, tw_entry_plan_window(entry->plan, row), row->window_bytes) != 0)
		return TW_EFORMAT;
	if (!tw_grow(run->entries, run->entry_count, run->entry_capacity))
		return TW_ENOMEM;
	/* An earlier try, whose jump could not be written, has left it. */
	if (!stub)
		error = tw_entry_make_copy(place, &stub);
	if (error)
		return error;
	place->stub = stub;
	place->shown = tw_entry_shown(entry);
	run->entries[run->entry_count++] = place;
	run->has_sites |= is_site(place);
	return 0;
}

int tw_entry_prepare(struct tw_patch_run *run, struct tw_place *place)
{
	bool is_alone = !run->is_begun;
	int error;

	if (place->is_gone || !place->entry)
		return TW_ENOTSUP;
	if (place->is_planted)
		return 0;
	if (is_alone)
		tw_run_begin(run);
	error = prepare(run, place);
	if (is_alone) {
		tw_entry_plant(run);
		tw_run_end(run);
	}
	return error;
}

void tw_entry_plant(struct tw_patch_run *run)
{
	static bool is_first_done;
	bool is_sealed, has_one_thread;

	if (!run->entry_count)
		return;
	if (!is_first_done && tw_entry_before_first)
		tw_entry_before_first();
	is_first_done = true;
	is_sealed = tw_entry_seal_copies();
	/* As read when the windows were opened. */
	has_one_thread = tw_run_has_one_thread(run);
	if (is_sealed && !has_one_thread)
		tw_entry_write_held(run->entries, run->entry_count);
	for (size_t i = 0; i < run->entry_count; i++) {
		struct tw_place *place = run->entries[i];

		if (is_sealed && has_one_thread)
			write_jump(place);
		place->is_planted = is_sealed && is_jump_written(place);
		if (!is_sealed)
			run->unplanted_count++;
	}
	run->entry_count = 0;
	run->has_sites = false;
}

static void arm(struct tw_place *place, bool is_armed)
{
	if (!place->stub)
		return;
	/*
	 * PROGRESS bp.active: a hint, like a slot: stub and copy are there forever, and a thread that sees it early or
	 * late finds the same generation.
	 */
	if (is_site(place))
		tw_store_release(tw_site_next(place->stub), tw_site_next_value(place->stub, is_armed));
	else
		tw_store_release(tw_entry_is_armed(place->stub), is_armed);
}

void tw_entry_install(struct tw_place *place)
{
	if (!place->is_gone)
		arm(place, true);
}

void tw_entry_uninstall(struct tw_place *place)
{
	if (!place->is_gone)
		arm(place, false);
}

void tw_entry_forget(struct tw_place *place)
{
	/* If the object is there in fact, its jump still leads to the stub. */
	arm(place, false);
	place->stub = NULL;
	place->is_planted = false;
}

size_t tw_entry_switch(const struct tw_place *place, uint8_t off[8], uint8_t on[8], uintptr_t *at)
{
	const uint32_t is_off = false, is_on = true;

	if (is_site(place)) {
		const uint64_t copy = tw_site_next_value(place->stub, false),
			       armed = tw_site_next_value(place->stub, true);

		memcpy(off, &copy, sizeof copy);
		memcpy(on, &armed, sizeof armed);
		*at = (uintptr_t)tw_site_next(place->stub);
		return sizeof armed;
	}
	memcpy(off, &is_off, sizeof is_off);
	memcpy(on, &is_on, sizeof is_on);
	*at = (uintptr_t)tw_entry_is_armed(place->stub);
	return sizeof is_on;
}

const void *tw_entry_beside(struct tw_permit *permit, const void *function)
{
	/* A window begins with the function, or behind its endbr64. */
	for (uintptr_t distance = 0; distance <= 4; distance += 4) {
		struct tw_place *place = tw_bp_place_at(permit, (void *)((uintptr_t)function + distance));

		if (place && place->kind == TW_BP_ENTRY && place->is_planted && !place->is_gone && !is_site(place) &&
		    place->entry->base + place->entry->row->value == (uintptr_t)function)
			return (const uint8_t *)place->stub + TW_ENTRY_STUB_BYTES;
	}
	return NULL;
}

size_t tw_entry_written(const struct tw_place *place, uint8_t out[8], uintptr_t *at)
{
	if (!place->is_planted)
		return 0;
	put_jump(place, out);
	*at = (uintptr_t)place->where;
	return JUMP_BYTES;
}
