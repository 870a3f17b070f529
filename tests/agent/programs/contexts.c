/* SPDX-License-Identifier: Apache-2.0 */
/* contexts.c - runs the coroutines of contextlib.c, and a function with a sled that looks at its return address. */
#include <stddef.h>
#include <stdio.h>

int context_run(void);

__attribute__((noinline, patchable_function_entry(9))) static void *caller_of(int n)
{
	__asm__ volatile("" : : "r"(n));
	return __builtin_return_address(0);
}

int main(void)
{
	int is_right = (size_t)((char *)caller_of(1) - (char *)main) < 200;

	printf("frames %d, caller %s\n", context_run(), is_right ? "right" : "wrong");
	return is_right ? 7 : 8;
}
