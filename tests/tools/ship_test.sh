#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal    Every closed segment and its summary are in the store once, whatever dies, fails or comes twice; summaries of all segments sum to the whole.
# Method  Captures with threads, a child, recursion over borders, and losses are shipped to a folder, and to a strict object store that throws errors,
#         while shippers are killed at each step. Contents are compared by bytes, sums with those of `report`.
build=$1
. "$(dirname "$0")/lib.sh"
here=$(dirname "$common")/tools
[ -x "$build/bin/tracewheel-ship" ] || { echo "tracewheel-ship is not built here: not tested" && exit 77; }
servers=
trap 'kill $servers 2>/dev/null; rm -rf "$work"' EXIT

cat >many.c <<'EOT'
#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
#define OUT __attribute__((noinline))
OUT void leaf(int i) { __asm__ volatile("" ::"r"(i)); }
OUT void inner(int i) { leaf(i); leaf(i); __asm__ volatile(""); }
OUT void tree(int depth, int n) { for (int i = 0; i < n; i++) { inner(i); if (depth) tree(depth - 1, n / 8); } __asm__ volatile(""); }
OUT void *work(void *n) { for (int i = 0; i < 2; i++) tree(3, (int)(long)n); __asm__ volatile(""); return n; }
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
${CC:-cc} -O1 -g -fno-optimize-sibling-calls -fpatchable-function-entry=9 many.c -o many -lpthread || fail "no program"
# The rings of the first are large enough that no thread waits: a wait at the border of two segments is in the times of sums.
for policy in block drop; do
	ring=64K
	[ $policy = drop ] || ring=16M
	expect 0 "$tw" record -q --force --follow-fork --returns -t many:_ --on-full $policy --ring $ring --rotate 64K -o $policy.tw -- ./many 200
	expect 0 "$tw" report --json --top 0 $policy.tw
	mv out $policy.json
done
count=$(ls block.tw | wc -l)
[ "$count" -gt 7 ] || fail "too few segments to test: $count"

# To a folder: each segment and summary is there, the same bytes each time, and segments come back as they were.
for policy in block drop; do
	expect 0 "$tw" ship --to to-$policy --node 'web.7' $policy.tw
	says "$(ls $policy.tw | wc -l) segments stored"
	expect 0 "$tw" ship --to to-$policy --node 'web.7' $policy.tw
	says '0 segments stored'
	expect 0 "$tw" fleet report --json --top 0 to-$policy
	mv out $policy.joined
done
rm -rf .tracewheel-ship
(cd to-block && find . -type f | sort | xargs sha256sum) >first
expect 0 "$tw" ship -q --to to-block --node web-7 block.tw
(cd to-block && find . -type f | sort | xargs sha256sum) | cmp - first || fail "a second time is another object"
! find to-block/seg -name '*.zst' | grep -vqE '^to-block/seg/web-7/[0-9]{4}(/[0-9]{2}){4}/[0-9a-f]{32}-[0-9a-f]{16}-[0-9]{6}-[0-9a-f]{16}\.tws\.zst$' || fail "a path"
expect 0 "$tw" fleet fetch --node 'web-*' -o back.tw to-block
says "$count segments in back.tw"
is "$(sha256sum back.tw/*.tws | cut -c1-64 | sort)" "$(sha256sum block.tw/*.tws | cut -c1-64 | sort)" "what came back"
python3 - <<'EOT' || fail "sums of summaries"
import json
# Calls exactly, also where events are lost; times to a thousandth where none are.
for policy in "block", "drop":
    whole, joined = json.load(open(policy + ".json")), json.load(open(policy + ".joined"))
    rows, sums = ({f["name"]: f for f in d["by_function"]} for d in (whole, joined))
    assert set(rows) == set(sums), (sorted(rows), sorted(sums))
    assert joined["events"] == whole["events"] and not joined["missing_segments"]
    for name, row in rows.items():
        got = sums[name]
        assert got["calls"] == row["calls"], (policy, name, got, row)
        if sum(whole["lost"].values()):
            continue
        assert got["returned"] == row["returned"], (name, got, row)
        for key in "total", "self", "max":
            assert abs(got[key] - row[key]) <= 1e-3 * row[key] + 2e-6, (name, key, got[key], row[key])
        assert abs(got["p99"] - row["p99"]) <= 0.13 * row["p99"] + 1e-8, (name, got["p99"], row["p99"])
    for cause, lost in whole["lost"].items():
        assert joined["lost"].get(cause, 0) == lost, (policy, cause, joined["lost"], lost)
EOT

# A part of the segments is a capture of what was asked for: one that does not come is missing, and another's is none.
expect 0 "$tw" report --json --top 0 back.tw
is "$(json 'd["events"] == json.load(open("block.json"))["events"]')" True "all events came back"
cp -r to-block torn
read -r one two <<<"$(find torn/seg -name '*.zst' | head -n 2 | xargs)"
cp "$one" "$two"
rm "$one"
expect 1 "$tw" fleet fetch -t 'many:inner/*' -o torn.tw torn
says 'was set aside: it is not there'
says 'was set aside: it is another segment than its name says'
says "$((count - 2)) segments in torn.tw"
expect 1 "$tw" info torn.tw
says '2 segments are missing'
expect 1 "$tw" fleet fetch -o torn.tw to-block
says 'torn.tw. cannot be made'
expect 1 "$tw" fleet fetch -o none.tw -t 'no:such' to-block
expect 1 "$tw" fleet fetch -o none.tw --to 2h to-block
says 'no segment is of these nodes and this time'
[ ! -e none.tw ] || fail "a capture of nothing"
expect 2 "$tw" fleet fetch to-block
rm -r torn

# Of several nodes; with a segment that is absent, a file that is no summary, and one that was cut.
cp -r to-block together
expect 0 "$tw" ship -q --spool spool2 --to together --node db-1 block.tw
expect 0 "$tw" fleet report together
shows " of 2 nodes"
shows 'many:tree'
expect 0 "$tw" fleet nodes --json together
is "$(json 'sorted(n["node"] for n in d), d[0]["events"] == d[1]["events"]')" "['db-1', 'web-7'] True"
expect 0 "$tw" fleet report --json --node 'db-*' --since 1h together
is "$(json 'd["events"]')" "$(python3 -c 'import json; print(json.load(open("block.json"))["events"])')"
expect 1 "$tw" fleet report --node 'none*' together
says 'no segment is of these nodes'
expect 1 "$tw" fleet report -t 'none:*' together
says "no function matches 'none:\*'"
expect 1 "$tw" fleet report "$work/block.tw"
says 'there is no summary'
# A summary that is wrong in its last line counts for nothing.
expect 0 "$tw" fleet report --json --top 0 together
mv out before
python3 - <<'EOT' || fail "no half summary"
import ctypes, glob
zstd = ctypes.CDLL("libzstd.so.1")
zstd.ZSTD_compress.restype = zstd.ZSTD_decompress.restype = ctypes.c_size_t
packed, plain = open(glob.glob("together/**/web-7*.jsonl.zst", recursive=True)[0], "rb").read(), ctypes.create_string_buffer(1 << 20)
size = zstd.ZSTD_decompress(plain, ctypes.c_size_t(1 << 20), packed, ctypes.c_size_t(len(packed)))
half = plain.raw[:size].replace(b"web-7", b"web-9")[:-20]
again = ctypes.create_string_buffer(1 << 20)
size = zstd.ZSTD_compress(again, ctypes.c_size_t(1 << 20), half, ctypes.c_size_t(len(half)), 1)
open("together/half.jsonl.zst", "wb").write(again.raw[:size])
EOT
expect 1 "$tw" fleet report --json --top 0 together
says 'half.jsonl.zst was set aside: it was cut off'
cmp out before || fail "a part of a summary was counted"
rm together/half.jsonl.zst
summary=$(find together -name 'web-7*-000005-*.jsonl.zst')
head -c 300 "$summary" >together/cut.jsonl.zst
echo no >together/none.jsonl.zst
rm "$summary"
expect 1 "$tw" fleet losses together
says 'cut.jsonl.zst was set aside'
says 'none.jsonl.zst was set aside'
shows '^1 segment is missing, with [0-9,]* events; 0 were'
shows '^web-7, process [0-9]* many: 0 events lost; 1 segment missing'

# The store: port NAME FAULTS begins one.
store() {
	python3 -I -S "$here/fake_s3.py" "$1" "$2" >"$1.port" 2>"$1.err" &
	servers="$servers $!"
	wait_until test -s "$1.port"
	export AWS_ENDPOINT_URL=http://127.0.0.1:$(cat "$1.port") AWS_ACCESS_KEY_ID=TWACCESS AWS_SECRET_ACCESS_KEY=TWSECRET AWS_REGION=eu-central-1
}
# objects NAME: are all segments of block.tw and their summaries there, each once and as in the folder?
objects() {
	is "$(find "$1" -name 'seg*zst' | wc -l) $(find "$1" -name 'sum*zst' | wc -l)" "$count $count" "objects in $1"
	! grep -q OTHER "$1/log" || fail "an object was replaced by other bytes"
	for object in "$1"/s*zst; do
		path=${object##*/}
		cmp "$object" "to-block/${path//%//}" || fail "another object than in the folder"
	done
}
store calm ''
rm -rf .tracewheel-ship
expect 0 "$tw" ship --to s3://traces --node web-7 block.tw
objects calm
is "$(wc -l <calm/log)" $((2 * count)) "requests where nothing fails"
# What is wrong is said, and nothing is stored or lost.
for wrong in 'AWS_SECRET_ACCESS_KEY=other|refuses the signature|traces' 'AWS_REGION=|no such bucket|none' 'AWS_ENDPOINT_URL=http://127.0.0.1:9|not to be reached|traces'; do
	IFS='|' read -r setting sentence bucket <<<"$wrong"
	rm -rf .tracewheel-ship
	expect 1 env "$setting" "$tw" ship --give-up 200ms --to "s3://$bucket" --node web-7 block.tw
	says "$sentence"
	is "$(ls .tracewheel-ship/*.tws | wc -l)" "$count" "segments that wait"
done
expect 1 env AWS_ACCESS_KEY_ID= HOME="$work" "$tw" ship --to s3://traces block.tw
says 'no credentials'

# The store fails in every way, away at times, and shippers are killed before and after what they store, and at any moment. Two at once.
store hard '500:8,503:4,cut:4,lost:4,slow:1,kill-before:6,kill-after:6'
rm -rf .tracewheel-ship
python3 - "$tw" "$(rounds 6 50)" <<'EOT' || fail "killed shippers"
import os, random, subprocess, sys, time
tool, kills = sys.argv[1], int(sys.argv[2])
command = [tool, "ship", "-q", "--to", "s3://traces", "--node", "web-7", "block.tw"]
def start():
    return subprocess.Popen(command, stderr=subprocess.DEVNULL)
def tell():
    open("hard/victims.new", "w").write("\n".join(str(s.pid) for s in shippers))
    os.rename("hard/victims.new", "hard/victims")
shippers, killed, until = [start(), start()], 0, time.time() + 60
tell()
while any(s.poll() is None or s.returncode != 0 for s in shippers) and time.time() < until:
    time.sleep(random.uniform(0.002, 0.05))
    if random.random() < 0.05:
        open("hard/AWAY", "w").close()
        time.sleep(0.1)
        os.unlink("hard/AWAY")
    for i, s in enumerate(shippers):
        if killed < kills and s.poll() is None and random.random() < 0.3:
            s.kill()
        if s.poll() is not None and s.returncode != 0:
            killed += 1
            shippers[i] = start()
            tell()
            if killed >= kills:
                os.path.exists("hard/victims") and os.unlink("hard/victims")
print("killed", killed)
assert all(s.poll() == 0 for s in shippers), [s.poll() for s in shippers]
EOT
objects hard
is "$(ls .tracewheel-ship)" sent "what is left in the spool"

# While it is recorded, though the recorder keeps two segments only; nothing waits, and the files go.
mkdir live
"$tw" ship -q --follow --remove --to to-live --node n live &
shipper=$!
expect 0 "$tw" record -q --follow-fork --returns -t many:_ --on-full block --rotate 64K -o live/app.tw -- ./many 100
gone() { [ -z "$(ls live/app.tw/*.tws 2>/dev/null)" ] && [ "$(ls live/.tracewheel-ship)" = sent ]; }
wait_until gone
kill -TERM $shipper
wait $shipper || fail "the shipper's exit code"
is "$(find to-live -name '*.tws.zst' | wc -l)" "$(find to-live -name '*.jsonl.zst' | wc -l)"

# The quota: what is dropped is counted, and told to the store in the segment's place.
rm -rf .tracewheel-ship
expect 1 env AWS_ENDPOINT_URL=http://127.0.0.1:9 "$tw" ship --give-up 100ms --quota 300K --to s3://traces --node n block.tw
says 'segments\? with [0-9,]* events were dropped'
dropped=$(ls .tracewheel-ship/*.drop | wc -l)
expect 0 "$tw" ship -q --to to-quota --node n block.tw
is "$(find to-quota -name '*.tws.zst' | wc -l) $(find to-quota -name '*.jsonl.zst' | wc -l)" "$((count - dropped)) $count"
expect 1 "$tw" fleet losses --json to-quota
is "$(json 'd["dropped_segments"]')" "$dropped"

# What is no segment is set aside, and the others go.
mkdir bad.tw
cp block.tw/segment-000001.tws bad.tw
head -c 9000 block.tw/segment-000002.tws >bad.tw/segment-000002.tws
echo no >bad.tw/x.tws
ln -s /dev/zero bad.tw/zero.tws
expect 1 "$tw" ship --spool spool --to to-bad bad.tw
says 'segment-000002.tws was set aside: it is no closed segment'
says 'x.tws was set aside'
says '1 segment stored'
expect 1 "$tw" ship --to to-bad nothing.tw
says 'is no folder'
expect 2 "$tw" ship bad.tw
says '--to says where'
exit 0
