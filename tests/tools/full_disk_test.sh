#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal    A full disk neither stops nor kills the program; it is reported, and stored events can be read.
build=$1
. "$(dirname "$0")/lib.sh"
make_work
sed -i "s/2000/$(rounds 4000 60000)/" work.sql

mkdir small
code=0
# shellcheck disable=SC2016 # expanded inside
privately bash -c '
	mount -t tmpfs -o size=128k none small || exit 99
	"$0" record -t "libsqlite3:_" -t "libc:_" -o small/a.tw -- sqlite3 a.db <work.sql >out 2>err
	code=$?
	cp -r small/a.tw kept.tw
	exit $code' "$tw" || code=$?
if [ "$code" = 99 ]; then
	echo "no file systems may be mounted here: not tested"
	exit 77
fi
sqlite3 b.db <work.sql >expected
cmp -s out expected || fail "the program answered otherwise on a full disk"
says "small/a.tw"
says "LOST"
expect 1 "$tw" info --json kept.tw
[ "$(json 'd["events"]')" -gt 0 ] || fail "nothing can be read"
# Losses may be missing from the file; then no view may report success.
expect 1 "$tw" info kept.tw
! grep -qE '^lost +nothing$' out || fail "a full disk, and nothing lost?"
expect 1 "$tw" report kept.tw
! grep -q '^Nothing was lost' out || fail "a full disk, and nothing lost?"
# Recovery cannot restore events that did not fit, and does not claim to.
expect 1 "$tw" recover kept.tw
expect 1 "$tw" info --json kept.tw
[ "$(json 'd["complete"]')" = False ] || [ "$(json 'sum(d["lost"].values())')" -gt 0 ] || fail "complete after all?"

# Rings that grow while the disk is full hold events that do not fit; their memory is not damaged, and the program is not blamed.
cat >many.c <<'C'
__attribute__((noinline)) static int step(int i) { __asm__ volatile("" : "+r"(i)); return i; }
int main(void)
{
	int sum = 0;
	for (int i = 0; i < 300000; i++)
		sum += step(i) & 1;
	return sum != 150000;
}
C
gcc -O1 -fpatchable-function-entry=9 -o many many.c || fail "gcc"
for round in $(seq "$(rounds 3 8)"); do
	# shellcheck disable=SC2016 # expanded inside
	expect 1 privately bash -c '
		mount -t tmpfs -o size=32k none small
		"$0" record -q --args -t "many:_" -o small/a.tw -- ./many 2>said
		code=$?
		"$0" info --json small/a.tw >info.json
		exit $code' "$tw"
	! grep -q "overwrote" said || fail "round $round: the program is said to have damaged its rings"
	# One number, which has all.
	is "$(grep -c '[0-9] events' said)" 1 "numbers of events: $(cat said)"
	grep -o 'LOST [0-9,]* events' said | tr -dc '0-9\n' >>totals
	cat info.json >>infos
done
# Stored, told, and not stored: each call is counted once, wherever the disk took the account.
python3 - <<'EOT' || fail "not every call is accounted for"
import json
text, rounds, at = open("infos").read(), [], 0
while at < len(text.rstrip()):
    d, at = json.JSONDecoder().raw_decode(text, at)
    at += 1
    missing = d["account"]["missing"]
    rounds.append((d["events"], sum(d["lost"].values()), missing["unstored"]["events"]))
    # Without the account the number is not known, and views say so.
    assert rounds[-1][2] or missing["cut"]["more"], missing
print(rounds)
totals = [int(line) for line in open("totals")]
assert all(stored + total == 300001 for (stored, _, _), total in zip(rounds, totals, strict=True)), totals
told = [sum(numbers) for numbers in rounds if numbers[2]]
assert told and set(told) == {300001}, told
EOT
