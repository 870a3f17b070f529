#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal    record --flight --snapshot-on crash: the capture says which signal ended the program, with the address and the stack of the thread; the
#         program dies as it does without us, and sees nothing of our handlers and signal stacks.
# Method  A program dies in many ways. Its functions are named in the order of the stack, and how the stack ends; its exit code is that of a run
#         without us. It looks for handlers and signal stacks that it has not set. Where nothing can be known, or nothing was asked for, no stack is shown.
build=$1
. "$(dirname "$0")/lib.sh"

cat >die.c <<'C'
#define _GNU_SOURCE
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#define FAR __attribute__((noinline))
static volatile int sink;
static const char *how;
static int is(const char *name) { return !strcmp(how, name); }
FAR int step(int n) { __asm__ volatile("" : "+r"(n)); return n + 1; }
FAR int load(const int *at) { int n = *at; __asm__ volatile("" : "+r"(n)); return n + step(n); }
FAR long deep(long n) { volatile char room[200]; room[n % 200] = (char)n; long r = deep(n + 1); return r + room[0]; }
FAR void smash(void) { char *volatile p; char b[16]; p = b; memset(p, 'A', 400); __asm__ volatile("" : : "r"(p) : "memory"); }
FAR int divide(int a, int b) { int c = a / b; __asm__ volatile("" : "+r"(c)); return c; }
/* What a program must find if it has set nothing. */
static void look(void)
{
	struct sigaction a;
	stack_t s;
	if (sigaction(SIGSEGV, 0, &a) || a.sa_handler != SIG_DFL || signal(SIGABRT, SIG_DFL) != SIG_DFL)
		_exit(90);
	if (sigaltstack(0, &s) || !(s.ss_flags & SS_DISABLE))
		_exit(91);
}
static void reset(int s) { signal(s, SIG_DFL); }
static void again(int s) { struct sigaction a = {.sa_handler = SIG_DFL}; sigaction(s, &a, 0); raise(s); }
static void leave(int s) { _exit(s == SIGSEGV ? 7 : 8); }
static void own(void (*handler)(int), int flags)
{
	struct sigaction a = {.sa_handler = handler, .sa_flags = flags}, b;
	stack_t s = {.ss_sp = malloc(65536), .ss_size = 65536};
	if (flags & SA_ONSTACK)
		sigaltstack(&s, 0);
	sigaction(SIGSEGV, &a, 0);
	if (sigaction(SIGSEGV, 0, &b) || b.sa_handler != handler)
		_exit(92);
	sink = load(0);
}
static void filter(void)
{
	struct sock_filter allow[] = {BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
	struct sock_fprog all = {1, allow};
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &all, 0, 0))
		_exit(93);
}
static int child(void)
{
	int status = 0;
	pid_t pid = fork();
	if (!pid)
		sink = load(0);
	waitpid(pid, &status, 0);
	return WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV;
}
FAR void die(void)
{
	void (*volatile none)(void) = 0;
	sigset_t all;
	for (int i = 0; i < 1000; i++)
		step(i);
	look();
	if (is("null"))
		sink = load((int *)16);
	if (is("jump"))
		none();
	if (is("abort"))
		abort();
	if (is("overflow"))
		sink = (int)deep(1);
	if (is("smash"))
		smash();
	if (is("divide"))
		sink = divide(1, sink);
	if (is("trap"))
		__asm__ volatile("int3");
	if (is("bus"))
		sink = load(mmap(0, 4096, PROT_READ, MAP_SHARED, memfd_create("x", 0), 0));
	if (is("kill"))
		raise(SIGKILL);
	if (is("reset"))
		own(reset, 0);
	if (is("again"))
		own(again, SA_NODEFER | SA_ONSTACK);
	if (is("leave"))
		own(leave, 0);
	if (is("filter"))
		filter(), sink = load(0);
	sigfillset(&all);
	if (is("blocked"))
		sigprocmask(SIG_BLOCK, &all, 0), sink = load(0);
	if (is("child") && !child())
		_exit(94);
}
FAR void *run(void *arg) { pthread_setname_np(pthread_self(), "worker"); die(); return arg; }
FAR void *work(void *arg) { for (int i = 0;; i++) step(i); return arg; }
FAR void *race(void *arg) { sink = load(arg); return arg; }
int main(int c, char **v)
{
	pthread_t t, u;
	how = v[1];
	if (c > 2) {
		pthread_create(&u, 0, work, 0);
		pthread_create(&t, 0, run, 0);
		pthread_join(t, 0);
	} else if (is("two")) {
		pthread_create(&t, 0, race, 0);
		pthread_create(&u, 0, race, 0);
		pthread_join(t, 0);
	} else {
		die();
	}
	return 3;
}
C
gcc -g -O2 -fno-stack-protector -o die die.c -lpthread || fail "no compiler"

# run ARGUMENTS...: the exit code is that of a run without us.
run() {
	local plain=0
	rm -rf s.tw s-*.tw
	{ (./die "$@") || plain=$?; } >/dev/null 2>&1
	expect "$plain" "$tw" record -q --flight --snapshot-on crash -t 'die:_' --returns --force -o s.tw -- ./die "$@"
}

# shown PYTHON: of d, the trigger's crash; f: its functions.
shown() {
	expect 0 "$tw" info --json s.tw
	python3 -S -c "
import json, sys
d = json.load(open('out'))['trigger'].get('crash')
f = d and [x.get('function') for x in d['stack']]
if not ($1):
    sys.exit(print(d))" || fail "$2: not $1"
}

crashes() {
	local how=$1 python=$2
	# shellcheck disable=SC2086
	run $how
	shown "$python" "$how"
}

main="d['stack_end'] == 'outermost' and 'main' in f"
crashes null "d['name'] == 'SIGSEGV' and d['code_name'] == 'SEGV_MAPERR' and d['address'] == '0x10' and f[:2] == ['load', 'die'] and $main"
expect 0 "$tw" report s.tw
shows '^SIGSEGV in thread [0-9]* (die): no memory is there; address 0x10 (SEGV_MAPERR)$'
shows '#0 *die:load at die.c:18$'
expect 0 "$tw" print --tree --around-trigger s.tw
says 'address 0x10 (SEGV_MAPERR)'
shows '^the thread that crashed:'
shows 'die:load()  *(still open)'
crashes "null thread" "f[:3] == ['load', 'die', 'run'] and d['stack_end'] == 'outermost'"
crashes jump "d['address'] == '0x0' and f[:2] == [None, 'die'] and $main"
crashes abort "d['name'] == 'SIGABRT' and d['code_name'] == 'SI_TKILL' and 'abort' in f and f.index('die') == f.index('abort') + 1 and $main"
crashes overflow "d['is_stack_overflow'] and len(f) == 128 and set(f) == {'deep'} and d['stack_end'] == 'full'"
crashes "overflow thread" "d['is_stack_overflow'] and set(f) == {'deep'}"
crashes smash "f[0] == 'smash' and d['stack_end'] in ('unknown_code', 'unreadable')"
crashes divide "d['code_name'] == 'FPE_INTDIV' and f[:2] == ['divide', 'die'] and $main"
crashes trap "d['name'] == 'SIGTRAP' and f[0] == 'die' and $main"
crashes bus "d['name'] == 'SIGBUS' and f[:2] == ['load', 'die'] and $main"
# Its own handlers run first, and see only themselves.
crashes reset "d['code_name'] == 'SEGV_MAPERR' and f[:4] == ['load', 'own', 'die', 'main']"
crashes "again thread" "'again' in f and 'load' in f and f.index('again') < f.index('load') and d['stack_end'] == 'outermost'"
run leave
[ ! -e s.tw ] || fail "an exit code is no crash"
# One of both is told; the program dies once.
for ((i = 0; i < $(rounds 3 100); i++)); do
	crashes two "f[:2] == ['load', 'race']"
done
# A child that is not recorded dies of it, and its parent goes on.
run child
[ ! -e s.tw ] || fail "a child's crash is not the program's"
# Where nothing can be known.
for how in kill blocked filter; do
	crashes $how "d is None"
	expect 0 "$tw" info s.tw
	shows 'snapshot .*where is not known, because'
done
# Without --snapshot-on crash there is no handler (it would be found by the test's own program), and no stack.
rm -rf s.tw
expect 139 "$tw" record -q --flight --snapshot-on exit -t 'die:_' -o s.tw -- ./die null
shown "d is None" "exit"
