/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stress.c - the command `tracewheel stress': are changes under running calls what they promise to be?
 *
 *	callers		call a0 b0 a1 b1 ... at full speed, and now and then the numbered function
 *	the switcher	counts calls of all a, or of all b: each change is one transaction that stops the one half
 *			and starts the other
 *	the churner	creates sessions, has them count everything, destroys them
 *
 * If a change is one moment, each pair (a, b) is counted once, but the few in which the change fell; were it
 * two moments, all pairs between them would be counted twice or not at all.  A counter that was stopped stands
 * still from the return of the change.  Numbered calls go to a capture: each is there, or told as lost.
 */
#include <tracewheel/tracewheel.h>
#include <tracewheel/consumer.h>

#include "tools/stress.h"
#include "tools/tool.h"

#include <dirent.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define LATENCIES_MAX (1u << 20)
/* A numbered call after so many passes over all pairs. */
#define CALLS_PER_NUMBER 4096

struct stress {
	const struct tw_stress_options *options;
	struct tw_stress_result *result;
	uint32_t pairs;
	char (*names)[2][24];
	struct tw_declared_function (*functions)[2]; /* [pair][half] */
	struct tw_session *counting;
	struct tw_session *capturing;
	char directory[64], capture_path[96];
	uint64_t *latencies;
	int half; /* that is counted when the switcher has ended */
	_Atomic bool stop;
	_Atomic uint64_t calls, pair_calls, numbered_calls, changes, failed;
	_Atomic int error;
};

/* Captures are written by this program itself: without this the library would look for libtracewheel-capture. */
__attribute__((used)) static __typeof__(tw_recorder_create) *const recorder = tw_recorder_create;

static struct tw_declared_function numbered_function = TW_DECLARED_FUNCTION("stress", "numbered", 1);

/* What was declared is the library's for ever, so it is kept for the next run in this process. */
static struct tw_declared_function (*kept)[2];
static char (*kept_names)[2][24];
static uint32_t kept_pairs;

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Keeps the first error. */
static int check(struct stress *s, int result)
{
	int none = 0;

	if (result < 0) {
		s->failed++;
		__atomic_compare_exchange_n((int *)&s->error, &none, result, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
	}
	return result;
}

/* ---- callers ---- */

static void *call_all(void *arg)
{
	struct stress *s = arg;
	uint64_t pairs = 0, numbered = 0, next = CALLS_PER_NUMBER;

	while (!s->stop) {
		for (uint32_t i = 0; i < s->pairs; i++) {
			tw_call0(&s->functions[i][0]);
			tw_call0(&s->functions[i][1]);
		}
		pairs += s->pairs;
		if (pairs * 2 >= next) {
			tw_call1(&numbered_function, ++numbered);
			next += CALLS_PER_NUMBER;
		}
	}
	s->pair_calls += pairs;
	s->numbered_calls += numbered;
	s->calls += pairs * 2 + numbered;
	return NULL;
}

/* ---- the switcher ---- */

static const char *const halves[] = {"stress_a", "stress_b"};

/* Counts the other half from here on.  Torn: in two moments instead of one. */
static void change_half(struct stress *s, int from, int to)
{
	if (!s->options->is_torn && check(s, tw_trace_begin()) < 0)
		return;
	check(s, tw_trace_function(s->counting, halves[from], "_", TW_ARITY_ANY, TW_MATCH_PAUSE, TW_FUNCTION_CALL_COUNT));
	check(s,
	      tw_trace_function(s->counting, halves[to], "_", TW_ARITY_ANY, TW_MATCH_RESTART, TW_FUNCTION_CALL_COUNT));
	if (!s->options->is_torn)
		check(s, tw_trace_commit());
}

/* The sum over a half whose counting has been stopped; it is final, which is looked at for one of them. */
static uint64_t sum_half(struct stress *s, int half)
{
	uint64_t sum = 0, count = 0, again = 0;

	for (uint32_t i = 0; i < s->pairs; i++) {
		if (check(s, tw_trace_call_count(s->counting, halves[half], s->names[i][half], 0, &count)) == 1)
			sum += count;
	}
	check(s, tw_trace_call_count(s->counting, halves[half], s->names[s->pairs - 1][half], 0, &again));
	s->result->moved += again != count;
	return sum;
}

static void *switch_halves(void *arg)
{
	struct stress *s = arg;
	struct tw_stress_result *result = s->result;
	int half = 0;

	while (!s->stop) {
		uint64_t before = now_ns();

		change_half(s, half, 1 - half);
		if (result->switches < LATENCIES_MAX)
			s->latencies[result->switches] = now_ns() - before;
		result->switches++;
		result->counted += sum_half(s, half);
		half = 1 - half;
	}
	s->half = half;
	return NULL;
}

/* ---- the churner ---- */

static void *churn(void *arg)
{
	struct stress *s = arg;
	uint64_t random = s->options->seed;

	while (!s->stop) {
		struct tw_session *session;
		tw_session_weak weak;

		random = random * 6364136223846793005u + 1442695040888963407u;
		if (check(s, tw_session_create("churn", NULL, &session)) < 0)
			break;
		weak = tw_session_weak_of(session);
		check(s, tw_trace_function(session, random >> 40 & 1 ? "_" : halves[random >> 41 & 1], "_", TW_ARITY_ANY,
					   TW_MATCH_TRUE, TW_FUNCTION_CALL_COUNT));
		if (random >> 42 & 1)
			check(s, tw_trace_function(session, halves[random >> 43 & 1], "_", TW_ARITY_ANY, TW_MATCH_FALSE,
						   TW_FUNCTION_CALL_COUNT));
		/* Destroyed by its handle, by its weak id, or by nobody: dropped. */
		if (random >> 44 & 1)
			check(s, tw_session_destroy(session));
		else if (random >> 45 & 1)
			check(s, tw_session_destroy_weak(weak));
		tw_session_put(session);
		s->changes++;
		usleep((unsigned)(random >> 46 & 1023));
	}
	return NULL;
}

/* ---- setting up ---- */

static int declare_all(struct stress *s)
{
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
			s->functions[i][half] = (struct tw_declared_function)TW_DECLARED_FUNCTION(halves[half],
												 s->names[i][half], 0);
			error = tw_function_declare(&s->functions[i][half]);
		}
	}
	return error;
}

static int open_sessions(struct stress *s)
{
	struct tw_tracer tracer = {.kind = TW_TRACER_CAPTURE, .ring_bytes = 1 << 20};
	int error = tw_function_declare(&numbered_function);

	snprintf(s->directory, sizeof s->directory, "%.40s/tw-stress.XXXXXX", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
	if (error)
		return error;
	if (!mkdtemp(s->directory))
		return TW_EPERM;
	snprintf(s->capture_path, sizeof s->capture_path, "%s/stress.tw", s->directory);
	tracer.capture_path = s->capture_path;
	error = tw_session_create("numbered", &tracer, &s->capturing);
	if (!error)
		error = tw_session_create("counting", NULL, &s->counting);
	return error;
}

/* Before there are callers: the numbered function is traced in all threads to come, half a is counted. */
static int begin(struct stress *s)
{
	int result = tw_trace_process(s->capturing, TW_PID_NEW, true, TW_FLAG_CALL);

	if (result >= 0)
		result = tw_trace_function(s->capturing, "stress", "_", TW_ARITY_ANY, TW_MATCH_TRUE, TW_FUNCTION_LOCAL);
	if (result >= 0)
		result = tw_trace_function(s->counting, halves[0], "_", TW_ARITY_ANY, TW_MATCH_TRUE,
					   TW_FUNCTION_CALL_COUNT);
	if (result >= 0)
		result = tw_trace_function(s->counting, halves[1], "_", TW_ARITY_ANY, TW_MATCH_TRUE,
					   TW_FUNCTION_CALL_COUNT);
	if (result >= 0)
		result = tw_trace_function(s->counting, halves[1], "_", TW_ARITY_ANY, TW_MATCH_PAUSE,
					   TW_FUNCTION_CALL_COUNT);
	return result < 0 ? result : 0;
}

static int run_threads(struct stress *s)
{
	uint32_t count = s->options->threads, started = 0;
	pthread_t *callers = calloc(count, sizeof *callers), others[2];
	uint64_t began = now_ns();
	int error = callers ? 0 : TW_ENOMEM;

	while (!error && started < count && pthread_create(&callers[started], NULL, call_all, s) == 0)
		started++;
	if (!error && started < count)
		error = TW_ENOMEM;
	if (!error && pthread_create(&others[0], NULL, switch_halves, s) != 0)
		error = TW_ENOMEM;
	if (!error && pthread_create(&others[1], NULL, churn, s) != 0) {
		s->stop = true;
		pthread_join(others[0], NULL);
		error = TW_ENOMEM;
	}
	while (!error && (double)(now_ns() - began) < s->options->seconds * 1e9)
		usleep(1000);
	s->stop = true;
	for (uint32_t i = 0; i < started; i++)
		pthread_join(callers[i], NULL);
	s->result->seconds = (double)(now_ns() - began) / 1e9;
	for (int i = 0; i < 2 && !error; i++)
		pthread_join(others[i], NULL);
	free(callers);
	return error;
}

/* ---- the end ---- */

static int compare_latencies(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static void finish_counting(struct stress *s)
{
	struct tw_stress_result *result = s->result;
	size_t count = result->switches < LATENCIES_MAX ? result->switches : LATENCIES_MAX;

	check(s, tw_trace_function(s->counting, halves[s->half], "_", TW_ARITY_ANY, TW_MATCH_PAUSE,
				   TW_FUNCTION_CALL_COUNT));
	result->counted += sum_half(s, s->half);
	result->pairs = s->pair_calls;
	result->calls = s->calls;
	result->changes = s->changes;
	/* Each switch falls into one pair of each caller at the most. */
	result->tolerated = result->switches * s->options->threads;
	if (!count)
		return;
	qsort(s->latencies, count, sizeof *s->latencies, compare_latencies);
	result->latency_ns[0] = s->latencies[count / 2];
	result->latency_ns[1] = s->latencies[count * 90 / 100];
	result->latency_ns[2] = s->latencies[count * 99 / 100];
	result->latency_ns[3] = s->latencies[count - 1];
}

/* Every numbered call is in the capture, once and in its thread's order, or told as lost. */
static int read_numbers(struct stress *s)
{
	struct tw_capture *capture;
	struct tw_capture_events *events = NULL;
	struct tw_capture_info info;
	const struct tw_capture_event *batch;
	uint64_t *last = NULL;
	int64_t count = 0;
	int error = tw_capture_open(s->capture_path, NULL, &capture);

	if (error)
		return error;
	tw_capture_info(capture, &info);
	last = calloc(info.streams + 1, sizeof *last);
	error = last ? tw_capture_events_create(capture, NULL, &events) : TW_ENOMEM;
	while (!error && (count = tw_capture_events_next(events, &batch)) > 0) {
		for (int64_t i = 0; i < count; i++) {
			if (batch[i].kind == TW_CAPTURE_LOSS)
				for (int cause = 0; cause < TW_LOST_CAUSES; cause++)
					s->result->lost += tw_capture_event_loss(&batch[i])->lost[cause];
			if (batch[i].kind != TW_CAPTURE_CALL || batch[i].payload_words != 1)
				continue;
			s->result->stored++;
			s->result->disordered += batch[i].payload[0] <= last[batch[i].stream];
			last[batch[i].stream] = batch[i].payload[0];
		}
	}
	if (events)
		tw_capture_events_destroy(events);
	free(last);
	tw_capture_close(capture);
	s->result->numbered = s->numbered_calls;
	return error ? error : count < 0 ? (int)count : 0;
}

static void remove_capture(const struct stress *s)
{
	char path[512];
	DIR *directory = opendir(s->capture_path);
	struct dirent *entry;

	while (directory && (entry = readdir(directory))) {
		snprintf(path, sizeof path, "%s/%s", s->capture_path, entry->d_name);
		if (entry->d_name[0] != '.' || entry->d_type == DT_REG)
			unlink(path);
	}
	if (directory)
		closedir(directory);
	rmdir(s->capture_path);
	rmdir(s->directory);
}

int tw_stress_run(const struct tw_stress_options *options, struct tw_stress_result *result)
{
	struct stress *s = calloc(1, sizeof *s);
	int error;

	memset(result, 0, sizeof *result);
	if (!s)
		return TW_ENOMEM;
	s->options = options;
	s->result = result;
	s->pairs = options->functions / 2;
	s->latencies = calloc(LATENCIES_MAX, sizeof *s->latencies);
	error = s->latencies ? declare_all(s) : TW_ENOMEM;
	if (!error)
		error = open_sessions(s);
	if (!error)
		error = begin(s);
	if (!error)
		error = run_threads(s);
	if (!error)
		finish_counting(s);
	if (s->counting)
		tw_session_destroy(s->counting);
	if (s->capturing)
		tw_session_destroy(s->capturing);
	tw_session_put(s->counting);
	tw_session_put(s->capturing);
	if (!error)
		error = read_numbers(s);
	result->failed = s->failed;
	result->error = s->error;
	if (s->directory[0])
		remove_capture(s);
	free(s->latencies);
	free(s);
	return error;
}

static uint64_t deviation(const struct tw_stress_result *result)
{
	return result->counted > result->pairs ? result->counted - result->pairs : result->pairs - result->counted;
}

bool tw_stress_has_passed(const struct tw_stress_result *result)
{
	return result->switches && result->pairs && deviation(result) <= result->tolerated && !result->moved &&
	       result->stored + result->lost == result->numbered && !result->disordered && !result->failed;
}

/* ---- the command ---- */

static const struct tw_option known[] = {
	{'s', "seconds", "N", "how long (10)"},
	{'t', "threads", "N", "threads that call, beside two that change (2)"},
	{'f', "functions", "N", "declared functions that they call (256)"},
	{'r', "seed", "N", "what is drawn at random begins here (the time)"},
	{'j', "json", NULL, "print the result as JSON"},
	{0, NULL, NULL, NULL},
};

static const struct tw_command command = {
	.name = "stress",
	.arguments = "[OPTION]...",
	.summary = "Proves changes under load on this machine: threads call declared functions at full speed\n"
		   "while others switch what is counted, all functions at a time, create sessions and destroy\n"
		   "them. Exit code 0: every change was one moment for all threads, counters add up, and no\n"
		   "event was lost that is not counted.",
	.options = known,
	.examples = "  tracewheel stress --seconds 60 --threads 4\n",
};

static void put_text(const struct tw_stress_result *r)
{
	char a[TW_FIGURE_BYTES], b[TW_FIGURE_BYTES], c[TW_FIGURE_BYTES], d[TW_FIGURE_BYTES];

	printf("calls        %s/s\n", tw_figure_short(a, (double)r->calls / r->seconds));
	printf("switches     %s/s, and %s/s of other sessions\n", tw_figure_short(a, (double)r->switches / r->seconds),
	       tw_figure_short(b, (double)r->changes / r->seconds));
	printf("a switch     %s median, %s 90 %%, %s 99 %%, %s longest\n",
	       tw_figure_seconds(a, (double)r->latency_ns[0] / 1e9), tw_figure_seconds(b, (double)r->latency_ns[1] / 1e9),
	       tw_figure_seconds(c, (double)r->latency_ns[2] / 1e9), tw_figure_seconds(d, (double)r->latency_ns[3] / 1e9));
	printf("one moment   %s of %s pairs of calls were not counted once; %s can be\n", tw_figure_count(a, deviation(r)),
	       tw_figure_count(b, r->pairs), tw_figure_count(c, r->tolerated));
	printf("stood still  %s counters moved after they were stopped\n", tw_figure_count(a, r->moved));
	printf("recorded     %s of %s numbered calls, %s told as lost, %s out of order\n", tw_figure_count(a, r->stored),
	       tw_figure_count(b, r->numbered), tw_figure_count(c, r->lost), tw_figure_count(d, r->disordered));
	if (r->failed)
		printf("failed       %s calls; the first: %s\n", tw_figure_count(a, r->failed), tw_strerror(r->error));
	printf("%s\n", tw_stress_has_passed(r) ? "PASS" : "FAIL");
}

static void put_json(const struct tw_stress_options *options, const struct tw_stress_result *r, struct tw_out *out)
{
	struct tw_json json = {.out = out};

	tw_json_open(&json, NULL, '{');
	tw_json_bool(&json, "passed", tw_stress_has_passed(r));
	tw_json_double(&json, "seconds", r->seconds);
	tw_json_u64(&json, "seed", options->seed);
	tw_json_u64(&json, "threads", options->threads);
	tw_json_u64(&json, "functions", options->functions);
	tw_json_u64(&json, "calls", r->calls);
	tw_json_u64(&json, "switches", r->switches);
	tw_json_u64(&json, "changes", r->changes);
	tw_json_double(&json, "switch_median", (double)r->latency_ns[0] / 1e9);
	tw_json_double(&json, "switch_90", (double)r->latency_ns[1] / 1e9);
	tw_json_double(&json, "switch_99", (double)r->latency_ns[2] / 1e9);
	tw_json_double(&json, "switch_longest", (double)r->latency_ns[3] / 1e9);
	tw_json_u64(&json, "pairs", r->pairs);
	tw_json_u64(&json, "counted", r->counted);
	tw_json_u64(&json, "tolerated", r->tolerated);
	tw_json_u64(&json, "moved", r->moved);
	tw_json_u64(&json, "numbered", r->numbered);
	tw_json_u64(&json, "stored", r->stored);
	tw_json_u64(&json, "lost", r->lost);
	tw_json_u64(&json, "disordered", r->disordered);
	tw_json_u64(&json, "failed", r->failed);
	tw_json_close(&json, '}');
	tw_out_text(out, "\n");
}

static bool is_number(const char *text, uint64_t least, uint64_t most, uint64_t *out)
{
	return tw_parse_count(text, out) && *out >= least && *out <= most;
}

int tw_tool_stress(int argc, char **argv)
{
	static struct tw_out out;
	struct tw_options options = {.command = &command, .argc = argc, .argv = argv};
	struct tw_stress_options stress = {.threads = 2, .functions = 256, .seed = now_ns()};
	struct tw_stress_result result;
	uint64_t seconds = 10, threads = 2, functions = 256;
	bool is_json = false, is_good = true;
	int key, error;

	while ((key = tw_options_next(&options)) > 0) {
		is_json |= key == 'j';
		if (key == 's')
			is_good &= is_number(options.value, 1, 86400, &seconds);
		else if (key == 't')
			is_good &= is_number(options.value, 1, 256, &threads);
		else if (key == 'f')
			is_good &= is_number(options.value, 2, 100000, &functions);
		else if (key == 'r')
			is_good &= is_number(options.value, 0, UINT64_MAX, &stress.seed);
	}
	if (key < 0)
		return tw_options_exit(key);
	if (!is_good || options.index < argc)
		return tw_usage(&command, "seconds are 1 to 86400, threads 1 to 256, functions 2 to 100000");
	stress.seconds = (double)seconds;
	stress.threads = (uint32_t)threads;
	stress.functions = (uint32_t)functions;
	error = tw_stress_run(&stress, &result);
	if (error)
		return tw_fail("the test could not be made: %s\n", tw_strerror(error));
	if (is_json) {
		tw_out_init(&out, STDOUT_FILENO);
		put_json(&stress, &result, &out);
		error = tw_out_finish(&out);
	} else {
		put_text(&result);
		error = fflush(stdout) == 0 ? TW_EXIT_OK : TW_EXIT_FAILURE;
	}
	return error ? error : tw_stress_has_passed(&result) ? TW_EXIT_OK : TW_EXIT_FAILURE;
}
