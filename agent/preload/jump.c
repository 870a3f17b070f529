/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jump.c - wraps longjmp, to end the hit it leaves if a handler interrupted one and, if exceptions are recorded, the
 * calls it leaves.
 *
 * The four names are one function of libc, which restores registers from the first words of its buffer: %rsp from the
 * seventh and the continuation address from the eighth, both rotated by 17 bits and xored with a word of the thread
 * (sysdeps/x86_64/jmpbuf-offsets.h, PTR_MANGLE).  A buffer in another form leaves no frame that we know.
 */
#include "agent/agent.h"
#include "agent/preload/real.h"
#include "base/export.h"
#include "pipeline/hit/hit.h"
#include "pipeline/hit/native.h"
#include "pipeline/thread/thread.h"

#include <stdint.h>

typedef void (*jump_fn)(void *buffer, int value) __attribute__((noreturn));

enum { LONGJMP, UNDERSCORE, SIGLONGJMP, CHECKED, JUMPS };
static const char *const names[JUMPS] = {"longjmp", "_longjmp", "siglongjmp", "__longjmp_chk"};
static _Atomic(void *) real_jumps[JUMPS];

static jump_fn find(int number)
{
	return (jump_fn)(uintptr_t)tw_real(&real_jumps[number], names[number]);
}

/* Looked up before a signal handler can jump: it must not call the loader. */
__attribute__((constructor(101))) static void find_all(void)
{
	for (int number = 0; number < JUMPS; number++)
		find(number);
}

static uintptr_t unmangle(uint64_t word)
{
	__asm__("ror $17, %0; xor %%fs:0x30, %0" : "+r"(word));
	return word;
}

static void tell(const uint64_t *buffer)
{
	tw_thread_jumps(unmangle(buffer[6]));
	if (tw_agent_has_exceptions())
		tw_native_jump(unmangle(buffer[6]), unmangle(buffer[7]));
}

#define JUMP(name, number)                                            \
	void name(void *buffer, int value) __attribute__((noreturn)); \
	TW_API void name(void *buffer, int value)                     \
	{                                                             \
		tell(buffer);                                         \
		find(number)(buffer, value);                          \
	}

JUMP(longjmp, LONGJMP)
JUMP(_longjmp, UNDERSCORE)
JUMP(siglongjmp, SIGLONGJMP)
JUMP(__longjmp_chk, CHECKED)
