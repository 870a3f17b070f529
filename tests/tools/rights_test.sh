#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal    A process that has dropped its rights sees nothing of other processes' records, and is recorded all the same.
# Method  agent_peek calls a function with a secret number, and finds it in its ring; its child drops its rights, if it
#         has any, and searches all shared memory for the number, and for the files of the rings and the parent's
#         memory.
build=$1
. "$(dirname "$0")/lib.sh"
peek=$build/tests/agent/agent_peek

mkdir "$work/shm"
export TRACEWHEEL_SHM=$work/shm
chmod 755 "$work"
for options in "" --follow-fork "--on-full overwrite" "--on-full block --follow-fork --ring 64K"; do
	# shellcheck disable=SC2086
	expect 0 "$tw" record -q --force -o a.tw $options --args=raw -t libc:strtol -- "$peek"
	shows '^child 0, opened 0'
	expect 0 "$tw" info --json a.tw
	wanted=2000
	case "$options" in *follow*) wanted=2100 ;; esac
	is "$(json 'd["events"] + sum(d["lost"].values()), d["complete"]')" "$wanted True" "events of '$options'"
done
echo PASS
