#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Goal    What `report --ports` says of files and connections of real programs is what strace sees: every opening, and every byte, or
#         the row says that it is not all.
# Method  git (many processes, streams), python3's http.server with a client, sort with a pipe, and sqlite3, which calls through pointers, once under strace and once
#         recorded, on files in a folder of this test; openings and bytes of each file there, and bytes of accepted connections,
#         are compared.
. "$(dirname "$0")/lib.sh"

tracewheel=$build/bin/tracewheel
strace -f -o "$folder/probe" true 2>/dev/null || { echo "skipped: strace cannot trace here"; exit 77; }

cat >"$folder/serve.py" <<'PYTHON'
import http.server, os, sys, threading, urllib.request
os.chdir(sys.argv[1])
class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *args): pass
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Quiet)
threading.Thread(target=server.serve_forever, daemon=True).start()
for name in ("page", "large") * 5:
    urllib.request.urlopen(f"http://127.0.0.1:{server.server_port}/{name}").read()
server.shutdown()
PYTHON

cat >"$folder/compare.py" <<'PYTHON'
import collections, json, re, sys
trace, report, below = sys.argv[1:]
opened, into, out = (collections.Counter() for _ in range(3))
waiting = {}

def plain(path):
    """Random names of temporary files differ from run to run."""
    return re.sub(r"tmp_obj_\w+", "tmp_obj", path)

reads = "read pread64 readv preadv recvfrom recvmsg".split()
writes = "write pwrite64 writev pwritev sendto sendmsg".split()
for line in open(trace, errors="replace"):
    thread, _, text = line.rstrip("\n").partition(" ")
    text = text.strip()
    if text.endswith("<unfinished ...>"):
        waiting[thread] = text[: -len("<unfinished ...>")]
        continue
    resumed = re.match(r"<\.\.\. \w+ resumed>(.*)", text)
    if resumed:
        text = waiting.pop(thread, "") + resumed.group(1)
    made = re.search(r"\) = (-?\d+)(?:<(.*)>)?$", text) or re.search(r" = (-?\d+)(?:<(.*)>)?$", text)
    if not made or int(made.group(1)) < 0:
        continue
    number, result = text.partition("(")[0], int(made.group(1))
    # opendir() opens inside libc.
    if number in ("open", "openat", "creat") and made.group(2) and "O_DIRECTORY" not in text:
        opened[plain(made.group(2))] += 1
    if number in ("sendfile", "copy_file_range"):
        first, second = re.findall(r"\d+<([^>]*)>", text)[:2]
        target, source = (first, second) if number == "sendfile" else (second, first)
        into[plain(source)] += result
        out[plain(target)] += result
        continue
    used = re.match(r"\w+\(\d+<((?:TCP:\[[^\]]*\])|[^>]*)>", text)
    if used and number in reads:
        into[plain(used.group(1))] += result
    if used and number in writes:
        out[plain(used.group(1))] += result

ours = collections.defaultdict(lambda: [0, 0, 0, False])
answered = received = 0
for port in json.load(open(report))["ports"]:
    kind, _, path = port["what"].partition(" ")
    row = ours[plain(path)]
    row[0] += port["opened"]
    row[1] += port["in_bytes"]
    row[2] += port["out_bytes"]
    row[3] |= port["partial"]
    if " <- " in path:
        received += port["in_bytes"]
        answered += port["out_bytes"]
bad = compared = 0
for path in set(opened) | set(into) | set(out):
    if not path.startswith(below) or path == below:
        continue
    compared += 1
    row = ours[path]
    is_right = row[0] == opened[path]
    for mine, theirs in ((row[1], into[path]), (row[2], out[path])):
        is_right &= mine <= theirs if row[3] else mine == theirs
    if not is_right:
        bad += 1
        print(f"{path}: ours opened {row[0]} in {row[1]} out {row[2]} partial {row[3]}, "
              f"strace {opened[path]} {into[path]} {out[path]}")
print(f"{compared} files compared, {bad} differ; connections received {received} and sent {answered} bytes")
if "serve" in report and answered < 5 * 301000:
    print("connections sent less than the pages")
    bad += 1
sys.exit(bad != 0 or compared == 0)
PYTHON

# both NAME PROGRAM...: once under strace, once recorded, each in a fresh copy of the folder
both() {
	name=$1
	shift
	for how in strace record; do
		rm -rf "$folder/work"
		cp -a "$folder/fresh" "$folder/work"
		if [ $how = strace ]; then
			strace -f -y -s 0 -o "$folder/$name.strace" -e trace=desc,network "$@" >"$folder/out.strace" 2>&1 || fail "$name: strace"
		else
			"$tracewheel" record -q --force --ports --follow-fork --on-full block -o "$folder/$name.tw" -- "$@" \
				>"$folder/out" 2>&1 || fail "$name: record: $(tail -1 "$folder/out")"
		fi
	done
	"$tracewheel" report --ports --json --top 0 "$folder/$name.tw" >"$folder/$name.json" || fail "$name: report"
	python3 "$folder/compare.py" "$folder/$name.strace" "$folder/$name.json" "$folder/work/" || fail "$name: not what strace sees"
}

mkdir "$folder/fresh"
seq 1 60000 | head -c 300000 >"$folder/fresh/large"
seq 1 5000 | head -c 1000 >"$folder/fresh/page"
# sqlite3 reads and writes through a table of pointers to functions: a lower bound, and marked.
both sqlite sqlite3 "$folder/work/db" "create table t(a); insert into t values(zeroblob(50000)); select count(*) from t"
both sort sh -c "sort -rn '$folder/work/large' | tail -n 3 >'$folder/work/tail'; cp '$folder/work/page' '$folder/work/copy'; cat '$folder/work/copy'"
both serve /usr/bin/python3 "$folder/serve.py" "$folder/work"
export GIT_CONFIG_NOSYSTEM=1 HOME="$folder" GIT_AUTHOR_DATE="2020-01-01T00:00:00Z" GIT_COMMITTER_DATE="2020-01-01T00:00:00Z"
git init -q "$folder/fresh/git"
cp "$folder/fresh/large" "$folder/fresh/page" "$folder/fresh/git"
git -C "$folder/fresh/git" add . 2>/dev/null
both git git -C "$folder/work/git" -c user.email=a@b -c user.name=x -c gc.auto=0 commit -q -m one
finish
