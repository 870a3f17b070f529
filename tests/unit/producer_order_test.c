/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal	Events that several threads write of the same processes through tracewheel/producer.h are read in the order of the
 *	writes, as far as the program orders them; what finds no space is counted exactly; names, ports and functions are those
 *	that were defined; a thread's first event is preceded by the time of its set-up.
 * Method	Four threads pass three processes around, each under a lock of its own, and number the events of each.  With `block`
 *	every number is there; with `drop` and the smallest ring, those that are missing are as many as were counted.
 */
#include "capture_help.h"
#include "tracewheel/producer.h"

#include <errno.h>

enum { THREADS = 4, PROCESSES = 3 };

static struct tw_producer *producer;
static struct tw_producer_process processes[PROCESSES];
static uint64_t made[PROCESSES];
static pthread_mutex_t locks[PROCESSES];
static uint32_t function;
static unsigned events_each;

static struct tw_producer_name name_of(const char *text)
{
	return (struct tw_producer_name){text, strlen(text)};
}

static void *write_events(void *argument)
{
	unsigned number = (unsigned)(uintptr_t)argument;
	struct tw_producer_thread *thread = tw_producer_join(producer, number + 1);

	assert_non_null(thread);
	for (unsigned i = 0; i < events_each; i++) {
		unsigned at = (i / 3 + number) % PROCESSES;
		uint64_t word;
		const struct tw_producer_event event = {TW_CAPTURE_CALL, 0, 1, function, &word};

		pthread_mutex_lock(&locks[at]);
		word = made[at]++;
		tw_producer_write(thread, &processes[at], &event);
		pthread_mutex_unlock(&locks[at]);
	}
	tw_producer_leave(thread);
	return NULL;
}

static void begin_producer(struct tw_recorder *recorder)
{
	uint32_t module;

	assert_int_equal(tw_producer_open(tw_recorder_ring_set_path(recorder), "test", &producer), 0);
	assert_int_equal(tw_producer_define_module(producer, name_of("bank"), &module), 0);
	assert_int_equal(tw_producer_define_function(producer, module, name_of("deposit"), 2, &function), 0);
	for (unsigned i = 0; i < PROCESSES; i++) {
		pthread_mutex_init(&locks[i], NULL);
		made[i] = 0;
		assert_int_equal(tw_producer_define_process(producer, i == 2, 100 + i, i == 2 ? 0 : 7, name_of(""),
							    &processes[i]),
				 0);
	}
}

/* Writes with all threads, and drains meanwhile. */
static void run(struct tw_recorder *recorder)
{
	pthread_t threads[THREADS];

	for (uintptr_t i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, write_events, (void *)i), 0);
	for (unsigned i = 0; i < THREADS; i++)
		while (pthread_tryjoin_np(threads[i], NULL) == EBUSY)
			tw_recorder_poll(recorder, 1000000);
}

struct seen {
	uint64_t next[PROCESSES], events;
	uint64_t first_setups; /* set-ups at the time stamp of a thread's first event */
	uint64_t begun;	       /* streams that have an event, by bit */
};

/* A set-up precedes the event that it delayed, with the same time stamp. */
static void check_setup(const struct tw_capture *capture, const struct tw_capture_event *event, struct seen *seen)
{
	seen->first_setups += event->id == TW_CAPTURE_OWN_SETUP && !(seen->begun >> event->stream & 1) &&
			      tw_capture_own_ns(capture, event) > 0;
}

static void check_event(const struct tw_capture *capture, const struct tw_capture_event *event, struct seen *seen)
{
	unsigned at = event->tracee_id - 1;
	const struct tw_capture_place *place = tw_capture_place(capture, event->image, event->id);

	assert_true(at < PROCESSES);
	assert_int_equal(event->payload_words, 1);
	assert_true(event->payload[0] >= seen->next[at]);
	seen->next[at] = event->payload[0] + 1;
	seen->begun |= UINT64_C(1) << event->stream;
	seen->events++;
	assert_non_null(place);
	assert_string_equal(place->function->name, "deposit");
	assert_int_equal(place->function->arity, 2);
}

static void check_names(const struct tw_capture *capture)
{
	const struct tw_capture_tracee *named = tw_capture_tracee(capture, 0, processes[0].id),
				       *described = tw_capture_tracee(capture, 0, processes[1].id);

	assert_string_equal(named->name, "clerk");
	assert_string_equal(named->initial_call, "");
	assert_string_equal(described->initial_call, "bank:init/1");
	assert_string_equal(described->application, "");
	assert_string_equal(described->label, "a b");
}

static void read_back(struct seen *seen)
{
	struct tw_capture_events *events;
	const struct tw_capture_event *batch;
	struct tw_capture *capture;
	int64_t got;

	memset(seen, 0, sizeof *seen);
	assert_int_equal(tw_capture_open(capture_path, NULL, &capture), 0);
	assert_int_equal(tw_capture_events_create(capture, &(struct tw_capture_filter){.wants_own_time = true},
						  &events),
			 0);
	while ((got = tw_capture_events_next(events, &batch)) > 0)
		for (int64_t i = 0; i < got; i++)
			if (batch[i].kind == TW_CAPTURE_CALL)
				check_event(capture, &batch[i], seen);
			else if (batch[i].kind == TW_CAPTURE_OWN_TIME)
				check_setup(capture, &batch[i], seen);
	assert_int_equal(got, 0);
	check_names(capture);
	tw_capture_events_destroy(events);
	tw_capture_close(capture);
}

/* Records; returns the final counts. */
static struct tw_recorder_stats record(enum tw_recorder_policy policy, uint64_t ring_bytes, unsigned count)
{
	struct tw_recorder_options options = {.path = capture_path, .policy = policy, .ring_bytes = ring_bytes};
	struct tw_recorder_stats stats;
	struct tw_recorder *recorder;

	remove_folder(capture_path);
	events_each = count;
	assert_int_equal(tw_recorder_create(&options, &recorder), 0);
	begin_producer(recorder);
	run(recorder);
	assert_int_equal(tw_producer_name_process(producer, &processes[0], false, 100, 7, name_of("clerk")), 0);
	assert_int_equal(tw_producer_describe_process(producer, &processes[1], false, 101, 7,
						      &(struct tw_producer_origin){.initial_call =
											   name_of("bank:init/1"),
										   .label = name_of("a\nb")}),
			 0);
	assert_false(tw_producer_is_closed(producer));
	tw_recorder_close(recorder);
	assert_true(tw_producer_is_closed(producer));
	tw_producer_close(producer);
	assert_int_equal(tw_recorder_finish(recorder, &stats), 0);
	return stats;
}

static void order_is_that_of_the_writes(void **state)
{
	struct tw_recorder_stats stats = record(TW_RECORDER_BLOCK, 0, 30000);
	struct seen seen;

	read_back(&seen);
	assert_int_equal(stats.lost[TW_LOST_FULL], 0);
	assert_int_equal(seen.events, 30000 * THREADS);
	for (unsigned i = 0; i < PROCESSES; i++)
		assert_int_equal(seen.next[i], made[i]);
}

static void losses_are_counted_exactly(void **state)
{
	struct tw_recorder_stats stats = record(TW_RECORDER_DROP, 64 << 10, 200000);
	struct seen seen;
	uint64_t lost = 0;

	for (unsigned cause = 0; cause < TW_LOST_CAUSES; cause++)
		lost += stats.lost[cause];
	read_back(&seen);
	assert_int_equal(seen.events + lost, 200000 * THREADS);
	assert_int_equal(seen.events, stats.events);
}

/* However short it was. */
static void a_first_event_has_its_set_up(void **state)
{
	struct seen seen;

	record(TW_RECORDER_BLOCK, 0, 10);
	read_back(&seen);
	assert_int_equal(seen.events, 10 * THREADS);
	assert_true(seen.first_setups >= THREADS);
}

static void what_is_no_ring_set_is_refused(void **state)
{
	struct tw_producer *none = NULL;

	assert_int_equal(tw_producer_open("/nowhere", "test", &none), TW_ENOENT);
	assert_null(none);
	tw_producer_close(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(order_is_that_of_the_writes),
		cmocka_unit_test(losses_are_counted_exactly),
		cmocka_unit_test(a_first_event_has_its_set_up),
		cmocka_unit_test(what_is_no_ring_set_is_refused),
	};

	return RUN_IN_DIRECTORY(tests);
}
