/* SPDX-License-Identifier: Apache-2.0 */
/* walk.c - follows frame pointers, strictly within the thread's own stack. */
#include "pipeline/hit/walk.h"

#include "breakpoints/returns.h"
#include "pipeline/hit/hit.h"

/* Code addresses lie between these. */
#define CODE_LOW  4096
#define CODE_HIGH (UINT64_C(1) << 47)

/*
 * The end of the thread's own stack; 0: `inside` is on another stack, or the stack is not known. Memory above a
 * thread's control block may be another's in the same mapping, and be unmapped at any time.
 */
static uintptr_t stack_end(const struct tw_thread *thread, uintptr_t inside)
{
	uintptr_t self = (uintptr_t)__builtin_thread_pointer();

	if (inside < thread->stack_low || inside >= thread->stack_high)
		return 0;
	return self > inside && self < thread->stack_high ? self : thread->stack_high;
}

/* The return address in a slot, or the one it had before its call was watched; 0: none. */
static uint64_t return_address(const uint64_t *slot)
{
	uint64_t address = *slot;

	if (tw_unlikely(tw_returns_is_stub(address))) {
		const struct tw_return_entry *entry = tw_returns_find(slot);

		address = entry ? entry->return_address : 0;
	}
	return address >= CODE_LOW && address < CODE_HIGH ? address : 0;
}

/* Reads frames of uninstrumented code, where a sanitizer sees a gap between variables. */
__attribute__((no_sanitize("address"))) unsigned tw_walk_callers(const struct tw_thread *thread, const uint64_t *slot,
								 uintptr_t frame, uint64_t *out, unsigned capacity)
{
	uintptr_t below = (uintptr_t)slot, end;
	unsigned count = 0;

	out[count] = return_address(slot);
	count += out[count] != 0;
	if (!count || capacity <= count)
		return count;
	end = stack_end(thread, below);
	while (count < capacity && frame > below && frame < end && end - frame >= 2 * sizeof *slot &&
	       frame % sizeof *slot == 0) {
		const uint64_t *words = (const uint64_t *)frame;

		out[count] = return_address(&words[1]);
		if (!out[count])
			break;
		count++;
		below = frame;
		frame = (uintptr_t)words[0];
	}
	return count;
}
