#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal    Whatever instruction of a traced call a signal interrupts, the handler's backtrace is complete: in the sled,
#         in its stub, in the trampoline, in the hit, in the stub that the call returns to.
# Method  A program steps itself through traced calls, and unwinds at every instruction.
build=$1
. "$(dirname "$0")/lib.sh"

cat >step.c <<'C'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <ucontext.h>
#include <unwind.h>
#define FRAMES 64
#define UNTRACED __attribute__((noinline, patchable_function_entry(0, 0)))
struct chain {
	int count;
	uintptr_t at[FRAMES];
};
static struct chain outside; /* main() and what called it */
static long steps, in_stub, bad;

UNTRACED static _Unwind_Reason_Code look(struct _Unwind_Context *context, void *arg)
{
	struct chain *chain = arg;
	if (chain->count < FRAMES)
		chain->at[chain->count++] = _Unwind_GetIP(context);
	return _URC_NO_REASON;
}

/* Which is traced. */
__attribute__((noinline)) int inner(int a) { __asm__ volatile("" : "+r"(a)); return a + 1; }

UNTRACED static int stepped(int a)
{
	/* The trap flag: a signal behind every instruction. */
	__asm__ volatile("pushf\n\torl $0x100, (%%rsp)\n\tpopf" ::: "memory", "cc");
	a = inner(a);
	__asm__ volatile("pushf\n\tandl $~0x100, (%%rsp)\n\tpopf" ::: "memory", "cc");
	return a * 2;
}

UNTRACED static void on_trap(int number, siginfo_t *info, void *arg)
{
	uintptr_t pc = (uintptr_t)((ucontext_t *)arg)->uc_mcontext.gregs[REG_RIP];
	struct chain chain = {0};
	int has_inner = 0, has_stepped = 0, same = 0;
	Dl_info object = {0};
	_Unwind_Backtrace(look, &chain);
	int is_stub = !dladdr((void *)pc, &object);
	for (int i = 0; i < chain.count; i++) {
		has_inner += chain.at[i] - (uintptr_t)inner < 64;
		has_stepped += chain.at[i] - (uintptr_t)stepped < 64;
	}
	for (int i = 1; i < outside.count && i <= chain.count; i++)
		same += chain.at[chain.count - i] == outside.at[outside.count - i];
	steps++;
	in_stub += is_stub;
	if (has_stepped && same >= outside.count - 2 && (has_inner || !is_stub))
		return;
	if (bad++ < 10)
		fprintf(stderr, "at %s+%#lx: %d frames, of those above main %d of %d, %d of inner\n", is_stub ? "stub" : object.dli_fname,
			is_stub ? pc & 31 : pc - (uintptr_t)object.dli_fbase, chain.count, same, outside.count, has_inner);
}

UNTRACED int main(void)
{
	struct sigaction action = {.sa_sigaction = on_trap, .sa_flags = SA_SIGINFO};
	_Unwind_Backtrace(look, &outside);
	/* The first event of a thread blocks signals for a moment. */
	int sum = inner(1);
	sigaction(SIGTRAP, &action, NULL);
	for (int i = 0; i < 3; i++)
		sum += stepped(i);
	printf("%d %s %ld %ld\n", sum, steps > 100 ? "many" : "few", in_stub, bad);
	return bad != 0;
}
C
gcc -w -g -O2 -mno-red-zone -fno-omit-frame-pointer -fpatchable-function-entry=9 -o step step.c || fail gcc
nm -D "$build/lib/libtracewheel-agent.so" | grep -q ' _dl_find_object$' || { echo "libc has no _dl_find_object here: not tested" && exit 77; }
expect 0 ./step
is "$(cat out)" "14 few 0 0" "untraced"
for way in "" --returns --exceptions "--stack 3" "--when \$1>0"; do
	# shellcheck disable=SC2086
	expect 0 "$tw" record -q --force --local $way -t step:inner -o step.tw -- ./step
	# Five instructions of three calls.
	is "$(cat out)" "14 many 15 0" "$way"
done
