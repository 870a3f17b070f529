#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal    `tracewheel NAME` runs the program tracewheel-NAME, as git does: the one beside the command before one in PATH,
#         with its arguments, standard input and exit code. A true sentence tells where none is, or why it did not start.
# Method  Scripts that print what they were given, beside a copy of the command and in a folder of PATH.
build=$1
. "$(dirname "$0")/lib.sh"

program() { # FILE WORD
	printf '#!/bin/sh\nread -r line\necho "%s $0 $# $* $line"\nexit 7\n' "$2" >"$1"
	chmod +x "$1"
}
mkdir beside there
cp "$tw" beside/tracewheel
program beside/tracewheel-both beside
program there/tracewheel-both there
program there/tracewheel-far there
PATH=$PATH:$work/there

run() { # CODE ARGUMENT...: with a line to read
	local code=$1 got=0
	shift
	echo "a line" | beside/tracewheel "$@" >out 2>err || got=$?
	[ "$got" = "$code" ] || fail "exit code $got instead of $code: $*"
}
run 7 both --first "two words"
is "$(cat out)" "beside $work/beside/tracewheel-both 2 --first two words a line"
run 7 far
is "$(cat out)" "there $work/there/tracewheel-far 0  a line"
run 7 help far
is "$(cat out)" "there $work/there/tracewheel-far 1 --help a line"

# No such program, also where PATH has a file that may not be executed; a name with a slash is no program's.
echo "not a program" >there/tracewheel-nothing
run 2 nothing
says "there is no command 'nothing', and no program tracewheel-nothing in the folder of this command or in PATH.$"
run 2 reprot
says "there is no command 'reprot', and no program tracewheel-reprot; did you mean report?$"
run 2 ../there/tracewheel-far
is "$(cat out)" ""
# One that cannot be started is not searched for elsewhere.
chmod -x beside/tracewheel-both
run 1 both
says "the program tracewheel-both could not be started: Permission denied.$"
# A known one that was not installed.
run 1 stress --seconds 1
says "stress is the program tracewheel-stress, which is neither in the folder of this command nor in PATH; install them together.$"
