#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal    A thread whose system calls become signals (system call user dispatch) makes none of ours while they do: the program
#         works as untraced. Each call is recorded or counted, and none is lost while system calls are not dispatched: in the
#         same thread, in other threads, in a child, and when dispatch is switched off.
# Method  agent_dispatched ends if a system call that is not its own becomes a signal; rings are small, and are waited for.
build=$1
. "$(dirname "$0")/lib.sh"
program=$build/tests/agent/agent_dispatched

"$program" prctl >out 2>err
[ $? = 21 ] || { echo "the kernel knows no system call user dispatch: not tested" && exit 77; }

number() {
	sed -n "s/^$1 //p" "$2"
}

for how in prctl syscall; do
	for more in "--local" "--local --returns --stack 4" "--global"; do
		# shellcheck disable=SC2086
		expect 21 "$tw" record -q --force -o a.tw --follow-fork --ring 64K --on-full block $more -t libc:strtol -- "$program" $how
		mv out printed
		recorded=$(calls a.tw strtol)
		expect 0 "$tw" info --json a.tw
		lost=$(json 'sum(d["lost"].values())')
		made=$(number calls printed)
		# With returns, a call that was recorded may have lost its end.
		[ "$recorded" -le "$made" ] && [ $((recorded + lost)) -ge "$made" ] ||
			fail "$how $more: of $made calls $recorded are recorded, $lost events counted as lost"
		[ $((made - recorded)) -le "$(number blocked printed)" ] || fail "$how $more: $((made - recorded)) calls are lost"
	done
done
expect 0 "$tw" info a.tw
shows 'system call user dispatch'
echo PASS
