#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal    `functions` lists what can be traced and why not, from the files alone.
build=$1
. "$(dirname "$0")/lib.sh"

expect 0 "$tw" functions -t 'libsqlite3:_' sqlite3
shows '^entry  libsqlite3:sqlite3_step$'
expect 0 "$tw" functions --global -t 'libsqlite3:_' sqlite3
shows 'slot  libsqlite3:sqlite3_step .* from .*sqlite3'
expect 0 "$tw" functions --json -t 'libsqlite3:_' sqlite3
is "$(json 'd["recordable"]')" True
is "$(json '[f["way"] for f in d["functions"] if f["function"] == "sqlite3_step"]')" "['entry']"
expect 0 "$tw" functions --global --json -t 'libsqlite3:_' sqlite3
is "$(json '["sqlite3" in f["callers"] for f in d["functions"] if f["function"] == "sqlite3_step"]')" "[True]"
echo '__attribute__((patchable_function_entry(16, 11))) int answer(int a) { return a + 1; }
int main(int argc, char **argv) { return answer(argc) == 0; }' >main.c
gcc -O1 -fno-inline -o sledded main.c || fail "gcc"
expect 0 "$tw" functions -t '_:answer' ./sledded
shows 'sled   sledded:answer'
gcc -static -o static main.c || fail "gcc -static"
expect 0 "$tw" functions --json ./static
is "$(json 'd["recordable"], "static" in d["refusal"]')" "False True"
# The last line is what a terminal shows: it promises nothing.
expect 0 "$tw" functions ./static
tail -n 1 out | grep -q "^Nothing of this program can be recorded: .*statically linked" || fail "the last line"
! grep -q "can be traced at" out || fail "both nothing and something"
gcc -static-pie -o static main.c || fail "gcc -static-pie"
expect 0 "$tw" functions --json ./static
is "$(json 'd["recordable"], "static" in d["refusal"]')" "False True"
# A library, also without a name of its own, is no static program.
gcc -shared -fPIC -nostdlib -o library.so main.c || fail "gcc -shared"
expect 0 "$tw" functions --json ./library.so
is "$(json 'd["recordable"]')" True
expect 0 "$tw" functions -t '_:answer' ./sledded
shows '^0 functions can be traced at their entries, 1 through sleds and 0 through slots, in 3 objects\.$'
# The sum counts what --refused lists: one line for a place with several callers.
for way in --exclude=nothing:_ --local --global; do
	expect 0 "$tw" functions "$way" --refused -t 'sqlite3:_' sqlite3
	listed=$(awk '/^$/ { exit } { print }' out | wc -l)
	expect 0 "$tw" functions "$way" -t 'sqlite3:_' sqlite3
	shows "^$listed place[s]* cannot be traced"
done
# As all numbers.
expect 0 "$tw" functions -t 'libsqlite3:_' sqlite3
shows '^libsqlite3: 2,[0-9]* of 2,[0-9]* functions can be traced'
expect 1 "$tw" functions /etc/passwd
says "not an ELF file"
expect 1 "$tw" functions no-such-program-anywhere
says "there is no program"
