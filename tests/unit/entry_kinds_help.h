/* SPDX-License-Identifier: Apache-2.0 */
/*
 * entry_kinds_help.h - functions in assembly, one a kind of window at a function's entry.
 */
#ifndef TW_TESTS_ENTRY_KINDS_HELP_H
#define TW_TESTS_ENTRY_KINDS_HELP_H

#include <stdint.h>

#define FUNCTION(name, body)                                                                                         \
	__asm__(".pushsection .text\n.p2align 4\n.globl " #name "\n.type " #name ", @function\n" #name               \
		":\n.cfi_startproc\n" body "\n.cfi_endproc\n.size " #name ", .-" #name "\n.p2align 4\n.popsection"); \
	extern uint64_t name(uint64_t x)

static volatile uint64_t word = 1000;
uint64_t *word_of_entries = (uint64_t *)&word;
uint64_t doubled(uint64_t x);

__attribute__((noinline)) uint64_t doubled(uint64_t x)
{
	__asm__ volatile("" : "+r"(x));
	return 2 * x;
}

FUNCTION(plain_window, "push %rbx\n.cfi_adjust_cfa_offset 8\n.cfi_offset %rbx, -16\nmov %rdi, %rbx\n"
		       "lea 7(%rbx), %rax\npop %rbx\n.cfi_adjust_cfa_offset -8\n.cfi_restore %rbx\nret");
FUNCTION(one_instruction, "movabs $0x1122334455667788, %rax\nadd %rdi, %rax\nret");
FUNCTION(relative_memory, "mov word_of_entries(%rip), %rax\nmov (%rax), %rax\nadd %rdi, %rax\nret");
FUNCTION(relative_memory_and_immediate, "cmpl $5, word_of_entries(%rip)\nlea 1(%rdi), %rax\nret");
FUNCTION(short_condition, "test %rdi, %rdi\njz 1f\nmov $11, %eax\nret\n1: mov $22, %eax\nret");
FUNCTION(near_condition, "cmp $3, %rdi\nja 1f\nmov $33, %eax\nret\n.skip 200, 0x90\n1: mov $44, %eax\nret");
FUNCTION(tail_jump, "jmp doubled");
FUNCTION(tail_jump_through_slot, "lea 1(%rdi), %rdi\njmp *doubled_pointer(%rip)");
FUNCTION(calls_first, "call doubled\nadd $1, %rax\nret");
FUNCTION(calls_through_slot_first, "call *doubled_pointer(%rip)\nadd $2, %rax\nret");
FUNCTION(calls_after_push, "push %rbx\n.cfi_adjust_cfa_offset 8\n.cfi_offset %rbx, -16\ncall doubled\n"
			   "lea 3(%rax), %rax\npop %rbx\n.cfi_adjust_cfa_offset -8\n.cfi_restore %rbx\nret");
FUNCTION(returns_at_once, "mov %edi, %eax\nret");
FUNCTION(with_endbr, "endbr64\nmov %rdi, %rax\nadd $9, %rax\nret");
FUNCTION(with_frame, "push %rbp\n.cfi_def_cfa_offset 16\n.cfi_offset 6, -16\nmov %rsp, %rbp\n"
		     ".cfi_def_cfa_register 6\nmov %rdi, %rax\nadd $13, %rax\npop %rbp\n.cfi_def_cfa 7, 8\nret");

__asm__(".pushsection .data.rel\n.globl doubled_pointer\n.p2align 3\ndoubled_pointer: .quad doubled\n.popsection");

#endif
