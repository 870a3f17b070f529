#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal    A program that sets a seccomp filter is never killed for a system call of ours, however it sets it, for one
#         thread or for all: in handlers, with a full ring, in threads created later and in those that end. Each call is
#         recorded or counted. A filter that the kernel refuses changes nothing. Under a filter set before the program
#         started, nothing is traced.
# Method  agent_confined may make only its own system calls, and counts its calls; rings are small, and are waited for.
build=$1
. "$(dirname "$0")/lib.sh"
program=$build/tests/agent/agent_confined

expect_confined() { # CODE ARGUMENT...
	local code=$1 made
	shift
	expect "$code" "$tw" record -q --force -o a.tw --ring 64K --on-full block -t libc:strtol -- "$program" "$@"
	cp err lost
	made=$(sed -n 's/^calls //p' out)
	expect 0 "$tw" info --json a.tw
	is "$(json 'd["events"] + sum(d["lost"].values())')" "$made" "events and losses of $*"
	# A ring's memory is allocated before the filter is set, or the rest of the ring could not be used.
	[ "$made" -lt 10000 ] || [ "$(json 'd["events"]')" -gt 1500 ] || fail "of $made calls there are $(json 'd["events"]') events"
}

"$program" prctl strict late >out 2>err
[ $? = 21 ] || { echo "filters are refused here, or libc needs more than this: not tested" && exit 77; }

for how in prctl seccomp all; do
	for late in "" late few; do
		# shellcheck disable=SC2086
		expect_confined 21 $how strict $late
	done
	expect_confined 0 $how refused
	[ "$(json 'd["lost"]["nested"] > max(d["lost"]["full"], d["lost"]["no_ring"])')" = False ] || grep -q 'nested.*signal handlers' lost ||
		fail "a loss that no option avoids is not explained: $(cat lost)"
done

# Filters in force when the command itself started are ignored; with more of them, no program is traced.
expect 0 "$tw" record -q --force -o a.tw -t libc:strtol -- "$program" before "$program" prctl refused
shows "^calls 40"
expect 0 "$program" allowed "$tw" record -q --force -o a.tw -t libc:strtol -- "$program" prctl refused
expect 0 "$tw" info --json a.tw
[ "$(json 'd["events"]')" -gt 1000 ] || fail "under the command's own filter nothing is traced"
echo PASS
