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
	accounts "$name"
	is "$(json 'd["complete"]')" True "$name is whole"
	is "$(json 'd["account"]["missing"]["names"]["places"]')" 0 "$name has all names"
}

many=${TW_CRASH_THREADS:-3000}
record short.tw -- "$threads" short "$many"
is "$(said made)" "$((many * 25))"
[ "$(json 'd["events"]')" -gt 100 ] || fail "hardly any thread got a ring"
record small.tw --on-full drop --ring-cap 1M --ring 64K -- "$threads" short "$many"
record block.tw --on-full block --ring 64K -- "$threads" short "$many"
record cancel.tw -- "$threads" cancel 300
record cancel-block.tw --on-full block --ring 64K -- "$threads" cancel 100
record raw.tw -- "$threads" raw 200
is "$(json 'd["lost"]["full"]')" 0
