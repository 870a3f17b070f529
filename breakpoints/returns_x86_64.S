/* SPDX-License-Identifier: Apache-2.0 */
/*
 * returns_x86_64.S - the stubs to which watched calls return.
 *
 * A watched call enters its function by a call from here, made with %rsp above the slot: it pushes the address of the
 * stub where the return address was.  Thus the processor's return stack predicts the function's return, and that of the
 * stub too: the next address on it is the caller's.  (When the stub was stored into the slot and the function entered
 * by a jump, each return was mispredicted.)
 *
 * On arrival in the stub %rsp is behind the slot (S + 8), as the caller expects it.  Every register is kept, also those that a
 * function may change: where only the attribute patchable_function_entry is used, callers know which of them the
 * function does not change (-fipa-ra).  Vector and x87 registers are not touched: the called code is compiled without
 * them.  The flags are not used after a return.
 *
 * Call frame information: the frame of a stub is empty (CFA = %rsp), and its return address, minus one byte, is the
 * first word of the slot's entry, see returns.h:
 *
 *	*(((CFA - 8 & MASK) << SHIFT) + BASE) - 1
 *
 * A frame without size has the same CFA as the one below; unwinders tell them apart only where one of them is a
 * signal frame, so it says that it is one.  For signal frames, unwinders use the return address as it is, not as the
 * address after a call: hence the subtracted byte.  Otherwise a call at the very end of a function or of a try block
 * would be looked up in the code that follows.
 */
#include "breakpoints/trampoline.h"

	/* Written as data: the assembler has no words for expressions.  DW_CFA_val_expression of column 16. */
	.macro RETURN_ADDRESS_IS_IN_SHADOW
	.cfi_escape 0x16, 16, 27, 0x38, 0x1c, \
		0x0e, TW_SHADOW_SLOT_MASK & 0xff, TW_SHADOW_SLOT_MASK >> 8 & 0xff, TW_SHADOW_SLOT_MASK >> 16 & 0xff, \
		TW_SHADOW_SLOT_MASK >> 24 & 0xff, TW_SHADOW_SLOT_MASK >> 32 & 0xff, TW_SHADOW_SLOT_MASK >> 40 & 0xff, 0, 0, \
		0x1a, 0x30 + TW_SHADOW_SHIFT, 0x24, \
		0x0e, TW_SHADOW_BASE & 0xff, TW_SHADOW_BASE >> 8 & 0xff, TW_SHADOW_BASE >> 16 & 0xff, \
		TW_SHADOW_BASE >> 24 & 0xff, TW_SHADOW_BASE >> 32 & 0xff, TW_SHADOW_BASE >> 40 & 0xff, 0, 0, \
		0x22, 0x06, 0x31, 0x1c
	.endm

	.macro STUB
	subq $8, %rsp
	.cfi_adjust_cfa_offset 8
	pushq %rbp
	.cfi_adjust_cfa_offset 8
	.cfi_rel_offset %rbp, 0
	movq %rsp, %rbp
	.cfi_def_cfa_register %rbp
	pushq %rax
	/* S - 24: tw_returns_second(). */
	pushq %rdx
	pushq %rcx
	pushq %rsi
	pushq %rdi
	pushq %r8
	pushq %r9
	pushq %r10
	pushq %r11
	leaq 8(%rbp), %rdi
	movq %rax, %rsi
	/* For any alignment of the caller's stack. */
	andq $-16, %rsp
	call *tw_bp_trampoline_return(%rip)
	/* Restores the true return address in the slot. */
	movq %rax, 8(%rbp)
	leaq -72(%rbp), %rsp
	popq %r11
	popq %r10
	popq %r9
	popq %r8
	popq %rdi
	popq %rsi
	popq %rcx
	popq %rdx
	popq %rax
	popq %rbp
	.cfi_def_cfa %rsp, 8
	.cfi_restore %rbp
	ret
	.endm

	/*
	 * %rsp: the slot.  8 bytes below it the address in the function, where signal handlers do not write.
	 * The stub must follow directly, also for unwinders, which look one byte before a return address.
	 */
	.macro ENTER
	.cfi_def_cfa %rsp, 8
	leaq 8(%rsp), %rsp
	.cfi_def_cfa_offset 0
	call *-16(%rsp)
	.endm

	.text
	.p2align 6
	.globl tw_return_enter
	.hidden tw_return_enter
	.type tw_return_enter, @function
tw_return_enter:
	.cfi_startproc
	.cfi_signal_frame
	RETURN_ADDRESS_IS_IN_SHADOW
	ENTER
	.globl tw_return_stub
	.hidden tw_return_stub
tw_return_stub:
	STUB
	.cfi_endproc
	.size tw_return_enter, . - tw_return_enter

	.p2align 6
	.globl tw_return_enter_catching
	.hidden tw_return_enter_catching
	.type tw_return_enter_catching, @function
tw_return_enter_catching:
	.cfi_startproc
	.cfi_signal_frame
	/* Called by unwinders for each such frame that an exception passes: unwind.c. */
	.cfi_personality 0x1b, tw_return_personality
	RETURN_ADDRESS_IS_IN_SHADOW
	ENTER
	.globl tw_return_stub_catching
	.hidden tw_return_stub_catching
tw_return_stub_catching:
	STUB
	.cfi_endproc
	.size tw_return_enter_catching, . - tw_return_enter_catching
	.globl tw_return_stubs_end
	.hidden tw_return_stubs_end
tw_return_stubs_end:

	.section .note.GNU-stack, "", @progbits
