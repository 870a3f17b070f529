/* SPDX-License-Identifier: Apache-2.0 */
/*
 * odd.h - what the odd programs of the zoo share: a call that is counted, and the end.
 *
 * odd_call() goes through a slot into libodd.so, so it is traced by -t 'libodd:_'; it counts in memory that children share.
 * odd_end() writes the count to the file that ODD_CALLS names, for the driver to compare with the capture.
 */
#ifndef ODD_H
#define ODD_H

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

long odd_touch(long n);

static long *odd_count;

__attribute__((constructor, unused)) static void odd_begin(void)
{
	odd_count = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	setvbuf(stdout, NULL, _IOLBF, 0);
}

/* Any thread, process and signal handler.  A wrong answer ends the program. */
__attribute__((unused)) static void odd_call(long n)
{
	__atomic_add_fetch(odd_count, 1, __ATOMIC_SEQ_CST);
	if (odd_touch(n) != (n ^ 0x55))
		abort();
}

__attribute__((unused)) static void odd_calls(long count)
{
	for (long i = 0; i < count; i++)
		odd_call(i);
}

/* Prints the result, as a word that is the same in every run. */
__attribute__((unused)) static int odd_end(int is_right)
{
	const char *path = getenv("ODD_CALLS");
	FILE *file = path ? fopen(path, "w") : NULL;

	if (file) {
		fprintf(file, "%ld\n", *odd_count);
		fclose(file);
	}
	printf("%s\n", is_right ? "right" : "WRONG");
	fflush(stdout);
	return !is_right;
}

#endif
