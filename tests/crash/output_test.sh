#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal    With an output that cannot be written, the recording is refused at the start, or the program continues, its
#         exit code is passed on, and all events are counted.
build=$1
. "$(dirname "$0")/lib.sh"

expect 125 "$tw" record -o missing/a.tw -- true
says "its folder does not exist"
code=0
# shellcheck disable=SC2016 # expanded inside
privately bash -c '
	mkdir locked small && mount -t tmpfs none locked && mount -o remount,ro locked || exit 99
	"$0" record -o locked/a.tw -- "$1" calls 10 >locked.out 2>locked.err
	echo "$?" >locked.code
	mount -t tmpfs -o size=64k none small || exit 99
	"$0" record -t "crash:_" -t "libcrash_work:_" --on-full block --ring 64K -o small/a.tw -- "$1" calls 500000 7 >program.out 2>err
	code=$?
	cp -r small/a.tw full.tw
	exit $code' "$tw" "$threads" || code=$?
if [ "$code" = 99 ]; then
	echo "no file systems may be mounted here: not tested"
	exit 77
fi
is "$(cat locked.code)" 125 "a read-only folder"
[ ! -s locked.out ] || fail "the program was run all the same"
grep -q 'locked/a.tw' locked.err || fail "it does not say where: $(cat locked.err)"
is "$code" 7 "the program's own exit code on a full disk"
says "LOST"
says "small/a.tw"
is "$(said made)" 500000
# Under "block" nothing is lost before the disk is full, however slow the recorder.
# Some of the losses are in the file, the last ones only in the command's message.
lost=$(grep -o 'LOST [0-9,]*' err | tr -d 'LOST ,')
expect 1 "$tw" info --json full.tw
is "$((lost + $(json 'd["events"]')))" 500000 "events in the file, and losses told"
