#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal    A declared function in a module with the name of the program is recorded once, in place of the program's own function of that
#         name; the others are recorded; constructors of declarations are no calls of the program.
# Method  A program that is built with the name of its declared module, and with another; as the compiler makes it, and with NOPs.
build=$1
. "$(dirname "$0")/lib.sh"
cat >pool.c <<'C'
#include <tracewheel/tracewheel.h>
TW_DEFINE_FUNCTION(work_function, "pool", "work", 1);
__attribute__((noinline)) int work(int n)
{
	tw_call1(&work_function, (uint64_t)n);
	return n ? work(n - 1) + n : 0;
}
__attribute__((noinline)) int begin(int n)
{
	return work(n) * 2;
}
int main(void)
{
	return begin(5) != 30;
}
C
# calls NAME: how often each function was called.
calls() {
	"$tw" report --json "$1.tw" | python3 -I -S -c 'import json, sys; print(*sorted("%s=%d" % (f["name"].replace("/_", ""), f["calls"]) for f in json.load(sys.stdin)["by_function"]))'
}
for flags in "" "-fpatchable-function-entry=9"; do
	for name in pool other; do
		# shellcheck disable=SC2086
		cc -O1 $flags -fno-optimize-sibling-calls -I"$common/../../include" -o $name pool.c -L"$build/lib" -ltracewheel -Wl,-rpath,"$build/lib" || fail "the compiler"
		expect 0 "$tw" record -q --force -o $name.tw -t "{pool,other}:{work,begin,tw_declare_*}" -- ./$name
	done
	is "$(calls pool)" "pool:begin=1 pool:work/1=6" "in the program pool"
	is "$(calls other)" "other:begin=1 other:work=6 pool:work/1=6" "in another"
done
exit 0
