#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal    `record --time`, `--events` and `--rate` end the recording at the limit: the capture is complete and says why, first of all; the
#         program goes on with its own code, gets its signals, and its exit code is passed on. A program that ends before has no such end.
# Method  A program that calls until it is told to end; its memory is compared with its files. Wrong values, here and for Erlang nodes.
build=$1
. "$(dirname "$0")/lib.sh"
trap 'touch end; rm -rf "$work"' EXIT

cat >app.c <<'C'
#include <stdio.h>
#include <unistd.h>
__attribute__((noinline)) int leaf(int x) { __asm__ volatile("" : "+r"(x)); return x * 3 + 1; }
int main(void)
{
	int sum = 0;
	FILE *file = fopen("pid", "w");
	fprintf(file, "%d\n", getpid());
	fclose(file);
	for (int i = 0; access("end", F_OK); i++) {
		sum += leaf(i) - i * 3;
		usleep(1000);
	}
	return sum < 0 ? 1 : 7;
}
C
gcc -O1 -o app app.c -Wl,--build-id || fail "the program does not compile"

# begin OPTION...: records until the limit; the program goes on.
begin() {
	rm -f end pid
	"$tw" record --force -t app:leaf -o c.tw "$@" -- ./app >out 2>err &
	command=$!
	wait_until grep -q 'no longer traced' err
}

# is_complete CLAUSE: what the capture says, while the program still runs.
is_complete() {
	says "the recording ended $1"
	expect 0 "$tw" report c.tw
	sed -n 2p out | grep -q "^The recording ended $1; the program went on.$" || fail "not first: $1"
	expect 0 "$tw" info c.tw
	shows "^stopped  *the recording ended $1"
	shows '^complete  *yes'
	is "$(python3 "$common/changed_text.py" "$(cat pid)")" 0 "bytes of code that differ"
	kill -0 "$command" || fail "the command has ended before the program"
}

end() {
	touch end
	wait "$command"
	is $? 7 "the exit code of the program"
}

begin --time 200ms
is_complete "after 200 ms (--time)"
expect 0 "$tw" report --json c.tw
is "$(json 'd["stopped"]["by"], d["stopped"]["limit_ns"]')" "time 200000000"
end
begin --events 50 --rate none
is_complete "after 50 events (--events)"
expect 0 "$tw" info --json c.tw
is "$(json 'd["stopped"]["by"], d["stopped"]["limit"], d["events"] >= 50')" "events 50 True"
end

# A signal to the command alone reaches the program afterwards, too.
begin --rate 20/s
is_complete "because there were more than 20 events a second (--rate)"
kill "$command"
wait "$command"
is $? 143 "the program was ended by the signal"

# No limit is reached.
touch end
expect 7 "$tw" record --force --time 1h --events 1G --rate 1G/s -o c.tw -- ./app
expect 0 "$tw" info c.tw
! grep -q '^stopped' out || fail "it was not stopped"

for wrong in "--time 0" "--time x" "--events -1" "--events 2M/s" "--rate 0" "--rate much"; do
	# shellcheck disable=SC2086
	expect 2 "$tw" record $wrong -- ./app
	says "${wrong% *} is a "
	# shellcheck disable=SC2086
	expect 2 "$tw" record --erlang $wrong -t lists nobody@localhost
	says "${wrong% *} is a "
done
