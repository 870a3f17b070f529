#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal    Whatever a program does among traced calls (small stacks, 10,000 threads, threads that end or are cancelled
#         there, overflowing stacks, forks, filters on system calls), it answers as untraced, however it is traced.
# Method  hard.c checks its own results, errno included; the capture must be readable, and not empty.
. "$(dirname "$0")/lib.sh"

for mode in small_stacks ended_threads overflow forks filtered strict own_bytes many_threads; do
	expect 0 "$hard" "$mode"
	for way in "${ways[@]}"; do
		# The slowest mode: two ways suffice.
		case "$mode $way" in
		"many_threads --global"* | "many_threads --local --exceptions") continue ;;
		esac
		# shellcheck disable=SC2086 # options are several words
		expect 0 timeout 500 "$tw" record -q --force --allow-nothing $way -t 'faults_hard:_' -t 'libc:_' -o app.tw -- "$hard" "$mode"
		shows "$mode: as it should be"
		case "$mode $way" in
		"own_bytes --local"*) says "some bytes of sleds were changed" ;;
		esac
		expect 0 "$tw" info --json app.tw
		[ "$(json 'd["events"]')" -gt 3 ] || fail "$mode, $way: hardly anything was recorded"
		expect 0 "$tw" print app.tw
	done
done
