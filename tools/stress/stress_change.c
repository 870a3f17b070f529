/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stress_change.c - changes while threads make calls: the switcher, and churners with sessions of their own.
 *
 *	the switcher	each change is one transaction, over all kinds of places: from that moment on nothing of half a
 *			is counted and recorded, and everything of half b; or the reverse
 *	churners	create sessions, set and clear settings of any functions at random, destroy the sessions
 */
#include "tools/stress/stress_inside.h"
#include "tools/tool.h"

#include <tracewheel/match.h>

#include <stdlib.h>
#include <unistd.h>

static const char *const halves[] = {"stress_a", "stress_b"};

/* Half of the changes follow at once. */
static void pause_a_while(struct tw_stress *s, uint64_t *random)
{
	uint64_t us = tw_stress_draw(random, 2 * (uint64_t)s->options->pause_us + 1);

	if (us && us <= s->options->pause_us && !s->stop)
		usleep((unsigned)us);
}

/* ---- the switcher ---- */

static int count(struct tw_stress *s, const char *module, const char *function, enum tw_match match)
{
	return tw_stress_check(s, "tw_trace_function",
			       tw_trace_function(s->counting, module, function, TW_ARITY_ANY, match,
						 TW_FUNCTION_CALL_COUNT));
}

static void count_half(struct tw_stress *s, int half, enum tw_match match)
{
	if (tw_stress_does(s, TW_STRESS_DECLARED))
		count(s, halves[half], "_", match);
	for (unsigned i = 0; i < TW_STRESS_SLED_PAIRS && tw_stress_does(s, TW_STRESS_SLEDS); i++)
		if (count(s, s->program, s->form->counted[i][half], match) == 0)
			tw_stress_tell(s, "%s has no sled that can be traced", s->form->counted[i][half]);
}

static void record(struct tw_stress *s, const char *module, const char *function, uint32_t flags,
		   const struct tw_match_program *program, bool is_set)
{
	int result;

	if (is_set && program)
		result = tw_trace_function_match(s->capturing, module, function, TW_ARITY_ANY, program, flags);
	else
		result = tw_trace_function(s->capturing, module, function, TW_ARITY_ANY,
					   is_set ? TW_MATCH_TRUE : TW_MATCH_FALSE, flags);
	if (tw_stress_check(s, "tw_trace_function", result) == 0)
		tw_stress_tell(s, "%s:%s cannot be traced", module, function);
}

static void record_half(struct tw_stress *s, int half, const struct tw_match_program *program, bool is_set)
{
	if (tw_stress_does(s, TW_STRESS_DECLARED))
		record(s, "stress", tw_stress_numbered_declared[half].name, TW_FUNCTION_LOCAL, program, is_set);
	if (tw_stress_does(s, TW_STRESS_SLEDS))
		record(s, s->program, s->form->numbered[half], TW_FUNCTION_LOCAL, program, is_set);
	if (tw_stress_does(s, TW_STRESS_SLOTS))
		record(s, "libc", tw_stress_numbered_slots[half], TW_FUNCTION_GLOBAL, program, is_set);
}

/* From here on the other half is active. Torn: in many moments instead of one. */
static void change_half(struct tw_stress *s, int from, int to)
{
	uint32_t number = s->phase / 2 + 1;

	s->phase += 1;
	if (!s->options->is_torn && tw_stress_check(s, "tw_trace_begin", tw_trace_begin()) < 0)
		return;
	count_half(s, from, TW_MATCH_PAUSE);
	record_half(s, from, NULL, false);
	count_half(s, to, TW_MATCH_RESTART);
	record_half(s, to, tw_stress_is_returning(s, number) ? s->returning : NULL, true);
	if (!s->options->is_torn)
		tw_stress_check(s, "tw_trace_commit", tw_trace_commit());
	s->phase += 1;
}

static uint64_t read_counter(struct tw_stress *s, const char *module, const char *function)
{
	const int arity = module == s->program ? TW_ARITY_ANY : 0;
	uint64_t value = 0;

	tw_stress_check(s, "tw_trace_call_count", tw_trace_call_count(s->counting, module, function, arity, &value));
	return value;
}

void tw_stress_sum_half(struct tw_stress *s, int half)
{
	const char *last = s->names[s->pairs - 1][half], *last_sled = s->form->counted[TW_STRESS_SLED_PAIRS - 1][half];
	uint64_t value = 0;

	for (uint32_t i = 0; i < s->pairs && tw_stress_does(s, TW_STRESS_DECLARED); i++)
		s->counted[i] += value = read_counter(s, halves[half], s->names[i][half]);
	/* The value must be final, which is checked for one of each kind. */
	if (tw_stress_does(s, TW_STRESS_DECLARED))
		s->result->moved += read_counter(s, halves[half], last) != value;
	for (unsigned i = 0; i < TW_STRESS_SLED_PAIRS && tw_stress_does(s, TW_STRESS_SLEDS); i++)
		s->counted[s->pairs + i] += value = read_counter(s, s->program, s->form->counted[i][half]);
	if (tw_stress_does(s, TW_STRESS_SLEDS))
		s->result->moved += read_counter(s, s->program, last_sled) != value;
}

void *tw_stress_switch(void *arg)
{
	struct tw_stress *s = arg;
	struct tw_stress_result *result = s->result;
	uint64_t random = s->options->seed ^ 0x5;
	int half = 0;

	while (!s->stop) {
		uint64_t before = tw_stress_now_ns();

		change_half(s, half, 1 - half);
		s->latencies[result->switches % TW_STRESS_LATENCIES] = tw_stress_now_ns() - before;
		result->switches++;
		tw_stress_sum_half(s, half);
		half = 1 - half;
		pause_a_while(s, &random);
	}
	s->half = half;
	return NULL;
}

/* ---- churners ---- */

/* A session and its state. */
struct churned {
	struct tw_stress *stress;
	struct tw_session *session;
	uint64_t *random;
	bool is_queue;
};

static size_t length(const char *const *names)
{
	size_t n = 0;

	while (names[n])
		n++;
	return n;
}

/* Draws a module and a function of one of the chosen kinds; false: none this time. */
static bool draw_function(struct churned *c, const char **module, const char **function, bool *is_global)
{
	struct tw_stress *s = c->stress;
	unsigned place = (unsigned)tw_stress_draw(c->random, TW_STRESS_PLACES);

	*function = "_";
	*is_global = false;
	if (!tw_stress_does(s, 1u << place))
		return false;
	if (place == TW_STRESS_AT_DECLARED) {
		*module = halves[tw_stress_draw(c->random, 2)];
	} else if (place == TW_STRESS_AT_SLED) {
		*module = s->program;
		if (tw_stress_draw(c->random, 4))
			*function = s->form->names[tw_stress_draw(c->random, length(s->form->names))];
	} else {
		*is_global = true;
		*module = "libc";
		*function = tw_stress_slots[tw_stress_draw(c->random, length(tw_stress_slots))];
	}
	/* Everything but slots: the library's own calls, which this program contains, pass some. */
	if (!*is_global && !tw_stress_draw(c->random, 8))
		*module = *function = "_";
	return true;
}

static uint32_t draw_kinds(struct churned *c)
{
	static const uint32_t kinds[] = {TW_FUNCTION_CALL_COUNT,
					 TW_FUNCTION_CALL_COUNT,
					 TW_FUNCTION_LOCAL,
					 TW_FUNCTION_META,
					 TW_FUNCTION_LOCAL | TW_FUNCTION_CALL_COUNT,
					 TW_FUNCTION_CALL_TIME,
					 TW_FUNCTION_CALL_TIME | TW_FUNCTION_LOCAL,
					 TW_FUNCTION_CALL_MEMORY};
	bool is_returning = tw_stress_does(c->stress, TW_STRESS_RETURNS);

	return kinds[tw_stress_draw(c->random, is_returning ? sizeof kinds / sizeof *kinds : 5)];
}

static void set_something(struct churned *c)
{
	struct tw_stress *s = c->stress;
	const struct tw_match_program *programs[] = {s->refusing, s->returning, s->catching};
	const char *module, *function;
	bool is_global, is_returning = tw_stress_does(s, TW_STRESS_RETURNS);
	uint32_t kinds;

	if (!draw_function(c, &module, &function, &is_global))
		return;
	kinds = is_global ? TW_FUNCTION_GLOBAL : draw_kinds(c);
	if ((kinds & ~(uint32_t)(TW_FUNCTION_LOCAL | TW_FUNCTION_META | TW_FUNCTION_GLOBAL)) ||
	    tw_stress_draw(c->random, 2))
		tw_stress_check(s, "tw_trace_function",
				tw_trace_function(c->session, module, function, TW_ARITY_ANY,
						  (enum tw_match)tw_stress_draw(c->random, 4), kinds));
	else
		tw_stress_check(s, "tw_trace_function_match",
				tw_trace_function_match(c->session, module, function, TW_ARITY_ANY,
							programs[is_returning ? tw_stress_draw(c->random, 3) : 0],
							kinds));
}

/* Makes one change, or several at once, or several that are aborted. */
static void change_something(struct churned *c)
{
	struct tw_stress *s = c->stress;
	unsigned count_ = (unsigned)tw_stress_draw(c->random, 4);

	if (!count_) {
		set_something(c);
		return;
	}
	if (tw_stress_check(s, "tw_trace_begin", tw_trace_begin()) < 0)
		return;
	while (count_--)
		set_something(c);
	if (tw_stress_draw(c->random, 4))
		tw_stress_check(s, "tw_trace_commit", tw_trace_commit());
	else
		tw_stress_check(s, "tw_trace_abort", tw_trace_abort());
}

static void receive_some(struct churned *c)
{
	char buffer[1 << 14];
	struct tw_term messages[16];
	struct tw_arena arena;
	int64_t result;

	tw_arena_init_fixed(&arena, buffer, sizeof buffer);
	result = tw_queue_receive_batch(c->session, 0, &arena, messages, 16);
	if (result < 0 && result != TW_ETIMEDOUT && result != TW_ENOMEM)
		tw_stress_check(c->stress, "tw_queue_receive_batch", (int)result);
}

static bool open_session(struct churned *c)
{
	struct tw_tracer tracer = {.kind = TW_TRACER_QUEUE, .ring_bytes = 64 << 10};
	const uint32_t flags = TW_FLAG_CALL | (tw_stress_draw(c->random, 2) ? TW_FLAG_RETURN_TO : 0) |
			       (tw_stress_draw(c->random, 2) ? TW_FLAG_STRICT_MONOTONIC_TIMESTAMP : 0);

	c->is_queue = tw_stress_draw(c->random, 2);
	if (tw_stress_check(c->stress, "tw_session_create",
			    tw_session_create("churn", c->is_queue ? &tracer : NULL, &c->session)) < 0)
		return false;
	if (tw_stress_draw(c->random, 4))
		tw_stress_check(c->stress, "tw_trace_process",
				tw_trace_process(c->session, tw_stress_draw(c->random, 2) ? TW_PID_ALL : TW_PID_NEW,
						 true, flags));
	return true;
}

/* Destroys it by its handle, by its weak id, or by dropping the last handle. */
static void close_session(struct churned *c)
{
	tw_session_weak weak = tw_session_weak_of(c->session);

	switch (tw_stress_draw(c->random, 3)) {
	case 0: tw_stress_check(c->stress, "tw_session_destroy", tw_session_destroy(c->session)); break;
	case 1: tw_stress_check(c->stress, "tw_session_destroy_weak", tw_session_destroy_weak(weak)); break;
	default: break;
	}
	tw_session_put(c->session);
}

void *tw_stress_churn(void *arg)
{
	struct tw_stress *s = arg;
	uint64_t number = s->churners++, random = s->options->seed ^ (number + 1) << 8;
	struct churned c = {.stress = s, .random = &random};

	while (!s->stop && open_session(&c)) {
		for (uint64_t i = 1 + tw_stress_draw(&random, 4); i-- > 0;) {
			change_something(&c);
			pause_a_while(s, &random);
			if (c.is_queue)
				receive_some(&c);
		}
		close_session(&c);
		s->changes += 1;
	}
	return NULL;
}
