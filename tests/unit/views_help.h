/* SPDX-License-Identifier: Apache-2.0 */
/* views_help.h - captures of made-up programs with every kind of event, and the output of commands for them. */
#ifndef VIEWS_HELP_H
#define VIEWS_HELP_H

#include "capture_help.h"
#include "tools/tool.h"
#include "tracewheel/term.h"

#include <fcntl.h>

/* The places of every capture made here: their ids are their numbers. */
static const char *const view_functions[] = {
	"main", "step", "bind", "alloc", "</script><img src=x onerror=alert(1)>", "it's", "_ZN3geo5Point4moveEv",
	"loop",
};
enum { MAIN, STEP, BIND, ALLOC, HOSTILE, QUOTED, MOVE, LOOP };

static inline void view_definition(uint8_t *to, uint32_t *at, uint32_t type, const void *fixed, size_t bytes,
				   const char *text)
{
	const struct tw_definition_head head = {type, (uint32_t)(bytes + strlen(text))};

	memcpy(to + *at, &head, sizeof(head));
	memcpy(to + *at + sizeof(head), fixed, bytes);
	memcpy(to + *at + sizeof(head) + bytes, text, strlen(text));
	*at += (uint32_t)(sizeof(head) + head.payload_bytes + 7) / 8 * 8;
}

/* Process n, from 1 on, is <0.(43 + n).0>; with threads, thread (99 + n), otherwise a run-time's own. */
static inline struct maker *begin_view(uint32_t processes, bool has_threads)
{
	const struct tw_def_image image = {.process_id = 1001, .program_bytes = 8, .command_bytes = 6, .host_bytes = 4};
	const struct tw_def_module module = {.module_id = 1,
					     .base_address = 0x1000,
					     .end_address = 0x2000,
					     .name_bytes = 3};
	struct maker *maker = begin_maker();
	static uint8_t bytes[1 << 18];
	uint32_t at = 0;

	memset(bytes, 0, sizeof bytes);
	view_definition(bytes, &at, TW_DEF_IMAGE, &image, sizeof image, "/bin/appapp -xhost");
	view_definition(bytes, &at, TW_DEF_MODULE, &module, sizeof module, "app");
	for (uint32_t i = 0; i < TW_COUNT_OF(view_functions); i++) {
		const struct tw_def_function function = {.function_id = i,
							 .module_id = 1,
							 .arity = i < 2 ? i : TW_DEF_ARITY_UNKNOWN,
							 .name_bytes = (uint16_t)strlen(view_functions[i])};
		const struct tw_def_place place = {.place_id = i, .function_id = i, .kind = TW_PLACE_SLED};

		view_definition(bytes, &at, TW_DEF_FUNCTION, &function, sizeof function, view_functions[i]);
		view_definition(bytes, &at, TW_DEF_PLACE, &place, sizeof place, "");
	}
	for (uint32_t i = 1; i <= processes; i++) {
		char name[16];
		const struct tw_def_tracee tracee = {.tracee_id = i,
						     .thread_id = has_threads ? (int32_t)(99 + i) : 0,
						     .pid_number = 43 + i,
						     .name_bytes =
							     (uint16_t)snprintf(name, sizeof name, "worker%u", i)};

		view_definition(bytes, &at, TW_DEF_TRACEE, &tracee, sizeof tracee, name);
	}
	maker_definitions(maker, bytes, at, 0);
	return maker;
}

struct view_event {
	uint32_t stream;
	uint64_t ticks;
	unsigned kind;
	unsigned flags;
	uint32_t id;
};

static inline void view_put(struct maker *maker, const struct view_event *event, const uint64_t *words, uint32_t count)
{
	struct maker_stream *stream = &maker->streams[event->stream];
	uint32_t bytes = 16 + (count + 1) / 2 * 16;
	uint64_t *record;

	if (stream->bytes + bytes > sizeof stream->raw)
		maker_flush(maker, event->stream);
	record = (uint64_t *)(stream->raw + stream->bytes);
	memset(record, 0, bytes);
	record[0] = event->ticks;
	record[1] = TW_RB_HEAD(event->kind, event->flags | (count % 2 ? TW_EVENT_FLAG_HALF : 0), bytes, event->id);
	if (count)
		memcpy(record + 2, words, count * sizeof *words);
	stream->bytes += bytes;
}

/* Each text is a term; with EXTRA the last one is X. */
static inline void view_terms(struct maker *maker, const struct view_event *event, const char *const *texts,
			      uint32_t count)
{
	bool is_strict = (event->flags & TW_EVENT_FLAG_STAMP_MASK) == TW_STAMP_STRICT_MONOTONIC;
	struct view_event put = *event;
	uint64_t words[512] = {77};
	uint64_t *head = words + is_strict;
	struct tw_arena arena;
	struct tw_sink sink = {.start = (char *)(head + 1), .at = (char *)(head + 1), .end = (char *)(words + 512)};

	tw_arena_init(&arena, SIZE_MAX);
	for (uint32_t i = 0; i < count; i++) {
		struct tw_term term;

		assert_int_equal(tw_term_parse(&arena, texts[i], strlen(texts[i]), &term, NULL), 0);
		assert_int_equal(tw_etf_encode(term, (struct tw_term){0}, &sink), 0);
	}
	*head = (uint64_t)(sink.at - sink.start) << 32 | count;
	tw_arena_fini(&arena);
	put.flags |= TW_CAPTURE_FLAG_TERMS;
	view_put(maker, &put, words, (uint32_t)(is_strict + 1 + (sink.at - sink.start + 7) / 8));
}

/* Short forms. */
static inline void view_call(struct maker *maker, uint32_t stream, uint64_t ticks, uint32_t place)
{
	view_put(maker, &(struct view_event){stream, ticks, TW_EVENT_CALL, 0, place}, NULL, 0);
}

static inline void view_return(struct maker *maker, uint32_t stream, uint64_t ticks, uint32_t place)
{
	view_put(maker, &(struct view_event){stream, ticks, TW_EVENT_RETURN_FROM, 0, place}, NULL, 0);
}

static inline void view_switch(struct maker *maker, uint32_t stream, uint64_t ticks, uint32_t tracee, uint64_t run)
{
	view_put(maker, &(struct view_event){stream, ticks, TW_EVENT_SWITCH, 0, tracee}, &run, 1);
}

static inline void view_term(struct maker *maker, uint32_t stream, uint64_t ticks, unsigned kind, const char *text)
{
	view_terms(maker, &(struct view_event){stream, ticks, kind, 0, 0}, &text, 1);
}

/*
 * view_answer - what a command writes to standard output; free().
 *
 * @arguments	after the command's name, separated by blanks; the capture's path is appended.
 */
static inline char *view_answer(int (*run)(int, char **), const char *arguments, int code)
{
	char words[2048], *argv[20] = {(char *)"command"}, path[400], *text;
	int argc = 1, saved = dup(STDOUT_FILENO), fd, answered;
	struct stat st;

	snprintf(words, sizeof words, "%s", arguments);
	for (char *word = strtok(words, " "); word; word = strtok(NULL, " "))
		argv[argc++] = word;
	argv[argc++] = capture_path;
	argv[argc] = NULL;
	/* A machine without a locale draws other bars. */
	setenv("LC_ALL", "C.UTF-8", 1);
	snprintf(path, sizeof path, "%s/answer", directory);
	fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
	assert_true(fd >= 0 && saved >= 0);
	fflush(stdout);
	dup2(fd, STDOUT_FILENO);
	answered = run(argc, argv);
	fflush(stdout);
	dup2(saved, STDOUT_FILENO);
	close(saved);
	assert_int_equal(answered, code);
	assert_int_equal(fstat(fd, &st), 0);
	text = calloc(1, (size_t)st.st_size + 1);
	assert_int_equal(pread(fd, text, (size_t)st.st_size, 0), st.st_size);
	close(fd);
	unlink(path);
	return text;
}

/* Compares with tests/golden/NAME, or writes it if the test was called with `make DIRECTORY`. */
static const char *view_golden_directory;

static inline void view_golden(const char *name, const char *text)
{
	static char expected[1 << 17];
	char path[600];
	FILE *file;

	snprintf(path, sizeof path, "%s/%s", view_golden_directory ? view_golden_directory : TW_TEST_DATA "/golden",
		 name);
	file = fopen(path, view_golden_directory ? "w" : "r");
	assert_non_null(file);
	if (view_golden_directory) {
		fputs(text, file);
	} else {
		expected[fread(expected, 1, sizeof expected - 1, file)] = 0;
		assert_string_equal(text, expected);
	}
	fclose(file);
}

#endif
