/* SPDX-License-Identifier: Apache-2.0 */
/* work.c - functions of a library with entry sleds: called from outside, from inside, and only from inside. */
int work_one(int a);
int work_two(int a);
int work_alone(int a);

__attribute__((noinline)) static int hidden(int a)
{
	__asm__ volatile("" : "+r"(a));
	return a + 1;
}

int work_one(int a)
{
	return hidden(a) * 2;
}

int work_two(int a)
{
	int b = work_one(a);

	__asm__ volatile("" : "+r"(b));
	return b + 3;
}

/* No object has a slot for it. */
int work_alone(int a)
{
	return a;
}
