/* SPDX-License-Identifier: Apache-2.0 */
/*
 * count_calls.c - how often is a function of this program called?
 *
 * The function is declared; a session without a tracer counts its calls while the program runs, and stops without
 * stopping the program.  Nothing is recorded, no file is written.
 *
 *	cc count_calls.c -ltracewheel -o count_calls && ./count_calls
 */
#include <tracewheel/tracewheel.h>

#include <inttypes.h>
#include <stdio.h>

TW_DEFINE_FUNCTION(collatz_function, "numbers", "collatz", 1);

static uint64_t collatz(uint64_t n)
{
	tw_call1(&collatz_function, n);
	return n % 2 ? 3 * n + 1 : n / 2;
}

static uint64_t steps_to_one(uint64_t n)
{
	uint64_t steps = 0;

	for (; n != 1; n = collatz(n))
		steps++;
	return steps;
}

int main(void)
{
	struct tw_session *session;
	uint64_t counted = 0, steps;
	int error = tw_session_create("count", NULL, &session);

	if (!error)
		error = tw_trace_function(session, "numbers", "collatz", 1, TW_MATCH_TRUE, TW_FUNCTION_CALL_COUNT);
	if (error < 0) {
		fprintf(stderr, "count_calls: %s\n", tw_strerror(error));
		return 1;
	}
	steps = steps_to_one(27);
	tw_trace_call_count(session, "numbers", "collatz", 1, &counted);
	printf("27 reaches 1 in %" PRIu64 " steps; collatz/1 was called %" PRIu64 " times\n", steps, counted);
	tw_session_destroy(session);
	tw_session_put(session);
	return steps != counted;
}
