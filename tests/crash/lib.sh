# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# lib.sh - beside what the tests of the commands share: the numbers of a traced program and of its capture.
. "$(dirname "${BASH_SOURCE[0]}")/../tools/lib.sh"
threads=$build/tests/crash/crash_threads
traced=(-t 'crash:_' -t 'libcrash_work:_')

# said NAME: the number that the program printed as NAME=.
said() {
	grep -o "$1=[0-9]*" program.out | cut -d= -f2
}

# accounts CAPTURE [EXPRESSIONS]: events plus losses are the calls that the program made, or at most those it had begun; $asked is what else
# was asked of its info, as by json().
accounts() {
	local all made begun
	expect 0 "$tw" info --json "$1"
	all=$(json 'd["events"] + sum(d["lost"].values())'"${2:+, $2}")
	asked=${all#* } all=${all%% *} made=$(said made) begun=$(said begun)
	[ "$all" -ge "$made" ] && [ "$all" -le "$begun" ] || fail "$all events and losses, but $made calls made and $begun begun"
}

# find_program: waits for the process that $recorder runs, and sets $program to its pid.
find_program() {
	wait_for "$recorder" eval 'program=$(pgrep -P "$recorder" -x crash_threads)'
}

# worked PID: its processor time in hundredths of a second, without waits.
worked() {
	awk '{ sub(/.*\) /, ""); print $12 + $13 }' "/proc/$1/stat"
}

# works PID TICKS: waits until it has used that much processor time.
works() {
	wait_until eval "[ \"\$(worked $1)\" -ge $2 ]"
}
