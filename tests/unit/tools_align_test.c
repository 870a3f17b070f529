/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal: clocks are aligned by messages alone: the true time lies within the uncertainty that is stated, and no message is
 * received before it was sent. Clocks that no continuous time explains are refused, and the moment of the step is named.
 *
 * Method: machines whose clocks have known offsets of hours and drifts of 100 ppm exchange random messages of random
 * delays: two of them, a chain, rings with messages between all; clocks that are slewed; messages one way only; none;
 * a clock that is stepped, which is the negative control: without the step the same messages are aligned.
 */
#include "tools/merge/align.h"

#include "base/error.h"
#include "tests/common/random.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { MACHINES = 5 };
#define SECOND 1e9

struct clock {
	double offset, drift;
	double slew, slewed_at; /* from then on it drifts by this much more */
	double step, stepped_at;
};

struct world {
	struct clock clocks[MACHINES];
	struct tw_align_machine machines[MACHINES];
	uint32_t count;
	struct tw_align *align;
	double seconds;
	struct message {
		uint32_t from, to;
		double sent, received; /* true */
	} * messages;
	uint32_t message_count;
};

static uint64_t seed;

static double random_number(double limit)
{
	return limit * (double)random_below(&seed, 1 << 24) / (double)(1 << 24);
}

static uint64_t clock_at(const struct clock *clock, double time)
{
	long double at = clock->offset + (long double)time * (1 + clock->drift);

	if (time > clock->slewed_at)
		at += (long double)(time - clock->slewed_at) * clock->slew;
	if (time > clock->stepped_at)
		at += clock->step;
	return (uint64_t)llroundl(at);
}

static void begin(struct world *world, uint32_t count, double seconds)
{
	memset(world, 0, sizeof *world);
	world->count = count;
	world->seconds = seconds;
	for (uint32_t i = 0; i < count; i++) {
		struct clock *clock = &world->clocks[i];

		*clock = (struct clock){.offset = 3600 * SECOND + random_number(20 * 3600 * SECOND),
					.drift = random_number(200e-6) - 100e-6,
					.slewed_at = INFINITY,
					.stepped_at = INFINITY};
	}
	world->messages = calloc(1 << 20, sizeof *world->messages);
}

static void open_clocks(struct world *world)
{
	for (uint32_t i = 0; i < world->count; i++) {
		world->machines[i].start_ns = clock_at(&world->clocks[i], 0);
		world->machines[i].end_ns = clock_at(&world->clocks[i], world->seconds * SECOND);
		/* Wall clocks disagree by up to 3 s. */
		world->machines[i].start_wall_ns = (uint64_t)(1e18 + random_number(3 * SECOND));
	}
	world->align = tw_align_create(world->machines, world->count);
	assert_non_null(world->align);
}

static void send(struct world *world, uint32_t from, uint32_t to, double at, double delay)
{
	struct message *message = &world->messages[world->message_count++];

	*message = (struct message){from, to, at, at + delay};
	assert_true(tw_align_add(world->align, from, clock_at(&world->clocks[from], message->sent), to,
				 clock_at(&world->clocks[to], message->received)));
}

/* At least 20 us, often more, now and then a hundred times as much. */
static double random_delay(void)
{
	double delay = 20e3 - 60e3 * log(1 - random_number(0.999));

	return random_number(1) < 0.02 ? delay * 100 : delay;
}

static void send_many(struct world *world, uint32_t from, uint32_t to, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		send(world, from, to, random_number(world->seconds * SECOND - 1e8), random_delay());
}

/* No message arrives before it was sent, in whole nanoseconds. */
static void check_order(const struct world *world)
{
	for (uint32_t i = 0; i < world->message_count; i++) {
		const struct message *message = &world->messages[i];
		const struct tw_align_machine *from = &world->machines[message->from],
					      *to = &world->machines[message->to];
		uint64_t sent = clock_at(&world->clocks[message->from], message->sent);
		uint64_t received = clock_at(&world->clocks[message->to], message->received);

		assert_true(floor(tw_align_common(to, received)) >= floor(tw_align_common(from, sent)));
	}
}

/* The error of a machine's time, compared with the reference's clock at the same moment. */
static double error_at(const struct world *world, uint32_t machine, double time)
{
	double truth = (double)(int64_t)(clock_at(&world->clocks[0], time) - world->machines[0].start_ns);

	return tw_align_common(&world->machines[machine], clock_at(&world->clocks[machine], time)) - truth;
}

static void check_estimate(const struct world *world)
{
	for (uint32_t machine = 1; machine < world->count; machine++) {
		const struct tw_align_machine *is = &world->machines[machine];
		double drift = (1 + world->clocks[0].drift) / (1 + world->clocks[machine].drift) - 1;

		assert_int_equal(is->by, TW_ALIGN_MESSAGES);
		assert_true(is->uncertainty_ns > 0 && is->uncertainty_ns <= is->uncertainty_max_ns);
		assert_true(fabs(error_at(world, machine, world->seconds * SECOND / 2)) <= is->uncertainty_ns + 2);
		for (unsigned i = 0; i <= 10; i++)
			assert_true(fabs(error_at(world, machine, world->seconds * SECOND * i / 10)) <=
				    is->uncertainty_max_ns + 2);
		assert_true(fabs(is->drift - drift) <= is->drift_uncertainty + 1e-12);
	}
	check_order(world);
}

static void end(struct world *world)
{
	tw_align_destroy(world->align);
	free(world->messages);
}

static void test_two(void **state)
{
	static const double lengths[] = {0.2, 5, 600, 36000};
	struct tw_align_conflict conflict;
	struct world world;

	for (seed = 1; seed <= 12; seed++) {
		uint64_t number = seed;

		begin(&world, 2, lengths[seed % 4]);
		open_clocks(&world);
		send_many(&world, 0, 1, 1 + number * 40);
		send_many(&world, 1, 0, 1 + number * 25);
		assert_int_equal(tw_align_solve(world.align, 0, &conflict), 0);
		check_estimate(&world);
		/* Many messages leave little doubt. */
		if (world.message_count > 400)
			assert_true(world.machines[1].uncertainty_ns < 100e3);
		end(&world);
		seed = number;
	}
}

static void test_chain_and_ring(void **state)
{
	struct tw_align_conflict conflict;
	struct world world;

	for (unsigned number = 1; number <= 10; number++) {
		seed = number * 77;
		begin(&world, MACHINES, 300);
		open_clocks(&world);
		for (uint32_t i = 0; i + 1 < MACHINES; i++) {
			send_many(&world, i, i + 1, 100);
			send_many(&world, i + 1, i, 100);
		}
		/* And between all, one way or both. */
		for (uint32_t i = 0; number % 2 && i < MACHINES * MACHINES; i++) {
			if (i / MACHINES != i % MACHINES)
				send_many(&world, i / MACHINES, i % MACHINES, 30);
		}
		assert_int_equal(tw_align_solve(world.align, 0, &conflict), 0);
		check_estimate(&world);
		end(&world);
	}
}

/* A circle of three with messages one way round: no two machines exchange messages, and still the order is kept. */
static void test_circle(void **state)
{
	struct tw_align_conflict conflict;
	struct world world;

	seed = 5;
	begin(&world, 3, 20);
	open_clocks(&world);
	for (uint32_t i = 0; i < 3; i++)
		send_many(&world, i, (i + 1) % 3, 200);
	assert_int_equal(tw_align_solve(world.align, 0, &conflict), 0);
	assert_int_equal(world.machines[1].by, TW_ALIGN_ONE_WAY);
	check_order(&world);
	end(&world);
}

/* NTP changes the rate of a clock in the middle, so that no line is possible for the whole. */
static void test_slewed(void **state)
{
	struct tw_align_conflict conflict;
	struct world world;

	for (unsigned number = 1; number <= 4; number++) {
		seed = number * 1234;
		begin(&world, 2, 1000);
		world.clocks[1].slewed_at = 380 * SECOND;
		world.clocks[1].slew = number % 2 ? 40e-6 : -40e-6;
		open_clocks(&world);
		send_many(&world, 0, 1, 20000);
		send_many(&world, 1, 0, 20000);
		assert_int_equal(tw_align_solve(world.align, 0, &conflict), 0);
		assert_true(world.machines[1].pieces > 1);
		check_order(&world);
		for (unsigned i = 0; i <= 20; i++)
			assert_true(fabs(error_at(&world, 1, 50 * SECOND * i)) <=
				    world.machines[1].uncertainty_max_ns + 1e3);
		assert_true(world.machines[1].uncertainty_max_ns < 5e6);
		end(&world);
	}
}

static void test_stepped(void **state)
{
	struct tw_align_conflict conflict;
	struct world world;

	for (unsigned stepped = 0; stepped < 3; stepped++) {
		seed = 42;
		begin(&world, 2, 100);
		if (stepped) {
			world.clocks[1].stepped_at = 60 * SECOND;
			world.clocks[1].step = stepped == 1 ? 2 * SECOND : -0.05 * SECOND;
		}
		open_clocks(&world);
		send_many(&world, 0, 1, 3000);
		send_many(&world, 1, 0, 3000);
		assert_int_equal(tw_align_solve(world.align, 0, &conflict), stepped ? TW_EFORMAT : 0);
		if (stepped) {
			double at = (double)(conflict.at_ns - world.machines[1].start_ns) / SECOND;

			assert_int_equal(conflict.machine, 1);
			assert_int_equal(conflict.other, 0);
			assert_true(conflict.by_ns > 1e6);
			assert_true(at > 0 && at < 103);
		}
		end(&world);
	}
}

/* Wall clocks count where messages leave a choice, and only there. */
static void test_few_messages(void **state)
{
	struct tw_align_conflict conflict;
	struct world world;

	for (unsigned number = 0; number < 20; number++) {
		double difference;

		seed = number;
		begin(&world, 3, 50);
		open_clocks(&world);
		send_many(&world, number % 2, 1 - number % 2, 50);
		assert_int_equal(tw_align_solve(world.align, 0, &conflict), 0);
		assert_int_equal(world.machines[1].by, TW_ALIGN_ONE_WAY);
		assert_int_equal(world.machines[2].by, TW_ALIGN_WALL);
		difference = (double)(int64_t)(world.machines[2].start_wall_ns - world.machines[0].start_wall_ns);
		assert_true(fabs(world.machines[2].common[0] - difference) < 1e3);
		check_order(&world);
		end(&world);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_two),	cmocka_unit_test(test_chain_and_ring),
		cmocka_unit_test(test_circle),	cmocka_unit_test(test_slewed),
		cmocka_unit_test(test_stepped), cmocka_unit_test(test_few_messages),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
