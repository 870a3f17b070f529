/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal	The causal order that serials give is the true one.
 * Method	Random graphs of messages: processes that send, take messages in any order, print, begin traces and leave them, while
 *		all is reset now and then; on one thread and on three.  Each message holds a number that nothing else has, and
 *		each thread writes down what its processes do: that is the truth.  From the events alone, a receive is matched
 *		with the send of the same label, sender and serial.  The number of each message, the order of each process, and
 *		Previous, which must be what the process received last, have to agree.  A negative control matches without the sender
 *		and must find differences.
 */
#include "pipeline/hit/seq.h"
#include "session_bed.h"
#include "term/term.h"
#include "tests/common/random.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#define THREADS	   3
#define PROCESSES  4 /* of each thread */
#define ALL	   (THREADS * PROCESSES)
#define STEPS	   2500
#define MAILBOX	   64
#define EVENTS_MAX 40000

struct message {
	struct tw_seq_token token;
	uint64_t number;
};

struct peer {
	struct tw_process *process;
	tw_pid pid;
	pthread_mutex_t lock;
	struct message mailbox[MAILBOX];
	unsigned count;
};

struct event {
	unsigned kind;
	uint32_t process; /* number among the peers */
	int64_t label, previous, current;
	uint64_t from, number;
};

struct events {
	struct event *event;
	size_t count;
};

struct side {
	pthread_t thread;
	unsigned first;	     /* of its processes */
	unsigned peer_count; /* of all threads */
	unsigned steps;
	uint64_t random;
	struct events truth;
};

static struct bed bed;
static struct peer peers[ALL];
static _Atomic uint64_t numbers;
static uint64_t seed;

static uint64_t draw(struct side *side, uint64_t below)
{
	return random_below(&side->random, below);
}

static void add(struct events *events, struct event event)
{
	assert_true(events->count < EVENTS_MAX);
	events->event[events->count++] = event;
}

/* ---- what the processes do ---- */

static uint64_t next_number(void)
{
	return tw_fetch_add_relaxed(&numbers, 1) + 1;
}

static int64_t label_of(const struct tw_seq_token *token)
{
	const struct tw_seq_words *words = (const struct tw_seq_words *)token->words;

	return words->version ? tw_small_value(tw_word(words->label)) : -1;
}

static void send_one(struct side *side, unsigned me)
{
	struct peer *to = &peers[draw(side, side->peer_count)];
	struct message message = {.number = next_number()};

	pthread_mutex_lock(&to->lock);
	if (to->count < MAILBOX) {
		tw_seq_send(peers[me].process, tw_atom(TW_ATOM_OK), tw_small((int64_t)message.number), &message.token);
		to->mailbox[to->count++] = message;
		if (message.token.words[0])
			add(&side->truth, (struct event){.kind = TW_EVENT_SEQ_SEND,
							 .process = me,
							 .label = label_of(&message.token),
							 .number = message.number});
	}
	pthread_mutex_unlock(&to->lock);
}

/* Any message, not only the oldest. */
static void take_any(struct side *side, unsigned me)
{
	struct peer *self = &peers[me];
	struct tw_seq_token now;
	struct message message;
	unsigned at;

	pthread_mutex_lock(&self->lock);
	if (!self->count) {
		pthread_mutex_unlock(&self->lock);
		return;
	}
	at = (unsigned)draw(side, self->count);
	message = self->mailbox[at];
	self->mailbox[at] = self->mailbox[--self->count];
	pthread_mutex_unlock(&self->lock);
	tw_seq_receive(self->process, &message.token, tw_small((int64_t)message.number));
	tw_seq_get_token(&now);
	/* None, if all was reset since it was sent. */
	if (now.words[0])
		add(&side->truth, (struct event){.kind = TW_EVENT_SEQ_RECEIVE,
						 .process = me,
						 .label = label_of(&now),
						 .number = message.number});
}

static void print_one(struct side *side, unsigned me)
{
	struct tw_seq_token now;
	uint64_t number = next_number();

	tw_seq_get_token(&now);
	tw_seq_print(tw_small((int64_t)number));
	if (now.words[0])
		add(&side->truth, (struct event){.kind = TW_EVENT_SEQ_PRINT,
						 .process = me,
						 .label = label_of(&now),
						 .number = number});
}

static void step(struct side *side, bool may_reset)
{
	unsigned me = side->first + (unsigned)draw(side, PROCESSES), what = (unsigned)draw(side, 1000);

	tw_process_in(peers[me].process);
	if (what < 400) {
		send_one(side, me);
	} else if (what < 850) {
		take_any(side, me);
	} else if (what < 950) {
		print_one(side, me);
	} else if (what < 985) {
		tw_seq_set_label(tw_small((int64_t)next_number()));
		tw_seq_set_flags(TW_SEQ_SEND | TW_SEQ_RECEIVE | TW_SEQ_PRINT, true);
	} else if (what < 998) {
		tw_seq_set_token(NULL, NULL);
	} else if (may_reset) {
		tw_seq_reset_trace();
	}
}

static void *run(void *arg)
{
	struct side *side = arg;

	tw_scheduler_declare();
	for (unsigned i = 0; i < side->steps; i++)
		step(side, side->steps == STEPS);
	tw_process_out();
	return NULL;
}

/* ---- the events ---- */

static uint32_t peer_of(uint64_t pid)
{
	for (uint32_t i = 0; i < ALL; i++)
		if (peers[i].pid == pid)
			return i;
	fail_msg("an event of process %llu", (unsigned long long)pid);
	return 0;
}

static int64_t integer_in(struct tw_term term)
{
	int64_t value = -1;

	assert_int_equal(tw_term_get_int64(term, &value), 0);
	return value;
}

static struct event event_of(const struct tw_rb_record *record, uint32_t tracee)
{
	const uint64_t *payload = tw_event_payload(record);
	const uint8_t *at = (const uint8_t *)(payload + 1);
	struct event event = {.kind = TW_RB_HEAD_KIND(record->head), .process = peer_of(tracee)};
	struct tw_identifier from;
	struct tw_term terms[5];
	struct tw_arena arena;
	char buffer[1024];
	size_t one;

	tw_arena_init_fixed(&arena, buffer, sizeof buffer);
	for (unsigned i = 0; i < 5; i++, at += one)
		assert_int_equal(tw_etf_decode(&arena, at, (size_t)(payload[0] >> 32), NULL, &one, &terms[i]), 0);
	event.label = integer_in(terms[0]);
	event.previous = integer_in(tw_term_element(terms[1], 0));
	event.current = integer_in(tw_term_element(terms[1], 1));
	assert_int_equal(tw_term_get_identifier(terms[2], &from), 0);
	event.from = peer_of(from.words[0]);
	event.number = (uint64_t)integer_in(terms[4]);
	return event;
}

/* Ring by ring: those of each process are in its order. */
static void read_events(struct events *events)
{
	for (uint32_t i = 0; i < tw_rs_scan(&bed.rs); i++) {
		struct tw_rb_shared *ring = tw_rs_ring(&bed.rs, i);
		uint32_t tracee = ring->tracee_id;
		const uint8_t *at;
		uint64_t end;
		int64_t bytes;

		assert_int_equal(ring->first_pos, bed.pos[i]);
		while ((bytes = tw_rb_peek(ring, bed.pos[i], TW_BLOCK_RAW_BYTES_MAX, &at, &end)) > 0) {
			for (int64_t b = 0; b < bytes;) {
				const struct tw_rb_record *record = (const struct tw_rb_record *)(at + b);
				unsigned kind = TW_RB_HEAD_KIND(record->head);

				assert_int_not_equal(kind, TW_EVENT_LOSS);
				if (kind == TW_EVENT_SWITCH)
					tracee = TW_RB_HEAD_ID(record->head);
				else if (kind >= TW_EVENT_SEQ_SEND && kind <= TW_EVENT_SEQ_PRINT)
					add(events, event_of(record, tracee));
				b += TW_RB_HEAD_BYTES(record->head);
			}
			bed.pos[i] = end;
		}
	}
}

/* ---- the two orders ---- */

/* A stable sort by process. */
static void by_processes(struct events *events)
{
	struct event *out = malloc(events->count * sizeof *out);
	size_t count = 0;

	for (uint32_t process = 0; process < ALL; process++)
		for (size_t i = 0; i < events->count; i++)
			if (events->event[i].process == process)
				out[count++] = events->event[i];
	memcpy(events->event, out, count * sizeof *out);
	free(out);
}

/* The number of sends that the serial of this receive fits, and the message of the last. */
static unsigned sends_of(const struct events *events, const struct event *receive, bool by_sender, uint64_t *number)
{
	unsigned count = 0;

	for (size_t i = 0; i < events->count; i++) {
		const struct event *send = &events->event[i];

		if (send->kind == TW_EVENT_SEQ_SEND && send->label == receive->label &&
		    send->current == receive->current && (!by_sender || send->process == receive->from)) {
			*number = send->number;
			count++;
		}
	}
	return count;
}

/* Receives that have not exactly the send of their own message. */
static size_t mismatches(const struct events *events, bool by_sender)
{
	size_t wrong = 0;

	for (size_t i = 0; i < events->count; i++) {
		const struct event *receive = &events->event[i];
		uint64_t number = 0;

		if (receive->kind == TW_EVENT_SEQ_RECEIVE)
			wrong += sends_of(events, receive, by_sender, &number) != 1 || number != receive->number;
	}
	return wrong;
}

/*
 * In each process: sends and prints count on, beyond all that was received; Previous is what was received last.  Where Current
 * falls at a send, there was a reset, and the clocks began at 0.
 */
static void check_clocks(const struct events *events, bool has_resets)
{
	int64_t previous = 0, current = 0;

	for (size_t i = 0; i < events->count; i++) {
		const struct event *event = &events->event[i];

		if (i == 0 || event->process != events->event[i - 1].process)
			previous = current = 0;
		if (event->kind == TW_EVENT_SEQ_RECEIVE) {
			previous = event->current;
			current = event->current > current ? event->current : current;
			continue;
		}
		assert_int_equal(event->from, event->process);
		assert_true(has_resets || event->current > current);
		if (event->current <= current)
			assert_true(event->previous == 0 || event->previous == previous);
		else
			assert_int_equal(event->previous, previous);
		previous = event->previous;
		current = event->current;
	}
}

static void check_truth(const struct events *truth, const struct events *events)
{
	assert_int_equal(truth->count, events->count);
	for (size_t i = 0; i < truth->count; i++) {
		assert_int_equal(truth->event[i].kind, events->event[i].kind);
		assert_int_equal(truth->event[i].process, events->event[i].process);
		assert_int_equal(truth->event[i].number, events->event[i].number);
		assert_int_equal(truth->event[i].label, events->event[i].label);
	}
}

/* ---- cases ---- */

static void play(unsigned threads, unsigned steps)
{
	struct tw_rs_options options = {.ring_bytes = 1 << 22, .cap_bytes = 1 << 26, .has_fixed_rings = true};
	struct events events = {calloc(EVENTS_MAX, sizeof(struct event)), 0};
	struct events truth = {calloc(EVENTS_MAX, sizeof(struct event)), 0};
	static struct side sides[THREADS];
	size_t controls;

	open_bed_with(&bed, "seq", &options);
	tw_seq_reset_trace();
	for (unsigned i = 0; i < ALL; i++) {
		peers[i].count = 0;
		pthread_mutex_init(&peers[i].lock, NULL);
		assert_int_equal(tw_process_create("peer", &peers[i].process), 0);
		peers[i].pid = tw_process_pid(peers[i].process);
	}
	assert_int_equal(tw_seq_set_system_tracer(bed.session, NULL), 0);
	for (unsigned i = 0; i < threads; i++) {
		sides[i] = (struct side){.first = i * PROCESSES,
					 .peer_count = threads * PROCESSES,
					 .steps = steps,
					 .random = ++seed * UINT64_C(0x9e3779b97f4a7c15) | 1};
		sides[i].truth.event = calloc(EVENTS_MAX, sizeof(struct event));
		for (unsigned k = 0; k < 8; k++)
			draw(&sides[i], 2);
		pthread_create(&sides[i].thread, NULL, run, &sides[i]);
	}
	for (unsigned i = 0; i < threads; i++) {
		pthread_join(sides[i].thread, NULL);
		for (size_t k = 0; k < sides[i].truth.count; k++)
			add(&truth, sides[i].truth.event[k]);
		free(sides[i].truth.event);
	}
	read_events(&events);
	by_processes(&events);
	by_processes(&truth);
	assert_true(events.count > 100);
	check_truth(&truth, &events);
	check_clocks(&events, steps == STEPS);
	assert_int_equal(mismatches(&events, true), 0);
	controls = mismatches(&events, false);
	assert_true(controls > 0);
	printf("%zu events on %u threads; matched without their senders, %zu receives would be wrong\n", events.count,
	       threads, controls);
	tw_seq_reset_trace();
	for (unsigned i = 0; i < ALL; i++)
		tw_process_exit(peers[i].process);
	close_bed(&bed);
	free(events.event);
	free(truth.event);
}

/* With resets, which one thread does between its steps. */
static void on_one_thread(void **state)
{
	for (unsigned i = 0; i < 5; i++)
		play(1, STEPS);
}

/* At any moment of any thread; without resets, whose moment no thread could write down for the others. */
static void on_three_threads(void **state)
{
	for (unsigned i = 0; i < 5; i++)
		play(THREADS, STEPS - 1);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(on_one_thread), cmocka_unit_test(on_three_threads)};

	seed = argc > 1 ? strtoull(argv[1], NULL, 0) : tw_clock_monotonic_ns();
	printf("seed %llu\n", (unsigned long long)seed);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
