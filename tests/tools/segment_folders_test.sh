#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal    Segments of any recordings in one folder, under any names, sum to what their captures sum to; what is absent is named with its place.
# Method  A program with threads, a child and long calls is recorded twice, once with losses, in many segments. Any ten borders cut the
#         capture into folders; keys name the segments, whose folder then lacks some, holds some twice, or says which were asked for.
build=$1
. "$(dirname "$0")/lib.sh"
golden=$(realpath "$common/../golden")

cat >many.c <<'EOT'
#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
#define OUT __attribute__((noinline))
OUT void leaf(int i) { __asm__ volatile("" ::"r"(i)); }
OUT void inner(int i) { leaf(i); leaf(i); __asm__ volatile(""); }
OUT void step(int n) { for (int i = 0; i < n; i++) inner(i); __asm__ volatile(""); }
OUT void *work(void *n) { for (int i = 0; i < 3; i++) step((int)(long)n); __asm__ volatile(""); return n; }
int main(int argc, char **argv)
{
	pthread_t threads[3];
	long n = atoi(argv[1]);
	if (fork() == 0) {
		work((void *)(n / 2));
		return 3;
	}
	for (int i = 0; i < 3; i++)
		pthread_create(&threads[i], NULL, work, (void *)n);
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	wait(NULL);
	return 0;
}
EOT
${CC:-cc} -O2 -g -fpatchable-function-entry=9 many.c -o many -lpthread || fail "no program"
for policy in block drop; do
	expect 0 "$tw" record -q --force --follow-fork --returns -t many:_ --on-full $policy --ring 64K --rotate 64K -o $policy.tw -- ./many 20000
	expect 0 "$tw" report --json --top 0 $policy.tw
	mv out $policy.json
done
segments=(block.tw/*.tws)
[ ${#segments[@]} -gt 11 ] || fail "too few segments to test"

# Each segment has a key, by which it is renamed.
mkdir keys.tw
for segment in block.tw/*.tws drop.tw/*.tws; do
	expect 0 "$tw" info --json "$segment"
	key=$(json 'd["key"]')
	[[ $key =~ ^[0-9a-f]{32}-[0-9a-f]{16}-[0-9]{6}-[0-9a-f]{16}$ ]] || fail "the key '$key' of $segment"
	[ ! -e "keys.tw/$key.tws" ] || fail "two segments have one key"
	cp "$segment" "keys.tw/$key.tws"
	echo "$segment $key $(json 'd["processes"][0]["process_id"]')" >>keys
done
expect 0 "$tw" info "keys.tw/$key.tws"
shows "^key  *$key"

# All in one folder, and one twice: what both captures sum to.
cp block.tw/segment-000003.tws keys.tw/again.tws
expect 0 "$tw" report --json --top 0 keys.tw
cp out both.json
expect 0 "$tw" info keys.tw
shows '^complete  *yes'

# Cut at any ten borders: what the folders sum to, and what they make together.
python3 - "$tw" <<'EOT' || fail "sums"
import glob, json, os, random, shutil, subprocess, sys
tool = sys.argv[1]
def rows(d):
    return {f["function"]: f for f in d["by_function"]}
def load(name):
    return json.load(open(name))
block, drop, both = load("block.json"), load("drop.json"), load("both.json")
assert both["events"] == block["events"] + drop["events"]
for cause in block["lost"]:
    assert both["lost"][cause] == block["lost"][cause] + drop["lost"][cause], cause
for name, row in rows(both).items():
    parts = [rows(d)[name] for d in (block, drop) if name in rows(d)]
    for key in ("calls", "total", "self"):
        whole = sum(p[key] for p in parts)
        # How much of a loss belongs to which call is guessed from what is seen around it, in both captures.
        exact = key == "calls" or not sum(drop["lost"].values())
        assert row[key] == whole or not exact or abs(row[key] - whole) <= 1e-3 * whole, (name, key, row[key], whole)
seed = int.from_bytes(os.urandom(2), "little")
print("seed", seed)
random.seed(seed)
segments = sorted(glob.glob("block.tw/*.tws"))
borders = [0] + sorted(random.sample(range(1, len(segments)), 10)) + [len(segments)]
events = calls = 0
os.mkdir("together.tw")
order = list(range(11))
random.shuffle(order)
for n in order:
    part = f"part{n}.tw"
    os.mkdir(part)
    for segment in segments[borders[n]:borders[n + 1]]:
        name = f"{random.randrange(10**9):09}.tws"
        shutil.copy(segment, f"{part}/{name}")
        shutil.copy(segment, f"together.tw/{n}-{name}")
    done = subprocess.run([tool, "report", "--json", "--top", "0", part], capture_output=True)
    assert done.returncode == 1 and b"missing" in done.stderr, done.stderr
    d = json.loads(done.stdout)
    events += d["events"]
    calls += sum(f["calls"] for f in d["by_function"])
assert events == block["events"], (events, block["events"])
assert calls == sum(f["calls"] for f in block["by_function"])
together = json.loads(subprocess.run([tool, "report", "--json", "--top", "0", "together.tw"], capture_output=True, check=True).stdout)
for key in ("events", "lost", "by_function", "by_thread"):
    assert together[key] == block[key], key
EOT

# Absent segments are named with their place, in every view: two of the process that has most, and neither its first nor its last.
cp -r block.tw holes.tw
most=$(awk '/^block/ { print $3 }' keys | sort | uniq -c | sort -rn | awk 'NR == 1 { print $2 }')
awk -v most="$most" '/^block/ && $3 == most { print $1 }' keys | sed -n '2,3s/block/holes/p' | xargs rm
for view in info report print; do
	code=0
	"$tw" $view holes.tw >out 2>err || code=$?
	is $code 1 "$view of a capture with holes"
	grep -Eq 'missing: segments? [0-9]+( to [0-9]+)? of process [0-9]+, between [0-9.]+ and [0-9.]+ s, with [0-9,]+ events' err ||
		fail "$view does not say where segments are missing"
done
expect 1 "$tw" info --json holes.tw
is "$(json 'sum(h["events"] for h in d["holes"]) == d["account"]["missing"]["segments"]["events"] > 0')" True
is "$(json 'sum(h["last"] - h["first"] + 1 for h in d["holes"])')" 2
is "$(json 'all(0 <= h["from"] < h["to"] for h in d["holes"])')" True

# A folder that says what it was to hold lacks nothing else; what it lacks of that is missing.
mkdir asked.tw
awk '$1 ~ /^block.*00000[27]/ { print $2 }' keys >asked.tw/asked
cp block.tw/segment-000002.tws block.tw/segment-000007.tws asked.tw
expect 0 "$tw" report asked.tw
shows 'segments that were asked for'
! grep -q 'not complete' out || fail "what was not asked for is missing"
expect 0 "$tw" info --json asked.tw
is "$(json 'd["asked"], d["complete"], d["holes"]')" "True True []"
rm asked.tw/segment-000007.tws
expect 1 "$tw" report asked.tw
says '1 segment is missing'

# A segment of another boot has another clock: it is set aside, and the others are shown. So are those that are cut, or none at all.
cp "$golden/v4-stacks.tw/segment-000001.tws" keys.tw/zzz.tws
head -c 150 block.tw/segment-000002.tws >keys.tw/short.tws
echo no >keys.tw/none.tws
expect 1 "$tw" report --json --top 0 keys.tw
says 'zzz.tws was set aside: it is of another machine or boot'
says 'none.tws is damaged'
says 'short.tws is damaged'
is "$(json 'd["events"]')" "$(python3 -c 'import json; print(json.load(open("both.json"))["events"])')"
exit 0
