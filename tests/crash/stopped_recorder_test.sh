#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal    A recorder stopped for seconds costs events, which are counted, and no memory; `block` waits for it a second
#         and no longer, and blocks again when it continues.
build=$1
. "$(dirname "$0")/lib.sh"

resident() {
	awk '/^VmRSS/ { print $2 }' "/proc/$1/status"
}

# How long the program works, and the recorder is stopped, which is longer than block waits; and how long the program works before and
# during the stop at least, in hundredths.
seconds=$(rounds 1.9 3) stop=$(rounds 1.4 2) ticks=$(rounds 15 50)

# stopped NAME OPTION...: the program makes calls, and the recorder is stopped meanwhile.
stopped() {
	local name=$1 recorder program before after start
	shift
	"$tw" record -q "${traced[@]}" --ring 64K "$@" -o "$name" -- "$threads" beat "$seconds" >program.out 2>err </dev/null &
	recorder=$!
	find_program
	works "$program" "$ticks"
	kill -STOP "$recorder"
	before=$(resident "$program")
	start=$(worked "$program")
	sleep "$stop"
	works "$program" "$((start + ticks))"
	after=$(resident "$program")
	kill -CONT "$recorder"
	wait "$recorder" || fail "the recording failed"
	[ "$((after - before))" -lt 1024 ] || fail "the program grew from $before to $after KiB"
	accounts "$name" "d['lost']['full'], d['seconds'] > $seconds - 0.1"
	lost=${asked% *}
	[ "$lost" -gt 1000 ] || fail "seconds without a recorder, and little was lost"
	is "${asked#* }" True "something was recorded after the stop"
}

stopped drop.tw --on-full drop
is "$(said long_waits)" 0 "pauses in which the program with drop gave up its processor, of 100 ms and more"
stopped block.tw --on-full block
pause=$(said longest_wait_ms)
[ "$pause" -ge 800 ] || fail "with block the program waited $pause ms"
# Once for each stop, and for each standstill of the machine; not for each call that found no space.
[ "$(said long_waits)" -lt "$((lost / 100))" ] ||
	fail "with block the program waited $(said long_waits) times"
