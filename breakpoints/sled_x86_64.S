/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sled_x86_64.S - from the jump in an entry sled to the hit and back.
 *
 *	0(%rsp)   in the stub, after its call
 *	8(%rsp)   the place, pushed by the stub
 *	16(%rsp)  the address after the sled's jump, inside the traced function, pushed by the stub
 *	24(%rsp)  the return address of the traced function
 *
 * Returns to the stub, which pops both words and jumps to the address that the place's word then holds: after the
 * sled, or, for a watched call, to the code that calls with a stub of returns_x86_64.S as return address.  Thus each
 * call on the processor's return stack has its return, and each sled has its own jump back, which is mostly
 * predicted.  (With a call in the sled, the watched call would follow one on the return stack that never returns.)
 * The zero flag says that the call is not watched: stubs of entries (entry_stub.c) go on in their copy then.
 *
 * Keeps all nine registers that a function may change: where only the attribute patchable_function_entry is used, the
 * compiler still knows which of them the function does not change, and its callers rely on that (-fipa-ra).  Vector
 * registers are not touched: the code called from here is compiled without them.  The flags are not used at a
 * function's entry.
 */
#include "breakpoints/trampoline.h"

	.text
	.p2align 6
	.globl tw_sled_entry
	.hidden tw_sled_entry
	.type tw_sled_entry, @function
tw_sled_entry:
	.cfi_startproc
	TW_CFI_OF_SLED
	endbr64
	movq %r11, TW_WAY_R11
	movq 8(%rsp), %r11
	notrack jmp *TW_PLACE_WAY_OFFSET(%r11)
	.cfi_endproc
	.size tw_sled_entry, . - tw_sled_entry

	.globl tw_bp_whole_sled
	.hidden tw_bp_whole_sled
	.type tw_bp_whole_sled, @function
tw_bp_whole_sled:
	.cfi_startproc
	TW_CFI_OF_SLED
	movq TW_WAY_R11, %r11
	pushq %rbp
	.cfi_def_cfa_offset 32
	.cfi_offset %rbp, -32
	movq %rsp, %rbp
	.cfi_def_cfa_register %rbp
	pushq %rax
	pushq %r10
	pushq %r11
	/* From here up the six argument words, in order. */
	pushq %r9
	pushq %r8
	pushq %rcx
	pushq %rdx
	pushq %rsi
	pushq %rdi
	movq 16(%rbp), %rdi
	movq %rsp, %rsi
	leaq 32(%rbp), %rdx
	/* For any alignment of the caller's stack. */
	andq $-16, %rsp
	call *tw_bp_trampoline_hit(%rip)
	/* Nothing from here to the end changes the flags. */
	testq %rax, %rax
	cmovzq 24(%rbp), %rax
	movq %rax, 16(%rbp)
	/* The place is not there any more: the address where the call continues. */
	.cfi_offset 16, -8
	leaq -72(%rbp), %rsp
	popq %rdi
	popq %rsi
	popq %rdx
	popq %rcx
	popq %r8
	popq %r9
	popq %r11
	popq %r10
	popq %rax
	popq %rbp
	.cfi_def_cfa %rsp, 24
	.cfi_restore %rbp
	ret
	.cfi_endproc
	.size tw_bp_whole_sled, . - tw_bp_whole_sled

	.section .note.GNU-stack, "", @progbits
