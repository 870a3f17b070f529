/* SPDX-License-Identifier: Apache-2.0 */
/* memory_work.c - frees and allocates a million blocks of random sizes, for memory.sh. */
#include <stdlib.h>

__attribute__((noinline)) static void *make(size_t bytes)
{
	char *block = malloc(bytes);

	block[0] = 1;
	return block;
}

int main(void)
{
	static void *blocks[4096];
	unsigned random = 1;

	for (int i = 0; i < 1000000; i++) {
		random = random * 1103515245 + 12345;
		unsigned at = random >> 16 & 4095;

		free(blocks[at]);
		blocks[at] = make(16 + (random >> 8 & 1023));
	}
	return 0;
}
