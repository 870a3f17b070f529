/* SPDX-License-Identifier: Apache-2.0 */
/*
 * capture.h - the events that a session recorded of the run-time, as lines like OTP's trace messages: PROCESS TAG TERM
 * TERM ...
 */
#ifndef ACTORS_TEST_CAPTURE_H
#define ACTORS_TEST_CAPTURE_H

#include "bed.h"

#include <tracewheel/capture.h>
#include <tracewheel/tracewheel.h>

#include <stdlib.h>
#include <unistd.h>

#define LINE_BYTES 200

struct recorded {
	unsigned kind;
	uint32_t process; /* the number in its pid */
	uint64_t word;	  /* of a call: the first argument */
	char text[LINE_BYTES];
};

static struct recorded *recorded;
static size_t recorded_count;

static const char *const tags[] = {
#define TAG(NAME, number, word, group, first, second) [number] = word,
	TW_TRACE_KINDS(TAG)
#undef TAG
};

/* ---- pids by name ---- */

static struct {
	uint32_t number;
	const char *name;
} named[64];
static unsigned named_count;

static inline uint32_t pid_number(struct value pid)
{
	return (uint32_t)(pid.word >> 27);
}

static inline void name_pid(struct value pid, const char *name)
{
	named[named_count].number = pid_number(pid);
	named[named_count++].name = name;
}

static inline const char *name_of(uint32_t number, char buffer[24])
{
	for (unsigned i = named_count; i-- > 0;) {
		if (named[i].number == number)
			return named[i].name;
	}
	snprintf(buffer, 24, "<0.%u.0>", number);
	return buffer;
}

static inline size_t put_term(struct tw_term term, char *out, size_t capacity)
{
	struct tw_identifier parts;
	char pid[24];
	if (tw_term_type(term) == TW_TYPE_PID && tw_term_get_identifier(term, &parts) == 0)
		return (size_t)snprintf(out, capacity, "%s", name_of(parts.words[0], pid));
	return tw_term_format(term, TW_PRINT_WRITE, out, capacity);
}

/* ---- reading ---- */

static inline void put_terms(const struct tw_capture_event *event, char *out, size_t capacity)
{
	uint32_t count = (uint32_t)event->payload[0], bytes = (uint32_t)(event->payload[0] >> 32);
	const uint8_t *at = (const uint8_t *)(event->payload + 1);
	struct tw_arena arena;
	tw_arena_init(&arena, 1 << 20);
	for (uint32_t i = 0; i < count && capacity > 2; i++) {
		struct tw_term term;
		size_t used, n;
		assert_int_equal(tw_etf_decode(&arena, at, bytes, NULL, &used, &term), 0);
		at += used;
		bytes -= (uint32_t)used;
		*out++ = ' ';
		n = put_term(term, out, capacity - 1);
		out += n;
		capacity -= n + 1;
	}
	tw_arena_fini(&arena);
}

static inline void add_event(struct tw_capture *capture, const struct tw_capture_event *event)
{
	const struct tw_capture_tracee *tracee = tw_capture_tracee(capture, event->image, event->tracee_id);
	struct recorded *line = &recorded[recorded_count++];
	char pid[24];
	line->kind = event->kind;
	line->process = tracee ? tracee->pid_number : 0;
	line->word = 0;
	int n = snprintf(line->text, LINE_BYTES, "%s %s", name_of(line->process, pid), tags[event->kind]);
	if (event->kind <= TW_CAPTURE_EXCEPTION_FROM) {
		const struct tw_capture_place *place = tw_capture_place(capture, event->image, event->id);
		n += snprintf(line->text + n, LINE_BYTES - (size_t)n, " %s/%u",
			      place && place->function ? place->function->name : "?",
			      place && place->function ? place->function->arity : 0);
	}
	if (event->flags & TW_CAPTURE_FLAG_TERMS)
		put_terms(event, line->text + n, LINE_BYTES - (size_t)n);
	else if (event->payload_words)
		line->word = event->payload[0];
}

static inline void remove_folder(const char *path)
{
	char command[300];
	snprintf(command, sizeof command, "rm -rf '%s'", path);
	assert_int_equal(system(command), 0);
}

/*
 * `block` waits a second for a writer that is not scheduled, and a moment for a ring.  A very busy machine may lose
 * events then: the losses are printed and everything is repeated, a few times; events lost every time are a defect.
 */
static inline void try_again(const char *path, const uint64_t lost[TW_LOST_CAUSES])
{
	const char *before = getenv("ACTORS_TEST_TRIES");
	char tries[12];
	fprintf(stderr, "lost: %u full, %u too big, %u nested, %u without a ring\n", (unsigned)lost[TW_LOST_FULL],
		(unsigned)lost[TW_LOST_TOO_BIG], (unsigned)lost[TW_LOST_NESTED], (unsigned)lost[TW_LOST_NO_RING]);
	snprintf(tries, sizeof tries, "%d", before ? atoi(before) + 1 : 1);
	assert_true(atoi(tries) < 10);
	remove_folder(path);
	setenv("ACTORS_TEST_TRIES", tries, 1);
	fflush(NULL);
	execl("/proc/self/exe", "actors", (char *)NULL);
	assert_true(false);
}

static inline void read_capture(const char *path)
{
	struct tw_capture *capture;
	struct tw_capture_events *events;
	const struct tw_capture_event *batch;
	int64_t count;
	assert_int_equal(tw_capture_open(path, NULL, &capture), 0);
	assert_int_equal(tw_capture_events_create(capture, NULL, &events), 0);
	recorded_count = 0;
	while ((count = tw_capture_events_next(events, &batch)) > 0) {
		recorded = realloc(recorded, (recorded_count + (size_t)count) * sizeof *recorded);
		assert_non_null(recorded);
		for (int64_t i = 0; i < count; i++) {
			if (batch[i].kind == TW_CAPTURE_LOSS)
				try_again(path, tw_capture_event_loss(&batch[i])->lost);
			if (batch[i].kind != TW_CAPTURE_SWITCH)
				add_event(capture, &batch[i]);
		}
	}
	assert_int_equal(count, 0);
	tw_capture_events_destroy(events);
	tw_capture_close(capture);
}

/* ---- recording ---- */

static char capture_path[256];
static struct tw_session *session;

static inline void start_recording(void)
{
	static unsigned number;
	snprintf(capture_path, sizeof capture_path, "%s/actors-test-%d-%u.tw",
		 getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp", (int)getpid(), number++);
	struct tw_tracer tracer = {.kind = TW_TRACER_CAPTURE,
				   .capture_path = capture_path,
				   .force = true,
				   .on_full = TW_ON_FULL_BLOCK};
	assert_int_equal(tw_session_create("test", &tracer, &session), 0);
}

/* Ends the session, and reads its events. */
static inline void stop_recording(void)
{
	assert_int_equal(tw_session_destroy(session), 1);
	tw_session_put(session);
	read_capture(capture_path);
	remove_folder(capture_path);
}

/* Checks that the lines of one process (NONE: of all) are these, in this order. */
static inline void check_recorded(struct value pid, const char *const *expected, size_t count)
{
	size_t at = 0;
	for (size_t i = 0; i < recorded_count; i++) {
		if (!is_none(pid) && recorded[i].process != pid_number(pid))
			continue;
		if (at == count)
			print_error("one too many: %s\n", recorded[i].text);
		assert_true(at < count);
		assert_string_equal(recorded[i].text, expected[at++]);
	}
	if (at < count)
		print_error("missing: %s\n", expected[at]);
	assert_int_equal(at, count);
}
#define EXPECT(pid, ...)                                                                \
	do {                                                                            \
		const char *const expected_[] = {__VA_ARGS__};                          \
		check_recorded((pid), expected_, sizeof expected_ / sizeof *expected_); \
	} while (0)

#endif
