/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal	Threads that pass tokens to each other, set them, encode and decode them, print and reset at once never see a token that
 *		none of them made, while system tracers come and go and the table of labels overflows.
 * Method	Threads exchange tokens through slots; each token's label says its maker and number, so that its receiver can
 *		check it.  A seed for the choices; a bounded number of steps.
 */
#include "session_events.h"
#include "tracewheel/seq.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>

enum { THREADS = 4, STEPS = 25000, SLOTS = 8 };

static struct bed one, two;
static struct {
	pthread_mutex_t lock;
	struct tw_seq_token token;
} slots[SLOTS];

struct worker {
	pthread_t thread;
	unsigned number, seed;
	const char *wrong;
};

static unsigned next(struct worker *w)
{
	w->seed = w->seed * 1103515245u + 12345u;
	return w->seed >> 16;
}

/* {Maker,Number,Bytes}: labels of many lengths. */
static void begin_trace(struct worker *w, int number)
{
	static const char bytes[1900];
	char buffer[4096];
	struct tw_arena arena;
	struct tw_term parts[3];

	tw_arena_init_fixed(&arena, buffer, sizeof buffer);
	parts[0] = tw_term_integer(NULL, w->number);
	parts[1] = tw_term_integer(NULL, number);
	parts[2] = tw_term_binary(&arena, bytes, next(w) % sizeof bytes);
	tw_seq_set_label(tw_term_tuple(&arena, parts, 3));
	tw_seq_set_flags(TW_SEQ_FLAGS, true);
}

/* The token of the calling thread is empty or one that a worker made. */
static void check_token(struct worker *w)
{
	char buffer[4096];
	struct tw_arena arena;
	struct tw_term token, label;
	int64_t maker, number;

	tw_arena_init_fixed(&arena, buffer, sizeof buffer);
	token = tw_seq_token_term(&arena);
	if (tw_is_nil(token))
		return;
	label = tw_term_element(token, 1);
	/* Forgotten, or of a trace that an earlier component began. */
	if (tw_term_is_same(label, tw_atom(TW_ATOM_CUT)) || tw_is_small(label))
		return;
	if (tw_term_get_int64(tw_term_element(label, 0), &maker) ||
	    tw_term_get_int64(tw_term_element(label, 1), &number) || maker < 0 || maker >= THREADS || number < 0 ||
	    number >= STEPS || !tw_is_binary(tw_term_element(label, 2)))
		w->wrong = "a label that no thread made";
}

static void put_token(struct worker *w)
{
	struct tw_seq_token token;
	unsigned slot = next(w) % SLOTS;

	tw_seq_pass(&token, (struct tw_term){0}, tw_term_integer(NULL, 5));
	if (next(w) % 4 == 0) {
		unsigned char bytes[TW_SEQ_ENCODED_BYTES_MAX];
		struct tw_seq_token again;
		size_t used;

		if (tw_seq_encode(&token, bytes, sizeof bytes, &used) || tw_seq_decode(bytes, used, NULL, &again))
			w->wrong = "a token does not come back";
		else
			token = again;
	}
	pthread_mutex_lock(&slots[slot].lock);
	slots[slot].token = token;
	pthread_mutex_unlock(&slots[slot].lock);
}

static void take_token(struct worker *w)
{
	struct tw_seq_token token;
	unsigned slot = next(w) % SLOTS;

	pthread_mutex_lock(&slots[slot].lock);
	token = slots[slot].token;
	pthread_mutex_unlock(&slots[slot].lock);
	tw_seq_accept(&token, tw_term_integer(NULL, 5));
	check_token(w);
}

static void *work(void *argument)
{
	struct worker *w = argument;

	for (int i = 0; i < STEPS && !w->wrong; i++) {
		unsigned what = next(w) % 100;

		if (what < 20)
			begin_trace(w, i);
		else if (what < 55)
			put_token(w);
		else if (what < 90)
			take_token(w);
		else if (what < 98)
			tw_seq_print(tw_term_integer(NULL, i));
		else if (what < 99)
			tw_seq_set_system_tracer(next(w) % 2 ? one.session : next(w) % 2 ? two.session : NULL, NULL);
		else if (next(w) % 10 == 0)
			tw_seq_reset_trace();
	}
	tw_seq_set_token(NULL, NULL);
	return NULL;
}

static void threads_at_once(void **state)
{
	struct worker workers[THREADS] = {{0}};
	struct tw_seq_stats stats;
	struct tw_seq_token token;

	open_bed(&one, "one");
	open_bed(&two, "two");
	for (int i = 0; i < SLOTS; i++)
		pthread_mutex_init(&slots[i].lock, NULL);
	/* The first token watches pthread_create(): here, since a thread sanitizer does not see that a slot orders anything. */
	assert_int_equal(tw_seq_set_label(tw_term_integer(NULL, 1)), 0);
	for (unsigned i = 0; i < THREADS; i++) {
		workers[i].number = i;
		workers[i].seed = 77 + i;
		assert_int_equal(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
	}
	/* System tracers come and go. */
	for (int i = 0; i < 50; i++) {
		struct tw_session *tracer;
		struct bed bed;

		open_bed(&bed, "short");
		assert_int_equal(tw_seq_set_system_tracer(bed.session, NULL), 0);
		sched_yield();
		close_bed(&bed);
		tracer = tw_seq_get_system_tracer();
		assert_true(!tracer || tracer == one.session || tracer == two.session);
		if (tracer)
			tw_session_put(tracer);
	}
	for (unsigned i = 0; i < THREADS; i++) {
		pthread_join(workers[i].thread, NULL);
		if (workers[i].wrong)
			fail_msg("thread %u: %s", i, workers[i].wrong);
	}
	tw_seq_stats(&stats);
	assert_int_equal(stats.damaged + stats.foreign + stats.refused_damaged + stats.refused_version +
				 stats.refused_limit,
			 0);
	assert_true(stats.labels_forgotten > 0);
	/* A reset empties what lies in the slots. */
	tw_seq_reset_trace();
	for (int i = 0; i < SLOTS; i++) {
		tw_seq_accept(&slots[i].token, (struct tw_term){0});
		tw_seq_get_token(&token);
		assert_true(tw_seq_token_is_empty(&token));
	}
	assert_false(tw_seq_is_active());
	tw_seq_set_system_tracer(NULL, NULL);
	close_bed(&two);
	close_bed(&one);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(threads_at_once)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
