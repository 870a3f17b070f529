#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal    A second terminal reads a capture while it is recorded, and shows whether it still is; it cannot be replaced
#         or recovered then.
# Method  A program that waits for a file is recorded, and read in the meantime; then the recorder is killed. The program ends
#         with the folder of the test.
build=$1
. "$(dirname "$0")/lib.sh"

cat >wait.c <<'EOT'
#include <time.h>
#include <unistd.h>
__attribute__((noinline)) void tick(void)
{
	nanosleep(&(struct timespec){0, 5000000}, 0);
	__asm__ volatile("");
}
int main(void)
{
	while (access("end", F_OK) && !access("wait.c", F_OK))
		tick();
	return 0;
}
EOT
${CC:-cc} -O2 -g -fpatchable-function-entry=9 wait.c -o wait || fail "no program"

# events: the number of events on disk.
events() {
	"$tw" info --json a.tw 2>/dev/null | python3 -c 'import json, sys; print(json.load(sys.stdin)["events"])' 2>/dev/null || echo 0
}

"$tw" record --returns -q -t 'wait:_' -o a.tw -- ./wait 2>record.err &
recorder=$!
wait_until eval '[ "$(events)" -ge 6 ]'
expect 0 "$tw" info a.tw
shows '^complete      no: it is being recorded$'
shows '^lost          nothing so far$'
expect 0 "$tw" report a.tw
shows 'Nothing was lost so far'
shows 'not complete: it is being recorded\.'
shows 'wait:tick'
says 'a.tw has no end yet: it is being recorded'
expect 0 "$tw" print --tail 3 a.tw
is "$(wc -l <out)" 3 "lines of --tail 3"
expect 0 "$tw" print --tree a.tw
shows 'still open'
expect 0 "$tw" flame --folded a.tw
shows 'wait:main'
expect 125 "$tw" record -o a.tw -- true
says "'a.tw' exists"
expect 125 "$tw" record --force -o a.tw -- true
says 'being recorded now'
expect 1 "$tw" recover a.tw
says 'being recorded at this moment'
kill -KILL "$recorder"
wait "$recorder" 2>/dev/null
touch end
expect 0 "$tw" info a.tw
shows '^complete      no: its recorder died, .*tracewheel recover'
expect 0 "$tw" report a.tw
shows 'not complete: its recorder died'
expect 0 "$tw" recover a.tw
expect 0 "$tw" report a.tw
[ ! -s err ] || fail "a capture that was recovered is not whole"
