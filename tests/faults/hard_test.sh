#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal    Whatever a program does among traced calls (small stacks, thousands of threads, threads that end or are cancelled
#         there, overflowing stacks, forks, filters on system calls), it answers as untraced, however it is traced.
# Method  hard.c checks its own results, errno included; the capture must be readable, and not empty.
. "$(dirname "$0")/lib.sh"

# Each mode in each way with --long, else in one of the local and one of the global ways, in turn.
local_ways=() global_ways=()
for way in "${ways[@]}"; do
	case $way in
	--local*) local_ways+=("$way") ;;
	*) global_ways+=("$way") ;;
	esac
done
number=0 recorded=0
for mode in small_stacks ended_threads overflow forks filtered strict own_bytes many_threads; do
	expect 0 "$hard" "$mode"
	[ -n "${TW_TEST_LONG:-}" ] ||
		ways=("${local_ways[number % ${#local_ways[@]}]}" "${global_ways[number % ${#global_ways[@]}]}")
	number=$((number + 1))
	for way in "${ways[@]}"; do
		# The slowest mode: two ways suffice, and in the short form one.
		case "$mode $way" in
		"many_threads --global"* | "many_threads --local --exceptions") continue ;;
		esac
		# shellcheck disable=SC2086 # options are several words
		expect 0 timeout 500 "$tw" record -q --force --allow-nothing $way -t 'faults_hard:_' -t 'libc:_' -o app.tw -- "$hard" "$mode"
		shows "$mode: as it should be"
		case "$mode $way" in
		"own_bytes --local"*) says "some bytes of sleds were changed" ;;
		esac
		recorded=$((recorded + 1))
		expect 0 "$tw" print app.tw
		[ "$(grep -c '^ *[0-9]*\.[0-9]' out)" -gt 3 ] || fail "$mode $way: hardly anything was recorded"
	done
done
[ $recorded -ge 15 ] || fail "only $recorded recordings"
