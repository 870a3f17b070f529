/* SPDX-License-Identifier: Apache-2.0 */
/*
 * read_capture.c - count the events of a capture by function, in a few lines.
 *
 *	cc read_capture.c -ltracewheel-capture -o read_capture && ./read_capture mine.tw
 */
#include <tracewheel/capture.h>
#include <tracewheel/error.h>

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define NAMES 64

struct count {
	const struct tw_capture_function *function;
	uint64_t calls;
};

static void add(struct count *counts, const struct tw_capture_place *place)
{
	if (!place || !place->function)
		return;
	for (int i = 0; i < NAMES; i++) {
		if (counts[i].function && counts[i].function != place->function)
			continue;
		counts[i].function = place->function;
		counts[i].calls++;
		return;
	}
}

int main(int argc, char **argv)
{
	struct count counts[NAMES] = { { NULL, 0 } };
	const struct tw_capture_event *batch;
	struct tw_capture_events *events;
	struct tw_capture_info info;
	struct tw_capture *capture;
	uint64_t last_ns = 0;
	int64_t n;
	int error;

	if (argc != 2) {
		fprintf(stderr, "usage: read_capture NAME.tw\n");
		return 2;
	}
	error = tw_capture_open(argv[1], NULL, &capture);
	if (!error)
		error = tw_capture_events_create(capture, NULL, &events);
	if (error) {
		fprintf(stderr, "read_capture: %s: %s\n", argv[1], tw_strerror(error));
		return 1;
	}
	while ((n = tw_capture_events_next(events, &batch)) > 0) {
		for (int64_t i = 0; i < n; i++) {
			if (batch[i].kind != TW_CAPTURE_CALL)
				continue;
			add(counts, tw_capture_place(capture, batch[i].image, batch[i].id));
			last_ns = batch[i].time_ns;
		}
	}
	tw_capture_info(capture, &info);
	for (int i = 0; i < NAMES && counts[i].function; i++)
		printf("%s:%s/%u was called %" PRIu64 " times\n", counts[i].function->module->name,
		       counts[i].function->name, (unsigned)counts[i].function->arity, counts[i].calls);
	printf("%.3f ms between the first and the last event, %s\n", (double)(last_ns - info.start_ns) / 1e6,
	       info.is_complete ? "complete" : "cut off");
	tw_capture_events_destroy(events);
	tw_capture_close(capture);
	return n < 0;
}
