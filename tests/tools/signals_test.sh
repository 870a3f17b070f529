#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal    Ctrl-C and kill stop a recording with a complete capture; a dead recorder's capture can be recovered.
build=$1
. "$(dirname "$0")/lib.sh"
set -m # jobs of their own process groups, with SIGINT as at a terminal

cat >loop.py <<'EOT'
import os, signal, sys, time
if "stubborn" in sys.argv:
    signal.signal(signal.SIGINT, lambda *_: print("told", flush=True))
for _ in range(2000):
    os.stat("/")
open("pid.new", "w").write(str(os.getpid()))
os.rename("pid.new", "pid")
# One that waits for a second signal makes calls, too, but does not take a whole processor meanwhile.
while True:
    os.stat("/")
    if "stubborn" in sys.argv:
        time.sleep(0.001)
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
	timeout 300 tail -s 0.1 --pid="$recorder" -f /dev/null || fail "the recorder goes on"
	wait "$recorder" || code=$?
	is "$code" "$1" "exit code"
}

is_whole() {
	expect 0 "$tw" info --json "$1"
	is "$(json 'd["complete"], d["events"] > 1000')" "True True" "$1 is whole and holds something"
}

start group.tw -- python3 -S loop.py
kill -INT -- "-$recorder" # the whole group, as the terminal does
ends 130
is_whole group.tw

start alone.tw -- python3 -S loop.py
kill -TERM "$recorder" # one process: it is passed on
ends 143
is_whole alone.tw

start twice.tw -- python3 -S loop.py stubborn
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

# The program gets each signal once, as untraced: from the terminal, by a signal to the command or to its group, and to both, one after the
# other, as `timeout` sends it; and the recording goes on.
cat >counts.c <<'C'
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>
static volatile sig_atomic_t got[65];
static void count(int number) { got[number]++; }
__attribute__((noinline)) static int after(int i) { __asm__ volatile("" : "+r"(i)); return i; }
int main(void)
{
	struct sigaction action = {.sa_handler = count, .sa_flags = SA_RESTART};
	struct timespec round = {0, 1000000};
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	close(open("ready", O_CREAT | O_WRONLY, 0600));
	while (!got[SIGINT] && !got[SIGTERM])
		nanosleep(&round, NULL);
	/* A second one would come meanwhile. */
	for (int i = 0; i < 400; i++)
		nanosleep(&round, NULL);
	after(0);
	printf("INT %d TERM %d\n", got[SIGINT], got[SIGTERM]);
	return 0;
}
C
gcc -O1 -fpatchable-function-entry=9 -o counts counts.c || fail "gcc"
# counted TOLD WHAT: what the program said; its calls after the signal are looked at in the end, of all recordings.
recordings=0
counted() {
	is "$(cat told)" "$1" "$2"
	mv c.tw "c$((recordings++)).tw"
}
recording=(env --default-signal=INT,TERM "$tw" record -q --force -t counts:after -o c.tw -- ./counts)
# In the short form, TERM comes only to the group.
for number in INT TERM; do
	expected="INT 1 TERM 0"
	[ $number = INT ] || expected="INT 0 TERM 1"
	case $(rounds $number all) in
	INT) recipients="command command,group" ;;
	TERM) recipients=group ;;
	all) recipients="command group command,group" ;;
	esac
	for whom in $recipients; do
		rm -f ready
		"${recording[@]}" >told </dev/null &
		recorder=$!
		wait_until test -e ready
		[ "${whom#command}" = "$whom" ] || kill -$number "$recorder"
		[ "${whom%group}" = "$whom" ] || kill -$number -- "-$recorder"
		ends 0
		counted "$expected" "$number to the $whom"
	done
done
# On a loaded machine the process that counts the group's signals may run late.
rm -f ready
"${recording[@]}" >told </dev/null &
recorder=$!
wait_until test -e ready
counter=$(pgrep -P "$recorder" -x tw-signals) || fail "no process counts signals"
kill -STOP "$counter"
wait_until grep -q '^State:.*stopped' "/proc/$counter/status"
kill -INT -- "-$recorder"
sleep 0.3
kill -CONT "$counter"
ends 0
counted "INT 1 TERM 0" "INT to the group, counted late"
rm -f ready
cat >terminal.py <<'EOT'
import os, pty, sys, time
pid, fd = pty.fork()
if not pid:
    os.execvp(sys.argv[1], sys.argv[1:])
while not os.path.exists("ready"):
    time.sleep(0.05)
os.write(fd, b"\x03")
said = b""
try:
    while part := os.read(fd, 4096):
        said += part
except OSError:
    pass
print(said.decode().replace("^C", "").strip())
EOT
python3 -S terminal.py "${recording[@]}" >told
counted "INT 1 TERM 0" "Ctrl-C"
for ((i = 0; i < recordings; i++)); do
	expect 0 "$tw" report --json -n 0 c$i.tw
	mv out c$i.json
done
expect 0 python3 -S -c '
import json, sys
for name in sys.argv[1:]:
    rows = json.load(open(name))["by_function"]
    assert [row["calls"] for row in rows if row["function"] == "after"] == [1], (name, rows)' c*.json
# What the group got earlier does not keep a signal to the command from the program.
start both.tw -- python3 -S loop.py stubborn
program=$(cat pid)
kill -INT -- "-$recorder"
wait_until grep -q told out
sleep 0.5
kill -INT "$recorder"
ends 130
wait_until eval '[ "$(grep -c told out)" = 2 ]'
kill -KILL "$program"

start dead.tw -- python3 -S loop.py
program=$(cat pid)
kill -KILL "$recorder"
wait "$recorder" 2>/dev/null
sleep 0.2
kill -KILL "$program"
expect 0 "$tw" recover dead.tw
says "is whole"
is_whole dead.tw
expect 0 "$tw" recover dead.tw
