#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal    If recording takes most of a function's measured time, the report says so, and names no other function.
# Method  A leaf that does nothing, called 20,000 times, beside one that sleeps; the JSON's cost is below every call's
#         time.
build=$1
. "$(dirname "$0")/lib.sh"
cat >app.c <<'C'
#include <unistd.h>
__attribute__((noinline, noipa)) long leaf(long a) { return a * 3; }
__attribute__((noinline, noipa)) void naps(void) { usleep(1000); }
int main(void)
{
	long t = 0;
	for (long i = 0; i < 20000; i++)
		t += leaf(i);
	naps();
	return t == 0;
}
C
gcc -O2 -fpatchable-function-entry=9 -o app app.c || fail "gcc"
expect 0 "$tw" record -q --returns --on-full block -o a.tw -t 'app:_' -- ./app
expect 0 "$tw" report --json a.tw
cost=$(json 'd["tracer_per_call"]')
is "$(json 'all(r["min"] >= d["tracer_per_call"] for r in d["by_function"] if r["calls"] >= 1000)')" True
expect 0 "$tw" report a.tw
# A machine that takes more than 150 ns to read its clock proves nothing, and prints nothing.
if [ "$cost" = 0.0 ] || [ "$cost" = 0 ]; then
	! grep -q "are the tracer's" out || fail "a cost that is not known"
else
	shows "cost of a call is in its caller's self too. Up to .* of each call's own time are the tracer's, as the shortest calls show: half or more of app:leaf\."
fi
# Calls without returns have no times, and so no such sentence.
expect 0 "$tw" record -q --on-full block -o b.tw -t 'app:_' -- ./app
expect 0 "$tw" report b.tw
! grep -q "are the tracer's" out || fail "a cost of calls that were not timed"
echo PASS
