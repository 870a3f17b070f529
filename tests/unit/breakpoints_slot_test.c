/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal    An armed slot reports the hit and changes nothing else: registers, flags, stack, return values, page
 *         protections, slots that the program changed meanwhile.
 * Method  Words in pages of the test serve as GOT slots, read-only as with RELRO; calls go through them with unusual
 *         conventions, and a counting hit overwrites every register that it may.
 */
#include "breakpoints/breakpoints.h"
#include "breakpoints/patch.h"
#include "breakpoints/trampoline.h"
#include "tracewheel/error.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <complex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include "hit_help.h"

#define SLOTS_PER_PAGE (4096 / sizeof(void *))

/* ---- arming ---- */

/* Never unmapped: a place lives forever, and would be found again at the same address. */
static void *slot_page(bool is_read_only)
{
	void **page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_ptr_not_equal(page, MAP_FAILED);
	if (is_read_only)
		assert_int_equal(mprotect(page, 4096, PROT_READ), 0);
	return page;
}

static void put(void *slot, void *function)
{
	void *page = (void *)((uintptr_t)slot & ~(uintptr_t)4095);

	mprotect(page, 4096, PROT_READ | PROT_WRITE);
	*(void **)slot = function;
	mprotect(page, 4096, PROT_READ);
}

static struct tw_place *add_slot(struct tw_permit *permit, void *slot, void *target)
{
	struct tw_module_options options = {.name = "libedge", .is_declared = true};
	struct tw_module *module;
	struct tw_function *function;
	struct tw_place_options place_options = {.kind = TW_BP_SLOT, .where = slot, .target = target};
	struct tw_place *place;

	assert_int_equal(tw_bp_module_add(permit, &options, &module), 0);
	assert_int_equal(tw_bp_function_add(permit, module, "odd", UINT32_MAX, 0, &function), 0);
	assert_int_equal(tw_bp_place_add(permit, function, &place_options, &place), 0);
	return place;
}

static struct tw_place *arm(void *slot, void *target)
{
	const struct tw_bp_part part = {.actions = TW_ACTION_CALL, .session = 3};
	struct tw_permit *permit;
	struct tw_place *place;

	tw_bp_trampoline_hit = counting_hit;
	assert_int_equal(tw_permit_seize(&permit), 0);
	place = add_slot(permit, slot, target);
	assert_int_equal(tw_bp_stage_set(permit, place, &part), 0);
	tw_bp_commit(permit);
	tw_permit_drop(permit);
	return place;
}

static void disarm(struct tw_place *place)
{
	struct tw_permit *permit;

	assert_int_equal(tw_permit_seize(&permit), 0);
	assert_int_equal(tw_bp_stage_clear(permit, place, 3), 0);
	tw_bp_commit(permit);
	tw_permit_drop(permit);
}

static char protection_of(void *address)
{
	FILE *file = fopen("/proc/self/maps", "r");
	char line[512], found = '?';
	unsigned long low, high;
	char flags[8];

	while (fgets(line, sizeof line, file))
		if (sscanf(line, "%lx-%lx %7s", &low, &high, flags) == 3 && (uintptr_t)address >= low &&
		    (uintptr_t)address < high)
			found = flags[2] == 'x' ? 'x' : flags[1] == 'w' ? 'w' : 'r';
	fclose(file);
	return found;
}

/* ---- functions with unusual conventions ---- */

struct big {
	long v[8];
};
static struct big make_big(long x)
{
	return (struct big){{x, x + 1, x + 2, x + 3, x + 4, x + 5, x + 6, x + 7}};
}
static double sum_doubles(int n, ...)
{
	va_list list;
	double sum = 0;

	va_start(list, n);
	while (n--)
		sum += va_arg(list, double);
	va_end(list);
	return sum;
}
static long many(long a, long b, long c, long d, long e, long f, long g, long h)
{
	return a + 2 * b + 3 * c + 4 * d + 5 * e + 6 * f + 10 * g + 100 * h;
}
static __int128 wide(long a)
{
	return (__int128)a << 64 | 7;
}
static long double twice(long double x)
{
	return x * 2;
}
static double _Complex make_complex(double a, double b)
{
	return a + b * (double _Complex)_Complex_I;
}

#define CALL(slot, type, ...) ((*(__typeof__(type) *volatile *)(slot))(__VA_ARGS__))

static void conventions_come_through(void **state)
{
	void **page = slot_page(true);
	void *functions[] = {make_big, sum_doubles, many, wide, twice, make_complex};
	struct tw_place *places[6];

	for (int i = 0; i < 6; i++) {
		put(&page[i], functions[i]);
		places[i] = arm(&page[i], functions[i]);
		assert_ptr_not_equal(page[i], functions[i]);
	}
	hits = 0;
	assert_int_equal(CALL(&page[0], struct big(long), 5).v[7], 12);
	assert_true(CALL(&page[1], double(int, ...), 9, 1., 2., 3., 4., 5., 6., 7., 8., 9.) == 45);
	assert_int_equal(CALL(&page[2], long(long, long, long, long, long, long, long, long), 1, 2, 3, 4, 5, 6, 7, 8),
			 91 + 70 + 800);
	for (int i = 0; i < 6; i++)
		assert_int_equal(last_words[i], i + 1);
	assert_ptr_equal(last_place, places[2]);
	assert_int_equal((long)(CALL(&page[3], __int128(long), 3) >> 64), 3);
	assert_true(CALL(&page[4], long double(long double), 1.25L) == 2.5L);
	assert_true(cimag(CALL(&page[5], double _Complex(double, double), 1, 2)) == 2);
	assert_int_equal(hits, 6);
	for (int i = 0; i < 6; i++) {
		disarm(places[i]);
		assert_ptr_equal(page[i], functions[i]);
	}
	assert_int_equal(CALL(&page[0], struct big(long), 5).v[0], 5);
	assert_int_equal(hits, 6);
}

/* ---- every register ---- */

struct registers {
	uint64_t general[15]; /* rax rbx rcx rdx rsi rdi r8 .. r15, rbp; r11 is not preserved */
	uint64_t flags;
	uint8_t xmm[16][16];
};
/* The registers seen by the called function, and those returned to the caller. */
struct registers seen, back, given;
uint64_t seen_stack;
void *register_slot;

void save_registers(void);
/* Saves all registers into `seen` and returns with them unchanged. */
__asm__(".text\n"
	"save_registers:\n"
	"	movq %rax, seen(%rip)\n"
	"	leaq seen(%rip), %rax\n"
	"	movq %rbx, 8(%rax); movq %rcx, 16(%rax); movq %rdx, 24(%rax); movq %rsi, 32(%rax)\n"
	"	movq %rdi, 40(%rax); movq %r8, 48(%rax); movq %r9, 56(%rax); movq %r10, 64(%rax)\n"
	"	movq %r12, 80(%rax); movq %r13, 88(%rax); movq %r14, 96(%rax)\n"
	"	movq %r15, 104(%rax); movq %rbp, 112(%rax)\n"
	"	.set i, 0\n"
	"	.irp n,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15\n"
	"	movups %xmm\\n, 128+16*\\n(%rax)\n"
	"	.endr\n"
	"	movq %rsp, seen_stack(%rip)\n"
	"	movq seen(%rip), %rax\n"
	"	ret\n");

uint64_t call_with_registers(uint64_t misalign);
/*
 * Loads all registers from `given`, calls the slot with the stack shifted by `misalign`, returns the stack it called
 * with.
 */
__asm__("call_with_registers:\n"
	"	pushq %rbx; pushq %rbp; pushq %r12; pushq %r13; pushq %r14; pushq %r15\n"
	"	movq %rsp, %rax\n"
	"	subq $64, %rsp\n"
	"	andq $-16, %rsp\n"
	"	subq %rdi, %rsp\n"
	"	movq %rax, saved_stack(%rip)\n"
	"	leaq given(%rip), %rax\n"
	"	.irp n,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15\n"
	"	movups 128+16*\\n(%rax), %xmm\\n\n"
	"	.endr\n"
	"	movq 8(%rax), %rbx; movq 16(%rax), %rcx; movq 24(%rax), %rdx; movq 32(%rax), %rsi\n"
	"	movq 40(%rax), %rdi; movq 48(%rax), %r8; movq 56(%rax), %r9; movq 64(%rax), %r10\n"
	"	movq 80(%rax), %r12; movq 88(%rax), %r13; movq 96(%rax), %r14\n"
	"	movq 104(%rax), %r15; movq 112(%rax), %rbp; movq (%rax), %rax\n"
	"	movq register_slot(%rip), %r11\n"
	"	call *(%r11)\n"
	"	leaq -8(%rsp), %rax\n"
	"	movq saved_stack(%rip), %rsp\n"
	"	popq %r15; popq %r14; popq %r13; popq %r12; popq %rbp; popq %rbx\n"
	"	ret\n"
	".bss\n"
	"saved_stack: .zero 8\n"
	".text\n");

static void fill_given(unsigned seed)
{
	uint8_t *bytes = (uint8_t *)&given;

	srandom(seed);
	for (size_t i = 0; i < sizeof given; i++)
		bytes[i] = (uint8_t)random();
	given.general[9] = 0;
	given.flags = 0;
}

static void every_register_reaches_the_function(void **state)
{
	void **page = slot_page(true);
	struct tw_place *place;

	put(page, save_registers);
	place = arm(page, save_registers);
	register_slot = page;
	for (uint64_t misalign = 0; misalign <= 8; misalign += 8) {
		uint64_t stack;

		fill_given((unsigned)misalign + 1);
		memset(&seen, 0, sizeof seen);
		hits = 0;
		stack = call_with_registers(misalign);
		assert_int_equal(hits, 1);
		assert_memory_equal(&seen, &given, sizeof seen);
		assert_int_equal(stack, seen_stack);
		assert_int_equal(seen_stack % 16, (8 + misalign) % 16);
	}
	disarm(place);
}

/* ---- vector registers across libc calls ---- */

__attribute__((target("avx"))) static void spoil_vectors(void *argument)
{
	__asm__ volatile("vpcmpeqd %%xmm0, %%xmm0, %%xmm0; vzeroupper; vxorps %%xmm1, %%xmm1, %%xmm1;"
			 "vxorps %%xmm15, %%xmm15, %%xmm15; fninit; fld1" ::
				 : "xmm0", "xmm1", "xmm15");
	*(int *)argument += 1;
}

struct vectors {
	uint8_t ymm[3][32];
	uint16_t control;
};

void load_call_store(const struct vectors *in, struct vectors *out, void (*function)(void *), void *argument);
/* Loads ymm0, 1, 15 and the x87 control word, calls, stores them again. */
__asm__("load_call_store:\n"
	"	pushq %rbx; pushq %r12; subq $24, %rsp\n"
	"	movq %rsi, %rbx\n"
	"	vmovups (%rdi), %ymm0; vmovups 32(%rdi), %ymm1; vmovups 64(%rdi), %ymm15\n"
	"	fnstcw (%rsp); fldcw 96(%rdi)\n"
	"	movq %rdx, %rdi; movq %rcx, %rsi\n"
	"	call tw_patch_call_keeping_vectors\n"
	"	vmovups %ymm0, (%rbx); vmovups %ymm1, 32(%rbx); vmovups %ymm15, 64(%rbx)\n"
	"	fnstcw 96(%rbx); fldcw (%rsp)\n"
	"	vzeroupper\n"
	"	addq $24, %rsp; popq %r12; popq %rbx\n"
	"	ret\n");

static void vectors_are_kept(void **state)
{
	struct vectors in = {.control = 0x027f}, out = {.control = 0};
	int calls = 0;
	void **page = slot_page(false);

	if (!__builtin_cpu_supports("avx"))
		skip();
	/* The first prepare measures the registers to be preserved. */
	put(page, save_registers);
	disarm(arm(page, save_registers));
	for (size_t i = 0; i < sizeof in.ymm; i++)
		((uint8_t *)in.ymm)[i] = (uint8_t)(i * 7 + 1);
	load_call_store(&in, &out, spoil_vectors, &calls);
	assert_int_equal(calls, 1);
	assert_memory_equal(in.ymm, out.ymm, sizeof in.ymm);
	assert_int_equal(in.control, out.control);
}

/* ---- memory ---- */

static void pages_keep_their_protection(void **state)
{
	void **read_only = slot_page(true), **writable = slot_page(false);
	struct tw_place *a, *b;

	put(read_only, make_big);
	*writable = make_big;
	a = arm(read_only, make_big);
	b = arm(writable, make_big);
	assert_int_equal(protection_of(read_only), 'r');
	assert_int_equal(protection_of(writable), 'w');
	disarm(a);
	disarm(b);
	assert_int_equal(protection_of(read_only), 'r');
	assert_int_equal(protection_of(writable), 'w');
}

static void values_stored_by_the_program_stay(void **state)
{
	void **page = slot_page(true);
	struct tw_place *place;

	put(page, make_big);
	place = arm(page, make_big);
	put(page, wide);
	disarm(place);
	assert_ptr_equal(*page, wide);
	/* Armed again; calls go to the slot's present target. */
	arm(page, make_big);
	hits = 0;
	assert_int_equal((long)(CALL(page, __int128(long), 9) >> 64), 9);
	assert_int_equal(hits, 1);
	disarm(place);
	assert_ptr_equal(*page, wide);
}

static unsigned bind_again(void)
{
	struct tw_permit *permit;
	unsigned found, late;

	assert_int_equal(tw_permit_seize(&permit), 0);
	found = tw_got_may_be_bound(permit) ? tw_got_bind_again(permit, &late) : 0;
	tw_permit_drop(permit);
	return found;
}

/* As in lazy binding: a thread that was binding when the slot was armed writes the target over the stub. */
static void a_slot_that_is_being_bound_is_armed_again(void **state)
{
	void **page = slot_page(true);
	struct tw_place *place;

	put(page, make_big); /* stands for ld.so's resolver */
	place = arm(page, wide);
	assert_int_equal(bind_again(), 0);
	put(page, wide);
	assert_int_equal(bind_again(), 1);
	hits = 0;
	assert_int_equal((long)(CALL(page, __int128(long), 9) >> 64), 9);
	assert_int_equal(hits, 1);
	assert_int_equal(protection_of(page), 'r');
	/* A value that other code has stored is left alone. */
	put(page, conventions_come_through);
	assert_int_equal(bind_again(), 0);
	assert_ptr_equal(*page, conventions_come_through);
	put(page, wide);
	disarm(place);
	assert_int_equal(bind_again(), 0);
	assert_ptr_equal(*page, wide);
}

static void slots_that_cannot_be_are_refused(void **state)
{
	const struct tw_bp_part part = {.actions = TW_ACTION_CALL, .session = 3};
	char *page = (char *)slot_page(false);
	/*
	 * An address below what a program may map: a hole made by munmap() could be the next slot_page(), with this
	 * place in it.
	 */
	void *nowhere = (void *)4096;
	struct tw_permit *permit;

	assert_int_equal(tw_permit_seize(&permit), 0);
	assert_int_equal(tw_bp_stage_set(permit, add_slot(permit, page + 4, make_big), &part), TW_ENOTSUP);
	assert_int_equal(tw_bp_stage_set(permit, add_slot(permit, nowhere, make_big), &part), TW_EPERM);
	tw_bp_commit(permit);
	tw_permit_drop(permit);
}

static void slots_of_an_unloaded_object_are_left_alone(void **state)
{
	void **page = slot_page(true);
	struct tw_module_options options = {.name = "libgone", .is_declared = true};
	const struct tw_bp_part part = {.actions = TW_ACTION_CALL, .session = 3};
	struct tw_permit *permit;
	struct tw_module *module;
	struct tw_place *place;

	put(page, make_big);
	assert_int_equal(tw_permit_seize(&permit), 0);
	assert_int_equal(tw_bp_module_add(permit, &options, &module), 0);
	place = add_slot(permit, page, make_big);
	place->caller_module_id = module->module_id;
	assert_int_equal(tw_bp_stage_set(permit, place, &part), 0);
	tw_bp_commit(permit);
	munmap(page, 4096);
	tw_bp_module_gone(permit, module, true);
	assert_int_equal(tw_bp_stage_clear(permit, place, 3), 0);
	tw_bp_commit(permit);
	tw_permit_drop(permit);
}

static bool is_replaced(struct tw_module *module)
{
	struct tw_permit *permit;

	assert_int_equal(tw_permit_seize(&permit), 0);
	tw_bp_modules_check(permit);
	tw_permit_drop(permit);
	return module->is_replaced;
}

/* One slot that the program has written itself proves nothing; neither does one that is still to be written. */
static void a_replaced_object_is_known_by_its_slots(void **state)
{
	void **page = slot_page(false);
	struct tw_module_options options = {.name = "libagain", .is_declared = true};
	const struct tw_bp_part part = {.actions = TW_ACTION_CALL, .session = 3};
	struct tw_permit *permit;
	struct tw_module *module;
	struct tw_place *places[2];

	page[0] = page[1] = make_big;
	assert_int_equal(tw_permit_seize(&permit), 0);
	assert_int_equal(tw_bp_module_add(permit, &options, &module), 0);
	tw_patch_suspend();
	for (int i = 0; i < 2; i++) {
		places[i] = add_slot(permit, &page[i], make_big);
		places[i]->caller_module_id = module->module_id;
		assert_int_equal(tw_bp_stage_set(permit, places[i], &part), 0);
	}
	tw_bp_commit(permit);
	assert_true(tw_patch_is_due(permit));
	tw_permit_drop(permit);
	assert_false(is_replaced(module));
	assert_int_equal(tw_permit_seize(&permit), 0);
	tw_patch_resume(permit);
	assert_false(tw_patch_is_due(permit));
	tw_permit_drop(permit);
	assert_false(is_replaced(module));
	page[0] = make_big;
	assert_false(is_replaced(module));
	page[1] = make_big;
	assert_true(is_replaced(module));
	page[1] = places[1]->stub;
	assert_false(is_replaced(module));
	munmap(page, 4096);
	assert_true(is_replaced(module));
	assert_int_equal(tw_permit_seize(&permit), 0);
	tw_bp_module_gone(permit, module, true);
	tw_permit_drop(permit);
	assert_false(is_replaced(module));
}

static void nothing_is_written_while_objects_are_unloaded(void **state)
{
	void **page = slot_page(true);
	struct tw_permit *permit;
	struct tw_place *place;

	put(page, make_big);
	tw_patch_suspend();
	tw_patch_suspend();
	place = arm(page, make_big);
	assert_ptr_equal(*page, make_big);
	assert_int_equal(tw_permit_seize(&permit), 0);
	tw_patch_resume(permit);
	assert_ptr_equal(*page, make_big);
	tw_patch_resume(permit);
	tw_permit_drop(permit);
	assert_ptr_equal(*page, place->stub);
	assert_int_equal(protection_of(page), 'r');
	tw_patch_suspend();
	disarm(place);
	assert_ptr_equal(*page, place->stub);
	tw_patch_resume(NULL);
	tw_patch_suspend();
	assert_int_equal(tw_permit_seize(&permit), 0);
	tw_patch_resume(permit);
	tw_permit_drop(permit);
	assert_ptr_equal(*page, make_big);
}

/* ---- many slots, and threads that call while they come and go ---- */

static _Atomic bool stop;
static void **busy_page;

static long add_one(long x)
{
	return x + 1;
}

__attribute__((target("general-regs-only"))) static const char *quiet_hit(struct tw_place *place, const uint64_t *words,
									  uint64_t *slot)
{
	return NULL;
}

static void *call_all(void *arg)
{
	_Atomic(void *) *slots = (void *)busy_page;
	long sum = 0, calls = 0;

	while (!atomic_load(&stop))
		for (size_t i = 0; i < SLOTS_PER_PAGE; i++, calls++) {
			/* A PLT uses a plain load, which thread sanitizers do not see. */
			long (*function)(long) = atomic_load_explicit(&slots[i], memory_order_acquire);

			sum = function(sum);
		}
	return (void *)(sum - calls);
}

static void threads_call_while_slots_come_and_go(void **state)
{
	const struct tw_bp_part part = {.actions = TW_ACTION_CALL, .session = 3};
	struct tw_place *places[SLOTS_PER_PAGE];
	struct tw_permit *permit;
	pthread_t threads[2];
	void *wrong;

	busy_page = slot_page(false);
	for (size_t i = 0; i < SLOTS_PER_PAGE; i++)
		busy_page[i] = add_one;
	mprotect(busy_page, 4096, PROT_READ);
	tw_bp_trampoline_hit = quiet_hit;
	for (int i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, call_all, NULL), 0);
	assert_int_equal(tw_permit_seize(&permit), 0);
	for (size_t i = 0; i < SLOTS_PER_PAGE; i++)
		places[i] = add_slot(permit, &busy_page[i], add_one);
	for (int round = 0; round < 200; round++) {
		for (size_t i = 0; i < SLOTS_PER_PAGE; i++)
			assert_int_equal(round % 2 ? tw_bp_stage_clear(permit, places[i], 3)
						   : tw_bp_stage_set(permit, places[i], &part),
					 0);
		tw_bp_commit(permit);
	}
	tw_permit_drop(permit);
	atomic_store(&stop, true);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(pthread_join(threads[i], &wrong), 0);
		assert_null(wrong);
	}
}

/* ---- unwinding ---- */

static jmp_buf back_to;

static void jump_out(void)
{
	longjmp(back_to, 7);
}

static void frames_can_be_left(void **state)
{
	void **page = slot_page(true);
	struct tw_place *place;
	int result;

	put(page, jump_out);
	place = arm(page, jump_out);
	hits = 0;
	result = setjmp(back_to);
	if (!result)
		CALL(page, void(void));
	assert_int_equal(result, 7);
	assert_int_equal(hits, 1);
	disarm(place);
}

/* Beyond the last stub: the limit is named, it is no lack of memory, and a slot that has its stub is armed again. */
static void the_limit_of_slots_is_told(void **state)
{
	const struct tw_bp_part part = {.actions = TW_ACTION_CALL, .session = 3};
	static void *slots[TW_GOT_STUBS + 1];
	static struct tw_place *places[TW_GOT_STUBS + 1];
	struct tw_permit *permit;
	unsigned n = 0;
	int error;

	assert_int_equal(tw_permit_seize(&permit), 0);
	do {
		slots[n] = jump_out;
		places[n] = add_slot(permit, &slots[n], jump_out);
		error = tw_bp_stage_set(permit, places[n], &part);
	} while (!error && ++n <= TW_GOT_STUBS);
	assert_int_equal(error, TW_ELIMIT);
	assert_int_equal(tw_bp_stage_set(permit, places[0], &part), 0);
	while (n)
		assert_int_equal(tw_bp_stage_clear(permit, places[--n], 3), 0);
	tw_bp_commit(permit);
	tw_permit_drop(permit);
	assert_ptr_equal(slots[0], jump_out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(conventions_come_through),
		cmocka_unit_test(every_register_reaches_the_function),
		cmocka_unit_test(vectors_are_kept),
		cmocka_unit_test(pages_keep_their_protection),
		cmocka_unit_test(values_stored_by_the_program_stay),
		cmocka_unit_test(a_slot_that_is_being_bound_is_armed_again),
		cmocka_unit_test(slots_that_cannot_be_are_refused),
		cmocka_unit_test(slots_of_an_unloaded_object_are_left_alone),
		cmocka_unit_test(a_replaced_object_is_known_by_its_slots),
		cmocka_unit_test(nothing_is_written_while_objects_are_unloaded),
		cmocka_unit_test(threads_call_while_slots_come_and_go),
		cmocka_unit_test(frames_can_be_left),
		cmocka_unit_test(the_limit_of_slots_is_told), /* the last: stubs are taken for good */
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
