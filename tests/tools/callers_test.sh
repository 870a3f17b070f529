#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal    `{caller}` and `{caller_line}` of native calls, and `return_to`, are functions and lines, looked up when the
#         capture is read: also for functions without sleds, for objects that are not traced, behind tail calls, in
#         programs at fixed addresses and in C++; in a stripped program as an offset.
build=$1
. "$(dirname "$0")/lib.sh"

spec='[{'"'_'"',[],[{message,{{{caller},{caller_line}}}}]}]'

# The example of OTP's documents: bar is called through a bunch of other functions, none of which has a sled.
cat >foo.c <<'C'
#define FUNCTION __attribute__((noinline))
#define PLAIN FUNCTION __attribute__((patchable_function_entry(0)))
FUNCTION int bar(int n);
FUNCTION int bar(int n)
{
	return n ? bar(n - 1) : 7;
}
PLAIN int indirections(void)
{
	return bar(10);
}
PLAIN int of(void)
{
	return indirections();
}
PLAIN int lots(void)
{
	return of();
}
PLAIN int foo(void)
{
	int seven = lots();
	__asm__ volatile("" : "+r"(seven));
	return seven;
}
int main(void)
{
	int seven = foo();
	__asm__ volatile("" : "+r"(seven));
	return seven - 7;
}
C

# say HOW-IT-IS-COMPILED: prints the noted callers of bar's first call.
say() {
	gcc -g -fno-ipa-cp -fno-ipa-icf -fpatchable-function-entry=9 "$@" -o foo foo.c || fail "gcc $*"
	expect 0 "$tw" record -q --force --local --return-to --match "$spec" -t foo:bar -t foo:main -o foo.tw -- ./foo
	expect 0 "$tw" print foo.tw
	cp out text
	expect 0 "$tw" print --format erlang --bare-pids foo.tw
}

for pie in -pie -no-pie; do
	say -O2 "$pie"
	grep -q "call foo:bar  {{foo,foo,'_'},{foo,foo,'_',{\".*foo.c\",22}}}$" text || fail "$pie, tail calls: $(cat text)"
	grep -q 'return_to foo:foo at foo.c:22$' text || fail "$pie: $(cat text)"
	is "$(grep -c 'call foo:bar' text)" 1 "$pie: bar's own tail calls are jumps inside of it"
	shows "{trace,.*,call,{foo,bar,'_'},{{foo,foo,'_'},{foo,foo,'_',{.*,22}}}}.$"

	say -O2 -fno-optimize-sibling-calls -fno-optimize-strlen -fno-tree-tail-merge "$pie"
	grep -q "call foo:bar  {{foo,indirections,'_'},{foo,indirections,'_',{\".*foo.c\",10}}}$" text ||
		fail "$pie, no tail calls: $(cat text)"
	# libc was not traced; its symbols and lines may be missing.
	grep -q "call foo:main  {{libc," text || fail "$pie: who called main: $(cat text)"
	grep -q 'return_to libc[:+]' text || fail "$pie: where main returns to: $(cat text)"
done
"$tw" print --format json foo.tw >lines || fail "print --format json"
python3 - <<'P' || fail "JSON: $(head -3 lines)"
import json
calls = [e for e in map(json.loads, open('lines')) if e.get('function') == 'bar']
assert "{foo,indirections,'_'}" in calls[0]['extra'] and 'foo.c",10}' in calls[0]['extra'], calls[0]
P

# A function's name is the same by its sled and by a later lookup.
say -O1 -fno-optimize-sibling-calls -fno-inline
grep -q "call foo:bar  {{foo,bar,'_'},{foo,bar,'_',{\".*foo.c\",6}}}$" text || fail "bar by bar: $(cat text)"

# Without symbols the offset is shown.
cat >slot.c <<'C'
#include <stdlib.h>
static __attribute__((noinline)) int number(const char *text) { int n = (int)strtol(text, NULL, 10); __asm__ volatile("" : "+r"(n)); return n; }
int main(void) { return number("7") - 7; }
C
gcc -g -O2 -fno-builtin -o slot slot.c || fail gcc
expect 0 "$tw" record -q --force --match "$spec" -t 'libc:*strtol*' -o slot.tw -- ./slot
expect 0 "$tw" print slot.tw
shows "{{slot,number,'_'},{slot,number,'_',{\".*slot.c\",2}}}"
strip slot
expect 0 "$tw" record -q --force --match "$spec" -t 'libc:*strtol*' -o slot.tw -- ./slot
expect 0 "$tw" print slot.tw
shows "{{slot,'+0x[0-9a-f]*','_'},{slot,'+0x[0-9a-f]*','_',undefined}}"

# C++: demangled for people; the linkage name for machines.
cat >name.cc <<'C'
#include <cstdlib>
namespace app {
struct reader {
	template <typename T> __attribute__((noinline)) long read(T text) { long n = strtol(text, nullptr, 10); __asm__ volatile("" : "+r"(n)); return n; }
};
}
int main() { return (int)app::reader().read("7") - 7; }
C
g++ -g -O2 -o name name.cc || fail g++
expect 0 "$tw" record -q --force --match "$spec" -t 'libc:*strtol*' -o name.tw -- ./name
expect 0 "$tw" print name.tw
shows "{{name,'long app::reader::read<char const\*>(char const\*)','_'}"
expect 0 "$tw" print --format erlang --bare-pids name.tw
shows "{{name,'_ZN3app6reader4readIPKcEElT_','_'}"
