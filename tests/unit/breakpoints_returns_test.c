/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal    Each call through a sled or slot is seen to return once, for all calling conventions and whatever happens to
 *         its frame; and the program is not affected: values, registers, errno, backtraces, jumps, coroutines, small
 *         stacks, signal stacks, ends of threads.
 * Method  Functions with real sleds are armed; a hit opens a frame for each call, and each return is noted by number.
 */
#include "breakpoints/breakpoints.h"
#include "breakpoints/patch.h"
#include "breakpoints/returns.h"
#include "breakpoints/unwind.h"
#include "returns_help.h"
#include "tracewheel/error.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include "traced_help.h"
#include <alloca.h>
#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#define NOTED 256 /* the last notes */

/* ---- observations ---- */

enum { RETURNED = 0, THROWN = 1 };
static __thread struct {
	uint64_t place_id, value;
	int how;
} noted[NOTED];
/* The compiler knows which variables the functions below change, and that this is not one of them. */
static __thread volatile unsigned note_count, open_count;
static __thread bool must_be_long, must_catch = true;
static __thread char thrown_name[256];
static uint64_t places_seen[64];

REGULAR static const char *hit(struct tw_place *place, const uint64_t *words, uint64_t *slot)
{
	tw_return_word kept[TW_RETURNS_LONG_WORDS] = {(uintptr_t)place, 1, 2, 3, 4, 5, 6, 7, 8, 9};
	const char *way = NULL;

	if (place->place_id < TW_COUNT_OF(places_seen))
		places_seen[place->place_id]++;
	open_count += tw_returns_open(slot, kept, must_be_long, must_catch, &way);
	return way;
}

REGULAR static void note(const tw_return_word *words, uint64_t value, int how)
{
	const struct tw_place *place = (const struct tw_place *)words[0];

	if (!place)
		return;
	if (words[1] != 1 || words[5] != 5)
		abort();
	noted[note_count % NOTED].place_id = place->place_id;
	noted[note_count % NOTED].value = value;
	noted[note_count++ % NOTED].how = how;
}

REGULAR static uintptr_t returned(uint64_t *slot, uint64_t value)
{
	struct tw_return_entry *entry = tw_returns_find(slot);
	uintptr_t back;

	if (!entry)
		abort();
	back = entry->return_address;
	for (unsigned i = tw_returns_count(entry); i-- > 0;)
		note(tw_returns_frame(entry, i), value, RETURNED);
	tw_returns_close(entry);
	/* Garbage in every register that a function may change. */
	__asm__ volatile("mov $-1, %%rax; mov %%rax, %%rcx; mov %%rax, %%rdx; mov %%rax, %%rsi; mov %%rax, %%rdi;"
			 "mov %%rax, %%r8; mov %%rax, %%r9; mov %%rax, %%r10; mov %%rax, %%r11" ::
				 : "rax", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "memory");
	return back;
}

static void thrown(uint64_t *slot, const struct tw_unwind *unwind)
{
	struct tw_return_entry *entry = tw_returns_find(slot);

	for (unsigned i = tw_returns_count(entry); i-- > 0;)
		note(tw_returns_frame(entry, i), 0, THROWN);
	strncpy(thrown_name, unwind->name, sizeof thrown_name - 1);
	tw_returns_close(entry);
}

static void begin(void)
{
	note_count = open_count = 0;
	must_be_long = false;
}

/* Expects `count` returns, the last of them from this place. */
static void expect(unsigned count, const struct tw_place *last, int how)
{
	assert_int_equal(note_count, count);
	assert_int_equal(noted[(count - 1) % NOTED].place_id, last->place_id);
	assert_int_equal(noted[(count - 1) % NOTED].how, how);
}

/* ---- conventions ---- */

struct big {
	long v[12];
};
typedef double vector __attribute__((vector_size(16)));

TRACED static struct big make_big(long x)
{
	return (struct big){{x, x + 1, x + 2}};
}
TRACED static __int128 make_wide(long x)
{
	return (__int128)x << 64 | 9;
}
TRACED static long double make_long(long double x)
{
	return x * 3;
}
TRACED static vector make_vector(double x)
{
	return (vector){x, x + 1};
}
TRACED static double sum(int n, ...)
{
	va_list list;
	double all = 0;

	va_start(list, n);
	while (n--)
		all += va_arg(list, double);
	va_end(list);
	return all;
}
TRACED static long many(long a, long b, long c, long d, long e, long f, long g, long h)
{
	__asm__ volatile("");
	return a + b + c + d + e + f + 10 * g + 100 * h;
}
TRACED static long on_stack(size_t bytes)
{
	char *buffer = alloca(bytes);

	memset(buffer, 1, bytes);
	__asm__ volatile("" ::"r"(buffer) : "memory");
	return buffer[bytes - 1];
}
TRACED static long fib(long n)
{
	long a, b;

	if (n < 2)
		return n;
	/* Keeps the compiler from making a loop of it. */
	a = fib(n - 1);
	__asm__ volatile("" : "+r"(a));
	b = fib(n - 2);
	__asm__ volatile("" : "+r"(b));
	return a + b;
}

static void test_conventions(void **state)
{
	struct tw_place *last;
	vector v;

	ARM(make_big);
	ARM(make_wide);
	ARM(make_long);
	ARM(make_vector);
	ARM(sum);
	ARM(on_stack);
	last = ARM(many);
	begin();
	assert_int_equal(make_big(5).v[2], 7);
	assert_true(make_wide(7) == ((__int128)7 << 64 | 9));
	assert_true(make_long(1.5L) == 4.5L);
	v = make_vector(2);
	assert_true(v[0] == 2 && v[1] == 3);
	assert_true(sum(9, 1., 2., 3., 4., 5., 6., 7., 8., 9.) == 45);
	assert_int_equal(on_stack(10000), 1);
	errno = 4711;
	assert_int_equal(many(1, 2, 3, 4, 5, 6, 7, 8), 891);
	assert_int_equal(errno, 4711);
	expect(7, last, RETURNED);
	assert_int_equal(noted[6].value, 891);
}

static void test_recursion(void **state)
{
	struct tw_place *place = ARM(fib);

	begin();
	assert_int_equal(fib(15), 610);
	expect(1973, place, RETURNED);
	assert_int_equal(open_count, 1973);
	assert_int_equal(noted[1972 % NOTED].value, 610);
}

/* No register is changed, so a caller that relies on -fipa-ra finds all its values. */
TRACED static void nothing(void)
{
	__asm__ volatile("" ::: "memory");
}

static void test_registers(void **state)
{
	uint64_t out[9];

	ARM(nothing);
	begin();
	__asm__ volatile("mov $11, %%eax; mov $12, %%ecx; mov $13, %%edx; mov $14, %%esi; mov $15, %%edi;"
			 "mov $16, %%r8d; mov $17, %%r9d; mov $18, %%r10d; mov $19, %%r11d\n\t"
			 "sub $128, %%rsp; call *%1; add $128, %%rsp\n\t"
			 "mov %%rax, (%0); mov %%rcx, 8(%0); mov %%rdx, 16(%0); mov %%rsi, 24(%0); mov %%rdi, 32(%0);"
			 "mov %%r8, 40(%0); mov %%r9, 48(%0); mov %%r10, 56(%0); mov %%r11, 64(%0)" ::"b"(out),
			 "r"((uintptr_t)nothing)
			 : "rax", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "memory", "cc");
	for (uint64_t i = 0; i < 9; i++)
		assert_int_equal(out[i], 11 + i);
	assert_int_equal(note_count, 1);
}

/* ---- tail calls ---- */

TRACED static long third(long n)
{
	__asm__ volatile("" : "+r"(n)::"memory");
	return n + 1;
}
/* In assembly, to be independent of the optimization level. */
TRACED static long second(long n);
TRACED static long first(long n);
#define JUMPS(name, to)                                        \
	TRACED __attribute__((naked)) static long name(long n) \
	{                                                      \
		__asm__("jmp " #to);                           \
	}
JUMPS(second, third)
JUMPS(first, second)

static void test_tail_calls(void **state)
{
	struct tw_place *places[3] = {ARM(first), ARM(second), ARM(third)};

	for (int is_long = 0; is_long < 2; is_long++) {
		begin();
		must_be_long = is_long;
		assert_int_equal(first(41), 42);
		expect(3, places[0], RETURNED);
		assert_int_equal(noted[0].place_id, places[2]->place_id);
		assert_int_equal(noted[1].place_id, places[1]->place_id);
		assert_int_equal(noted[0].value, 42);
	}
	must_be_long = false;
}

TRACED __attribute__((naked)) static long endless(long n)
{
	__asm__("dec %rdi; jnz endless; mov $7, %eax; ret");
}

static void test_endless_chain(void **state)
{
	struct tw_place *place = ARM(endless);
	uint64_t lost = tw_returns_lost.chain;

	begin();
	assert_int_equal(endless(100000), 7);
	expect(1 + TW_RETURNS_CHAIN_MAX, place, RETURNED);
	assert_int_equal(tw_returns_lost.chain - lost, 100000 - 1 - TW_RETURNS_CHAIN_MAX);
	/* The entries of these stack slots are reused. */
	begin();
	assert_int_equal(endless(3), 7);
	expect(3, place, RETURNED);
}

/* ---- jumps and unwinding ---- */

static jmp_buf jump;

TRACED static long leaves(long depth)
{
	long result;

	if (depth < 0)
		return 0;
	if (!depth)
		longjmp(jump, 3);
	result = leaves(depth - 1);
	__asm__ volatile("");
	return result;
}

static void test_longjmp(void **state)
{
	struct tw_place *place = ARM(leaves), *after = ARM(third);

	(void)place;
	for (volatile int i = 0; i < 3; i++) {
		begin();
		if (!setjmp(jump))
			leaves(5);
		assert_int_equal(note_count, 0);
		assert_int_equal(third(1), 2);
		expect(1, after, RETURNED);
	}
}

static void *frames[64];
static int frame_count;

TRACED static int look_inside(void)
{
	frame_count = backtrace(frames, 64);
	return frame_count;
}
TRACED static int look(void)
{
	int count = look_inside();

	__asm__ volatile("");
	return count;
}

/* The name in `function` is not enough: does the backtrace contain an address within 64 bytes of the call? */
static bool is_in_backtrace(uintptr_t function)
{
	for (int i = 0; i < frame_count; i++)
		if ((uintptr_t)frames[i] - function < 256)
			return true;
	return false;
}

static void test_backtrace(void **state)
{
	int untraced = look();

	assert_true(untraced > 3);
	ARM(look_inside);
	ARM(look);
	begin();
	/* Two frames more: those of the stubs. */
	assert_int_equal(look(), untraced + 2);
	assert_true(is_in_backtrace((uintptr_t)look) && is_in_backtrace((uintptr_t)test_backtrace));
	assert_int_equal(note_count, 2);
}

/* ---- from each instruction on the path ---- */

static volatile unsigned step_count, stub_step_count, blind_count;
static int step_over(void);

/* Except those of the sled's stub, for which unwinders have no information: it belongs to no object. */
static void unwind_here(int number, siginfo_t *info, void *context)
{
	uintptr_t at = (uintptr_t)((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];
	Dl_info object;

	step_count = step_count + 1;
	if (at - (uintptr_t)tw_return_enter < (uintptr_t)(tw_return_stubs_end - tw_return_enter))
		stub_step_count = stub_step_count + 1;
	if (!dladdr((void *)at, &object))
		return;
	frame_count = backtrace(frames, 64);
	if (!is_in_backtrace((uintptr_t)step_over))
		blind_count = blind_count + 1;
}

TRACED static int stepped(int a)
{
	__asm__ volatile("" : "+r"(a));
	return a + 1;
}

/* Calls with the other half of the 16 bytes of its own slot. */
TRACED __attribute__((naked)) static int steps_on(int a)
{
	__asm__("call stepped; ret");
}

/* Runs with the trap flag set. */
static __attribute__((noinline)) int step_over(void)
{
	int result;

	__asm__ volatile("pushf; orl $0x100, (%%rsp); popf" ::: "memory", "cc");
	result = steps_on(2);
	__asm__ volatile("pushf; andl $~0x100, (%%rsp); popf" ::: "memory", "cc");
	return result;
}

static void test_unwinding_everywhere(void **state)
{
	struct sigaction act = {.sa_sigaction = unwind_here, .sa_flags = SA_SIGINFO}, old;
	struct tw_place *place = ARM(stepped), *outer = ARM(steps_on);

	assert_int_equal(sigaction(SIGTRAP, &act, &old), 0);
	for (int i = 0; i < 2; i++) {
		begin();
		must_catch = i;
		assert_int_equal(stepped(1), 2);
		expect(1, place, RETURNED);
		step_count = stub_step_count = blind_count = 0;
		assert_int_equal(step_over(), 3);
		assert_in_range(step_count, 160, 1999);
		assert_in_range(stub_step_count, 40, 199);
		assert_int_equal(blind_count, 0);
		expect(3, outer, RETURNED);
	}
	sigaction(SIGTRAP, &old, NULL);
}

TRACED static int ends(int depth)
{
	int result;

	if (depth < 0)
		return 0;
	if (!depth)
		pthread_exit((void *)5);
	result = ends(depth - 1);
	__asm__ volatile("");
	return result;
}

static void *thread_that_ends(void *arg)
{
	unsigned *count = arg;

	begin();
	if (setjmp(jump) == 0)
		third(2);
	count[0] = note_count;
	ends(3);
	return NULL;
}

static pthread_key_t key;

static void at_end(void *arg)
{
	unsigned *count = arg;

	count[1] = note_count;
	count[2] = noted[1].how;
	count[3] = !strcmp(thrown_name, "pthread_exit");
	third(3);
	count[4] = note_count;
}

static void *thread_with_key(void *arg)
{
	pthread_setspecific(key, arg);
	return thread_that_ends(arg);
}

static void test_thread_ends_inside(void **state)
{
	unsigned counts[5];
	pthread_t thread;
	void *result;

	ARM(ends);
	ARM(third);
	assert_null(tw_unwind_find());
	pthread_key_create(&key, at_end);
	assert_int_equal(pthread_create(&thread, NULL, thread_with_key, counts), 0);
	pthread_join(thread, &result);
	assert_ptr_equal(result, (void *)5);
	assert_int_equal(counts[0], 1);
	assert_int_equal(counts[1], 5);
	assert_int_equal(counts[2], THROWN);
	assert_true(counts[3]);
	assert_int_equal(counts[4], 6);
	pthread_key_delete(key);
}

/* ---- stacks ---- */

static ucontext_t main_context, contexts[2];
static unsigned steps;

TRACED static void step(int which)
{
	third(which);
	steps = steps + 1;
	swapcontext(&contexts[which], &main_context);
	third(which);
}

static void coroutine(int which)
{
	for (;;)
		step(which);
}

static void test_coroutines(void **state)
{
	static char stacks[2][65536];
	unsigned before;

	ARM(third);
	ARM(step);
	begin();
	for (int i = 0; i < 2; i++) {
		getcontext(&contexts[i]);
		contexts[i].uc_stack.ss_sp = stacks[i];
		contexts[i].uc_stack.ss_size = sizeof stacks[i];
		makecontext(&contexts[i], (void (*)(void))coroutine, 1, i);
	}
	for (int i = 0; i < 100; i++)
		swapcontext(&main_context, &contexts[i % 2]);
	assert_int_equal(steps, 100);
	before = note_count;
	/* 100 steps began, and 98 of them ended. */
	assert_int_equal(before, 100 + 98 + 98);
	assert_int_equal(third(0), 1);
}

static sigjmp_buf out_of_handler;
static volatile int handled;

TRACED static void handle_overflow(int number)
{
	third(1);
	handled++;
	siglongjmp(out_of_handler, 1);
}

TRACED static long overflow(long n)
{
	volatile char buffer[512];

	buffer[n & 511] = (char)n;
	if (n < 0)
		return 0;
	return overflow(n + 1) + buffer[n & 511];
}

static void *thread_that_overflows(void *arg)
{
	static char signal_stack[65536];
	const stack_t stack = {.ss_sp = signal_stack, .ss_size = sizeof signal_stack};
	struct sigaction action = {.sa_handler = handle_overflow, .sa_flags = SA_ONSTACK | SA_NODEFER}, before;
	unsigned *count = arg;

	sigaltstack(&stack, NULL);
	sigaction(SIGSEGV, &action, &before);
	begin();
	if (!sigsetjmp(out_of_handler, 1))
		overflow(0);
	*count = note_count;
	third(1);
	*count += note_count;
	sigaction(SIGSEGV, &before, NULL);
	return NULL;
}

static void test_stack_overflow(void **state)
{
	unsigned count = 0;
	pthread_attr_t attributes;
	pthread_t thread;

	ARM(third);
	ARM(overflow);
	ARM(handle_overflow);
	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, 65536);
	assert_int_equal(pthread_create(&thread, &attributes, thread_that_overflows, &count), 0);
	pthread_join(thread, NULL);
	assert_int_equal(handled, 1);
	/* One in the handler, one after it. */
	assert_int_equal(count, 1 + 2);
}

/*
 * A caller without a frame, whose call uses the other half of the same 16 bytes of stack: gcc makes such calls of local
 * functions that need no aligned stack.
 */
TRACED __attribute__((naked)) static long without_frame(long n)
{
	__asm__("call third; ret");
}

static void test_two_slots_in_16_bytes(void **state)
{
	struct tw_place *outer = ARM(without_frame), *inner = ARM(third);

	begin();
	assert_int_equal(without_frame(4), 5);
	expect(2, outer, RETURNED);
	assert_int_equal(noted[0].place_id, inner->place_id);
}

/* ---- processes ---- */

TRACED static int forks(void)
{
	int status;
	pid_t pid = fork();

	if (pid)
		return waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
	return -2;
}

static void test_fork(void **state)
{
	int result;

	ARM(forks);
	ARM(third);
	begin();
	result = forks();
	if (result == -2)
		_exit(third(6) == 7 && note_count == 2 ? 9 : 1);
	assert_int_equal(result, 9);
	assert_int_equal(note_count, 1);
}

/* ---- obstacles ---- */

static void test_foreign_memory(void **state)
{
	/* A stack whose shadow chunk is mapped by other code. */
	uintptr_t at = UINT64_C(0x123450000000);
	uintptr_t shadow = (uintptr_t)tw_returns_entry((const uint64_t *)at);
	tw_return_word words[TW_RETURNS_LONG_WORDS] = {1};
	uint64_t lost = tw_returns_lost.no_memory;
	const char *way = NULL;
	uint64_t *slot = mmap((void *)at, 4096, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	void *other = mmap((void *)shadow, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

	assert_ptr_equal(slot, (void *)at);
	assert_ptr_equal(other, (void *)shadow);
	*slot = 77;
	errno = 5;
	for (int i = 0; i < 2; i++)
		assert_false(tw_returns_open(slot, words, false, false, &way));
	assert_null(way);
	assert_int_equal(errno, 5);
	assert_int_equal(*slot, 77);
	assert_int_equal(tw_returns_lost.no_memory - lost, 2);
	/* Another chunk with the same shadow: the first to map it owns it. */
	munmap(slot, 4096);
	munmap(other, 4096);
}

static int set_up(void **state)
{
	const char *reason;

	if (tw_returns_init(&reason))
		return -1;
	tw_bp_trampoline_hit = hit;
	tw_bp_trampoline_return = returned;
	tw_bp_trampoline_throw = thrown;
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_conventions),
		cmocka_unit_test(test_recursion),
		cmocka_unit_test(test_registers),
		cmocka_unit_test(test_tail_calls),
		cmocka_unit_test(test_endless_chain),
		cmocka_unit_test(test_longjmp),
		cmocka_unit_test(test_backtrace),
		cmocka_unit_test(test_thread_ends_inside),
		cmocka_unit_test(test_coroutines),
		cmocka_unit_test(test_stack_overflow),
		cmocka_unit_test(test_two_slots_in_16_bytes),
		cmocka_unit_test(test_fork),
		cmocka_unit_test(test_foreign_memory),
		cmocka_unit_test(test_unwinding_everywhere),
	};

	return IS_SANITIZED ? 0 : cmocka_run_group_tests(tests, set_up, NULL);
}
