/* SPDX-License-Identifier: Apache-2.0 */
/* thread_name.c - who names a thread writes the name to its rings, where the recorder finds it. */
#include "base/atomic.h"
#include "pipeline/hit/hit.h"
#include "pipeline/thread/thread.h"

void tw_thread_name_rings(struct tw_thread *thread, const char *name)
{
	uint64_t words[2] = {0};

	memcpy(words, name, strnlen(name, sizeof words - 1));
	for (unsigned session = 0; session < TW_SESSIONS_MAX; session++) {
		struct tw_rb_shared *shared = thread->rings[session].producer.shared;

		for (unsigned i = 0; shared && i < 2; i++)
			/*
			 * RELAXED thread.name: text for people, read now and then; a mixture of two names is
			 * harmless.
			 */
			tw_store_relaxed((_Atomic uint64_t *)(void *)(shared->thread_name + 8 * i), words[i]);
	}
}

void tw_thread_named(const char *name)
{
	const struct tw_hit_tls *t = &tw_hit_tls;

	if (t->state == TW_THREAD_READY && t->thread)
		tw_thread_name_rings(t->thread, name);
}
