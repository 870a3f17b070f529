/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ODDLIB_H
#define ODDLIB_H

#include <stdint.h>

#define ODD_API __attribute__((visibility("default")))

struct odd_big {
	long v[8];
};

ODD_API uint64_t odd_add(uint64_t a, uint64_t b);
ODD_API struct odd_big odd_make_big(long x);
ODD_API double odd_sum(int n, ...);
ODD_API long odd_many(long a, long b, long c, long d, long e, long f, long g, long h);
ODD_API __int128 odd_wide(long a);
ODD_API long double odd_twice(long double x);
ODD_API double _Complex odd_complex(double a, double b);
ODD_API float odd_mix(float a, double b, int c, float d, double e, float f, double g, float h, double i, double j);
ODD_API int odd_call_back(int (*function)(int), int x);
/* strtol, called and named by the library; a program may take its address as well. */
ODD_API long odd_number(const char *text);
ODD_API void *odd_address(void);
ODD_API long odd_recurse(long n, long (*again)(long));

#endif
