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

#define NAMES 4096

struct count {
	const struct tw_capture_function *function;
	uint64_t calls;
};

static uint64_t others; /* calls of functions that do not fit the table */

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
	others++;
}

/* The arity of a function without debug information is unknown. */
static void print_count(const struct count *count)
{
	const struct tw_capture_function *function = count->function;
	char arity[16] = "_";

	if (function->arity != TW_CAPTURE_ARITY_UNKNOWN)
		snprintf(arity, sizeof arity, "%u", (unsigned)function->arity);
	printf("%s:%s/%s was called %" PRIu64 " times\n", function->module ? function->module->name : "?",
	       function->name, arity, count->calls);
}

int main(int argc, char **argv)
{
	static struct count counts[NAMES];
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
		print_count(&counts[i]);
	if (others)
		printf("%" PRIu64 " calls of other functions\n", others);
	printf("%.3f ms between the first and the last event, %s\n", (double)(last_ns - info.start_ns) / 1e6,
	       info.is_complete ? "complete" : "cut off");
	tw_capture_events_destroy(events);
	tw_capture_close(capture);
	return n < 0;
}
