/* SPDX-License-Identifier: Apache-2.0 */
/*
 * seq_requests.c - follows one request of many through threads and queues.
 *
 * A teller takes requests, a thread checks each, another one books it; two queues lie between them. Which requests are followed is said
 * by a match specification: those of more than 1,000 get a token, with their number as label. The token passes through both
 * queues, so that the other threads report what belongs to such a request, and nothing of the others.
 *
 *	$ build/release/examples/example-seq_requests
 *	{seq_trace,7,{send,{0,1},<0.1.0>,undefined,{check,7}}}
 *	{seq_trace,7,{'receive',{0,1},<0.1.0>,<0.2.0>,{check,7}}}
 *	{seq_trace,7,{send,{1,2},<0.2.0>,undefined,{book,7}}}
 *	{seq_trace,7,{'receive',{1,2},<0.2.0>,<0.3.0>,{book,7}}}
 *	{seq_trace,7,{print,{2,3},<0.3.0>,[],booked}}
 */
#include <tracewheel/match.h>
#include <tracewheel/tracewheel.h>

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#define REQUESTS 10

TW_DEFINE_FUNCTION(take_function, "bank", "take", 2);

struct job {
	struct tw_seq_token token; /* passes with the job */
	uint64_t number, amount;
};

/* A queue of one job, which stands for queues of any kind. */
struct queue {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct job job;
	bool is_full;
};
static struct queue to_check = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, {{{0}}, 0, 0}, false};
static struct queue to_book = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, {{{0}}, 0, 0}, false};

/* {What,Number}; built only where an event is made. */
static struct tw_term message_of(struct tw_arena *arena, const char *what, uint64_t number)
{
	return tw_term_tuple(arena, (struct tw_term[]){tw_term_atom_z(what), tw_term_unsigned(arena, number)}, 2);
}

static void put(struct queue *queue, const char *what, struct job job)
{
	struct tw_arena arena;
	char buffer[128];

	tw_arena_init_fixed(&arena, buffer, sizeof buffer);
	tw_seq_pass(&job.token, (struct tw_term){0},
		    tw_seq_is_active() ? message_of(&arena, what, job.number) : tw_term_nil());
	pthread_mutex_lock(&queue->lock);
	while (queue->is_full)
		pthread_cond_wait(&queue->changed, &queue->lock);
	queue->job = job;
	queue->is_full = true;
	pthread_cond_broadcast(&queue->changed);
	pthread_mutex_unlock(&queue->lock);
}

static struct job take(struct queue *queue, const char *what)
{
	struct tw_arena arena;
	char buffer[128];
	struct job job;

	pthread_mutex_lock(&queue->lock);
	while (!queue->is_full)
		pthread_cond_wait(&queue->changed, &queue->lock);
	job = queue->job;
	queue->is_full = false;
	pthread_cond_broadcast(&queue->changed);
	pthread_mutex_unlock(&queue->lock);
	tw_arena_init_fixed(&arena, buffer, sizeof buffer);
	tw_seq_accept(&job.token, tw_seq_is_active() ? message_of(&arena, what, job.number) : tw_term_nil());
	return job;
}

static void *check(void *arg)
{
	for (int i = 0; i < REQUESTS; i++)
		put(&to_book, "book", take(&to_check, "check"));
	return arg;
}

static void *book(void *arg)
{
	for (int i = 0; i < REQUESTS; i++) {
		take(&to_book, "book");
		tw_seq_print(tw_term_atom_z("booked"));
	}
	return arg;
}

/* A request begins: the guard decides whether it is followed. */
static void request(uint64_t number, uint64_t amount)
{
	tw_call2(&take_function, number, amount);
	put(&to_check, "check", (struct job){.number = number, .amount = amount});
	/* The next one is another request. */
	tw_seq_set_token(NULL, NULL);
}

static void show(struct tw_session *session)
{
	struct tw_arena arena;
	struct tw_term message;
	char text[1024];

	tw_arena_init(&arena, 1 << 20);
	while (tw_queue_receive(session, 0, &arena, &message) == 0) {
		tw_term_format(message, TW_PRINT_WRITE, text, sizeof text);
		puts(text);
		tw_arena_reset(&arena);
	}
	tw_arena_fini(&arena);
}

int main(void)
{
	static const char spec[] =
		"[{['$1','$2'],[{'>','$2',1000}],"
		"[{set_seq_token,label,'$1'},{set_seq_token,send,true},{set_seq_token,'receive',true},"
		"{set_seq_token,print,true},{message,false}]},"
		"{'_',[],[{message,false}]}]";
	struct tw_tracer tracer = {.kind = TW_TRACER_QUEUE};
	struct tw_match_program *program = NULL;
	struct tw_session *session = NULL;
	pthread_t checks, books;
	struct tw_process *reader;
	tw_pid teller = tw_process_self();
	int result = tw_match_compile_text(spec, strlen(spec), NULL, &program, NULL);

	/* The tracer of a queue makes no events, and this thread is to make some: another process is the tracer. */
	if (result >= 0)
		result = tw_process_create("reader", &reader);
	if (result >= 0)
		tracer.tracer_pid = tw_process_pid(reader);
	pthread_create(&checks, NULL, check, NULL);
	pthread_create(&books, NULL, book, NULL);
	if (result >= 0)
		result = tw_session_create("requests", &tracer, &session);
	if (result >= 0)
		result = tw_seq_set_system_tracer(session, NULL);
	if (result >= 0)
		result = tw_trace_function_match(session, "bank", "take", 2, program, TW_FUNCTION_LOCAL);
	if (result >= 0)
		result = tw_trace_process(session, teller, true, TW_FLAG_CALL);
	if (result < 0) {
		fprintf(stderr, "seq_requests: %s\n", tw_strerror(result));
		return 1;
	}
	for (uint64_t number = 1; number <= REQUESTS; number++)
		request(number, number == 7 ? 5000 : 10 * number);
	pthread_join(checks, NULL);
	pthread_join(books, NULL);
	show(session);
	tw_session_destroy(session);
	tw_session_put(session);
	tw_match_destroy(program);
	return 0;
}
