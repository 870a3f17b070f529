/* SPDX-License-Identifier: Apache-2.0 */
/* thread_base.c - tells libc's data of a thread from other memory to which %fs points. */
#include "base/thread_base.h"

#include "base/cacheline.h"
#include "base/filter.h"

#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <sys/auxv.h>
#include <sys/syscall.h>

#define REGULAR __attribute__((target("general-regs-only"), noinline))

#define HAS_RDFSBASE 2 /* HWCAP2_FSGSBASE */
/* The data of a thread lies at the upper end of its stack, and its first traced call is made near that end. */
#define NEAR_STACK_BYTES (UINT64_C(256) << 10)
#define NUMBER_MAX	 (1 << 22) /* of a thread: PID_MAX_LIMIT */

TW_CACHELINE_ALIGNED _Atomic(uintptr_t) tw_thread_bases[1 << TW_THREAD_BASE_SET_BITS][TW_THREAD_BASE_SET];

/* The place at which libc keeps a thread's number. */
static uint32_t number_offset;

/* Without libc, whose functions set errno. */
REGULAR static long call_system(long number, long a, long b, long c, long d)
{
	register long fourth __asm__("r10") = d;
	long result;

	__asm__ volatile("syscall"
			 : "=a"(result)
			 : "a"(number), "D"(a), "S"(b), "d"(c), "r"(fourth)
			 : "rcx", "r11", "memory");
	return result;
}

/* The kernel reads the mask before it finds that this is no way to change one. */
REGULAR static bool is_readable(uintptr_t address)
{
	return call_system(SYS_rt_sigprocmask, -1, (long)address, 0, _NSIG / 8) == -EINVAL;
}

/* libc's data begins with its own address, and has it again in the third word; the ABI asks for the first only. */
REGULAR static bool looks_right(uintptr_t base)
{
	const volatile uintptr_t *words = (const volatile uintptr_t *)base;
	int32_t number;

	if (words[0] != base || words[2] != base)
		return false;
	number = *(const volatile int32_t *)(base + number_offset);
	return number > 0 && number <= NUMBER_MAX;
}

REGULAR static void remember(uintptr_t base)
{
	_Atomic(uintptr_t) *set = tw_thread_base_set(base);

	for (unsigned i = 0; i < TW_THREAD_BASE_SET; i++) {
		uintptr_t found = 0;

		/* RELAXED thread_base.set: as above; an address that finds no space is examined again each time. */
		if (tw_cas_relaxed(&set[i], &found, base + 1) || found == base + 1)
			return;
	}
}

REGULAR bool tw_thread_base_examine(uintptr_t base)
{
	uintptr_t stack = (uintptr_t)__builtin_frame_address(0);

	for (unsigned i = 0; i < TW_THREAD_BASE_SET; i++)
		/* RELAXED thread_base.set: as above. */
		if (tw_load_relaxed(&tw_thread_base_set(base)[i]) == base + 1)
			return true;
	if (!base || base % 64)
		return false;
	/* Memory between a stack pointer and the end of its stack can be read. */
	if (base - stack >= NEAR_STACK_BYTES) {
		if (!tw_process_may_call_system() || !is_readable(base) || !is_readable(base + number_offset) ||
		    !looks_right(base) ||
		    *(const volatile int32_t *)(base + number_offset) != call_system(SYS_gettid, 0, 0, 0, 0))
			return false;
	} else if (!looks_right(base)) {
		return false;
	}
	remember(base);
	return true;
}

bool tw_thread_base_init(void)
{
	/* For debuggers: number of bits, of elements, offset in bytes. */
	const uint32_t *where = dlvsym(RTLD_DEFAULT, "_thread_db_pthread_tid", "GLIBC_PRIVATE");
	uintptr_t base;

	if (!(getauxval(AT_HWCAP2) & HAS_RDFSBASE) || !where || where[0] != 32)
		return false;
	number_offset = where[2];
	__asm__ volatile("rdfsbase %0" : "=r"(base));
	if (!looks_right(base))
		return false;
	remember(base);
	return true;
}
