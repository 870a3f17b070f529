/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stress_proof.c - `tracewheel stress --break` and `--self-test`: would the verdict change if a step were wrong?
 *
 * A broken run may crash, write half, or never end: so each is a process of its own, which reports through a pipe
 * what it noticed. A crash, and a run that does not end in time, count as noticed too.
 */
#include "tools/stress/stress_break.h"
#include "tools/tool.h"

#include <tracewheel/consumer.h>
#include <tracewheel/error.h>

#include <errno.h>
#include <ftw.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* The self-test: the most runs for each mistake, and the length of each. */
#define RUNS	    12u
#define RUN_SECONDS 0.5
/* A run that takes this much longer than it should hangs. */
#define HANG_SECONDS 30u

const struct tw_stress_break_kind tw_stress_breaks[TW_BREAKS] = {
	[TW_BREAK_NOTHING] = {"nothing", "every step is as it should be"},
	[TW_BREAK_NO_WAIT] = {"no-wait", "a change does not wait for thread progress"},
	[TW_BREAK_FREE_EARLY] = {"free-early",
				 "parts that a change replaces are freed before the wait for thread progress"},
	[TW_BREAK_SWITCH_FIRST] = {"switch-first", "the switch precedes the installation of new places"},
	[TW_BREAK_ONE_BY_ONE] = {"one-by-one", "a transaction is several changes"},
	[TW_BREAK_FORGOTTEN_PLACE] = {"forgotten-place", "one place in sixteen is not installed"},
	[TW_BREAK_TORN_SLED] = {"torn-sled", "a sled becomes a call in two stores"},
	[TW_BREAK_TORN_SLOT] = {"torn-slot", "a slot is written in two halves"},
	[TW_BREAK_HALF_WRITTEN] = {"half-written", "a record is published before its words are written"},
	[TW_BREAK_LOST_RECORD] = {"lost-record", "a record is passed over and not counted"},
	[TW_BREAK_STAMP_ORDER] = {"stamp-order", "two records have each other's time"},
};

enum tw_stress_break tw_stress_find_break(const char *name)
{
	int kind = 0;

	while (kind < TW_BREAKS && strcmp(tw_stress_breaks[kind].name, name) != 0)
		kind++;
	return (enum tw_stress_break)kind;
}

/* ---- one run in a process of its own ---- */

struct outcome {
	bool is_noticed, is_impossible;
	unsigned runs;
	double seconds;
	char by[TW_STRESS_FINDING_BYTES]; /* the error that was noticed; or why no run was possible */
};

static char folder[PATH_MAX];

/* Completing the capture of a run that crashed removes its rings from /dev/shm. */
static int recover_one(const char *path, const struct stat *status, int type, struct FTW *at)
{
	if (type == FTW_D && strcmp(path + at->base, "stress.tw") == 0)
		tw_recover(path, NULL);
	return 0;
}

static int remove_one(const char *path, const struct stat *status, int type, struct FTW *at)
{
	return remove(path);
}

static void remove_folder(void)
{
	nftw(folder, recover_one, 16, FTW_PHYS);
	nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* Makes a folder for captures of the runs, which are removed even if the run crashed. */
static bool make_folder(void)
{
	const char *parent = getenv("TMPDIR");

	snprintf(folder, sizeof folder, "%s/tw-stress.XXXXXX", parent && *parent ? parent : "/tmp");
	return mkdtemp(folder) && !setenv("TMPDIR", folder, 1);
}

static double now(void)
{
	struct timespec at;

	clock_gettime(CLOCK_MONOTONIC, &at);
	return (double)at.tv_sec + (double)at.tv_nsec / 1e9;
}

/* The reason why a run failed if it recorded no sentence. */
static const char *by_counts(const struct tw_stress_result *r)
{
	return r->moved		? "counters moved after they were stopped"
	       : r->torn	? "rounds show a set that was active at no moment"
	       : r->unaccounted ? "events are neither recorded nor reported as lost"
	       : r->disordered	? "rounds come in the wrong order"
	       : r->bad_ends	? "ends of calls are wrong"
				: "calls were not counted once each";
}

static void run_child(const struct tw_stress_options *options, enum tw_stress_break kind, int out)
{
	static struct tw_stress_result result;
	struct tw_stress_options own = *options;
	const struct rlimit none = {0, 0};
	const char *by = "";
	int error;

	/* A run that is broken may call anything, puts() too: nothing of it stands in the answer. */
	dup2(STDERR_FILENO, STDOUT_FILENO);
	setrlimit(RLIMIT_CORE, &none);
	alarm((unsigned)own.seconds + HANG_SECONDS);
	own.is_torn = kind == TW_BREAK_ONE_BY_ONE;
	tw_stress_break(kind);
	error = tw_stress_run(&own, &result);
	if (error)
		by = tw_strerror(error);
	else if (!tw_stress_has_passed(&result))
		by = result.finding_count ? result.findings[0] : by_counts(&result);
	if (write(out, by, strlen(by)) < 0)
		_exit(2);
	_exit(error ? 2 : !tw_stress_has_passed(&result));
}

/* Reads everything and returns it as text. */
static void read_text(int in, char *text, size_t capacity)
{
	size_t used = 0;
	ssize_t got;

	while ((got = read(in, text + used, capacity - 1 - used)) > 0 || (got < 0 && errno == EINTR))
		used += got > 0 ? (size_t)got : 0;
	text[used] = '\0';
}

static void run_once(const struct tw_stress_options *options, enum tw_stress_break kind, struct outcome *outcome)
{
	char by[TW_STRESS_FINDING_BYTES] = "";
	int ends[2], status = -1;
	pid_t child;

	outcome->runs++;
	outcome->is_impossible = true;
	snprintf(outcome->by, sizeof outcome->by, "no process could be started");
	fflush(stdout);
	if (pipe(ends))
		return;
	child = fork();
	if (child == 0) {
		close(ends[0]);
		run_child(options, kind, ends[1]);
	}
	close(ends[1]);
	if (child > 0)
		read_text(ends[0], by, sizeof by);
	close(ends[0]);
	while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	if (child < 0)
		return;
	outcome->is_impossible = WIFEXITED(status) && WEXITSTATUS(status) == 2;
	outcome->is_noticed = status != 0 && !outcome->is_impossible;
	if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM)
		snprintf(outcome->by, sizeof outcome->by, "the run did not end");
	else if (WIFSIGNALED(status))
		snprintf(outcome->by, sizeof outcome->by, "the run died: %s", strsignal(WTERMSIG(status)));
	else
		snprintf(outcome->by, sizeof outcome->by, "%s", by);
}

/* Runs until the mistake is noticed, but at most this often; the options give the length of each run. */
static struct outcome run_until_noticed(const struct tw_stress_options *options, enum tw_stress_break kind,
					unsigned runs)
{
	struct tw_stress_options own = *options;
	struct outcome outcome = {.is_noticed = false};
	double began = now();

	while (outcome.runs < runs && !outcome.is_noticed && !outcome.is_impossible &&
	       !(options->stop && *options->stop)) {
		run_once(&own, kind, &outcome);
		own.seed++;
	}
	outcome.seconds = now() - began;
	return outcome;
}

/* ---- the two options ---- */

static void put_json(struct tw_json *json, enum tw_stress_break kind, const struct outcome *outcome)
{
	tw_json_open(json, NULL, '{');
	tw_json_string(json, "broken", tw_stress_breaks[kind].name);
	tw_json_bool(json, "noticed", outcome->is_noticed);
	tw_json_u64(json, "runs", outcome->runs);
	tw_json_double(json, "seconds", outcome->seconds);
	tw_json_string(json, "by", outcome->by);
	tw_json_close(json, '}');
}

static struct tw_out out;

int tw_stress_run_broken(const struct tw_stress_options *options, enum tw_stress_break kind, bool is_json)
{
	struct tw_stress_options own = *options;
	struct outcome outcome;

	if (!make_folder())
		return tw_fail("no folder for captures could be made in TMPDIR: %s", strerror(errno));
	/* Runs of a second: a mistake that shows at the start of a run gets many starts. */
	own.seconds = options->seconds > 0 && options->seconds < 1 ? options->seconds : 1;
	outcome = run_until_noticed(&own, kind, options->seconds > 0 ? (unsigned)options->seconds : UINT_MAX);
	remove_folder();
	if (outcome.is_impossible)
		return tw_fail("the test could not be made: %s", outcome.by);
	if (is_json) {
		struct tw_json json = {.out = &out};

		tw_out_init(&out, STDOUT_FILENO);
		put_json(&json, kind, &outcome);
		tw_out_text(&out, "\n");
		if (tw_out_finish(&out))
			return TW_EXIT_FAILURE;
	} else {
		printf("broken       %s: %s\n", tw_stress_breaks[kind].name, tw_stress_breaks[kind].what);
		printf("seed         %llu, %u runs\n", (unsigned long long)options->seed, outcome.runs);
		if (outcome.is_noticed)
			printf("noticed      %s\n", outcome.by);
		printf("%s\n", outcome.is_noticed ? "FAIL" : "PASS");
		if (fflush(stdout))
			return TW_EXIT_FAILURE;
	}
	return outcome.is_noticed ? TW_EXIT_FAILURE : TW_EXIT_OK;
}

int tw_stress_self_test(const struct tw_stress_options *options, bool is_json)
{
	struct tw_stress_options own = *options;
	struct outcome outcomes[TW_BREAKS];
	struct tw_json json = {.out = &out};
	bool is_right = true;

	if (!make_folder())
		return tw_fail("no folder for captures could be made in TMPDIR: %s", strerror(errno));
	own.seconds = RUN_SECONDS;
	if (!is_json)
		printf("%-16s %-12s  %s\n", "broken", "noticed", "by");
	for (int kind = 0; kind < TW_BREAKS && !(options->stop && *options->stop); kind++) {
		struct outcome *outcome = &outcomes[kind];
		char when[32] = "no";

		*outcome = run_until_noticed(&own, (enum tw_stress_break)kind, kind ? RUNS : 2);
		is_right &= outcome->is_noticed == (kind != TW_BREAK_NOTHING) && !outcome->is_impossible;
		if (outcome->is_noticed)
			snprintf(when, sizeof when, "in run %u", outcome->runs);
		if (!is_json)
			printf("%-16s %-12s  %s\n", tw_stress_breaks[kind].name, when,
			       outcome->is_noticed || outcome->is_impossible ? outcome->by
									     : tw_stress_breaks[kind].what);
	}
	remove_folder();
	if (options->stop && *options->stop)
		return tw_fail("interrupted");
	if (is_json) {
		tw_out_init(&out, STDOUT_FILENO);
		tw_json_open(&json, NULL, '{');
		tw_json_bool(&json, "passed", is_right);
		tw_json_u64(&json, "seed", options->seed);
		tw_json_open(&json, "kinds", '[');
		for (int kind = 0; kind < TW_BREAKS; kind++)
			put_json(&json, (enum tw_stress_break)kind, &outcomes[kind]);
		tw_json_close(&json, ']');
		tw_json_close(&json, '}');
		tw_out_text(&out, "\n");
		if (tw_out_finish(&out))
			return TW_EXIT_FAILURE;
	} else {
		printf("%s\n", is_right ? "PASS" : "FAIL");
		if (fflush(stdout))
			return TW_EXIT_FAILURE;
	}
	return is_right ? TW_EXIT_OK : TW_EXIT_FAILURE;
}
