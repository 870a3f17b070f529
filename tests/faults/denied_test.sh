#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal    Where code cannot be made writable, sleds are left alone, the capture says so, and the program runs; slots do
#         not need it and are traced.
. "$(dirname "$0")/lib.sh"

"$programs/faults_deny" true || { echo "no filters here: not tested"; exit 77; }
for way in "${ways[@]}"; do
	# shellcheck disable=SC2086
	expect 0 "$programs/faults_deny" "$tw" record --force --allow-nothing $way -t 'faults_hard:_' -t 'libc:_' -o app.tw -- \
		"$hard" small_stacks
	shows "small_stacks: as it should be"
	expect 0 "$tw" info --json app.tw
	events=$(json 'd["events"]')
	case "$way" in
	--local*)
		[ "$events" = 0 ] || fail "$way: $events events although code could not be changed"
		expect 0 "$tw" info app.tw
		shows 'refuses to make their code writable'
		;;
	*) [ "$events" -gt 50 ] || fail "$way: only $events events" ;;
	esac
done
