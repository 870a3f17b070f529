/* SPDX-License-Identifier: Apache-2.0 */
/*
 * step_x86_64.S - makes a call through a slot with a pattern in every register, and saves the registers that arrived.
 *
 * struct step_registers: 16 vectors of 16 bytes; rdi rsi rdx rcx r8 r9 rax r10 rbx r12 r13 r14 r15; the first
 * eight again after the call.
 */
	.text
	.globl	step_call
	.type	step_call, @function
/* void step_call(const struct step_registers *in, struct step_registers *out, void **slot) */
step_call:
	.cfi_startproc
	push	%rbp
	mov	%rsp, %rbp
	push	%rbx
	push	%r12
	push	%r13
	push	%r14
	push	%r15
	sub	$24, %rsp
	mov	%rsi, (%rsp)		/* where step_target finds it: after its return address */
	mov	%rdx, 8(%rsp)
	.irp	n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
	movups	16 * \n(%rdi), %xmm\n
	.endr
	mov	264(%rdi), %rsi
	mov	272(%rdi), %rdx
	mov	280(%rdi), %rcx
	mov	288(%rdi), %r8
	mov	296(%rdi), %r9
	mov	304(%rdi), %rax
	mov	312(%rdi), %r10
	mov	320(%rdi), %rbx
	mov	328(%rdi), %r12
	mov	336(%rdi), %r13
	mov	344(%rdi), %r14
	mov	352(%rdi), %r15
	mov	256(%rdi), %rdi
	mov	8(%rsp), %r11
	call	*(%r11)
	mov	(%rsp), %r11
	mov	%rdi, 360(%r11)
	mov	%rsi, 368(%r11)
	mov	%rdx, 376(%r11)
	mov	%rcx, 384(%r11)
	mov	%r8, 392(%r11)
	mov	%r9, 400(%r11)
	mov	%rax, 408(%r11)
	mov	%r10, 416(%r11)
	mov	%r11, %rsi
	mov	%rbx, 320(%rsi)
	mov	%r12, 328(%rsi)
	mov	%r13, 336(%rsi)
	mov	%r14, 344(%rsi)
	mov	%r15, 352(%rsi)
	add	$24, %rsp
	pop	%r15
	pop	%r14
	pop	%r13
	pop	%r12
	pop	%rbx
	pop	%rbp
	ret
	.cfi_endproc
	.size	step_call, . - step_call

	.globl	step_target
	.type	step_target, @function
step_target:
	.cfi_startproc
	mov	8(%rsp), %r11
	.irp	n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
	movups	%xmm\n, 16 * \n(%r11)
	.endr
	mov	%rdi, 256(%r11)
	mov	%rsi, 264(%r11)
	mov	%rdx, 272(%r11)
	mov	%rcx, 280(%r11)
	mov	%r8, 288(%r11)
	mov	%r9, 296(%r11)
	mov	%rax, 304(%r11)
	mov	%r10, 312(%r11)
	ret
	.cfi_endproc
	.size	step_target, . - step_target

	.globl	step_between
	.type	step_between, @function
step_between:
	int3
	ret
	.size	step_between, . - step_between

	.section .note.GNU-stack, "", @progbits
