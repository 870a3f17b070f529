#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal    If no process runs for more than a second, as on a machine whose processors are given to others, `block` loses
#         nothing.
# Method  Recorder and program are stopped together in the middle of their work, and continue together, the program
#         first.
build=$1
. "$(dirname "$0")/lib.sh"

"$tw" record -q "${traced[@]}" --ring 64K --on-full block -o still.tw -- "$threads" beat "$(rounds 1 2)" >program.out 2>err </dev/null &
recorder=$!
find_program
for ticks in $(rounds "25 50" "40 80 120"); do
	works "$program" "$ticks"
	kill -STOP "$recorder" "$program"
	sleep "$(rounds 1.2 1.5)"
	kill -CONT "$program" "$recorder"
done
wait "$recorder" || fail "the recording failed: $(cat err)"
accounts still.tw
is "$(json 'sum(d["lost"].values()), d["events"]')" "0 $(said made)" "events lost, and events"
