/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal	The end of a call is reported to the sessions that existed when it was made, and to none that took the slot of
 *	one meanwhile, whichever slot that is.
 * Method	Sessions are created and destroyed in all slots; after each step the sessions newer than each epoch are
 *	compared with the test's notes.
 */
#include "session_bed.h"

#include <stdlib.h>

enum { SESSIONS = 12, STEPS = 300 };

static struct tw_declared_function f = TW_DECLARED_FUNCTION("epoch", "f", 0);

static void newer_sessions_are_told_apart(void **state)
{
	static uint64_t epochs[STEPS], made_at[TW_SESSIONS_MAX];
	struct tw_session *sessions[SESSIONS] = {NULL};
	unsigned count = 0;

	srand(5);
	for (unsigned step = 0; step < STEPS; step++) {
		unsigned which = (unsigned)rand() % SESSIONS;

		if (sessions[which]) {
			tw_session_destroy(sessions[which]);
			tw_session_put(sessions[which]);
		}
		assert_int_equal(tw_session_create("one", NULL, &sessions[which]), 0);
		/* A session gets a slot with its first setting. */
		assert_int_equal(tw_trace_function(sessions[which], "epoch", "f", 0, TW_MATCH_TRUE, TW_FUNCTION_LOCAL),
				 1);
		made_at[sessions[which]->slot] = ++count;
		epochs[step] = tw_load_acquire(&tw_hit_epoch);
		for (unsigned before = 0; before <= step; before++) {
			uint64_t newer = tw_hit_newer_than(epochs[before]);

			for (unsigned i = 0; i < SESSIONS; i++)
				if (sessions[i])
					assert_int_equal(newer >> sessions[i]->slot & 1,
							 made_at[sessions[i]->slot] > before + 1);
		}
	}
	for (unsigned i = 0; i < SESSIONS; i++)
		if (sessions[i]) {
			tw_session_destroy(sessions[i]);
			tw_session_put(sessions[i]);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(newer_sessions_are_told_apart),
	};

	assert_int_equal(tw_function_declare(&f), 0);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
