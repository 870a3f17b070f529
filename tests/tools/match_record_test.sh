#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal    A specification given to record decides which calls are recorded and what is added to them, for GOT slots and
#         for declared functions; an invalid one is refused before the program starts; options may follow the capture's
#         name.
build=$1
. "$(dirname "$0")/lib.sh"

expect 0 "$tw" record -o all.tw -t 'libc:malloc' --args=raw -- sqlite3 :memory: 'select 1'
expect 0 "$tw" record -o big.tw -t 'libc:malloc' --when '$1 >= 1000' --args=raw -- sqlite3 :memory: 'select 1'
"$tw" print --format json all.tw >all.json
"$tw" print --format json big.tw >big.json
python3 -c '
import json
sizes = lambda name: [json.loads(line)["args"][0] for line in open(name)]
big, every = sizes("big.json"), sizes("all.json")
assert big == [s for s in every if s >= 1000], (big, every)
assert 0 < len(big) < len(every), (len(big), len(every))
' || fail "--when selected other calls"

spec="[{['\$1'|'_'],[{'<','\$1',1000}],[]}, {['\$1'|'_'],[],[{message,{{large,{'div','\$1',1000}}}}]}]"
expect 0 "$tw" record --global -o extra.tw -t 'libc:malloc' --match "$spec" -- sqlite3 :memory: 'select 1'
expect 0 "$tw" print --format erlang --bare-pids extra.tw
shows "^{trace,<0.1.0>,call,{libc,malloc,'_'},{large,[0-9]*}}\.$"
shows "^{trace,<0.1.0>,call,{libc,malloc,'_'}}\.$"
expect 0 "$tw" print extra.tw
shows 'call libc:malloc from .*  {large,[0-9]*}$'
"$tw" print --format json extra.tw | python3 -c '
import json, sys
assert any(json.loads(line).get("extra", "").startswith("{large,") for line in sys.stdin)' || fail "no extra in JSON"

# Declared functions, in a program that does not record itself.
expect 0 "$tw" record -o declared.tw -t 'numbers:_' --when '$1 > 9000' -- "$build/examples/example-count_calls"
expect 0 "$tw" print --format erlang --bare-pids declared.tw
shows "{trace,<0.1.0>,call,{numbers,collatz,\[9232\]}}\."
[ "$(wc -l <out)" -ge 1 ] || fail "nothing"

# Guards with one answer for all calls are refused, with a suggestion; declared functions take any terms.
# refuses GUARD SENTENCE
refuses() {
	expect 2 "$tw" record -o wrong.tw -t 'libc:malloc' --when "$1" -- sqlite3 :memory: 'select 1'
	says "$2"
}
refuses '$7 > 1' 'calls have $1 to $6 here'
refuses '$1 == "hello"' 'write string_at($2) == "text"'
refuses "string_at(\$1) == 'hello'" 'in double quotes'
refuses '!$1' 'write !($1 > 0)'
refuses '$1 && $1 > 2' 'write $1 /= 0'
refuses '$1' 'never true'
expect 0 "$tw" record --force -o declared.tw -t 'numbers:_' --when '$1 == "x" or $7 == a' -- "$build/examples/example-count_calls"
expect 1 "$tw" match --when 'string_at($1) == "x"'
expect 0 "$tw" match --when '$7 == "x"'
cat >named.c <<'C'
__attribute__((noipa)) int ask(const char *name, int size) { return size; }
int main(void) { return ask("hello", 1) + ask("other", 2) - 3; }
C
gcc -w -g -O2 -fpatchable-function-entry=9 -o named named.c || fail "gcc"
for guard in "name == 'hello':double quotes" 'size == "hello":never a text' '!size:of true or false' "size == hello:no parameter 'hello'" '$7 == size:$1 to $6'; do
	expect 2 "$tw" record -o wrong.tw -t 'named:ask' --when "${guard%:*}" -- ./named
	says "${guard##*:}"
done
for guard in 'name == "hello"' 'string_at($1) == "hello"' 'string_at($1) == <<"hello">>'; do
	expect 0 "$tw" record --force -o named.tw -t 'named:ask' --when "$guard" -- ./named
	expect 0 "$tw" info --json named.tw
	! (needs_strings) >/dev/null || is "$(json 'd["events"]')" 1 "$guard"
done

for wrong in "--when '\$1 >'" "--match '[{'" "--match foo" "--when 'nosuch(\$1)'" "--args=7" "--args=x" \
	"--when '\$1 > 1' --match '[]'"; do
	eval expect 2 "'$tw'" record -o never.tw "$wrong" -- ls
	[ ! -e never.tw ] || fail "a capture was made for $wrong"
done
says 'Usage: tracewheel record'

expect 0 "$tw" report extra.tw --top 1
expect 0 "$tw" info extra.tw --json
is "$(json 'd["complete"]')" True
