/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stress_x86_64.S - tw_stress_call_keeping(function, before, after): calls a function with known values in all registers,
 * and says what is in them afterwards.  The layout is struct registers of stress_work.c.
 */
	.text
	.p2align 4
	.globl tw_stress_call_keeping
	.hidden tw_stress_call_keeping
	.type tw_stress_call_keeping, @function
tw_stress_call_keeping:
	.cfi_startproc
	pushq %rbp
	.cfi_def_cfa_offset 16
	.cfi_offset %rbp, -16
	movq %rsp, %rbp
	.cfi_def_cfa_register %rbp
	pushq %rbx
	pushq %r12
	pushq %r13
	pushq %r14
	pushq %r15
	.cfi_offset %rbx, -24
	.cfi_offset %r12, -32
	.cfi_offset %r13, -40
	.cfi_offset %r14, -48
	.cfi_offset %r15, -56
	pushq %rdi		/* -48(%rbp): the function */
	pushq %rdx		/* -56(%rbp): after */
	subq $8, %rsp
	stmxcsr 368(%rsi)
	movl $0, 372(%rsi)
	fnstcw 372(%rsi)
	.set i, 0
	.irp register, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
	movups 112 + 16 * i(%rsi), %xmm\register
	.set i, i + 1
	.endr
	movq 0(%rsi), %rax
	movq 8(%rsi), %rcx
	movq 16(%rsi), %rdx
	movq 32(%rsi), %rdi
	movq 40(%rsi), %r8
	movq 48(%rsi), %r9
	movq 56(%rsi), %r10
	movq 64(%rsi), %r11
	movq 72(%rsi), %rbx
	movq 80(%rsi), %r12
	movq 88(%rsi), %r13
	movq 96(%rsi), %r14
	movq 104(%rsi), %r15
	movq 24(%rsi), %rsi
	call *-48(%rbp)
	pushq %rsi
	movq -56(%rbp), %rsi
	movq %rax, 0(%rsi)
	movq %rcx, 8(%rsi)
	movq %rdx, 16(%rsi)
	popq 24(%rsi)
	movq %rdi, 32(%rsi)
	movq %r8, 40(%rsi)
	movq %r9, 48(%rsi)
	movq %r10, 56(%rsi)
	movq %r11, 64(%rsi)
	movq %rbx, 72(%rsi)
	movq %r12, 80(%rsi)
	movq %r13, 88(%rsi)
	movq %r14, 96(%rsi)
	movq %r15, 104(%rsi)
	.set i, 0
	.irp register, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
	movups %xmm\register, 112 + 16 * i(%rsi)
	.set i, i + 1
	.endr
	stmxcsr 368(%rsi)
	movl $0, 372(%rsi)
	fnstcw 372(%rsi)
	leaq -40(%rbp), %rsp
	popq %r15
	popq %r14
	popq %r13
	popq %r12
	popq %rbx
	popq %rbp
	.cfi_def_cfa %rsp, 8
	ret
	.cfi_endproc
	.size tw_stress_call_keeping, . - tw_stress_call_keeping

	.section .note.GNU-stack, "", @progbits
