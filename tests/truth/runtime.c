/* SPDX-License-Identifier: Apache-2.0 */
/*
 * runtime.c - a run-time that plays random calls, tail calls, returns and exceptions in processes that move between
 * threads, and keeps its own account of them: runtime.py compares it with the views.
 *
 *	runtime SEED PROCESSES THREADS STEPS ACCOUNT
 *
 * Each process has random numbers of its own, so its account does not depend on scheduling.  A line of the account is
 * PID KIND FUNCTION NUMBER; for return_to the function that continues.
 */
#include "tests/common/random.h"

#include <tracewheel/runtime.h>
#include <tracewheel/term.h>
#include <tracewheel/tracewheel.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FUNCTIONS = 8, TERMS_FROM = 6, DEPTH = 24, SLICE = 50, LOOP = 3000 };

static struct tw_declared_function functions[FUNCTIONS] = {
	TW_DECLARED_FUNCTION("truth", "f0", 1),
	TW_DECLARED_FUNCTION("truth", "f1", 1),
	TW_DECLARED_FUNCTION("truth", "f2", 1),
	TW_DECLARED_FUNCTION("truth", "f3", 1),
	TW_DECLARED_FUNCTION("truth", "f4", 1),
	TW_DECLARED_FUNCTION("truth", "f5", 1),
	/* These take terms. */
	TW_DECLARED_FUNCTION("truth", "t6", 1),
	TW_DECLARED_FUNCTION("truth", "t7", 1),
};

struct activation {
	struct tw_frame frame;
	unsigned char *calls; /* functions, in the order of their calls */
	size_t count, capacity;
};

struct process {
	struct tw_process *told;
	struct process *next;
	uint64_t random;
	long steps;
	int depth;
	struct activation stack[DEPTH];
	FILE *account;
	char *text;
	size_t bytes;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct process *ready, **last_ready = &ready;
static _Thread_local struct process *running;

static unsigned pick(struct process *p, unsigned below)
{
	return (unsigned)random_below(&p->random, below);
}

static void note(struct process *p, const char *kind, int function, unsigned number)
{
	fprintf(p->account, "%lu %s %s %u\n", (unsigned long)tw_process_pid(p->told), kind,
		function < 0 ? "undefined" : functions[function].name, number);
}

/* The function that runs in an activation; -1: none. */
static int function_at(const struct process *p, int depth)
{
	return depth < 0 ? -1 : p->stack[depth].calls[p->stack[depth].count - 1];
}

static unsigned walk(struct tw_stack_entry *out, unsigned capacity, void *arg)
{
	unsigned count = 0;

	(void)arg;
	for (int depth = running ? running->depth - 2 : -1; depth >= 0 && count < capacity; depth--) {
		const struct tw_declared_function *f = &functions[function_at(running, depth)];

		out[count++] = (struct tw_stack_entry){f->module, f->name, f->arity, 0, NULL};
	}
	return count;
}

static void add(struct process *p, struct activation *a, int function, unsigned number)
{
	if (a->count == a->capacity) {
		a->capacity = a->capacity ? a->capacity * 2 : 16;
		a->calls = realloc(a->calls, a->capacity);
		if (!a->calls)
			abort();
	}
	a->calls[a->count++] = (unsigned char)function;
	note(p, "call", function, number);
}

/* Calls or tail calls a function. */
static void call(struct process *p, bool is_tail, int function)
{
	unsigned number = pick(p, 1000);
	uint64_t word = number;
	struct tw_frame_call how = {.words = &word, .count = 1};
	struct tw_term term, parts[2];
	struct tw_arena arena;
	char buffer[256];

	if (!is_tail) {
		p->depth++;
		p->stack[p->depth - 1].count = 0;
	}
	add(p, &p->stack[p->depth - 1], function, number);
	if (function >= TERMS_FROM) {
		tw_arena_init_fixed(&arena, buffer, sizeof buffer);
		parts[0] = tw_term_atom_z("t");
		parts[1] = tw_term_integer(&arena, number);
		term = tw_term_tuple(&arena, parts, 2);
		how = (struct tw_frame_call){.terms = &term, .count = 1, .has_terms = 1};
	}
	if (is_tail)
		tw_tail(&functions[function], &p->stack[p->depth - 1].frame, &how);
	else
		tw_enter(&functions[function], &p->stack[p->depth - 1].frame, &how);
}

static void note_ends(struct process *p, const char *kind, unsigned number)
{
	const struct activation *a = &p->stack[p->depth - 1];

	for (size_t i = a->count; i-- > 0;)
		note(p, kind, a->calls[i], number);
}

static void leave(struct process *p)
{
	unsigned number = pick(p, 1000);

	tw_leave(&p->stack[p->depth - 1].frame, number);
	note_ends(p, "return_from", number);
	note(p, "return_to", function_at(p, p->depth - 2), 0);
	p->depth--;
}

/* Caught by an activation below. */
static void raise_to(struct process *p, int catcher)
{
	struct tw_raise raise = TW_RAISE(TW_CLASS_ERROR, tw_term_atom_z("bad"));
	const struct tw_declared_function *f = &functions[function_at(p, catcher)];
	struct tw_stack_entry entry = {f->module, f->name, f->arity, 0, NULL};

	for (; p->depth - 1 > catcher; p->depth--) {
		tw_unwind(&p->stack[p->depth - 1].frame, &raise);
		note_ends(p, "exception_from", 0);
	}
	tw_caught(&raise, &entry);
	note(p, "return_to", function_at(p, catcher), 0);
}

static void step(struct process *p)
{
	unsigned what = pick(p, 100);

	if (!p->depth || (what < 40 && p->depth < DEPTH)) {
		call(p, false, (int)pick(p, FUNCTIONS));
	} else if (what < 60) {
		call(p, true, (int)pick(p, FUNCTIONS));
	} else if (what == 60) {
		/* A server loop, of one function or back and forth. */
		int first = (int)pick(p, FUNCTIONS), second = pick(p, 2) ? first : (int)pick(p, FUNCTIONS);

		for (unsigned i = pick(p, LOOP); i > 0; i--, p->steps--)
			call(p, true, i % 2 ? first : second);
	} else if (what < 70 && p->depth > 1) {
		raise_to(p, (int)pick(p, (unsigned)p->depth - 1));
	} else {
		leave(p);
	}
}

static void run_slice(struct process *p)
{
	running = p;
	tw_process_in(p->told);
	for (int i = 0; i < SLICE && p->steps > 0; i++, p->steps--)
		step(p);
	while (p->steps <= 0 && p->depth)
		leave(p);
	if (p->steps > 0)
		tw_process_out();
	else
		tw_process_exit(p->told);
	running = NULL;
}

static void *schedule(void *unused)
{
	struct process *p;

	(void)unused;
	tw_scheduler_declare();
	for (;;) {
		pthread_mutex_lock(&lock);
		p = ready;
		if (p && !(ready = p->next))
			last_ready = &ready;
		pthread_mutex_unlock(&lock);
		if (!p)
			return NULL;
		run_slice(p);
		if (p->steps <= 0)
			continue;
		pthread_mutex_lock(&lock);
		p->next = NULL;
		*last_ready = p;
		last_ready = &p->next;
		pthread_mutex_unlock(&lock);
	}
}

int main(int argc, char **argv)
{
	int count = argc == 6 ? atoi(argv[2]) : 0, thread_count = argc == 6 ? atoi(argv[3]) : 0;
	struct process *processes = calloc((size_t)count + 1, sizeof *processes);
	pthread_t *threads = calloc((size_t)thread_count + 1, sizeof *threads);
	FILE *account = argc == 6 ? fopen(argv[5], "w") : NULL;

	if (!processes || !threads || !account)
		return 64;
	for (int i = 0; i < FUNCTIONS; i++)
		tw_function_declare(&functions[i]);
	tw_runtime_stack(walk, NULL);
	for (int i = 0; i < count; i++) {
		struct process *p = &processes[i];

		p->random =
			(strtoull(argv[1], NULL, 10) * 1000003 + (unsigned)i + 1) * UINT64_C(0x9e3779b97f4a7c15) | 1;
		p->steps = atol(argv[4]);
		p->account = open_memstream(&p->text, &p->bytes);
		if (!p->account || tw_process_create("player", &p->told))
			return 70;
		*last_ready = p;
		last_ready = &p->next;
	}
	for (int i = 0; i < thread_count; i++)
		pthread_create(&threads[i], NULL, schedule, NULL);
	for (int i = 0; i < thread_count; i++)
		pthread_join(threads[i], NULL);
	for (int i = 0; i < count; i++) {
		fclose(processes[i].account);
		fwrite(processes[i].text, 1, processes[i].bytes, account);
	}
	return fclose(account) ? 74 : 0;
}
