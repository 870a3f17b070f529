#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Goal    Run-times with contexts of their own (gccgo's) work while returns are watched: a function that keeps its return address
#         for later gets the true one, in code with and without call frame information, whichever way it is recorded, and
#         unwinders end where a stack begins without a caller.
# Method  programs/contextlib.c, in two builds; a program that looks at its own return address in a function with a sled.
. "$(dirname "$0")/lib.sh"
tw=$build/bin/tracewheel
export XDG_CACHE_HOME=$folder/cache

for which in plain framed; do
	program=$programs/agent_contexts_$which
	"$program" >"$folder/out2"
	[ $? = 7 ] || fail "$which: untraced: $(cat "$folder/out2")"
	for options in "--returns" "--exceptions" "--returns --local" "--returns --stack 4 -N libc:_"; do
		# shellcheck disable=SC2086
		timeout 300 "$tw" record -q -o "$folder/a.tw" $options -t _:_ -- "$program" >"$folder/out" 2>"$folder/err"
		status=$?
		[ $status = 7 ] || fail "$which $options: status $status: $(head -3 "$folder/err")"
		cmp -s "$folder/out" "$folder/out2" || fail "$which $options: $(cat "$folder/out"), not $(cat "$folder/out2")"
		rm -rf "$folder/a.tw"
	done
done
finish
