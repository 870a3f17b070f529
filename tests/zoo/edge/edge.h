/* SPDX-License-Identifier: Apache-2.0 */
/*
 * edge.h - shared by the edge cases of the zoo: a counted call, and the end.
 *
 * edge_call() goes through a slot into libedge.so, so it is traced by -t 'libedge:_'; it counts in memory that children share.
 * edge_end() writes the count to the file that EDGE_CALLS names, for the driver to compare with the capture.
 *
 * edge_rounds() says how often a case does the same; in the short form a part of all rounds.
 */
#ifndef EDGE_H
#define EDGE_H

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

long edge_touch(long n);

static long *edge_count;

__attribute__((unused)) static long edge_rounds(long all, long some)
{
	return getenv("ZOO_LONG") ? all : some;
}

__attribute__((constructor, unused)) static void edge_begin(void)
{
	edge_count = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	setvbuf(stdout, NULL, _IOLBF, 0);
}

/* Any thread, process and signal handler.  A wrong answer ends the program. */
__attribute__((unused)) static void edge_call(long n)
{
	__atomic_add_fetch(edge_count, 1, __ATOMIC_SEQ_CST);
	if (edge_touch(n) != (n ^ 0x55))
		abort();
}

__attribute__((unused)) static void edge_calls(long count)
{
	for (long i = 0; i < count; i++)
		edge_call(i);
}

/* Prints the result, as a word that is the same in every run. */
__attribute__((unused)) static int edge_end(int is_right)
{
	const char *path = getenv("EDGE_CALLS");
	FILE *file = path ? fopen(path, "w") : NULL;

	if (file) {
		fprintf(file, "%ld\n", *edge_count);
		fclose(file);
	}
	printf("%s\n", is_right ? "right" : "WRONG");
	fflush(stdout);
	return !is_right;
}

#endif
