/* SPDX-License-Identifier: Apache-2.0 */
/*
 * depth.c - how much of the program's stack do traced calls take?
 *
 * Calls of leaf functions run on a stack that was filled with a pattern; the lowest byte that has changed tells.
 *
 *	depth calls LIMIT	a first call, and many more, of functions with and without arguments
 *	depth threads LIMIT	forty threads make their first calls at the same time
 *	depth handler LIMIT	handlers on a signal stack of that size beyond what the system needs, some of which jump out, interrupt
 *				traced calls, and make calls of their own
 *	depth cancel LIMIT	a thread is cancelled between its calls
 *
 * Prints the bytes, and exits with 1 if they are more than LIMIT.
 */
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <unistd.h>

enum { AREA_BYTES = 16384, PAGE_BYTES = 4096, PATTERN = 0x5a, THREADS = 40 };

long depth_leaf(long x);
long depth_text(long x, const char *text, double y);
long depth_tail(long x);
long depth_fill(long x, char *to, long *bytes);

__attribute__((noinline)) long depth_leaf(long x)
{
	__asm__ volatile("" : "+r"(x));
	return x + 1;
}

__attribute__((noinline)) long depth_text(long x, const char *text, double y)
{
	__asm__ volatile("" : "+r"(x), "+r"(text), "+x"(y));
	return x + 1;
}

/* Tail calls: several frames end with one return. */
__attribute__((noinline)) long depth_tail(long x)
{
	__asm__ volatile("" : "+r"(x));
	return depth_leaf(x);
}

/* Fills memory, and says how much of it. */
__attribute__((noinline)) long depth_fill(long x, char *to, long *bytes)
{
	to[0] = (char)x;
	*bytes = 1;
	return x;
}

static long call_leaf(long x)
{
	return depth_leaf(x);
}

static long call_text(long x)
{
	return depth_text(x, "text", 1.5);
}

static long call_tail(long x)
{
	return depth_tail(x);
}

static long call_fill(long x)
{
	static __thread char to[16];
	static __thread long bytes;

	return depth_fill(x, to, &bytes);
}

/* Calls the function on the stack that ends there. */
extern long depth_on(void *top, long (*function)(long), long x);
__asm__(".text\n"
	".type depth_on, @function\n"
	"depth_on:\n"
	"	.cfi_startproc\n"
	"	push %rbp\n"
	"	.cfi_def_cfa_offset 16\n"
	"	.cfi_offset %rbp, -16\n"
	"	mov %rsp, %rbp\n"
	"	.cfi_def_cfa_register %rbp\n"
	"	mov %rdi, %rsp\n"
	"	mov %rdx, %rdi\n"
	"	call *%rsi\n"
	"	mov %rbp, %rsp\n"
	"	pop %rbp\n"
	"	.cfi_def_cfa %rsp, 8\n"
	"	ret\n"
	"	.cfi_endproc\n"
	"	.size depth_on, . - depth_on\n");

/* The bytes used by the calls, of which the callers here take some: their own frames, and the return address. */
static long used_by(uint8_t *area, long (*function)(long), unsigned calls)
{
	long lowest = 0;

	memset(area, PATTERN, AREA_BYTES);
	for (unsigned i = 0; i < calls; i++)
		depth_on(area + AREA_BYTES, function, i);
	while (lowest < AREA_BYTES && area[lowest] == PATTERN)
		lowest++;
	return AREA_BYTES - lowest;
}

enum { CALLERS_BYTES = 16 };

static long most_of(uint8_t *area, unsigned calls)
{
	static long (*const functions[])(long) = {call_leaf, call_text, call_tail, call_fill};
	long most = 0;

	for (unsigned i = 0; i < sizeof functions / sizeof *functions; i++) {
		long used = used_by(area, functions[i], calls) - CALLERS_BYTES;

		if (used > most)
			most = used;
	}
	return most;
}

static int told(const char *what, long used, long limit)
{
	printf("%s: %ld bytes\n", what, used);
	return used > limit;
}

static int measure_calls(long limit)
{
	static _Alignas(16) uint8_t area[AREA_BYTES];
	int status = told("first", most_of(area, 1), limit);

	status |= told("next", most_of(area, 100), limit);
	/* Rings grow, and get full. */
	return status | told("many", most_of(area, getenv("TW_TEST_LONG") ? 100000 : 25000), limit);
}

static pthread_barrier_t barrier;

static void *run_thread(void *arg)
{
	static __thread _Alignas(16) uint8_t area[AREA_BYTES];

	/* Not the thread's first call, which was libc's perhaps. */
	pthread_barrier_wait(&barrier);
	return (void *)most_of(area, 1000);
}

static int measure_threads(long limit)
{
	pthread_t threads[THREADS];
	long most = 0;

	pthread_barrier_init(&barrier, NULL, THREADS);
	for (int i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, run_thread, NULL))
			return 3;
	for (int i = 0; i < THREADS; i++) {
		void *used;

		pthread_join(threads[i], &used);
		if ((long)used > most)
			most = (long)used;
	}
	return told("threads", most, limit);
}

static volatile sig_atomic_t handled;
static sigjmp_buf back;
static volatile sig_atomic_t may_jump;

static void on_alarm(int number)
{
	depth_leaf(number);
	depth_text(number, "handler", 2.5);
	handled++;
	if (may_jump && handled % 7 == 0) {
		may_jump = 0;
		siglongjmp(back, 1);
	}
}

/* A guard page lies below: a call that needs more ends the program. */
static int measure_handler(long limit)
{
	struct sigaction action = {.sa_handler = on_alarm, .sa_flags = SA_ONSTACK};
	struct itimerval every = {{0, 500}, {0, 500}}, none = {{0, 0}, {0, 0}};
	size_t system_bytes = (size_t)sysconf(_SC_MINSIGSTKSZ);
	size_t bytes = (system_bytes + 256 + (size_t)limit + 15) & ~(size_t)15;
	size_t pages = (bytes + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
	uint8_t *memory = mmap(NULL, PAGE_BYTES + pages, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	stack_t stack = {.ss_sp = memory + PAGE_BYTES, .ss_size = bytes};
	volatile long calls = 0;
	const int all = getenv("TW_TEST_LONG") ? 200 : 70;

	if (memory == MAP_FAILED || mprotect(memory, PAGE_BYTES, PROT_NONE) || sigaltstack(&stack, NULL))
		return 3;
	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &every, NULL);
	/* With the mask, the jump would let the next signal in while it is still on the signal stack, which is made for one. */
	if (sigsetjmp(back, 0)) {
		sigset_t alarm;

		sigemptyset(&alarm);
		sigaddset(&alarm, SIGALRM);
		sigprocmask(SIG_UNBLOCK, &alarm, NULL);
	}
	while (handled < all) {
		may_jump = 1;
		call_leaf(calls);
		call_tail(calls);
		may_jump = 0;
		calls++;
	}
	setitimer(ITIMER_REAL, &none, NULL);
	return told("handler", 0, limit);
}

static void *call_for_ever(void *arg)
{
	pthread_barrier_wait(&barrier);
	for (long i = 0;; i++) {
		call_leaf(i);
		pthread_testcancel();
	}
	return NULL;
}

static int measure_cancel(long limit)
{
	pthread_barrier_init(&barrier, NULL, 2);
	for (int i = 0; i < (getenv("TW_TEST_LONG") ? 50 : 20); i++) {
		pthread_t thread;
		void *result;

		if (pthread_create(&thread, NULL, call_for_ever, NULL))
			return 3;
		pthread_barrier_wait(&barrier);
		usleep((useconds_t)(i * 37 % 400));
		pthread_cancel(thread);
		pthread_join(thread, &result);
		if (result != PTHREAD_CANCELED)
			return 4;
	}
	return told("cancel", 0, limit);
}

int main(int argc, char **argv)
{
	long limit = argc > 2 ? atol(argv[2]) : 512;

	if (argc < 2)
		return 2;
	if (!strcmp(argv[1], "calls"))
		return measure_calls(limit);
	if (!strcmp(argv[1], "threads"))
		return measure_threads(limit);
	if (!strcmp(argv[1], "handler"))
		return measure_handler(limit);
	return measure_cancel(limit);
}
