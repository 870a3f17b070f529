/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stress.c - the program `tracewheel-stress`, which `tracewheel stress` runs: options and output; stress_run.c has the
 * run.
 */
#include "tools/stress/stress_break.h"
#include "tools/tool.h"

#include <tracewheel/error.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static const struct tw_option known[] = {
	{'s', "seconds", "N", "how long (10); 0: until interrupted"},
	{'w', "what", "LIST",
	 "declared, sleds, slots: the places that are called and changed;\n"
	 "entries: as sleds, but functions without sleds, which are planted\n"
	 "as by `record --local`;\n"
	 "returns: calls are watched to their ends (return, longjmp, thread\n"
	 "end); threads: some come and go, some idle; signals: handlers stop\n"
	 "threads wherever they are. Separated by commas (all)"},
	{'t', "threads", "N", "threads that call (2)"},
	{'c', "changers", "N",
	 "threads that change sessions of their own, beside the one that\n"
	 "switches everything (1)"},
	{'p', "pause", "TIME", "the longest pause between two changes (1ms); half of them have none"},
	{'f', "functions", "N", "declared functions that are called (256)"},
	{'r', "seed", "N", "the seed of random numbers (the time)"},
	{'b', "break", "KIND",
	 "do one step wrong, which must fail: no-wait, free-early, switch-first, one-by-one,\n"
	 "forgotten-place, torn-sled, torn-slot, half-written, lost-record,\n"
	 "stamp-order (docs/proofs.md). Ends when it is noticed"},
	{'T', "self-test", NULL,
	 "break each of these for a moment, and nothing; exit code 0 when each was\n"
	 "noticed and nothing else was"},
	{'j', "json", NULL, "print the result as JSON"},
	{0, NULL, NULL, NULL},
};

static const struct tw_command command = {
	.name = "stress",
	.arguments = "[OPTION]...",
	.summary = "Proves changes and thread progress under load on this machine. Threads call declared\n"
		   "functions, functions with entry sleds and, through GOT slots, functions of libc at full speed\n"
		   "and check every result, while others switch what is counted and recorded, all at once, and\n"
		   "create, change and destroy sessions. Exit code 0: every change was one moment for all threads\n"
		   "and all kinds of places, and in effect everywhere when its call returned; counters add up,\n"
		   "every result and register was right, and every lost event was counted. When interrupted, it\n"
		   "reports on the run so far.",
	.options = known,
	.examples = "  tracewheel stress --seconds 60 --threads 4\n"
		    "  tracewheel stress --what sleds,returns --pause 0 --seed 7\n"
		    "  tracewheel stress --break no-wait\n"
		    "  tracewheel stress --self-test\n",
};

static const char *const what_names[] = {"declared", "sleds", "slots", "returns", "threads", "signals", "entries"};
static const char *const place_names[] = {"declared", "sleds", "slots"};

static const char *place_name(const struct tw_stress_options *options, unsigned place)
{
	return place == TW_STRESS_AT_SLED && options->what & TW_STRESS_ENTRIES ? "entries" : place_names[place];
}

static volatile int is_interrupted;

static void interrupt(int signal)
{
	is_interrupted = 1;
}

/* ---- output ---- */

static uint64_t all_calls(const struct tw_stress_result *r)
{
	return r->calls[0] + r->calls[1] + r->calls[2];
}

static uint64_t deviation(const struct tw_stress_result *r)
{
	return r->counted > r->pairs ? r->counted - r->pairs : r->pairs - r->counted;
}

static void put_times(const char *name, const char *what, const uint64_t ns[4])
{
	char a[TW_FIGURE_BYTES], b[TW_FIGURE_BYTES], c[TW_FIGURE_BYTES], d[TW_FIGURE_BYTES];

	printf("%-12s %s median, %s 90 %%, %s 99 %%, %s longest%s\n", name, tw_figure_seconds(a, (double)ns[0] / 1e9),
	       tw_figure_seconds(b, (double)ns[1] / 1e9), tw_figure_seconds(c, (double)ns[2] / 1e9),
	       tw_figure_seconds(d, (double)ns[3] / 1e9), what);
}

static void put_calls(const struct tw_stress_options *options, const struct tw_stress_result *r)
{
	char a[TW_FIGURE_BYTES], b[TW_FIGURE_BYTES];
	const char *between = ": ";

	printf("calls        %s, %s/s", tw_figure_count(a, all_calls(r)),
	       tw_figure_short(b, (double)all_calls(r) / r->seconds));
	for (unsigned i = 0; i < TW_STRESS_PLACES; i++) {
		if (!r->calls[i])
			continue;
		printf("%s%s %s/s", between, place_name(options, i),
		       tw_figure_short(a, (double)r->calls[i] / r->seconds));
		between = ", ";
	}
	printf("\n");
	if (r->threads || r->stalls)
		printf("threads      %s came and went; %s times one was held up by a signal\n",
		       tw_figure_count(a, r->threads), tw_figure_count(b, r->stalls));
}

static void put_text(const struct tw_stress_options *options, const struct tw_stress_result *r)
{
	char a[TW_FIGURE_BYTES], b[TW_FIGURE_BYTES], c[TW_FIGURE_BYTES], d[TW_FIGURE_BYTES];

	printf("seed         %llu, %s\n", (unsigned long long)options->seed, tw_figure_seconds(a, r->seconds));
	put_calls(options, r);
	printf("changes      %s switches of everything, %s/s; %s other sessions\n", tw_figure_count(a, r->switches),
	       tw_figure_short(b, (double)r->switches / r->seconds), tw_figure_count(c, r->changes));
	put_times("a switch", "", r->latency_ns);
	printf("progress     %s waits for all threads, %s of them for their instructions\n",
	       tw_figure_count(a, r->waits), tw_figure_count(b, r->code_waits));
	put_times("a wait", "", r->wait_ns);
	printf("one moment   %s of %s pairs of calls were not counted once; %s can be\n",
	       tw_figure_count(a, deviation(r)), tw_figure_count(b, r->pairs), tw_figure_count(c, r->tolerated));
	printf("             %s rounds over all places show a set that was active at no moment\n",
	       tw_figure_count(a, r->torn));
	printf("final        %s counters moved after they were stopped\n", tw_figure_count(a, r->moved));
	printf("recorded     %s of %s rounds, %s with a switch inside; %s of the others not reported as lost\n",
	       tw_figure_count(a, r->stored), tw_figure_count(b, r->numbered), tw_figure_count(c, r->within),
	       tw_figure_count(d, r->unaccounted));
	printf("lost         %s events, reported; %s rounds not checked\n", tw_figure_count(a, r->lost),
	       tw_figure_count(b, r->excused));
	printf("ends         %s of calls, %s of them wrong\n", tw_figure_count(a, r->ends),
	       tw_figure_count(b, r->bad_ends));
	for (uint32_t i = 0; i < r->finding_count; i++)
		printf("wrong        %s\n", r->findings[i]);
	if (r->wrong > r->finding_count)
		printf("wrong        and %s more\n", tw_figure_count(a, r->wrong - r->finding_count));
	printf("%s\n", tw_stress_has_passed(r) ? "PASS" : "FAIL");
}

static void put_json_times(struct tw_json *json, const char *what, const uint64_t ns[4])
{
	static const char *const names[] = {"median", "90", "99", "longest"};
	char name[32];

	for (unsigned i = 0; i < 4; i++) {
		snprintf(name, sizeof name, "%s_%s", what, names[i]);
		tw_json_seconds(json, name, ns[i]);
	}
}

static void put_json(const struct tw_stress_options *options, const struct tw_stress_result *r, struct tw_out *out)
{
	struct tw_json json = {.out = out};

	tw_json_open(&json, NULL, '{');
	tw_json_bool(&json, "passed", tw_stress_has_passed(r));
	tw_json_double(&json, "seconds", r->seconds);
	tw_json_u64(&json, "seed", options->seed);
	tw_json_open(&json, "what", '[');
	for (unsigned i = 0; i < sizeof what_names / sizeof *what_names; i++)
		if (options->what >> i & 1)
			tw_json_string(&json, NULL, what_names[i]);
	tw_json_close(&json, ']');
	tw_json_u64(&json, "threads", options->threads);
	tw_json_u64(&json, "changers", options->changers);
	tw_json_u64(&json, "functions", options->functions);
	tw_json_u64(&json, "calls", all_calls(r));
	for (unsigned i = 0; i < TW_STRESS_PLACES; i++)
		tw_json_u64(&json, place_name(options, i), r->calls[i]);
	tw_json_u64(&json, "threads_ended", r->threads);
	tw_json_u64(&json, "signals", r->stalls);
	tw_json_u64(&json, "switches", r->switches);
	tw_json_u64(&json, "changes", r->changes);
	put_json_times(&json, "switch", r->latency_ns);
	tw_json_u64(&json, "waits", r->waits);
	tw_json_u64(&json, "code_waits", r->code_waits);
	put_json_times(&json, "wait", r->wait_ns);
	tw_json_u64(&json, "pairs", r->pairs);
	tw_json_u64(&json, "counted", r->counted);
	tw_json_u64(&json, "tolerated", r->tolerated);
	tw_json_u64(&json, "moved", r->moved);
	tw_json_u64(&json, "numbered", r->numbered);
	tw_json_u64(&json, "stored", r->stored);
	tw_json_u64(&json, "unaccounted", r->unaccounted);
	tw_json_u64(&json, "disordered", r->disordered);
	tw_json_u64(&json, "within", r->within);
	tw_json_u64(&json, "excused", r->excused);
	tw_json_u64(&json, "torn", r->torn);
	tw_json_u64(&json, "ends", r->ends);
	tw_json_u64(&json, "bad_ends", r->bad_ends);
	tw_json_u64(&json, "lost", r->lost);
	tw_json_u64(&json, "failed", r->failed);
	tw_json_u64(&json, "wrong", r->wrong);
	tw_json_open(&json, "told", '[');
	for (uint32_t i = 0; i < r->finding_count; i++)
		tw_json_string(&json, NULL, r->findings[i]);
	tw_json_close(&json, ']');
	tw_json_close(&json, '}');
	tw_out_text(out, "\n");
}

/* ---- options ---- */

static bool read_number(const char *text, uint64_t least, uint64_t most, uint64_t *out)
{
	return tw_parse_count(text, out) && *out >= least && *out <= most;
}

/* At least one kind of place must be given. */
static bool read_what(const char *text, unsigned *out)
{
	*out = 0;
	while (*text) {
		size_t bytes = strcspn(text, ",");
		unsigned before = *out;

		for (unsigned i = 0; i < sizeof what_names / sizeof *what_names; i++)
			if (strlen(what_names[i]) == bytes && !strncmp(text, what_names[i], bytes))
				*out |= 1u << i;
		if (bytes == 3 && !strncmp(text, "all", bytes))
			*out |= TW_STRESS_ALL;
		else if (*out == before)
			return false;
		text += bytes + (text[bytes] == ',');
	}
	if ((*out & TW_STRESS_SLEDS) && (*out & TW_STRESS_ENTRIES))
		return false;
	return *out & (TW_STRESS_DECLARED | TW_STRESS_SLEDS | TW_STRESS_SLOTS | TW_STRESS_ENTRIES);
}

/* Returns an error message; NULL: none. */
static const char *read_option(int key, const char *value, struct tw_stress_options *o)
{
	uint64_t number = 0;

	switch (key) {
	case 's':
		if (!read_number(value, 0, 86400, &number))
			return "seconds are 0 to 86400";
		o->seconds = (double)number;
		return NULL;
	case 't':
		o->threads = read_number(value, 1, 256, &number) ? (uint32_t)number : 0;
		return number ? NULL : "threads are 1 to 256";
	case 'c':
		if (!read_number(value, 0, 16, &number))
			return "changers are 0 to 16";
		o->changers = (uint32_t)number;
		return NULL;
	case 'p':
		if (!tw_parse_duration(value, &number) || number > 10000000000u)
			return "a pause is 0 to 10s";
		o->pause_us = (uint32_t)(number / 1000);
		return NULL;
	case 'f':
		if (!read_number(value, 2, 100000, &number))
			return "functions are 2 to 100000";
		o->functions = (uint32_t)number;
		return NULL;
	case 'r': return read_number(value, 0, UINT64_MAX, &o->seed) ? NULL : "a seed is a number";
	case 'w':
		return read_what(value, &o->what)
			       ? NULL
			       : "--what is a list of declared, sleds or entries, slots (one of these at least), returns, threads, signals";
	default: return NULL;
	}
}

static int report(const struct tw_stress_options *options, const struct tw_stress_result *result, bool is_json)
{
	static struct tw_out out;

	if (is_json) {
		tw_out_init(&out, STDOUT_FILENO);
		put_json(options, result, &out);
		if (tw_out_finish(&out))
			return TW_EXIT_FAILURE;
	} else {
		put_text(options, result);
		if (fflush(stdout))
			return TW_EXIT_FAILURE;
	}
	return tw_stress_has_passed(result) ? TW_EXIT_OK : TW_EXIT_FAILURE;
}

int main(int argc, char **argv)
{
	struct tw_options options = {.command = &command, .argc = argc, .argv = argv};
	struct tw_stress_options stress = {.seconds = 10,
					   .threads = 2,
					   .changers = 1,
					   .functions = 256,
					   .pause_us = 1000,
					   .what = TW_STRESS_ALL,
					   .seed = (uint64_t)time(NULL),
					   .stop = &is_interrupted};
	struct sigaction end = {.sa_handler = interrupt, .sa_flags = SA_RESTART | SA_RESETHAND};
	static struct tw_stress_result result;
	const char *wrong = NULL;
	enum tw_stress_break broken = TW_BREAK_NOTHING;
	bool is_json = false, is_self_test = false;
	int key, error;

	while ((key = tw_options_next(&options)) > 0) {
		is_json |= key == 'j';
		is_self_test |= key == 'T';
		if (key == 'b' && (broken = tw_stress_find_break(options.value)) == TW_BREAKS && !wrong)
			wrong = "--break is one of no-wait, free-early, switch-first, one-by-one, forgotten-place, torn-sled, torn-slot, "
				"half-written, lost-record, stamp-order";
		if (!wrong)
			wrong = read_option(key, options.value, &stress);
	}
	if (key < 0)
		return tw_options_exit(key);
	if (wrong || options.index < argc)
		return tw_usage(&command, "%s", wrong ? wrong : "it takes options only");
	sigaction(SIGINT, &end, NULL);
	sigaction(SIGTERM, &end, NULL);
	if (is_self_test)
		return tw_stress_self_test(&stress, is_json);
	if (broken != TW_BREAK_NOTHING)
		return tw_stress_run_broken(&stress, broken, is_json);
	error = tw_stress_run(&stress, &result);
	if (error)
		return tw_fail("the test could not be made: %s", tw_strerror(error));
	return report(&stress, &result, is_json);
}
