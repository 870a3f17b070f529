#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal    Every view of every kind of input ends with the right exit code: 0 for what is whole, 1 for what is cut, damaged or no
#         capture. None crashes or hangs, none is silent: without output there is a sentence. JSON can be parsed, pages end.
#         Output is the same to the byte whether one thread reads a capture, or two, or seven.
# Method  Captures, single segments and streams of each kind (running, killed, recovered, merged, empty, without events, rotated, kept
#         in part, with gaps, cut, overwritten, with losses, forked, converted, of a compacted program, of all older versions), and
#         files that are none; each through each view with each format and selection, or through one of them, from one input to the
#         next another (./run test: all with --long).
build=$1
golden=$(realpath "$(dirname "$0")/../golden")
. "$(dirname "$0")/lib.sh"

cat >calls.c <<'C'
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
__attribute__((noinline)) int leaf(int i) { __asm__ volatile("" : "+r"(i)); return i * 2; }
__attribute__((noinline)) int node(int i) { return leaf(i) + leaf(i + 1); }
static void *locked(void *number)
{
	for (int i = 0; i < 100; i++) {
		pthread_mutex_lock(&lock);
		node(*(int *)number);
		pthread_mutex_unlock(&lock);
	}
	return NULL;
}
int main(int count, char **words)
{
	char byte;
	pthread_t threads[2];
	for (int i = 0; i < 2; i++)
		if (count == 1 && pthread_create(&threads[i], NULL, locked, &count))
			return 1;
	if (count == 1)
		return pthread_join(threads[0], NULL) || pthread_join(threads[1], NULL);
	for (int i = 0; i < atoi(words[1]); i++)
		node((int)(i * 2654435761u));
	return count > 2 && (write(1, "x", 1) != 1 || read(0, &byte, 1) != 1);
}
C
gcc -O1 -g -fpatchable-function-entry=9 -pthread -o calls calls.c || fail "gcc"
cp calls compacted
expect 0 "$tw" compact compacted
mkdir in
recorded() {
	local name=$1
	shift
	expect 0 "$tw" record -q -o "in/$name" "$@"
}
streamed() {
	local name=$1
	shift
	"$tw" record -q -o - "$@" >"in/$name" 2>err || fail "$name"
}

recorded whole.tw --returns --args -t 'calls:_' -- ./calls 100
recorded plain.tw -t 'calls:_' -- ./calls 100
recorded threads.tw --returns -t 'calls:_' -- ./calls
recorded stacks.tw --stack 4 -t 'calls:_' -- ./calls 10
recorded compacted.tw --returns -t 'compacted:_' -- ./compacted 100
"$tw" record -o in/one.tw -t 'calls:node' -- ./calls 1 2>err || fail "one.tw"
says 'one.tw: 1 event of 1 thread'
expect 0 "$tw" report in/one.tw
shows '^1 event in '
recorded nothing.tw --allow-nothing -t 'calls:nosuch' -- ./calls 10
recorded actors.tw -p all -t 'mailbox:_' -- "$build/bin/actors" bank -m 50
recorded locks.tw --locks -- ./calls
# Python has more functions by far: all views take longer.
[ -z "${TW_TEST_LONG:-}" ] || recorded locks-of-python.tw --locks -- python3 -c 'import threading; threading.Thread(target=print).start()'
recorded ports.tw --ports -- ls /
recorded forked.tw --follow-fork --returns -t 'libc:{fork,read}' -- sh -c 'ls / >/dev/null; (ls /tmp >/dev/null); true'
recorded rotated.tw --on-full block --rotate 64K --returns --args -t 'calls:_' -- ./calls 12000
recorded kept.tw --on-full block --rotate 64K --keep 2 --returns --args -t 'calls:_' -- ./calls 12000
recorded overwritten.tw --on-full overwrite --ring 64K -t 'calls:_' -- ./calls 12000
recorded lossy.tw --on-full drop --ring 64K --returns -t 'calls:_' -- ./calls 40000
streamed stream.tws --returns -t 'calls:_' -- ./calls 100
streamed nothing.tws --allow-nothing -t 'calls:nosuch' -- ./calls 10
streamed actors.tws -p all -- "$build/bin/actors" bank -m 50
cp in/whole.tw/segment-000001.tws in/single.tws
cp in/rotated.tw/segment-000002.tws in/middle.tws
expect 0 "$tw" merge -q -o in/merged.tw in/whole.tw in/actors.tw
expect 0 "$tw" convert -q --to ttb in/actors.tw -o actors.ttb
expect 0 "$tw" convert -q --from ttb actors.ttb -o in/converted.tw

# A recorder that is killed; the same, completed: a copy of its folder is not, as the rings are of one folder.
mkfifo go
"$tw" record -q -o in/recovered.tw --returns -t 'calls:_' -- ./calls 100 wait >said <go &
recorder=$!
exec 3>go
wait_until test -s said
kill -9 $recorder
wait $recorder 2>/dev/null
exec 3>&-
cp -r in/recovered.tw in/killed.tw
expect 0 "$tw" recover -q in/recovered.tw

bad() { cp -r "in/$1" "in/bad-$2"; }
bad rotated.tw gap.tw && rm in/bad-gap.tw/segment-000002.tws
bad rotated.tw first.tw && rm in/bad-first.tw/segment-000001.tws
bad rotated.tw cut.tw && truncate -s 3000 in/bad-cut.tw/segment-000002.tws
bad whole.tw bytes.tw && printf xxxxxxxx | dd of=in/bad-bytes.tw/segment-000001.tws bs=1 seek=1100 conv=notrunc 2>/dev/null
bad stream.tws stream.tws && truncate -s 1500 in/bad-stream.tws
bad actors.tws actors.tws && truncate -s $(($(stat -c %s in/actors.tws) / 2)) in/bad-actors.tws
bad stream.tws ten.tws && truncate -s 10 in/bad-ten.tws
: >in/bad-empty.tws
head -c 50000 /dev/urandom >in/bad-random.tws
mkdir in/bad-folder.tw in/bad-segment.tw in/bad-zeros.tw
: >in/bad-segment.tw/segment-000001.tws
head -c 4096 /dev/zero >in/bad-zeros.tw/segment-000001.tws
cp -r "$golden"/v*.tw in
for capture in in/v*{broken,cut,torn}*.tw in/v2-kept*.tw; do
	[ ! -e "$capture" ] || mv "$capture" "in/bad-${capture#in/}"
done

# A recording that goes on while it is looked at.
"$tw" record -q -o in/running.tw --durable 1 --returns -t 'calls:_' -- ./calls 100 wait >said2 <go &
running=$!
exec 3>go
wait_until test -s said2
wait_until eval '[ "$("$tw" info --json in/running.tw 2>/dev/null | grep -c "\"events\": [1-9]")" -gt 0 ]'

python3 -I -S - "$tw" <<'EOT' || fail "not every view of every input is right"
import json, os, shutil, subprocess, sys
tw, faults, count = sys.argv[1], [], 0
# Views: words, what the output is, the exit code for whole captures ("one": 1, as they have no such events).
views = [(words.split(), form) for words, form in [
    ("info", "text"), ("info --json", "json"),
    ("report", "text"), ("report --json", "json"), ("report --callers --sort self --top 0", "text"), ("report --tree", "text"),
    ("report --locks", "text"), ("report --locks --json", "json"), ("report --ports", "text"), ("report --ports=each", "text"),
    ("report --ports --json", "json"), ("report --tail 10", "text"), ("report --from -1000s --to 0.001", "text"),
    ("report -t calls:leaf --thread calls", "text"),
    ("print", "text"), ("print --tree", "text"), ("print --setups --color always", "text"), ("print --format erlang", "text"),
    ("print --format erlang --bare-pids --timestamps wall", "text"), ("print --format json", "lines"), ("print --format chrome", "json"), ("print --format speedscope", "json"), ("print --format perfetto", "bytes"),
    ("print --limit 3", "text"), ("print --tail 3", "text"), ("print --tree --tail 3", "text"), ("print --from 0.00001 --to 0.00002", "text"),
    ("print --process <0.1.0>", "text"), ("print --process nobody", "text"), ("print --tree -N calls:leaf", "text"),
    ("flame", "page"), ("flame --folded", "text"), ("flame --by-process --least 1", "page"),
    ("why-late", "text"), ("why-late --json", "json"), ("why-late --html", "page"),
    ("seq", "one"), ("seq --label 17", "one"), ("seq --format json", "json"), ("seq --label 17 --format mermaid", "one"),
    ("seq --label 17 --format erlang", "one"), ("convert --to ttb -o -", "bytes")]]

def run(name, words, codes, form):
    global count
    count += 1
    try:
        done = subprocess.run([tw, *words], stdin=subprocess.DEVNULL, capture_output=True, timeout=100)
    except subprocess.TimeoutExpired:
        return faults.append(f"{name}: {words}: hangs")
    out, err, fault = done.stdout, done.stderr, None
    if done.returncode not in codes:
        fault = f"exit code {done.returncode}"
    elif done.returncode and not err.startswith(b"tracewheel"):
        fault = "fails without a word"
    elif not out and not err and form != "quiet":
        fault = "silent"
    elif b"(null)" in out + err or b"tracewheel: bug" in err:
        fault = "nonsense"
    elif out and form == "page" and not out.rstrip().endswith(b"</html>"):
        fault = "the page does not end"
    elif out:
        try:
            for text in [out] if form == "json" else out.splitlines() if form == "lines" else []:
                json.loads(text)
        except ValueError as error:
            fault = f"no JSON: {error}"
    if fault:
        faults.append(f"{name}: {' '.join(words)}: {fault}: {err[-300:].decode(errors='replace')}")

inputs, step = sorted(os.listdir("in")), 1 if os.environ.get("TW_TEST_LONG") else len(views)
for number, name in enumerate(inputs):
    path, code = f"in/{name}", 1 if name.startswith("bad-") else 0
    for words, form in views[number % step::step]:
        # A stream is read no further than to the limit.
        codes = [0, 1] if code and "--limit" in words and not os.path.isdir(path) else [code]
        run(name, [*words, path], [1] if form == "one" else codes, form)
    # A copy is completed; a stream cannot be.
    is_folder, is_capture = os.path.isdir(path), name not in ("bad-folder.tw", "bad-segment.tw", "bad-zeros.tw")
    # Of captures of older versions, and of whole ones, every third, if not all.
    if step > 1 and number % 3 and not name.startswith(("bad-", "killed", "running")):
        pass
    elif name != "running.tw":
        (shutil.copytree if is_folder else shutil.copy)(path, "copy")
        run(name, ["recover", "copy"], [0, 1] if is_folder and (code or name == "killed.tw") else [0] if is_folder else [1], "text")
        shutil.rmtree("copy") if is_folder else os.remove("copy")
    else:
        run(name, ["recover", path], [1], "text")
    # All, or of four inputs one each: what is merged, and commands that read no captures.
    is_open, is_own = name in ("running.tw", "killed.tw"), name in ("merged.tw", "stacks.tw")
    if step == 1 or number % 4 == 1 or is_open or is_own:
        run(name, ["merge", "--force", "-o", "all.tw", path, "in/stacks.tw"], [1] if not is_folder or is_open or code or is_own else [0], "text")
    others = ["functions", "compact", "match"]
    for command in others if step == 1 else [] if number % 4 else [others[number // 4 % 3]]:
        run(name, [command, path], [1, 2], "text")
print(count, "views of", len(inputs), "inputs,", len(faults), "faults")
print(*faults[:40], sep="\n")
sys.exit(bool(faults))
EOT
# Views of captures of threads, of several programs, with losses and damage, by one thread and by several.
TRACEWHEEL_WORKERS=0 expect 1 "$tw" report in/whole.tw
says "TRACEWHEEL_WORKERS is a number of threads from 1 to 9, not '0'"
python3 -I -S - "$tw" <<'EOT' || fail "the number of threads changes a view"
import os, subprocess, sys
views = ["report --top 0", "report --json", "report --tree", "report --callers --csv", "report --by thread --json", "report --by caller",
         "print --slowest 5", "print --tree", "flame --folded", "report --from 0.001 --thread calls", "report --histogram duration",
         "report --diff in/threads.tw"]
inputs = ["threads.tw", "rotated.tw", "lossy.tw", "kept.tw", "forked.tw", "actors.tw", "merged.tw", "bad-cut.tw", "bad-gap.tw"]
step, faults, count, shown = 1 if os.environ.get("TW_TEST_LONG") else 3, [], 0, 0
for number, name in enumerate(inputs):
    for words in views[number % step::step]:
        outputs = set()
        for workers in "127":
            done = subprocess.run([sys.argv[1], *words.split(), f"in/{name}"], stdin=subprocess.DEVNULL, capture_output=True,
                                  timeout=100, env={**os.environ, "TRACEWHEEL_WORKERS": workers})
            outputs.add((done.returncode, done.stdout, done.stderr))
        count, shown = count + 1, shown + (len(done.stdout) > 200)
        if len(outputs) > 1:
            faults.append(f"{name}: {words}")
print(count, "views,", shown, "of them with figures;", len(faults), "that differ")
print(*faults, sep="\n")
sys.exit(bool(faults) or shown < count / 2)
EOT

echo >&3
exec 3>&-
wait $running || fail "the recording that was looked at"
expect 1 "$tw" recover -q in/killed.tw
says 'not whole'
