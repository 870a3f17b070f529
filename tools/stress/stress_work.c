/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stress_work.c - functions with known results: with entry sleds, and of the C library, called through slots.
 *
 * They take and return values in every form that the calling convention has, and end in every way that C has. The
 * sleds have two forms: one always contains a window of eight aligned bytes, the other sometimes does not; such a
 * sled can be traced only if the program had one thread when it was first set. Functions that are counted and
 * recorded have the first form.
 */
#include "tools/stress/stress_inside.h"

#include <errno.h>
#include <search.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <wchar.h>

#ifdef TW_STRESS_WITHOUT_SLEDS /* stress_entry_work.c */
#define LONG_SLED  __attribute__((noinline, visibility("default")))
#define SHORT_SLED LONG_SLED
#else
#define LONG_SLED  __attribute__((noinline, visibility("default"), patchable_function_entry(9, 0)))
#define SHORT_SLED __attribute__((noinline, visibility("default"), patchable_function_entry(16, 11)))
#endif
/* The name of a function, also where a macro gives it another one. */
#define NAME_(x) #x
#define NAME(x)	 NAME_(x)

struct stress_two {
	uint64_t a, b;
};
struct stress_large {
	uint64_t words[6];
};
typedef uint32_t stress_vector_type __attribute__((vector_size(16)));

uint64_t stress_leaf(uint64_t a, uint64_t b);
uint64_t stress_short(uint64_t a, uint64_t b);
uint64_t stress_tail(uint64_t a, uint64_t b);
uint64_t stress_deep(uint64_t n);
uint64_t stress_many(uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e, uint64_t f, uint64_t g, uint64_t h);
struct stress_two stress_pair(uint64_t a, uint64_t b);
struct stress_large stress_struct(struct stress_large large, uint64_t n);
uint64_t stress_sum(uint64_t count, ...);
double stress_float(double a, float b, long double c);
long double stress_long_double(long double a, uint64_t b);
stress_vector_type stress_vector(stress_vector_type a, stress_vector_type b);
void stress_nothing(void);
void stress_jump(uint64_t n, jmp_buf to);
uint64_t stress_set(uint64_t n);
void stress_leave(uint64_t depth);
uint64_t stress_numbered_a(uint64_t n);
uint64_t stress_numbered_b(uint64_t n);

LONG_SLED uint64_t stress_leaf(uint64_t a, uint64_t b)
{
	__asm__ volatile("" : "+r"(a));
	return a * 3 + b;
}

SHORT_SLED uint64_t stress_short(uint64_t a, uint64_t b)
{
	__asm__ volatile("" : "+r"(b));
	return a + b * 5;
}

LONG_SLED uint64_t stress_tail(uint64_t a, uint64_t b)
{
	__asm__ volatile("" : "+r"(a));
	return stress_leaf(b, a);
}

LONG_SLED uint64_t stress_deep(uint64_t n)
{
	uint64_t below = n ? stress_deep(n - 1) : 0;

	__asm__ volatile("" : "+r"(below));
	return below + n;
}

SHORT_SLED uint64_t stress_many(uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e, uint64_t f, uint64_t g,
				uint64_t h)
{
	return a + 2 * b + 3 * c + 4 * d + 5 * e + 6 * f + 7 * g + 8 * h;
}

LONG_SLED struct stress_two stress_pair(uint64_t a, uint64_t b)
{
	return (struct stress_two){b, a};
}

LONG_SLED struct stress_large stress_struct(struct stress_large large, uint64_t n)
{
	large.words[n % 6] += n;
	return large;
}

LONG_SLED uint64_t stress_sum(uint64_t count, ...)
{
	uint64_t sum = 0;
	va_list list;

	va_start(list, count);
	for (uint64_t i = 0; i < count; i++)
		sum += va_arg(list, uint64_t);
	va_end(list);
	return sum;
}

SHORT_SLED double stress_float(double a, float b, long double c)
{
	__asm__ volatile("" : "+x"(a));
	return a + (double)b * 2 + (double)c * 4;
}

LONG_SLED long double stress_long_double(long double a, uint64_t b)
{
	return a * (long double)b;
}

LONG_SLED stress_vector_type stress_vector(stress_vector_type a, stress_vector_type b)
{
	return a * 3 + b;
}

LONG_SLED void stress_nothing(void)
{
	__asm__ volatile("");
}

LONG_SLED void stress_jump(uint64_t n, jmp_buf to)
{
	if (!n)
		longjmp(to, 9);
	if (n != UINT64_MAX)
		stress_jump(n - 1, to);
	__asm__ volatile("");
}

LONG_SLED uint64_t stress_set(uint64_t n)
{
	jmp_buf here;
	int result = setjmp(here);

	if (!result)
		stress_jump(n, here);
	return (uint64_t)result;
}

LONG_SLED void stress_leave(uint64_t depth)
{
	if (!depth)
		pthread_exit(NULL);
	if (depth != UINT64_MAX)
		stress_leave(depth - 1);
	__asm__ volatile("");
}

#define COUNTED(n)                                 \
	void stress_counted_a##n(void);            \
	void stress_counted_b##n(void);            \
	LONG_SLED void stress_counted_a##n(void)   \
	{                                          \
		__asm__ volatile("" ::"i"(n));     \
	}                                          \
	LONG_SLED void stress_counted_b##n(void)   \
	{                                          \
		__asm__ volatile("" ::"i"(n + 1)); \
	}
COUNTED(0)
COUNTED(1)
COUNTED(2)
COUNTED(3)

LONG_SLED uint64_t stress_numbered_a(uint64_t n)
{
	__asm__ volatile("" : "+r"(n));
	return n * 3 + 1;
}

LONG_SLED uint64_t stress_numbered_b(uint64_t n)
{
	__asm__ volatile("" : "+r"(n));
	return n * 7 + 2;
}

static const char *const names[] = {NAME(stress_leaf),	 NAME(stress_short),
				    NAME(stress_tail),	 NAME(stress_deep),
				    NAME(stress_many),	 NAME(stress_pair),
				    NAME(stress_struct), NAME(stress_sum),
				    NAME(stress_float),	 NAME(stress_long_double),
				    NAME(stress_vector), NAME(stress_nothing),
				    NAME(stress_jump),	 NAME(stress_set),
				    NAME(stress_leave),	 NULL};
#ifndef TW_STRESS_WITHOUT_SLEDS
/*
 * Functions that the library itself never calls: its own calls, which this program contains, would be traced too. And
 * functions that take no lock: signal handlers call them.
 */
const char *const tw_stress_slots[] = {"lldiv", "wcstoull", "wcstod", "wcstold", "strfromd",
				       "lfind", "swab",	    "memmem", NULL};
const char *const tw_stress_numbered_slots[2] = {"ldiv", "div"};
struct tw_declared_function tw_stress_numbered_declared[2] = {TW_DECLARED_FUNCTION("stress", "numbered_a", 1),
							      TW_DECLARED_FUNCTION("stress", "numbered_b", 1)};
struct tw_declared_function tw_stress_marker = TW_DECLARED_FUNCTION("stress", "round", 2);

#endif
static const char *const numbered[2] = {NAME(stress_numbered_a), NAME(stress_numbered_b)};
static const char *const counted[TW_STRESS_SLED_PAIRS + 1][2] = {
	{NAME(stress_counted_a0), NAME(stress_counted_b0)},
	{NAME(stress_counted_a1), NAME(stress_counted_b1)},
	{NAME(stress_counted_a2), NAME(stress_counted_b2)},
	{NAME(stress_counted_a3), NAME(stress_counted_b3)},
	{NULL, NULL},
};

/* ---- their calls ---- */

static void differs(struct tw_stress_caller *caller, const char *function, uint64_t n, uint64_t got, uint64_t want)
{
	tw_stress_tell(caller->stress, "%s() gave 0x%llx and not 0x%llx in round %llu", function,
		       (unsigned long long)got, (unsigned long long)want, (unsigned long long)n);
}

#define SAME(place, function, got, want)                                   \
	do {                                                               \
		uint64_t got_ = (uint64_t)(got), want_ = (uint64_t)(want); \
		caller->calls[place]++;                                    \
		if (__builtin_expect(got_ != want_, 0))                    \
			differs(caller, function, n, got_, want_);         \
	} while (0)
#define SLED(function, got, want) SAME(TW_STRESS_AT_SLED, function, got, want)
#define SLOT(function, got, want) SAME(TW_STRESS_AT_SLOT, function, got, want)

#ifdef TW_STRESS_REGISTERS

/* In the order of stress_x86_64.S. */
struct registers {
	uint64_t words[14]; /* rax rcx rdx rsi rdi r8 r9 r10 r11 rbx r12 r13 r14 r15 */
	uint64_t vectors[16][2];
	uint32_t mxcsr, x87_control;
};
void tw_stress_call_keeping(void (*function)(void), struct registers *before, struct registers *after);

/* A function that does nothing changes no register: its callers may rely on that (-fipa-ra). */
static void check_registers(struct tw_stress_caller *caller, uint64_t n)
{
	static const char *const names[] = {"rax", "rcx", "rdx", "rsi", "rdi", "r8",  "r9",
					    "r10", "r11", "rbx", "r12", "r13", "r14", "r15"};
	struct registers before, after;

	for (unsigned i = 0; i < 14; i++)
		before.words[i] = tw_stress_draw(&caller->random, UINT32_MAX) * 0x100000001u + i;
	for (unsigned i = 0; i < 16; i++)
		before.vectors[i][0] = before.vectors[i][1] = ~before.words[i % 14];
	tw_stress_call_keeping(stress_nothing, &before, &after);
	for (unsigned i = 0; i < 14; i++)
		SLED(names[i], after.words[i], before.words[i]);
	caller->calls[TW_STRESS_AT_SLED] -= 13;
	if (memcmp(before.vectors, after.vectors, sizeof before.vectors))
		tw_stress_tell(caller->stress, "a vector register changed over stress_nothing() in round %llu",
			       (unsigned long long)n);
	if (after.mxcsr != before.mxcsr || after.x87_control != before.x87_control)
		tw_stress_tell(caller->stress, "floating point has another mode after stress_nothing() in round %llu",
			       (unsigned long long)n);
}

static void call_vectors(struct tw_stress_caller *caller, uint64_t n)
{
	stress_vector_type a = {(uint32_t)n, 1, 2, 3}, b = {4, 5, 6, (uint32_t)n}, c;
	double k = (double)(n & 0xffff);

	SLED("stress_float", (uint64_t)stress_float(k, 3, 0.5L), (n & 0xffff) + 8);
	SLED("stress_long_double", (uint64_t)stress_long_double((long double)k, 3), (n & 0xffff) * 3);
	c = stress_vector(a, b);
	SLED("stress_vector", (uint64_t)c[0] << 32 | c[3], (uint64_t)((uint32_t)n * 3 + 4) << 32 | ((uint32_t)n + 9));
	check_registers(caller, n);
}

#ifndef TW_STRESS_WITHOUT_SLEDS
static void call_float_slots(struct tw_stress_caller *caller, uint64_t n)
{
	uint64_t k = n % 1000;
	wchar_t digits[8] = {};
	char text[16];

	SLOT("strfromd", strfromd(text, sizeof text, "%g", (double)k + 0.5), 3 + (k > 9) + (k > 99));
	for (unsigned i = 0; i < 7; i++)
		digits[i] = (wchar_t)text[i];
	SLOT("wcstod", (uint64_t)(wcstod(digits, NULL) * 2), 2 * k + 1);
	SLOT("wcstold", (uint64_t)(wcstold(digits, NULL) * 4), 4 * k + 2);
}
#endif

#else

/* The run-time of a sanitizer uses vector registers inside of hits. */
static void call_vectors(struct tw_stress_caller *caller, uint64_t n)
{
	stress_nothing();
}

#ifndef TW_STRESS_WITHOUT_SLEDS
static void call_float_slots(struct tw_stress_caller *caller, uint64_t n)
{
}
#endif

#endif

static void call_all(struct tw_stress_caller *caller, uint64_t n)
{
	struct stress_large large = {{n, 1, 2, 3, 4, 5}};
	struct stress_two two;
	uint64_t k = n % 9;

	SLED("stress_leaf", stress_leaf(n, 5), n * 3 + 5);
	SLED("stress_short", stress_short(n, 7), n + 35);
	SLED("stress_tail", stress_tail(4, n), n * 3 + 4);
	SLED("stress_deep", stress_deep(k), k * (k + 1) / 2);
	caller->calls[TW_STRESS_AT_SLED] += k + 1;
	SLED("stress_many", stress_many(n, 1, 2, 3, 4, 5, 6, 7), n + 2 + 6 + 12 + 20 + 30 + 42 + 56);
	two = stress_pair(n, ~n);
	SLED("stress_pair", two.a ^ two.b, UINT64_MAX);
	large = stress_struct(large, n);
	SLED("stress_struct", large.words[0] + large.words[n % 6], n % 6 ? n + n % 6 + n : 4 * n);
	SLED("stress_sum", stress_sum(8, n, n, n, n, n, n, n, (uint64_t)1), 7 * n + 1);
	errno = (int)k + 1000;
	SLED("stress_leaf (errno)", stress_leaf(0, 1) * 0 + (uint64_t)errno, k + 1000);
	SLED("stress_set", stress_set(k), 9);
	caller->calls[TW_STRESS_AT_SLED] += k + 1;
	call_vectors(caller, n);
}

static void call_counted(struct tw_stress_caller *caller)
{
	stress_counted_a0();
	stress_counted_b0();
	stress_counted_a1();
	stress_counted_b1();
	stress_counted_a2();
	stress_counted_b2();
	stress_counted_a3();
	stress_counted_b3();
	caller->calls[TW_STRESS_AT_SLED] += 2 * TW_STRESS_SLED_PAIRS;
	caller->pair_calls += TW_STRESS_SLED_PAIRS;
}

static uint64_t call_numbered(int half, uint64_t n)
{
	return half ? stress_numbered_b(n) : stress_numbered_a(n);
}

#ifdef TW_STRESS_WITHOUT_SLEDS
const struct tw_stress_form tw_stress_with_entries =
#else
const struct tw_stress_form tw_stress_with_sleds =
#endif
	{names, counted, numbered, call_all, call_counted, call_numbered, stress_leave};

#ifndef TW_STRESS_WITHOUT_SLEDS

/* The argument of lfind()'s comparison, which may be asked to jump out of it. */
struct sought {
	uint64_t value;
	bool jumps;
	jmp_buf out;
};

static int compare(const void *sought, const void *element)
{
	struct sought *s = (struct sought *)(uintptr_t)sought;
	uint64_t value = *(const uint64_t *)element;

	if (s->jumps && stress_leaf(value, 1) == s->value * 3 + 1)
		longjmp(s->out, 5);
	return value != s->value;
}

static uint64_t seek(uint64_t k, bool jumps)
{
	static const uint64_t values[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
	struct sought sought = {.value = k, .jumps = jumps};
	size_t count = 10;
	int result = jumps ? setjmp(sought.out) : 0;

	if (result)
		return (uint64_t)result;
	return (uint64_t)((uint64_t *)lfind(&sought, values, &count, sizeof *values, compare) - values);
}

void tw_stress_call_slots(struct tw_stress_caller *caller, uint64_t n)
{
	static const wchar_t wide[] = L"18446744073709551615 and more";
	const char digits[] = "18446744073709551615 and more", *needle = "and";
	uint64_t k = n % 9;
	char swapped[8];
	lldiv_t divided;

	divided = lldiv((long long)(n & 0xffffff), 10);
	SLOT("lldiv", (uint64_t)divided.quot * 10 + (uint64_t)divided.rem, n & 0xffffff);
	SLOT("wcstoull", wcstoull(&wide[k], NULL, 10) % 10, 5);
	swab(digits, swapped, 8);
	SLOT("swab", (unsigned char)swapped[k & 7], (unsigned char)digits[(k & 7) ^ 1]);
	SLOT("memmem", (const char *)memmem(digits, sizeof digits, needle + k % 3, 3 - k % 3) - digits, 21 + k % 3);
	SLOT("lfind", seek(k, false), k);
	SLOT("lfind", seek(k, true), 5);
	call_float_slots(caller, n);
}

/* ---- recorded calls ---- */

static uint64_t declared_answer(uint64_t n, int half)
{
	return n * 5 + (uint64_t)half;
}

static uint64_t call_declared(uint64_t n, int half)
{
	struct tw_frame frame;

	tw_enter1(&tw_stress_numbered_declared[half], &frame, n);
	tw_leave(&frame, declared_answer(n, half));
	return declared_answer(n, half);
}

/* Two numbers in one register. */
static uint64_t call_div(uint64_t n)
{
	div_t divided = div((int)(n & 0xffffff), 7);

	return (uint64_t)(uint32_t)divided.quot | (uint64_t)(uint32_t)divided.rem << 32;
}

void tw_stress_call_numbered(struct tw_stress_caller *caller, enum tw_stress_place place, int half, uint64_t n)
{
	uint64_t got;

	if (place == TW_STRESS_AT_DECLARED)
		got = call_declared(n, half);
	else if (place == TW_STRESS_AT_SLED)
		got = caller->stress->form->call_numbered(half, n);
	else
		got = half ? call_div(n) : (uint64_t)ldiv((long)n, 3).quot;
	SAME(place, "a recorded function", got, tw_stress_numbered_answer(place, half, n));
}

uint64_t tw_stress_numbered_answer(enum tw_stress_place place, int half, uint64_t n)
{
	uint64_t k = n & 0xffffff;

	switch (place) {
	case TW_STRESS_AT_DECLARED: return declared_answer(n, half);
	case TW_STRESS_AT_SLED: return half ? n * 7 + 2 : n * 3 + 1;
	default: return half ? k / 7 | k % 7 << 32 : n / 3;
	}
}

#endif
