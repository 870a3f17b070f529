/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stress_run.c - one run of `tracewheel stress`: are changes under running calls atomic?
 *
 *	callers		call everything: declared functions in pairs a0 b0 a1 b1 ..., functions with entry sleds, functions
 *			of the C library through slots; and now and then a recorded round		stress_call.c
 *	the switcher	counts and records all a, or all b: each change is one transaction that stops one half
 *			and starts the other							stress_change.c
 *	churners	create sessions, have them trace anything, destroy them				stress_change.c
 *
 * If a change is one moment, each pair (a, b) is counted once, except the few in which the change fell; if it were
 * two moments, all pairs between them would be counted twice or not at all. A stopped counter does not change after
 * the change has returned. Rounds go to a capture, and each shows one moment: the settings before it, or, if a switch
 * fell into it, the settings before the switch up to there and those after it from there on.
 */
#include "tools/stress/stress_inside.h"
#include "base/search.h"

#include <tracewheel/consumer.h>
#include <tracewheel/match.h>

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define CHANGERS_MAX 16u
#define IDLE_THREADS 2u

/* This program writes captures itself: without this reference the library would load libtracewheel-capture. */
__attribute__((used)) static __typeof__(tw_recorder_create) *const recorder = tw_recorder_create;

/* Declarations are permanent, so they are kept for the next run in this process. */
static struct tw_declared_function (*kept)[2];
static char (*kept_names)[2][24];
static uint32_t kept_pairs;

uint64_t tw_stress_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

void tw_stress_tell(struct tw_stress *s, const char *format, ...)
{
	struct tw_stress_result *result = s->result;
	va_list list;

	s->wrong += 1;
	pthread_mutex_lock(&s->lock);
	if (result->finding_count < TW_STRESS_FINDINGS_MAX) {
		va_start(list, format);
		vsnprintf(result->findings[result->finding_count++], TW_STRESS_FINDING_BYTES, format, list);
		va_end(list);
	}
	pthread_mutex_unlock(&s->lock);
}

int tw_stress_check(struct tw_stress *s, const char *call, int result)
{
	if (result < 0) {
		s->failed += 1;
		tw_stress_tell(s, "%s() failed: %s", call, tw_strerror(result));
	}
	return result;
}

/* ---- setting up ---- */

static int declare_all(struct tw_stress *s)
{
	static const char *const halves[] = {"stress_a", "stress_b"};
	int error = 0;

	if (kept_pairs < s->pairs) {
		kept = calloc(s->pairs, sizeof *kept);
		kept_names = calloc(s->pairs, sizeof *kept_names);
		kept_pairs = kept && kept_names ? s->pairs : 0;
	}
	s->functions = kept;
	s->names = kept_names;
	if (!kept_pairs)
		return TW_ENOMEM;
	s->pairs = kept_pairs;
	for (uint32_t i = 0; i < s->pairs && !error; i++) {
		for (int half = 0; half < 2 && !error; half++) {
			snprintf(s->names[i][half], sizeof s->names[i][half], "f%u", i);
			s->functions[i][half] =
				(struct tw_declared_function)TW_DECLARED_FUNCTION(halves[half], s->names[i][half], 0);
			error = tw_function_declare(&s->functions[i][half]);
		}
	}
	for (int half = 0; half < 2 && !error; half++)
		error = tw_function_declare(&tw_stress_numbered_declared[half]);
	return error ? error : tw_function_declare(&tw_stress_marker);
}

/* The program's object has the name of its file. */
static void name_program(struct tw_stress *s)
{
	char path[PATH_MAX];
	ssize_t bytes = readlink("/proc/self/exe", path, sizeof path - 1);

	path[bytes > 0 ? bytes : 0] = '\0';
	snprintf(s->program, sizeof s->program, "%.63s", strrchr(path, '/') ? strrchr(path, '/') + 1 : path);
}

static int compile(const char *text, struct tw_match_program **out)
{
	struct tw_match_error error;

	return tw_match_compile_text(text, strlen(text), NULL, out, &error);
}

static int compile_all(struct tw_stress *s)
{
	int error = compile("[{'_',[],[{return_trace}]}]", &s->returning);

	if (!error)
		error = compile("[{'_',[],[{exception_trace}]}]", &s->catching);
	return error ? error : compile("[{['$1'|'_'],[{'<','$1',0}],[]}]", &s->refusing);
}

/* From here on there is a thread that writes. */
static int open_capture(struct tw_stress *s)
{
	struct tw_tracer tracer = {.kind = TW_TRACER_CAPTURE, .ring_bytes = 1 << 20};
	const char *folder = getenv("TMPDIR");

	snprintf(s->directory, sizeof s->directory, "%s/tw-stress.XXXXXX", folder && *folder ? folder : "/tmp");
	if (!mkdtemp(s->directory)) {
		s->directory[0] = 0;
		return TW_EPERM;
	}
	snprintf(s->capture_path, sizeof s->capture_path, "%s/stress.tw", s->directory);
	tracer.capture_path = s->capture_path;
	return tw_session_create("rounds", &tracer, &s->capturing);
}

static int set(struct tw_session *session, const char *module, const char *function, enum tw_match match,
	       uint32_t flags)
{
	int result = tw_trace_function(session, module, function, TW_ARITY_ANY, match, flags);

	return result < 0 ? result : result ? 0 : TW_ENOENT;
}

static int count_both(struct tw_stress *s, const char *const modules[2], const char *const functions[2])
{
	int error = 0;

	for (int half = 0; half < 2 && !error; half++)
		error = set(s->counting, modules[half], functions[half], TW_MATCH_TRUE, TW_FUNCTION_CALL_COUNT);
	return error ? error : set(s->counting, modules[1], functions[1], TW_MATCH_PAUSE, TW_FUNCTION_CALL_COUNT);
}

/*
 * Sleds are prepared while there is one thread: later some of them cannot be, or only after other threads have left
 * them.
 */
static int prepare_sleds(struct tw_stress *s)
{
	int error = set(s->counting, s->program, "_", TW_MATCH_TRUE, TW_FUNCTION_CALL_COUNT);
	struct tw_stress_caller caller = {.stress = s};
	uint64_t count;

	if (error)
		return error;
	s->form->call_counted(&caller);
	for (unsigned i = 0; i < 2 * TW_STRESS_SLED_PAIRS; i++)
		if (tw_trace_call_count(s->counting, s->program, s->form->counted[i / 2][i % 2], TW_ARITY_ANY,
					&count) != 1 ||
		    count != 1)
			return TW_ENOTSUP;
	return set(s->counting, s->program, "_", TW_MATCH_FALSE, TW_FUNCTION_CALL_COUNT);
}

static int begin_sleds(struct tw_stress *s)
{
	const char *const modules[2] = {s->program, s->program};
	int error = 0;

	for (unsigned i = 0; i < TW_STRESS_SLED_PAIRS && !error; i++)
		error = count_both(s, modules, s->form->counted[i]);
	return error ? error : set(s->capturing, s->program, s->form->numbered[0], TW_MATCH_TRUE, TW_FUNCTION_LOCAL);
}

/*
 * Binds the slots of the recorded functions while there is one thread. The first calls of two rounds would otherwise be beside the
 * switches: ld.so, binding a slot for a call, overwrites a stub that was stored meanwhile, until the slot is examined again (got.c).
 */
static void bind_slots(struct tw_stress *s)
{
	struct tw_stress_caller caller = {.stress = s};

	for (int half = 0; half < 2; half++)
		tw_stress_call_numbered(&caller, TW_STRESS_AT_SLOT, half, 0);
}

/* Before there are callers, half a is set to be counted and recorded, as are marks. */
static int begin(struct tw_stress *s)
{
	static const char *const halves[] = {"stress_a", "stress_b"}, *const all[] = {"_", "_"};
	int error = set(s->capturing, "stress", tw_stress_marker.name, TW_MATCH_TRUE, TW_FUNCTION_LOCAL);

	if (!error && tw_stress_does(s, TW_STRESS_DECLARED))
		error = count_both(s, halves, all);
	if (!error && tw_stress_does(s, TW_STRESS_DECLARED))
		error = set(s->capturing, "stress", tw_stress_numbered_declared[0].name, TW_MATCH_TRUE,
			    TW_FUNCTION_LOCAL);
	if (!error && tw_stress_does(s, TW_STRESS_SLEDS))
		error = begin_sleds(s);
	if (!error && tw_stress_does(s, TW_STRESS_SLOTS))
		bind_slots(s);
	/* A module is looked up outside of transactions only. */
	if (!error && tw_stress_does(s, TW_STRESS_SLOTS))
		error = set(s->capturing, "libc", tw_stress_numbered_slots[0], TW_MATCH_TRUE, TW_FUNCTION_GLOBAL);
	return error;
}

/* ---- threads ---- */

struct threads {
	struct tw_stress *stress;
	struct tw_stress_caller *callers;
	uint32_t caller_count;
	pthread_t others[CHANGERS_MAX + IDLE_THREADS + 2];
	uint32_t other_count;
	int error;
};

static void start_other(struct threads *t, void *(*run)(void *))
{
	if (!t->error && pthread_create(&t->others[t->other_count], NULL, run, t->stress))
		t->error = TW_ENOMEM;
	t->other_count += !t->error;
}

static void start_all(struct threads *t)
{
	struct tw_stress *s = t->stress;
	uint64_t random = s->options->seed;

	t->callers = calloc(s->options->threads, sizeof *t->callers);
	t->error = t->callers ? 0 : TW_ENOMEM;
	while (!t->error && t->caller_count < s->options->threads) {
		struct tw_stress_caller *caller = &t->callers[t->caller_count];

		caller->stress = s;
		caller->random = tw_stress_draw(&random, UINT32_MAX);
		caller->is_recorded = true;
		if (pthread_create(&caller->thread, NULL, tw_stress_call, caller))
			t->error = TW_ENOMEM;
		else
			t->caller_count++;
	}
	start_other(t, tw_stress_switch);
	for (uint32_t i = 0; i < s->options->changers; i++)
		start_other(t, tw_stress_churn);
	for (uint32_t i = 0; i < IDLE_THREADS && tw_stress_does(s, TW_STRESS_THREADS); i++)
		start_other(t, tw_stress_idle);
	if (tw_stress_does(s, TW_STRESS_THREADS))
		start_other(t, tw_stress_come_and_go);
}

/* Waits until the time is over or a stop is requested; stops callers by signals meanwhile. */
static void wait_for_the_end(struct threads *t, uint64_t began)
{
	struct tw_stress *s = t->stress;
	uint64_t random = s->options->seed ^ 0x51;

	while (!t->error && !(s->options->stop && *s->options->stop)) {
		if (s->options->seconds > 0 && (double)(tw_stress_now_ns() - began) >= s->options->seconds * 1e9)
			break;
		usleep((unsigned)tw_stress_draw(&random, 2000));
		if (!tw_stress_does(s, TW_STRESS_SIGNALS))
			continue;
		pthread_kill(t->callers[tw_stress_draw(&random, t->caller_count)].thread, SIGUSR2);
		s->stalls += 1;
	}
}

static int run_threads(struct tw_stress *s)
{
	struct sigaction hold_up = {.sa_handler = tw_stress_hold_up, .sa_flags = SA_RESTART}, before;
	struct threads t = {.stress = s};
	uint64_t began = tw_stress_now_ns();

	sigaction(SIGUSR2, &hold_up, &before);
	start_all(&t);
	wait_for_the_end(&t, began);
	s->stop = true;
	for (uint32_t i = 0; i < t.caller_count; i++)
		pthread_join(t.callers[i].thread, NULL);
	s->result->seconds = (double)(tw_stress_now_ns() - began) / 1e9;
	for (uint32_t i = 0; i < t.other_count; i++)
		pthread_join(t.others[i], NULL);
	sigaction(SIGUSR2, &before, NULL);
	free(t.callers);
	return t.error;
}

/* ---- the end ---- */

static int compare_latencies(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return TW_ORDER(x, y);
}

static void sum_latencies(struct tw_stress *s)
{
	struct tw_stress_result *result = s->result;
	size_t count = result->switches < TW_STRESS_LATENCIES ? result->switches : TW_STRESS_LATENCIES;

	if (!count)
		return;
	qsort(s->latencies, count, sizeof *s->latencies, compare_latencies);
	result->latency_ns[0] = s->latencies[count / 2];
	result->latency_ns[1] = s->latencies[count * 90 / 100];
	result->latency_ns[2] = s->latencies[count * 99 / 100];
	result->latency_ns[3] = s->latencies[count - 1];
}

/* The waits of this run: those of the program less those that were before. */
static void sum_waits(struct tw_stress_result *result, const struct tw_progress_waits *before)
{
	static const unsigned percents[3] = {50, 90, 99};
	struct tw_progress_waits waits;
	uint64_t seen = 0;
	unsigned at = 0;

	if (tw_progress_waits(&waits))
		return;
	result->waits = waits.count - before->count;
	result->code_waits = waits.code_count - before->code_count;
	for (unsigned i = 0; i < TW_PROGRESS_BUCKETS; i++) {
		seen += waits.by_duration[i] - before->by_duration[i];
		while (at < 3 && seen * 100 >= result->waits * percents[at] && seen)
			result->wait_ns[at++] = tw_progress_bucket_ns(i);
	}
	result->wait_ns[3] = waits.longest_ns;
}

/* All pairs are called equally often, and each pair is counted once, except those that a switch fell into. */
static void sum_pairs(struct tw_stress *s)
{
	struct tw_stress_result *result = s->result;
	const uint32_t declared = tw_stress_does(s, TW_STRESS_DECLARED) ? s->pairs : 0;
	const uint32_t sleds = tw_stress_does(s, TW_STRESS_SLEDS) ? TW_STRESS_SLED_PAIRS : 0;
	const uint64_t each = declared + sleds ? result->pairs / (declared + sleds) : 0;

	for (uint32_t i = 0; i < s->pairs + TW_STRESS_SLED_PAIRS; i++) {
		bool is_sled = i >= s->pairs;
		uint64_t counted = s->counted[i];

		if (is_sled ? !sleds : !declared)
			continue;
		result->counted += counted;
		if (counted > each + result->tolerated || counted + result->tolerated < each)
			tw_stress_tell(s, "%llu calls of the pair %s, %s were counted, and %llu were made",
				       (unsigned long long)counted,
				       is_sled ? s->form->counted[i - s->pairs][0] : s->names[i][0],
				       is_sled ? s->form->counted[i - s->pairs][1] : s->names[i][1],
				       (unsigned long long)each);
	}
}

static void finish_counting(struct tw_stress *s)
{
	static const char *const halves[] = {"stress_a", "stress_b"};
	struct tw_stress_result *result = s->result;

	if (tw_stress_does(s, TW_STRESS_DECLARED))
		tw_stress_check(s, "tw_trace_function",
				set(s->counting, halves[s->half], "_", TW_MATCH_PAUSE, TW_FUNCTION_CALL_COUNT));
	for (unsigned i = 0; i < TW_STRESS_SLED_PAIRS && tw_stress_does(s, TW_STRESS_SLEDS); i++)
		tw_stress_check(s, "tw_trace_function",
				set(s->counting, s->program, s->form->counted[i][s->half], TW_MATCH_PAUSE,
				    TW_FUNCTION_CALL_COUNT));
	tw_stress_sum_half(s, s->half);
	result->pairs = s->pair_calls;
	for (unsigned place = 0; place < TW_STRESS_PLACES; place++)
		result->calls[place] = s->calls[place];
	result->numbered = s->numbered;
	result->changes = s->changes;
	result->threads = s->threads;
	result->stalls = s->stalls;
	/* Each switch falls into at most one pair of each caller; one more comes and goes. */
	result->tolerated = result->switches * (s->options->threads + tw_stress_does(s, TW_STRESS_THREADS));
	sum_latencies(s);
	sum_pairs(s);
}

static void remove_capture(const struct tw_stress *s)
{
	DIR *directory = opendir(s->capture_path);
	struct dirent *entry;

	while (directory && (entry = readdir(directory)))
		if (entry->d_name[0] != '.' || entry->d_type == DT_REG)
			unlinkat(dirfd(directory), entry->d_name, 0);
	if (directory)
		closedir(directory);
	rmdir(s->capture_path);
	rmdir(s->directory);
}

static void close_all(struct tw_stress *s)
{
	if (s->counting)
		tw_session_destroy(s->counting);
	if (s->capturing)
		tw_session_destroy(s->capturing);
	tw_session_put(s->counting);
	tw_session_put(s->capturing);
	/* Sessions that were dropped hold the programs. */
	tw_progress();
	tw_match_destroy(s->returning);
	tw_match_destroy(s->catching);
	tw_match_destroy(s->refusing);
}

int tw_stress_run(const struct tw_stress_options *options, struct tw_stress_result *result)
{
	struct tw_stress *s = calloc(1, sizeof *s);
	struct tw_progress_waits before = {0};
	int error;

	memset(result, 0, sizeof *result);
	if (!s)
		return TW_ENOMEM;
	s->options = options;
	s->form = options->what & TW_STRESS_ENTRIES ? &tw_stress_with_entries : &tw_stress_with_sleds;
	s->result = result;
	s->pairs = options->functions / 2;
	pthread_mutex_init(&s->lock, NULL);
	name_program(s);
	tw_progress_waits(&before);
	s->latencies = calloc(TW_STRESS_LATENCIES, sizeof *s->latencies);
	error = s->latencies ? declare_all(s) : TW_ENOMEM;
	s->counted = calloc((size_t)s->pairs + TW_STRESS_SLED_PAIRS, sizeof *s->counted);
	if (!error && !s->counted)
		error = TW_ENOMEM;
	if (!error)
		error = compile_all(s);
	if (!error)
		error = tw_session_create("counting", NULL, &s->counting);
	if (!error && tw_stress_does(s, TW_STRESS_ENTRIES))
		error = tw_stress_plant(s->form);
	if (!error && tw_stress_does(s, TW_STRESS_SLEDS))
		error = prepare_sleds(s);
	if (!error)
		error = open_capture(s);
	if (!error)
		error = begin(s);
	if (!error)
		error = run_threads(s);
	if (!error)
		finish_counting(s);
	sum_waits(result, &before);
	close_all(s);
	if (!error)
		error = tw_stress_read(s);
	result->failed = s->failed;
	result->wrong = s->wrong;
	if (s->directory[0])
		remove_capture(s);
	free(s->latencies);
	free(s->counted);
	free(s);
	return error;
}

static uint64_t deviation(const struct tw_stress_result *result)
{
	return result->counted > result->pairs ? result->counted - result->pairs : result->pairs - result->counted;
}

bool tw_stress_has_passed(const struct tw_stress_result *result)
{
	return result->switches && deviation(result) <= result->tolerated && !result->moved && !result->unaccounted &&
	       !result->disordered && !result->torn && !result->bad_ends && !result->wrong;
}
