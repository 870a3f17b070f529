/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inject_x86_64.S - what a thread of another program executes for inject.c, and a new thread for it: inject.h has the words.
 *
 * The command writes tw_inject_image below the stack of a stopped thread, tw_inject_bootstrap into unused bytes behind the code of an object,
 * and changes the thread's registers once.  From there on nothing needs the command:
 *
 *  1 bootstrap	map an area, copy the image there, make its code executable, go there; if one fails: 5
 *  2 enter	block signals; keep vector registers
 *  3		make a thread, which begins at tw_inject_thread
 *  4		vector registers back; a signal that waits makes a system call end as it would have ended; signals as before
 *  5		general registers, flags and stack as before, and back to the interrupted instruction
 *
 * The new thread makes a memfd, waits until the command has filled it, and loads it as a library.
 */
#include "tools/attach/inject_words.h"

	.macro	back_to_program, label
	/* %rsp: the registers as they were, in this order. */
	popq	%r15
	popq	%r14
	popq	%r13
	popq	%r12
	popq	%rbp
	popq	%rbx
	popq	%r11
	popq	%r10
	popq	%r9
	popq	%r8
	popq	%rax
	popq	%rcx
	popq	%rdx
	popq	%rsi
	popq	%rdi
	popfq
	/* From here on nothing is below the stack pointer that a signal could not overwrite. */
	popq	%rsp
	jmp	*\label(%rip)
	.endm

	.section .rodata
	.p2align 4
	.globl	tw_inject_bootstrap, tw_inject_bootstrap_back, tw_inject_bootstrap_end
	.hidden	tw_inject_bootstrap, tw_inject_bootstrap_back, tw_inject_bootstrap_end
	/*
	 * rax, rdi, rsi, rdx, r10, r8, r9: of mmap().  rbx: where it is to be, rbp: as much.  r12, r13: the image and its bytes.
	 * rsp: the registers.
	 */
tw_inject_bootstrap:
	syscall
	cmpq	%rax, %rbx
	jne	2f
	movq	%rbx, %rdi
	movq	%r12, %rsi
	movq	%r13, %rcx
	rep movsb
	movl	$TW_INJECT_NR_MPROTECT, %eax
	movq	%rbx, %rdi
	movl	$TW_INJECT_CODE_BYTES, %esi
	movl	$5, %edx
	syscall
	testq	%rax, %rax
	jne	1f
	jmp	*%rbx
1:	movl	$TW_INJECT_NR_MUNMAP, %eax
	movq	%rbx, %rdi
	movq	%rbp, %rsi
	syscall
2:	back_to_program tw_inject_bootstrap_back
tw_inject_bootstrap_back:
	.quad	0
tw_inject_bootstrap_end:

	.p2align 12
	.globl	tw_inject_image, tw_inject_image_end
	.hidden	tw_inject_image, tw_inject_image_end
#define WORD(name) words + TW_INJECT_##name(%rip)
tw_inject_image:
	/* 2 */
	movq	%rsp, %rbp
	movl	$TW_INJECT_NR_SIGPROCMASK, %eax
	movl	$2, %edi
	leaq	all(%rip), %rsi
	leaq	WORD(MASK), %rdx
	movl	$8, %r10d
	syscall
	movl	$TW_INJECT_ENTERED, WORD(STATE)
	subq	$TW_INJECT_VECTOR_BYTES, %rsp
	andq	$-64, %rsp
	movq	%rsp, %r12
	leaq	512(%rsp), %rdi
	movl	$8, %ecx
	xorl	%eax, %eax
	rep stosq
	movl	$-1, %eax
	movl	$-1, %edx
	xsave64	(%r12)
	/* 3 */
	leaq	WORD(ATTRIBUTES), %rdi
	call	*WORD(ATTRIBUTES_INIT)
	leaq	WORD(ATTRIBUTES), %rdi
	movl	$1, %esi
	call	*WORD(ATTRIBUTES_DETACHED)
	leaq	WORD(THREAD), %rdi
	leaq	WORD(ATTRIBUTES), %rsi
	leaq	tw_inject_thread(%rip), %rdx
	xorl	%ecx, %ecx
	call	*WORD(CREATE)
	movl	%eax, WORD(CREATED)
	/* 4 */
	movl	$-1, %eax
	movl	$-1, %edx
	xrstor64 (%r12)
	cmpl	$TW_INJECT_RESTART_NEVER, WORD(RESTART)
	je	9f
	movl	$TW_INJECT_NR_SIGPENDING, %eax
	leaq	WORD(PENDING), %rdi
	movl	$8, %esi
	syscall
	movq	WORD(MASK), %rax
	notq	%rax
	andq	%rax, WORD(PENDING)
5:	bsfq	WORD(PENDING), %rdi
	je	9f
	btrq	%rdi, WORD(PENDING)
	incq	%rdi
	movl	$TW_INJECT_NR_SIGACTION, %eax
	xorl	%esi, %esi
	leaq	WORD(ACTION), %rdx
	movl	$8, %r10d
	syscall
	testq	%rax, %rax
	jne	5b
	/* The default, or ignored. */
	cmpq	$1, WORD(ACTION)
	jbe	5b
	cmpl	$TW_INJECT_RESTART_UNLESS_HANDLED, WORD(RESTART)
	je	6f
	testl	$TW_INJECT_SA_RESTART, words + TW_INJECT_ACTION + 8(%rip)
	jne	5b
6:	/* As the kernel: EINTR, behind the call. */
	movq	$-TW_INJECT_EINTR, TW_INJECT_REGISTER_RAX(%rbp)
	addq	$2, WORD(BACK)
9:	movl	$TW_INJECT_NR_SIGPROCMASK, %eax
	movl	$2, %edi
	leaq	WORD(MASK), %rsi
	xorl	%edx, %edx
	movl	$8, %r10d
	syscall
	/* 5 */
	movq	%rbp, %rsp
	back_to_program words + TW_INJECT_BACK

	/* The new thread, with all signals blocked. */
tw_inject_thread:
	pushq	%rbx
	/* As executable; older kernels know no such flag, and no other memfd. */
	movl	$TW_INJECT_NR_MEMFD, %eax
	leaq	name(%rip), %rdi
	movl	$0x11, %esi
	syscall
	cmpq	$-TW_INJECT_EINVAL, %rax
	jne	1f
	movl	$TW_INJECT_NR_MEMFD, %eax
	leaq	name(%rip), %rdi
	movl	$1, %esi
	syscall
1:	movl	%eax, WORD(FILE)
	movl	$TW_INJECT_WAITING, WORD(STATE)
	testl	%eax, %eax
	js	8f
	movl	$TW_INJECT_WAITS, %ebx
2:	cmpl	$TW_INJECT_FILLED, WORD(STATE)
	je	3f
	movl	$TW_INJECT_NR_NANOSLEEP, %eax
	leaq	millisecond(%rip), %rdi
	xorl	%esi, %esi
	syscall
	decl	%ebx
	jne	2b
	/* The command is gone.  If it has filled the file just now, that is not looked at. */
	jmp	7f
3:	leaq	WORD(PATH), %rdi
	movl	$2, %esi
	call	*WORD(OPEN)
	movq	%rax, WORD(HANDLE)
	testq	%rax, %rax
	jne	7f
	call	*WORD(ERROR)
	testq	%rax, %rax
	je	7f
	leaq	WORD(TEXT), %rdi
	movl	$TW_INJECT_TEXT_BYTES - 1, %ecx
4:	movb	(%rax), %dl
	movb	%dl, (%rdi)
	incq	%rax
	incq	%rdi
	testb	%dl, %dl
	je	7f
	decl	%ecx
	jne	4b
7:	movl	$TW_INJECT_NR_CLOSE, %eax
	movl	WORD(FILE), %edi
	syscall
8:	movl	$TW_INJECT_DONE, WORD(STATE)
	xorl	%eax, %eax
	popq	%rbx
	ret

all:	.quad	-1
millisecond:
	.quad	0, 1000000
name:	.asciz	"libtracewheel-agent.so"

	.p2align 12
words:	.zero	TW_INJECT_WORDS_BYTES
tw_inject_image_end:
	.section .note.GNU-stack, "", @progbits
