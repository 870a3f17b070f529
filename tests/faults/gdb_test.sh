#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal    A debugger works on a traced program as on any other: it stops at breakpoints, shows the frames, steps out of
#         functions and continues; a breakpoint of its own on the bytes of a sled only makes tracing of that function
#         refused.
. "$(dirname "$0")/lib.sh"

if ! gdb -q -batch -nx -ex 'set startup-with-shell off' -ex run /bin/true 2>&1 | grep -q 'exited normally'; then
	echo "gdb runs no program here: not tested"
	exit 77
fi
cat >app.c <<'C'
#include <stdio.h>
__attribute__((noinline)) static int inner(int a)
{
	__asm__ volatile("" : "+r"(a));
	return a + 1;
}
__attribute__((noinline)) static int middle(int a) { int r = inner(a); __asm__ volatile("" : "+r"(r)); return r * 2; }
__attribute__((noinline)) static int outer(int a) { int r = middle(a); __asm__ volatile("" : "+r"(r)); return r + 3; }
int main(void)
{
	int sum = 0;
	for (int i = 0; i < 10; i++)
		sum += outer(i);
	printf("%d\n", sum);
	return 0;
}
C

# gdb_on WAY COMMAND...: the debugger itself is not traced, its program is
gdb_on() {
	local way=$1 commands=()
	shift
	for command in "$@"; do
		commands+=(-ex "$command")
	done
	# shellcheck disable=SC2086
	expect 0 timeout 300 "$tw" record -q --force --follow-fork $way -t 'app:_' -o app.tw -- \
		gdb -q -batch -nx -ex 'set startup-with-shell off' -ex 'set debuginfod enabled off' "${commands[@]}" ./app
}

# A breakpoint on a line of the body.
break_in_body() {
	local way=$1
	gcc -O0 -g -fpatchable-function-entry=9 -o app app.c
	gdb_on "$way" 'break app.c:5 if a == 5' run bt finish 'delete' continue
	shows '^140'
	shows '#0 .*inner (a=.*5)'
	shows 'middle (a=.*5)'
	shows 'outer (a=.*5)'
	shows 'main ()'
	shows 'Value returned is .* = 6'
	shows 'exited normally'
	expect 0 "$tw" report --json --top 0 app.tw
	[ "$(json "sum(f['calls'] for f in d['by_function'] if f['name'].startswith('app:inner/'))")" = 10 ] ||
		fail "$way: not all ten calls under the debugger were recorded"
}

# On the sled itself, where gdb puts one for a function's name, both do not fit.
break_at_sled() {
	local way=$1
	gcc -O1 -g -fpatchable-function-entry=9 -o app app.c
	gdb_on "$way" 'break inner' run bt delete continue
	shows '^140'
	shows 'middle (a='
	shows 'exited normally'
	expect 0 "$tw" report --json --top 0 app.tw
	[ "$(json "[f['calls'] for f in d['by_function'] if f['name'].startswith('app:middle/')]")" = '[10]' ] ||
		fail "$way: the functions without a breakpoint were not recorded"
}

# In the short form each way meets one of them: those that see ends, the breakpoint in the body, where gdb steps out.
for way in "${ways[@]}"; do
	case "$way ${TW_TEST_LONG:+long}" in
	--global*) continue ;;
	"--local ") break_at_sled "$way" ;;
	*" ") break_in_body "$way" ;;
	*)
		break_in_body "$way"
		break_at_sled "$way"
		;;
	esac
done
