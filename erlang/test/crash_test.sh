#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal    A VM that is killed leaves every committed event: in a capture that its recorder completes; or, if that was killed too,
#         in one that `tracewheel recover` completes. A full disk loses events, counted; rings that find no memory are refused;
#         and the node works on.
# Method  kill -9 in the middle of an endless loop of traced calls: their argument counts down, so a gap would be seen. A recording
#         onto a file system of one MiB.
build=$1 modules=(life rounds)
. "$(dirname "$0")/lib.sh"

# Starts a VM in the background, until it has said what is certainly committed. Sets $vm and $recorder.
start_victim() {
	rm -f said
	erl -noshell +S 2:2 -pa "$build/erlang/ebin" -pa . -s life victim </dev/null >said 2>&1 &
	vm=$!
	for _ in $(seq 600); do
		! grep -q 50000 said || break
		sleep 0.1
	done
	grep -q 50000 said || fail "the VM did not start: $(cat said)"
	recorder=$(pgrep -f "record --erlang -o $work/victim.tw") || fail "no recorder"
}

# A killed process has files and memory for a while.
await_recorder() {
	for _ in $(seq 600); do
		kill -0 "$recorder" 2>/dev/null || return 0
		sleep 0.1
	done
	fail "the recorder did not end"
}

# The capture has 50,000 calls at least, then those of the endless loop without a gap.
check_victim() {
	expect 0 "$tw" info victim.tw
	shows 'complete      yes'
	shows 'lost          nothing'
	shows 'terms were cut: term_bytes 1000'
	"$tw" print --format erlang victim.tw | awk -F'[][]' '
		/,call,{life,step,/ { count++; if (count <= 50000 && $2 != 50000 - count + 1) bad = count }
		END { if (count < 50000 || bad) { print "calls: " count ", gap at " bad; exit 1 } }' >gap || fail "$(cat gap)"
}

start_victim
kill -9 "$vm"
wait "$vm" 2>/dev/null
await_recorder
check_victim

start_victim
kill -9 "$recorder" "$vm"
wait "$vm" 2>/dev/null
await_recorder
expect 0 "$tw" recover victim.tw
check_victim

got=0
mkdir full small
export build tests root
privately bash -c 'mount -t tmpfs -o size=1m tmpfs full && mount -t tmpfs -o size=64k tmpfs small && timeout 100 erl -noshell +S 2:2 -pa "$build/erlang/ebin" -pa . -s life until_full' </dev/null >out 2>&1 || got=$?
if [ "$got" = 99 ]; then
	echo "private file systems cannot be mounted here: the full disk is not tested"
	exit 0
fi
grep -qx ok out || fail "a full disk"
read -r made stored lost errors <<<"$(head -n 1 out)"
[ $((stored + lost)) = "$made" ] && [ "$lost" -ge 1 ] && [ "$errors" -ge 1 ] || fail "made $made, stored $stored, lost $lost, errors $errors"
