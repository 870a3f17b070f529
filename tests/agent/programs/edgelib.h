/* SPDX-License-Identifier: Apache-2.0 */
#ifndef EDGELIB_H
#define EDGELIB_H

#include <stdint.h>

#define EDGE_API __attribute__((visibility("default")))

struct edge_big {
	long v[8];
};

EDGE_API uint64_t edge_add(uint64_t a, uint64_t b);
EDGE_API struct edge_big edge_make_big(long x);
EDGE_API double edge_sum(int n, ...);
EDGE_API long edge_many(long a, long b, long c, long d, long e, long f, long g, long h);
EDGE_API __int128 edge_wide(long a);
EDGE_API long double edge_twice(long double x);
EDGE_API double _Complex edge_complex(double a, double b);
EDGE_API float edge_mix(float a, double b, int c, float d, double e, float f, double g, float h, double i, double j);
EDGE_API int edge_call_back(int (*function)(int), int x);
/* strtol, called and named by the library; a program may take its address as well. */
EDGE_API long edge_number(const char *text);
EDGE_API void *edge_address(void);
EDGE_API long edge_recurse(long n, long (*again)(long));

#endif
