/* SPDX-License-Identifier: Apache-2.0 */
/*
 * message_bench.c - what does a message cost that a run-time reports?
 *
 * Unit	nanoseconds an iteration, the loop included: one message, reported as sent, as received, or both. message_path
 *	is the message path of a run-time without hooks: the difference between message_off and it is the cost of hooks
 *	without a session. values: sessions.  Each run makes a scheduler of its own thread, which runs no other row.
 * Method	The message is a tuple of 4 words, {deposit,Number,Amount}; the receiver a pid.  Rings overwritten by their
 *	producer, so that no consumer interferes.
 */
#include "bench/bench.h"
#include "bench/recorded.h"
#include "ringbuf/ringset.h"
#include "session/session.h"
#include "tracewheel/runtime.h"
#include "tracewheel/tracewheel.h"

#include <stdlib.h>
#include <string.h>

#define THREADS 2

static struct tw_rs rs[2];
static struct tw_session *session[2];
static unsigned session_count;

/* State of each thread. */
struct side {
	struct tw_process *sender, *receiver;
	struct tw_term message, to, from;
	struct tw_arena arena;
	char buffer[1024];
	uint64_t mailbox[64];
};
static struct side sides[THREADS];

/* Thread 0, before the others run their loops. */
static void open_sessions(unsigned count)
{
	struct tw_rs_options options = {.policy = TW_RB_OVERWRITE, .has_fixed_rings = true};

	session_count = count;
	for (unsigned s = 0; s < count; s++) {
		uint32_t image;

		memset(&rs[s], 0, sizeof rs[s]);
		TW_BENCH_MUST(!tw_rs_create(&rs[s], &options));
		TW_BENCH_MUST(!tw_rs_image_claim(&rs[s], &image));
		TW_BENCH_MUST(!tw_session_make("bench", &rs[s], &session[s]));
	}
}

static void trace(struct tw_process *process, uint32_t flags)
{
	for (unsigned s = 0; s < session_count; s++)
		TW_BENCH_MUST(tw_trace_process(session[s], tw_process_pid(process), true, flags) == 1);
}

/* The events that this thread has made in each session, which are the same number. */
static uint64_t events(void)
{
	uint64_t count = session_count ? events_of(session[0]) : 0;

	for (unsigned s = 0; s < session_count; s++)
		TW_BENCH_MUST(events_of(session[s]) == count && !refused_of(session[s]));
	return count;
}

/* So many messages fill a ring. */
static uint64_t fill_messages(const struct tw_bench *bench)
{
	return fill(bench) / 4;
}

static void close_sessions(void)
{
	for (unsigned s = 0; s < session_count; s++) {
		TW_BENCH_MUST(tw_session_destroy(session[s]) == 1);
		tw_session_put(session[s]);
		tw_rs_destroy(&rs[s]);
	}
	session_count = 0;
}

static struct side *open_side(int index)
{
	struct side *side = &sides[index];

	tw_bench_pin(index + 1);
	tw_scheduler_declare();
	TW_BENCH_MUST(!tw_process_create("sender", &side->sender));
	TW_BENCH_MUST(!tw_process_create("receiver", &side->receiver));
	tw_arena_init_fixed(&side->arena, side->buffer, sizeof side->buffer);
	side->message = tw_term_tuple(&side->arena,
				      (struct tw_term[]){tw_term_atom_z("deposit"), tw_term_integer(&side->arena, 42),
							 tw_term_integer(&side->arena, 123456)},
				      3);
	side->to = tw_process_term(&side->arena, side->receiver);
	side->from = tw_process_term(&side->arena, side->sender);
	tw_process_in(side->sender);
	return side;
}

static void close_side(struct side *side)
{
	tw_process_out();
	tw_process_exit(side->sender);
	tw_process_exit(side->receiver);
}

/* The other work of a run-time's loop: a slot of a mailbox is written and read. */
static inline void pass(struct side *side, uint64_t i)
{
	side->mailbox[i & 63] = i;
	__asm__ volatile("" : : "r"(side->mailbox[(i + 1) & 63]) : "memory");
}

TW_BENCH(message_path, .is_apart = true)
{
	struct side *side = open_side(0);

	for (uint64_t i = 0, n = tw_bench_start(bench); i < n; i++)
		pass(side, i);
	tw_bench_stop(bench);
	tw_bench_is_alone(bench);
	close_side(side);
}

/* Each message makes so many events. */
static void send_and_receive(struct tw_bench *bench, struct side *side, unsigned made)
{
	uint64_t before;

	for (uint64_t i = 0; made && i < fill_messages(bench); i++)
		tw_process_send(side->sender, side->message, side->to);
	before = events();
	for (uint64_t i = 0, n = tw_bench_start(bench); i < n; i++) {
		tw_process_send(side->sender, side->message, side->to);
		pass(side, i);
		tw_process_receive(side->receiver, side->message, side->from);
	}
	tw_bench_stop(bench);
	tw_bench_happened(bench, "events", events() - before, made);
}

TW_BENCH(message_off, .is_apart = true)
{
	struct side *side = open_side(0);

	send_and_receive(bench, side, 0);
	close_side(side);
}

/* Another process is traced. */
TW_BENCH(message_not_traced, .is_apart = true)
{
	struct side *side = open_side(0);
	struct tw_process *other;

	open_sessions(1);
	TW_BENCH_MUST(!tw_process_create("other", &other));
	trace(other, TW_FLAG_SEND | TW_FLAG_RECEIVE);
	send_and_receive(bench, side, 0);
	tw_process_exit(other);
	close_side(side);
	close_sessions();
}

static void run_sends(struct tw_bench *bench, struct side *side)
{
	uint64_t before;

	for (uint64_t i = 0; i < fill_messages(bench); i++)
		tw_process_send(side->sender, side->message, side->to);
	before = events();
	for (uint64_t i = 0, n = tw_bench_start(bench); i < n; i++) {
		tw_process_send(side->sender, side->message, side->to);
		pass(side, i);
	}
	tw_bench_stop(bench);
	tw_bench_happened(bench, "events", events() - before, 1);
}

TW_BENCH(message_send, .is_apart = true, .values = {1, 2})
{
	struct side *side = open_side(0);

	open_sessions((unsigned)bench->value);
	trace(side->sender, TW_FLAG_SEND);
	run_sends(bench, side);
	close_side(side);
	close_sessions();
}

/* A specification that accepts all of them, by the interpreter. */
TW_BENCH(message_send_pattern, .is_apart = true)
{
	struct side *side = open_side(0);
	static const char spec[] = "[{['_',{deposit,'_','$1'}],[{'>','$1',100}],[]}]";

	open_sessions(1);
	trace(side->sender, TW_FLAG_SEND);
	TW_BENCH_MUST(tw_trace_send_text(session[0], spec, strlen(spec), NULL) == 1);
	run_sends(bench, side);
	close_side(side);
	close_sessions();
}

/* The sender's thread makes the receiver's event. */
TW_BENCH(message_receive, .is_apart = true, .values = {1, 2})
{
	struct side *side = open_side(0);
	uint64_t before;

	open_sessions((unsigned)bench->value);
	trace(side->receiver, TW_FLAG_RECEIVE);
	for (uint64_t i = 0; i < fill_messages(bench); i++)
		tw_process_receive(side->receiver, side->message, side->from);
	before = events();
	for (uint64_t i = 0, n = tw_bench_start(bench); i < n; i++) {
		pass(side, i);
		tw_process_receive(side->receiver, side->message, side->from);
	}
	tw_bench_stop(bench);
	tw_bench_happened(bench, "events", events() - before, 1);
	close_side(side);
	close_sessions();
}

/* The whole message: two events, and two switches between their processes. */
TW_BENCH(message_both, .is_apart = true, .values = {1, 2})
{
	struct side *side = open_side(0);

	open_sessions((unsigned)bench->value);
	trace(side->sender, TW_FLAG_SEND);
	trace(side->receiver, TW_FLAG_RECEIVE);
	send_and_receive(bench, side, 2);
	close_side(side);
	close_sessions();
}

/* ---- sequential tracing ---- */

/* How far a pair goes. */
enum seq_state { SEQ_OFF, SEQ_ANOTHERS, SEQ_TOKEN, SEQ_EVENTS };

/* A message with space for a token is sent and taken, by the thread that runs the sender. */
static void run_seq(struct tw_bench *bench, enum seq_state state, bool is_pair_traced, bool is_to_itself)
{
	struct side *side = open_side(0);
	struct tw_process *receiver = is_to_itself ? side->sender : side->receiver;
	struct tw_seq_token token;
	struct tw_process *other = NULL;
	uint64_t before;

	open_sessions(1);
	tw_seq_reset_trace();
	if (is_pair_traced) {
		trace(side->sender, TW_FLAG_SEND);
		trace(receiver, TW_FLAG_RECEIVE);
	}
	if (state == SEQ_ANOTHERS) {
		TW_BENCH_MUST(!tw_process_create("other", &other));
		tw_process_in(other);
		tw_seq_set_label(tw_term_integer(NULL, 1));
		tw_process_in(side->sender);
	} else if (state != SEQ_OFF) {
		tw_seq_set_label(tw_term_integer(NULL, 17));
		tw_seq_set_flags(TW_SEQ_SEND | TW_SEQ_RECEIVE, true);
	}
	if (state == SEQ_EVENTS)
		TW_BENCH_MUST(!tw_seq_set_system_tracer(session[0], NULL));
	for (uint64_t i = 0; is_pair_traced && i < fill_messages(bench); i++)
		tw_process_send(side->sender, side->message, side->to);
	for (uint64_t i = 0; state == SEQ_EVENTS && !is_pair_traced && i < fill_messages(bench); i++)
		tw_seq_send(side->sender, side->to, side->message, &token);
	before = events();
	for (uint64_t i = 0, n = tw_bench_start(bench); i < n; i++) {
		if (is_pair_traced)
			tw_process_send(side->sender, side->message, side->to);
		tw_seq_send(side->sender, side->to, side->message, &token);
		pass(side, i);
		if (is_pair_traced)
			tw_process_receive(receiver, side->message, side->from);
		tw_seq_receive(receiver, &token, side->message);
	}
	tw_bench_stop(bench);
	tw_bench_happened(bench, "events", events() - before, (is_pair_traced ? 2 : 0) + (state == SEQ_EVENTS ? 2 : 0));
	tw_bench_happened_in_all(bench, "tokens", !tw_seq_token_is_empty(&token),
				 state == SEQ_TOKEN || state == SEQ_EVENTS);
	tw_seq_reset_trace();
	if (other)
		tw_process_exit(other);
	close_side(side);
	close_sessions();
}

/* No process has a token: the difference to message_off is the cost of the two calls in a run-time that has the others too. */
TW_BENCH(seq_off, .is_apart = true)
{
	struct side *side = open_side(0);
	struct tw_seq_token token;

	for (uint64_t i = 0, n = tw_bench_start(bench); i < n; i++) {
		tw_process_send(side->sender, side->message, side->to);
		tw_seq_send(side->sender, side->to, side->message, &token);
		pass(side, i);
		tw_process_receive(side->receiver, side->message, side->from);
		tw_seq_receive(side->receiver, &token, side->message);
	}
	tw_bench_stop(bench);
	tw_bench_happened_in_all(bench, "tokens", !tw_seq_token_is_empty(&token), 0);
	close_side(side);
}

/* The difference to message_path is the cost of the two calls alone. */
TW_BENCH(seq_off_alone, .is_apart = true)
{
	run_seq(bench, SEQ_OFF, false, false);
}

/* Another process has one. */
TW_BENCH(seq_not_traced, .is_apart = true)
{
	run_seq(bench, SEQ_ANOTHERS, false, false);
}

/* The token passes, and there is no system tracer. */
TW_BENCH(seq_token, .is_apart = true)
{
	run_seq(bench, SEQ_TOKEN, false, false);
}

/* Two events, of a process that sends to itself: without a switch between processes. */
TW_BENCH(seq_pair, .is_apart = true)
{
	run_seq(bench, SEQ_EVENTS, false, true);
}

/* Two events, of two processes: with two switches in the ring, as in message_both. */
TW_BENCH(seq_both, .is_apart = true)
{
	run_seq(bench, SEQ_EVENTS, false, false);
}

/* With those of send and receive, as message_both: four events. */
TW_BENCH(seq_and_message_both, .is_apart = true)
{
	run_seq(bench, SEQ_EVENTS, true, false);
}

/* ---- long message queues ---- */

/*
 * The length of a queue changes by one, without a message.  @enables: a length for each session, whose monitor says {10,Length}.
 */
static void run_mailbox(struct tw_bench *bench, const uint64_t *enables, unsigned sessions, uint64_t length)
{
	uint64_t made = 0, watching = 0;

	struct tw_tracer tracer = {.kind = TW_TRACER_QUEUE};
	struct side *side = open_side(0);

	for (unsigned s = 0; s < sessions; s++) {
		struct tw_term limits[2] = {tw_term_integer(&side->arena, 10),
					    tw_term_integer(&side->arena, (int64_t)enables[s])};

		TW_BENCH_MUST(!tw_session_create("bench", &tracer, &session[s]));
		TW_BENCH_MUST(!tw_trace_system(session[s], tw_term_atom_z("long_message_queue"),
					       tw_term_tuple(&side->arena, limits, 2)));
	}
	tw_process_mailbox(side->receiver, length);
	for (uint64_t i = 0, n = tw_bench_start(bench); i < n; i++)
		tw_process_mailbox(side->receiver, length + (i & 1));
	tw_bench_stop(bench);
	for (unsigned s = 0; s < sessions; s++) {
		made += events_of(session[s]);
		watching += length >= enables[s];
		TW_BENCH_MUST(tw_session_destroy(session[s]) == 1);
		tw_session_put(session[s]);
	}
	/* The queue became long once, before the loop. */
	tw_bench_happened_in_all(bench, "events", made, watching);
	close_side(side);
}

TW_BENCH(mailbox_unwatched, .is_apart = true)
{
	run_mailbox(bench, NULL, 0, 100);
}

/* The queue is long for no session, */
TW_BENCH(mailbox_short, .is_apart = true, .values = {1, 2})
{
	run_mailbox(bench, (uint64_t[]){1000, 2000}, (unsigned)bench->value, 100);
}

/* for all, */
TW_BENCH(mailbox_long, .is_apart = true, .values = {1, 2})
{
	run_mailbox(bench, (uint64_t[]){1000, 2000}, (unsigned)bench->value, 3000);
}

/* and for one of two. */
TW_BENCH(mailbox_between, .is_apart = true)
{
	run_mailbox(bench, (uint64_t[]){1000, 2000}, 2, 1500);
}

/*
 * A call of a process: 1 with its calls traced only; 2 with its messages traced too, so that other threads make events
 * for it.
 */
TW_BENCH(message_call, .is_apart = true, .values = {1, 2})
{
	static struct tw_declared_function step = TW_DECLARED_FUNCTION("message_bench", "step", 2);
	struct side *side = open_side(0);
	uint64_t before;

	TW_BENCH_MUST(!tw_function_declare(&step));
	open_sessions(1);
	trace(side->sender, bench->value == 1 ? TW_FLAG_CALL : TW_FLAG_CALL | TW_FLAG_SEND | TW_FLAG_RECEIVE);
	TW_BENCH_MUST(tw_trace_function(session[0], "message_bench", "_", TW_ARITY_ANY, TW_MATCH_TRUE,
					TW_FUNCTION_LOCAL) == 1);
	for (uint64_t i = 0; i < fill(bench); i++)
		tw_call2(&step, i, i);
	before = events();
	for (uint64_t i = 0, n = tw_bench_start(bench); i < n; i++)
		tw_call2(&step, i, i);
	tw_bench_stop(bench);
	tw_bench_happened(bench, "events", events() - before, 1);
	close_side(side);
	close_sessions();
}

/* The first thread has opened the session. */
static pthread_barrier_t both;

static __attribute__((constructor)) void init_both(void)
{
	pthread_barrier_init(&both, NULL, THREADS);
}

static void run_threads(struct tw_bench *bench, uint32_t flags)
{
	struct side *side = open_side(bench->thread_index);
	uint64_t made, before;

	if (bench->thread_index == 0) {
		open_sessions(1);
		/* Every process, also those of the other thread. */
		TW_BENCH_MUST(tw_trace_process(session[0], TW_PID_ALL, true, flags) >= 1);
	}
	pthread_barrier_wait(&both);
	for (uint64_t i = 0; i < fill_messages(bench); i++)
		tw_process_send(side->sender, side->message, side->to);
	before = events_of(session[0]);
	for (uint64_t i = 0, n = tw_bench_start(bench); i < n; i++) {
		tw_process_send(side->sender, side->message, side->to);
		pass(side, i);
	}
	made = events_of(session[0]) - before;
	TW_BENCH_MUST(!refused_of(session[0]));
	/* All threads have read their rings when the first one goes on. */
	tw_bench_stop(bench);
	tw_bench_happened(bench, "events", made, 1);
	if (bench->thread_index == 0)
		close_sessions();
	close_side(side);
}

/* Two threads send at once; strict stamps take their numbers from one counter. */
TW_BENCH(message_two_threads, .is_apart = true, .threads = THREADS, .is_cross_core = true)
{
	run_threads(bench, TW_FLAG_SEND);
}

TW_BENCH(message_two_threads_strict, .is_apart = true, .threads = THREADS, .is_cross_core = true)
{
	run_threads(bench, TW_FLAG_SEND | TW_FLAG_STRICT_MONOTONIC_TIMESTAMP);
}
