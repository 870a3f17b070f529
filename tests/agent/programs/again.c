/* SPDX-License-Identifier: Apache-2.0 */
/* again.c - calls that return many times, from one copy of the stack; meanwhile other calls use their stack slots. */
#include "continuation.h"
#include "edgelib.h"

#include <alloca.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

static char *base;
static int (*take)(char *);
static void (*call)(void);
static int returns, taken; /* not on the stack */

static int deep(int x)
{
	return x ? edge_call_back(deep, x - 1) + x : take(base);
}

static int pad;

/* The same depth with other return addresses in all slots. */
static int other(int x)
{
	volatile char *buffer = alloca((size_t)pad + 1);
	int sum = (int)edge_add((uint64_t)x, 1);

	buffer[0] = 1;
	if (x)
		sum += edge_call_back(other, x - 1);
	return sum + (int)edge_number("3");
}

static __attribute__((noinline)) void round_of(int x)
{
	char here[64];

	base = here + sizeof here;
	returns = 0;
	taken += edge_call_back(deep, x);
	for (pad = 0; pad < 128; pad += 16)
		taken += edge_call_back(other, x + 3);
	printf("%d %d\n", x, taken);
	if (++returns < 10)
		call();
}

int main(int argc, char **argv)
{
	void *library = dlopen(argv[1], RTLD_NOW);

	if (argc != 2 || !library) {
		fprintf(stderr, "again: %s\n", dlerror());
		return 2;
	}
	take = (int (*)(char *))dlsym(library, "continuation_take");
	call = (void (*)(void))dlsym(library, "continuation_call");
	for (int x = 0; x < 12; x++)
		round_of(x);
	return 0;
}
