/* SPDX-License-Identifier: Apache-2.0 */
/* returns.c - shadow memory for stacks, chains of tail calls, and calls that cannot have a shadow. */
#include "breakpoints/returns.h"
#include "base/clock.h"
#include "base/filter.h"
#include "base/limits.h"
#include "base/own_area.h"
#include "base/stall_timer.h"
#include "base/sys.h"
#include "breakpoints/own_stack.h"
#include "tracewheel/error.h"

#include <errno.h>
#include <sys/mman.h>

#ifndef __has_feature
#define __has_feature(x) 0
#endif

#define CHUNK_SHADOW_BYTES (UINT64_C(1) << (TW_SHADOW_CHUNK_BITS + TW_SHADOW_SHIFT))
#define ADDRESS_BITS	   47

/* Values of a chunk's owner other than a number from 1 to 32. */
enum { NO_OWNER = 0, REFUSED = 0xfe, BEING_MAPPED = 0xff };

_Static_assert((1 << (ADDRESS_BITS - TW_SHADOW_SLOT_BITS)) < REFUSED, "owners fit a byte");
_Static_assert(sizeof(struct tw_return_entry) == 2 * TW_SHADOW_HALF << TW_SHADOW_SHIFT, "an entry for each half");
_Static_assert(TW_SHADOW_HALF == sizeof(uint64_t), "a half holds one return address");
_Static_assert((uintptr_t)TW_SHADOW_HALF << TW_SHADOW_HALF_SHIFT == UINT64_C(1)
									    << (TW_SHADOW_SLOT_BITS + TW_SHADOW_SHIFT),
	       "the shadow of the upper halves follows that of the lower ones");

_Atomic uint8_t tw_shadow_owners[TW_SHADOW_CHUNKS];
struct tw_returns_lost tw_returns_lost;
tw_bp_return_fn tw_bp_trampoline_return;

static struct tw_return_block *blocks; /* TW_RETURNS_BLOCKS_MAX of them; untouched pages cost nothing */
static _Atomic uint64_t blocks_used;
static _Atomic uint64_t chunks_mapped;
static _Atomic bool stacks_are_copied;

static void count(_Atomic uint64_t *counter)
{
	/* RELAXED returns.lost: a count for statistics only. */
	tw_fetch_add_relaxed(counter, 1);
}

/* ---- support by processor and system ---- */

/* The shadow stack pointer: 0 if the processor keeps none for this thread (then the instruction is a NOP). */
static uint64_t shadow_stack_pointer(void)
{
	uint64_t pointer = 0;

	__asm__ volatile("rdsspq %0" : "+r"(pointer));
	return pointer;
}

int tw_returns_init(const char **reason)
{
	*reason = NULL;
#if defined __SANITIZE_THREAD__ || __has_feature(thread_sanitizer)
	*reason = "the thread sanitizer's memory lies where return addresses are kept";
#endif
	/* Threads inherit shadow stacks from the initial thread. */
	if (shadow_stack_pointer())
		*reason = "user shadow stacks are on, and return addresses may not be changed";
	if (*reason)
		return TW_ENOTSUP;
	tw_own_stacks_init();
	/* Without blocks there are no chains; refused ones are counted. */
	if (!blocks)
		blocks = tw_own_area_map(NULL, TW_RETURNS_BLOCKS_MAX * sizeof *blocks);
	return 0;
}

/* A mapping takes microseconds, and longer where its thread is not scheduled. */
#define OWNER_SPINS    1000u
#define OWNER_POLL_NS  UINT64_C(50000)
#define OWNER_SLICE_NS UINT64_C(1000000)
#define OWNER_WAIT_NS  UINT64_C(1000000000)

/* ---- shadow ---- */

/* Maps memory for the shadow of a slot's chunk at its fixed address. */
static bool map_chunk(const uint64_t *slot)
{
	uintptr_t at = (uintptr_t)tw_returns_entry(slot) & -CHUNK_SHADOW_BYTES;

	/* RELAXED returns.chunks: a limit; some threads may pass it by one each. */
	if (tw_fetch_add_relaxed(&chunks_mapped, 1) >= TW_RETURNS_CHUNKS_MAX)
		return false;
	return tw_own_area_map((void *)at, CHUNK_SHADOW_BYTES) != NULL;
}

struct mapping {
	const uint64_t *slot;
	bool is_mapped;
};

/*
 * Waits until another thread has mapped the chunk; returns the owner.  In a forked child that thread may not exist: a
 * wait that no progress ends makes the chunk refused, once for all.
 */
static uint8_t wait_for_owner(_Atomic uint8_t *owner)
{
	struct tw_stall_timer stall_timer = {0};
	uint8_t found = BEING_MAPPED;

	for (unsigned i = 0; found == BEING_MAPPED && i < OWNER_SPINS; i++) {
		tw_cpu_relax();
		/* PAIR shadow.owner: acquire; as in tw_returns_has_shadow(). */
		found = tw_load_acquire(owner);
	}
	while (found == BEING_MAPPED) {
		if (tw_stall_timer_check(&stall_timer, 0, tw_clock_monotonic_ns(), OWNER_SLICE_NS) >= OWNER_WAIT_NS) {
			/* PAIR shadow.owner: acq_rel; as in map_there(). */
			if (tw_cas_acq_rel(owner, &found, REFUSED))
				return REFUSED;
			break;
		}
		tw_sys_sleep(OWNER_POLL_NS);
		/* PAIR shadow.owner: acquire; as above. */
		found = tw_load_acquire(owner);
	}
	return found;
}

/* One thread maps, with its signals blocked, and the others wait for it. */
static void map_there(void *arg)
{
	struct mapping *mapping = arg;
	_Atomic uint8_t *owner = &tw_shadow_owners[tw_returns_chunk(mapping->slot)];
	uint8_t mine = (uint8_t)(((uintptr_t)mapping->slot >> TW_SHADOW_SLOT_BITS) + 1);
	uint8_t found = NO_OWNER;
	int saved_errno = errno;
	uint64_t signals;

	tw_sys_block_signals(&signals);
	/* PAIR shadow.owner: acq_rel; a thread that finds another's word here waits for the next value. */
	if (tw_cas_acq_rel(owner, &found, BEING_MAPPED)) {
		found = map_chunk(mapping->slot) ? mine : REFUSED;
		/* PAIR shadow.owner: release; acquire in tw_returns_has_shadow(). */
		tw_store_release(owner, found);
	}
	if (found == BEING_MAPPED)
		found = wait_for_owner(owner);
	mapping->is_mapped = found == mine;
	tw_sys_restore_signals(&signals);
	errno = saved_errno;
}

bool tw_returns_map(const uint64_t *slot)
{
	struct mapping mapping = {slot, false};
	/* PAIR shadow.owner: acquire; as in tw_returns_has_shadow(). */
	uint8_t owner = tw_load_acquire(&tw_shadow_owners[tw_returns_chunk(slot)]);

	/* Another thread has mapped it since the caller's check. */
	if (tw_returns_has_shadow(slot))
		return true;
	/* If refused, or another chunk's, the owner does not change any more. */
	if (!((uintptr_t)slot >> ADDRESS_BITS) && (owner == NO_OWNER || owner == BEING_MAPPED) &&
	    tw_thread_may_call_system() && !tw_own_stack_try(map_there, &mapping))
		count(&tw_returns_lost.no_stack);
	else if (!mapping.is_mapped)
		count(&tw_returns_lost.no_memory);
	return mapping.is_mapped;
}

/* ---- chains and long frames ---- */

static struct tw_return_block *take_block(void)
{
	uint64_t number;

	/* RELAXED returns.blocks: a read-modify-write gives each number once; a block belongs to the thread that took it. */
	if (!blocks || tw_load_relaxed(&blocks_used) >= TW_RETURNS_BLOCKS_MAX)
		return NULL;
	/* RELAXED returns.blocks: as above. */
	number = tw_fetch_add_relaxed(&blocks_used, 1);
	return number < TW_RETURNS_BLOCKS_MAX ? &blocks[number] : NULL;
}

/*
 * The frame of that number, from 1; takes its block if it has none.  A signal handler that runs this meanwhile has
 * another entry.
 */
static tw_return_word *frame_in_block(struct tw_return_entry *entry, unsigned number, bool is_taking)
{
	struct tw_return_block *block = (struct tw_return_block *)(entry->state & TW_RETURN_BLOCK_MASK);

	if (!block && is_taking) {
		block = take_block();
		entry->state |= (uintptr_t)block;
	}
	for (; block && number > TW_COUNT_OF(block->frames); number -= (unsigned)TW_COUNT_OF(block->frames)) {
		if (!block->next && is_taking)
			block->next = take_block();
		block = block->next;
	}
	return block ? block->frames[number - 1] : NULL;
}

static bool push(struct tw_return_entry *entry, const tw_return_word *words, bool is_long)
{
	unsigned number = tw_returns_count(entry);
	tw_return_word *frame = number <= TW_RETURNS_CHAIN_MAX ? frame_in_block(entry, number, true) : NULL;

	if (!frame) {
		count(&tw_returns_lost.chain);
		return false;
	}
	for (int i = 0; i < (is_long ? TW_RETURNS_LONG_WORDS : TW_RETURNS_WORDS); i++)
		frame[i] = words[i];
	tw_compiler_barrier();
	entry->state += 1 << TW_RETURN_COUNT_SHIFT;
	return true;
}

const tw_return_word *tw_returns_frame(const struct tw_return_entry *entry, unsigned number)
{
	return number ? frame_in_block((struct tw_return_entry *)(uintptr_t)entry, number, false) : entry->words;
}

/* ---- copies ---- */

void tw_returns_stacks_are_copied(void)
{
	/* RELAXED returns.copied: set by the thread that is about to load the copying code, before it does. */
	tw_store_relaxed(&stacks_are_copied, true);
}

/*
 * A copy of the frame that has this entry may exist.  A frame with the same return address can share the entry:
 * whichever returns first is reported, with the words of the later call.
 */
static bool share(struct tw_return_entry *entry, uint64_t *slot, const tw_return_word *words, bool is_long,
		  const char *stub)
{
	uintptr_t shares = entry->state & TW_RETURN_SHARE_MASK;

	if (is_long || entry->return_address != *slot) {
		count(&tw_returns_lost.copied);
		return false;
	}
	/* At the maximum count the entry is kept forever. */
	if (shares < TW_RETURN_SHARE_MASK)
		shares += TW_RETURN_SHARE;
	for (int i = 0; i < TW_RETURNS_WORDS; i++)
		entry->words[i] = words[i];
	entry->state = (entry->state & TW_RETURN_BLOCK_MASK) | shares | TW_RETURN_OPEN;
	tw_compiler_barrier();
	*slot = (uintptr_t)stub;
	return true;
}

void tw_returns_close_shared(struct tw_return_entry *entry)
{
	uintptr_t state = entry->state, shares = state & TW_RETURN_SHARE_MASK;

	if (state & TW_RETURN_TOLD)
		count(&tw_returns_lost.copied);
	if (!shares) {
		entry->state = state & TW_RETURN_BLOCK_MASK;
		return;
	}
	if (shares < TW_RETURN_SHARE_MASK)
		shares -= TW_RETURN_SHARE;
	entry->state = (state & (TW_RETURN_BLOCK_MASK | TW_RETURN_OPEN)) | shares | TW_RETURN_TOLD;
}

uintptr_t tw_returns_lost_address(const uint64_t *slot)
{
	const struct tw_return_entry *entry = tw_returns_entry(slot);

	TW_ASSERT(!((uintptr_t)slot >> ADDRESS_BITS) && tw_returns_has_shadow(slot) && entry->return_address);
	count(&tw_returns_lost.copied);
	tw_returns_stacks_are_copied();
	return entry->return_address;
}

/* ---- calls that are not simple ---- */

bool tw_returns_open_slow(uint64_t *slot, const tw_return_word *words, bool is_long, bool is_catching,
			  const char **resume_at)
{
	struct tw_return_entry *entry = tw_returns_entry(slot);
	const char *stub = is_catching ? tw_return_stub_catching : tw_return_stub;
	const char *enter = is_catching ? tw_return_enter_catching : tw_return_enter;
	bool is_open = entry->state & TW_RETURN_OPEN;

	if (tw_returns_is_stub(*slot)) {
		/* A tail call. */
		if (!is_open || (entry->state & TW_RETURN_TOLD)) {
			count(&tw_returns_lost.unusable);
			return false;
		}
		if (!push(entry, words, is_long))
			return false;
		if (is_catching)
			*slot = (uintptr_t)stub;
		return true;
	}
	/* RELAXED returns.copied: as above. */
	if (is_open && tw_load_relaxed(&stacks_are_copied)) {
		if (!share(entry, slot, words, is_long, stub))
			return false;
		*resume_at = enter;
		return true;
	}
	/* The call that was open here was left by a jump. */
	entry->state &= TW_RETURN_BLOCK_MASK;
	entry->return_address = *slot;
	for (int i = 0; i < TW_RETURNS_WORDS; i++)
		entry->words[i] = is_long ? 0 : words[i];
	if (is_long && !push(entry, words, true))
		return false;
	entry->state |= TW_RETURN_OPEN;
	tw_compiler_barrier();
	*slot = (uintptr_t)stub;
	*resume_at = enter;
	return true;
}
