/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session_events.h - the contents of a session's rings, written like OTP's trace messages.
 *
 * A line is  PROCESS TAG TERM, TERM ...; pids of processes that the test has named are shown by name.
 */
#ifndef TW_TESTS_SESSION_EVENTS_H
#define TW_TESTS_SESSION_EVENTS_H

#include "session_bed.h"
#include "tracewheel/match.h"
#include "tracewheel/port.h"

#include <stdio.h>
#include <stdlib.h>

#define LINES_MAX 512

struct named_process {
	tw_pid pid;
	const char *name;
};
static struct named_process named[64];
static unsigned named_count;

static inline void name_process(const struct tw_process *process, const char *name)
{
	named[named_count++] = (struct named_process){tw_process_pid(process), name};
}

static inline void name_port(tw_port port, const char *name)
{
	named[named_count++] = (struct named_process){tw_port_number(port), name};
}

static inline void forget_names(void)
{
	named_count = 0;
}

static const char *const event_tags[] = {
#define TAG(NAME, number, word, group, first, second) [number] = word,
#define SEQ_TAG(NAME, number, word)		      [number] = "seq_" word,
	TW_TRACE_KINDS(TAG) TW_SEQ_KINDS(SEQ_TAG)
#undef TAG
#undef SEQ_TAG
};

/* Events of one session, oldest first over all rings of the test's only thread, or of several. */
struct lines {
	struct bed *bed;
	unsigned count;
	char text[LINES_MAX][256];
	struct tw_rb_record *record[LINES_MAX];
	uint32_t tracee[LINES_MAX];
};

static inline const char *name_of(tw_pid pid, char buffer[24])
{
	for (unsigned i = named_count; i-- > 0;)
		if (named[i].pid == pid)
			return named[i].name;
	snprintf(buffer, 24, "<0.%u.0>", (unsigned)pid);
	return buffer;
}

static inline size_t put_term(struct tw_term term, char *out, size_t capacity)
{
	struct tw_identifier parts;
	char pid[24];

	if ((tw_term_type(term) == TW_TYPE_PID || tw_term_type(term) == TW_TYPE_PORT) &&
	    tw_term_get_identifier(term, &parts) == 0 && !parts.channel)
		return (size_t)snprintf(out, capacity, "%s", name_of(parts.words[0], pid));
	return tw_term_format(term, TW_PRINT_WRITE, out, capacity);
}

/* The terms of a record behind the integer of a strict stamp, checked to its last byte. */
static inline void put_terms(const struct tw_rb_record *record, char *out, size_t capacity)
{
	unsigned flags = TW_RB_HEAD_FLAGS(record->head);
	const uint64_t *payload =
		tw_event_payload(record) + ((flags & TW_EVENT_FLAG_STAMP_MASK) == TW_STAMP_STRICT_MONOTONIC);
	const uint8_t *at = (const uint8_t *)(payload + 1);
	uint32_t count = (uint32_t)*payload, bytes = (uint32_t)(*payload >> 32), used = 0;
	struct tw_arena arena;

	assert_true(flags & TW_EVENT_FLAG_TERMS);
	tw_arena_init(&arena, 1 << 20);
	for (uint32_t i = 0; i < count; i++) {
		struct tw_term term;
		size_t one;
		int n = snprintf(out, capacity, "%s", i ? ", " : "");

		out += n, capacity -= (size_t)n;
		assert_int_equal(tw_etf_decode(&arena, at + used, bytes - used, NULL, &one, &term), 0);
		used += (uint32_t)one;
		one = put_term(term, out, capacity);
		out += one, capacity -= one;
	}
	assert_int_equal(used, bytes);
	for (; used % 8; used++)
		assert_int_equal(at[used], 0);
	assert_int_equal((payload + 1 + used / 8) - tw_event_payload(record), tw_event_payload_words(record->head));
	tw_arena_fini(&arena);
}

static inline void add_line(struct lines *lines, uint32_t tracee, struct tw_rb_record *record)
{
	unsigned kind = TW_RB_HEAD_KIND(record->head);
	char *out, pid[24];
	int n;

	assert_true(lines->count < LINES_MAX);
	out = lines->text[lines->count];
	lines->record[lines->count] = record;
	lines->tracee[lines->count++] = tracee;
	if (kind < TW_COUNT_OF(event_tags) && event_tags[kind])
		n = snprintf(out, 256, "%s %s", name_of(tracee, pid), event_tags[kind]);
	else
		n = snprintf(out, 256, "%s kind %u", name_of(tracee, pid), kind);
	if (kind >= TW_EVENT_TERM_FIRST && (kind < TW_EVENT_GC_MINOR_START || kind > TW_EVENT_GC_MAX_HEAP_SIZE)) {
		out[n++] = ' ';
		put_terms(record, out + n, 256 - (size_t)n);
	}
}

/* The next records of all rings, whose tracees follow from the switch records; several rings: ring by ring. */
static inline struct lines *read_lines(struct bed *bed)
{
	static struct lines lines;

	lines.count = 0;
	lines.bed = bed;
	for (uint32_t i = 0; i < tw_rs_scan(&bed->rs); i++) {
		struct tw_rb_shared *ring = tw_rs_ring(&bed->rs, i);
		const uint8_t *at;
		uint64_t end;
		int64_t bytes;

		if (bed->pos[i] == ring->first_pos)
			bed->tracees[i] = ring->tracee_id;
		while ((bytes = tw_rb_peek(ring, bed->pos[i], TW_BLOCK_RAW_BYTES_MAX, &at, &end)) > 0) {
			for (int64_t b = 0; b < bytes;) {
				struct tw_rb_record *record = (struct tw_rb_record *)(uintptr_t)(at + b);

				if (TW_RB_HEAD_KIND(record->head) == TW_EVENT_SWITCH)
					bed->tracees[i] = TW_RB_HEAD_ID(record->head);
				else if (TW_RB_HEAD_KIND(record->head) != TW_EVENT_OWN_TIME)
					add_line(&lines, bed->tracees[i], record);
				b += TW_RB_HEAD_BYTES(record->head);
			}
			bed->pos[i] = end;
		}
	}
	return &lines;
}

static inline void count_record(struct tw_rb_record *record, void *context)
{
	uint64_t *count = context;

	*count += TW_RB_HEAD_KIND(record->head) > TW_EVENT_SWITCH && TW_RB_HEAD_KIND(record->head) != TW_EVENT_OWN_TIME;
}

/* The number of events. */
static inline uint64_t count_records(struct bed *bed)
{
	uint64_t count = 0;

	for_each_record(bed, count_record, &count);
	return count;
}

/* Checks that the events since the last check are these lines, in this order. */
static inline void check_lines(struct bed *bed, const char *const *expected, unsigned count)
{
	struct lines *lines = read_lines(bed);

	for (unsigned i = 0; i < count && i < lines->count; i++)
		assert_string_equal(lines->text[i], expected[i]);
	if (lines->count > count)
		print_error("one too many: %s\n", lines->text[count]);
	assert_int_equal(lines->count, count);
}
#define EXPECT(bed, ...)                                               \
	do {                                                           \
		const char *const expected_[] = {__VA_ARGS__};         \
		check_lines((bed), expected_, TW_COUNT_OF(expected_)); \
	} while (0)
#define EXPECT_NOTHING(bed) check_lines((bed), NULL, 0)

/* ---- terms of tests ---- */

static char term_room[1 << 16];
static struct tw_arena terms;

static inline struct tw_term parse(const char *text)
{
	struct tw_term term = {0};

	if (!terms.fixed)
		tw_arena_init_fixed(&terms, term_room, sizeof term_room);
	assert_int_equal(tw_term_parse(&terms, text, strlen(text), &term, NULL), 0);
	return term;
}

static inline struct tw_term pid_of(const struct tw_process *process)
{
	parse("[]");
	return tw_process_term(&terms, process);
}

static inline struct tw_process *new_process(const char *name)
{
	struct tw_process *process = NULL;

	assert_int_equal(tw_process_create(name, &process), 0);
	name_process(process, name);
	return process;
}

static inline struct tw_process *spawn(struct tw_process *parent, const char *name, bool is_linked)
{
	struct tw_spawn options = {.name = name, .parent = parent, .entry = parse("{m,f,[x]}"), .is_linked = is_linked};
	struct tw_process *process = NULL;

	named[named_count].name = name;
	assert_int_equal(tw_process_spawn(&options, &process), 0);
	name_process(process, name);
	return process;
}

static inline uint32_t flags_of(struct bed *bed, const struct tw_process *process)
{
	uint32_t flags = 0;

	assert_int_equal(tw_trace_process_flags(bed->session, tw_process_pid(process), &flags), 0);
	return flags;
}

#endif
