/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bare_x86_64.S - the most common call of all: one session wants a record of it, without words, and nothing else.
 *
 * The steps are those of hit() in native.c, in the same order, but only the five registers that are used are saved.
 * They lie below the stack pointer, where signal handlers do not write (red zone), so that the frame stays that of the stub.
 *
 *	it is recorded, or counted as lost	goes on in the function
 *	its tracee is not traced		the same
 *	any other				all is as before, and it goes the whole way
 *
 *	%r11  the place			%rcx  the thread's struct tw_hit_tls		%rdi  the thread, moved on to the ring of the session
 *
 * Atomics are those of C, whose order plain instructions of this processor give.
 */
#include "breakpoints/trampoline.h"
#include "pipeline/hit/bare.h"

/* Signal handlers do not write there; below TW_WAY_R11. */
#define SAVED_RAX -16(%rsp)
#define SAVED_RCX -24(%rsp)
#define SAVED_RDX -32(%rsp)
#define SAVED_RSI -40(%rsp)
#define SAVED_RDI -48(%rsp)
#define SAVED_BYTES 48

	.macro SAVE
	movq %rax, SAVED_RAX
	movq %rcx, SAVED_RCX
	movq %rdx, SAVED_RDX
	movq %rsi, SAVED_RSI
	movq %rdi, SAVED_RDI
	.endm

	.macro RESTORE
	movq SAVED_RDI, %rdi
	movq SAVED_RSI, %rsi
	movq SAVED_RDX, %rdx
	movq SAVED_RCX, %rcx
	movq SAVED_RAX, %rax
	.endm

/* The thread's struct tw_hit_tls, if %fs is libc's, as tw_thread_base_is_known(); else goes on at @none.  Changes %rax, %rdx. */
	.macro FIND_TLS none
	rdfsbase %rcx
	movabsq $0x9e3779b97f4a7c15, %rax
	imulq %rcx, %rax
	shrq $64 - TW_BARE_BASES_BITS, %rax
	shlq $TW_BARE_BASES_SHIFT, %rax
	leaq tw_thread_bases(%rip), %rdx
	movq (%rdx,%rax), %rax
	decq %rax
	cmpq %rcx, %rax
	jne \none
	addq tw_hit_tls@gottpoff(%rip), %rcx
	.endm

/* tw_hit_begin(); @frame identifies the hit, as in native.c. */
	.macro BEGIN frame, none
	leaq \frame(%rsp), %rdx
	movl $1, %eax
	cmpxchgq %rdx, (%rcx)
	jne \none
	.endm

/* tw_progress_enter(); %rdi: the thread.  @fenced: a reader has to make a barrier itself.  Changes %rax. */
	.macro ENTER fenced
	movq TW_BARE_TLS_THREAD(%rcx), %rdi
	/* PAIR progress.epoch: acquire; release in wait_for_readers(). */
	movq tw_progress_global(%rip), %rax
	/* PAIR progress.section: release; acquire in is_anybody_behind(). */
	movq %rax, (%rdi)
	testb $1, %al
	jne \fenced
	.endm

/* The ring of the session in %rdx, and what the tracee wants in the head of its records, in %esi.  Changes %rdx. */
	.macro FIND_RING
	tzcntq %rdx, %rdx
	/* RELAXED hit.record_flags: as in head_of_call(). */
	movzbl TW_BARE_RECORD_FLAGS(%rsi,%rdx), %esi
	shll $TW_BARE_RING_SHIFT, %edx
	addq %rdx, %rdi
	.endm

/* Space for a record, at %rdx, with its time and head.  @none: nothing was done.  As tw_record_at_once(); changes %rax, %rsi. */
	.macro TAKE_SPACE place, head, bytes, none
	shll $8, %esi
	movl TW_BARE_PLACE_ID(\place), %eax
	shlq $32, %rax
	leaq \head(%rax,%rsi), %rsi
	rdtsc
	shlq $32, %rdx
	orq %rdx, %rax
	movq TW_BARE_TLS_RUN_STAMP(%rcx), %rdx
	cmpq %rdx, TW_BARE_RUN_STAMP(%rdi)
	jne \none
	movq TW_BARE_POS(%rdi), %rdx
	addq $\bytes, %rdx
	cmpq %rdx, TW_BARE_LIMIT_POS(%rdi)
	jb \none
	movq TW_BARE_POS(%rdi), %rdx
	andq TW_BARE_MASK(%rdi), %rdx
	addq TW_BARE_DATA(%rdi), %rdx
	movq %rax, (%rdx)
	movq %rsi, 8(%rdx)
	.endm

/* tw_rb_commit(); changes %rax, %rdx. */
	.macro COMMIT bytes
	incq TW_BARE_RECORDS(%rdi)
	movq TW_BARE_POS(%rdi), %rax
	addq $\bytes, %rax
	movq %rax, TW_BARE_POS(%rdi)
	movq TW_BARE_SHARED(%rdi), %rdx
	/* PAIR rb.commit: release; acquire in tw_rb_committed(). */
	movq %rax, TW_BARE_COMMITTED(%rdx)
	.endm

/* tw_progress_exit(), tw_hit_end(), with the zero flag set.  3: a thread waits for this one; it comes back to 6.  Changes %rdx. */
	.macro LEAVE
5:	movq TW_BARE_TLS_THREAD(%rcx), %rdx
	/* PAIR progress.section: release; acquire in is_anybody_behind(). */
	movq $0, (%rdx)
	/* RELAXED progress.notes: as in tw_progress_exit_quietly(). */
	cmpl $0, tw_progress_global+TW_BARE_NOTES(%rip)
	jne 3f
6:	movq $1, (%rcx)
	.endm

/* A call.  @frame: as for BEGIN.  Goes on behind, with the zero flag set, or at 9. */
	.macro HIT frame
	SAVE
	FIND_TLS 9f
	BEGIN \frame, 9f
	movq TW_BARE_TLS_TRACEE(%rcx), %rsi
	/* RELAXED hit.wants: as in hit(). */
	cmpq $0, TW_BARE_WANTS_CALL(%rsi)
	je 7f
	ENTER 8f
	/* PAIR bp.active: acquire; release in tw_bp_switch(). */
	movl tw_bp_gate(%rip), %eax
	subl $1, %eax
	jb 8f
	shll $TW_BARE_GENERATION_SHIFT, %eax
	movq TW_BARE_SESSION(%r11,%rax), %rdx
	/* PROGRESS hit.wants: as in hit(). */
	andq TW_BARE_WANTS_CALL(%rsi), %rdx
	je 8f
	/* RELAXED hit.special, hit.return_to: as in wants_at_once(). */
	movq TW_BARE_SPECIAL(%rsi), %rax
	orq TW_BARE_RETURN_TO(%rsi), %rax
	testq %rdx, %rax
	jne 8f
	FIND_RING
	cmpq $0, TW_BARE_LIMIT_POS(%rdi)
	je 4f
	TAKE_SPACE %r11, TW_BARE_HEAD, TW_BARE_BYTES, 8f
	COMMIT TW_BARE_BYTES
	LEAVE
	RESTORE
	.endm

/* The rare cases; 9: all is as before. */
	.macro HIT_RARE whole
	/* A thread waits for this one. */
3:	leaq -SAVED_BYTES(%rsp), %rsp
	.cfi_adjust_cfa_offset SAVED_BYTES
	call wake_waiter
	leaq SAVED_BYTES(%rsp), %rsp
	.cfi_adjust_cfa_offset -SAVED_BYTES
	jmp 6b
	/* tw_rb_refuse_again() */
4:	subl $1, TW_BARE_REFUSALS_LEFT(%rdi)
	jb 4f
	movq TW_BARE_SHARED(%rdi), %rax
	/* RELAXED rb.tail: as there. */
	movq TW_BARE_TAIL(%rax), %rdx
	cmpq %rdx, TW_BARE_CACHED_TAIL(%rdi)
	jne 4f
	movb $1, TW_BARE_UNTIMED(%rdi)
	incq TW_BARE_LOST_FULL(%rax)
	jmp 5b
4:	incl TW_BARE_REFUSALS_LEFT(%rdi)
	jmp 8f
	/* RELAXED bp.counting: as in hit(). */
7:	cmpq $0, TW_BARE_COUNTING(%r11)
	je 6b
	jmp 7f
	/* A thread that waits for this one is woken by the section of the whole way, or looks again. */
8:	movq TW_BARE_TLS_THREAD(%rcx), %rdx
	/* PAIR progress.section: release; acquire in is_anybody_behind(). */
	movq $0, (%rdx)
7:	movq $1, (%rcx)
9:	RESTORE
	jmp \whole
	.endm

	.text

/* Keeps all registers but %rax and %rdx.  The zero flag is set. */
	.p2align 4
	.type wake_waiter, @function
wake_waiter:
	.cfi_startproc
	pushq %rbp
	.cfi_def_cfa_offset 16
	.cfi_offset %rbp, -16
	movq %rsp, %rbp
	.cfi_def_cfa_register %rbp
	pushq %rcx
	pushq %r8
	pushq %r9
	pushq %r10
	pushq %r11
	/* For any alignment of the caller's stack. */
	andq $-16, %rsp
	call tw_progress_wake_waiter
	leaq -40(%rbp), %rsp
	popq %r11
	popq %r10
	popq %r9
	popq %r8
	popq %rcx
	popq %rbp
	.cfi_def_cfa %rsp, 8
	.cfi_restore %rbp
	xorl %eax, %eax
	ret
	.cfi_endproc
	.size wake_waiter, . - wake_waiter

/* 0(%rsp): the return address, as in trampoline_x86_64.S. */
	.p2align 6
	.globl tw_hit_bare_slot
	.hidden tw_hit_bare_slot
	.type tw_hit_bare_slot, @function
tw_hit_bare_slot:
	.cfi_startproc
	HIT -8
	movq TW_PLACE_TARGET_OFFSET(%r11), %r11
	jmp *%r11
	HIT_RARE tw_bp_whole_slot
	.cfi_endproc
	.size tw_hit_bare_slot, . - tw_hit_bare_slot

/* 0(%rsp): in the stub; 8: the place; 16: where the call continues; 24: the return address, as in sled_x86_64.S. */
	.p2align 6
	.globl tw_hit_bare_sled
	.hidden tw_hit_bare_sled
	.type tw_hit_bare_sled, @function
tw_hit_bare_sled:
	.cfi_startproc
	TW_CFI_OF_SLED
	HIT 16
	movq 16(%rsp), %r11
	.cfi_remember_state
	movq %r11, 8(%rsp)
	/* The place is not there any more: the address where the call continues. */
	.cfi_offset 16, -8
	movq TW_WAY_R11, %r11
	ret
	.cfi_restore_state
	HIT_RARE tw_bp_whole_sled
	.cfi_endproc
	.size tw_hit_bare_sled, . - tw_hit_bare_sled

	.section .note.GNU-stack, "", @progbits
