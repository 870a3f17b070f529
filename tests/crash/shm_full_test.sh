#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal    A full tmpfs refuses a recording, or costs events, which are counted; it never kills the program.
build=$1
. "$(dirname "$0")/lib.sh"

code=0
# shellcheck disable=SC2016 # expanded inside
privately bash -c '
	mkdir shm small && mount -t tmpfs -o size=6m,mode=700 none shm && mount -t tmpfs -o size=64k,mode=700 none small || exit 99
	export TRACEWHEEL_SHM=$PWD/small
	"$0" record --ring 8M -o refused.tw -- true 2>refused.err
	echo "$?" >refused.code
	find small -type f >refused.left
	export TRACEWHEEL_SHM=$PWD/shm
	"$0" record -t "crash:_" -t "libcrash_work:_" --on-full drop --ring 64K -o full.tw -- "$1" fill shm/filling 60 >program.out 2>err
	code=$?
	find shm -type f >full.left
	exit $code' "$tw" "$threads" || code=$?
if [ "$code" = 99 ]; then
	echo "no file systems may be mounted here: not tested"
	exit 77
fi
is "$(cat refused.code)" 125 "a recording without space for its rings"
grep -q 'no space in .*/small, which holds the rings' refused.err || fail "it does not say what is full: $(cat refused.err)"
[ ! -e refused.tw ] || fail "a refusal left a capture behind"
[ ! -s refused.left ] || fail "a refusal left rings behind"
is "$code" 0 "the program on a full tmpfs"
accounts full.tw
[ "$(json 'd["lost"]["no_ring"]')" -gt 0 ] || fail "sixty threads found rings on a full tmpfs"
[ "$(json 'd["lost"]["full"]')" -gt 0 ] || fail "a ring that had memory for a few records found more on a full tmpfs"
is "$(cat full.left)" shm/filling "what the recording leaves on tmpfs"
