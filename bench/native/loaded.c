/* SPDX-License-Identifier: Apache-2.0 */
/* loaded.c - what load_work.c opens and closes: a function with an entry sled, and one that it calls. */
__attribute__((noinline)) int loaded_inner(int i)
{
	__asm__ volatile("" : "+r"(i));
	return i;
}

int loaded_function(int i)
{
	return loaded_inner(i) + 1;
}
