#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal    A recorder that is killed at any step of its start leaves a capture that is whole, with nothing in it, or none: never one that
#         says that its rings are gone.
# Method  strace kills it at each of its first writes and links, one after the other.
build=$1
. "$(dirname "$0")/lib.sh"
command -v strace >/dev/null || { echo "no strace here: not tested" && exit 77; }
mkdir shm && export TRACEWHEEL_SHM=$PWD/shm
killed=0 marked=0
for call in write linkat openat; do
	for number in {1..6}; do
		rm -rf s.tw
		{ strace -o trace -e trace=$call -e inject=$call:signal=KILL:when=$number "$tw" record -q -o s.tw -t libc:malloc -- true; } 2>/dev/null
		grep -q 'killed by SIGKILL' trace || continue
		killed=$((killed + 1))
		[ -e s.tw/live ] || continue
		marked=$((marked + 1))
		expect 0 "$tw" recover s.tw
		says "s.tw is whole: 0 events were added to it."
	done
done
[ "$killed" -ge 8 ] && [ "$marked" -ge 1 ] || fail "killed $killed times, $marked times with a mark"
