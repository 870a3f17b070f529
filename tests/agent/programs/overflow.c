/* SPDX-License-Identifier: Apache-2.0 */
/*
 * overflow.c - a run-time that turns a stack overflow into an error where the fault is in its own code, as OCaml's does; and
 * breakpoint instructions, which its handler looks up.
 *
 * Exits with 1 if a fault was shown outside of the functions that make them, or with the registers of another place.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <ucontext.h>

enum { ROUNDS = 20, TRAPS = 100 };

static sigjmp_buf back;
static volatile int overflows, traps, bad;
static volatile uintptr_t deepest;

/* The first instruction stores to the stack; %rdi counts the calls. */
extern long overflow_recurse(long depth);
extern const char overflow_recurse_end[], overflow_trap_end[];
extern long overflow_trap(long x);
__asm__(".text\n"
	".type overflow_recurse, @function\n"
	"overflow_recurse:\n"
	"	.cfi_startproc\n"
	"	push %rbx\n"
	"	.cfi_def_cfa_offset 16\n"
	"	.cfi_offset %rbx, -16\n"
	"	mov %rdi, %rbx\n"
	"	add $1, %rdi\n"
	"	call overflow_recurse\n"
	"	add %rbx, %rax\n"
	"	pop %rbx\n"
	"	.cfi_def_cfa_offset 8\n"
	"	ret\n"
	"	.cfi_endproc\n"
	"	.size overflow_recurse, . - overflow_recurse\n"
	"overflow_recurse_end:\n"
	".type overflow_trap, @function\n"
	"overflow_trap:\n"
	"	.cfi_startproc\n"
	"	int3\n"
	"	lea 1(%rdi), %rax\n"
	"	ret\n"
	"	.cfi_endproc\n"
	"	.size overflow_trap, . - overflow_trap\n"
	"overflow_trap_end:\n");

static void on_fault(int number, siginfo_t *info, void *context)
{
	const greg_t *registers = ((const ucontext_t *)context)->uc_mcontext.gregs;
	uintptr_t pc = (uintptr_t)registers[REG_RIP], sp = (uintptr_t)registers[REG_RSP];
	uintptr_t at = (uintptr_t)info->si_addr;

	overflows++;
	if (pc < (uintptr_t)overflow_recurse || pc >= (uintptr_t)overflow_recurse_end)
		bad++;
	/* The fault is a little below the stack pointer, which at the first instruction points to the return address. */
	if (at >= sp || sp - at > 512)
		bad++;
	if (pc == (uintptr_t)overflow_recurse &&
	    (*(const uint64_t *)sp - (uintptr_t)overflow_recurse >= 64 || registers[REG_RDI] != registers[REG_RBX] + 1))
		bad++;
	deepest = (uintptr_t)registers[REG_RDI];
	siglongjmp(back, 1);
}

static void on_trap(int number, siginfo_t *info, void *context)
{
	traps++;
	if ((uintptr_t)((const ucontext_t *)context)->uc_mcontext.gregs[REG_RIP] != (uintptr_t)overflow_trap + 1)
		bad++;
}

int main(void)
{
	static uint8_t memory[65536];
	stack_t stack = {.ss_sp = memory, .ss_size = sizeof memory};
	struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER};
	volatile int round;

	sigaltstack(&stack, NULL);
	sigaction(SIGSEGV, &action, NULL);
	action.sa_sigaction = on_trap;
	sigaction(SIGTRAP, &action, NULL);
	for (round = 0; round < ROUNDS; round++)
		if (!sigsetjmp(back, 1))
			overflow_recurse(1);
	for (int i = 0; i < TRAPS; i++)
		bad += overflow_trap(i) != i + 1;
	printf("overflows %d, traps %d, bad %d, deep %d\n", overflows, traps, bad, deepest > 1000);
	return bad != 0;
}
