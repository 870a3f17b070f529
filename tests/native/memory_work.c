/* SPDX-License-Identifier: Apache-2.0 */
/* memory_work.c - functions with entry sleds that request known numbers of bytes. */
#include <stdlib.h>

void outer(void);
void middle(void);
void inner(void);
void grow(void);
void around(void (*function)(void));

/* Three words each, requested in three ways. */
static void use(void *memory)
{
	__asm__ volatile("" : "+r"(memory));
	free(memory);
}

__attribute__((noinline)) void inner(void)
{
	use(malloc(20));
}

__attribute__((noinline)) void middle(void)
{
	inner();
	use(calloc(3, 8));
}

void outer(void)
{
	void *memory = NULL;

	middle();
	if (!posix_memalign(&memory, 64, 24))
		use(memory);
}

/* Two words first, then five. */
void grow(void)
{
	void *memory = malloc(16), *more;

	__asm__ volatile("" : "+r"(memory));
	more = realloc(memory, 40);
	use(more ? more : memory);
}

/* Three words before, three after. */
void around(void (*function)(void))
{
	use(malloc(24));
	function();
	use(malloc(24));
}
