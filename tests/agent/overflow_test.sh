#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Goal    A stack overflow in a traced function, and a breakpoint instruction at its entry, are shown to the program's handlers at that
#         function, with its registers; the thread records its later calls.
# Method  programs/overflow.c looks at what its handlers get.
. "$(dirname "$0")/lib.sh"

"$programs/agent_overflow" >"$folder/plain" || fail "untraced: $(cat "$folder/plain")"
for options in "" "--returns" "--exceptions" "--args --stack 4" "--returns --on-full block --ring 64K"; do
	rm -rf "$folder/o.tw"
	timeout 300 "$build/bin/tracewheel" record -q -o "$folder/o.tw" $options -t 'agent_overflow:overflow_*' -- \
		"$programs/agent_overflow" >"$folder/out" 2>"$folder/err"
	status=$?
	[ $status = 0 ] || fail "$options: status $status: $(cat "$folder/out") $(head -3 "$folder/err")"
	cmp -s "$folder/out" "$folder/plain" || fail "$options: $(cat "$folder/out"), untraced $(cat "$folder/plain")"
done
finish
