#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal    Libraries are opened in constructors, and while another thread waits for a stopped recorder, without delay.
build=$1
. "$(dirname "$0")/lib.sh"
folder=$build/tests/crash

record() {
	local name=$1
	shift
	expect 0 bash -c '"$0" record -q -t "libcrash_work:_" "$@" >program.out' "$tw" -o "$name" "$@"
}

record nested.tw -- "$folder/crash_loading" nested "$folder/libcrash_outer.so"
is "$(said made)" 31 "calls of main and two constructors"
expect 0 "$tw" info --json nested.tw
# Calls of a constructor before its object has been examined are not seen; later ones are.
[ "$(json 'd["events"]')" -ge 11 ] || fail "the constructor of the outer library was not seen"
is "$(json 'd["complete"], sum(d["lost"].values())')" "True 0"
# The other thread waits a second; if dlopen waited for it, it would always make calls meanwhile. A busy machine may
# delay dlopen that long: then the test is repeated.
for _ in {1..10}; do
	record beside.tw --force --on-full block --ring 64K -- "$folder/crash_loading" beside "$folder/libcrash_outer.so"
	expect 0 "$tw" info --json beside.tw
	[ "$(json 'd["events"] + sum(d["lost"].values())')" -gt 1000 ] || fail "nothing was recorded"
	[ "$(said meanwhile)" != 30 ] || break
done
is "$(said meanwhile)" 30 "the other thread was waiting all the time"
