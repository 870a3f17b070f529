/* SPDX-License-Identifier: Apache-2.0 */
/* deep_throw.h - an exception that leaves several calls, each with an object to destroy. In C++. */
#ifndef TW_TESTS_DEEP_THROW_H
#define TW_TESTS_DEEP_THROW_H

#include <stdexcept>

struct guard {
	int *count;
	~guard()
	{
		++*count;
	}
};

/* Throws out of n + 1 calls, and adds that number to *count. */
__attribute__((noinline)) static int deep(int n, int *count)
{
	guard g{count};

	if (!n)
		throw std::runtime_error("deep");
	__asm__ volatile("" ::: "memory");
	return deep(n - 1, count) + 1;
}

#endif
