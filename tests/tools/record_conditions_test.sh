#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal    `record -t 'PATTERN if EXPR'`: each pattern has a condition of its own, decided in the program: by number, by names of debug information or
#         prototypes, in the program, its libraries, libraries that are opened later, and functions that the program declares. The first pattern that
#         names a function decides; --when or --match is for patterns without a condition. All other calls of a function are not there.
# Method  A program that makes known calls. The calls of each recording are compared with a model of all calls.
build=$1
. "$(dirname "$0")/lib.sh"
cat >app.h <<'C'
#define F __attribute__((noinline, noipa)) extern
#ifdef __cplusplus
extern "C" {
#endif
F int near_one(int size, const char *name);
F int far_one(int count, int size);
F int late_one(int depth, int size);
#ifdef __cplusplus
}
#endif
C
cat >lib.c <<'C'
#include "app.h"
#ifdef LATE
int late_one(int depth, int size) { volatile int sum = depth; sum = sum * 3 + size; return sum; }
int late_two(int depth) { volatile int sum = depth; sum = sum * 3 - 1; return sum; }
#else
int far_one(int count, int size) { return count - size; }
int far_two(int count) { return count + 2; }
#endif
C
cat >app.cc <<'C'
#include "app.h"
#include <dlfcn.h>
#include <stdlib.h>
extern "C" int far_two(int count);
namespace shop { __attribute__((noinline, noipa)) int sell(int price) { return price / 2; } }
int near_one(int size, const char *name) { return size + name[0]; }
int main(int argc, char **argv)
{
	void *library = argc > 1 ? dlopen(argv[1], RTLD_NOW) : NULL;
	int (*late_one)(int, int) = library ? (int (*)(int, int))dlsym(library, "late_one") : NULL;
	int (*late_two)(int) = library ? (int (*)(int))dlsym(library, "late_two") : NULL;
	volatile int sum = 0;
	for (int i = 0; i < 100; i++) {
		sum += near_one(i, i % 2 ? "odd" : "even") + far_one(i, 100 - i) + far_two(i) + shop::sell(i);
		if (late_one)
			sum += late_one(i, 2 * i) + late_two(i);
	}
	return sum == 0;
}
C
# Without libstdc++: the agent knows no names of the source.
{ gcc -g -O1 -fPIC -shared -o libfar.so lib.c && gcc -g -O1 -fPIC -shared -DLATE -o liblate.so lib.c && g++ -g -O1 -c app.cc &&
	gcc -o app app.o -L. -lfar -Wl,-rpath,"$PWD"; } || fail gcc

# made NAME PATTERN...: records with these options, and keeps the events.
made() {
	expect 0 "$tw" record -q --force --args -o "$1.tw" "${@:2}" -- ./app ./liblate.so
	expect 0 "$tw" print --format json "$1.tw"
	mv out "$1.events"
}
made number -t 'near_one if $1 > 89' -t 'libfar:far_one if $2 < 6' -t libfar:far_two
made name -t 'app:near_one if size >= 95 and name == "odd"' -t 'libfar:_ if count < 3' -t 'liblate:late_one if size > 190' -t 'liblate:late_two if depth == 7'
made first -t 'libfar:far_one if count < 3' -t 'libfar:{far_one,far_two} if count < 5'
made plain -t libfar:far_one -t 'libfar:_ if count < 5'
made when -t 'libfar:far_one if size < 4' -t libfar:far_two -t near_one --when '$1 > 97'
made spec -t 'libfar:far_one if size < 4' -t libfar:far_two --match "[{['\$1'|'_'], [{'>', '\$1', 97}], []}]"
made source -t 'shop::sell if price > 96' -t 'near_one if size < 2'
# Types are not needed: by number, without --args.
expect 0 "$tw" record -q --force -o bare.tw -t 'near_one if $1 > 89' -t 'liblate:late_two if $1 > 97' -- ./app ./liblate.so
expect 0 "$tw" print --format json bare.tw
mv out bare.events
python3 -I -S - <<'P' || fail "other calls were recorded"
import json
def calls(name):
    found = {}
    for line in open(name + ".events"):
        e = json.loads(line)
        if e["kind"] == "call":
            found.setdefault(e["function"], []).append(e.get("args"))
    return found
near = lambda test: [[i, "odd" if i % 2 else "even"] for i in range(100) if test(i)]
far = lambda test: [[i, 100 - i] for i in range(100) if test(i)]
one = lambda test: [[i] for i in range(100) if test(i)]
late = lambda test: [[i, 2 * i] for i in range(100) if test(i)]
expected = {
    "number": {"near_one": near(lambda i: i > 89), "far_one": far(lambda i: 100 - i < 6), "far_two": one(lambda i: True)},
    "name": {"near_one": near(lambda i: i >= 95 and i % 2), "far_one": far(lambda i: i < 3), "far_two": one(lambda i: i < 3),
             "late_one": late(lambda i: 2 * i > 190), "late_two": one(lambda i: i == 7)},
    "first": {"far_one": far(lambda i: i < 3), "far_two": one(lambda i: i < 5)},
    "plain": {"far_one": far(lambda i: True), "far_two": one(lambda i: i < 5)},
    "when": {"far_one": far(lambda i: 100 - i < 4), "far_two": one(lambda i: i > 97), "near_one": near(lambda i: i > 97)},
    "spec": {"far_one": far(lambda i: 100 - i < 4), "far_two": one(lambda i: i > 97)},
    "source": {"shop::sell(int)": one(lambda i: i > 96), "near_one": near(lambda i: i < 2)},
}
for name, wanted in expected.items():
    assert calls(name) == wanted, (name, calls(name), wanted)
assert {f: len(a) for f, a in calls("bare").items()} == {"near_one": 10, "late_two": 2}, calls("bare")
P
# ---- declared functions
expect 0 "$tw" record -q --force -o declared.tw -t 'bank:withdraw if $1 > 990 and $2 < 3' -t 'bank:account if $1 < 955' -t bank:supervisor -- "$build/bin/actors" bank --actors 2 --messages 400
expect 0 "$tw" print --format json declared.tw
mv out declared.events
expect 0 "$tw" record -q --force -o all.tw -t bank:_ -- "$build/bin/actors" bank --actors 2 --messages 400
expect 0 "$tw" print --format json all.tw
python3 -I -S - <<'P' || fail "other calls of declared functions were recorded"
import json
def calls(name): return [(e["function"], e["args"]) for e in map(json.loads, open(name)) if e["kind"] == "call"]
def number(text): return int(str(text), 0)
def is_chosen(call):
    function, args = call
    if function == "withdraw":
        return number(args[0]) > 990 and number(args[1]) < 3
    return function == "supervisor" or number(args[0]) < 955
found, every = calls("declared.events"), calls("out")
assert sorted(map(str, found)) == sorted(str(c) for c in every if is_chosen(c)), (found[:5], len(every))
assert {f for f, _ in found} == {"withdraw", "account", "supervisor"} and len(found) < len(every) / 2, len(found)
P
# ---- refused
no_record() {
	expect 2 "$tw" record -q --force -o x.tw "${@:2}" -- ./app
	says "$1"
	[ ! -e x.tw ] || fail "a capture was made"
}
no_record "the condition 'length > 4' is refused: .*no parameter 'length'" -t 'app:near_one if size > 4' -t 'libfar:far_one if length > 4'
no_record "the condition '\$1 >' is refused" -t 'app:near_one if size > 4' -t 'libfar:far_one if $1 >'
no_record "one of them, once" -t 'app:near_one if size > 4' --when '$1 > 4' --match '[{_, [], []}]'
echo PASS
