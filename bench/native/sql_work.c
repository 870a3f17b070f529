/* SPDX-License-Identifier: Apache-2.0 */
/* sql_work.c - makes so many calls of three functions, for sql.sh. */
#include <stdlib.h>

__attribute__((noinline)) static long often(long n)
{
	__asm__ volatile("" : "+r"(n));
	return n + 1;
}

__attribute__((noinline)) static long seldom(long n)
{
	return often(n) + 1;
}

__attribute__((noinline)) static long rarely(long n)
{
	return seldom(n) + 1;
}

int main(int argc, char **argv)
{
	long calls = argc > 1 ? atol(argv[1]) : 0, n = 0;

	for (long made = 0; made < calls; made += 100) {
		n = rarely(n);
		for (int i = 3; i < 100; i++)
			n = often(n);
	}
	return n < 0;
}
