/* SPDX-License-Identifier: Apache-2.0 */
/* chain_work.c - functions with entry sleds that tail call each other. */
int chain_ping(int a);
int chain_pong(int a);
int chain_alone(int a);

__attribute__((noinline)) int chain_ping(int a)
{
	__asm__ volatile("" : "+r"(a));
	return a ? chain_pong(a - 1) : 0;
}

__attribute__((noinline)) int chain_pong(int a)
{
	__asm__ volatile("" : "+r"(a));
	return a ? chain_ping(a - 1) : 1;
}

__attribute__((noinline)) int chain_alone(int a)
{
	__asm__ volatile("" : "+r"(a));
	return a + 1;
}
