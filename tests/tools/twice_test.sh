#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal    A declared function in a module with the name of the program, whose calls are two events each, is said to be there twice.
# Method  A program that is built with the name of its declared module, and with another.
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
int main(void)
{
	return work(5) != 15;
}
C
for name in pool other; do
	cc -O1 -fno-optimize-sibling-calls -I"$common/../../include" -o $name pool.c -L"$build/lib" -ltracewheel -Wl,-rpath,"$build/lib" || fail "the compiler"
	expect 0 "$tw" record -o $name.tw -t "{pool,other}:work" -- ./$name
	cp err said
	expect 0 "$tw" report $name.tw
	cat err said >>out
	[ $name = pool ] || break
	shows '^Note: 1 function is recorded twice, as declared and as one of the file pool, for example pool:work'
	shows '^tracewheel: 1 function is recorded twice'
done
! grep -q 'recorded twice' out || fail "it is said of another name, too"
exit 0
