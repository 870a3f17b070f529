// SPDX-License-Identifier: Apache-2.0
// returns_work.cc - functions that end in every way, and what they answer; see returns_stress.c.
#include <csetjmp>
#include <cstdint>
#include <stdexcept>
#include <string>

#define WORK extern "C" __attribute__((noinline, visibility("default")))

WORK uint64_t work_leaf(uint64_t a, uint64_t b)
{
	__asm__ volatile("" : "+r"(a));
	return a * 3 + b;
}

WORK uint64_t work_tail(uint64_t a, uint64_t b)
{
	__asm__ volatile("" : "+r"(a));
	return work_leaf(b, a);
}

WORK uint64_t work_deep(uint64_t n)
{
	uint64_t below = n ? work_deep(n - 1) : 0;

	__asm__ volatile("" : "+r"(below));
	return below + n;
}

struct work_counts {
	uint64_t destroyed;
	~work_counts()
	{
		(*out)++;
	}
	uint64_t *out;
};

WORK uint64_t work_throw(uint64_t n, uint64_t *destroyed)
{
	work_counts counts{0, destroyed};

	if (!n)
		throw std::runtime_error("thrown");
	uint64_t below = work_throw(n - 1, destroyed);
	__asm__ volatile("" : "+r"(below));
	return below;
}

WORK uint64_t work_catch(uint64_t n)
{
	uint64_t destroyed = 0;

	try {
		work_throw(n, &destroyed);
	} catch (const std::exception &e) {
		return destroyed + (std::string("thrown") == e.what() ? 100 : 0);
	}
	return 0;
}

WORK uint64_t work_rethrow(uint64_t n)
{
	try {
		try {
			return work_throw(n, &n);
		} catch (...) {
			work_leaf(1, 2);
			throw;
		}
	} catch (const std::runtime_error &) {
		return 7;
	}
}

static thread_local jmp_buf jump;

WORK void work_jump(uint64_t n)
{
	if (!n)
		longjmp(jump, 9);
	work_jump(n - 1);
	__asm__ volatile("");
}

WORK uint64_t work_set(uint64_t n)
{
	int result = setjmp(jump);

	if (!result)
		work_jump(n);
	return (uint64_t)result;
}

WORK double work_float(double a, long double b)
{
	__asm__ volatile("");
	return a + (double)b;
}

// How many answers of one round are wrong.
WORK uint64_t work_round(uint64_t n)
{
	uint64_t wrong = 0, k = n % 9;

	wrong += work_leaf(n, 5) != n * 3 + 5;
	wrong += work_tail(4, n) != n * 3 + 4;
	wrong += work_deep(k) != k * (k + 1) / 2;
	wrong += work_catch(k) != k + 1 + 100;
	wrong += work_rethrow(k) != 7;
	wrong += work_set(k) != 9;
	wrong += work_float(1.5, (long double)k) != 1.5 + (double)k;
	return wrong;
}
