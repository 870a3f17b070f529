/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal: a merged capture has every event of its inputs once, and no effect before its cause; the offsets that merge prints
 * are right within the uncertainty that it prints. Missing events are counted; captures that cannot be merged are refused.
 *
 * Method: nodes on machines whose clocks are hours apart and drift by 100 ppm pass requests on to each other; the player knows
 * every message, and the true time of each event. Their captures are merged by the command, and the trace of the merged
 * capture, and the numbers in its JSON, are compared with the play. Negative control: merged by wall clocks alone, the same
 * captures show effects before causes. Then losses, own times, several images, absent nodes, clocks that were stepped.
 */
#include "seq_play.h"

#include "tools/merge/messages.h"
#include "views/folds/seq_trace.h"
#include "tracewheel/merge.h"
#include "tests/common/random.h"

#include <math.h>

enum { NODES = 3, EACH = 4, MESSAGES = 3000 };
#define HOUR 3600e9

static char paths[NODES][320], merged_path[320];

struct play {
	struct seq_world *world;
	uint64_t truth[2 * MESSAGES + 8]; /* the true times of all events, in order */
	uint32_t event_count;
	struct {
		struct seq_message message;
		uint64_t arrives;
	} flying[MESSAGES];
	uint32_t flying_count;
	uint64_t now;
	uint64_t seed;
	uint64_t wall_error[NODES];
};

static uint32_t below(struct play *play, uint32_t limit)
{
	return (uint32_t)random_below(&play->seed, limit);
}

static void deliver(struct play *play, uint64_t until)
{
	for (;;) {
		uint32_t first = UINT32_MAX;

		for (uint32_t i = 0; i < play->flying_count; i++) {
			if (play->flying[i].arrives <= until &&
			    (first == UINT32_MAX || play->flying[i].arrives < play->flying[first].arrives))
				first = i;
		}
		if (first == UINT32_MAX)
			return;
		play->truth[play->event_count++] = play->flying[first].arrives;
		seq_receive(play->world, &play->flying[first].message, play->flying[first].arrives, "1", true);
		play->flying[first] = play->flying[--play->flying_count];
	}
}

/* @one_machine: all nodes are on one. */
static void make_captures(struct play *play, unsigned seed, bool one_machine, uint64_t spacing_ns)
{
	memset(play, 0, sizeof *play);
	play->seed = seed;
	play->world = begin_world();
	for (uint32_t i = 0; i < NODES; i++) {
		double offset = one_machine ? HOUR : HOUR * (1 + below(play, 20)) + below(play, 1000000);
		double drift = one_machine ? 0 : (below(play, 200001) - 100000.0) * 1e-9;

		play->wall_error[i] = one_machine ? 0 : below(play, 2000000000);
		seq_add_node(play->world, paths[i], one_machine ? 7 : (uint8_t)(11 + i), offset, drift,
			     UINT64_C(1700000000000000000) + play->wall_error[i], EACH);
	}
	play->now = 1000;
	for (uint32_t i = 0; i < MESSAGES; i++) {
		uint32_t from = below(play, NODES * EACH), to = below(play, NODES * EACH);
		uint64_t delay = 20000 + below(play, 60000) + (below(play, 20) ? 0 : below(play, 5000000));

		play->now += 1 + below(play, (uint32_t)(2 * spacing_ns));
		deliver(play, play->now);
		play->truth[play->event_count++] = play->now;
		play->flying[play->flying_count].message = seq_send(play->world, from, to, play->now, "1", "m", true);
		play->flying[play->flying_count++].arrives = play->now + delay;
	}
	deliver(play, UINT64_MAX);
}

static int run_merge(const char *arguments, int code, char **answer)
{
	char words[2000];

	snprintf(words, sizeof words, "%s -o %s %s %s", arguments, merged_path, paths[0], paths[1]);
	*answer = view_answer(tw_tool_merge, words, code);
	return 0;
}

static double number_of(const char *json, const char *member, unsigned occurrence)
{
	char name[60];
	const char *at = json;

	snprintf(name, sizeof name, "\"%s\":", member);
	for (unsigned i = 0; i <= occurrence; i++) {
		at = strstr(at, name);
		assert_non_null(at);
		at += strlen(name);
	}
	return strtod(at, NULL);
}

/* Messages that are received before they were sent, in the trace of the merged capture. */
static uint32_t count_inversions(uint32_t *messages)
{
	struct tw_capture *capture = NULL;
	struct tw_seq_trace trace;
	uint32_t inversions = 0;

	assert_int_equal(tw_capture_open(merged_path, NULL, &capture), 0);
	/* The matching itself does not pair a receive with a later send: pairs that are missing are inversions too. */
	assert_int_equal(tw_seq_trace_make(&trace, capture, "1", 0, 0), 0);
	for (uint32_t i = 0; i < trace.hop_count; i++) {
		const struct tw_hop *hop = &trace.hops[i];

		inversions += hop->send == TW_SEQ_TRACE_NONE ||
			      (hop->receive != TW_SEQ_TRACE_NONE &&
			       trace.events[hop->receive].time_ns < trace.events[hop->send].time_ns);
	}
	*messages = (uint32_t)trace.messages;
	tw_seq_trace_free(&trace);
	tw_capture_close(capture);
	return inversions;
}

/* The first node's clock minus this node's, at the first event of this node's capture; in seconds. */
static double true_offset(const struct seq_node *first, const struct seq_node *node, const char *path)
{
	struct tw_capture *capture = NULL;
	struct tw_capture_info info;
	__float128 time;

	assert_int_equal(tw_capture_open(path, NULL, &capture), 0);
	tw_capture_info(capture, &info);
	tw_capture_close(capture);
	time = ((__float128)info.start_ns - node->offset_ns) / (1 + (__float128)node->drift);
	return (double)((first->offset_ns + time * (1 + (__float128)first->drift) - info.start_ns) / 1e9);
}

/* The third capture takes the place of the path that view_answer() appends. */
static void use_third(void)
{
	strcpy(capture_path, paths[2]);
}

static void test_truth(void **state)
{
	struct play *play = calloc(1, sizeof *play);

	for (unsigned seed = 1; seed <= 8; seed++) {
		uint32_t messages;
		char *json;

		make_captures(play, seed, false, seed % 2 ? 20000 : 20000000);
		use_third();
		{
			struct seq_node nodes[NODES];

			memcpy(nodes, play->world->nodes, sizeof nodes);
			end_world(play->world);
			run_merge("--json --force", 0, &json);
			assert_int_equal(number_of(json, "events", 0), play->event_count);
			for (uint32_t i = 1; i < NODES; i++) {
				double truth = true_offset(&nodes[0], &nodes[i], paths[i]);
				double drift = ((1 + nodes[0].drift) / (1 + nodes[i].drift) - 1) * 1e6;
				double offset = number_of(json, "offset_ns", i) / 1e9;
				double within = number_of(json, "uncertainty_max", i - 1);

				assert_true(fabs(offset - truth) <= within + 1e-8);
				assert_true(within < 0.05);
				assert_true(fabs(number_of(json, "drift_ppm", i) - drift) <=
					    number_of(json, "drift_uncertainty_ppm", i - 1) + 1e-6);
			}
		}
		assert_int_equal(count_inversions(&messages), 0);
		assert_int_equal(messages, MESSAGES);
		free(json);
	}
	free(play);
}

/* Times of one machine stay as they are, and blocks too. */
static void test_one_machine(void **state)
{
	struct play *play = calloc(1, sizeof *play);
	struct tw_capture *capture = NULL;
	struct tw_capture_events *events;
	const struct tw_capture_event *batch;
	uint32_t at = 0, messages;
	char *json;

	make_captures(play, 99, true, 2000);
	use_third();
	end_world(play->world);
	run_merge("--json --force", 0, &json);
	free(json);
	assert_int_equal(count_inversions(&messages), 0);
	assert_int_equal(tw_capture_open(merged_path, NULL, &capture), 0);
	assert_int_equal(tw_capture_events_create(capture, NULL, &events), 0);
	for (int64_t count; (count = tw_capture_events_next(events, &batch)) > 0;) {
		for (int64_t i = 0; i < count; i++, at++)
			assert_int_equal(batch[i].time_ns, (uint64_t)HOUR + play->truth[at]);
	}
	assert_int_equal(at, play->event_count);
	tw_capture_events_destroy(events);
	tw_capture_close(capture);
	free(play);
}

/* Without the messages wall clocks alone decide, and then effects come before causes. */
static void test_control(void **state)
{
	struct play *play = calloc(1, sizeof *play);
	struct tw_capture *captures[NODES];
	struct tw_merge_input inputs[NODES];
	struct tw_merge_knot knots[NODES][2];
	struct tw_merge_options options = {.path = merged_path, .is_forced = true};
	struct tw_merge_result result;
	uint32_t messages;

	make_captures(play, 5, false, 20000);
	end_world(play->world);
	for (uint32_t i = 0; i < NODES; i++) {
		struct tw_capture_info info;

		assert_int_equal(tw_capture_open(paths[i], NULL, &captures[i]), 0);
		tw_capture_info(captures[i], &info);
		knots[i][0] =
			(struct tw_merge_knot){info.start_ns,
					       tw_capture_of_wall(captures[0],
								  tw_capture_wall_ns(captures[i], info.start_ns))};
		knots[i][1] = (struct tw_merge_knot){info.end_ns, knots[i][0].to_ns + info.end_ns - info.start_ns};
		inputs[i] = (struct tw_merge_input){captures[i], "x", NULL, knots[i], 2};
	}
	assert_int_equal(tw_captures_merge(inputs, NODES, &options, &result), 0);
	assert_int_equal(result.events, play->event_count);
	assert_true(count_inversions(&messages) > 100);
	for (uint32_t i = 0; i < NODES; i++)
		tw_capture_close(captures[i]);
	free(play);
}

/* ---- records that hold times ---- */

/* A node with a loss, own time, calls and switches; its clock runs at twice the drift that is corrected. */
static void make_records(const char *path, uint8_t boot, uint64_t start)
{
	const struct tw_format_clock clock = {start, start, start + 1000000, start};
	struct maker *maker = begin_maker_at(path, boot, &clock, boot);
	const uint64_t own[1] = {500}, lost[6] = {start + 4000, 3, 1, 0, 0, 0};

	view_switch(maker, 0, start + 1000, 1, 1);
	maker_call(maker, 0, start + 1000, 1, 2);
	maker_flush(maker, 0);
	maker_record(maker, 0, start + 2000, TW_EVENT_OWN_TIME, TW_OWN_TIME_WAIT, own, 1);
	maker_record(maker, 0, start + 5000, TW_EVENT_LOSS, 0, lost, 6);
	maker_call(maker, 0, start + 6000, 3, 4);
	end_maker(maker, true);
}

static void test_records(void **state)
{
	struct tw_capture *captures[2], *merged = NULL;
	struct tw_merge_knot knots[2][3] = {{{1000000, 2000000}, {1005000, 2005000}, {1010000, 2010000}},
					    {{5000000, 2000100}, {5003000, 2003400}, {5010000, 2010100}}};
	struct tw_merge_input inputs[2];
	struct tw_merge_options options = {.path = merged_path, .is_forced = true};
	const struct tw_capture_filter filter = {.wants_own_time = true};
	struct tw_capture_events *events;
	const struct tw_capture_event *batch;
	struct tw_capture_account account;
	struct tw_merge_result result;
	uint64_t times[2][8];
	uint32_t counts[2] = {0};

	make_records(paths[0], 31, 1000000);
	make_records(paths[1], 32, 5000000);
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(tw_capture_open(paths[i], NULL, &captures[i]), 0);
		inputs[i] = (struct tw_merge_input){captures[i], i ? "b" : "a", "a note", knots[i], 3};
	}
	assert_int_equal(tw_captures_merge(inputs, 2, &options, &result), 0);
	assert_int_equal(result.events, 4);
	assert_int_equal(tw_capture_open(merged_path, NULL, &merged), 0);
	tw_capture_account(merged, &account);
	assert_true(account.is_complete);
	assert_int_equal(account.missing[TW_MISSING_FULL].events, 6);
	assert_int_equal(account.missing[TW_MISSING_TOO_BIG].events, 2);
	/* 500 ns each, of the second by a clock that is 10 % too slow there. */
	assert_int_equal(account.waits.count, 2);
	assert_int_equal(account.waits.ns, 1050);
	assert_string_equal(tw_capture_image(merged, 0)->node, "a");
	assert_string_equal(tw_capture_image(merged, 1)->node, "b");
	assert_int_equal(tw_capture_events_create(merged, &filter, &events), 0);
	for (int64_t count; (count = tw_capture_events_next(events, &batch)) > 0;) {
		for (int64_t i = 0; i < count; i++) {
			times[batch[i].image][counts[batch[i].image]++] = batch[i].time_ns;
			if (batch[i].kind == TW_CAPTURE_LOSS)
				times[batch[i].image][counts[batch[i].image]++] =
					tw_capture_event_loss(&batch[i])->first_ticks;
		}
	}
	assert_int_equal(counts[0], 5);
	assert_int_equal(counts[1], 5);
	{
		const uint64_t expected[2][5] = {{2001000, 2002000, 2005000, 2004000, 2006000},
						 {2001200, 2002300, 2005314, 2004357, 2006271}};

		for (unsigned i = 0; i < 2; i++) {
			for (unsigned j = 0; j < 5; j++)
				assert_true(times[i][j] - expected[i][j] + 1 <= 2);
		}
	}
	/* The wall clock is that of the first. */
	assert_int_equal(tw_capture_wall_ns(merged, 2001000), 1001000 + 1000000);
	tw_capture_events_destroy(events);
	for (unsigned i = 0; i < 2; i++)
		tw_capture_close(captures[i]);
	tw_capture_close(merged);
}

/* ---- what is missing, and what is refused ---- */

static void test_parts(void **state)
{
	/* Few ends fit at once, so the captures are read many times: the messages are the same. */
	struct play *play = calloc(1, sizeof *play);
	struct tw_capture *captures[NODES];
	const uint32_t machines[NODES] = {0, 1, 2};
	uint64_t between[2];

	make_captures(play, 8, false, 20000);
	end_world(play->world);
	for (uint32_t i = 0; i < NODES; i++)
		assert_int_equal(tw_capture_open(paths[i], NULL, &captures[i]), 0);
	for (unsigned few = 0; few < 2; few++) {
		struct tw_align_machine known[NODES] = {{.end_ns = 1}, {.end_ns = 1}, {.end_ns = 1}};
		struct tw_messages messages = {.captures = captures,
					       .machines = machines,
					       .count = NODES,
					       .ends_max = few ? 500 : 0,
					       .align = tw_align_create(known, NODES)};

		assert_int_equal(tw_messages_find_nodes(&messages), 0);
		assert_int_equal(tw_messages_read(&messages), 0);
		assert_int_equal(messages.no_send + messages.no_receive + messages.ambiguous, 0);
		between[few] = messages.between;
		tw_align_destroy(messages.align);
		tw_messages_free(&messages);
	}
	assert_int_equal(between[0], between[1]);
	assert_true(between[0] > MESSAGES / 2);
	for (uint32_t i = 0; i < NODES; i++)
		tw_capture_close(captures[i]);
	free(play);
}

/* Two of three captures: the messages with the third have one end. */
static void test_absent(void **state)
{
	struct play *play = calloc(1, sizeof *play);
	char words[1000], *json;

	make_captures(play, 12, false, 20000);
	end_world(play->world);
	strcpy(capture_path, paths[1]);
	snprintf(words, sizeof words, "--json --force -o %s %s", merged_path, paths[0]);
	json = view_answer(tw_tool_merge, words, 0);
	assert_non_null(strstr(json, "\"node\": \"tw-1003-7@0d0d0d0d\""));
	assert_true(number_of(json, "no_send", 0) > MESSAGES / 10.0);
	assert_true(number_of(json, "no_receive", 0) > MESSAGES / 10.0);
	free(json);
	free(play);
}

/* A native program and Erlang nodes: their captures say their names. Two captures of one name are refused. */
static void test_erlang_nodes(void **state)
{
	for (unsigned same = 0; same < 2; same++) {
		struct seq_world *world = begin_world();
		struct seq_message message;
		char words[1000], *json;

		for (uint32_t i = 0; i < 3; i++)
			seq_add_node(world, paths[i], 7, HOUR, 0, 1700000000000000000, 1);
		seq_name_node(world, 1, "one@host");
		seq_name_node(world, 2, same ? "one@host" : "two@host");
		for (uint32_t i = 0; i < 3; i++) {
			message = seq_send(world, i, (i + 1) % 3, 1000 + 1000 * i, "1", "m", true);
			seq_receive(world, &message, 1500 + 1000 * i, "1", true);
		}
		end_world(world);
		strcpy(capture_path, paths[2]);
		snprintf(words, sizeof words, "--json --force -o %s %s %s", merged_path, paths[0], paths[1]);
		json = view_answer(tw_tool_merge, words, (int)same);
		if (!same) {
			assert_int_equal(number_of(json, "messages", 0), 3);
			assert_int_equal(number_of(json, "no_send", 0) + number_of(json, "no_receive", 0), 0);
		}
		free(json);
	}
}

static void test_stepped(void **state)
{
	struct seq_world *world = begin_world();
	uint64_t now = 1000;
	char words[1000], *text;
	struct tw_capture *none = NULL;

	for (uint32_t i = 0; i < 2; i++)
		seq_add_node(world, paths[i], (uint8_t)(21 + i), HOUR * (i + 1), 0, 1700000000000000000, 1);
	for (uint32_t i = 0; i < 400; i++) {
		struct seq_message message = seq_send(world, i % 2, 1 - i % 2, now += 30000, "1", "m", true);

		if (i == 200)
			world->nodes[1].offset_ns += 3e9;
		seq_receive(world, &message, now += 30000, "1", true);
	}
	end_world(world);
	strcpy(capture_path, paths[1]);
	remove_folder(merged_path);
	snprintf(words, sizeof words, "-o %s %s", merged_path, paths[0]);
	text = view_answer(tw_tool_merge, words, 1);
	assert_string_equal(text, "");
	free(text);
	assert_int_equal(tw_capture_open(merged_path, NULL, &none), TW_ENOENT);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_truth),	cmocka_unit_test(test_one_machine),  cmocka_unit_test(test_control),
		cmocka_unit_test(test_records), cmocka_unit_test(test_parts),	     cmocka_unit_test(test_absent),
		cmocka_unit_test(test_stepped), cmocka_unit_test(test_erlang_nodes),
	};
	struct play *play;
	int failed;

	/* For the tests of the command: a.tw, b.tw and c.tw. */
	if (argc == 3 && strcmp(argv[1], "captures") == 0) {
		play = calloc(1, sizeof *play);
		for (uint32_t i = 0; i < NODES; i++)
			snprintf(paths[i], sizeof paths[i], "%s/%c.tw", argv[2], 'a' + (int)i);
		make_captures(play, 3, false, 20000);
		end_world(play->world);
		free(play);
		return 0;
	}
	/* large DIRECTORY CALLS: the same with so many calls of two words in each. */
	if (argc == 4 && strcmp(argv[1], "large") == 0) {
		uint64_t calls = strtoull(argv[3], NULL, 10);

		play = calloc(1, sizeof *play);
		for (uint32_t i = 0; i < NODES; i++)
			snprintf(paths[i], sizeof paths[i], "%s/%c.tw", argv[2], 'a' + (int)i);
		make_captures(play, 3, false, 20000);
		for (uint32_t i = 0; i < NODES; i++) {
			struct seq_node *node = &play->world->nodes[i];
			uint64_t ticks = seq_local(node, play->now + 10000000);

			for (uint64_t call = 0; call < calls; call++) {
				const uint64_t words[2] = {call, ticks ^ call << 7};

				view_put(node->maker,
					 &(struct view_event){call & 1, ticks += 13 + call % 11, TW_EVENT_CALL, 0,
							      call % 5},
					 words, 2);
			}
		}
		end_world(play->world);
		free(play);
		return 0;
	}
	begin_directory();
	for (uint32_t i = 0; i < NODES; i++)
		snprintf(paths[i], sizeof paths[i], "%s/n%u.tw", directory, i);
	snprintf(merged_path, sizeof merged_path, "%s/all.tw", directory);
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	for (uint32_t i = 0; i < NODES; i++)
		remove_folder(paths[i]);
	remove_folder(merged_path);
	end_directory();
	return failed;
}
