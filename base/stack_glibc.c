/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stack_glibc.c - finds a thread's own stack without a system call, a lock or an allocation.
 *
 * pthread_getattr_np() allocates, takes a lock, and for the first thread reads a file.  For other threads it reads two
 * neighbouring words of the thread's control block, at the upper end of the stack: the start of the memory block and its
 * size.  They are searched there, because their offset depends on the version of glibc; for the first thread they hold 0
 * and __libc_stack_end.  libc exports the size of the control block for debuggers.
 */
#include "base/sys.h"

#include <dlfcn.h>
#include <unistd.h>

/* The first stack grows.  Linux keeps 128 MiB below its end free for that, whatever the limit is. */
#define FIRST_STACK_BYTES (UINT64_C(120) << 20)
/* Maximum distance of the control block from the end of its stack, and maximum size of a stack. */
#define BLOCK_TO_END_BYTES_MAX UINT64_C(16384)
#define STACK_BYTES_MAX	       (UINT64_C(1) << 40)

extern void *__libc_stack_end;

static uintptr_t control_block_bytes;

void tw_sys_own_stack_init(void)
{
	const uint32_t *bytes = dlsym(RTLD_DEFAULT, "_thread_db_sizeof_pthread");

	if (bytes && *bytes >= 512 && *bytes <= BLOCK_TO_END_BYTES_MAX)
		control_block_bytes = *bytes;
}

static bool is_stack_of(uintptr_t self, uintptr_t low, uintptr_t bytes)
{
	return low && low < self && bytes < STACK_BYTES_MAX && low + bytes > self &&
	       low + bytes - self <= BLOCK_TO_END_BYTES_MAX;
}

bool tw_sys_own_stack(uintptr_t *low, uintptr_t *high)
{
	const uintptr_t *words = __builtin_thread_pointer(), self = (uintptr_t)words;
	uintptr_t first_end = (uintptr_t)__libc_stack_end;

	for (uintptr_t i = 0; i + 2 <= control_block_bytes / sizeof *words; i++) {
		bool is_first = !words[i] && words[i + 1] == first_end;

		if (!is_first && !is_stack_of(self, words[i], words[i + 1]))
			continue;
		*low = is_first ? first_end - FIRST_STACK_BYTES : words[i];
		*high = words[i] + words[i + 1];
		return true;
	}
	return false;
}
