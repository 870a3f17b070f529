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
 *	*(((CFA - 8 & MASK) << SHIFT) + ((CFA - 8 & HALF) << HALF_SHIFT) + BASE) - 1
 *
 * A frame without size has the same CFA as the one below; unwinders tell them apart only where one of them is a
 * signal frame, so it says that it is one.  For signal frames, unwinders use the return address as it is, not as the
 * address after a call: hence the subtracted byte.  Otherwise a call at the very end of a function or of a try block
 * would be looked up in the code that follows.
 *
 * libunwind takes each signal frame for one that the kernel has written, and reads a context there, from wherever that is on
 * the stack.  It tells frames apart by the instruction as well, so it is given call frame information of its own
 * (tw_unwind_return_stubs()), which differs in these two points: no signal frame, and the return address as it is.
 */
#include "breakpoints/trampoline.h"

/* A DWARF expression: the shadow's word for the stack slot below the CFA, which is on the expression's stack. */
#define SHADOW_WORD \
	0x38, 0x1c, \
	0x12, 0x30 + TW_SHADOW_HALF, 0x1a, 0x08, TW_SHADOW_HALF_SHIFT, 0x24, 0x16, \
	0x0e, TW_SHADOW_SLOT_MASK & 0xff, TW_SHADOW_SLOT_MASK >> 8 & 0xff, TW_SHADOW_SLOT_MASK >> 16 & 0xff, \
	TW_SHADOW_SLOT_MASK >> 24 & 0xff, TW_SHADOW_SLOT_MASK >> 32 & 0xff, TW_SHADOW_SLOT_MASK >> 40 & 0xff, 0, 0, \
	0x1a, 0x30 + TW_SHADOW_SHIFT, 0x24, 0x22, \
	0x0e, TW_SHADOW_BASE & 0xff, TW_SHADOW_BASE >> 8 & 0xff, TW_SHADOW_BASE >> 16 & 0xff, \
	TW_SHADOW_BASE >> 24 & 0xff, TW_SHADOW_BASE >> 32 & 0xff, TW_SHADOW_BASE >> 40 & 0xff, 0, 0, \
	0x22, 0x06

	/* Written as data: the assembler has no words for expressions.  DW_CFA_val_expression of column 16. */
	.macro RETURN_ADDRESS_IS_IN_SHADOW
	.cfi_escape 0x16, 16, 37, SHADOW_WORD, 0x12, 0x30, 0x2e, 0x1c
	.endm

	.macro STUB name
	subq $8, %rsp
	.cfi_adjust_cfa_offset 8
\name\()_2:
	pushq %rbp
	.cfi_adjust_cfa_offset 8
	.cfi_rel_offset %rbp, 0
\name\()_3:
	movq %rsp, %rbp
	.cfi_def_cfa_register %rbp
\name\()_4:
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
\name\()_5:
	ret
\name\()_6:
	.endm

	/*
	 * %rsp: the slot.  8 bytes below it the address in the function, where signal handlers do not write.
	 * The stub must follow directly, also for unwinders, which look one byte before a return address.
	 */
	.macro ENTER name
	.cfi_def_cfa %rsp, 8
\name\()_0:
	leaq 8(%rsp), %rsp
	.cfi_def_cfa_offset 0
\name\()_1:
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
	ENTER .Lplain
	.globl tw_return_stub
	.hidden tw_return_stub
tw_return_stub:
	STUB .Lplain
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
	ENTER .Lcatching
	.globl tw_return_stub_catching
	.hidden tw_return_stub_catching
tw_return_stub_catching:
	STUB .Lcatching
	.cfi_endproc
	.size tw_return_enter_catching, . - tw_return_enter_catching
	.globl tw_return_stubs_end
	.hidden tw_return_stubs_end
tw_return_stubs_end:

/* ---- for libunwind: an .eh_frame_hdr with two rows, and what it leads to (DWARF 5, 6.4.1 and 7.24) ---- */

	.macro AFTER from, to
	/* DW_CFA_advance_loc1 */
	.byte 2, \to - \from
	.endm

	.macro LISTED name
.Lframe\name:
	.long 2f - 1f
1:	.long . - .Lcommon
	.long \name\()_0 - .
	.long \name\()_6 - \name\()_0
	.byte 0
	AFTER \name\()_0, \name\()_1
	/* DW_CFA_def_cfa_offset */
	.byte 0x0e, 0
	AFTER \name\()_1, \name\()_2
	.byte 0x0e, 8
	AFTER \name\()_2, \name\()_3
	/* %rbp is at CFA - 2 * 8: DW_CFA_offset */
	.byte 0x0e, 16, 0x80 + 6, 2
	AFTER \name\()_3, \name\()_4
	/* DW_CFA_def_cfa_register */
	.byte 0x0d, 6
	AFTER \name\()_4, \name\()_5
	/* DW_CFA_def_cfa, DW_CFA_restore */
	.byte 0x0c, 7, 8, 0xc0 + 6
	.p2align 2, 0
2:
	.endm

	.section .rodata
	.p2align 3
	.globl tw_return_listed
	.hidden tw_return_listed
	.type tw_return_listed, @object
tw_return_listed:
	.byte 1, 0x1b, 0x03, 0x3b
	.long .Lcommon - .
	.long 2
	.long .Lplain_0 - tw_return_listed, .Lframe.Lplain - tw_return_listed
	.long .Lcatching_0 - tw_return_listed, .Lframe.Lcatching - tw_return_listed
.Lcommon:
	.long 2f - 1f
1:	.long 0
	/* Version, augmentation, factors 1 and -8, column, size of the augmentation, form of addresses. */
	.byte 1, 'z', 'R', 0, 1, 0x78, 16, 1, 0x1b
	.byte 0x0c, 7, 8
	.byte 0x16, 16, 33, SHADOW_WORD
	.p2align 2, 0
2:
	LISTED .Lplain
	LISTED .Lcatching
	.size tw_return_listed, . - tw_return_listed

	.section .note.GNU-stack, "", @progbits
