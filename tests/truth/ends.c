/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Twelve small programs of local functions, as people write them: leaves, recursion, callbacks, numbers, structures, tail
 * calls, stack arguments, threads, handlers.
 *
 * ends: plays them all and prints how often each function was called, in lines `NAME COUNT`, then a sum of all results.
 * Compilers call most of these with a stack that is not aligned, and keep values in registers that the callee does not
 * change (-fipa-ra): `static` and not inlined, but not hidden from optimizers.
 */
#include <complex.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef LOCAL
#define LOCAL static __attribute__((noinline))
#endif

#define FUNCTIONS(X)    \
	X(twice)        \
	X(first_of)     \
	X(loops)        \
	X(skips_spaces) \
	X(digit)        \
	X(atom)         \
	X(product)      \
	X(expression)   \
	X(insert)       \
	X(height)       \
	X(order)        \
	X(partition)    \
	X(sorts)        \
	X(polynomial)   \
	X(mean)         \
	X(extended)     \
	X(lanes)        \
	X(pair)         \
	X(point)        \
	X(big)          \
	X(turned)       \
	X(mixes)        \
	X(keeps_many)   \
	X(even)         \
	X(odd)          \
	X(state_a)      \
	X(state_b)      \
	X(ten)          \
	X(sum_of)       \
	X(adds_to)      \
	X(worker)       \
	X(on_signal)    \
	X(noted)        \
	X(power)        \
	X(collatz)      \
	X(plays)

enum {
#define NUMBER(name) N_##name,
	FUNCTIONS(NUMBER) FUNCTION_COUNT
};
static long calls[FUNCTION_COUNT];
static const char *const names[] = {
#define NAME(name) #name,
	FUNCTIONS(NAME)};

/* The caller counts: a function that touches no memory is another one to the compiler. */
#define CALL(name, ...) (__atomic_fetch_add(&calls[N_##name], 1, __ATOMIC_RELAXED), name(__VA_ARGS__))
#define CALLED(name)	((void)__atomic_fetch_add(&calls[N_##name], 1, __ATOMIC_RELAXED))

/* ---- leaves ---- */

LOCAL int twice(int i)
{
	return i * 2;
}

LOCAL int first_of(const int *p)
{
	return *(const volatile int *)p;
}

LOCAL int loops(int n)
{
	volatile int sum = 0;

	for (int i = 0; i < n; i++)
		sum += i;
	return sum;
}

static uint64_t leaves(void)
{
	uint64_t sum = 0;

	for (int i = 0; i < 100; i++)
		sum += (uint64_t)(CALL(twice, i) + CALL(first_of, &i) + CALL(loops, i));
	return sum;
}

/* ---- a parser ---- */

static const char *text;
LOCAL long expression(void);

LOCAL void skips_spaces(void)
{
	while (*text == ' ')
		text++;
}

LOCAL int digit(void)
{
	return *text >= '0' && *text <= '9' ? *text++ - '0' : -1;
}

LOCAL long atom(void)
{
	long value = 0;

	CALL(skips_spaces);
	if (*text == '(') {
		text++;
		value = CALL(expression);
		text++;
		return value;
	}
	for (int d; (d = CALL(digit)) >= 0;)
		value = 10 * value + d;
	return value;
}

LOCAL long product(void)
{
	long value = CALL(atom);

	for (CALL(skips_spaces); *text == '*'; CALL(skips_spaces)) {
		text++;
		value *= CALL(atom);
	}
	return value;
}

LOCAL long expression(void)
{
	long value = CALL(product);

	for (CALL(skips_spaces); *text == '+'; CALL(skips_spaces)) {
		text++;
		value += CALL(product);
	}
	return value;
}

static uint64_t parser(void)
{
	text = " 12 + 3*(4 + 5 * (6+7)) + 100*( 2+ 2 )";
	return (uint64_t)CALL(expression);
}

/* ---- a tree ---- */

struct node {
	struct node *child[2];
	int key;
};
static struct node nodes[64];

LOCAL struct node *insert(struct node *root, struct node *new)
{
	if (!root)
		return new;
	root->child[new->key > root->key] = CALL(insert, root->child[new->key > root->key], new);
	return root;
}

LOCAL int height(const struct node *root)
{
	int left, right;

	if (!root)
		return 0;
	left = CALL(height, root->child[0]);
	right = CALL(height, root->child[1]);
	return 1 + (left > right ? left : right);
}

static uint64_t tree(void)
{
	struct node *root = NULL;

	for (int i = 0; i < 64; i++) {
		nodes[i].key = i * 37 % 64;
		root = CALL(insert, root, &nodes[i]);
	}
	return (uint64_t)CALL(height, root);
}

/* ---- sorting: libc calls back, and recursion ---- */

LOCAL int order(const void *a, const void *b)
{
	CALLED(order);
	return *(const int *)a - *(const int *)b;
}

LOCAL int partition(int *from, int count)
{
	int pivot = from[count - 1], at = 0;

	for (int i = 0; i < count - 1; i++)
		if (from[i] < pivot) {
			int other = from[i];

			from[i] = from[at];
			from[at++] = other;
		}
	from[count - 1] = from[at];
	from[at] = pivot;
	return at;
}

LOCAL void sorts(int *from, int count)
{
	int at;

	if (count < 2)
		return;
	at = CALL(partition, from, count);
	CALL(sorts, from, at);
	CALL(sorts, from + at + 1, count - at - 1);
	/* Not a loop. */
	__asm__ volatile("");
}

static uint64_t sorting(void)
{
	int a[50], b[50];
	uint64_t sum = 0;

	for (int i = 0; i < 50; i++)
		a[i] = b[i] = i * 41 % 97;
	qsort(a, 50, sizeof *a, order);
	CALL(sorts, b, 50);
	for (int i = 0; i < 50; i++)
		sum += (uint64_t)(i * a[i]) + (a[i] == b[i]);
	return sum;
}

/* ---- numbers: results and live values in vector and x87 registers ---- */

typedef float four_floats __attribute__((vector_size(16)));

LOCAL double polynomial(double x)
{
	return ((x * 3 + 2) * x - 7) * x + 1;
}

LOCAL float mean(float a, float b)
{
	return (a + b) / 2;
}

LOCAL long double extended(long double x)
{
	return x * x + 1;
}

LOCAL four_floats lanes(four_floats a)
{
	return a * a + 1;
}

static uint64_t numbers(void)
{
	double a = 1, b = 2, c = 3;
	float m = 0;
	long double x = 1;
	four_floats v = {1, 2, 3, 4};

	for (int i = 0; i < 20; i++) {
		a += CALL(polynomial, b / 8) + c;
		b = b * 0.5 + a / 100 - c / 50;
		m = CALL(mean, m, (float)i) + (float)(a / 1e6);
		x = CALL(extended, x / 4);
		v = CALL(lanes, v / 16) + m;
		c += b / 3;
	}
	return (uint64_t)(a * 1000 + b * 100 + c) + (uint64_t)(m * 1000 + v[0] + v[3]) + (uint64_t)(x * 100000);
}

/* ---- structures in registers, in memory ---- */

struct pair {
	long a, b;
};
struct point {
	double x, y;
};
struct big {
	long v[9];
};

LOCAL struct pair pair(long a, long b)
{
	return (struct pair){b + 1, a + 2};
}

LOCAL struct point point(double x)
{
	return (struct point){x * 2, x + 1};
}

LOCAL struct big big(const struct big *old, long at)
{
	struct big new = *old;

	new.v[at] += at + 1;
	return new;
}

LOCAL double complex turned(double complex z)
{
	return z * I + 1;
}

static uint64_t structures(void)
{
	struct pair p = {1, 2};
	struct point q = {1, 1};
	struct big r = {{0}};
	double complex z = 1 + 2 * I;

	for (int i = 0; i < 18; i++) {
		p = CALL(pair, p.a, p.b);
		q = CALL(point, q.x / 4 + q.y);
		r = CALL(big, &r, i % 9);
		z = CALL(turned, z / 2);
	}
	return (uint64_t)(p.a * 100 + p.b + r.v[3] + r.v[8]) + (uint64_t)(1000 * (q.x + q.y + creal(z) + cimag(z) + 9));
}

/* ---- more values alive across a call than registers that callees save ---- */

LOCAL uint64_t mixes(uint64_t a)
{
	return (a ^ a >> 7) * 31;
}

LOCAL uint64_t keeps_many(uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e, uint64_t f)
{
	uint64_t g = a + b, h = c * d, i = e ^ f, j = a - f, k = b + e, l = c ^ d;

	a += CALL(mixes, g + h);
	b ^= CALL(mixes, i - j);
	return a + 3 * b + 5 * c + 7 * d + 11 * e + 13 * f + 17 * g + 19 * h + 23 * i + 29 * j + 31 * k + 37 * l;
}

static uint64_t registers(void)
{
	uint64_t sum = 1;

	for (uint64_t i = 0; i < 60; i++)
		sum = CALL(keeps_many, sum, i, sum >> 3, i * 5, sum ^ i, 99);
	return sum;
}

/* ---- tail calls ---- */

LOCAL int odd(unsigned n);

LOCAL int even(unsigned n)
{
	return n ? CALL(odd, n - 1) : 1;
}

LOCAL int odd(unsigned n)
{
	return n ? CALL(even, n - 1) : 0;
}

LOCAL long state_b(const char *at, long value);

LOCAL long state_a(const char *at, long value)
{
	return *at == 'b' ? CALL(state_b, at + 1, value * 3) : value;
}

LOCAL long state_b(const char *at, long value)
{
	return *at == 'a' ? CALL(state_a, at + 1, value + 1) : value;
}

static uint64_t tail_calls(void)
{
	return (uint64_t)(CALL(even, 20u) + CALL(odd, 7u) + CALL(state_a, "babababa", 1L) + CALL(state_b, "abab.", 2L));
}

/* ---- arguments on the stack ---- */

LOCAL long ten(long a, long b, long c, long d, long e, long f, long g, long h, long i, long j)
{
	return a - b + c - d + e - f + 2 * g - 3 * h + 5 * i - 7 * j;
}

LOCAL long sum_of(int count, ...)
{
	va_list list;
	long sum = 0;

	va_start(list, count);
	while (count--)
		sum += va_arg(list, long);
	va_end(list);
	return sum;
}

static uint64_t stack_arguments(void)
{
	long sum = 0;

	for (long i = 0; i < 30; i++)
		sum += CALL(ten, i, sum, 3, i * i, 5, sum / 2, 7, i + 1, 9, i) +
		       CALL(sum_of, 8, i, 2L, 3L, i, 5L, 6L, 7L, sum);
	return (uint64_t)sum;
}

/* ---- threads ---- */

LOCAL void adds_to(long *sum, long what)
{
	*sum += what * what;
}

LOCAL void *worker(void *sum)
{
	CALLED(worker);
	for (long i = 0; i < 200; i++)
		CALL(adds_to, sum, i);
	return NULL;
}

static uint64_t threads(void)
{
	pthread_t thread[3];
	long sums[3] = {0};

	for (int i = 0; i < 3; i++)
		if (pthread_create(&thread[i], NULL, worker, &sums[i]))
			abort();
	for (int i = 0; i < 3; i++)
		pthread_join(thread[i], NULL);
	return (uint64_t)(sums[0] + sums[1] + sums[2]);
}

/* ---- a signal handler ---- */

static volatile long noted_sum;

LOCAL void noted(int signal)
{
	noted_sum += signal;
}

LOCAL void on_signal(int signal)
{
	CALLED(on_signal);
	CALL(noted, signal);
}

static uint64_t handlers(void)
{
	if (signal(SIGUSR1, on_signal) == SIG_ERR)
		abort();
	for (int i = 0; i < 10; i++)
		raise(SIGUSR1);
	return (uint64_t)noted_sum;
}

/* ---- calculations that call each other ---- */

LOCAL uint64_t power(uint64_t base, unsigned exponent)
{
	uint64_t half;

	if (!exponent)
		return 1;
	half = CALL(power, base, exponent / 2);
	return half * half * (exponent % 2 ? base : 1);
}

LOCAL unsigned collatz(uint64_t n)
{
	unsigned steps = 0;

	for (; n > 1; n = n % 2 ? 3 * n + 1 : n / 2)
		steps++;
	return steps;
}

static uint64_t calculations(void)
{
	uint64_t sum = 0;

	for (unsigned i = 1; i < 40; i++)
		sum += CALL(power, CALL(collatz, i), i);
	return sum;
}

static uint64_t (*const programs[])(void) = {leaves,	      parser,	  tree,	     sorting,
					     numbers,	      structures, registers, tail_calls,
					     stack_arguments, threads,	  handlers,  calculations};

LOCAL uint64_t plays(unsigned number)
{
	return programs[number]();
}

int main(void)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < sizeof programs / sizeof *programs; i++)
		sum = sum * 31 + CALL(plays, i);
	for (int i = 0; i < FUNCTION_COUNT; i++)
		printf("%s %ld\n", names[i], calls[i]);
	printf("main 1\n= %lu\n", (unsigned long)sum);
	return 0;
}
