/* SPDX-License-Identifier: Apache-2.0 */
/* main.c - the command: runs a load on the run-time, checks its result and prints its speed. */
#include "loads.h"

#include <argp.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const struct load *const loads[] = {&ring_load, &fan_load,  &chat_load, &web_load,
					   &gc_load,   &bank_load, &busy_load, &self_load};
#define LOADS (sizeof loads / sizeof *loads)

/* ---- shared by loads ---- */

static atomic_bool is_over;

double seconds_now(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

bool is_time_over(void)
{
	/* RELAXED: only the word itself matters. */
	return atomic_load_explicit(&is_over, memory_order_relaxed);
}

bool wait_for_done(struct actor *outside, const struct load_options *options, uint64_t count, uint64_t *sum)
{
	double end = seconds_now() + options->seconds;
	int64_t wait_ms = options->seconds > 0 ? (int64_t)(options->seconds * 1000) : 120000;
	*sum = 0;
	while (count) {
		struct value message;
		if (outside_receive(outside, wait_ms, &message)) {
			if (!is_tagged(message, ATOM(OK), 2) || number_of(element(message, 1)) < 0)
				return false;
			*sum += (uint64_t)number_of(element(message, 1));
			count--;
		} else if (options->seconds > 0 && !is_time_over()) {
			/* RELAXED: as above. */
			atomic_store_explicit(&is_over, true, memory_order_relaxed);
		} else {
			return false;
		}
		double rest = end - seconds_now();
		if (options->seconds > 0)
			wait_ms = is_time_over() ? 30000 : rest > 0 ? (int64_t)(rest * 1000) : 0;
	}
	return true;
}

/* ---- the command line ---- */

struct choice {
	const struct load *load;
	struct load_options options;
	struct runtime_options runtime;
};

static const struct argp_option options[] =
	{{"schedulers", 's', "N", 0, "Threads that run actors (default: one for each processor)", 0},
	 {"actors", 'a', "N", 0, "How many actors (default: the load's own)", 0},
	 {"messages", 'm', "N", 0, "How many messages, about (default: the load's own)", 0},
	 {"seconds", 'd', "S", 0, "Run for so long, instead of counting messages", 0},
	 {"reductions", 'r', "N", 0, "Calls and messages until another actor's turn (default: 2000)", 0},
	 {"restless", 'R', NULL, 0, "Move actors to another thread whenever they have waited", 0},
	 {0}};

static const char help[] =
	"Runs a load on a small actor run-time that tells Tracewheel all it does, and checks the result.\n\n"
	"LOAD is one of\n"
	"  ring   a token goes round a ring\n"
	"  fan    a boss asks many workers at once\n"
	"  chat   a room with a name tells all what one says\n"
	"  web    a server and clients on sockets\n"
	"  gc     heaps that are collected\n"
	"  bank   accounts crash, supervisors start them again\n"
	"  busy   messages and calls as fast as they go\n"
	"  self   actors send to themselves: the way of a message, and nothing else\n\v"
	"Watch one:\n"
	"  tracewheel record -o bank.tw -p send,receive,procs,running -- actors bank -m 1000\n"
	"  tracewheel print bank.tw\n"
	"  tracewheel report bank.tw\n\n"
	"Exit status: 0 when the result is right, 1 when it is not, 64 for a wrong command line.";

static error_t parse(int key, char *argument, struct argp_state *state)
{
	struct choice *choice = state->input;
	switch (key) {
	case 's': choice->runtime.schedulers = (unsigned)strtoul(argument, NULL, 0); break;
	case 'a': choice->options.actors = strtoull(argument, NULL, 0); break;
	case 'm': choice->options.messages = strtoull(argument, NULL, 0); break;
	case 'd': choice->options.seconds = strtod(argument, NULL); break;
	case 'r': choice->runtime.reductions = (unsigned)strtoul(argument, NULL, 0); break;
	case 'R': choice->runtime.is_restless = true; break;
	case ARGP_KEY_ARG:
		if (choice->load)
			argp_error(state, "one load at a time");
		for (size_t i = 0; i < LOADS; i++) {
			if (strcmp(loads[i]->name, argument) == 0)
				choice->load = loads[i];
		}
		if (!choice->load)
			argp_error(state, "there is no load '%s'", argument);
		break;
	case ARGP_KEY_END:
		if (!choice->load)
			argp_error(state, "which load?");
		break;
	default: return ARGP_ERR_UNKNOWN;
	}
	return 0;
}

static void set_defaults(struct choice *choice)
{
	if (choice->options.actors == 0)
		choice->options.actors = choice->load->actors;
	if (choice->options.messages == 0)
		choice->options.messages = choice->options.seconds > 0 ? 1ull << 40 : choice->load->messages;
}

static void say(const struct choice *choice, const struct load_result *result, double seconds,
		const struct runtime_figures *figures)
{
	printf("%s: %s\n", choice->load->name, result->is_right ? result->text : "the result is wrong");
	printf("%" PRIu64 " messages in %.3f s: %.0f a second, %.0f ns each\n", result->messages, seconds,
	       (double)result->messages / seconds, seconds * 1e9 / (double)(result->messages + !result->messages));
	printf("%" PRIu64 " switches, %" PRIu64 " actors stolen, %" PRIu64 " sleeps, %" PRIu64 " actors in all\n",
	       figures->switches, figures->stolen, figures->sleeps, figures->spawned);
}

int main(int argc, char **argv)
{
	static const struct argp argp = {options, parse, "LOAD", help, NULL, NULL, NULL};
	struct choice choice = {0};
	argp_err_exit_status = 64;
	argp_parse(&argp, argc, argv, 0, NULL, &choice);
	set_defaults(&choice);
	choice.load->declare();
	struct runtime *runtime = runtime_start(&choice.runtime);
	struct actor *outside = runtime ? outside_create(runtime) : NULL;
	if (!outside) {
		fputs("actors: no memory or no threads\n", stderr);
		return 1;
	}
	double start = seconds_now();
	struct load_result result = choice.load->run(outside, &choice.options);
	double seconds = seconds_now() - start;
	struct runtime_figures figures = runtime_figures(runtime);
	outside_destroy(outside);
	runtime_stop(runtime);
	say(&choice, &result, seconds, &figures);
	return !result.is_right;
}
