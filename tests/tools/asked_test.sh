#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal    Before the program starts, a pattern that can match nothing is refused with the reason and a suggestion; one that
#         may match later is reported, and never refused; at the end the reason is given for each pattern that matched
#         nothing.
# Method  Small programs with and without sleds, that open libraries, become other programs, declare functions.
build=$1
. "$(dirname "$0")/lib.sh"

cat >leaf.c <<'C'
__attribute__((noipa)) int leaf(int a, int b) { return a + b; }
__attribute__((noipa)) int middle(int a) { return leaf(a, 1) + 1; }
__attribute__((noipa)) int never(int a) { return a; }
int main(int argc, char **argv) { return argc > 9 ? never(argc) : middle(argc) + middle(2) - 7; }
C
gcc -w -O2 -g -fpatchable-function-entry=9 -o leaf leaf.c && gcc -w -O2 -c -o plain.o leaf.c && gcc -o plain plain.o || fail "gcc"

# refused PROGRAM PATTERN SENTENCE [OPTION]...: and the program does not run. In the short form all_refused gives all patterns for a program
# with the same options to one command, in the long form each has its own.
declare -A queue
refused() {
	queue["$1 ${*:4}"]+=$2$'\t'$3$'\n'
	[ -z "${TW_TEST_LONG:-}" ] || all_refused
}
all_refused() {
	local key pattern sentence words options
	for key in "${!queue[@]}"; do
		read -ra words <<<"$key"
		options=()
		while IFS=$'\t' read -r pattern sentence; do
			options+=(-t "$pattern")
		done < <(printf %s "${queue[$key]}")
		expect 2 "$tw" record -o never.tw "${words[@]:1}" "${options[@]}" -- "${words[0]}"
		while IFS=$'\t' read -r pattern sentence; do
			says "-t '$pattern' can match nothing: .*$sentence"
		done < <(printf %s "${queue[$key]}")
		says 'nothing was started'
		[ ! -e never.tw ] || fail "a capture of a program that was not started"
	done
	queue=()
}
refused ./leaf 'nosuchmodule:_' "no module 'nosuchmodule'"
refused ./leaf 'lib:_' "did you mean 'libc'"
refused ./leaf 'c:_' "did you mean 'libc'"
refused ./leaf 'LEAF:leaf' "did you mean 'leaf'"
refused ./leaf 'leaf:midle' "leaf has no function 'midle' (did you mean 'middle'?)"
refused ./leaf 'libc:nosuchfunction' "libc has no function 'nosuchfunction'"
refused ./leaf 'nosuchfunction' "no module that it names has a function"
refused ./leaf 'leaf::leaf' "one colon: 'leaf:leaf'"
refused ./leaf 'leaf:leaf()' "did you mean 'leaf'"
refused ./leaf 'leaf:leaf,leaf:middle' 'need -t each, or braces'
refused ./leaf 'leaf:^mid.*' 'not regular expressions'
refused ./leaf 'leaf:leaf/3' 'it has 2 parameters, not 3: write /2'
refused ./leaf 'libc:qsort' 'qsort exists, but has no sled, and no other object calls it' --global
refused ./leaf 'libc:strlen' 'strlen exists' --global # chosen at run time
refused ./plain 'plain:leaf' 'leaf exists, but has no sled.*-fpatchable-function-entry=9.*docs/instrumenting.md' --global
refused ./plain 'plain:_' 'no sled' --global
# Without a build-id there is no entry either.
gcc -Wl,--build-id=none -o nameless plain.o || fail "gcc"
refused ./nameless 'nameless:leaf' 'nameless has no sleds for them and no other object calls them, and its entries are left alone: its file has no build-id'
refused ./nameless 'nameless:leaf' 'nameless has no sleds, and its entries are left alone: its file has no build-id' --local
expect 2 "$tw" record -o never.tw -t 'leaf:{leaf,mud}' -t 'leaf:{x,y}' -- ./leaf
says "'leaf:mud' can match nothing"
says "'leaf:x' can match nothing"
says "'leaf:y' can match nothing"
expect 2 "$tw" record -o never.tw -t 'leaf:leaf' -N 'leaf:_' -- ./leaf
says 'its functions are excluded'
expect 2 "$tw" record -o never.tw -q -t 'nosuchmodule:_' -- ./leaf
says 'can match nothing'
expect 2 "$tw" record -o never.tw -t '!leaf:_' -- ./leaf
says '-N PATTERN excludes'
strip -o bare leaf
refused ./bare 'bare:leaf' "bare has no function 'leaf'" --global
strip -g -o dark leaf
refused ./dark 'dark:leaf/2' 'not known without debug information; leave out /2'
all_refused

# For scripts; the reason comes at the end.
expect 0 "$tw" record --allow-nothing -o allowed.tw -t 'leaf:midle' -- ./leaf
says "allowed.tw holds no events"
says "-t 'leaf:midle' matched nothing: leaf has no function 'midle'"
expect 0 "$tw" record -o never_called.tw -t 'leaf:never' -t libc:qsort -- ./leaf
says "-t 'leaf:never': 1 function was traced, and no call was made"
says "-t 'libc:qsort': 1 function was traced, and no call was made"
expect 0 "$tw" record -o unfulfilled.tw -t 'leaf:leaf' --when '$1 > 1000' -- ./leaf
says 'none that fulfilled its condition'
expect 0 "$tw" record -o some.tw --allow-nothing -t 'leaf:leaf' -t 'leaf:midle' -- ./leaf
says "-t 'leaf:midle' matched nothing: leaf has no function 'midle'"
! grep -q "'leaf:leaf'" err || fail "a pattern that matched is reported"
expect 0 "$tw" record -o quiet.tw -q --allow-nothing -t 'leaf:midle' -- ./leaf
is "$(cat err)" ''

# Some calls cannot be seen: reported at once, and repeated at the end.
cat >taken.c <<'C'
#include <stdlib.h>
void *(*volatile allocate)(size_t) = malloc;
int main(void) { return (allocate == malloc) - 1 + (malloc(3) == NULL); }
C
gcc -w -O2 -fno-plt -fno-builtin -o taken taken.c || fail "gcc"
if "$tw" functions --global --refused -t malloc ./taken | grep -q 'libc:malloc.* from .*taken.*address'; then
	expect 2 "$tw" record --global -o never.tw -t 'libc:malloc' -- ./taken
	says 'the calls of malloc by taken cannot be seen: the code takes'
fi

# Patterns that may match later are not refused: through dlopen, exec, a child, an installed library, a declared
# function.
cat >plugin.c <<'C'
__attribute__((noipa)) int plugged(int a) { return a + 1; }
int run(void) { return plugged(1) - 2; }
C
cat >opener.c <<'C'
#include <dlfcn.h>
#include <unistd.h>
int main(int argc, char **argv)
{
	void *handle = argc > 1 ? dlopen(argv[1], RTLD_NOW) : 0;
	int (*run)(void) = handle ? dlsym(handle, "run") : 0;
	return run ? run() : 0;
}
C
cat >becomer.c <<'C'
#include <unistd.h>
int main(int argc, char **argv) { return execv(argv[1], argv + 1); }
C
gcc -w -O2 -g -fPIC -shared -fpatchable-function-entry=9 -o libplugin.so plugin.c && gcc -w -O2 -o opener opener.c &&
	gcc -w -O2 -o becomer becomer.c || fail "gcc"
mkdir elsewhere && mv libplugin.so elsewhere || exit 1
expect 0 "$tw" record --force -o later.tw -t 'libplugin:plugged' -- ./opener elsewhere/libplugin.so
says "-t 'libplugin:plugged' matches nothing yet: .*no module 'libplugin'.*loads later.* are traced"
expect 0 "$tw" info --json later.tw
is "$(json 'd["events"]')" 1
expect 0 "$tw" record --force -o later.tw -t 'libplugin:plugged/1' -- ./opener elsewhere/libplugin.so
expect 0 "$tw" info --json later.tw
is "$(json 'd["events"]')" 1 "an arity that is looked up later"
expect 0 "$tw" record --force -o later.tw -t 'libplugin:plugged/2' -t 'libplugin:run' -- ./opener elsewhere/libplugin.so
expect 0 "$tw" info --json later.tw
is "$(json 'd["events"]')" 1 "another arity"
expect 0 "$tw" record --force -o later.tw -t 'libplugin:plugged' -- ./opener
says "'libplugin:plugged' matched nothing: .*nothing that was opened later has it"
expect 0 "$tw" record --force -o later.tw -t 'leaf:leaf' -- ./becomer ./leaf
expect 0 "$tw" info --json later.tw
is "$(json 'd["events"]')" 2
expect 0 "$tw" record --force -o later.tw --follow-fork -t 'leaf:leaf' -- ./plain
says 'matches nothing yet'
printf '#!/bin/sh\nexec ./leaf\n' >script && chmod +x script
expect 0 "$tw" record --force -o later.tw -t 'leaf:leaf' -- ./script
expect 0 "$tw" info --json later.tw
is "$(json 'd["events"]')" 2
expect 0 "$tw" record --force -o later.tw -t 'libgcc_s:_' -- ./leaf
says "matches nothing yet"
expect 0 "$tw" record --force -o later.tw -t 'numbers:_' -- "$build/examples/example-count_calls"
expect 0 "$tw" info --json later.tw
[ "$(json 'd["events"]')" -gt 0 ] || fail "declared functions"
expect 0 "$tw" record --force -o later.tw -t 'numbers:_' -- "$build/examples/example-count_calls"
grep -q 'numbers' err && fail "a remark on functions that the program declares"
# But a misspelled function of a loaded library is refused.
refused ./opener 'libc:nosuchfunction' 'libc has no function'
all_refused

# Without a pattern: a general message.
expect 0 "$tw" record --force -o none.tw -p send -- ./leaf
says 'nothing in the program reports its processes'

# `functions` gives the same reason, and lists functions without a sled.
expect 0 "$tw" functions -t 'leaf:midle' ./leaf
says "-t 'leaf:midle' names nothing that can be traced: leaf has no function 'midle' (did you mean 'middle'?)"
expect 0 "$tw" functions --global --refused -t 'plain:_' ./plain
shows 'plain:leaf .*it has no sled: compile with'
is "$(grep -c 'plain:middle' out)" 1
expect 0 "$tw" functions --refused -t 'leaf:_' ./leaf
is "$(grep -c '^[a-z]* *leaf:leaf' out)" 0 "--refused lists what can be traced"
cat >spin.s <<'S'
	.globl spin, bare
	.type spin, @function
	.type bare, @function
spin:	.cfi_startproc
	sub $1, %edi
	jg spin
	ret
	.cfi_endproc
	.size spin, .-spin
bare:	sub $1, %edi
	jg bare
	ret
	.size bare, .-bare
	.section .note.GNU-stack,"",@progbits
S
printf 'void spin(int), bare(int);\nint main(void) { spin(3); bare(3); return 0; }\n' >turns.c
gcc -O1 -o turns turns.c spin.s || fail "gcc"
expect 0 "$tw" functions --refused -t 'turns:_' ./turns
shows '^entry  turns:spin .*: a loop begins at its first instruction'
shows 'turns:bare .*: it has no sled, and no call frame information'
! grep -q 'turns:main' out || fail "--refused lists what can be traced"

# Methods are suggested by the part that users type, with a module and without; nothing is recorded in silence.
cat >bank.cc <<'C'
struct Account { long sum; __attribute__((noinline)) long deposit(long x); };
long Account::deposit(long x) { __asm__ volatile(""); return sum += x; }
int main(int argc, char **) { Account a{argc}; return a.deposit(3) == 99; }
C
g++ -O1 -o bank bank.cc || fail "g++"
for asked in bank:deposit deposit bank:depositt; do
	expect 2 "$tw" record --force -o none.tw -t "$asked" -- ./bank
	says "did you mean 'Account::deposit'?"
done
expect 2 "$tw" record -p 1234
says '-p 1234 names no process: .record. starts the program .*; .tracewheel attach 1234. records one that runs'

# Calls that were not seen are no loss, and "nothing was lost" would deny them.
printf '.globl short\n.type short, @function\nshort: .cfi_startproc\nnop\nret\n.cfi_endproc\n.size short, .-short\n.section .note.GNU-stack\n' >short.s
printf 'void shorter(void) __asm__("short");\nint main(void) { shorter(); return 0; }\n' >around.c
gcc -O1 -o around around.c short.s || fail "gcc"
expect 0 "$tw" record --force -o none.tw -t 'around:_' -- ./around
expect 0 "$tw" report none.tw
shows '^Nothing was lost of what was traced'
expect 0 "$tw" info none.tw
shows '^lost *nothing, but not everything was traced'
