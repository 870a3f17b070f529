/* SPDX-License-Identifier: Apache-2.0 */
/*
 * busy.h - threads that call functions at full speed and compare the answers, for a library that is traced meanwhile.  SLED
 * stands before two of the functions, the first instructions of the third lie on two pages.  REST_US: how long threads rest
 * after each few hundred calls.
 */
#ifndef TW_TESTS_BUSY_H
#define TW_TESTS_BUSY_H

#include <pthread.h>
#include <unistd.h>

#ifndef SLED
#define SLED
#endif

long busy_torn(long, long);
static volatile int is_over, wrong;
static pthread_t threads[128];
static int count;

SLED __attribute__((noinline)) long busy_leaf(long a, long b)
{
	long x[4] = {a, b, a ^ b, a + b};

	__asm__ volatile("" ::: "memory");
	return x[0] * 3 + x[1] + x[2] * x[3];
}

SLED __attribute__((noinline)) long busy_deep(long a)
{
	return a < 2 ? a : busy_deep(a - 1) + busy_leaf(a, 2) % 7;
}

__asm__(".text\n.p2align 12\n.skip 4093\n.globl busy_torn\n.type busy_torn, @function\nbusy_torn: .cfi_startproc\n"
	"mov %rdi, %rax\nadd %rsi, %rax\nadd %rax, %rax\nret\n.cfi_endproc\n.size busy_torn, .-busy_torn");

static void *run(void *want)
{
	for (unsigned long i = 1; !is_over; i++) {
		if (busy_deep(20) != (long)want || busy_torn(3, 4) != 14)
			wrong = 1;
		if (count > 3)
			usleep(1000);
#ifdef REST_US
		else if (i % 256 == 0)
			usleep(REST_US);
#endif
	}
	return NULL;
}

void busy_begin(int number)
{
	count = number;
	for (int i = 0; i < count; i++)
		pthread_create(&threads[i], NULL, run, (void *)busy_deep(20));
}

/* True if an answer was wrong. */
int busy_end(void)
{
	is_over = 1;
	for (int i = 0; i < count; i++)
		pthread_join(threads[i], NULL);
	return wrong;
}

#endif
