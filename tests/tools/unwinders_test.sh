#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal    libunwind, which knows only the objects that dl_iterate_phdr() lists, shows the callers at every instruction that a signal
#         interrupts: in a stub, a copy, the trampoline, the hit, and the stub that a watched call returns to; and in a
#         function that such a call has called. The program's own list of objects shows nothing more.
# Method  A program steps itself through calls of planted functions, and unwinds at every instruction, by libunwind and by backtrace().
#         The control: a copy of the library under another name, which is not answered, is cut at each instruction outside
#         of objects.
build=$1
. "$(dirname "$0")/lib.sh"
export XDG_CACHE_HOME=$work/cache
mkdir cache
library=$(PATH=$PATH:/usr/sbin:/sbin ldconfig -p | awk '$1 == "libunwind.so.8" && /x86-64/ { print $NF; exit }')
[ -n "$library" ] || { echo "libunwind8 is not here: not tested" && exit 77; }
nm -D "$build/lib/libtracewheel-agent.so" | grep -q ' _dl_find_object$' || { echo "libc has no _dl_find_object here: not tested" && exit 77; }

cat >walk.c <<'C'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <execinfo.h>
#include <link.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>
static int (*walk)(void **, int) = backtrace;
static long steps, outside, cut, cut_outside;
__attribute__((noipa)) static long stepped(long a);
static int is_whole(void)
{
	void *frames[64];
	int found = 0;
	for (int count = walk(frames, 64), i = 0; i < count; i++)
		found |= (uintptr_t)frames[i] - (uintptr_t)stepped < 128;
	return found;
}
/* These are traced. */
__attribute__((noipa)) long leaf(long a) { return a / 3 + 1; }
__attribute__((noipa)) long asks(long a) { return a + 1000 * is_whole(); }
__attribute__((noipa)) long pushes(long a)
{
	char b[64];
	memset(b, (int)a, sizeof b);
	__asm__ volatile("" ::"r"(b) : "memory");
	return b[9] + leaf(a) + a;
}
__attribute__((noipa)) static long stepped(long a)
{
	long whole = asks(a);
	__asm__ volatile("sub $128, %%rsp; pushf; orl $0x100, (%%rsp); popf; add $128, %%rsp" ::: "memory", "cc");
	a = pushes(a);
	__asm__ volatile("sub $128, %%rsp; pushf; andl $~0x100, (%%rsp); popf; add $128, %%rsp" ::: "memory", "cc");
	return a * 2 + whole;
}
static void on_trap(int number, siginfo_t *info, void *arg)
{
	Dl_info object;
	int is_outside = !dladdr((void *)(uintptr_t)((ucontext_t *)arg)->uc_mcontext.gregs[REG_RIP], &object), is_cut = !is_whole();
	steps++;
	outside += is_outside;
	cut += is_cut;
	cut_outside += is_cut && is_outside;
}
static int count_object(struct dl_phdr_info *info, size_t bytes, void *arg)
{
	*(int *)arg += info->dlpi_name[0] == '[';
	return 0;
}
int main(int argc, char **argv)
{
	struct sigaction action = {.sa_sigaction = on_trap, .sa_flags = SA_SIGINFO};
	int objects = 0, sum = (int)pushes(1);
	if (argc > 1) {
		void *library = dlopen(argv[1], RTLD_NOW);
		*(void **)&walk = library ? dlsym(library, "unw_backtrace") : NULL;
		if (!walk)
			return 2;
	}
	is_whole();
	dl_iterate_phdr(count_object, &objects);
	sigaction(SIGTRAP, &action, NULL);
	for (int i = 0; i < 3; i++)
		sum += stepped(i);
	printf("%d, %d objects: %s, %s outside, cut %ld, outside %s\n", sum, objects, steps > 90 ? "many" : "few",
	       outside > 45 ? "many" : outside ? "few" : "none", cut, !cut_outside ? "none" : cut_outside == outside ? "all" : "some");
	return 0;
}
C
gcc -w -O2 -o walk walk.c -Wl,--build-id || fail gcc
cp "$library" other.so
expect 0 ./walk "$library"
is "$(cat out)" "3024, 0 objects: many, none outside, cut 0, outside none" "untraced"
for way in "" --returns "--returns --stack 3" --exceptions; do
	# shellcheck disable=SC2086
	expect 0 "$tw" record -q --force --local $way -t 'walk:{leaf,pushes,asks}' -o w.tw -- ./walk "$library"
	is "$(cat out)" "3024, 0 objects: many, many outside, cut 0, outside none" "libunwind, $way"
	# shellcheck disable=SC2086
	expect 0 "$tw" record -q --force --local $way -t 'walk:{leaf,pushes,asks}' -o w.tw -- ./walk
	is "$(cat out)" "3024, 0 objects: many, many outside, cut 0, outside none" "backtrace(), $way"
done
expect 0 "$tw" record -q --force --local -t 'walk:{leaf,pushes,asks}' -o w.tw -- ./walk ./other.so
shows '^[0-9]*, 0 objects: many, many outside, .*, outside all$'
