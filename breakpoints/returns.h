/* SPDX-License-Identifier: Apache-2.0 */
/*
 * returns.h - watching the returns of native calls: the return address leads to a stub, the true one is in shadow memory.
 *
 *	slot S on the stack		entry of S, in shadow memory at an address that follows from S
 *	| address of a stub |		| true return address | state | words of the room above        |
 *
 * There is no separate stack and no index: the entry of a frame is computed from the address of its slot, by the stub
 * when the call returns, and by unwinders from the stub's call frame information.  After longjmp, exceptions,
 * coroutines and threads that end inside a call, only unused words are left behind.  Stubs and entries stay valid for
 * ever, even after tracing is switched off.
 *
 *	shadow	chunks of 1 MiB of addresses that hold stacks of any kind (threads', coroutines', signal stacks), each
 *		with 4 MiB of shadow for its upper halves of 16 bytes, in which the return addresses of calls with an
 *		aligned stack lie, and 4 MiB elsewhere for the lower ones, which compilers use for calls of local
 *		functions that need no aligned stack: 64 bytes for each 8 of stack, mapped by the first call that
 *		needs them and backed by memory where calls were watched.  Never unmapped.
 *	chain	a function that is entered by a jump has its caller's slot: it finds a stub there.  Such tail calls
 *		become further frames of the same entry, TW_RETURNS_CHAIN_MAX at most, in blocks that the entry keeps.
 *
 *	copies	of stacks (greenlets copy pieces of them away and back): a stub comes back in a slot that another call
 *		had meanwhile.  In such a program (tw_returns_stacks_are_copied()) an entry keeps the return address
 *		of each frame that has not returned, wherever its copy is: a call with the same return address shares
 *		the entry, a call with another one is not watched.
 *
 * Threads  all functions are called in hits and at watched returns: any thread, signal handlers too.  No vector
 *	    registers, no locks; system calls only to map a chunk.
 */
#ifndef TW_BREAKPOINTS_RETURNS_H
#define TW_BREAKPOINTS_RETURNS_H

#include "base/assert.h"
#include "breakpoints/trampoline.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Words that the room above keeps for a call.  Long ones take a block. */
#define TW_RETURNS_WORDS      6
#define TW_RETURNS_LONG_WORDS 15
/* Maximum number of frames that end by one return: the limit of a chain of tail calls. */
#define TW_RETURNS_CHAIN_MAX 63

#define TW_SHADOW_CHUNK_BITS 20
/* Of both halves. */
#define TW_SHADOW_CHUNKS (UINT64_C(2) << (TW_SHADOW_SLOT_BITS - TW_SHADOW_CHUNK_BITS))

/* A word that may alias other types. */
typedef uint64_t __attribute__((may_alias)) tw_return_word;

/* The shadow of 8 bytes of stack. */
struct tw_return_entry {
	uintptr_t return_address;
	uintptr_t state; /* TW_RETURN_* and a count, in the low bits of the address of a kept block */
	tw_return_word words[TW_RETURNS_WORDS]; /* the first is 0: all frames are in blocks */
};

enum {
	TW_RETURN_OPEN = 1, /* a call is watched */
	TW_RETURN_COUNT_SHIFT = 2,
	TW_RETURN_COUNT_MASK = 0xfc /* frames in blocks */
};
#define TW_RETURN_BLOCK_MASK UINT64_C(0x0000ffffffffff00)
/* Number of further frames with the same slot and return address, copied elsewhere; and: their end was reported. */
#define TW_RETURN_SHARE	     (UINT64_C(1) << 48)
#define TW_RETURN_SHARE_MASK UINT64_C(0x7fff000000000000)
#define TW_RETURN_TOLD	     (UINT64_C(1) << 63)

/* Frames of one entry that do not fit it. */
struct tw_return_block {
	tw_return_word frames[2][TW_RETURNS_LONG_WORDS];
	struct tw_return_block *next;
	uint64_t reserved;
};

_Static_assert(sizeof(struct tw_return_entry) == 64, "one line of the cache");
_Static_assert(sizeof(struct tw_return_block) == (TW_RETURN_BLOCK_MASK & -TW_RETURN_BLOCK_MASK),
	       "blocks leave space for the state");
_Static_assert(TW_RETURNS_CHAIN_MAX <= TW_RETURN_COUNT_MASK >> TW_RETURN_COUNT_SHIFT, "counts fit the state");

/* By chunk: 1 + the upper bits of the addresses whose shadow is mapped there; 0: none. */
extern _Atomic uint8_t tw_shadow_owners[TW_SHADOW_CHUNKS] __attribute__((visibility("hidden")));

#pragma GCC visibility push(hidden)
/* The stubs, in sequence: for frames without and with notification of exceptions. */
extern const char tw_return_stub[], tw_return_stub_catching[], tw_return_stubs_end[];
/* Before each stub, the call that enters a function that shall return to it. */
extern const char tw_return_enter[], tw_return_enter_catching[];
/* An .eh_frame_hdr of both, for libunwind. */
extern const char tw_return_listed[];
#pragma GCC visibility pop

/* Calls whose returns are not watched, by cause. */
struct tw_returns_lost {
	_Atomic uint64_t no_memory; /* the system gave no shadow, or its addresses are in use */
	_Atomic uint64_t no_stack;  /* other threads had all of our own stacks for a second (own_stack.h) */
	_Atomic uint64_t chain;	    /* a chain of tail calls beyond the limit, or no block for it */
	_Atomic uint64_t unusable;  /* a stub's address as return address that was not stored by us */
	_Atomic uint64_t copied;    /* the slot belongs to a frame that was copied away */
};
extern struct tw_returns_lost tw_returns_lost;

/*
 * tw_returns_init - can returns be watched in this process?
 *
 * Errors: TW_ENOTSUP with a sentence in *reason (user shadow stacks are on: the processor compares return addresses
 * with a copy that we cannot change).  Idempotent.
 */
int tw_returns_init(const char **reason);

/*
 * tw_returns_stacks_are_copied - announce that the program copies pieces of stacks away and back; cannot be revoked.
 *
 * From then on, frames left by an unreported jump keep their slots.  Threads: any; before the first copy is made.
 */
void tw_returns_stacks_are_copied(void);

/*
 * Called at a return with the slot and %rax; returns the true return address.  Set once by the room above, with
 * tw_bp_trampoline_hit.  Keeps errno.
 */
typedef uintptr_t (*tw_bp_return_fn)(uint64_t *slot, uint64_t value);
extern tw_bp_return_fn tw_bp_trampoline_return;
/* The value of %rdx that the stub has saved: the second word of some results. */
static inline uint64_t tw_returns_second(const uint64_t *slot)
{
	return slot[-3];
}

static inline struct tw_return_entry *tw_returns_entry(const uint64_t *slot)
{
	uintptr_t address = (uintptr_t)slot;

	return (struct tw_return_entry *)(((address & TW_SHADOW_SLOT_MASK) << TW_SHADOW_SHIFT) +
					  ((address & TW_SHADOW_HALF) << TW_SHADOW_HALF_SHIFT) + TW_SHADOW_BASE);
}

/* The index of a slot's chunk among the owners. */
static inline size_t tw_returns_chunk(const uint64_t *slot)
{
	return ((uintptr_t)tw_returns_entry(slot) - TW_SHADOW_BASE) >> (TW_SHADOW_CHUNK_BITS + TW_SHADOW_SHIFT);
}

static inline bool tw_returns_has_shadow(const uint64_t *slot)
{
	/* PAIR shadow.owner: acquire; release in tw_returns_map().  The memory is mapped before it is used. */
	return tw_load_acquire(&tw_shadow_owners[tw_returns_chunk(slot)]) ==
	       (uint8_t)(((uintptr_t)slot >> TW_SHADOW_SLOT_BITS) + 1);
}

static inline bool tw_returns_is_stub(uint64_t address)
{
	return address - (uintptr_t)tw_return_stub < (uintptr_t)(tw_return_stubs_end - tw_return_stub);
}

/* Maps the chunk; false: failed, and counted. */
bool tw_returns_map(const uint64_t *slot);
/* tw_returns_open() for calls that are not simple. */
bool tw_returns_open_slow(uint64_t *slot, const tw_return_word *words, bool is_long, bool is_catching,
			  const char **resume_at);

/* Is the shadow mapped, the slot the caller's own, and the entry unused? */
static inline bool tw_returns_is_fast(const uint64_t *slot)
{
	return tw_returns_has_shadow(slot) && !tw_returns_is_stub(*slot) &&
	       !(tw_returns_entry(slot)->state & TW_RETURN_OPEN);
}

/* tw_returns_open() for simple calls; returns the way. */
static inline const char *tw_returns_open_fast(uint64_t *slot, const tw_return_word *words, bool is_catching)
{
	struct tw_return_entry *entry = tw_returns_entry(slot);

	entry->return_address = *slot;
#pragma GCC unroll 6
	for (int i = 0; i < TW_RETURNS_WORDS; i++)
		entry->words[i] = words[i];
	entry->state = (entry->state & TW_RETURN_BLOCK_MASK) | TW_RETURN_OPEN;
	/* A handler that unwinds from here finds either state complete. */
	tw_compiler_barrier();
	*slot = (uintptr_t)(is_catching ? tw_return_stub_catching : tw_return_stub);
	return is_catching ? tw_return_enter_catching : tw_return_enter;
}

/* tw_returns_open() where the shadow is mapped. */
static inline bool tw_returns_open_mapped(uint64_t *slot, const tw_return_word *words, bool is_long, bool is_catching,
					  const char **resume_at)
{
	if (tw_unlikely(is_long || !tw_returns_is_fast(slot)))
		return tw_returns_open_slow(slot, words, is_long, is_catching, resume_at);
	*resume_at = tw_returns_open_fast(slot, words, is_catching);
	return true;
}

/*
 * tw_returns_open - watch the call that is being entered.
 *
 * @slot	where its return address lies.
 * @words	the words to keep: TW_RETURNS_WORDS, TW_RETURNS_LONG_WORDS if is_long.
 * @is_catching	exceptions that leave the call are reported to tw_bp_trampoline_throw.
 * @way		gives: the hit's return value to its trampoline, see tw_bp_hit_fn; untouched where a jump suffices.
 *
 * Returns false when the call cannot be watched: counted in tw_returns_lost.
 */
static inline bool tw_returns_open(uint64_t *slot, const tw_return_word *words, bool is_long, bool is_catching,
				   const char **resume_at)
{
	if (tw_unlikely(!tw_returns_has_shadow(slot)) && !tw_returns_map(slot))
		return false;
	return tw_returns_open_mapped(slot, words, is_long, is_catching, resume_at);
}

/* The number of frames that end with this entry (0: already reported), and the words of one of them: 0 is the first called. */
static inline unsigned tw_returns_count(const struct tw_return_entry *entry)
{
	return (unsigned)(1 + ((entry->state & TW_RETURN_COUNT_MASK) >> TW_RETURN_COUNT_SHIFT) - (entry->state >> 63));
}
/* True if it is one, in the entry itself, that was not reported and is not shared with copies; by one comparison. */
static inline bool tw_returns_is_single(const struct tw_return_entry *entry)
{
	return !(entry->state & (TW_RETURN_COUNT_MASK | TW_RETURN_SHARE_MASK | TW_RETURN_TOLD));
}
const tw_return_word *tw_returns_frame(const struct tw_return_entry *entry, unsigned number);

void tw_returns_close_shared(struct tw_return_entry *entry);

static inline bool tw_returns_is_shared(const struct tw_return_entry *entry)
{
	return entry->state >> 48;
}

static inline void tw_returns_close_own(struct tw_return_entry *entry)
{
	entry->state &= TW_RETURN_BLOCK_MASK;
}

/* Marks their end as reported. */
static inline void tw_returns_close(struct tw_return_entry *entry)
{
	if (tw_unlikely(tw_returns_is_shared(entry)))
		tw_returns_close_shared(entry);
	else
		tw_returns_close_own(entry);
}

/* The entry of the open call with this slot; NULL: none. */
static inline struct tw_return_entry *tw_returns_find(const uint64_t *slot)
{
	struct tw_return_entry *entry = tw_returns_entry(slot);

	if ((uintptr_t)slot >> 47 || !tw_returns_has_shadow(slot))
		return NULL;
	return entry->state & TW_RETURN_OPEN ? entry : NULL;
}

/*
 * tw_returns_lost_address - the continuation of a stub whose slot has no open entry; for copied calls.
 *
 * Returns the return address of the slot's last call; ends the program if the slot never had one, because the return
 * address is unknown.
 */
uintptr_t tw_returns_lost_address(const uint64_t *slot);

#endif
