#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal    `attach --flight` keeps the last calls of a program that runs, and writes them when a call fulfils a condition, `snapshot` asks, or the
#         program has ended; a later attach has its own condition, or none; the program goes on as before.
# Method  A program numbers its calls; those with one number are slow, those with another fail. Each snapshot is for such a call.
build=$1
. "$(dirname "$0")/lib.sh"

program='' command=''
trap 'kill -9 $program $command 2>/dev/null; rm -rf "$work"' EXIT

cat >serve.c <<'C'
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
__attribute__((noinline)) int step(int n) { __asm__ volatile("nop;nop;nop;nop"); return n + 1; }
__attribute__((noinline)) int handle(int n)
{
	int sum = 0;
	for (int i = 0; i < 10; i++)
		sum += step(i);
	if (n % 200 == 77)
		usleep(20000);
	return n % 200 == 100 ? -n : sum;
}
static void *serve(void *arg)
{
	for (int i = 0; access("end", F_OK); i++) {
		handle(i);
		usleep(500);
	}
	return arg;
}
int main(int argc, char **argv)
{
	pthread_t threads[2];
	char *end = argv[argc - 1] + strlen(argv[argc - 1]);
	/* A title in place of the arguments, as servers write it. */
	memset(argv[0], 0, (size_t)(end - argv[0]));
	strcpy(argv[0], "serve: busy");
	for (int i = 0; i < 2; i++)
		pthread_create(&threads[i], 0, serve, 0);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], 0);
	return handle(200) == 55 ? 7 : 8;
}
C
gcc -g -O2 -o serve serve.c -lpthread || fail "no compiler"
start() {
	rm -f end
	./serve with several arguments &
	program=$!
}
start

# number NAME.tw: that of the call which caused the snapshot, the last of its thread.
number() {
	expect 0 "$tw" info --json "$1"
	local thread
	thread=$(json 'd["trigger"]["thread"]')
	expect 0 "$tw" print --format json --around-trigger --thread "$thread" -t serve:handle "$1"
	[ "$(tail -n 1 out | grep -o '"kind":"return_from"')" ] || fail "the call's return is not the last event"
	grep '"kind":"call"' out | tail -n 1 | sed 's/.*"args":\[\([0-9]*\).*/\1/'
}

# fly CAPTURE OPTION...: attaches until there is this capture.
fly() {
	local until=$1
	shift
	"$tw" attach --flight --args -t 'serve:_' --time none "$@" "$program" >out 2>err &
	command=$!
	wait_for $command test -d "$until"
	expect 0 "$tw" detach "$program"
	wait $command || fail "attach"
}

fly slow-2.tw --snapshot-on 'serve:handle if duration > 15ms' --snapshots 2 --every 100ms -o slow.tw
for name in slow.tw slow-2.tw; do
	[ -d $name ] || fail "no $name"
	is $(($(number $name) % 200)) 77 "$name"
done
[ ! -e slow-3.tw ] && [ ! -e slow.tw.flight ] || fail "too much is left"

# Another condition, and then none: the earlier one is forgotten.
fly failed.tw --snapshot-on 'serve:handle if result < 0' --snapshots 1 -o failed.tw
is $(($(number failed.tw) % 200)) 100
"$tw" attach --flight -t 'serve:_' --time 20s -o asked.tw "$program" >out 2>err &
command=$!
wait_until grep -q 'flight recorder of' err
sleep 0.3
expect 0 "$tw" snapshot "$program"
[ -d asked.tw ] || fail "no snapshot"
expect 0 "$tw" detach "$program"
wait $command
[ ! -e asked-2.tw ] || fail "a condition of another recording"

# As long as it traces events one by one, too.
expect 0 "$tw" attach -t 'serve:handle' --time 500ms -o plain.tw "$program"
expect 0 "$tw" report plain.tw
is "$(head -n 1 out)" "'serve: busy'" "the title"

# The program ends as it would have.
touch end
wait "$program"
is $? 7 "the program's exit code"

start
"$tw" attach --flight -t 'serve:_' --snapshot-on exit -o last.tw "$program" >out 2>err &
command=$!
wait_until grep -q 'flight recorder of' err
sleep 0.3
kill -9 "$program"
wait "$program" 2>/dev/null
wait $command
expect 0 "$tw" info last.tw
shows 'the program had ended'

start
for refused in '--snapshot-on crash' '--events 5' '--rate 5/s' '--snapshot-on sometimes'; do
	# shellcheck disable=SC2086 # an option and its value
	expect 2 "$tw" attach --flight $refused -t 'serve:_' -o no.tw "$program"
	is "$(grep -c . err)" 3 "lines for $refused"
done
expect 2 "$tw" attach --snapshot-on serve:handle -t 'serve:_' -o no.tw "$program"
touch end
wait "$program"
is $? 7
echo "all as it should be"
