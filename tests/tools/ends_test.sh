#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal    Calls whose return cannot be watched (they return twice, or examine their return address) do not enclose later
#         calls in any view; those of dlopen() and dlclose() are watched, and still know their caller. Calls that
#         continue elsewhere (longjmp, __cxa_throw) do not enclose later calls either; the calls that they leave are not
#         seen to end with --returns alone, and sums and advice then say so.
# Method  A program calls each of them once and then a slow function; the library is found by the caller's run path only.
#         Another one throws and jumps, once each, out of two calls.
build=$1
. "$(dirname "$0")/lib.sh"

mkdir libs
echo 'int plug(int n) { return n + 1; }' | gcc -shared -fPIC -x c -o libs/libends.so - || fail gcc
cat >app.c <<'C'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <setjmp.h>
#include <stdio.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>
static sigjmp_buf buffer;
static ucontext_t context;
__attribute__((noinline)) void after(void) { usleep(100); }
int main(void)
{
	int status;
	char *const none[] = {NULL};
	void *handle = dlopen("libends.so", RTLD_NOW);
	after();
	dlsym(handle, "plug");
	dlvsym(handle, "plug", "NONE");
	sigsetjmp(buffer, 1);
	getcontext(&context);
	execv("/nowhere", none);
	if (vfork() == 0)
		_exit(0);
	wait(&status);
	after();
	dlclose(handle);
	after();
	return handle ? 3 : 1;
}
C
gcc -w -O1 -fpatchable-function-entry=9 -o app app.c -ldl "-Wl,-rpath,$PWD/libs" || fail gcc
expect 3 "$tw" record -q --force --returns --on-full block -o e.tw -- ./app
expect 0 "$tw" print --tree e.tw
shows ' libc:dlopen() = 0x'
shows ' libc:dlclose() = 0$'
for name in dlsym dlvsym getcontext execv vfork _exit; do
	shows " libc:$name()\$"
done
shows ' libc:_*sigsetjmp()$'
# All in main, at the depth of the first.
[ "$(grep -E ' (libc|app):(dlopen|after|dlsym|dlvsym|_*sigsetjmp|getcontext|execv|vfork|_exit|wait|dlclose)\(\)' out | sed 's/.*|\( *\).*/\1/' | sort -u | wc -l)" = 1 ] ||
	fail "calls lie in others"
expect 0 "$tw" flame --folded e.tw
[ "$(grep -cE '(dl|v?fork|jmp|context|exec|exit)[a-z]*;' out)" = 0 ] || fail "a call lies inside one without an end"
grep -qE 'app:main;app:after;libc:usleep' out || fail "after() is not main's"
expect 0 "$tw" print --format chrome e.tw
python3 - <<'P' || fail "the timeline"
import json
events = [e for e in json.load(open('out'))['traceEvents'] if e['ph'] in 'XBEi']
longest = [e for e in events if e['ph'] == 'X' and e['name'].split(':')[-1].split('/')[0] in ('dlsym', 'vfork', 'getcontext', '_exit')]
assert not longest, longest
P
expect 0 "$tw" report --json --top 0 e.tw
is "$(json 'sum(f["calls"] for f in d["by_function"] if f["name"].startswith("libc:vfork/"))')" 1
# Each call of these is one without an end, and stands at its caller; no other call is.
is "$(json 'sorted(f["function"].strip("_") for f in d["by_function"] if f["no_end"])')" \
	"['dlsym', 'dlvsym', 'execv', 'exit', 'getcontext', 'sigsetjmp', 'vfork']"
is "$(json '[f["no_end"] - f["calls"] for f in d["by_function"] if f["no_end"]].count(0)')" 7
is "$(json '[(f["function"], f["no_end_inside"]) for f in d["by_function"] if f["no_end_inside"]]')" "[('main', 7)]"
expect 0 "$tw" report e.tw
shows '^7 calls are without a recorded end: libc:[a-z_]* (1), libc:[a-z_]* (1), libc:[a-z_]* (1) and 4 functions more\. Their time is their callers'
shows '^ *[0-9.]* [mun]s *?[0-9.]* [mun]s .* app:main$'
# What can be seen before.
expect 0 "$tw" functions ./app -t libc:dlsym -t libc:usleep -t app:after
shows '^entry  libc:dlsym  *without ends$'
shows '^entry  libc:usleep$'
shows '^Of 1 function only calls are recorded, without ends'
expect 0 "$tw" functions --json ./app -t libc:dlsym -t libc:usleep
is "$(json 'sorted((f["function"], f["ends"]) for f in d["functions"] if f["function"] in ("dlsym", "usleep"))')" "[('dlsym', False), ('usleep', True)]"
expect 3 "$tw" record --force --returns -t libc:dlsym -t libc:usleep -o n.tw -- ./app
says "the calls of -t 'libc:dlsym' are recorded without ends"
! grep -q "usleep.*without ends" err || fail "usleep has ends"
expect 3 "$tw" record --force -t libc:dlsym -o n.tw -- ./app
! grep -q "without ends" err || fail "no ends were asked for"

cat >left.cc <<'C'
#include <setjmp.h>
#include <unistd.h>
static jmp_buf buffer;
extern "C" {
__attribute__((noinline)) void after(void) { usleep(50000); }
__attribute__((noinline)) void throws(void) { throw 1; }
__attribute__((noinline)) void jumps(void) { longjmp(buffer, 1); }
__attribute__((noinline)) int catches(void) { try { throws(); } catch (int) { after(); } return 1; }
__attribute__((noinline)) int lands(void) { if (setjmp(buffer) == 0) jumps(); after(); return 2; }
}
int main() { return catches() + lands(); }
C
g++ -w -O1 -fno-optimize-sibling-calls -fpatchable-function-entry=9 -o left left.cc || fail g++
for ends in exceptions returns; do
	expect 3 "$tw" record -q --force --$ends --on-full block -o l.tw -- ./left
	expect 0 "$tw" flame --folded l.tw
	[ "$(grep -cE 'lib[a-z+_]*:[A-Za-z_]*(jmp|throw|Resume);' out)" = 0 ] || fail "--$ends: a call lies inside one that continued elsewhere"
	expect 0 "$tw" report --json --top 0 l.tw
	[ "$(json 'sum(f["cut"] for f in d["by_function"])')" = "$([ $ends = returns ] && echo 2 || echo 0)" ] || fail "--$ends: cut"
	expect 0 "$tw" report l.tw
	if [ $ends = returns ]; then
		shows '^2 calls have no return in the capture: .*record --exceptions'
		shows '^ *?[0-9.]* [mun]s .* left:throws'
		shows '^ *?[0-9.]* [mun]s .* left:jumps'
	else
		grep -q 'no return in the capture' out && fail "calls without a return"
		shows '^ *[0-9.]* [mun]s .* left:throws'
	fi
	shows '^  .* left:after'
done
