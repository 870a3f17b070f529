/* SPDX-License-Identifier: Apache-2.0 */
/* vectors.c - how much of the processor's vector state trampolines save. */
#include "breakpoints/patch.h"
#include "breakpoints/trampoline.h"

uint32_t tw_patch_vector_bytes, tw_patch_vector_mask;

void tw_patch_use_vectors(const struct tw_vectors *vectors)
{
	if (tw_patch_vector_bytes || !tw_vectors_are_sound(vectors))
		return;
	tw_patch_vector_mask = vectors->mask;
	tw_patch_vector_bytes = vectors->bytes;
}

void tw_patch_measure_vectors(void)
{
	static bool is_measured;
	struct tw_vectors vectors;

	if (tw_patch_vector_bytes || is_measured)
		return;
	is_measured = true;
	tw_vectors_measure(&vectors);
	tw_patch_use_vectors(&vectors);
}
