/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal    When there are more events in a second than the limit, just the places that make most are asked for, once each, until the others
 *         fit; nothing is asked for below the limit; where it does not help, that is known.
 * Method  Streams of records whose rates by place are given, in a time of our own.  The member's side answers, late or not at all, and what
 *         it was asked for makes no events any more, or still does.
 */
#include "pipeline/format/event.h"
#include "pipeline/recorder/demote.h"
#include "ringbuf/ringset.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define MS	   UINT64_C(1000000)
#define STEP_NS	   (50 * MS)
#define PLACES_MAX 4000
#define LEASE	   UINT64_C(0x100000007)

static struct tw_rs rs;

/* A program: events of each place in a step. */
struct program {
	struct tw_demote *demote;
	uint32_t places, rates[PLACES_MAX];
	uint32_t kind;	  /* of its records */
	uint32_t lost;	  /* events in a step that are lost */
	bool is_obedient; /* makes no events of places that were asked for */
	bool refuses;	  /* it says so */
	bool answers;	  /* to requests, in the step behind them */
	uint64_t now_ns, events;
	uint32_t asked, requests; /* places, and times */
	bool is_asked[PLACES_MAX];
};

static struct program *make(uint32_t places, uint32_t rate)
{
	struct program *program = calloc(1, sizeof *program);

	*program = (struct program){.demote = tw_demote_create(),
				    .places = places,
				    .kind = TW_EVENT_CALL,
				    .is_obedient = true,
				    .answers = true,
				    .now_ns = 1000000 * MS};
	for (uint32_t i = 0; i < places; i++)
		program->rates[i] = rate;
	assert_non_null(program->demote);
	return program;
}

static void end(struct program *program)
{
	struct tw_rs_demoted demoted;

	if (tw_rs_demotion_take(&rs, &demoted))
		tw_rs_demotion_done(&rs, &demoted, 0);
	tw_demote_destroy(program->demote);
	free(program);
}

static void make_events(struct program *program)
{
	static struct tw_rb_record records[4096];
	uint32_t count = 0;

	for (uint32_t place = 0; place < program->places; place++)
		for (uint32_t i = 0; i < program->rates[place] && !(program->is_obedient && program->is_asked[place]);
		     i++) {
			records[count++] =
				(struct tw_rb_record){.head = TW_RB_HEAD(program->kind, 0, sizeof *records, place)};
			program->events++;
			if (count < 4096)
				continue;
			tw_demote_see(program->demote, LEASE, (const uint8_t *)records, sizeof records);
			count = 0;
		}
	tw_demote_see(program->demote, LEASE, (const uint8_t *)records, count * (uint32_t)sizeof *records);
	program->events += program->lost;
}

static void answer(struct program *program)
{
	struct tw_rs_demoted demoted;

	if (!program->answers || !tw_rs_demotion_take(&rs, &demoted))
		return;
	assert_true(demoted.count && demoted.share && demoted.share <= 100);
	program->requests++;
	for (uint32_t i = 0; i < demoted.count; i++) {
		assert_true(demoted.places[i] < program->places);
		assert_false(program->is_asked[demoted.places[i]]);
		program->is_asked[demoted.places[i]] = true;
		program->asked++;
	}
	tw_rs_demotion_done(&rs, &demoted, program->refuses ? 0 : demoted.count);
}

/* Steps until it is impossible: how many there were; or @most. */
static uint32_t run(struct program *program, uint64_t rate, uint32_t most)
{
	for (uint32_t step = 0; step < most; step++) {
		program->now_ns += STEP_NS;
		answer(program);
		make_events(program);
		if (tw_demote_look(program->demote, &rs, rate, program->events, program->now_ns) ==
		    TW_DEMOTION_IMPOSSIBLE)
			return step;
	}
	return most;
}

static void below_the_limit_nothing_is_asked(void **state)
{
	struct program *program = make(10, 490); /* 98,000 a second */

	assert_int_equal(run(program, 100000, 400), 400);
	assert_int_equal(program->requests, 0);
	end(program);
}

static void the_loudest_alone_is_asked(void **state)
{
	struct program *program = make(100, 10); /* 20,000 a second */

	program->rates[42] = 20000;
	assert_int_equal(run(program, 50000, 400), 400);
	assert_int_equal(program->asked, 1);
	assert_true(program->is_asked[42]);
	end(program);
}

/* A recorder without a processor for 100 ms finds the events of that time at once, at the beginning of a window. */
static void what_had_waited_is_no_higher_rate(void **state)
{
	struct program *program = make(100, 10); /* 20,000 a second */

	program->rates[42] = 40000; /* 800,000 a second */
	program->rates[43] = 500;   /* 10,000 a second, which fit beside the others */
	assert_int_equal(run(program, 50000, 1), 1);
	for (int i = 0; i < 2; i++)
		make_events(program);
	program->now_ns += MS;
	assert_int_equal(tw_demote_look(program->demote, &rs, 50000, program->events, program->now_ns),
			 TW_DEMOTION_ASKED);
	assert_int_equal(run(program, 50000, 400), 400);
	assert_int_equal(program->asked, 1);
	assert_true(program->is_asked[42]);
	end(program);
}

/* Of 4,000 alike, at ten times the limit: more than one request, and not all. */
static void as_many_as_needed(void **state)
{
	struct program *program = make(4000, 5); /* 400,000 a second */

	assert_int_equal(run(program, 40000, 400), 400);
	assert_in_range(program->asked, 3600, 3900);
	assert_in_range(program->requests, 4, 20);
	end(program);
}

static void lost_events_count(void **state)
{
	struct program *program = make(10, 100); /* 20,000 a second */

	program->rates[3] = 2000;
	program->lost = 20000;
	run(program, 100000, 6);
	program->lost = 0;
	assert_int_equal(run(program, 100000, 400), 400);
	assert_true(program->is_asked[3]);
	end(program);
}

static void what_does_not_help_is_known(void **state)
{
	struct program *program = make(10, 1000);

	/* It records them as before: known when nothing can be on its way any more. */
	program->is_obedient = false;
	assert_in_range(run(program, 10000, 400), 60, 100);
	end(program);
	/* It says that nothing has changed. */
	program = make(10, 1000);
	program->is_obedient = false;
	program->refuses = true;
	assert_in_range(run(program, 10000, 400), 1, 5);
	end(program);
	/* It does not answer. */
	program = make(10, 1000);
	program->answers = false;
	assert_in_range(run(program, 10000, 400), 40, 50);
	end(program);
	/* They are no calls. */
	program = make(10, 1000);
	program->kind = TW_EVENT_SPAWN;
	assert_in_range(run(program, 10000, 400), 15, 25);
	assert_int_equal(program->requests, 0);
	end(program);
}

static void the_loudest_of_the_last_window(void **state)
{
	struct program *program = make(10, 10);
	uint32_t place = 0, percent = 0;

	assert_false(tw_demote_loudest(program->demote, LEASE, &place, &percent));
	program->rates[7] = 110;
	make_events(program);
	assert_true(tw_demote_loudest(program->demote, LEASE, &place, &percent));
	assert_int_equal(place, 7);
	assert_int_equal(percent, 55);
	/* The next window has events of its own. */
	assert_false(tw_demote_loudest(program->demote, LEASE, &place, &percent));
	program->rates[7] = 0;
	program->rates[2] = 20;
	make_events(program);
	/* Of another program there were none. */
	assert_false(tw_demote_loudest(program->demote, LEASE + 1, &place, &percent));
	make_events(program);
	assert_true(tw_demote_loudest(program->demote, LEASE, &place, &percent));
	assert_int_equal(place, 2);
	end(program);
}

static void hostile_records_are_left(void **state)
{
	struct tw_demote *demote = tw_demote_create();
	struct tw_rb_record records[4] = {{.head = TW_RB_HEAD(TW_EVENT_CALL, 0, 16, UINT32_MAX)},
					  {.head = TW_RB_HEAD(TW_EVENT_CALL, 0, 16, 5)},
					  {.head = TW_RB_HEAD(TW_EVENT_CALL, 0, 0, 5)}};

	tw_demote_see(demote, LEASE, (const uint8_t *)records, sizeof records);
	records[2].head = TW_RB_HEAD(TW_EVENT_CALL, 0, 4096, 5);
	tw_demote_see(demote, LEASE, (const uint8_t *)records, sizeof records);
	tw_demote_see(demote, LEASE, (const uint8_t *)records, 0);
	tw_demote_see(demote, LEASE + 1, (const uint8_t *)records, 3);
	tw_demote_destroy(demote);
	tw_demote_destroy(NULL);
}

static int set_up(void **state)
{
	const struct tw_rs_options options = {.ring_bytes = 1 << 16, .cap_bytes = 1 << 22};

	return tw_rs_create(&rs, &options);
}

static int tear_down(void **state)
{
	tw_rs_destroy(&rs);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(below_the_limit_nothing_is_asked),
		cmocka_unit_test(the_loudest_alone_is_asked),
		cmocka_unit_test(what_had_waited_is_no_higher_rate),
		cmocka_unit_test(as_many_as_needed),
		cmocka_unit_test(lost_events_count),
		cmocka_unit_test(what_does_not_help_is_known),
		cmocka_unit_test(hostile_records_are_left),
		cmocka_unit_test(the_loudest_of_the_last_window),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
