/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sled_x86_64.S - from the jump in an entry sled to the hit and back.
 *
 *	0(%rsp)   in the stub, behind its call
 *	8(%rsp)   the place, pushed by the stub
 *	16(%rsp)  the address behind the sled's jump, inside the traced function, pushed by the stub
 *	24(%rsp)  where the traced function returns to
 *
 * Goes back to the stub by a return, and the stub takes both words away and jumps to where the place's word says by
 * then: behind the sled, or, for a call that is watched, to where calls are made whose return address is that of a
 * stub of returns_x86_64.S.  So each call that the processor has on its account is returned from, and each sled's way
 * back has a jump of its own, which mostly goes the way it went before.  (With a call in the sled the watched
 * call would stand behind one on that account which never returns.)
 *
 * Keeps all nine registers that a function may change: where only the attribute patchable_function_entry is used, the
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
	/* The traced function is the caller, where it goes on. */
	.cfi_def_cfa_offset 24
	endbr64
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
	/* Whatever the alignment the caller came with. */
	andq $-16, %rsp
	call *tw_bp_trampoline_hit(%rip)
	testq %rax, %rax
	cmovzq 24(%rbp), %rax
	movq %rax, 16(%rbp)
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
	.size tw_sled_entry, . - tw_sled_entry

	.section .note.GNU-stack, "", @progbits
