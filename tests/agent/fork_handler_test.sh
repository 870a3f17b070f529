#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Goal    A child that is made by a signal handler in the middle of a hit ends well, and writes nothing of its parent's: each of the
#         parent's calls is recorded once, and nothing else.
# Method  programs/forkhandler.c: a hundred children of each way to make one, children not followed; with fork() also followed.
. "$(dirname "$0")/lib.sh"

for way in fork _Fork clone; do
	traced "pattern libagent_oddlib:odd_add" -- "$programs/agent_forkhandler" $way 100
	[ $status = 0 ] || fail "$way: status $status: a child died"
	expect "$(cat "$folder/out")" odd_add
done
traced "pattern libagent_oddlib:odd_add" -f -- "$programs/agent_forkhandler" fork 100
[ $status = 0 ] || fail "followed: status $status: a child died"
[ "$(calls odd_add)" -ge "$(cat "$folder/out")" ] || fail "followed: calls are missing"
finish
