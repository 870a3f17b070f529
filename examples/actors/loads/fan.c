/* SPDX-License-Identifier: Apache-2.0 */
/* fan.c - a boss gives each worker a number and adds up the squares that come back. */
#include "../loads.h"

#include <inttypes.h>
#include <stdio.h>

static struct value square(struct actor *self, const struct value *arguments)
{
	int64_t number = number_of(arguments[0]);
	return integer(number * number);
}
static struct function square_function = LOCAL_FUNCTION("fan", "square", 1, square);

static struct function worker_function;
/* worker(Boss) */
static struct value worker(struct actor *self, const struct value *arguments)
{
	struct value number = receive(self);
	send_to(self, arguments[0], call(self, &square_function, number));
	return tail_call(self, &worker_function, arguments[0]);
}
static struct function worker_function = FUNCTION("fan", "worker", 1, worker);

/* boss(Collector, Workers, Rounds): a list of pids, and one number a round for each. */
static struct value boss(struct actor *self, const struct value *arguments)
{
	struct value collector = receive(self);
	int64_t count = number_of(arguments[0]), rounds = number_of(arguments[1]), sum = 0, done = 0;
	struct value workers = NIL;
	KEEP(self, workers);
	for (int64_t i = 0; i < count; i++)
		workers = cons(heap_of(self), spawn_link(self, &worker_function, self_pid(self)), workers);
	for (; done < rounds && !is_time_over(); done++) {
		for (struct value rest = workers; is_box(rest, BOX_CONS); rest = tail(rest))
			send_to(self, head(rest), integer(done % 1000));
		for (int64_t i = 0; i < count; i++)
			sum += number_of(receive(self)) - (done % 1000) * (done % 1000);
	}
	/* Each answer was the square of its round's number, or the sum is not 0. */
	send_to(self, collector, TUPLE(heap_of(self), ATOM(OK), integer(sum == 0 ? done : -1)));
	return ATOM(OK);
}
static struct function boss_function = FUNCTION("fan", "boss", 2, boss);

static void declare(void)
{
	module_load((struct function *const[]){&square_function, &worker_function, &boss_function}, 3);
}

static struct load_result run(struct actor *outside, const struct load_options *options)
{
	struct load_result result = {0};
	uint64_t rounds = options->messages / options->actors + 1, done = 0;
	struct value pid = spawn(outside, &boss_function, integer((int64_t)options->actors), integer((int64_t)rounds));
	send_to(outside, pid, self_pid(outside));
	result.is_right = wait_for_done(outside, options, 1, &done) && done <= rounds;
	result.messages = done * options->actors * 2;
	result.calls = done * options->actors * 2;
	snprintf(result.text, sizeof result.text, "%" PRIu64 " workers answered %" PRIu64 " times each, all right",
		 options->actors, done);
	return result;
}

const struct load fan_load = {"fan", "a boss asks many workers at once", 100, 500000, run, declare};
