#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal    Code is loaded and unloaded while threads are traced, and none of them ever waits for it; each load is traced from its
#         first call on.
# Method  Two threads call all the time while a third one opens and closes an object with entry sleds, or declares and unloads a
#         module; the kernel counts how
#         often a thread gives up its processor by itself. A page fault beside the loader's own mmap() may wait in the kernel,
#         so one of three runs must have no wait at all.
build=$1
sources=$(realpath "$(dirname "$0")/../../bench/native")
. "$(dirname "$0")/lib.sh"
${CC:-cc} -O2 -pthread "$sources/load_work.c" -o load_work || fail "no program"
${CC:-cc} -O2 -shared -fPIC -fpatchable-function-entry=9 "$sources/loaded.c" -o libloaded.so || fail "no object"
expect 0 "$tw" compact libloaded.so
least=
for _ in 1 2 3; do
	expect 0 "$tw" record -q -t libc:getppid -t 'libloaded:_' --allow-nothing --force -o a.tw -- ./load_work ./libloaded.so 50
	waits=$(cut -d' ' -f2 out)
	expect 0 "$tw" report --json -t 'libloaded:_' a.tw
	json 'd["calls"] == 100 or 1 // 0' >calls
	[ -n "$least" ] && [ "$least" -le "$waits" ] || least=$waits
	[ "$least" -gt 0 ] || break
done
is "$least" 0 "threads waited while code was loaded"

# Declared modules: each version's first call is counted (the program checks it), and no thread waits.
${CC:-cc} -O2 -pthread -I"$sources/../../include" "$sources/reload_work.c" -L"$build/lib" -ltracewheel -Wl,-rpath,"$(realpath "$build/lib")" \
	-o reload_work || fail "no program"
least=
for _ in 1 2 3; do
	expect 0 ./reload_work on 100
	waits=$(cut -d' ' -f2 out)
	[ -n "$least" ] && [ "$least" -le "$waits" ] || least=$waits
	[ "$least" -gt 0 ] || break
done
is "$least" 0 "threads waited while modules were declared and unloaded"
