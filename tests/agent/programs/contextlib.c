/* SPDX-License-Identifier: Apache-2.0 */
/*
 * contextlib.c - coroutines as run-times write their own: contexts that are saved once and entered many times, stacks that begin
 * without a caller.
 *
 * With FRAMED, the functions in assembly have call frame information, and first instructions that cannot be moved.
 */
#include <execinfo.h>
#include <stdlib.h>
#include <string.h>

#ifdef FRAMED
#define BEGIN(name) \
	".globl " #name "\n.type " #name ",@function\n" #name ":\n.cfi_startproc\njmp 1f\n1: mov %rbx,8(%rdi)\n"
#define END(name) ".cfi_endproc\n.size " #name ",.-" #name "\n"
#else
#define BEGIN(name) ".globl " #name "\n.type " #name ",@function\n" #name ":\nmov %rbx,8(%rdi)\n"
#define END(name)   ".size " #name ",.-" #name "\n"
#endif

struct context {
	void *rbp, *rbx, *r12, *r13, *r14, *r15, *rsp, *rip;
};

/* Returns when it is called, and each time that the context is entered. */
void keep_context(struct context *context);
void enter_context(struct context *scratch, const struct context *context) __attribute__((noreturn));
__asm__(".text\n" BEGIN(
	keep_context) "mov %rbp,(%rdi)\nmov %r12,16(%rdi)\nmov %r13,24(%rdi)\nmov %r14,32(%rdi)\n"
		      "mov %r15,40(%rdi)\nmov (%rsp),%rax\nmov %rax,56(%rdi)\nlea 8(%rsp),%rax\nmov %rax,48(%rdi)\nret\n" END(
			      keep_context)
			      BEGIN(enter_context) "mov 8(%rsi),%rbx\nmov (%rsi),%rbp\nmov 16(%rsi),%r12\nmov 24(%rsi),%r13\nmov 32(%rsi),%r14\n"
						   "mov 40(%rsi),%r15\nmov 48(%rsi),%rsp\nmov 56(%rsi),%rdx\njmp *%rdx\n" END(
							   enter_context));

enum { COROUTINES = 4, TURNS = 50, STACK_BYTES = 65536 };

static struct context home, contexts[COROUTINES], scratch;
static char *stacks[COROUTINES];
static int turns[COROUTINES], current, is_back, frames_seen;
static void (*volatile next)(void);

void context_work(int n);
void context_schedule(void) __attribute__((noreturn));
void context_leave(void);
void context_begin(void);
int context_run(void);

/* As many frames as without a tracer: its callers, and nothing behind the first function of a stack. */
__attribute__((noinline)) void context_work(int n)
{
	void *frames[64];

	if (n) {
		context_work(n - 1);
		__asm__ volatile("");
		return;
	}
	for (int i = 0, count = backtrace(frames, 64); i < count; i++)
		frames_seen += (size_t)((char *)frames[i] - (char *)context_work) < 200;
}

__attribute__((noinline)) void context_schedule(void)
{
	current = (current + 1) % COROUTINES;
	for (int i = 0; i < COROUTINES && turns[current] == TURNS; i++)
		current = (current + 1) % COROUTINES;
	if (turns[current] == TURNS)
		enter_context(&scratch, &home);
	enter_context(&scratch, &contexts[current]);
}

/* Lets the first stack choose the next coroutine; comes back when it is chosen. */
__attribute__((noinline)) void context_leave(void)
{
	volatile int has_left = 0;

	keep_context(&contexts[current]);
	if (has_left)
		return;
	has_left = 1;
	next = context_schedule;
	enter_context(&scratch, &home);
}

/* Entered without a caller. */
void context_begin(void)
{
	for (;;) {
		context_work(3);
		turns[current]++;
		context_leave();
	}
}

/* The same frame is entered again and again; its calls have the return address where keep_context() had its own. */
__attribute__((noinline)) int context_run(void)
{
	void (*wanted)(void);

	for (int i = 0; i < COROUTINES; i++) {
		void **top = (void **)((stacks[i] = malloc(STACK_BYTES)) + STACK_BYTES - 64);

		*--top = NULL;
		contexts[i] = (struct context){.rsp = top, .rip = (void *)context_begin};
	}
	keep_context(&home);
	wanted = next;
	next = NULL;
	if (wanted) {
		wanted();
		abort();
	}
	if (is_back)
		return frames_seen;
	is_back = 1;
	context_schedule();
}
