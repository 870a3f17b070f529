/* SPDX-License-Identifier: Apache-2.0 */
/*
 * seq_threads.c - one request through a queue of jobs and a pipe, followed from thread to thread.
 *
 *	cc seq_threads.c -ltracewheel -lpthread -o seq_threads && ./seq_threads mine.tw
 *	tracewheel print --format erlang mine.tw
 *
 * The main thread asks, a worker takes the job from a queue and writes its result into a pipe, and the main thread reads it.
 * The queue carries the token in the job.  Nothing carries it through a pipe, as in Erlang nothing carries it through a port: it
 * is put into the data by hand, as bytes, so that the reader may also be another program.
 */
#include <tracewheel/seq.h>
#include <tracewheel/tracewheel.h>

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct job {
	struct tw_seq_token token;
	int number;
};

/* A queue of one job. */
static struct job slot;
static int is_full;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int pipe_ends[2];

static void put_job(const struct job *job)
{
	pthread_mutex_lock(&lock);
	slot = *job;
	is_full = 1;
	pthread_cond_signal(&changed);
	pthread_mutex_unlock(&lock);
}

static void take_job(struct job *job)
{
	pthread_mutex_lock(&lock);
	while (!is_full)
		pthread_cond_wait(&changed, &lock);
	*job = slot;
	is_full = 0;
	pthread_mutex_unlock(&lock);
}

static struct tw_term number_term(int number)
{
	return tw_term_integer(NULL, number); /* small integers need no memory */
}

/* The content of the pipe: small enough to arrive whole. */
struct answer {
	int number;
	size_t token_bytes;
	char token[512];
};

static void write_answer(int fd, int number)
{
	struct answer answer = {.number = number};
	struct tw_seq_token token;

	tw_seq_pass(&token, tw_term_atom_z("pipe"), number_term(number));
	if (tw_seq_encode(&token, answer.token, sizeof answer.token, &answer.token_bytes) < 0)
		answer.token_bytes = 0; /* the answer goes without */
	if (write(fd, &answer, sizeof answer) < 0)
		perror("seq_threads");
}

static int read_answer(int fd)
{
	struct answer answer = {.number = -1};
	struct tw_seq_token token = {{0}};

	if (read(fd, &answer, sizeof answer) < (ssize_t)sizeof answer)
		return -1;
	if (answer.token_bytes && answer.token_bytes <= sizeof answer.token)
		tw_seq_decode(answer.token, answer.token_bytes, NULL, &token);
	tw_seq_accept(&token, number_term(answer.number));
	return answer.number;
}

static void *work(void *unused)
{
	struct job job;

	take_job(&job);
	tw_seq_accept(&job.token, number_term(job.number));
	tw_seq_print(tw_term_atom_z("squaring"));
	write_answer(pipe_ends[1], job.number * job.number);
	return NULL;
}

static int ask(int number)
{
	struct job job = {.number = number};
	int result;

	tw_seq_set_label(number_term(17));
	tw_seq_set_flags(TW_SEQ_SEND | TW_SEQ_RECEIVE | TW_SEQ_PRINT, true);
	tw_seq_pass(&job.token, tw_term_atom_z("queue"), number_term(number));
	put_job(&job);
	result = read_answer(pipe_ends[0]);
	tw_seq_set_token(NULL, NULL); /* the request is done */
	return result;
}

int main(int argc, char **argv)
{
	struct tw_tracer tracer = {
		.kind = TW_TRACER_CAPTURE,
		.capture_path = argc > 1 ? argv[1] : "seq_threads.tw",
		.force = true,
	};
	struct tw_session *session;
	pthread_t worker;
	int result = tw_session_create("requests", &tracer, &session);

	if (result < 0 || pipe(pipe_ends)) {
		fprintf(stderr, "seq_threads: %s\n", tw_strerror(result));
		return 1;
	}
	tw_seq_set_system_tracer(session, NULL);
	pthread_create(&worker, NULL, work, NULL);
	printf("the square of 5 is %d\n", ask(5));
	pthread_join(worker, NULL);
	tw_session_destroy(session);
	tw_session_put(session);
	return 0;
}
