/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal: every kind and flag of an event is printed correctly as text, as Erlang's trace message and as JSON;
 * inconsistent lengths and invalid terms are shown as damage.
 *
 * Method: a handmade capture is printed and compared with tests/golden/print-*; every line of the Erlang form must be a
 * term.  Then payloads are changed at random, and printed.  `tools_print_test make DIRECTORY` writes the texts.
 */
#include "tracewheel/message.h"
#include "views_help.h"
#include "tests/common/random.h"

static void put_terms_of_every_kind(struct maker *maker)
{
	static const struct {
		unsigned kind;
		uint32_t count;
		const char *texts[2];
	} rows[] = {
		{TW_CAPTURE_SEND, 2, {"{hello,[1,2|x],\"caf\\x{e9}\"}", "<0.45.0>"}},
		{TW_CAPTURE_SEND_TO_NON_EXISTING_PROCESS, 2, {"ping", "nobody"}},
		{TW_CAPTURE_RECEIVE, 1, {"#{<<\"key\">> => [a,'B c'],2 => \"\\\"quoted\\\\\"}"}},
		{TW_CAPTURE_SPAWN, 2, {"<0.46.0>", "{app,loop,[1,two]}"}},
		{TW_CAPTURE_SPAWNED, 2, {"<0.44.0>", "{app,loop,[]}"}},
		{TW_CAPTURE_EXIT, 1, {"{badarg,[{app,step,1}]}"}},
		{TW_CAPTURE_REGISTER, 1, {"server"}},
		{TW_CAPTURE_UNREGISTER, 1, {"'my server'"}},
		{TW_CAPTURE_LINK, 1, {"<0.45.0>"}},
		{TW_CAPTURE_UNLINK, 1, {"<0.45.0>"}},
		{TW_CAPTURE_GETTING_LINKED, 1, {"<0.45.0>"}},
		{TW_CAPTURE_GETTING_UNLINKED, 1, {"<0.45.0>"}},
		{TW_CAPTURE_IN, 1, {"{app,loop,2}"}},
		{TW_CAPTURE_OUT, 1, {"0"}},
		{TW_CAPTURE_IN_EXITING, 1, {"0"}},
		{TW_CAPTURE_OUT_EXITING, 1, {"{app,loop,2}"}},
		{TW_CAPTURE_OUT_EXITED, 1, {"0"}},
		{TW_CAPTURE_OPEN, 2, {"<0.44.0>", "tcp_inet"}},
		{TW_CAPTURE_CLOSED, 1, {"normal"}},
		{63, 2, {"later", "{1.5,<<1,2,3:4>>}"}},
	};
	for (size_t i = 0; i < TW_COUNT_OF(rows); i++)
		view_terms(maker, &(struct view_event){0, 3000 + i, rows[i].kind, 0, 0}, rows[i].texts, rows[i].count);
}

static void put_calls(struct maker *maker)
{
	const uint64_t words[] = {1, 0xffff}, address[] = {0x1234}, strict[] = {99, 5}, none[] = {0x99999};
	const char *const both[] = {"[1,{a,\"b\"}]", "{large,7}"}, *const value[] = {"{ok,[1]}"};
	const char *const thrown[] = {"{throw,'std::runtime_error'}"}, *const to[] = {"{app,main,0}"};

	view_put(maker, &(struct view_event){0, 4000, TW_EVENT_CALL, 0, STEP}, words, 2);
	view_put(maker, &(struct view_event){0, 4001, TW_EVENT_CALL, TW_CAPTURE_FLAG_ARITY, STEP}, NULL, 0);
	view_terms(maker, &(struct view_event){0, 4002, TW_EVENT_CALL, TW_CAPTURE_FLAG_EXTRA, STEP}, both, 2);
	view_terms(maker,
		   &(struct view_event){0, 4003, TW_EVENT_CALL,
					TW_CAPTURE_FLAG_EXTRA | TW_CAPTURE_FLAG_ARITY | TW_CAPTURE_FLAG_SCHEDULER_ID |
						TW_STAMP_STRICT_MONOTONIC,
					QUOTED},
		   both, 2);
	view_put(maker, &(struct view_event){0, 4004, TW_EVENT_RETURN_FROM, TW_STAMP_MONOTONIC, STEP}, words, 1);
	view_put(maker, &(struct view_event){0, 4005, TW_EVENT_RETURN_FROM, TW_STAMP_STRICT_MONOTONIC, STEP}, strict,
		 2);
	view_put(maker, &(struct view_event){0, 4006, TW_EVENT_RETURN_FROM, TW_STAMP_TIMESTAMP, HOSTILE}, NULL, 0);
	view_terms(maker, &(struct view_event){0, 4007, TW_EVENT_RETURN_FROM, 0, MOVE}, value, 1);
	view_terms(maker, &(struct view_event){0, 4008, TW_EVENT_EXCEPTION_FROM, 0, BIND}, thrown, 1);
	view_terms(maker, &(struct view_event){0, 4009, TW_EVENT_RETURN_TO, 0, 0}, to, 1);
	view_term(maker, 0, 4010, TW_EVENT_RETURN_TO, "undefined");
	view_put(maker, &(struct view_event){0, 4011, TW_EVENT_RETURN_TO, 0, 0}, address, 1);
	view_put(maker, &(struct view_event){0, 4012, TW_EVENT_RETURN_TO, 0, 0}, none, 1);
	view_put(maker, &(struct view_event){0, 4013, TW_EVENT_CALL, 0, 999}, words, 1);
}

static void put_collections(struct maker *maker)
{
	uint64_t sizes[12];

	for (uint64_t i = 0; i < 12; i++)
		sizes[i] = i == 3 ? 0 : 100 + i;
	for (unsigned kind = TW_CAPTURE_GC_MINOR_START; kind <= TW_CAPTURE_GC_MAX_HEAP_SIZE; kind++)
		view_put(maker, &(struct view_event){0, 5000 + kind, kind, 0, 0}, sizes, 12);
}

/* Inconsistent lengths, invalid terms, and a missing term. */
static void put_damage(struct maker *maker)
{
	const uint64_t one = 1, broken[] = {(uint64_t)8 << 32 | 1, 0xffffffffffffff83},
		       long_one[] = {(uint64_t)800 << 32 | 1, 0x6183}, many[] = {(uint64_t)2 << 32 | 900, 0x6a83},
		       extra[] = {(uint64_t)4 << 32 | 7, 1};

	view_put(maker, &(struct view_event){0, 6000, TW_CAPTURE_SEND, TW_CAPTURE_FLAG_TERMS, 0}, NULL, 0);
	view_put(maker, &(struct view_event){0, 6001, TW_CAPTURE_SEND, TW_CAPTURE_FLAG_TERMS, 0}, broken, 2);
	view_put(maker, &(struct view_event){0, 6002, TW_CAPTURE_RECEIVE, TW_CAPTURE_FLAG_TERMS, 0}, long_one, 2);
	view_put(maker, &(struct view_event){0, 6003, TW_CAPTURE_EXIT, TW_CAPTURE_FLAG_TERMS, 0}, many, 2);
	view_put(maker, &(struct view_event){0, 6004, TW_CAPTURE_CALL, TW_CAPTURE_FLAG_EXTRA, STEP}, extra, 2);
	view_put(maker, &(struct view_event){0, 6005, TW_CAPTURE_EXCEPTION_FROM, TW_CAPTURE_FLAG_TERMS, STEP}, broken,
		 2);
	view_put(maker, &(struct view_event){0, 6006, TW_CAPTURE_CALL, TW_CAPTURE_FLAG_TERMS, 998}, broken, 2);
	view_put(maker, &(struct view_event){0, 6007, TW_CAPTURE_GC_MINOR_END, 0, 0}, &one, 1);
	view_put(maker, &(struct view_event){0, 6008, TW_CAPTURE_CALL, TW_STAMP_STRICT_MONOTONIC, STEP}, NULL, 0);
	view_term(maker, 0, 6009, TW_CAPTURE_SPAWN, "<0.46.0>");
}

static void make_everything(bool has_threads)
{
	struct maker *maker = begin_view(3, has_threads);

	view_switch(maker, 0, 2000, 1, 1);
	put_terms_of_every_kind(maker);
	put_calls(maker);
	put_collections(maker);
	put_damage(maker);
	end_maker(maker, true);
}

/*
 * Messages as terms are the same lines as --format erlang --bare-pids, except C++ names, which only the command can
 * demangle; if a line shows something that could not be read there is no message.
 */
static void check_messages(unsigned least)
{
	char *text = view_answer(tw_tool_print, "--format erlang --bare-pids", 0), *line = text, *end;
	static char message[65536];
	struct tw_capture *capture;
	struct tw_capture_events *events;
	const struct tw_capture_event *batch;
	struct tw_arena arena;
	struct tw_term term;
	int64_t count;
	unsigned same = 0;

	tw_arena_init(&arena, SIZE_MAX);
	assert_int_equal(tw_capture_open(capture_path, NULL, &capture), 0);
	const struct tw_capture_filter filter = {.wants_own_time = true};
	assert_int_equal(tw_capture_events_create(capture, &filter, &events), 0);
	while ((count = tw_capture_events_next(events, &batch)) > 0) {
		for (int64_t i = 0; i < count; i++) {
			/* A set-up record prints no line. */
			if (batch[i].kind == TW_CAPTURE_OWN_TIME && batch[i].id == TW_CAPTURE_OWN_SETUP)
				continue;
			int error = tw_capture_event_message(capture, &batch[i], &arena, &term);

			end = strstr(line, ".\n");
			assert_non_null(end);
			*end = 0;
			const char *printed = line;
			line = end + 2;
			if (error) {
				assert_int_equal(error, TW_EFORMAT);
				continue;
			}
			tw_term_format(term, TW_PRINT_WRITE, message, sizeof message);
			if (strcmp(message, printed) != 0 && !strstr(printed, "'?'") && !strstr(printed, ",event,") &&
			    !strstr(printed, ",own_time,") && !strstr(printed, "geo::Point::move()"))
				fail_msg("message %s\nprinted %s", message, printed);
			same += strcmp(message, printed) == 0;
			tw_arena_reset(&arena);
		}
	}
	assert_true(same >= least);
	tw_capture_events_destroy(events);
	tw_capture_close(capture);
	tw_arena_fini(&arena);
	free(text);
}

static void test_every_kind(void **state)
{
	static const struct {
		const char *arguments, *name;
	} rows[] = {{"--format text", "print-kinds.txt"},
		    {"--format erlang", "print-kinds.term"},
		    {"--format json", "print-kinds.json"}};

	make_everything(false);
	for (size_t i = 0; i < TW_COUNT_OF(rows); i++) {
		char *text = view_answer(tw_tool_print, rows[i].arguments, 0);

		view_golden(rows[i].name, text);
		free(text);
	}
	check_messages(37);
}

/* Every line is a term that Erlang reads, whatever the payload. */
static void check_erlang(void)
{
	char *text = view_answer(tw_tool_print, "--format erlang --bare-pids", 0);
	struct tw_parser parser = {.text = text, .bytes = strlen(text)};
	struct tw_arena arena;
	struct tw_term term;
	int error;

	tw_arena_init(&arena, SIZE_MAX);
	while ((error = tw_parse_next(&parser, &arena, &term)) == 0) {
		assert_true(tw_term_tuple_count(term) >= 3);
		tw_arena_reset(&arena);
	}
	if (error != TW_ENOENT)
		fprintf(stderr, "%s at byte %zu\n", text + parser.offset, parser.offset);
	assert_int_equal(error, TW_ENOENT);
	tw_arena_fini(&arena);
	free(text);
}

static void test_threads_are_processes(void **state)
{
	make_everything(true);
	char *text = view_answer(tw_tool_print, "--limit 1", 0);
	assert_string_equal(text,
			    "   0.000001000      100 send <0.44.0> {hello,[1,2|x],\"caf\xc3\xa9\"} to <0.45.0>\n");
	free(text);
	check_erlang();
}

/* Payloads of random words behind random kinds and flags: damage, but lines. */
static void test_random_payloads(void **state)
{
	uint64_t seed = 88172645463325252u;

	for (unsigned round = 0; round < 30; round++) {
		struct maker *maker = begin_view(3, false);

		for (uint64_t i = 0; i < 300; i++) {
			static const uint64_t starts[] = {0x6c83, 0x6d83, 0x6883, 0x7483, 0x6e83, 0x6b83, 0x7783};
			uint64_t words[8], word = 0;

			for (unsigned j = 0; j < 8; j++) {
				word = random_word(&seed);
				words[j] = word >> word % 50;
			}
			words[0] = word % 3 ? (word >> 8) % 60 << 32 | (word >> 16) % 4 : words[0];
			words[1] = word % 2 ? starts[(word >> 20) % 7] | words[1] << 16 : words[1];
			view_put(maker,
				 &(struct view_event){0, 3000 + i, 3 + (unsigned)(word >> 24) % 40,
						      (unsigned)(word >> 32) & 0xfb, (uint32_t)(word >> 40) % 9},
				 words, (uint32_t)(word >> 50) % 9);
		}
		end_maker(maker, true);
		check_erlang();
		check_messages(0);
		free(view_answer(tw_tool_print, "--format text", 0));
		free(view_answer(tw_tool_print, "--format json", 0));
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_kind),
		cmocka_unit_test(test_threads_are_processes),
		cmocka_unit_test(test_random_payloads),
	};

	if (argc == 3)
		view_golden_directory = argv[2];
	return RUN_IN_DIRECTORY(tests);
}
