/* SPDX-License-Identifier: Apache-2.0 */
/* libodd.c - the function that odd programs call: they count its calls, and check its answer. */
long odd_touch(long n);

__attribute__((noinline)) long odd_touch(long n)
{
	__asm__ volatile("" : "+r"(n));
	return n ^ 0x55;
}
