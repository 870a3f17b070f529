#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Goal    A traced call takes at most 512 bytes of the program's stack, with every option, also where its thread joins, its ring grows
#         or is full, and a match program decides; no handler, jump or cancellation finds the work of a hit on another stack.
#         docs/unmodified.md has the number.
# Method  programs/depth.c looks at a stack that it has filled with a pattern.
. "$(dirname "$0")/lib.sh"

record() {
	mode=$1
	shift
	rm -rf "$folder/o.tw"
	timeout 300 "$build/bin/tracewheel" record -q -o "$folder/o.tw" "$@" -- "$programs/agent_depth" "$mode" 512 \
		>"$folder/out" 2>"$folder/err"
	status=$?
	[ $status = 0 ] || fail "$mode, $*: status $status: $(cat "$folder/out") $(head -3 "$folder/err")"
}

# A call that needs more is seen: the pattern is changed by the program's own calls too.
"$programs/agent_depth" calls -1 >"$folder/out" && fail "nothing was measured: $(cat "$folder/out")"

own='agent_depth:depth_*'
record calls -t "$own"
record calls --returns -t "$own"
record calls --exceptions -t "$own"
record calls --args -t "$own"
record calls --stack 4 -t "$own"
record calls --when '$1 > 50' -t "$own"
record calls --when 'text == "text"' -t 'agent_depth:depth_text'
record calls --when 'text != "a text that is longer than the piece that is read at once"' --args -t 'agent_depth:depth_text'
record calls --match "[{'_',[],[{message,{caller}}]}]" -t 'agent_depth:depth_leaf'
record calls --returns --exceptions --args --stack 4 -t "$own"
record calls --returns --exceptions --args --stack 4 --on-full block --ring 64K -t "$own"
record calls --returns --on-full drop --ring 64K -t "$own"
record calls -t '_:_'
# Each call is long: it is recorded at its end or at a call in it, behind those around it.
record calls --longer 1ns --exceptions -t "$own"
record calls --longer 1ns --on-full block --ring 64K -t "$own"
record calls --longer 1us -t "$own"
# The same where a condition decides, of the call that has ended alone.
record calls --when 'duration > 0 or exception' --exceptions -t "$own"
record calls --when '$1 /= 12345 and duration > 0' --args --on-full block --ring 64K -t "$own"
record calls --when 'text != "a text that is longer than the piece that is read at once" and duration > 0' --args -t 'agent_depth:depth_text'
record calls -t 'agent_depth:depth_leaf' -t "$own if duration > 10s"
# With the calls in it, which wait in memory of the thread until then, too little of it as well.
record calls --longer 1ns --children --exceptions -t "$own"
record calls --longer 1us --children --on-full block --ring 64K -t "$own"
record calls --when '$1 /= 12345 and duration > 0' --children=32K --args --on-full block --ring 64K -t "$own"
record calls --children -t 'agent_depth:depth_leaf' -t "$own if result /= 12345 or exception" --exceptions
# Counted, and summed up by keys that are known at the call or at its end, of which most are new.
record calls --count "$own"
record calls --by '$1' --sum '$1' -t "$own"
record calls --by caller --histogram duration -t "$own"
record calls --by result -t "$own"
# Memory that a call fills, whose length is in memory too.
fills='--args=long depth_fill(long x, out buf(len=*bytes) to, out long bytes)'
record calls "$fills" --returns -t "$own"
record calls "$fills" --longer 1ns --children --on-full block --ring 64K -t "$own"
# A snapshot is wanted of the call as it begins, and as it ends, which the interpreter decides.
record calls --flight --snapshots 1 --snapshot-on "$own if \$1 > 24000" --returns --args --stack 4 -t "$own"
record calls --flight --snapshots 1 --snapshot-on "$own if duration * 3 > \$1 + result" "$fills" --longer 1ns -t "$own"
for mode in threads handler cancel; do
	record $mode -t "$own"
	record $mode --returns --args --stack 4 -t "$own"
	record $mode --returns --on-full block --ring 64K -t "$own"
	record $mode --by result --histogram duration -t "$own"
	record $mode --longer 1ns --on-full block --ring 64K -t "$own"
	record $mode --when '$1 /= 12345 and duration > 0' --args --on-full block --ring 64K -t "$own"
	record $mode --when '$1 /= 12345 and duration > 0' --children --args --on-full block --ring 64K -t "$own"
done
finish
