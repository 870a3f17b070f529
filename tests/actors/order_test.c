/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal	Each actor's events in a capture are in the order of its own log, while actors move to another thread after
 *	every wait, and messages come from all sides.
 * Method	Actors pass numbered messages at random, and log those received and sent.  In the capture an actor's
 *	receive events are in the order in which it took the messages, each before the call made for it, each send after
 *	that call; its in and out alternate, and everything but receive lies between them.
 */
#include "capture.h"

#define ACTORS 12
#define TOKENS 20
#ifdef __SANITIZE_THREAD__
#define STEPS 200
#else
#define STEPS 2000
#endif
#define LOG_MAX (TOKENS * STEPS + TOKENS + 1)

struct log {
	uint64_t *took, *sent;
	size_t count;
};
static struct log logs[ACTORS];
static struct value pids[ACTORS];

static struct value note(struct actor *self, const struct value *arguments)
{
	return arguments[0];
}
static struct function note_function = LOCAL_FUNCTION("order", "note", 1, note);

static uint64_t mix(uint64_t x)
{
	x = (x ^ x >> 31) * 0x7fb5d329728ea185ull;
	return x ^ x >> 27;
}

static struct function member_function;
/* member(Index): messages are integers, left * 2^40 + id. */
static struct value member(struct actor *self, const struct value *arguments)
{
	int64_t index = number_of(arguments[0]);
	struct log *log = &logs[index];
	struct value message = receive(self);
	uint64_t left = (uint64_t)number_of(message) >> 40;
	call(self, &note_function, message);
	log->took[log->count] = (uint64_t)number_of(message);
	uint64_t id = (uint64_t)index << 30 | log->count;
	if (left) {
		struct value next = integer((int64_t)((left - 1) << 40 | id));
		log->sent[log->count++] = (uint64_t)number_of(next);
		send_to(self, pids[mix(id) % ACTORS], next);
	} else {
		log->sent[log->count++] = 0;
		send_to(self, atom("test"), ATOM(OK));
	}
	return tail_call(self, &member_function, arguments[0]);
}
static struct function member_function = FUNCTION("order", "member", 1, member);

static uint64_t first_number(const char *text)
{
	const char *at = strchr(strchr(text, ' ') + 1, ' ');
	return at ? strtoull(at + 1, NULL, 10) : 0;
}

/* The capture's events of one actor. */
static void check_actor(int index)
{
	struct log *log = &logs[index];
	size_t received = 0, called = 0, sent = 0;
	bool is_in = false;
	for (size_t i = 0; i < recorded_count; i++) {
		struct recorded *line = &recorded[i];
		if (line->process != pid_number(pids[index]))
			continue;
		if (line->kind == TW_CAPTURE_IN || line->kind == TW_CAPTURE_OUT) {
			assert_int_equal(is_in, line->kind == TW_CAPTURE_OUT);
			is_in = !is_in;
		} else if (line->kind == TW_CAPTURE_RECEIVE) {
			if (!strstr(line->text, "timeout"))
				assert_int_equal(first_number(line->text), log->took[received++]);
		} else if (line->kind == TW_CAPTURE_CALL) {
			assert_true(is_in && called < received);
			assert_non_null(strstr(line->text, "note"));
			called++;
		} else if (line->kind == TW_CAPTURE_SEND) {
			assert_true(is_in && sent < called);
			assert_int_equal(first_number(line->text), log->sent[sent++]);
		}
	}
	assert_int_equal(received, log->count);
	assert_int_equal(called, log->count);
	assert_int_equal(sent, log->count);
}

static void test_order(void **state)
{
	module_load((struct function *const[]){&note_function, &member_function}, 2);
	bed_start(&(struct runtime_options){.schedulers = 3, .is_restless = true, .reductions = 50});
	register_name(me, atom("test"), self_pid(me));
	for (int i = 0; i < ACTORS; i++) {
		logs[i].took = calloc(LOG_MAX, sizeof(uint64_t));
		logs[i].sent = calloc(LOG_MAX, sizeof(uint64_t));
		pids[i] = spawn(me, &member_function, integer(i));
	}
	start_recording();
	assert_true(tw_trace_process(session, TW_PID_ALL, true,
				     TW_FLAG_SEND | TW_FLAG_RECEIVE | TW_FLAG_CALL | TW_FLAG_RUNNING |
					     TW_FLAG_MONOTONIC_TIMESTAMP) > 0);
	assert_int_equal(tw_trace_function(session, "order", "note", 1, TW_MATCH_TRUE, TW_FUNCTION_LOCAL), 1);
	for (int i = 0; i < TOKENS; i++)
		send_to(me, pids[i % ACTORS], integer((int64_t)STEPS << 40 | i));
	for (int i = 0; i < TOKENS; i++)
		assert_text(next_message(), "ok");
	struct runtime_figures figures = runtime_figures(runtime);
	stop_recording();
	bed_teardown(NULL);
	size_t steps = 0;
	for (int i = 0; i < ACTORS; i++) {
		/* The last message of an actor to the test is no number. */
		for (size_t at = 0; at < logs[i].count; at++)
			steps++;
		check_actor(i);
		free(logs[i].took);
		free(logs[i].sent);
	}
	assert_int_equal(steps, TOKENS * (STEPS + 1));
	assert_true(figures.switches > STEPS);
	free(recorded);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_order)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
