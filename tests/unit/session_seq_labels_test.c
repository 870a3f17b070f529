/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal	Labels that are removed from the table while threads read them are whole, or known to be forgotten: never another's.
 * Method	Two threads fill the table twice over with labels of several lengths.  Each keeps tokens and looks again at old ones,
 *		at all ages: the label is its own, or the token is refused and counted.
 */
#include "session_bed.h"
#include "term/term.h"
#include "tracewheel/seq.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#define LABELS 110000
#define KEPT   65536

struct side {
	pthread_t thread;
	char letter;
	unsigned known, forgotten;
};

static struct tw_term label_of(struct tw_arena *arena, const struct side *side, unsigned number)
{
	char text[600];
	/* One block, or several. */
	size_t bytes = number % 16 ? 20 : 20 + number % 500;

	memset(text, side->letter, sizeof text);
	snprintf(text, sizeof text, "%c %u", side->letter, number);
	text[strlen(text)] = ' ';
	return tw_term_binary(arena, text, bytes);
}

static void look_again(struct side *side, const struct tw_seq_token *token, unsigned number)
{
	struct tw_term got, wanted;
	struct tw_arena arena;
	char buffer[4096];

	tw_arena_init_fixed(&arena, buffer, sizeof buffer);
	if (tw_seq_set_token(token, NULL)) {
		side->forgotten++;
		return;
	}
	assert_int_equal(tw_seq_component(&arena, tw_term_atom_z("label"), &got), 0);
	got = tw_term_element(got, 1);
	wanted = label_of(&arena, side, number);
	/* Forgotten by the other thread between the two calls. */
	if (tw_term_type(got) == TW_TYPE_ATOM)
		side->forgotten++;
	else
		assert_true(tw_term_is_equal(got, wanted));
	side->known++;
}

static void *make(void *arg)
{
	struct tw_seq_token *kept = calloc(KEPT, sizeof *kept);
	struct side *side = arg;
	struct tw_arena arena;
	char buffer[1024];

	for (unsigned i = 0; i < LABELS; i++) {
		unsigned age = (i * 40503u) % KEPT;

		tw_arena_init_fixed(&arena, buffer, sizeof buffer);
		assert_int_equal(tw_seq_set_label(label_of(&arena, side, i)), 0);
		tw_seq_get_token(&kept[i % KEPT]);
		if (age <= i)
			look_again(side, &kept[(i - age) % KEPT], i - age);
	}
	tw_seq_set_token(NULL, NULL);
	free(kept);
	return NULL;
}

static void labels_are_whole_or_forgotten(void **state)
{
	struct side sides[2] = {{.letter = 'a'}, {.letter = 'b'}};
	struct tw_seq_stats before, after;

	tw_seq_stats(&before);
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&sides[i].thread, NULL, make, &sides[i]), 0);
	for (unsigned i = 0; i < 2; i++)
		pthread_join(sides[i].thread, NULL);
	tw_seq_stats(&after);
	assert_true(after.labels_forgotten > before.labels_forgotten);
	for (unsigned i = 0; i < 2; i++)
		assert_true(sides[i].known > LABELS / 2);
	assert_true(sides[0].forgotten + sides[1].forgotten >= after.forgotten - before.forgotten);
	tw_seq_reset_trace();
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(labels_are_whole_or_forgotten)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
