/* SPDX-License-Identifier: Apache-2.0 */
/* frames_work.c - a library whose functions call their callers back. */
int frames_call(int (*function)(void *arg), void *arg);
int frames_call_deep(int depth, int (*function)(void *arg), void *arg);

__attribute__((noinline)) int frames_call(int (*function)(void *arg), void *arg)
{
	int value = function(arg);

	__asm__ volatile("" : "+r"(value));
	return value + 1;
}

__attribute__((noinline)) int frames_call_deep(int depth, int (*function)(void *arg), void *arg)
{
	int value = depth ? frames_call_deep(depth - 1, function, arg) : frames_call(function, arg);

	__asm__ volatile("" : "+r"(value));
	return value + 10;
}
