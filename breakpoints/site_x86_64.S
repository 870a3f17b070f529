/* SPDX-License-Identifier: Apache-2.0 */
/*
 * site_x86_64.S - from the stub of a site to the hit and back.
 *
 *	0(%rsp)    in the stub, after its call
 *	8(%rsp)    the place, pushed by the stub
 *	16(%rsp)   the flags
 *	24(%rsp)   a word that is not used
 *	32(%rsp)   the red zone
 *	160(%rsp)  where the stack pointer is at the site
 *
 * Keeps all general registers; the stub keeps the flags.  Vector registers are not touched: the code called from here is compiled
 * without them.  The direction flag may have any value in the middle of a function, and is clear for that code.
 */
	.text
	.p2align 6
	.globl tw_site_entry
	.hidden tw_site_entry
	.type tw_site_entry, @function
tw_site_entry:
	.cfi_startproc
	endbr64
	pushq %rbp
	.cfi_def_cfa_offset 16
	.cfi_offset %rbp, -16
	movq %rsp, %rbp
	.cfi_def_cfa_register %rbp
	/* From here up all registers, in the order of their numbers. */
	pushq %r15
	pushq %r14
	pushq %r13
	pushq %r12
	pushq %r11
	pushq %r10
	pushq %r9
	pushq %r8
	pushq %rdi
	pushq %rsi
	pushq (%rbp)
	pushq %rax
	pushq %rbx
	pushq %rdx
	pushq %rcx
	pushq %rax
	/* The stack pointer at the site, in place of the first of the two. */
	leaq 168(%rbp), %rax
	movq %rax, 32(%rsp)
	movq 16(%rbp), %rdi
	movq %rsp, %rsi
	/* For any alignment of the function's stack. */
	andq $-16, %rsp
	cld
	call *tw_bp_site_hit(%rip)
	leaq -128(%rbp), %rsp
	popq %rax
	popq %rcx
	popq %rdx
	popq %rbx
	/* Those that the hit itself keeps are not read again. */
	leaq 16(%rsp), %rsp
	popq %rsi
	popq %rdi
	popq %r8
	popq %r9
	popq %r10
	popq %r11
	leaq 32(%rsp), %rsp
	popq %rbp
	.cfi_def_cfa %rsp, 8
	.cfi_restore %rbp
	ret
	.cfi_endproc
	.size tw_site_entry, . - tw_site_entry

	.section .note.GNU-stack, "", @progbits
