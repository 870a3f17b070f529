#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal    Every view shows a thread's system number and its last name, whichever thread set it and when, and however briefly
#         the thread lives; and shows the end of the program: an exit code or a signal.
# Method  Threads that get names after their first events, by pthread_setname_np(), by prctl() and from their parent, and end a moment
#         later, or live until the program ends. All views
#         are searched for these names; the numbers are those that the program printed itself.
build=$1
. "$(dirname "$0")/lib.sh"

cat >names.c <<'C'
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>
__attribute__((noipa)) void work(int number) { __asm__ volatile("" : : "r"(number)); }
static int begun, named;
static void *run(void *name)
{
	work(1);
	__atomic_store_n(&begun, 1, __ATOMIC_RELEASE);
	if (strcmp(name, "by-itself") == 0)
		pthread_setname_np(pthread_self(), name);
	else if (strcmp(name, "by-prctl") == 0)
		prctl(PR_SET_NAME, name);
	else
		while (!__atomic_load_n(&named, __ATOMIC_ACQUIRE))
			;
	work(2);
	printf("%s %d\n", (char *)name, gettid());
	fflush(stdout);
	__atomic_store_n(&named, 2, __ATOMIC_RELEASE);
	if (strcmp(name, "at-the-end") == 0)
		pause();
	return NULL;
}
int main(int argc, char **argv)
{
	static char *const all[] = {"by-itself", "by-prctl", "by-parent", "at-the-end"};
	for (int i = 0; i < 4; i++) {
		pthread_t thread;
		begun = named = 0;
		pthread_create(&thread, NULL, run, all[i]);
		if (i >= 2) {
			while (!__atomic_load_n(&begun, __ATOMIC_ACQUIRE))
				;
			pthread_setname_np(thread, all[i]);
			__atomic_store_n(&named, 1, __ATOMIC_RELEASE);
		}
		if (i < 3)
			pthread_join(thread, NULL);
		else /* It lives when the program ends. */
			while (__atomic_load_n(&named, __ATOMIC_ACQUIRE) != 2)
				;
	}
	if (argc > 1 && *argv[1] == 's')
		raise(SIGTERM);
	if (argc > 1 && *argv[1] == 'a')
		abort();
	return argc > 1 ? atoi(argv[1]) : 0;
}
C
gcc -O1 -fpatchable-function-entry=9 -o names names.c -lpthread || fail "the compiler"
"$tw" record -q --on-full block --returns -t 'names:{work,run,main}' -o n.tw -- ./names >told || fail "record"
[ "$(wc -l <told)" = 4 ] || fail "the program told $(cat told)"
while read -r name number; do
	for view in "print" "print --tree" "print --format json" "print --format chrome" "report --top 0" "report --json" \
		"flame --folded --by-process"; do
		# shellcheck disable=SC2086
		expect 0 "$tw" $view n.tw
		shows "$name"
		shows "$number"
	done
	expect 0 "$tw" print --thread "$name" --format json n.tw
	is "$(python3 -c 'import json; print({e["thread"] for e in map(json.loads, open("out")) if e["kind"] != "lost"})')" "{$number}" "thread of --thread $name"
	expect 0 "$tw" report --json n.tw
	is "$(json "[t['thread_name'] for t in d['by_thread'] if t['thread'] == $number]")" "['$name']" "name in the report"
	expect 0 "$tw" print --format chrome n.tw
	is "$(json "[e['args']['name'] for e in d['traceEvents'] if e['name'] == 'thread_name' and e['tid'] == $number]")" "['$name']" "track"
done <told

# How it ended.
expect 0 "$tw" info n.tw
shows '^ended         exit code 0$'
expect 0 "$tw" report n.tw
! grep -q 'program ended' out || fail "a normal end is reported"
expect 3 "$tw" record -q --force -t names:work -o n.tw -- ./names 3
expect 0 "$tw" info --json n.tw
is "$(json 'd["ending"]')" "{'exit_code': 3}" "info of exit code 3"
expect 0 "$tw" report n.tw
shows '^The program ended: exit code 3\.$'
for kind in "signal 15 TERM" "abort 6 ABRT"; do
	read -r how number short <<<"$kind"
	expect $((128 + number)) "$tw" record -q --force -t names:work -o n.tw -- ./names "$how"
	expect 0 "$tw" info n.tw
	shows "^ended         killed by signal $number (SIG$short)$"
	expect 0 "$tw" report n.tw
	shows "^The program ended: killed by signal $number (SIG$short)\.$"
	expect 0 "$tw" report --json n.tw
	is "$(json 'd["ending"]')" "{'signal': $number, 'name': 'SIG$short'}" "report of signal $number"
done
