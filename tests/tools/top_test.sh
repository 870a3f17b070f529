#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal    `tracewheel top` shows the calls of a program while it runs: numbers that grow from round to round, and at the end those that the
#         program counted itself, by function, by thread, with errors and times; of a process that runs, too, which is as before afterwards.
#         On a terminal its keys do what they say; the program goes on after q, and its exit code is passed on if it ends before.
# Method  Threads that count their own calls and errors. Rounds as JSON; the screen as tmux shows it.
build=$1
. "$(dirname "$0")/lib.sh"
agent=$build/lib/libtracewheel-agent.so
terminal=(tmux -S "$work/terminal" -f /dev/null)
trap 'touch end; "${terminal[@]}" kill-server 2>/dev/null; rm -rf "$work"' EXIT

cat >app.c <<'C'
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>
static long leaves[3], errors[3];
__attribute__((noinline)) int leaf(int x) { __asm__ volatile("" : "+r"(x)); return x % 7 ? x : -1; }
__attribute__((noinline)) void work(int which)
{
	for (int i = 0; i < 50 + which; i++) {
		leaves[which]++;
		errors[which] += leaf(i) < 0;
	}
}
static void *run(void *which)
{
	while (access("end", F_OK)) {
		work((int)(long)which);
		usleep(2000);
	}
	return NULL;
}
int main(void)
{
	pthread_t threads[3];
	for (long i = 0; i < 3; i++)
		pthread_create(&threads[i], NULL, run, (void *)i);
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	FILE *file = fopen("own", "w");
	fprintf(file, "%ld %ld", leaves[0] + leaves[1] + leaves[2], errors[0] + errors[1] + errors[2]);
	fclose(file);
	return 7;
}
C
gcc -g -O1 -o app app.c -pthread -Wl,--build-id || fail "the program does not compile"

# rounds: of the lines of JSON in the file out, so many at least.
has_rounds() {
	[ "$(grep -c '"rows":\[{' out)" -ge "$1" ]
}

# value EXPRESSION: of the rounds d.
value() {
	python3 -c "import json; d = [json.loads(l) for l in open('out') if l.strip()]; print($1)" || fail "not the JSON expected: $1"
}

row="next(r for r in d[-1]['rows'] if r['function'] == 'leaf')"
# until_end OPTION...: rounds of the program, which then ends; the last has its own numbers.
until_end() {
	rm -f end own
	"$tw" top -t 'app:{leaf,work}' --format json --every 50ms "$@" -- ./app >out 2>err &
	wait_until has_rounds 4
	touch end
	wait $!
	is $? 7 "the exit code of the program"
}

until_end --errors 'result < 0'
read -r leaves errors <own
is "$(value "$row['calls'], $row['errors']")" "$leaves $errors" "all calls and errors"
is "$(value "all(a['calls'] < b['calls'] for a, b in zip(d[:3], d[1:4]))")" True "numbers grow"
is "$(value "sum(r['new_calls'] for r in d) == d[-1]['calls']")" True "rounds are the differences"

until_end --by-thread
read -r leaves errors <own
is "$(value "sum(r['calls'] for r in d[-1]['rows'] if r['function'] == 'leaf')")" "$leaves" "all calls of all threads"
is "$(value "len({r['thread'] for r in d[-1]['rows']})")" 3 "threads"

until_end --times --sort name
is "$(value "[r['function'] for r in d[-1]['rows']], all(r['total'] > 0 for r in d[-1]['rows'])")" "['leaf', 'work'] True"
is "$(value "$row['calls']")" "$(cut -d' ' -f1 own)" "all calls"

# A process that runs.
rm -f end
LD_PRELOAD=$agent ./app &
program=$!
sleeps() {
	grep -qs dormant "/proc/$program/task"/*/comm
}
wait_until sleeps
expect 0 "$tw" top --every 50ms --count 3 --batch "$program"
is "$(grep -c ' a second, in ' out)" 3 "rounds"
shows ' app:leaf'
is "$(python3 "$common/changed_text.py" "$program")" 0 "bytes of code that differ"
"$tw" top --every 50ms --format json "$program" >out 2>err &
wait_until has_rounds 2
touch end
wait $! || fail "the end of the process is no failure"
wait "$program"
is $? 7

# What cannot be, and why.
expect 2 "$tw" top
expect 2 "$tw" top --times --errors 'result < 0' -- ./app
expect 2 "$tw" top --errors 'result < 1' -- ./app
expect 2 "$tw" top --sort time -- ./app
expect 2 "$tw" top --times 4711
expect 127 "$tw" top -- ./missing
says 'there is no program'
expect 2 "$tw" top -t app:missing -- ./app
says 'match'

# On a terminal.
type tmux >/dev/null 2>&1 || exit 0
screen() {
	"${terminal[@]}" capture-pane -p >screen 2>/dev/null && grep -q -- "$1" screen
}
lacks() {
	! screen "$1"
}
press() {
	"${terminal[@]}" send-keys "$@"
}
rm -f end own
"${terminal[@]}" new-session -d -x 100 -y 12 "$tw top -t 'app:_' --every 50ms -- ./app; echo code \$?; sleep 1000" || fail "tmux"
wait_until screen 'calls/s .*function'
wait_until screen ' app:work'
press t
wait_until screen ' thread .*function'
press t /
press w o
wait_until screen '^/wo'
wait_until lacks app:leaf
press Enter
wait_until screen 'Esc: all'
press / Escape
wait_until screen app:leaf
press s
wait_until screen 'by calls'
press p
wait_until screen '(paused)'
press p
wait_until lacks '(paused)'
"${terminal[@]}" resize-window -x 60 -y 6
wait_until screen '^ q quit'
press q
wait_until screen '^code 0'
[ ! -e own ] || fail "the program has ended"
touch end
wait_until test -s own
