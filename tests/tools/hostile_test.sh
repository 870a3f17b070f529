#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal    Whatever a recorded program writes into the memory that it shares with its recorder, the recorder continues,
#         ends, leaves a readable capture, and reports the damage: in its account, in `info`, by the exit code.
# Method  agent_hostile drops its rights if started by root, and then writes random words, and chosen ones, into its
#         rings, tables, definitions and the control page, while its recorder drains them; in all policies. The seed may
#         be given.
build=$1
seed=${2:-$$}
. "$(dirname "$0")/lib.sh"
program=$build/tests/agent/agent_hostile
echo "seed $seed"

# attack HOW OPTION...: leaves the output of `info --json` in out.
attack() {
	local how=$1 got=0
	shift
	expect 7 timeout 60 "$tw" record --force -o a.tw "$@" -t libc:strtol -- "$program" "$how" "$seed" 150
	made=$(sed -n 's/^calls \([0-9]*\).*/\1/p' out)
	[ "$made" = 60000 ] || fail "the program did not come to attack"
	[ "$(id -u)" != 0 ] || shows 'of user 65534'
	cp err account
	"$tw" info --json a.tw >out 2>err </dev/null || got=$?
	[ "$got" = "$(json '0 if d["complete"] else 1')" ] || fail "exit code $got of info after '$how'"
}

attack nothing
is "$(json 'd["events"] + sum(d["lost"].values()), d["complete"]')" "60000 True"

for how in positions records table; do
	attack $how
	is "$(json 'd["complete"], d["account"]["missing"]["rings"]["places"] > 0')" "False True" "what '$how' damages"
	grep -q 'the program overwrote [0-9]* of the rings' account || fail "record does not report '$how'"
done
attack log
is "$(json 'd["events"] + sum(d["lost"].values()) >= 60000')" True
grep -q '1 name did not fit' account || fail "record does not report an invalid definition"

# Its pages are gone, and with them the events that the recorder had not read.
attack cut
is "$(json 'd["complete"], d["account"]["missing"]["rings"]["places"] > 0')" "False True" "what 'cut' damages"
attack cut --on-full overwrite

attack random
attack random --on-full block --ring 64K
attack random --on-full overwrite --ring 64K
attack random --rotate 64K --keep 2 --follow-fork
attack headers --durable 20 --segment-time 20ms
attack slots
attack head
attack words
attack holes
expect 7 timeout 60 "$tw" record -q -o - -t libc:strtol -- "$program" random "$seed" 150
echo PASS
