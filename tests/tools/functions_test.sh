#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal    `functions` lists what can be traced and why not, from the files alone.
build=$1
. "$(dirname "$0")/lib.sh"

expect 0 "$tw" functions -t 'libsqlite3:_' sqlite3
shows '^entry  libsqlite3:sqlite3_step/_$'
expect 0 "$tw" functions --global -t 'libsqlite3:_' sqlite3
shows 'slot  libsqlite3:sqlite3_step/_ .* from .*sqlite3'
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
expect 1 "$tw" functions /etc/passwd
says "not an ELF file"
expect 1 "$tw" functions no-such-program-anywhere
says "there is no program"
