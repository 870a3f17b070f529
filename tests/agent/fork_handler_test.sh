#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Goal    A child created by a signal handler in the middle of a hit ends normally, and writes nothing of its parent's:
#         each of the parent's calls is recorded once, and nothing else.
# Method  programs/forkhandler.c: a hundred children for each way of creating one, children not followed; with fork()
#         also followed. The way that no wrapper sees (`instruction`) also where calls wait, are watched to their ends,
#         or are overwritten.
. "$(dirname "$0")/lib.sh"

for way in fork _Fork clone instruction; do
	traced "pattern libagent_edgelib:edge_add" -- "$programs/agent_forkhandler" $way 100
	[ $status = 0 ] || fail "$way: status $status: a child died"
	expect "$(cat "$folder/out")" edge_add
done
traced "pattern libagent_edgelib:edge_add" -f -- "$programs/agent_forkhandler" fork 100
[ $status = 0 ] || fail "followed: status $status: a child died"
[ "$(calls edge_add)" -ge "$(cat "$folder/out")" ] || fail "followed: calls are missing"
# A waiting or watched call that was interrupted continues as well.
for way in clone instruction; do
	for option in "" "--on-full block --ring 64K" "--on-full overwrite" --returns; do
		# shellcheck disable=SC2086
		"$build/bin/tracewheel" record -q --force -o "$folder/a.tw" $option -t libagent_edgelib:edge_add -- \
			"$programs/agent_forkhandler" $way 100 >"$folder/out" 2>"$folder/err" || fail "$way $option: a child died"
	done
done
finish
