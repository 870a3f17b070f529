/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal: why-late is correct: how long each message was in its receiver's queue, what the receiver did meanwhile, which
 * process blocked it, and what that process did; with gaps, uncertain parts are marked.
 *
 * Method: a play with waits counted by hand; random plays of processes that run, yield, wait, send and take out of
 * order, in which the player notes each process' activity, compared with every message taken; the same with a history
 * so short that it is overwritten many times.
 */
#include "sanitized_help.h"
#include "views_help.h"

#include "tools/late/late.h"
#include "views/folds/lengths.h"
#include "tools/report/report.h"
#include "tests/common/random.h"

#define PROCESSES     6
#define SCHEDULERS    2
#define STRETCHES_MAX 200000
#define MESSAGES_MAX  60000

enum { TAKE = 0, WAIT = 1 };

/* ---- the player ---- */

struct truth_stretch {
	uint64_t from, to;
	unsigned doing;
	uint32_t by;
};

struct truth_message {
	uint64_t arrived, taken; /* taken 0: never */
	uint32_t sender, receiver;
};

struct player {
	struct maker *maker;
	uint64_t now, run[PROCESSES + 1];
	struct {
		uint32_t tracee;
		uint64_t run;
	} streams[SCHEDULERS];
	struct {
		unsigned doing; /* TW_DOING_UNKNOWN: not yet */
		uint32_t stream;
		uint64_t since, woken;
		uint32_t woken_by, queue[4096], count;
		struct truth_stretch *stretches;
		uint32_t stretch_count;
	} at[PROCESSES + 1];
	struct truth_message *messages; /* from 1 on */
	uint32_t message_count;
};

static struct player player;

static void begin_play(void)
{
	const struct tw_def_image image = {.process_id = 1001, .program_bytes = 8, .command_bytes = 6, .host_bytes = 4};
	const struct tw_def_module module = {.module_id = 1, .is_declared = 1, .name_bytes = 7};
	static const char *const names[] = {"take", "wait"};
	static uint8_t bytes[1 << 16];
	uint32_t at = 0;

	for (uint32_t i = 0; i <= PROCESSES; i++)
		free(player.at[i].stretches);
	free(player.messages);
	memset(&player, 0, sizeof player);
	player.maker = begin_maker();
	player.messages = calloc(MESSAGES_MAX + 1, sizeof *player.messages);
	player.now = 5000;
	memset(bytes, 0, sizeof bytes);
	view_definition(bytes, &at, TW_DEF_IMAGE, &image, sizeof image, "/bin/appapp -xhost");
	view_definition(bytes, &at, TW_DEF_MODULE, &module, sizeof module, "mailbox");
	for (uint32_t i = 0; i < 2; i++) {
		const struct tw_def_function function = {.function_id = i,
							 .module_id = 1,
							 .arity = 1 - i,
							 .name_bytes = 4};
		const struct tw_def_place place = {.place_id = i, .function_id = i, .kind = TW_PLACE_DECLARED};

		view_definition(bytes, &at, TW_DEF_FUNCTION, &function, sizeof function, names[i]);
		view_definition(bytes, &at, TW_DEF_PLACE, &place, sizeof place, "");
	}
	for (uint32_t i = 1; i <= PROCESSES; i++) {
		char name[16];
		const struct tw_def_tracee tracee = {.tracee_id = i,
						     .pid_number = 43 + i,
						     .name_bytes = (uint16_t)snprintf(name, sizeof name, "p%u", i)};

		view_definition(bytes, &at, TW_DEF_TRACEE, &tracee, sizeof tracee, name);
		player.at[i].stretches = calloc(STRETCHES_MAX, sizeof *player.at[i].stretches);
	}
	maker_definitions(player.maker, bytes, at, 0);
}

/* The next event on this stream is of this process. */
static void become(uint32_t stream, uint32_t process)
{
	if (player.streams[stream].tracee == process && player.streams[stream].run == player.run[process])
		return;
	player.streams[stream].tracee = process;
	player.streams[stream].run = ++player.run[process];
	view_switch(player.maker, stream, player.now, process, player.run[process]);
}

static void end(uint32_t process, uint64_t to, unsigned doing, uint32_t by)
{
	struct truth_stretch *stretch = &player.at[process].stretches[player.at[process].stretch_count++];

	assert_true(player.at[process].stretch_count < STRETCHES_MAX);
	*stretch = (struct truth_stretch){player.at[process].since, to, doing, by};
	player.at[process].since = to;
}

static void play_in(uint32_t process, uint32_t stream)
{
	become(stream, process);
	view_term(player.maker, stream, player.now, TW_CAPTURE_IN, "0");
	if (player.at[process].doing == TW_DOING_BLOCKED && player.at[process].woken)
		end(process, player.at[process].woken, TW_DOING_BLOCKED, player.at[process].woken_by);
	if (player.at[process].since)
		end(process, player.now, TW_DOING_READY, 0);
	player.at[process].doing = TW_DOING_RUN;
	player.at[process].stream = stream;
	player.at[process].since = player.now;
}

static void play_out(uint32_t process, bool waits)
{
	uint32_t stream = player.at[process].stream;

	become(stream, process);
	if (waits)
		view_put(player.maker, &(struct view_event){stream, player.now, TW_EVENT_CALL, 0, WAIT}, NULL, 0);
	view_term(player.maker, stream, player.now, TW_CAPTURE_OUT, "0");
	end(process, player.now, TW_DOING_RUN, 0);
	player.at[process].doing = waits ? TW_DOING_BLOCKED : TW_DOING_READY;
	player.at[process].woken = 0;
}

/* It arrives 10 ns after it was sent. */
static void play_send(uint32_t from, uint32_t to)
{
	uint32_t stream = player.at[from].stream, number = ++player.message_count;
	char message[32], pid[32];
	const char *const terms[] = {message, pid};

	assert_true(number <= MESSAGES_MAX && player.at[to].count < TW_COUNT_OF(player.at[to].queue));
	snprintf(message, sizeof message, "{m,%u}", number);
	snprintf(pid, sizeof pid, "<0.%u.0>", 43 + to);
	become(stream, from);
	view_terms(player.maker, &(struct view_event){stream, player.now, TW_CAPTURE_SEND, 0, 0}, terms, 2);
	player.now += 10;
	become(stream, to);
	view_term(player.maker, stream, player.now, TW_CAPTURE_RECEIVE, message);
	player.messages[number] = (struct truth_message){player.now, 0, from, to};
	player.at[to].queue[player.at[to].count++] = number;
	if (player.at[to].doing == TW_DOING_BLOCKED && !player.at[to].woken) {
		player.at[to].woken = player.now;
		player.at[to].woken_by = from;
	}
}

static void play_take(uint32_t process, uint64_t position)
{
	become(player.at[process].stream, process);
	view_put(player.maker, &(struct view_event){player.at[process].stream, player.now, TW_EVENT_CALL, 0, TAKE},
		 &position, 1);
	player.messages[player.at[process].queue[position]].taken = player.now;
	memmove(&player.at[process].queue[position], &player.at[process].queue[position + 1],
		(--player.at[process].count - position) * sizeof(uint32_t));
}

/* The last one that can go on does not wait. */
static bool may_wait(uint32_t process)
{
	for (uint32_t i = 1; i <= PROCESSES; i++)
		if (i != process && (player.at[i].doing != TW_DOING_BLOCKED || player.at[i].woken))
			return true;
	return false;
}

/* One step of a play: any step that a scheduler or a process can take. */
static void play_step(uint64_t *seed)
{
	uint32_t process = 1 + (uint32_t)random_below(seed, PROCESSES),
		 stream = (uint32_t)random_below(seed, SCHEDULERS);
	bool is_busy = false;

	player.now += 1 + random_below(seed, random_below(seed, 50) ? 300 : 40000);
	for (uint32_t i = 1; i <= PROCESSES; i++)
		is_busy |= player.at[i].doing == TW_DOING_RUN && player.at[i].stream == stream;
	if (player.at[process].doing != TW_DOING_RUN) {
		if (!is_busy && (player.at[process].doing != TW_DOING_BLOCKED || player.at[process].woken))
			play_in(process, stream);
		return;
	}
	switch (random_below(seed, 8)) {
	case 0: play_out(process, false); break;
	case 1: play_out(process, may_wait(process)); break;
	case 2:
	case 3:
	case 4:
		if (player.message_count < MESSAGES_MAX - 1)
			play_send(process, 1 + (uint32_t)random_below(seed, PROCESSES));
		break;
	default:
		if (player.at[process].count)
			play_take(process, random_below(seed, 4) ? 0 : random_below(seed, player.at[process].count));
	}
}

static void random_play(uint64_t seed, unsigned steps)
{
	begin_play();
	while (steps--)
		play_step(&seed);
	end_maker(player.maker, true);
}

/* ---- reports ---- */

static struct tw_capture *capture;

static void answer(struct tw_lates *lates, size_t capacity)
{
	assert_int_equal(tw_capture_open(capture_path, NULL, &capture), 0);
	assert_int_equal(tw_lates_make(lates, capture, capacity), 0);
}

static void end_answer(struct tw_lates *lates)
{
	tw_lates_free(lates);
	tw_capture_close(capture);
}

static uint32_t number_of(const struct tw_lates *lates, uint32_t process)
{
	return process < lates->mailboxes.count ? lates->mailboxes.processes[process]->pid_number - 43 : 0;
}

/* A step by the player's notes: slowly, all stretches of the process. */
static void compare_step(const struct tw_lates *lates, const struct tw_late_step *step, uint64_t zero)
{
	uint32_t process = number_of(lates, step->process);
	uint64_t ns[TW_DOINGS] = {0}, by_ns[PROCESSES + 1] = {0}, most = 0, from = step->from_ns - zero,
		 to = step->to_ns - zero;

	for (uint32_t i = 0; i < player.at[process].stretch_count; i++) {
		const struct truth_stretch *stretch = &player.at[process].stretches[i];
		uint64_t left = stretch->from > from ? stretch->from : from,
			 right = stretch->to < to ? stretch->to : to;

		if (right <= left)
			continue;
		ns[stretch->doing] += right - left;
		if (stretch->doing == TW_DOING_BLOCKED)
			by_ns[stretch->by] += right - left;
	}
	if (player.at[process].doing == TW_DOING_RUN && player.at[process].since < to)
		ns[TW_DOING_RUN] += to - (player.at[process].since > from ? player.at[process].since : from);
	for (unsigned doing = TW_DOING_RUN; doing < TW_DOINGS; doing++)
		assert_int_equal(step->ns[doing], ns[doing]);
	for (uint32_t i = 1; i <= PROCESSES; i++)
		most = by_ns[i] > most ? by_ns[i] : most;
	assert_int_equal(step->by_ns, most);
	if (most)
		assert_int_equal(by_ns[number_of(lates, step->by)], most);
}

/* The clock of made captures begins at any value: its zero. */
static uint64_t zero_of(const struct tw_late *late)
{
	unsigned number;

	assert_int_equal(sscanf(late->text, "{m,%u}", &number), 1);
	return late->arrived_ns - player.messages[number].arrived;
}

static void compare_rows(const struct tw_lates *lates)
{
	uint64_t zero = lates->count ? zero_of(&lates->rows[0]) : 0;

	for (size_t i = 0; i < lates->count; i++) {
		const struct tw_late *late = &lates->rows[i];
		unsigned number;

		assert_int_equal(sscanf(late->text, "{m,%u}", &number), 1);
		assert_int_equal(late->arrived_ns - zero, player.messages[number].arrived);
		assert_int_equal(late->taken_ns - zero, player.messages[number].taken);
		assert_int_equal(number_of(lates, late->sender), player.messages[number].sender);
		assert_int_equal(number_of(lates, late->receiver), player.messages[number].receiver);
		assert_true(late->is_sure);
		if (i)
			assert_true(tw_late_wait(late) <= tw_late_wait(&lates->rows[i - 1]));
		assert_true(late->step_count >= (tw_late_wait(late) > 0));
		for (uint32_t k = 0; k < late->step_count; k++)
			compare_step(lates, &late->steps[k], zero);
		/* Each step is the longest wait for the message of the next. */
		for (uint32_t k = 1; k < late->step_count; k++) {
			assert_int_equal(late->steps[k].process, late->steps[k - 1].by);
			assert_true(late->steps[k].from_ns >= late->steps[k - 1].from_ns);
			assert_true(late->steps[k].to_ns <= late->steps[k - 1].to_ns);
		}
	}
}

/* ---- plays ---- */

static void at(uint64_t now)
{
	assert_true(now >= player.now);
	player.now = now;
}

/*
 *	1  sends to 2 at 11990, arrives at 12000
 *	2  runs .. 13000, is ready .. 13500, runs .. 14000 and asks 3 at 13900, is blocked .. 18910, ready .. 19500, takes the answer
 *	   at 19510 and the message at 20000
 *	3  blocked since 11500, ready from 13910 on, runs 15000 .., answers at 18900
 */
static void make_chain(void)
{
	begin_play();
	at(11000), play_in(3, 1);
	at(11500), play_out(3, true);
	at(11600), play_in(2, 1);
	at(11700), play_in(1, 0);
	at(11990), play_send(1, 2);
	at(12500), play_out(1, true);
	at(13000), play_out(2, false);
	at(13500), play_in(2, 0);
	at(13900), play_send(2, 3);
	at(14000), play_out(2, true);
	at(15000), play_in(3, 1);
	at(15010), play_take(3, 0);
	at(18900), play_send(3, 2);
	at(19000), play_out(3, true);
	at(19500), play_in(2, 0);
	at(19510), play_take(2, 1);
	at(20000), play_take(2, 0);
	at(20500), play_out(2, true);
	end_maker(player.maker, true);
}

static void test_chain(void **state)
{
	struct tw_lates lates = {0};

	make_chain();
	answer(&lates, 10);
	assert_int_equal(lates.count, 3);
	compare_rows(&lates);
	const struct tw_late *late = &lates.rows[0];
	assert_string_equal(late->text, "{m,1}");
	assert_int_equal(tw_late_wait(late), 8000);
	assert_int_equal(late->others, 1);
	assert_int_equal(late->step_count, 2);
	const struct tw_late_step *first = &late->steps[0], *second = &late->steps[1];
	assert_int_equal(first->ns[TW_DOING_RUN], 1000 + 500 + 500);
	assert_int_equal(first->ns[TW_DOING_READY], 500 + 590);
	assert_int_equal(first->ns[TW_DOING_BLOCKED], 4910);
	assert_int_equal(number_of(&lates, first->by), 3);
	assert_int_equal(number_of(&lates, second->process), 3);
	assert_int_equal(second->ns[TW_DOING_READY], 1000);
	assert_int_equal(second->ns[TW_DOING_RUN], 3900);
	assert_int_equal(first->ns[TW_DOING_UNKNOWN] + second->ns[TW_DOING_UNKNOWN], 0);
	end_answer(&lates);
}

static void test_views(void **state)
{
	char *text;

	make_chain();
	setenv("COLUMNS", "80", 1);
	text = view_answer(tw_tool_why_late, "", 0);
	view_golden("why-late-chain.txt", text);
	free(text);
	text = view_answer(tw_tool_why_late, "--json --top 1", 0);
	assert_non_null(strstr(text, "\"waited\": 8e-06"));
	assert_non_null(strstr(text, "\"blocked_by\": \"<0.46.0>\""));
	free(text);
	text = view_answer(tw_tool_why_late, "--process p3", 0);
	assert_null(strstr(text, "{m,1}"));
	assert_non_null(strstr(text, "{m,2}"));
	free(text);
}

/* One process' life: each event with the state that it ended, as the play has it. */
static void test_life(void **state)
{
	static const char *const lines[] = {
		"<0.45.0> p2: sent 1, received 2, took 2 (longest in the queue 8.00 us)",
		"ran 2.90 us, was ready 1.09 us, was blocked 4.91 us",
		" out 0   -- ran 1.40 us\n",
		" in 0   -- was ready 500 ns\n",
		" in 0   -- was blocked 4.91 us by <0.46.0> p3, was ready 590 ns\n",
		"   -- {m,3} of <0.46.0> p3, 600 ns in the queue\n",
		"   -- {m,1} of <0.44.0> p1, 8.00 us in the queue\n",
	};

	make_chain();
	char *text = view_answer(tw_tool_print, "--process <0.45.0>", 0), *at = text;
	for (size_t i = 0; i < TW_COUNT_OF(lines); i++) {
		at = strstr(at, lines[i]);
		if (!at)
			print_error("no '%s' in:\n%s", lines[i], text);
		assert_non_null(at);
	}
	assert_null(strstr(text, "<0.44.0> p1 in"));
	free(text);
	/* From a moment on, by its name, and as JSON: the same events without the others. */
	text = view_answer(tw_tool_print, "--process p2 --from 0.000008 --limit 1", 0);
	assert_non_null(strstr(text, "in 0   -- was blocked 4.91 us by <0.46.0> p3"));
	free(text);
	text = view_answer(tw_tool_print, "--process p2 --format json", 0);
	assert_null(strstr(text, "<0.44.0>\",\"kind"));
	assert_null(strstr(text, "in the queue"));
	free(text);
}

/* Mailboxes over time, against the player's notes. */
static void test_lengths(void **state)
{
	make_chain();
	char *text = view_answer(tw_tool_report, "--json", 0);
	const char *at = strstr(text, "\"mailboxes\"");
	/* p2's: 1 from 12000 on, 2 from 18910 to 19510, none at 20000. */
	assert_non_null(at);
	at = strstr(at, "\"<0.45.0>\"");
	assert_non_null(at);
	assert_non_null(strstr(at, "\"longest\": 2"));
	assert_non_null(strstr(at, "\"longest_ns\": 7910"));
	/* 8000 + 600 of 9500 ns. */
	double mean = strtod(strstr(at, "\"mean\": ") + 8, NULL);
	if (mean < 0.9052 || mean > 0.9053)
		fail_msg("mean %f", mean);
	free(text);
	setenv("COLUMNS", "80", 1);
	text = view_answer(tw_tool_report, "", 0);
	at = strstr(text, "lengths of mailboxes over time");
	assert_non_null(at);
	assert_non_null(strstr(at, "        2    0.905    0.000008  "));
	free(text);
	/* The contents of a mailbox before a part are unknown: none are reported. */
	text = view_answer(tw_tool_report, "--from 0.000003", 0);
	assert_null(strstr(text, "lengths of mailboxes"));
	free(text);
}

/* Every mailbox against the player's messages: searched for each moment at which one arrived. */
static void compare_lengths(void)
{
	struct tw_lengths lengths;
	struct tw_capture_events *events;
	const struct tw_capture_event *batch;
	struct tw_capture_info info;
	int64_t count;

	assert_int_equal(tw_capture_open(capture_path, NULL, &capture), 0);
	tw_capture_info(capture, &info);
	assert_true(tw_lengths_init(&lengths, capture, info.zero_ns, info.end_ns));
	assert_int_equal(tw_capture_events_create(capture, NULL, &events), 0);
	while ((count = tw_capture_events_next(events, &batch)) > 0)
		for (int64_t i = 0; i < count; i++)
			assert_true(tw_lengths_event(&lengths, &batch[i]));
	tw_capture_events_destroy(events);
	tw_lengths_finish(&lengths);
	for (uint32_t i = 0; i < lengths.count; i++) {
		const struct tw_length *row = &lengths.rows[i];
		uint32_t process = lengths.mailboxes.processes[row->process]->pid_number - 43, most = 0, left = 0;

		for (uint32_t k = 1; k <= player.message_count; k++) {
			uint32_t length = 0;

			if (player.messages[k].receiver != process)
				continue;
			left += player.messages[k].taken == 0;
			for (uint32_t m = 1; m <= k; m++)
				length += player.messages[m].receiver == process &&
					  (!player.messages[m].taken ||
					   player.messages[m].taken > player.messages[k].arrived);
			most = length > most ? length : most;
		}
		assert_int_equal(row->max, most);
		assert_int_equal(row->now, left);
		assert_true(i == 0 || row->max <= lengths.rows[i - 1].max);
	}
	tw_lengths_free(&lengths);
	tw_capture_close(capture);
}

static void test_random(void **state)
{
	for (uint64_t seed = 1; seed <= test_rounds(8, 4); seed++) {
		struct tw_lates lates = {0};
		uint64_t taken = 0;

		random_play(seed * 7919, 2000);
		for (uint32_t i = 1; i <= player.message_count; i++)
			taken += player.messages[i].taken != 0;
		/* Space for more than are there; each row that is asked for costs memory that is written. */
		answer(&lates, player.message_count + 10);
		assert_int_equal(lates.count, taken);
		assert_int_equal(lates.waits.count, taken);
		assert_int_equal(lates.waiting, player.message_count - taken);
		assert_true(taken > 20 || player.message_count < 40);
		compare_rows(&lates);
		end_answer(&lates);
		compare_lengths();
	}
}

/* 8,192 stretches are kept of many more. */
static void test_short_history(void **state)
{
	struct tw_lates lates = {.history = 8192};

	random_play(4711, 160000);
	answer(&lates, 20);
	assert_true(lates.mailboxes.stretch_count > 2 * 8192);
	assert_int_equal(lates.count, 20);
	compare_rows(&lates);
	end_answer(&lates);
}

/* A gap: messages in queues are not followed, and later ones are uncertain until their process waits. */
static void test_gap(void **state)
{
	const uint64_t lost[6] = {14000, 5, 0, 0, 0, 0};
	struct tw_lates lates = {0};

	begin_play();
	at(11000), play_in(1, 0);
	at(11000), play_in(2, 1);
	at(12000), play_send(1, 2);
	at(13000), play_send(1, 2);
	at(13500), play_take(2, 0);
	at(13900), become(0, 1);
	at(15000), view_put(player.maker, &(struct view_event){0, player.now, TW_EVENT_LOSS, 0, 0}, lost, 6);
	at(16000), play_send(1, 2);
	at(17000), become(1, 2),
		view_put(player.maker, &(struct view_event){1, player.now, TW_EVENT_CALL, 0, TAKE}, &(uint64_t){0}, 1);
	at(17500), play_out(2, true);
	at(18000), play_send(1, 2);
	at(18500), play_in(2, 1);
	at(19000), become(1, 2),
		view_put(player.maker, &(struct view_event){1, player.now, TW_EVENT_CALL, 0, TAKE}, &(uint64_t){0}, 1);
	end_maker(player.maker, true);
	answer(&lates, 10);
	assert_int_equal(lates.count, 3);
	assert_int_equal(lates.mailboxes.lost, 5);
	assert_int_equal(lates.mailboxes.unfollowed, 1);
	assert_int_equal(lates.unsure, 1);
	for (size_t i = 0; i < lates.count; i++)
		assert_int_equal(lates.rows[i].is_sure, strcmp(lates.rows[i].text, "{m,3}") != 0);
	end_answer(&lates);
	char *text = view_answer(tw_tool_why_late, "", 0);
	assert_non_null(strstr(text, "5 events were lost"));
	assert_non_null(strstr(text, " ?  to <0.45.0> p2"));
	free(text);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_chain),	cmocka_unit_test(test_views),  cmocka_unit_test(test_life),
		cmocka_unit_test(test_lengths), cmocka_unit_test(test_random), cmocka_unit_test(test_short_history),
		cmocka_unit_test(test_gap),
	};

	/* For the tests of other commands: the capture itself. */
	if (argc == 3 && strcmp(argv[1], "captures") == 0) {
		snprintf(capture_path, sizeof capture_path, "%s/chain.tw", argv[2]);
		make_chain();
		return 0;
	}
	if (argc == 3)
		view_golden_directory = argv[2];
	return RUN_IN_DIRECTORY(tests);
}
