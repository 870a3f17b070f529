/* SPDX-License-Identifier: Apache-2.0 */
/* fiber.c - stacks, the switch, and what sanitizers must know about it. */
#include "fiber.h"

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

#ifndef __x86_64__
#error "the switch of stacks is written for x86-64"
#endif

#ifndef __has_feature
#define __has_feature(feature) 0
#endif
#if defined __SANITIZE_THREAD__ || __has_feature(thread_sanitizer)
#define IS_THREAD_SANITIZED
#endif
#if defined __SANITIZE_ADDRESS__ || __has_feature(address_sanitizer)
#define IS_ADDRESS_SANITIZED
#endif

#ifdef IS_THREAD_SANITIZED
#include <sanitizer/tsan_interface.h>
#define THREADS(call) call
#else
#define THREADS(call) ((void)0)
#endif
#ifdef IS_ADDRESS_SANITIZED
#include <sanitizer/common_interface_defs.h>
#define ADDRESSES(call) call
#else
#define ADDRESSES(call) ((void)0)
#endif

#define GUARD_BYTES 4096

/* Saves the callee-saved registers on the old stack, and restores them from the new one. */
void fiber_switch_stacks(void **from, void *to);
__asm__(".text\n.globl fiber_switch_stacks\n.type fiber_switch_stacks,@function\nfiber_switch_stacks:\n"
	"push %rbp\npush %rbx\npush %r12\npush %r13\npush %r14\npush %r15\n"
	"mov %rsp,(%rdi)\nmov %rsi,%rsp\n"
	"pop %r15\npop %r14\npop %r13\npop %r12\npop %rbx\npop %rbp\nret\n"
	".size fiber_switch_stacks,.-fiber_switch_stacks\n");

void fiber_init_thread(struct fiber *fiber)
{
	*fiber = (struct fiber){0};
	THREADS(fiber->sanitizer = __tsan_get_current_fiber());
#ifdef IS_ADDRESS_SANITIZED
	pthread_attr_t attributes;
	void *stack;
	if (pthread_getattr_np(pthread_self(), &attributes) == 0) {
		pthread_attr_getstack(&attributes, &stack, &fiber->stack_bytes);
		fiber->stack = stack;
		pthread_attr_destroy(&attributes);
	}
#endif
}

int fiber_init(struct fiber *fiber, size_t stack_bytes)
{
	void *memory = mmap(NULL, stack_bytes + GUARD_BYTES, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (memory == MAP_FAILED)
		return 0;
	mprotect(memory, GUARD_BYTES, PROT_NONE);
	*fiber = (struct fiber){.stack = (char *)memory + GUARD_BYTES, .stack_bytes = stack_bytes};
	return 1;
}

void fiber_fini(struct fiber *fiber)
{
	if (fiber->stack)
		munmap(fiber->stack - GUARD_BYTES, fiber->stack_bytes + GUARD_BYTES);
	*fiber = (struct fiber){0};
}

static void begin(void)
{
	struct fiber *fiber;
	__asm__("mov %%r12,%0" : "=r"(fiber));
	ADDRESSES(__sanitizer_finish_switch_fiber(NULL, NULL, NULL));
	fiber->start(fiber->context);
	abort();
}

void fiber_prepare(struct fiber *fiber, void (*start)(void *context), void *context)
{
	fiber->start = start;
	fiber->context = context;
	THREADS(fiber->sanitizer = __tsan_create_fiber(0));
	ADDRESSES(fiber->sanitizer = NULL);
	/*
	 * The layout in which a switch leaves a stack: r15 r14 r13 r12 rbx rbp, the return address; then rsp % 16 is 8.
	 */
	uint64_t *top = (uint64_t *)(void *)(fiber->stack + fiber->stack_bytes) - 8;
	for (int i = 0; i < 8; i++)
		top[i] = 0;
	top[3] = (uintptr_t)fiber;
	top[6] = (uintptr_t)begin;
	fiber->stack_pointer = top;
}

void fiber_switch(struct fiber *from, struct fiber *to)
{
	ADDRESSES(__sanitizer_start_switch_fiber(&from->sanitizer, to->stack, to->stack_bytes));
	THREADS(__tsan_switch_to_fiber(to->sanitizer, 0));
	fiber_switch_stacks(&from->stack_pointer, to->stack_pointer);
	ADDRESSES(__sanitizer_finish_switch_fiber(from->sanitizer, NULL, NULL));
}

void fiber_leave(struct fiber *from, struct fiber *to)
{
	ADDRESSES(__sanitizer_start_switch_fiber(NULL, to->stack, to->stack_bytes));
	THREADS(__tsan_switch_to_fiber(to->sanitizer, 0));
	fiber_switch_stacks(&from->stack_pointer, to->stack_pointer);
	abort();
}

void fiber_ended(struct fiber *fiber)
{
	/* An outside has no stack. */
	if (fiber->stack)
		THREADS(__tsan_destroy_fiber(fiber->sanitizer));
	fiber->sanitizer = NULL;
}
