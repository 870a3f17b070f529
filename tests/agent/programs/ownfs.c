/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ownfs.c - code that runs with a %fs of its own, as emulators and unikernels do; prints how often it was called.
 *
 *	ownfs		%fs is 0, then memory of the program that holds nothing, then memory that begins as libc's does
 *
 * The first thread and another do so.  No system call of libc's is made meanwhile: nothing may go through %fs.
 */
#include <asm/prctl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { ROUNDS = 50, CALLS = 40 };

static _Atomic long calls;

long change_base(long code, uintptr_t value);
__asm__(".text\n.globl change_base\n.type change_base,@function\nchange_base:\n.cfi_startproc\nmov $158,%eax\nsyscall\nret\n"
	".cfi_endproc\n.size change_base,.-change_base");

__attribute__((noinline)) static void guest(void)
{
	calls++;
	__asm__ volatile("" ::: "memory");
}

/* change_base() returns with another %fs than it was called with. */
__attribute__((noinline)) static void run_with(uintptr_t base)
{
	uintptr_t own = 0;

	change_base(ARCH_GET_FS, (uintptr_t)&own);
	change_base(ARCH_SET_FS, base);
	for (int i = 0; i < CALLS; i++)
		guest();
	change_base(ARCH_SET_FS, own);
}

static void *run(void *memory)
{
	/* Nothing is mapped below the first; as in libc's data of a thread, the first and third words of the second hold its address. */
	uintptr_t empty = (uintptr_t)memory, like = empty + 4096;

	((uintptr_t *)like)[0] = ((uintptr_t *)like)[2] = like;
	for (int i = 0; i < ROUNDS; i++) {
		guest();
		run_with(0);
		run_with(empty);
		run_with(empty + 8);
		run_with(like);
		/* No address of memory. */
		run_with(UINT64_C(0x123456789000));
	}
	return NULL;
}

int main(void)
{
	char *memory = mmap(NULL, 4 * 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	pthread_t thread;

	if (memory == MAP_FAILED || mprotect(memory + 4096, 3 * 4096, PROT_READ | PROT_WRITE))
		return 2;
	run(memory + 4096);
	pthread_create(&thread, NULL, run, memory + 4096);
	pthread_join(thread, NULL);
	printf("calls %ld\n", calls);
	return 23;
}
