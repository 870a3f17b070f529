/* SPDX-License-Identifier: Apache-2.0 */
/* edgelib.c - functions whose calling conventions a hook could break, in a library of their own. */
#include "edgelib.h"

#include <stdarg.h>
#include <stdlib.h>

uint64_t edge_add(uint64_t a, uint64_t b)
{
	__asm__ volatile("" : "+r"(a));
	return a + b;
}

struct edge_big edge_make_big(long x)
{
	return (struct edge_big){{x, x + 1, x + 2, x + 3, x + 4, x + 5, x + 6, x + 7}};
}

double edge_sum(int n, ...)
{
	va_list list;
	double sum = 0;

	va_start(list, n);
	while (n--)
		sum += va_arg(list, double);
	va_end(list);
	return sum;
}

long edge_many(long a, long b, long c, long d, long e, long f, long g, long h)
{
	return a + b + c + d + e + f + 10 * g + 100 * h;
}

__int128 edge_wide(long a)
{
	return (__int128)a << 64 | 7;
}

long double edge_twice(long double x)
{
	return x * 2;
}

double _Complex edge_complex(double a, double b)
{
	return __builtin_complex(a, b);
}

float edge_mix(float a, double b, int c, float d, double e, float f, double g, float h, double i, double j)
{
	return (float)(a + b + c + d + e + f + g + h + i + j);
}

int edge_call_back(int (*function)(int), int x)
{
	return function(x) + 1;
}

long edge_number(const char *text)
{
	return strtol(text, NULL, 10);
}

void *edge_address(void)
{
	return (void *)strtol;
}

long edge_recurse(long n, long (*again)(long))
{
	return n ? again(n - 1) + 1 : 0;
}
