/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal: seq shows what happened: each receive with its own send, each hop below its cause, times between them; what is
 * missing is marked, and never replaced by a guess.
 *
 * Method: a request with known causes as text, JSON, Mermaid and terms; random requests of processes that send, print
 * and take out of order, at once and with one label or several, of which the player knows every pair and every cause;
 * requests with lost events, an absent node, and flags that leave out sends or receives.
 */
#include "seq_play.h"

#include "views/folds/seq_trace.h"
#include "tests/common/random.h"

/* ---- a request with known causes ---- */

/*
 * a0 prints, asks b1 on another thread, which asks c2 and c3 at once; c2 answers first. Then b1 answers a0 and prints.
 * A second request is one message to itself.
 */
static void make_shop(void)
{
	struct seq_world *world = begin_world();
	struct seq_message ask, left, right, answers[2], answer, own;

	seq_add_node(world, capture_path, 7, 1000, 0, 5000, 4);
	world->stamp = TW_STAMP_TIMESTAMP;
	seq_print(world, 0, 1000, "{order,17}", "\"begins\"");
	ask = seq_send(world, 0, 1, 1400, "{order,17}", "{get,book}", true);
	seq_receive(world, &ask, 2600, "{order,17}", true);
	left = seq_send(world, 1, 2, 3000, "{order,17}", "{price,book}", true);
	right = seq_send(world, 1, 3, 3200, "{order,17}", "{stock,\"</script><b>\"}", true);
	seq_receive(world, &right, 3500, "{order,17}", true);
	seq_receive(world, &left, 4000, "{order,17}", true);
	answers[0] = seq_send(world, 2, 1, 4500, "{order,17}", "{price,12.5}", true);
	seq_receive(world, &answers[0], 5000, "{order,17}", true);
	answers[1] = seq_send(world, 3, 1, 8000, "{order,17}", "{stock,3}", true);
	seq_receive(world, &answers[1], 9000, "{order,17}", true);
	answer = seq_send(world, 1, 0, 9500, "{order,17}", "{ok,book}", true);
	seq_print(world, 1, 9600, "{order,17}", "done");
	seq_receive(world, &answer, 12000, "{order,17}", true);
	own = seq_send(world, 3, 3, 20000, "18", "again", true);
	seq_receive(world, &own, 20500, "18", true);
	end_world(world);
}

static void test_shop(void **state)
{
	static const char *const forms[] = {"text", "json", "mermaid", "erlang"};
	char *text;

	make_shop();
	for (unsigned i = 0; i < TW_COUNT_OF(forms); i++) {
		char arguments[100], name[40];

		snprintf(arguments, sizeof arguments, "--label {order,17} --format %s", forms[i]);
		snprintf(name, sizeof name, "seq-%s.txt", forms[i]);
		text = view_answer(tw_tool_seq, arguments, 0);
		view_golden(name, text);
		free(text);
	}
	text = view_answer(tw_tool_seq, "", 0);
	view_golden("seq-list.txt", text);
	free(text);
}

/* ---- random requests ---- */

enum { RANDOM_HOPS = 400, RANDOM_LABELS = 3 };

struct truth {
	struct seq_message message;
	uint64_t received;
	uint32_t cause; /* a hop; TW_SEQ_TRACE_NONE: none */
	uint32_t label;
	bool is_print;
};

struct play {
	struct seq_world *world;
	struct truth hops[RANDOM_HOPS];
	uint32_t count;
	uint32_t cause[SEQ_PROCESSES]; /* by process: the hop that it received last; TW_SEQ_TRACE_NONE */
	uint32_t label[SEQ_PROCESSES]; /* of its token; RANDOM_LABELS: none */
	uint32_t waiting[RANDOM_HOPS], waiting_count;
	uint64_t now;
	uint64_t seed;
};

static const char *const labels[RANDOM_LABELS] = {"1", "1.0", "\"1\""};

static uint32_t below(struct play *play, uint32_t limit)
{
	return (uint32_t)random_below(&play->seed, limit);
}

/* The serials of a process go on over its requests: a new token has no cause of its label. */
static void play_step(struct play *play)
{
	uint32_t own = below(play, SEQ_PROCESSES), what = below(play, 10);
	struct truth *hop = &play->hops[play->count];

	play->now += 1 + below(play, 300);
	if (play->label[own] == RANDOM_LABELS && what < 7) {
		play->label[own] = below(play, RANDOM_LABELS);
		play->cause[own] = TW_SEQ_TRACE_NONE;
	}
	if (what < 5 && play->count < RANDOM_HOPS) {
		*hop = (struct truth){.cause = play->cause[own], .label = play->label[own]};
		hop->message = seq_send(play->world, own, below(play, SEQ_PROCESSES), play->now, labels[hop->label],
					"m", true);
		play->waiting[play->waiting_count++] = play->count++;
	} else if (what < 7 && play->count < RANDOM_HOPS) {
		*hop = (struct truth){.cause = play->cause[own], .label = play->label[own], .is_print = true};
		seq_print(play->world, own, play->now, labels[hop->label], "p");
		hop->message = (struct seq_message){.from = own,
						    .current = play->world->processes[own].clock,
						    .sent = play->now};
		play->count++;
	} else if (play->waiting_count) {
		uint32_t at = below(play, play->waiting_count), taken = play->waiting[at];

		hop = &play->hops[taken];
		play->waiting[at] = play->waiting[--play->waiting_count];
		hop->received = play->now;
		seq_receive(play->world, &hop->message, play->now, labels[hop->label], true);
		play->cause[hop->message.to] = taken;
		play->label[hop->message.to] = hop->label;
	}
}

/* Compares the trace of a label with the play; the event that begins a hop has its true time. */
static void check_trace(const struct play *play, uint32_t label)
{
	struct tw_capture *capture = open_capture();
	char text[TW_LABEL_BYTES];
	struct tw_arena arena;
	struct tw_seq_trace trace;
	struct tw_term term;
	uint32_t at = 0, numbers[RANDOM_HOPS];

	tw_arena_init(&arena, SIZE_MAX);
	tw_term_parse(&arena, labels[label], strlen(labels[label]), &term, NULL);
	tw_term_format(term, TW_PRINT_WRITE, text, sizeof text);
	assert_int_equal(tw_seq_trace_make(&trace, capture, text, 0, 0), 0);
	for (uint32_t i = 0; i < play->count; i++) {
		const struct truth *truth = &play->hops[i];
		const struct tw_hop *hop = &trace.hops[at];
		const struct tw_seq_trace_event *event;

		if (truth->label != label)
			continue;
		assert_true(at < trace.hop_count);
		numbers[i] = at++;
		assert_true(hop->send != TW_SEQ_TRACE_NONE);
		event = &trace.events[hop->send];
		assert_int_equal(event->time_ns, 1000 + truth->message.sent);
		assert_int_equal(event->current, truth->message.current);
		assert_int_equal(hop->is_print, truth->is_print);
		assert_int_equal(trace.processes[hop->from].is.number, 40 + truth->message.from);
		if (truth->received) {
			assert_true(hop->receive != TW_SEQ_TRACE_NONE);
			assert_int_equal(trace.events[hop->receive].time_ns, 1000 + truth->received);
			assert_int_equal(trace.processes[hop->to].is.number, 40 + truth->message.to);
		} else {
			assert_int_equal(hop->receive, TW_SEQ_TRACE_NONE);
			assert_int_equal(hop->gap, truth->is_print ? TW_SEQ_TRACE_WHOLE : TW_SEQ_TRACE_OPEN);
		}
		assert_int_equal(hop->parent,
				 truth->cause == TW_SEQ_TRACE_NONE ? TW_SEQ_TRACE_NONE : numbers[truth->cause]);
	}
	assert_int_equal(at, trace.hop_count);
	assert_int_equal(trace.receives_alone, 0);
	tw_seq_trace_free(&trace);
	tw_arena_fini(&arena);
	tw_capture_close(capture);
}

static void test_random(void **state)
{
	for (unsigned seed = 1; seed <= 30; seed++) {
		struct play *play = calloc(1, sizeof *play);

		play->seed = seed;
		play->now = 100;
		play->world = begin_world();
		for (uint32_t i = 0; i < SEQ_PROCESSES; i++) {
			play->cause[i] = TW_SEQ_TRACE_NONE;
			play->label[i] = RANDOM_LABELS;
		}
		seq_add_node(play->world, capture_path, 7, 1000, 0, 5000, SEQ_PROCESSES);
		for (uint32_t i = 0; i < 2 * RANDOM_HOPS; i++)
			play_step(play);
		end_world(play->world);
		for (uint32_t label = 0; label < RANDOM_LABELS; label++)
			check_trace(play, label);
		free(play);
	}
}

/* ---- what is missing ---- */

static struct tw_seq_trace trace;
static struct tw_capture *trace_capture;

static void read_trace(const char *label)
{
	trace_capture = open_capture();
	assert_int_equal(tw_seq_trace_make(&trace, trace_capture, label, 0, 0), 0);
}

static void drop_trace(void)
{
	tw_seq_trace_free(&trace);
	tw_capture_close(trace_capture);
}

static bool has_note(const char *part)
{
	char note[TW_SEQ_TRACE_NOTE];
	bool found = false;

	for (unsigned i = 0; tw_seq_trace_note(&trace, i, note); i++)
		found |= strstr(note, part) != NULL;
	return found;
}

/* The receive of one message and the send of another were lost on the way to the disk; a loss record tells. */
static void test_lost(void **state)
{
	struct seq_world *world = begin_world();
	const uint64_t lost[6] = {2900, 2, 0, 0, 0, 0};
	struct seq_message one, two, three;

	seq_add_node(world, capture_path, 7, 1000, 0, 5000, 3);
	one = seq_send(world, 0, 1, 1000, "1", "one", true);
	seq_receive(world, &one, 2000, "1", false);
	two = seq_send(world, 1, 2, 2100, "1", "two", false);
	view_put(world->nodes[0].maker, &(struct view_event){1, 3200, TW_EVENT_LOSS, 0, 0}, lost, 6);
	world->nodes[0].last_ticks[1] = 3200;
	seq_receive(world, &two, 2500, "1", true);
	three = seq_send(world, 2, 0, 2600, "1", "three", true);
	seq_receive(world, &three, 2700, "1", true);
	end_world(world);
	read_trace("1");
	assert_int_equal(trace.hop_count, 3);
	assert_int_equal(trace.hops[0].gap, TW_SEQ_TRACE_LOST);
	assert_int_equal(trace.hops[0].receive, TW_SEQ_TRACE_NONE);
	assert_int_equal(trace.hops[1].gap, TW_SEQ_TRACE_LOST);
	assert_int_equal(trace.hops[1].send, TW_SEQ_TRACE_NONE);
	/* The serial tells that the first caused the second, and that the third. */
	assert_int_equal(trace.hops[1].parent, 0);
	assert_int_equal(trace.hops[2].parent, 1);
	assert_int_equal(trace.hops[2].gap, TW_SEQ_TRACE_WHOLE);
	assert_int_equal(trace.lost, 2);
	assert_true(has_note("LOST 2 events"));
	drop_trace();
}

/* Without the capture of b, a's messages to it have no receive, and its answers no send. */
static void test_absent_node(void **state)
{
	struct seq_world *world = begin_world();
	char other[320];
	struct seq_message ask, answer;

	snprintf(other, sizeof other, "%s/b.tw", directory);
	seq_add_node(world, capture_path, 7, 1000, 0, 5000, 1);
	seq_add_node(world, other, 8, 1000, 0, 5000, 1);
	ask = seq_send(world, 0, 1, 1000, "1", "ask", true);
	seq_receive(world, &ask, 2000, "1", true);
	answer = seq_send(world, 1, 0, 2100, "1", "answer", true);
	seq_receive(world, &answer, 3000, "1", true);
	end_world(world);
	read_trace("1");
	assert_int_equal(trace.hop_count, 2);
	assert_int_equal(trace.hops[0].gap, TW_SEQ_TRACE_ABSENT);
	assert_int_equal(trace.hops[1].gap, TW_SEQ_TRACE_ABSENT);
	assert_int_equal(trace.hops[1].parent, 0);
	assert_true(
		has_note("1 message came from and 1 went to nodes that are not in this capture: tw-1002-7@08080808"));
	drop_trace();
	remove_folder(other);
}

/* Tokens whose flags leave out sends, or receives: causes are still known, and nothing is called missing. */
static void test_flags(void **state)
{
	for (unsigned without_sends = 0; without_sends < 2; without_sends++) {
		struct seq_world *world = begin_world();
		struct seq_message message;

		seq_add_node(world, capture_path, 7, 1000, 0, 5000, 4);
		for (uint32_t i = 0; i < 3; i++) {
			message = seq_send(world, i, i + 1, 1000 + i * 1000, "1", "m", !without_sends);
			seq_receive(world, &message, 1500 + i * 1000, "1", without_sends);
		}
		end_world(world);
		read_trace("1");
		assert_int_equal(trace.hop_count, 3);
		for (uint32_t i = 0; i < 3; i++) {
			assert_int_equal(trace.hops[i].gap, TW_SEQ_TRACE_UNSEEN);
			assert_int_equal(trace.hops[i].parent, i ? i - 1 : TW_SEQ_TRACE_NONE);
		}
		assert_true(has_note(without_sends ? "Sends were not recorded" : "Receives were not recorded"));
		drop_trace();
	}
}

/* Serials that begin anew: each send keeps its own receive. */
static void test_reset(void **state)
{
	struct seq_world *world = begin_world();

	seq_add_node(world, capture_path, 7, 1000, 0, 5000, 2);
	for (uint32_t i = 0; i < 4; i++) {
		struct seq_message message = seq_send(world, 0, 1, 1000 + i * 1000, "1", "m", true);

		/* The second is never received. */
		if (i != 1)
			seq_receive(world, &message, 1500 + i * 1000, "1", true);
		world->processes[0].clock = world->processes[0].last = 0;
		world->processes[1].clock = world->processes[1].last = 0;
	}
	end_world(world);
	read_trace("1");
	assert_int_equal(trace.hop_count, 4);
	for (uint32_t i = 0; i < 4; i++) {
		assert_int_equal(trace.events[trace.hops[i].send].time_ns, 2000 + i * 1000);
		assert_int_equal(trace.hops[i].receive == TW_SEQ_TRACE_NONE, i == 1);
		if (i != 1)
			assert_int_equal(trace.events[trace.hops[i].receive].time_ns, 2500 + i * 1000);
	}
	assert_int_equal(trace.went_back, 3);
	assert_true(has_note("Serials went back 3 times"));
	drop_trace();
}

/* ---- many hops in a large capture ---- */

/* 1,000 hops among as many calls as asked for: blocks without such events are not read. */
static void make_large(const char *path, uint64_t calls)
{
	struct seq_world *world = begin_world();
	uint64_t now = 1000;

	seq_add_node(world, path, 7, 1000, 0, 5000, 8);
	for (uint32_t hop = 0; hop < 1000; hop++) {
		const struct seq_message message = seq_send(world, hop % 8, (hop + 1) % 8, now, "7", "hop", true);

		now += 100;
		seq_receive(world, &message, now, "7", true);
		if (hop % 50)
			continue;
		for (uint32_t stream = 0; stream < 2; stream++)
			maker_flush(world->nodes[0].maker, stream);
		for (uint64_t i = 0; i < calls / 20; i++)
			view_call(world->nodes[0].maker, i & 1, 1000 + (now += 10), 0);
		for (uint32_t stream = 0; stream < 2; stream++) {
			maker_flush(world->nodes[0].maker, stream);
			world->nodes[0].last_ticks[stream] = 1000 + now;
		}
	}
	end_world(world);
}

static int count_records(void *context, const struct tw_capture_batch *batch)
{
	*(uint64_t *)context += batch->records;
	return 0;
}

static void test_blocks_are_skipped(void **state)
{
	const struct tw_capture_filter filters[] = {{.kinds = UINT64_C(1) << TW_CAPTURE_SEQ_SEND},
						    {.kinds = UINT64_C(1) << TW_CAPTURE_MONITOR},
						    {.kinds = UINT64_C(1) << 63}};
	/* A block that begins with the first receive has no send. */
	const uint64_t records[] = {1999, 0, 202000};
	struct tw_capture_events *events;
	const struct tw_capture_event *batch;
	uint64_t count = 0;

	make_large(capture_path, 200000);
	for (unsigned i = 0; i < TW_COUNT_OF(filters); i++) {
		trace_capture = open_capture();
		count = 0;
		assert_int_equal(tw_capture_scan(trace_capture, &filters[i], count_records, &count), 0);
		assert_int_equal(count, records[i]);
		tw_capture_close(trace_capture);
	}
	/* In order as well. */
	trace_capture = open_capture();
	assert_int_equal(tw_capture_events_create(trace_capture, &filters[0], &events), 0);
	count = 0;
	for (int64_t got; (got = tw_capture_events_next(events, &batch)) > 0; count += (uint64_t)got) {
		for (int64_t i = 0; i < got; i++)
			assert_int_equal(batch[i].kind, TW_CAPTURE_SEQ_SEND);
	}
	assert_int_equal(count, 1000);
	tw_capture_events_destroy(events);
	tw_capture_close(trace_capture);
	read_trace("7");
	assert_int_equal(trace.hop_count, 1000);
	assert_int_equal(trace.depth, 999);
	drop_trace();
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_shop),
		cmocka_unit_test(test_random),
		cmocka_unit_test(test_lost),
		cmocka_unit_test(test_absent_node),
		cmocka_unit_test(test_flags),
		cmocka_unit_test(test_reset),
		cmocka_unit_test(test_blocks_are_skipped),
	};

	/* For the tests of the command: captures. */
	if (argc == 3 && strcmp(argv[1], "captures") == 0) {
		snprintf(capture_path, sizeof capture_path, "%s/shop.tw", argv[2]);
		make_shop();
		return 0;
	}
	/* large FILE.tw CALLS */
	if (argc == 4 && strcmp(argv[1], "large") == 0) {
		make_large(argv[2], strtoull(argv[3], NULL, 10));
		return 0;
	}
	if (argc == 3)
		view_golden_directory = argv[2];
	begin_directory();
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	end_directory();
	return failed;
}
