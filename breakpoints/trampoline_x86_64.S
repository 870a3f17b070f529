/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trampoline_x86_64.S - from a call through a GOT slot to the hit and on to the function.
 *
 * The function is reached by a jump, with the stack and every register (but %r11, which every PLT may use)
 * as the caller left them; or, where its return is watched, by the call of returns_x86_64.S, which changes the
 * return address and nothing else.  Thus stack arguments, structures returned in memory, setjmp, vfork, variable
 * arguments (%al), nested functions (%r10) and int128 work.  Vector registers are not touched here: the code called
 * from here is compiled without them, or uses tw_patch_call_keeping_vectors().
 */
#include "breakpoints/trampoline.h"

	.text

/* ---- one stub per slot ---- */

	.p2align 6
	.globl tw_got_stubs
	.hidden tw_got_stubs
	.type tw_got_stubs, @function
tw_got_stubs:
	.cfi_startproc
	.set stub, 0
	.rept TW_GOT_STUBS
	endbr64
	movq tw_got_table + 8 * stub(%rip), %r11
	/* jmp slot_entry, always in its long form: all stubs have the same size */
	.byte 0xe9
	.long slot_entry - . - 4
	.set stub, stub + 1
	.endr
	.cfi_endproc
	.size tw_got_stubs, . - tw_got_stubs
	.if . - tw_got_stubs - TW_GOT_STUBS * TW_GOT_STUB_BYTES
	.error "a stub has another size than TW_GOT_STUB_BYTES"
	.endif

/* ---- all stubs meet here; %r11: the place ---- */

	.p2align 6
	.type slot_entry, @function
slot_entry:
	.cfi_startproc
	notrack jmp *TW_PLACE_WAY_OFFSET(%r11)
	.cfi_endproc
	.size slot_entry, . - slot_entry

	.p2align 4
	.globl tw_bp_whole_slot
	.hidden tw_bp_whole_slot
	.type tw_bp_whole_slot, @function
tw_bp_whole_slot:
	.cfi_startproc
	pushq %rbp
	.cfi_def_cfa_offset 16
	.cfi_offset %rbp, -16
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
	movq %r11, %rdi
	movq %rsp, %rsi
	leaq 8(%rbp), %rdx
	/* For any alignment of the caller's stack: hand-written code may have any. */
	andq $-16, %rsp
	call *tw_bp_trampoline_hit(%rip)
	leaq -72(%rbp), %rsp
	/* Continues in the function, whose address %r11 holds from here on, or at the code that calls it. */
	movq 48(%rsp), %rdi
	movq TW_PLACE_TARGET_OFFSET(%rdi), %rdi
	movq %rdi, 48(%rsp)
	testq %rax, %rax
	cmovzq %rdi, %rax
	/* Signal handlers do not write this close to %rsp (red zone). */
	movq %rax, -8(%rsp)
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
	.cfi_def_cfa %rsp, 8
	.cfi_restore %rbp
	/* For tw_return_enter. */
	movq %r11, -8(%rsp)
	jmp *-88(%rsp)
	.cfi_endproc
	.size tw_bp_whole_slot, . - tw_bp_whole_slot

/*
 * ---- tw_patch_call_on(function, argument), tw_patch_call_keeping_vectors(function, argument) ----
 *
 * For rare operations of a hit that need libc: all vector and floating-point state is saved on the stack meanwhile, the one that
 * ends at the argument, or the present one.  The area's 64-byte header must be zero except for the fields that xsave writes.
 *
 * The caller's frame is found by %rbp, on whatever stack the call is.
 */
	.p2align 4
	.globl tw_patch_call_on
	.hidden tw_patch_call_on
	.type tw_patch_call_on, @function
tw_patch_call_on:
	.cfi_startproc
	pushq %rbp
	.cfi_def_cfa_offset 16
	.cfi_offset %rbp, -16
	movq %rsp, %rbp
	.cfi_def_cfa_register %rbp
	movq %rsi, %rsp
	jmp keep_vectors
	.cfi_endproc
	.size tw_patch_call_on, . - tw_patch_call_on

	.p2align 4
	.globl tw_patch_call_keeping_vectors
	.hidden tw_patch_call_keeping_vectors
	.type tw_patch_call_keeping_vectors, @function
tw_patch_call_keeping_vectors:
	.cfi_startproc
	pushq %rbp
	.cfi_def_cfa_offset 16
	.cfi_offset %rbp, -16
	movq %rsp, %rbp
	.cfi_def_cfa_register %rbp
keep_vectors:
	movl tw_patch_vector_bytes(%rip), %eax
	testl %eax, %eax
	jz 1f
	subq %rax, %rsp
	andq $-64, %rsp
	movq %rdi, %rcx
	xorl %eax, %eax
	xorl %edx, %edx
	movq %rax, 512(%rsp)
	movq %rax, 520(%rsp)
	movq %rax, 528(%rsp)
	movq %rax, 536(%rsp)
	movq %rax, 544(%rsp)
	movq %rax, 552(%rsp)
	movq %rax, 560(%rsp)
	movq %rax, 568(%rsp)
	movl tw_patch_vector_mask(%rip), %eax
	xsave (%rsp)
	movq %rsi, %rdi
	call *%rcx
	movl tw_patch_vector_mask(%rip), %eax
	xorl %edx, %edx
	xrstor (%rsp)
	leave
	.cfi_remember_state
	.cfi_def_cfa %rsp, 8
	.cfi_restore %rbp
	ret
	.cfi_restore_state
1:	subq $512, %rsp
	andq $-64, %rsp
	fxsave (%rsp)
	movq %rdi, %rcx
	movq %rsi, %rdi
	call *%rcx
	fxrstor (%rsp)
	leave
	.cfi_def_cfa %rsp, 8
	.cfi_restore %rbp
	ret
	.cfi_endproc
	.size tw_patch_call_keeping_vectors, . - tw_patch_call_keeping_vectors

	.bss
	.p2align 6
	.globl tw_got_table
	.hidden tw_got_table
	.type tw_got_table, @object
tw_got_table:
	.zero 8 * TW_GOT_STUBS
	.size tw_got_table, . - tw_got_table

	.section .note.GNU-stack, "", @progbits
