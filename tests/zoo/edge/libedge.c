/* SPDX-License-Identifier: Apache-2.0 */
/* libedge.c - the function that the edge cases call: they count its calls, and check its result. */
long edge_touch(long n);

__attribute__((noinline)) long edge_touch(long n)
{
	__asm__ volatile("" : "+r"(n));
	return n ^ 0x55;
}
