#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal    Ctrl-C and kill stop a recording with a complete capture; a dead recorder's capture can be recovered.
build=$1
. "$(dirname "$0")/lib.sh"
set -m # jobs of their own process groups, with SIGINT as at a terminal

cat >loop.py <<'EOT'
import os, signal, sys
if "stubborn" in sys.argv:
    signal.signal(signal.SIGINT, lambda *_: print("told", flush=True))
for _ in range(2000):
    os.stat("/")
open("pid.new", "w").write(str(os.getpid()))
os.rename("pid.new", "pid")
while True:
    os.stat("/")
EOT

# start NAME ARGUMENT...: records the loop in the background, and waits until it has made some thousand calls. The
# caller of this test may ignore SIGINT, as nohup and shells do for background jobs.
start() {
	rm -f pid
	env --default-signal=INT,TERM "$tw" record -t 'libc:_' -o "$@" >out 2>err </dev/null &
	recorder=$!
	wait_until test -s pid
}

# ends CODE: expects that the recorder ends with it.
ends() {
	local code=0
	timeout 300 tail --pid="$recorder" -f /dev/null || fail "the recorder goes on"
	wait "$recorder" || code=$?
	is "$code" "$1" "exit code"
}

is_whole() {
	expect 0 "$tw" info --json "$1"
	is "$(json 'd["complete"]')" True "$1 is whole"
	[ "$(json 'd["events"]')" -gt 1000 ] || fail "$1 holds nothing"
}

start group.tw -- python3 loop.py
kill -INT -- "-$recorder" # the whole group, as the terminal does
ends 130
is_whole group.tw

start alone.tw -- python3 loop.py
kill -TERM "$recorder" # one process: it is passed on
ends 143
is_whole alone.tw

start twice.tw -- python3 loop.py stubborn
program=$(cat pid)
kill -INT "$recorder"
wait_until grep -q told out
sleep 0.5
kill -0 "$recorder" || fail "the recorder did not wait for the program"
kill -INT "$recorder"
ends 130
kill -0 "$program" || fail "the program was killed"
kill -KILL "$program"
is_whole twice.tw

start dead.tw -- python3 loop.py
program=$(cat pid)
kill -KILL "$recorder"
wait "$recorder" 2>/dev/null
sleep 0.2
kill -KILL "$program"
expect 0 "$tw" recover dead.tw
says "is whole"
is_whole dead.tw
expect 0 "$tw" recover dead.tw
