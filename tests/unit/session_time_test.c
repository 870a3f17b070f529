/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal	Stamps of events are the program's own time: an event between two readings of tw_monotonic_time_ns() has a stamp
 *	between them, except for the error of converting ticks, which is below two microseconds; the integers of strict
 *	stamps lie strictly between two of the program's, and CPU time between two readings of that clock.
 * Method	Bracketed events for half a second, to a capture; the reader's stamps are compared.  For CPU time also
 *	records of every code path that makes one, in rings.
 */
#include "session_bed.h"
#include "tracewheel/capture.h"
#include "tracewheel/consumer.h"
#include "tests/common/clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static struct tw_declared_function two_words = TW_DECLARED_FUNCTION("clock", "two_words", 2),
				   no_words = TW_DECLARED_FUNCTION("clock", "no_words", 0);

static void trace(struct tw_session *session, const char *function, uint32_t flags)
{
	assert_true(tw_trace_function(session, "clock", function, TW_ARITY_ANY, TW_MATCH_TRUE, flags) > 0);
}

#define BRACKETS 2000
#define ERROR_NS 2000

struct bracket {
	int64_t before_ns, after_ns, before, after;
};
static struct bracket brackets[BRACKETS];

static void make_events(struct tw_recorder *recorder)
{
	const struct timespec pause = {0, 200000};
	struct tw_process *self = tw_process_current();

	for (int i = 0; i < BRACKETS; i++) {
		struct bracket *b = &brackets[i];

		b->before = tw_unique_integer_monotonic();
		b->before_ns = tw_monotonic_time_ns();
		tw_process_send(self, tw_term_integer(NULL, i), tw_term_nil());
		b->after_ns = tw_monotonic_time_ns();
		b->after = tw_unique_integer_monotonic();
		/* As the recorder's own process does meanwhile. */
		tw_recorder_poll(recorder, 0);
		nanosleep(&pause, NULL);
	}
}

static int compare(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return x < y ? -1 : x > y;
}

/* A session that records to a capture. */
struct recording {
	char path[32], file[64];
	struct tw_recorder *recorder;
	struct tw_rs rs;
	uint32_t image;
	struct tw_session *session;
	struct tw_capture *capture;
	struct tw_capture_events *events;
};

static void begin(struct recording *r)
{
	struct tw_recorder_options options = {.path = r->file, .ring_bytes = 1 << 20};

	strcpy(r->path, "/tmp/tw-time.XXXXXX");
	assert_non_null(mkdtemp(r->path));
	snprintf(r->file, sizeof r->file, "%s/time.tw", r->path);
	assert_int_equal(tw_recorder_create(&options, &r->recorder), 0);
	assert_int_equal(tw_rs_attach(&r->rs, tw_recorder_ring_set_path(r->recorder)), 0);
	assert_int_equal(tw_rs_image_claim(&r->rs, &r->image), 0);
	tw_recorder_poll(r->recorder, 0);
	assert_int_equal(tw_session_make("time", &r->rs, &r->session), 0);
}

/* Ends the session, and opens what it recorded. */
static void finish(struct recording *r)
{
	struct tw_recorder_stats stats;

	assert_int_equal(tw_session_destroy(r->session), 1);
	tw_session_put(r->session);
	tw_rs_image_end(&r->rs, r->image);
	assert_int_equal(tw_recorder_finish(r->recorder, &stats), 0);
	tw_rs_detach(&r->rs);
	assert_int_equal(tw_capture_open(r->file, NULL, &r->capture), 0);
	assert_int_equal(tw_capture_events_create(r->capture, NULL, &r->events), 0);
}

static void remove_recording(struct recording *r)
{
	char command[64];

	tw_capture_events_destroy(r->events);
	tw_capture_close(r->capture);
	snprintf(command, sizeof command, "rm -rf '%s'", r->path);
	assert_int_equal(system(command), 0);
}

static void stamps_lie_between_the_programs_own(void **state)
{
	static int64_t outside[BRACKETS];
	const struct tw_capture_event *batch;
	struct recording r;
	int64_t got;
	int count = 0;

	begin(&r);
	assert_int_equal(tw_trace_process(r.session, tw_process_self(), true,
					  TW_FLAG_SEND | TW_FLAG_STRICT_MONOTONIC_TIMESTAMP),
			 1);
	make_events(r.recorder);
	finish(&r);
	while ((got = tw_capture_events_next(r.events, &batch)) > 0) {
		for (int64_t i = 0; i < got; i++, count++) {
			const struct bracket *b = &brackets[count];
			int64_t ns = (int64_t)batch[i].time_ns, early = b->before_ns - ns, late = ns - b->after_ns;

			assert_true(count < BRACKETS);
			assert_int_equal(batch[i].kind, TW_CAPTURE_SEND);
			assert_in_range(batch[i].payload[0], b->before + 1, b->after - 1);
			assert_false(batch[i].has_cpu_time);
			outside[count] = early > late ? early : late;
		}
	}
	assert_int_equal(count, BRACKETS);
	qsort(outside, BRACKETS, sizeof *outside, compare);
	print_message("outside of the bracket by at most %d ns (negative: inside); median %d, 99 %% %d\n",
		      (int)outside[BRACKETS - 1], (int)outside[BRACKETS / 2], (int)outside[BRACKETS * 99 / 100]);
	assert_true(outside[BRACKETS - 1] < ERROR_NS);
	remove_recording(&r);
}

/* ---- CPU time ---- */

static int count_cpu_calls(void *context, const struct tw_capture_batch *batch)
{
	uint64_t *calls = context;

	for (const struct tw_capture_record *r = batch->first; r < batch->end; r = tw_capture_record_next(r))
		*calls += tw_capture_record_kind(r) == TW_CAPTURE_CALL && tw_capture_record_has_cpu_time(r);
	return 0;
}

#define CPU_EVENTS 300

/* Thirds: calls of two words, calls of none, messages.  All other data of an event is unchanged. */
static void captures_hold_cpu_time(void **state)
{
	static int64_t before[CPU_EVENTS], after[CPU_EVENTS];
	struct tw_process *self = tw_process_current();
	const struct tw_capture_event *batch;
	struct recording r;
	uint64_t calls = 0;
	int64_t got;
	int count = 0;

	begin(&r);
	trace(r.session, "_", TW_FUNCTION_LOCAL);
	assert_int_equal(tw_trace_process(r.session, tw_process_self(), true,
					  TW_FLAG_CALL | TW_FLAG_SEND | TW_FLAG_TIMESTAMP | TW_FLAG_SCHEDULER_ID),
			 1);
	assert_int_equal(tw_trace_process(r.session, TW_PID_ALL, true, TW_FLAG_CPU_TIMESTAMP), 0);
	for (int i = 0; i < CPU_EVENTS; i++) {
		before[i] = (int64_t)worked_ns();
		if (i % 3 == 0)
			tw_call2(&two_words, (uint64_t)i, 7);
		else if (i % 3 == 1)
			tw_call0(&no_words);
		else
			tw_process_send(self, tw_term_integer(NULL, i), tw_term_nil());
		after[i] = (int64_t)worked_ns();
	}
	finish(&r);
	while ((got = tw_capture_events_next(r.events, &batch)) > 0) {
		for (int64_t i = 0; i < got; i++, count++) {
			const struct tw_capture_event *e = &batch[i];

			assert_true(count < CPU_EVENTS);
			assert_true(e->has_cpu_time);
			assert_in_range(e->cpu_ns, before[count], after[count]);
			assert_int_equal(e->kind, count % 3 == 2 ? TW_CAPTURE_SEND : TW_CAPTURE_CALL);
			assert_int_equal(e->flags & TW_CAPTURE_STAMP_MASK, TW_STAMP_TIMESTAMP);
			assert_true(e->flags & TW_CAPTURE_FLAG_SCHEDULER_ID);
			if (count % 3 == 0) {
				assert_int_equal(e->payload_words, 2);
				assert_int_equal(e->payload[0], count);
				assert_int_equal(e->payload[1], 7);
			} else if (count % 3 == 1) {
				assert_int_equal(e->payload_words, 0);
			}
		}
	}
	assert_int_equal(count, CPU_EVENTS);
	assert_int_equal(tw_capture_scan(r.capture, NULL, count_cpu_calls, &calls), 0);
	assert_int_equal(calls, CPU_EVENTS * 2 / 3);
	remove_recording(&r);
}

/* Expects one record, with CPU time within the bracket, or without; returns its kind. */
static unsigned expect_one(struct bed *bed, int64_t from, bool has_cpu_time)
{
	struct tw_rb_record *records[4], *last = NULL;
	unsigned events = 0, count = take(bed, records, 4);

	for (unsigned i = 0; i < count; i++)
		if (TW_RB_HEAD_KIND(records[i]->head) != TW_EVENT_SWITCH)
			last = records[i], events++;
	assert_int_equal(events, 1);
	assert_int_equal(tw_event_has_cpu_time(last->head), has_cpu_time);
	if (has_cpu_time)
		assert_in_range(tw_event_payload(last)[0], from, (int64_t)worked_ns());
	return TW_RB_HEAD_KIND(last->head) & (TW_EVENT_CPU_TIME - 1);
}

/* A session's own setting: of two with the same events, one has it; the next session with its bit does not. */
static void cpu_time_is_one_sessions(void **state)
{
	struct bed one, two;

	for (int round = 0; round < 4; round++) {
		int64_t from = (int64_t)worked_ns();
		bool is_second = round % 2;

		open_bed(&one, "one");
		open_bed(&two, "two");
		trace(one.session, "no_words", TW_FUNCTION_LOCAL);
		trace(two.session, "no_words", TW_FUNCTION_LOCAL);
		tw_trace_process(one.session, tw_process_self(), true, TW_FLAG_CALL | TW_FLAG_TIMESTAMP);
		tw_trace_process(two.session, tw_process_self(), true, TW_FLAG_CALL | TW_FLAG_TIMESTAMP);
		tw_call0(&no_words);
		assert_int_equal(expect_one(&one, from, false), TW_EVENT_CALL);
		assert_int_equal(expect_one(&two, from, false), TW_EVENT_CALL);
		assert_int_equal(tw_trace_process(is_second ? two.session : one.session, TW_PID_ALL, true,
						  TW_FLAG_CPU_TIMESTAMP),
				 0);
		tw_call0(&no_words);
		assert_int_equal(expect_one(&one, from, !is_second), TW_EVENT_CALL);
		assert_int_equal(expect_one(&two, from, is_second), TW_EVENT_CALL);
		close_bed(&one);
		close_bed(&two);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(stamps_lie_between_the_programs_own),
					   cmocka_unit_test(captures_hold_cpu_time),
					   cmocka_unit_test(cpu_time_is_one_sessions)};

	assert_int_equal(tw_function_declare(&two_words), 0);
	assert_int_equal(tw_function_declare(&no_words), 0);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
