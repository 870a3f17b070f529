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
cat >sums.py <<'EOT'
import json, sys
# Calls exactly, also where events are lost; times to a thousandth where none are.
for policy in sys.argv[1:]:
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
python3 sums.py block drop || fail "sums of summaries"
# Borders of segments anywhere: every other size of segments, of other calls.
for round in $(seq "$(rounds 1 20)"); do
	expect 0 "$tw" record -q --force --returns -t many:_ --on-full block --ring 16M --rotate $((64 + RANDOM % 100))K -o any.tw -- ./many $((50 + RANDOM % 100))
	expect 0 "$tw" report --json --top 0 any.tw
	mv out any.json
	rm -rf to-any
	expect 0 "$tw" ship -q --spool spool-any --to to-any --node n any.tw
	expect 0 "$tw" fleet report --json --top 0 to-any
	mv out any.joined
	python3 sums.py any || fail "sums of $(ls any.tw | wc -l) segments, round $round"
done

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

# One request through nodes with clocks hours apart: the same tree and bounds as of captures that are merged by hand.
"$build/tests/tools_merge_test" captures "$work" || fail "no captures"
mkdir tmp
for node in a b c; do
	expect 0 "$tw" ship -q --spool spool-$node --to to-story --node $node $node.tw
done
expect 0 "$tw" merge -o all.tw a.tw b.tw c.tw
tail -n +2 out >tree
expect 0 "$tw" seq --label 1 all.tw
cat out >>tree
grep -q '^  b  clock .* within ' tree || fail "no bounds"
expect 0 env TMPDIR="$work/tmp" "$tw" fleet story 1 to-story
tail -n +2 out | cmp - tree || fail "another tree than of the merged captures"
expect 0 "$tw" seq --label 1 --format json all.tw
mv out tree
expect 0 env TMPDIR="$work/tmp" "$tw" fleet story --json -o story.tw 1 to-story
cmp out tree || fail "another tree as JSON"
expect 0 "$tw" seq --label 1 --format json story.tw
expect 0 env TMPDIR="$work/tmp" "$tw" fleet story --node b --json 1 to-story
expect 1 env TMPDIR="$work/tmp" "$tw" fleet story 99 to-story
says 'no segment .* knows the label 99'
expect 1 "$tw" fleet story -o story.tw 1 to-story
says 'story.tw. exists'
is "$(ls -A tmp; ls -A | grep tracewheel-story)" "" "temporary folders"

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
# Each slowest call has a key, by which its segments come back and have that call. All rows together are the sums.
expect 0 "$tw" fleet slowest --json --top 0 to-block
mv out slowest.json
expect 0 "$tw" fleet slowest --top 1 -t 'many:tree/*' to-block
shows "^    web-7 [0-9a-f]*-[0-9a-f]*-[0-9]*-[0-9a-f]*"
python3 - "$tw" <<'EOT' || fail "the slowest calls"
import json, subprocess, sys
rows, joined = json.load(open("slowest.json"))["slowest"], json.load(open("block.joined"))["by_function"]
assert [r["max"] for r in rows] == sorted((r["max"] for r in rows), reverse=True)
for function in joined:
    mine = [r for r in rows if r["name"] == function["name"]]
    assert max(r["max"] for r in mine) == function["max"], (function, mine[0])
    assert sum(r["returned"] for r in mine) == function["returned"], function
crossing = [r for r in rows if "+" in r["key"]]
assert crossing and len(crossing) < len(rows)
for number, row in enumerate((crossing[0], crossing[-1], next(r for r in rows if "+" not in r["key"]))):
    capture = f"slow{number}.tw"
    subprocess.run([sys.argv[1], "fleet", "fetch", "--key", row["key"], "-o", capture, "to-block"], check=True, stderr=subprocess.DEVNULL)
    report = json.loads(subprocess.run([sys.argv[1], "report", "--json", "--top", "0", capture], stdout=subprocess.PIPE).stdout)
    slowest = next(f["max"] for f in report["by_function"] if f["name"] == row["name"])
    assert slowest >= row["max"] * 0.999 - 2e-6, (row, slowest)
    import os
    assert sum(n.endswith(".tws") for n in os.listdir(capture)) == 1 + int((row["key"].split("+") + ["0"])[1]), row["key"]
EOT
expect 1 "$tw" fleet slowest -t 'none:*' to-block
says "no function matches 'none:\*'"
expect 2 "$tw" fleet fetch --key 0123 -o none.tw to-block
says '--key is a key'
expect 2 "$tw" fleet losses --sort max to-block

# What changed between nodes is what `report --diff` says of their captures; between times, likewise.
expect 0 "$tw" ship -q --spool spool3 --to together --node old-1 drop.tw
expect 0 "$tw" fleet diff --json --top 0 --node 'web-*' --old-node 'old-*' together
mv out between.json
expect 0 "$tw" fleet diff --node 'web-*' --old-node 'old-*' together
shows '^new  [0-9,]* events of 1 node'
shows 'many:tree'
expect 0 "$tw" report --json --top 0 --diff drop.tw block.tw
python3 - <<'EOT' || fail "differences of nodes"
import json
nodes, captures = json.load(open("between.json")), json.load(open("out"))
rows, wanted = ({f["name"]: f for f in d["by_function"]} for d in (nodes, captures))
assert set(rows) == set(wanted)
for name, row in wanted.items():
    for key in "old_calls", "new_calls", "calls_change":
        assert rows[name][key] == row[key], (name, key, rows[name], row)
    assert abs(rows[name]["new_self"] - row["new_self"]) <= 1e-3 * row["new_self"] + 2e-6, (name, rows[name], row)
EOT
cat >zstd.py <<'EOT'
import ctypes
zstd = ctypes.CDLL("libzstd.so.1")
zstd.ZSTD_compress.restype = zstd.ZSTD_decompress.restype = ctypes.c_size_t
def read(path):
    packed, plain = open(path, "rb").read(), ctypes.create_string_buffer(1 << 22)
    size = zstd.ZSTD_decompress(plain, ctypes.c_size_t(1 << 22), packed, ctypes.c_size_t(len(packed)))
    return plain.raw[:size]
def write(path, text):
    again = ctypes.create_string_buffer(1 << 22)
    size = zstd.ZSTD_compress(again, ctypes.c_size_t(1 << 22), text, ctypes.c_size_t(len(text)), 1)
    open(path, "wb").write(again.raw[:size])
EOT
cp -r to-block/sum times
python3 - <<'EOT' || fail "older summaries"
import glob, json, sys
sys.path.insert(0, ".")
import zstd
for number, path in enumerate(glob.glob("times/**/*.zst", recursive=True)):
    rows = [json.loads(line) for line in zstd.read(path).splitlines()]
    for row in rows:
        row["seg"] = "0" * 32 + row["seg"][32:]
        if row["kind"] == "segment":
            row["from"], row["to"] = (row[key] - 5400 * 10**9 for key in ("from", "to"))
    zstd.write(f"times/{number}.jsonl.zst", b"".join(json.dumps(row).encode() + b"\n" for row in rows))
EOT
expect 0 "$tw" fleet diff --json --since 1h times
is "$(json 'd["old"]["calls"] == d["new"]["calls"] > 0, all(not f["calls_change"] and not f["self_change"] for f in d["by_function"])')" 'True True'
expect 1 "$tw" fleet diff --since 10m times
says 'no segment is of the old nodes and time'
expect 0 "$tw" fleet diff --since 10m --old-from 2h --old-to 1h -t 'many:tree/*' times
expect 1 "$tw" fleet diff --since 1h -t 'none:*' times
says "no function matches 'none:\*'"
expect 2 "$tw" fleet diff times
says 'diff compares two times or two sets of nodes'
rm -r times
find together -path '*/sum/*' -name 'old-1-*' -delete
# A summary that is wrong in its last line counts for nothing.
expect 0 "$tw" fleet report --json --top 0 together
mv out before
python3 - <<'EOT' || fail "no half summary"
import glob, sys
sys.path.insert(0, ".")
import zstd
zstd.write("together/half.jsonl.zst", zstd.read(glob.glob("together/**/web-7*.jsonl.zst", recursive=True)[0]).replace(b"web-7", b"web-9")[:-20])
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
# The bucket is asked as the folder is, by pages of its list, though it has objects of others, and fails at times; segments come back.
cp -r calm asked
touch 'asked/sum%2026%a & b' 'asked/sum%2099%z & z'
cp "$(ls asked/seg* | head -n 1)" asked/summary%other.jsonl.zst
for faults in '' '500:8,503:8,cut:8'; do
	store asked "$faults"
	for question in 'report --json --top 0' 'losses --json' 'nodes --node web-* --json'; do
		expect 0 "$tw" fleet $question to-block
		mv out folder
		rm -f asked/lists
		expect 0 "$tw" fleet $question s3://traces
		cmp out folder || fail "$question of the bucket"
		[ "$(wc -l <asked/lists)" -gt 1 ] || fail "one page only"
	done
done
expect 0 "$tw" fleet fetch --node 'web-*' -o bucket.tw s3://traces
is "$(sha256sum bucket.tw/*.tws | cut -c1-64 | sort)" "$(sha256sum block.tw/*.tws | cut -c1-64 | sort)" "what came back from the bucket"
expect 1 "$tw" fleet report --from 2030-01-01T00:00:00Z s3://traces
says 'no segment is of these nodes and this time'
tail -n 1 asked/lists | grep -q 'start-after=sum%2F2030%2F01%2F01%2F00%2F00$' || fail "more is listed than was asked for"
expect 1 "$tw" fleet report --node 'none*' s3://traces
says 'no segment is of these nodes and this time'
expect 1 "$tw" fleet nodes s3://traces/other
says 'there is no summary below'
rm "$(ls asked/seg* | head -n 1)"
expect 1 "$tw" fleet fetch -o partly.tw s3://traces
says 'was set aside: it is not there'
store calm ''
expect 1 env AWS_SECRET_ACCESS_KEY=other "$tw" fleet report s3://traces
says 's3://traces cannot be read: the store refuses the signature'
expect 1 "$tw" fleet report s3://none
says 'no such bucket'
touch calm/AWAY
expect 1 "$tw" fleet report s3://traces
says 's3://traces cannot be read: the store is not to be reached'
rm calm/AWAY
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

# A machine without a key: a command signs the address of each object.
cat >presign.py <<'EOT'
import hashlib, hmac, os, sys, time, urllib.parse
secret, name = sys.argv[1], sys.argv[2]
host, path, date = os.environ["STORE"].split("/")[2], "/" + name[len("s3://"):], time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
scope = date[:8] + "/eu-central-1/s3/aws4_request"
query = "&".join(f"{k}={urllib.parse.quote(v, safe='')}" for k, v in (
    ("X-Amz-Algorithm", "AWS4-HMAC-SHA256"), ("X-Amz-Credential", "TWACCESS/" + scope), ("X-Amz-Date", date), ("X-Amz-Expires", "60"),
    ("X-Amz-SignedHeaders", "host")))
canonical = "\n".join(["PUT", path, query, "host:" + host, "", "host", "UNSIGNED-PAYLOAD"])
key, text = ("AWS4" + secret).encode(), "\n".join(["AWS4-HMAC-SHA256", date, scope, hashlib.sha256(canonical.encode()).hexdigest()])
for word in scope.split("/") + [text]:
    key = hmac.new(key, word.encode(), hashlib.sha256).digest()
print(f"http://{host}{path}?{query}&X-Amz-Signature={key.hex()}")
EOT
store signed ''
for setting in 'TWSECRET|0|stored' 'other|1|refuses the signature'; do
	IFS='|' read -r secret code sentence <<<"$setting"
	rm -rf .tracewheel-ship
	expect "$code" env AWS_ACCESS_KEY_ID= HOME="$work" STORE="$AWS_ENDPOINT_URL" "$tw" ship --give-up 200ms --to s3://traces --node web-7 \
		--presign "python3 -I -S presign.py $secret" block.tw
	says "$sentence"
done
objects signed
expect 1 "$tw" ship --give-up 200ms --to s3://traces --presign false block.tw
says "the command of --presign gave no address: 'false'"
expect 2 "$tw" ship --to to-block --presign false block.tw
says '--presign is for buckets'

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

# Two mistakes that the above must not pass: a path by the time of shipping, and a segment that goes before its summary is stored.
cat >broken.c <<'EOT'
#define _GNU_SOURCE
#include <curl/curl.h>
#include <dlfcn.h>
#include <signal.h>
#include <string.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
size_t strftime(char *text, size_t capacity, const char *format, const struct tm *tm)
{
	size_t (*real)(char *, size_t, const char *, const struct tm *) = (size_t(*)(char *, size_t, const char *, const struct tm *))dlsym(RTLD_NEXT, "strftime");
	struct timespec now;
	size_t bytes = real(text, capacity, format, tm);
	clock_gettime(CLOCK_MONOTONIC, &now);
	if (getenv("BREAK_PATH") && strchr(format, '/'))
		snprintf(text + bytes - 2, 3, "%02d", (int)(now.tv_nsec / 1000 % 60));
	return bytes;
}
CURLcode curl_easy_perform(CURL *curl)
{
	CURLcode (*real)(CURL *) = (CURLcode(*)(CURL *))dlsym(RTLD_NEXT, "curl_easy_perform");
	CURLcode code = real(curl);
	char *url = NULL, name[256];
	struct timespec now;
	curl_easy_getinfo(curl, CURLINFO_EFFECTIVE_URL, &url);
	if (code == CURLE_OK && getenv("BREAK_ORDER") && strstr(url, "/seg/")) {
		snprintf(name, sizeof name, ".tracewheel-ship/%s", strrchr(url, '/') + 1);
		name[strlen(name) - 4] = 0;
		unlink(name);
		clock_gettime(CLOCK_MONOTONIC, &now);
		if (now.tv_nsec / 1000 % 4)
			raise(SIGKILL);
	}
	return code;
}
EOT
cc -shared -fPIC -o broken.so broken.c -ldl || fail "no broken shipper"
for mistake in BREAK_PATH BREAK_ORDER; do
	rm -rf .tracewheel-ship
	store $mistake 'kill-after:60'
	for _ in {1..100}; do
		env $mistake=1 LD_PRELOAD="$work/broken.so" "$tw" ship -q --give-up 2s --to s3://traces --node web-7 block.tw &
		echo $! >$mistake/victims
		! wait $! 2>/dev/null || break
	done
	rm -f $mistake/victims
	segments=$(find $mistake -name 'seg*zst' | wc -l) summaries=$(find $mistake -name 'sum*zst' | wc -l)
	[ "$segments $summaries" != "$count $count" ] || fail "$mistake is not noticed"
done

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

# The service of docs/fleet.md, with this program in the place of the installed one.
if command -v systemd-analyze >/dev/null; then
	sed "s|/usr/bin/tracewheel-ship|$build/bin/tracewheel-ship|" "$here/../../examples/fleet/tracewheel-ship.service" >tracewheel-ship.service
	expect 0 systemd-analyze verify ./tracewheel-ship.service
	! grep -v "$work" err || fail "systemd-analyze"
fi

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
