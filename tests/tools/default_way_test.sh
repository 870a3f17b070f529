#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal    Without --local or --global each function is recorded in the best way it has: at its sled, else at its entry, else
#         through slots; each call once, whatever its way.
# Method  Programs whose calls are known by construction: functions of each kind in one library, called by other objects, by
#         pointer and from inside; implementations that the loader chooses; libraries opened with and without a plan; code
#         that was changed before the agent began.
build=$1
. "$(dirname "$0")/lib.sh"
export XDG_CACHE_HOME=$work/cache
mkdir cache

# in_all NAME.tw: calls, and lost events.
in_all() {
	expect 0 "$tw" report --json -n 0 "$1"
	json "d['calls'], sum(d['lost'].values())"
}
notes() {
	expect 0 "$tw" info "$1"
	sed -n 's/^ *note *//p' out
}

# ---- every call of a function of libc, from everywhere; the program takes its address from the slot by which it calls ----
cat >counts.c <<'C'
#include "mallocs.h"
int main(void)
{
	malloc_2400_times(NULL);
	return 0;
}
C
gcc -O1 -fno-builtin -fno-plt -s -I "$common" -o counts counts.c -lpthread || fail "the program does not compile"
expect 0 "$tw" record --on-full block -t libc:malloc -t libc:strdup -o a.tw -- ./counts
! grep -q 'cannot be seen' err || fail "calls that are seen are said not to be"
is "$(calls a.tw malloc strdup)" "$((1000 + 500 + 300 + 3 * 200)) 300"
is "$(in_all a.tw)" "2700 0"
is "$(notes a.tw)" ""
expect 0 "$tw" record --on-full block --returns --when '$1 == 20' -t libc:malloc -o b.tw -- ./counts
is "$(calls b.tw malloc)" 600
# An excluded function is not recorded under another name of its code.
expect 0 "$tw" record -t 'libc:{strdup,*malloc}' -N libc:malloc -o excluded.tw --force -- ./counts
is "$(calls excluded.tw malloc __libc_malloc strdup)" "0 0 300"
expect 0 "$tw" functions -t 'libc:{strdup,*malloc}' -N libc:malloc ./counts
shows 'libc:strdup'
! grep -q 'libc:__libc_malloc\b' out || fail "functions lists an excluded function under another name"
expect 0 "$tw" record -t 'libc:{malloc*,strdup}' -t libc:__libc_malloc -N libc:malloc -o excluded.tw --force -- ./counts
is "$(calls excluded.tw malloc __libc_malloc strdup)" "0 0 300"
notes excluded.tw | grep -qx '__libc_malloc of libc is not traced: malloc, which has the same code, is excluded' ||
	fail "nothing tells of the other name: $(notes excluded.tw)"
# Other names of the code may be excluded.
expect 0 "$tw" record --on-full block -t 'libc:*malloc' -N 'libc:_*' -o named.tw -- ./counts
is "$(calls named.tw malloc)" 2400
# Slots alone show nothing of it.
expect 2 "$tw" record --global -t libc:malloc -o c.tw -- ./counts
says 'the calls of malloc by counts cannot be seen: the code takes'

# ---- a sled, an entry, and a refused entry in one library, each called by slot, by pointer and from inside ----
cat >three.c <<'C'
#define OUT __attribute__((noinline, noipa, noclone))
__attribute__((patchable_function_entry(9, 0))) OUT int with_sled(int a) { __asm__ volatile("" : "+r"(a)); return a + 1; }
OUT int with_entry(int a) { return a * 1000 + 2; }
int with_neither(int a);
/* Its first instruction is the head of a loop. */
__asm__(".globl with_neither\n.type with_neither, @function\nwith_neither:\n.cfi_startproc\n"
	"1: subl $1, %edi\njg 1b\nmovl $3, %eax\nret\n.cfi_endproc\n.size with_neither, . - with_neither\n");
OUT static int inside(int a) { return with_sled(a) + with_entry(a) + a; }
int (*pointer_to(int which))(int)
{
	static int (*const all[])(int) = {with_sled, with_entry, with_neither, inside};
	return all[which];
}
C
cat >call_three.c <<'C'
int with_sled(int), with_entry(int), with_neither(int), (*pointer_to(int))(int);
int main(void)
{
	int sum = 0;
	for (int i = 0; i < 11; i++)
		sum += with_sled(i);
	for (int i = 0; i < 13; i++)
		sum += with_entry(i);
	for (int i = 0; i < 17; i++)
		sum += with_neither(i);
	for (int i = 0; i < 19; i++)
		sum += pointer_to(i % 2)(i);
	for (int i = 0; i < 23; i++)
		sum += pointer_to(3)(i);
	return sum == 1 ? 1 : 0;
}
C
gcc -O1 -fPIC -fno-semantic-interposition -shared -o libthree.so three.c && gcc -O1 -o call_three call_three.c -L. -lthree -Wl,-rpath,. ||
	fail "the compiler"
expect 0 "$tw" record -t libthree:_ -o three.tw -- ./call_three
is "$(calls three.tw with_sled with_entry with_neither inside pointer_to)" "$((11 + 10 + 23)) $((13 + 9 + 23)) 17 23 $((19 + 23))"
notes three.tw >notes
grep -q '^1 function of libthree that matches is traced only where other objects call it' notes || fail "the refused function is not told of: $(cat notes)"
expect 0 "$tw" print three.tw
is "$(grep -c 'with_neither from call_three' out) $(grep -c ' from ' out)" "17 17" "callers"
expect 0 "$tw" functions -t libthree:_ ./call_three
for way in 'sled   *libthree:with_sled' 'entry  *libthree:with_entry' 'slot   *libthree:with_neither  *from call_three'; do
	shows "^$way"
done
! grep -q 'slot .*with_\(sled\|entry\)' out || fail "functions lists slots that are not used"
expect 0 "$tw" record --global -t libthree:_ -o slots.tw -- ./call_three
is "$(calls slots.tw with_sled with_entry with_neither inside)" "11 13 17 0"
expect 0 "$tw" functions --global -t libthree:_ ./call_three
shows 'slot .*libthree:with_sled.* from call_three'
! grep -q '^\(sled\|entry\)' out || fail "functions --global lists other ways"

# ---- implementations that the loader chooses ----
cat >chosen.c <<'C'
#define OUT __attribute__((noinline, noipa))
OUT static int one(int a) { return a * 1000 + 1; }
OUT static int shared(int a) { return a * 1000 + 2; }
static void *choose_one(void) { return one; }
static void *choose_shared(void) { return shared; }
static void *also_choose_shared(void) { return shared; }
int first(int a) __attribute__((ifunc("choose_one")));
int second(int a) __attribute__((ifunc("choose_shared")));
int third(int a) __attribute__((ifunc("also_choose_shared")));
int from_inside(int n) { for (int i = 0; i < n; i++) one(i), shared(i); return n; }
C
cat >call_chosen.c <<'C'
#include <stdio.h>
#include <string.h>
int first(int), second(int), third(int), from_inside(int);
static unsigned long (*volatile length)(const char *);
int main(int argc, char **argv)
{
	int sum = 0;
	length = strlen;
	for (int i = 0; i < 3; i++)
		sum += first(i);
	for (int i = 0; i < 5; i++)
		sum += second(i);
	for (int i = 0; i < 7; i++)
		sum += third(i);
	from_inside(11);
	for (int i = 0; i < 100; i++)
		sum += (int)length(argv[0]);
	for (int i = 0; i < 4; i++)
		memmove(argv[0], argv[0], (size_t)argc);
	for (int i = 0; i < 2; i++)
		memcpy(&sum, &argc, (size_t)argc % 4);
	return 0;
}
C
gcc -O1 -fPIC -shared -s -o libchosen.so chosen.c && gcc -O1 -fno-builtin -o call_chosen call_chosen.c -L. -lchosen -Wl,-rpath,. || fail "the compiler"
expect 0 "$tw" record -t 'libchosen:{first,second,third}' -o chosen.tw -- ./call_chosen
# The code of `first` is its own: all calls; that of the others is not: calls by other objects, by name.
is "$(calls chosen.tw first second third)" "$((3 + 11)) 5 7"
expect 0 "$tw" record -t 'libchosen:_' -o chosen2.tw -- ./call_chosen
is "$(calls chosen2.tw first second third from_inside)" "14 5 7 1"
# And the call of the resolver by which the program's first call of `first` is bound; the slots of the others are bound already.
is "$(in_all chosen2.tw)" "28 0"
expect 0 "$tw" record -t 'libc:{strchr,*strlen*}' -N libc:strlen -o unchosen.tw --allow-nothing -- ./call_chosen
is "$(in_all unchosen.tw)" "0 0" "calls of an excluded function, under its implementation's name"
expect 0 "$tw" record -t 'libc:{strlen,memcpy,memmove}' --callers all -N 'libc:nothing' -o libc.tw -- ./call_chosen
expect 0 "$tw" print libc.tw
[ "$(grep -c 'libc:strlen$' out)" -ge 100 ] || fail "calls of strlen by pointer"
is "$(grep -c 'libc:memmove from call_chosen' out) $(grep -c 'libc:memcpy from call_chosen' out)" "4 2"
# Nothing but libc calls it: no slot has it, and its implementation has an entry.
expect 0 "$tw" record -t libc:strcspn -o nothing.tw -- ./call_three

# ---- the program's own functions, and its calls into libraries ----
cat >plain.c <<'C'
#include <stdio.h>
#include <stdlib.h>
#define OUT __attribute__((noinline, noipa))
OUT static int leaf(int a) { return a * 1000 + 1; }
OUT static int mid(int a) { return leaf(a) + leaf(a + 1); }
int main(void)
{
	int sum = 0;
	for (int i = 0; i < 5; i++)
		sum += mid(i) + abs(sum);
	free(calloc(2, 3));
	return sum == 0;
}
C
gcc -O2 -fno-builtin -o plain plain.c || fail "the compiler"
expect 0 "$tw" record -o plain.tw -- ./plain
is "$(calls plain.tw main mid leaf abs calloc)" "1 5 10 5 1"
expect 0 "$tw" print plain.tw
is "$(grep -c 'libc:.* from plain$' out)" "$(grep -c 'libc:' out)" "calls of libraries that the program did not make"
expect 0 "$tw" record --callers main -t 'libc:{abs,calloc}' -t plain:leaf -o main.tw -- ./plain
is "$(in_all main.tw)" "16 0"
expect 2 "$tw" record --callers main -t libc:malloc -o main.tw -- ./plain
says '--callers main leaves out those of libc that the program does not call itself' 
expect 0 "$tw" record --global -o global.tw -- ./plain
is "$(calls global.tw leaf abs)" "0 5"

# ---- functions that Tracewheel wraps: once each, under the name by which the program calls them, with their results ----
cat >wrapped.c <<'C'
#include <dlfcn.h>
#include <setjmp.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
extern char **environ;
static jmp_buf buffer;
int main(void)
{
	char *arguments[] = {"true", NULL};
	volatile int jumps = 0;
	pid_t child;
	for (int i = 0; i < 3; i++)
		dlclose(dlopen("./libthree.so", RTLD_NOW));
	if (setjmp(buffer) < 2)
		longjmp(buffer, ++jumps);
	posix_spawn(&child, "/bin/true", NULL, NULL, arguments, environ);
	waitpid(child, NULL, 0);
	prctl(PR_SET_NAME, "other");
	execv("/bin/true", arguments);
}
C
gcc -w -O1 -o wrapped wrapped.c || fail "the compiler"
expect 0 "$tw" record --returns -t 'libc:{dlopen,dlclose,longjmp,posix_spawn,exec*,prctl}' -o wrapped.tw -- ./wrapped
expect 0 "$tw" report --json -n 0 wrapped.tw
is "$(json "sorted((f['function'], f['calls']) for f in d['by_function'] if f['calls'])")" \
	"[('dlclose', 3), ('dlopen', 3), ('execv', 1), ('longjmp', 2), ('posix_spawn', 1), ('prctl', 1)]"
expect 0 "$tw" print wrapped.tw
is "$(grep -c 'return_from libc:dlopen from wrapped -> 0x' out)" 3

# ---- libraries opened later, with a plan and without ----
cat >late.c <<'C'
__attribute__((noinline, noipa)) static int late_leaf(int a) { return a * 1000 + 1; }
int late_outer(int a) { return late_leaf(a) + late_leaf(a + 1); }
C
cat >user.c <<'C'
int late_outer(int);
int use(int n) { int sum = 0; for (int i = 0; i < n; i++) sum += late_outer(i); return sum; }
C
cat >open.c <<'C'
#include <dlfcn.h>
#include <signal.h>
#include <unistd.h>
/* With an argument the command is stopped, and answers nothing. */
int main(int argc, char **argv)
{
	if (argc > 1)
		kill(getppid(), SIGSTOP);
	void *user = dlopen("libuser.so", RTLD_NOW);
	int (*use)(int) = user ? (int (*)(int))dlsym(user, "use") : 0;
	int sum = use ? use(10) : 0;
	if (argc > 1)
		kill(getppid(), SIGCONT);
	return sum ? 0 : 1;
}
C
gcc -O1 -fPIC -fno-semantic-interposition -shared -o liblate.so late.c && gcc -O1 -fPIC -shared -o libuser.so user.c -L. -llate -Wl,-rpath,. &&
	gcc -O1 -o open open.c || fail "the compiler"
late() {
	LD_LIBRARY_PATH=. expect 0 "$tw" record -q --force --on-full block -t 'lib{late,user}:_' -o late.tw -- ./open "$@"
}
TRACEWHEEL_PLAN_WAIT_MS=20 late stopped
is "$(calls late.tw late_outer late_leaf use)" "10 0 0"
notes late.tw >notes
grep -q 'functions of liblate are traced only where other objects call them: its plan was not ready' notes || fail "not told: $(cat notes)"
TRACEWHEEL_PLAN_WAIT_MS=60000 late
is "$(calls late.tw late_outer late_leaf use)" "10 20 1"
is "$(in_all late.tw) $(notes late.tw)" "31 0 "

# ---- code that was changed before the agent began: slots; with a sled too ----
cat >other.c <<'C'
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
__attribute__((noipa)) int answer(void) { return 41; }
__attribute__((noipa)) int untouched(void) { return 1; }
/* Constructors of libraries run before the agent's. */
__attribute__((constructor)) static void change(void)
{
	char *code = (char *)answer, *page = (char *)((uintptr_t)code & ~(uintptr_t)4095);
	const int other = 42;
	mprotect(page, 8192, PROT_READ | PROT_WRITE | PROT_EXEC);
	memcpy(code + 1, &other, sizeof other);
	mprotect(page, 8192, PROT_READ | PROT_EXEC);
}
C
cat >call_other.c <<'C'
int answer(void), untouched(void);
int main(void)
{
	int sum = 0;
	for (int i = 0; i < 9; i++)
		sum += answer() + untouched();
	return sum == 9 * 43 ? 0 : 1;
}
C
gcc -O1 -fcf-protection=none -fPIC -shared -o libother.so other.c && gcc -O1 -o call_other call_other.c -L. -lother -Wl,-rpath,. || fail "the compiler"
expect 0 "$tw" record -t 'libother:{answer,untouched}' -o other.tw -- ./call_other
is "$(calls other.tw answer untouched)" "9 9"
notes other.tw >notes
grep -q '^1 function.* of libother .*traced only where other objects call .*: .*first instructions in memory are not those of the file' notes ||
	fail "not told: $(cat notes)"

# ---- where nothing may be planted: slots, as ever, and without a note ----
gcc -O1 -fPIC -shared -Wl,--build-id=none -o libthree.so three.c || fail "the compiler"
expect 0 "$tw" record -t libthree:_ -o bare.tw -- ./call_three
is "$(calls bare.tw with_sled with_entry with_neither)" "$((11 + 10 + 23)) $((13 + 23)) 17"
is "$(notes bare.tw)" ""
