#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal    The locations that calls return to are shown by function, file and line, found by build-id when the capture is
#         read; with tail calls that is the first caller whose frame still exists.
build=$1
. "$(dirname "$0")/lib.sh"

cat >app.c <<'C'
__attribute__((noinline)) int bar(int n) { __asm__ volatile("" : "+r"(n)); return n; }
__attribute__((noinline)) static int indirections(int n) { __asm__ volatile("" : "+r"(n)); return bar(n); }
__attribute__((noinline)) static int of(int n) { __asm__ volatile("" : "+r"(n)); return indirections(n); }
__attribute__((noinline)) static int lots(int n) { __asm__ volatile("" : "+r"(n)); return of(n); }
__attribute__((noinline)) int foo(int n)
{
	n = lots(n);
	__asm__ volatile("" : "+r"(n));
	return n;
}
int main(void) { return foo(10) - 10; }
C

# to FLAGS...: where bar() returned to
to() {
	gcc -w "$@" -fpatchable-function-entry=9 -o app app.c || fail "gcc $*"
	expect 0 "$tw" record --force -o app.tw --local -t 'app:bar' --return-to -- ./app
	where
}

where() {
	expect 0 "$tw" print app.tw
	sed -n 's/.* return_to \(.*\)$/\1/p' out
}

is "$(to -g -O2)" 'app:foo at app.c:7' "with tail calls it is foo"
is "$(to -g -O0)" 'app:indirections at app.c:2' "without them the last one"
expect 0 "$tw" print --format erlang --bare-pids app.tw
shows "return_to,{app,indirections,'_'}}"
"$tw" print --format json app.tw | python3 -c '
import json, sys
e = [e for e in map(json.loads, sys.stdin) if e["kind"] == "return_to"][0]
assert (e["module"], e["function"], e["line"]) == ("app", "indirections", 2), e
assert e["file"].endswith("app.c"), e' || fail "JSON"

# Symbols alone; then the recorded file is replaced, and removed.
is "$(to -O2)" 'app:foo' "without debug information"
gcc -w -g -O2 -o app app.c
where | grep -q '^app+0x' || fail "another build gave names"
rm app
where | grep -q '^app+0x' || fail "no file gave names"
