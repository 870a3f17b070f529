#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal    Thousands of threads, cancelled threads and threads that end by the bare system call: each call is an event or
#         a loss.
build=$1
. "$(dirname "$0")/lib.sh"

record() {
	local name=$1
	shift
	expect 0 bash -c '"$0" record -q -t "crash:_" -t "libcrash_work:_" "$@" >program.out' "$tw" -o "$name" "$@"
	accounts "$name" 'd["complete"], d["account"]["missing"]["names"]["places"], d["lost"]["full"], d["events"]'
	# shellcheck disable=SC2086 # several words
	set -- $asked
	is "$1 $2" "True 0" "$name is whole, and lacks so many names"
	lost=$3 events=$4
}

many=${TW_CRASH_THREADS:-3000}
fewer=${TW_CRASH_THREADS:-$(rounds 1000 3000)}
record short.tw -- "$threads" short "$many"
is "$(said made)" "$((many * 25))"
[ "$events" -gt 100 ] || fail "hardly any thread got a ring"
record small.tw --on-full drop --ring-cap 1M --ring 64K -- "$threads" short "$fewer"
record block.tw --on-full block --ring 64K -- "$threads" short "$fewer"
record cancel.tw -- "$threads" cancel "$(rounds 100 300)"
record cancel-block.tw --on-full block --ring 64K -- "$threads" cancel "$(rounds 50 100)"
record raw.tw -- "$threads" raw "$(rounds 100 200)"
is "$lost" 0 "events lost"
