/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mailbox.c - a run-time system that reports all events of its processes; docs/embedding.md walks through it.
 *
 * A clerk spawns three workers, sends each a job and gets an answer.  Two schedulers run processes that have messages.
 * It traces nothing itself:
 *
 *	cc mailbox.c -ltracewheel -lpthread -o mailbox
 *	tracewheel record -p send,receive,procs,running,garbage_collection -t 'office:_' -- ./mailbox
 *	tracewheel print mailbox.tw
 */
#include <tracewheel/tracewheel.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#define WORKERS 3

TW_DEFINE_FUNCTION(work_function, "office", "work", 1);
TW_DEFINE_FUNCTION(clerk_function, "office", "clerk", 0);
TW_DEFINE_FUNCTION(mailbox_take, "mailbox", "take", 1);
TW_DEFINE_FUNCTION(mailbox_wait, "mailbox", "wait", 0);

/* {Tag, Number} from another process. */
struct message {
	struct message *next;
	const char *tag;
	int number;
	struct process *from;
};

struct process {
	struct tw_process *handle; /* the library's handle for it */
	void (*run)(struct process *self, const struct message *message);
	const struct tw_declared_function *where;
	struct message *first, **last; /* the mailbox; `office` guards it */
	int count, heap_words;
	bool is_scheduled, has_ended;
	struct process *next_ready;
};

static pthread_mutex_t office = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t is_ready = PTHREAD_COND_INITIALIZER;
static struct process *ready_first, **ready_last = &ready_first;
static int alive;

static void make_ready(struct process *process)
{
	process->is_scheduled = true;
	process->next_ready = NULL;
	*ready_last = process;
	ready_last = &process->next_ready;
	pthread_cond_signal(&is_ready);
}

/* ---- reported messages ---- */

/* A message as a term; built only if a session wants it. */
static struct tw_term message_term(struct tw_arena *arena, const struct message *m)
{
	struct tw_term parts[2] = {tw_term_atom_z(m->tag), tw_term_integer(arena, m->number)};
	return tw_term_tuple(arena, parts, 2);
}

static void tell_message(struct process *from, struct process *to, const struct message *m)
{
	char buffer[512];
	struct tw_arena arena;
	bool is_sent = tw_process_wants(from->handle, TW_WANTS_SEND);
	bool is_received = tw_process_wants(to->handle, TW_WANTS_RECEIVE);
	if (!is_sent && !is_received)
		return;
	tw_arena_init_buffer(&arena, buffer, sizeof buffer, SIZE_MAX);
	struct tw_term message = message_term(&arena, m);
	tw_process_send(from->handle, message, tw_process_term(&arena, to->handle));
	tw_process_receive(to->handle, message, tw_process_term(&arena, from->handle));
	tw_arena_fini(&arena);
}

/* ---- the run-time ---- */

static struct process *spawn(struct process *parent, const char *name, const struct tw_declared_function *where,
			     void (*run)(struct process *, const struct message *))
{
	struct process *child = calloc(1, sizeof *child);
	struct tw_spawn options = {.name = name, .parent = parent ? parent->handle : NULL, .is_linked = parent != NULL};
	options.function = where;
	if (!child || tw_process_spawn(&options, &child->handle) < 0)
		abort();
	child->run = run;
	child->where = where;
	child->last = &child->first;
	alive++;
	return child;
}

static void send_message(struct process *from, struct process *to, const char *tag, int number)
{
	struct message *m = malloc(sizeof *m);
	if (!m)
		abort();
	*m = (struct message){.tag = tag, .number = number, .from = from};
	/* Under the lock that orders the mailbox, before the message can be taken out. */
	tell_message(from, to, m);
	*to->last = m;
	to->last = &m->next;
	tw_process_mailbox(to->handle, (uint64_t)++to->count);
	if (!to->is_scheduled)
		make_ready(to);
}

static void collect_garbage(struct process *process)
{
	struct tw_gc_sizes sizes = {.heap_size = (uint64_t)process->heap_words, .heap_block_size = 233};
	tw_process_gc(process->handle, TW_GC_MINOR_START, &sizes);
	sizes.wordsize = sizes.heap_size;
	sizes.heap_size = 0;
	process->heap_words = 0;
	tw_process_gc(process->handle, TW_GC_MINOR_END, &sizes);
}

static void end(struct process *process)
{
	tw_process_exiting(process->handle, tw_term_atom_z("normal"));
	process->has_ended = true;
	alive--;
	pthread_cond_broadcast(&is_ready);
}

static void run_process(struct process *process)
{
	struct message *m = process->first;
	const uint64_t skipped = 0;
	tw_process_in_at(process->handle, process->where);
	/* The process takes a message; `skipped` older ones are left in its mailbox. */
	tw_call1(&mailbox_take, skipped);
	process->first = m->next;
	if (!process->first)
		process->last = &process->first;
	process->count--;
	process->run(process, m);
	free(m);
	if (process->has_ended) {
		/* Its very last event; tw_process_out() is part of it. */
		tw_process_exit(process->handle);
		return;
	}
	/* The process wants none of its messages and is about to wait. */
	if (!process->first)
		tw_call0(&mailbox_wait);
	tw_process_out_at(process->where);
	process->is_scheduled = false;
	if (process->first)
		make_ready(process);
}

/* One big lock keeps the example short; the hooks need none of their own. */
static void *schedule(void *unused)
{
	tw_scheduler_declare();
	pthread_mutex_lock(&office);
	while (alive) {
		struct process *process = ready_first;
		if (!process) {
			pthread_cond_wait(&is_ready, &office);
			continue;
		}
		ready_first = process->next_ready;
		if (!ready_first)
			ready_last = &ready_first;
		run_process(process);
	}
	pthread_mutex_unlock(&office);
	return unused;
}

/* ---- the program ---- */

static void work(struct process *self, const struct message *m)
{
	tw_call1(&work_function, (uint64_t)m->number);
	self->heap_words += 100;
	collect_garbage(self);
	send_message(self, m->from, "done", m->number * m->number);
	end(self);
}

static int sum;

static void clerk(struct process *self, const struct message *m)
{
	static int answers;
	tw_call0(&clerk_function);
	if (m->from != self) {
		sum += m->number;
		if (++answers == WORKERS)
			end(self);
		return;
	}
	tw_process_register(self->handle, tw_term_atom_z("clerk"));
	for (int i = 1; i <= WORKERS; i++)
		send_message(self, spawn(self, "worker", &work_function, work), "job", i);
}

int main(void)
{
	pthread_t schedulers[2];
	struct process *first = spawn(NULL, "clerk", &clerk_function, clerk);
	send_message(first, first, "begin", 0);
	for (int i = 0; i < 2; i++)
		pthread_create(&schedulers[i], NULL, schedule, NULL);
	for (int i = 0; i < 2; i++)
		pthread_join(schedulers[i], NULL);
	printf("the sum of the squares is %d\n", sum);
	return 0;
}
