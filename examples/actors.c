/* SPDX-License-Identifier: Apache-2.0 */
/*
 * actors.c - a run-time system of ten lines, traced as Erlang traces its processes.
 *
 * Two schedulers run four actors, which move between them; each runs a function of "bank" when it has
 * the turn. The functions are declared, the actors are processes, and a session writes their calls
 * to actors.tw:
 *
 *	cc actors.c -ltracewheel -lpthread -o actors && ./actors
 *	tracewheel print --format erlang --limit 10 actors.tw
 *	tracewheel report actors.tw
 */
#include <tracewheel/tracewheel.h>

#include <pthread.h>
#include <stdio.h>

#define ACTORS 4
#define TURNS  1000

TW_DEFINE_FUNCTION(deposit_function, "bank", "deposit", 2);
TW_DEFINE_FUNCTION(audit_function, "bank", "audit", 1);

struct actor {
	pthread_mutex_t turn; /* one scheduler at a time runs it */
	struct tw_process *process;
	uint64_t number;
	uint64_t balance;
};

static struct actor actors[ACTORS];

static void deposit(struct actor *actor, uint64_t amount)
{
	tw_call2(&deposit_function, actor->number, amount);
	actor->balance += amount;
}

static uint64_t audit(struct actor *actor)
{
	tw_call1(&audit_function, actor->number);
	return actor->balance;
}

/* A scheduler: whichever actor is free gets a turn. */
static void *run_actors(void *unused)
{
	tw_scheduler_declare();
	for (uint64_t turn = 0; turn < TURNS; turn++) {
		struct actor *actor = &actors[turn % ACTORS];
		pthread_mutex_lock(&actor->turn);
		tw_process_in(actor->process);
		deposit(actor, turn);
		if (turn % 100 == 99)
			audit(actor);
		tw_process_out();
		pthread_mutex_unlock(&actor->turn);
	}
	return unused;
}

static int trace(struct tw_session *session)
{
	int answer = tw_trace_process(session, TW_PID_ALL, true, TW_FLAG_CALL | TW_FLAG_MONOTONIC_TIMESTAMP);
	if (answer >= 0)
		answer = tw_trace_function(session, "bank", "_", TW_ARITY_ANY, TW_MATCH_TRUE,
					   TW_FUNCTION_LOCAL);
	return answer;
}

int main(int argc, char **argv)
{
	struct tw_tracer tracer = {.kind = TW_TRACER_CAPTURE,
				   .capture_path = argc > 1 ? argv[1] : "actors.tw",
				   .force = true,
				   .on_full = TW_ON_FULL_BLOCK};
	struct tw_session *session;
	int error = tw_session_create("example", &tracer, &session);
	if (error) {
		fprintf(stderr, "actors: no session: %s\n", tw_strerror(error));
		return 1;
	}
	for (int i = 0; i < ACTORS; i++) {
		pthread_mutex_init(&actors[i].turn, NULL);
		actors[i].number = (uint64_t)i;
		tw_process_create("account", &actors[i].process);
	}
	error = trace(session);
	if (error < 0)
		fprintf(stderr, "actors: nothing is traced: %s\n", tw_strerror(error));
	pthread_t schedulers[2];
	for (int i = 0; i < 2; i++)
		pthread_create(&schedulers[i], NULL, run_actors, NULL);
	for (int i = 0; i < 2; i++)
		pthread_join(schedulers[i], NULL);
	for (int i = 0; i < ACTORS; i++)
		tw_process_exit(actors[i].process);
	tw_session_destroy(session);
	tw_session_put(session);
	printf("%d calls of deposit were made; tracewheel report %s\n", 2 * TURNS, tracer.capture_path);
	return error < 0;
}
