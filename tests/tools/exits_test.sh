#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal    --exceptions: every call of a thread that ends by pthread_exit or cancellation has its end, that of the thread's
#         first function and of main too; a thread that returns has no such end.
# Method  A program says how many calls each function gets; events are counted by function and kind. Plain and with
#         sleds, by each compiler that is here; one stack is used by threads that end in one way and in the other.
build=$1
. "$(dirname "$0")/lib.sh"

cat >exits.c <<'C'
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>
#define CALLED __attribute__((noinline, noipa))
volatile int sink;
static pthread_key_t key;
static int ready[2];
CALLED void leaf(int n) { sink = n; }
CALLED void quit(int n) { sink = n; pthread_exit(NULL); }
CALLED int deep(int n) { int r = 1; if (n) r = deep(n - 1); else quit(n); sink = r; return r + 1; }
CALLED void *first_direct(void *p) { leaf(1); pthread_exit(p); }
CALLED void *first_deep(void *p) { sink = deep(3); return p; }
CALLED void *first_tail(void *p) { sink = 2; quit(1); return p; }
CALLED void sleeps(void) { for (int n = (int)write(ready[1], "", 1); n; n |= 1) pause(); }
CALLED void *first_cancelled(void *p) { pthread_setspecific(key, p); sleeps(); return p; }
CALLED void *first_returns(void *p) { leaf(2); return p; }
CALLED void clean(void *p) { leaf(3); sink = p != NULL; }
CALLED void *first_cleaned(void *p)
{
	pthread_cleanup_push(clean, p);
	quit(3);
	pthread_cleanup_pop(0);
	return p;
}
static void runs(void *(*first)(void *))
{
	char byte;
	pthread_t id;
	pthread_create(&id, NULL, first, ready);
	if (first == first_cancelled && read(ready[0], &byte, 1) == 1)
		pthread_cancel(id);
	pthread_join(id, NULL);
}
int main(void)
{
	void *(*const all[])(void *) = {first_direct, first_returns, first_deep, first_returns, first_tail,
					first_cancelled, first_returns,
#ifdef __EXCEPTIONS
					first_cleaned,
#endif
					first_returns};
	if (pipe(ready) || pthread_key_create(&key, clean))
		return 1;
	for (int round = 0; round < 5; round++)
		for (unsigned i = 0; i < sizeof all / sizeof *all; i++)
			runs(all[i]);
	puts("done");
	fflush(stdout);
	pthread_exit(NULL);
}
C

# ends FUNCTION RETURNS EXCEPTIONS
ends() {
	awk -v name="exits:$1" '
		{ sub("/_", "", $4) }
		$4 == name && $3 == "return_from" { returns++ }
		$4 == name && $3 == "exception_from" && /exit pthread_exit/ { exits++ }
		END { print returns + 0, exits + 0 }' text >seen
	is "$(cat seen)" "$2 $3" "$how: returns and exits of $1"
}

for cc in gcc clang; do
	command -v $cc >/dev/null || continue
	for how in '-O0' '-O2' '-O2 -fpatchable-function-entry=9' '-O2 -fno-asynchronous-unwind-tables -fexceptions'; do
		# shellcheck disable=SC2086
		$cc $how -g -rdynamic -pthread -o exits exits.c 2>err || fail "$cc $how"
		how="$cc $how"
		expect 0 "$tw" record -q --force --on-full block --exceptions -t 'exits:_' -o exits.tw -- ./exits
		shows '^done$'
		"$tw" print exits.tw >text || fail "$how: print"
		for first in direct deep tail cancelled; do
			ends first_$first 0 5
		done
		# Without -fexceptions, handlers of C are not called by unwinding.
		cleaned=0
		case $how in *-fexceptions*) cleaned=5 ;; esac
		ends first_cleaned 0 $cleaned
		ends first_returns 20 0
		ends quit 0 $((10 + cleaned))
		ends deep 0 20
		ends sleeps 0 5
		ends main 0 1
		ends leaf $((30 + cleaned)) 0
		ends clean $((5 + cleaned)) 0
		# All ends are those of calls: none is shown twice, and none is missing.
		"$tw" print --tree exits.tw >tree || fail "$how: print --tree"
		grep -E 'still open|no call seen|no return seen' tree >&2 && fail "$how: calls without ends, or ends without calls"
	done
done
exit 0
