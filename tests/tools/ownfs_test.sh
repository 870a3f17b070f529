#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal    Code that runs with a %fs of its own is not harmed, whatever %fs holds: its calls are counted as those of a thread
#         without a ring, and the thread's other calls and returns are recorded.
# Method  agent_ownfs, at entries, with each kind of end, and counted; where the processor's rdfsbase may be used.
build=$1
. "$(dirname "$0")/lib.sh"
program=$build/tests/agent/agent_ownfs

LD_SHOW_AUXV=1 /bin/true | grep -qE '^AT_HWCAP2: +0x[0-9a-f]*[2367abef]$' || { echo "no rdfsbase here: not tested" && exit 77; }
expect 23 "$program"
mv out alone
made=$(sed -n 's/^calls //p' alone)

for options in "" "--returns" "--exceptions --stack 4" "--on-full block --args=raw"; do
	# shellcheck disable=SC2086
	expect 23 "$tw" record -q --force -o a.tw --local $options -t 'agent_ownfs:_' -- "$program"
	cmp out alone || fail "another output"
	expect 0 "$tw" info --json a.tw
	lost=$(json 'd["lost"]["no_ring"]')
	[ "$(json 'sum(d["lost"].values())')" = "$lost" ] || fail "$options: events are lost for another reason"
	[ "$lost" -ge 20000 ] || fail "$options: $lost events are counted"
	# 50 rounds in each of two threads.
	is "$(calls a.tw guest)" 100 "calls with libc's %fs"
	[ "$options" ] || is "$(calls a.tw run_with)" 500
	[ "$options" ] || is "$made" 20100
done
echo PASS
