/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal	The stamps of events are the program's own time: an event between two readings of tw_monotonic_time_ns() has a
 *	stamp between them, but for the error of converting ticks, which is below two microseconds; the integers of strict
 *	stamps lie strictly between two of the program's.
 * Method	Events in brackets for half a second, to a capture; what a reader makes of their stamps is compared.
 */
#include "session_bed.h"
#include "tracewheel/capture.h"
#include "tracewheel/consumer.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define BRACKETS 2000
#define ERROR_NS 2000

struct bracket {
	int64_t before_ns, after_ns, before, after;
};
static struct bracket brackets[BRACKETS];

static void make_events(struct tw_recorder *recorder)
{
	const struct timespec pause = { 0, 200000 };
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

static void stamps_lie_between_the_programs_own(void **state)
{
	char path[] = "/tmp/tw-time.XXXXXX", file[64], command[64];
	struct tw_recorder_options options = { .path = file, .ring_bytes = 1 << 20 };
	static int64_t outside[BRACKETS];
	const struct tw_capture_event *batch;
	struct tw_capture_events *events;
	struct tw_capture *capture;
	struct tw_session *session;
	struct tw_recorder *recorder;
	struct tw_recorder_stats stats;
	struct tw_rs rs;
	uint32_t image;
	int64_t got;
	int count = 0;

	assert_non_null(mkdtemp(path));
	snprintf(file, sizeof file, "%s/time.tw", path);
	assert_int_equal(tw_recorder_create(&options, &recorder), 0);
	assert_int_equal(tw_rs_attach(&rs, tw_recorder_ring_set_path(recorder)), 0);
	assert_int_equal(tw_rs_image_claim(&rs, &image), 0);
	tw_recorder_poll(recorder, 0);
	assert_int_equal(tw_session_make("time", &rs, image, &session), 0);
	assert_int_equal(tw_trace_process(session, tw_process_self(), true,
					  TW_FLAG_SEND | TW_FLAG_STRICT_MONOTONIC_TIMESTAMP),
			 1);
	make_events(recorder);
	assert_int_equal(tw_session_destroy(session), 1);
	tw_session_put(session);
	tw_rs_image_end(&rs, image);
	assert_int_equal(tw_recorder_finish(recorder, &stats), 0);
	tw_rs_detach(&rs);
	assert_int_equal(tw_capture_open(file, NULL, &capture), 0);
	assert_int_equal(tw_capture_events_create(capture, NULL, &events), 0);
	while ((got = tw_capture_events_next(events, &batch)) > 0) {
		for (int64_t i = 0; i < got; i++, count++) {
			const struct bracket *b = &brackets[count];
			int64_t ns = (int64_t)batch[i].time_ns, early = b->before_ns - ns, late = ns - b->after_ns;

			assert_true(count < BRACKETS);
			assert_int_equal(batch[i].kind, TW_CAPTURE_SEND);
			assert_in_range(batch[i].payload[0], b->before + 1, b->after - 1);
			outside[count] = early > late ? early : late;
		}
	}
	assert_int_equal(count, BRACKETS);
	qsort(outside, BRACKETS, sizeof *outside, compare);
	print_message("outside of the bracket by at most %d ns (negative: inside); median %d, 99 %% %d\n",
		      (int)outside[BRACKETS - 1], (int)outside[BRACKETS / 2], (int)outside[BRACKETS * 99 / 100]);
	assert_true(outside[BRACKETS - 1] < ERROR_NS);
	tw_capture_events_destroy(events);
	tw_capture_close(capture);
	snprintf(command, sizeof command, "rm -rf '%s'", path);
	assert_int_equal(system(command), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(stamps_lie_between_the_programs_own) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
