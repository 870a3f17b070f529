/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sled_x86_64.S - from the call in an entry sled to the hit and back.
 *
 *	0(%rsp)   the place, pushed by the stub
 *	8(%rsp)   the address behind the call, inside the traced function
 *	16(%rsp)  where the traced function returns to
 *
 * Goes back by a return, so that return predictors and shadow stacks see a call like any other.  Keeps all
 * nine registers that a function may change: where only the attribute patchable_function_entry is used, the
 * compiler still knows which of them the function leaves alone, and its callers rely on that
 * (-fipa-ra).  Vector registers are not touched: what runs below is compiled without them.  The flags are
 * nobody's at a function's entry.
 */
	.text
	.p2align 6
	.globl tw_sled_entry
	.hidden tw_sled_entry
	.type tw_sled_entry, @function
tw_sled_entry:
	.cfi_startproc
	.cfi_def_cfa_offset 16
	endbr64
	pushq %rbp
	.cfi_def_cfa_offset 24
	.cfi_offset %rbp, -24
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
	movq 8(%rbp), %rdi
	movq %rsp, %rsi
	leaq 24(%rbp), %rdx
	/* Whatever the alignment the caller came with. */
	andq $-16, %rsp
	call *tw_bp_trampoline_hit(%rip)
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
	.cfi_def_cfa %rsp, 16
	.cfi_restore %rbp
	leaq 8(%rsp), %rsp
	.cfi_def_cfa_offset 8
	ret
	.cfi_endproc
	.size tw_sled_entry, . - tw_sled_entry

	.section .note.GNU-stack, "", @progbits
