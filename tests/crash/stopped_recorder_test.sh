#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal: a recorder that is stopped for seconds costs events, which are counted, and no memory; `block` waits for it a
# second and no longer, and is itself again when it goes on.
build=$1
. "$(dirname "$0")/lib.sh"

resident() {
	awk '/^VmRSS/ { print $2 }' "/proc/$1/status"
}

# stopped NAME OPTION...: three seconds of calls; the recorder sleeps through two of them.
stopped() {
	local name=$1 recorder program before after
	shift
	"$tw" record -q "${traced[@]}" --ring 64K "$@" -o "$name" -- "$threads" beat 3.2 >program.out 2>err </dev/null &
	recorder=$!
	sleep 0.6
	program=$(pgrep -P "$recorder")
	kill -STOP "$recorder"
	before=$(resident "$program")
	sleep 2
	after=$(resident "$program")
	kill -CONT "$recorder"
	wait "$recorder" || fail "the recording failed"
	[ "$((after - before))" -lt 1024 ] || fail "the program grew from $before to $after KiB"
	accounts "$name"
	[ "$(json 'd["lost"]["full"]')" -gt 1000 ] || fail "two seconds without a recorder, and little was lost"
	[ "$(json 'd["seconds"] > 3')" = True ] || fail "nothing was recorded after the stop"
}

stopped drop.tw
[ "$(said longest_pause_ms)" -lt 600 ] || fail "with drop the program waited $(said longest_pause_ms) ms"
stopped block.tw --on-full block
pause=$(said longest_pause_ms)
[ "$pause" -ge 800 ] && [ "$pause" -lt 1900 ] || fail "with block the program waited $pause ms"
