#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Goal    A hit counts as left by a jump only if it was: handlers on stacks of every kind, and coroutines that a handler
#         switches in the middle of hits, make calls that are each recorded or counted; after a jump the thread's calls
#         are recorded again at once.
# Method  programs/stacks.c counts its own calls.
. "$(dirname "$0")/lib.sh"

for kind in signal disarmed within coroutines; do
	traced "pattern libc:strtol" -- "$programs/agent_stacks" $kind
	[ $status = 0 ] || fail "$kind: status $status: $(head -3 "$folder/err")"
	expect_exact "$kind"
done

traced "pattern libc:strto*l" -- "$programs/agent_stacks" jump
[ $status = 0 ] || fail "jump: status $status"
expect "$(sed -n 's/^calls //p' "$folder/out")" "libc:strtoul"
finish
