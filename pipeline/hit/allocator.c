/* SPDX-License-Identifier: Apache-2.0 */
/* allocator.c - see allocator.h.  Compiled without vector registers, as hit.c. */
#include "pipeline/hit/allocator.h"
#include "base/filter.h"
#include "breakpoints/patch.h"
#include "pipeline/hit/count.h"
#include "pipeline/hit/hit.h"
#include "tracewheel/session.h"

/* Counts the bytes that the calling thread asks an allocator for, whether or not a session wants the call itself. */
static void count_allocation(const struct tw_place *place, const uint64_t *words)
{
	uint64_t bytes = words[0];

	switch (place->allocator) {
	case TW_BP_ALLOCATES_SECOND: bytes = words[1]; break;
	case TW_BP_ALLOCATES_THIRD: bytes = words[2]; break;
	case TW_BP_ALLOCATES_PRODUCT:
		if (__builtin_mul_overflow(words[0], words[1], &bytes))
			return;
		break;
	default: break;
	}
	/* More than the address space: the allocator will refuse. */
	if (bytes <= INT64_MAX)
		tw_hit_allocated(bytes);
}

static void make_there(void *words)
{
	tw_hit_host.makes_thread(words);
}

static void pass_token_there(void *words)
{
	tw_hit_host.passes_token(words);
}

/*
 * A thread that is a process passes on its flags, and its token of sequential tracing. The trampoline loads the registers from
 * these words again.
 */
static void make_thread(const uint64_t *words)
{
	struct tw_hit_tls *t = &tw_hit_tls;
	bool has_token = t->state == TW_THREAD_READY && tw_seq_is_current(&t->tracee->seq.token);

	if (t->state != TW_THREAD_READY || t->tracee != t->thread->own_tracee || !tw_thread_may_call_system() ||
	    /* RELAXED tracee.flags: its own, or a change seen by this call or by the next; the lock decides. */
	    (!(tw_load_relaxed(&t->tracee->all_flags) & (TW_FLAG_SET_ON_SPAWN | TW_FLAG_SET_ON_FIRST_SPAWN)) &&
	     !has_token))
		return;
	t->state = (uintptr_t)__builtin_frame_address(0);
	tw_compiler_barrier();
	tw_patch_call_keeping_vectors(make_there, (void *)(uintptr_t)words);
	tw_compiler_barrier();
	t->state = TW_THREAD_READY;
	/* Makes events, which are hits of their own. */
	if (has_token)
		tw_patch_call_keeping_vectors(pass_token_there, (void *)(uintptr_t)words);
}

__attribute__((noinline)) void tw_allocator_call(const struct tw_place *place, const uint64_t *words)
{
	if (tw_unlikely(place->allocator == TW_BP_MAKES_THREAD))
		make_thread(words);
	else
		count_allocation(place, words);
}
