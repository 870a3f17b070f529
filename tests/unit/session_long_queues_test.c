/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal	Each session gets an event when a queue becomes long and when it is short again, by its own limits and once each, whatever
 *	other sessions have set, while sessions and processes come and go.
 * Method	Random programs of limits, lengths, sessions and processes, beside a model: one bit for each session and process.
 *	Limits and lengths are small, so that lengths are often equal to a limit or just beside it. Negative control: a
 *	model whose Disable is one less differs from the library.
 *
 *	session_long_queues_test [STEPS [SEED]]
 */
#include "tests/unit/system_help.h"
#include "tests/common/random.h"

#define SESSIONS  5
#define PROCESSES 3
#define LENGTHS	  16

static struct {
	struct tw_session *session; /* NULL: none */
	bool is_set, is_long[PROCESSES];
	uint64_t disable, enable;
} sessions[SESSIONS];
static struct tw_process *processes[PROCESSES];
static uint64_t steps_wanted = 30000, seed = 1;

static void come_or_go(unsigned s)
{
	if (sessions[s].session)
		end_session(sessions[s].session);
	sessions[s].session = sessions[s].session ? NULL : new_session();
	sessions[s].is_set = false;
}

static void limit(unsigned s, uint64_t *random)
{
	struct tw_term pair[2], event = tw_term_atom_z("long_message_queue");

	if (!sessions[s].session)
		return;
	sessions[s].is_set = random_below(random, 4) > 0;
	sessions[s].disable = random_below(random, LENGTHS - 2);
	sessions[s].enable = sessions[s].disable + 1 + random_below(random, LENGTHS - 1 - sessions[s].disable);
	pair[0] = tw_term_unsigned(&arena, sessions[s].disable);
	pair[1] = tw_term_unsigned(&arena, sessions[s].enable);
	assert_int_equal(tw_trace_system(sessions[s].session, event,
					 sessions[s].is_set ? tw_term_tuple(&arena, pair, 2) : tw_term_bool(false)),
			 0);
	memset(sessions[s].is_long, 0, sizeof sessions[s].is_long);
}

static void replace(unsigned process)
{
	tw_process_exit(processes[process]);
	assert_int_equal(tw_process_create("p", &processes[process]), 0);
	for (unsigned s = 0; s < SESSIONS; s++)
		sessions[s].is_long[process] = false;
}

/* @shift: Disable is so much less than what was set. */
static const char *expected(unsigned s, unsigned process, uint64_t length, uint64_t shift)
{
	bool *is_long = &sessions[s].is_long[process];

	if (!sessions[s].is_set || (*is_long ? length + shift > sessions[s].disable : length < sessions[s].enable))
		return "";
	*is_long = !*is_long;
	return *is_long ? "{monitor,P,long_message_queue,true}\n" : "{monitor,P,long_message_queue,false}\n";
}

/* Returns whether every session got the events that the model says. */
static bool report(unsigned process, uint64_t length, uint64_t shift)
{
	bool is_same = true;

	snprintf(p_text, sizeof p_text, "<0.%u.0>", (unsigned)tw_process_pid(processes[process]));
	tw_process_mailbox(processes[process], length);
	for (unsigned s = 0; s < SESSIONS; s++)
		if (sessions[s].session)
			is_same &= !strcmp(received(sessions[s].session), expected(s, process, length, shift));
	return is_same;
}

/* Plays a program; returns the step that differs from the model, or 0. */
static uint64_t play(uint64_t steps, uint64_t shift)
{
	uint64_t random = seed, differs = 0;

	tw_arena_init(&arena, SIZE_MAX);
	for (unsigned i = 0; i < PROCESSES; i++)
		assert_int_equal(tw_process_create("p", &processes[i]), 0);
	for (uint64_t step = 1; step <= steps && !differs; step++) {
		uint64_t verb = random_below(&random, 100);

		if (verb < 3)
			come_or_go((unsigned)random_below(&random, SESSIONS));
		else if (verb < 9)
			limit((unsigned)random_below(&random, SESSIONS), &random);
		else if (verb < 10)
			replace((unsigned)random_below(&random, PROCESSES));
		else if (!report((unsigned)random_below(&random, PROCESSES), random_below(&random, LENGTHS), shift))
			differs = step;
		tw_arena_reset(&arena);
	}
	for (unsigned s = 0; s < SESSIONS; s++)
		if (sessions[s].session)
			come_or_go(s);
	for (unsigned i = 0; i < PROCESSES; i++)
		tw_process_exit(processes[i]);
	tw_arena_fini(&arena);
	return differs;
}

static void line_189_sessions_with_other_limits(void **state)
{
	uint64_t differs = play(steps_wanted, 0);

	if (differs)
		fail_msg("seed %llu: step %llu differs", (unsigned long long)seed, (unsigned long long)differs);
}

static void another_model_differs(void **state)
{
	assert_true(play(steps_wanted, 1) > 0);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(line_189_sessions_with_other_limits),
		cmocka_unit_test(another_model_differs),
	};

	steps_wanted = argc > 1 ? strtoull(argv[1], NULL, 0) : steps_wanted;
	seed = argc > 2 ? strtoull(argv[2], NULL, 0) : seed;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
