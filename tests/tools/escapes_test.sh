#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal    No name of a function, object, thread, file, type or program reaches a terminal with a control character, in any
#         view; no name starts a line of its own; JSON and Erlang terms stay valid.
# Method  A program and a library whose names hold escape sequences, line feeds, bells, eight-bit controls and marks of
#         writing's direction. All views are searched for such bytes; their lines are counted; JSON is parsed.
build=$1
. "$(dirname "$0")/lib.sh"

bad=$'\e]0;owned\a\e[2J'
cat >library.c <<'C'
__attribute__((noipa)) int evil(int number) { return number; }
__attribute__((noipa)) int forger(int number) { return evil(number) + 1; }
C
cat >main.c <<'C'
#include <pthread.h>
#include <sys/prctl.h>
int forger(int);
static void *run(void *name)
{
	prctl(PR_SET_NAME, name);
	for (int i = 0; i < 3; i++)
		forger(i);
	return NULL;
}
int main(void)
{
	pthread_t thread;
	pthread_create(&thread, NULL, run, "w\033[31m\nFORGED");
	pthread_join(thread, NULL);
	run("\233m");
	return 0;
}
C
gcc -O1 -g -fPIC -fpatchable-function-entry=9 -c library.c && gcc -O1 -c main.c || fail "the compiler"
# \x9b alone is the eight-bit form of ESC [; U+009B in UTF-8 is the same; U+202E reverses the direction of the following
# text.
forged=$'forger\n   0.000000000     FORGED call\x9b31m \xc2\x9b \xe2\x80\xae\x7f'
objcopy --redefine-sym evil="evil$bad" --redefine-sym forger="$forged" library.o || fail "objcopy"
objcopy --redefine-sym forger="$forged" main.o || fail "objcopy"
library=$'lib\e[5m\nFORGED\a.so'
gcc -shared -o "$library" library.o && gcc -o $'app\e[7m' main.o "./$library" -lpthread -Wl,-rpath,. || fail "the linker"
expect 0 "$tw" record --returns --args --stack 4 -t 'lib*FORGED*:_' -t 'libc:pthread*' -o e.tw -- ./$'app\e[7m' $'argument\e[3m\nFORGED'
cp err said

# clean WHAT: neither output nor messages contain such bytes, nor lines that begin with the contents of a name.
clean() {
	! LC_ALL=C grep -aqP '[\x00-\x08\x0b-\x1f\x7f]|\xc2[\x80-\x9f]|\xe2\x80\xae|^[^!]*\x9b(?![\x80-\xbf])' out err ||
		{ LC_ALL=C grep -anP '[\x00-\x08\x0b-\x1f\x7f]|\xc2[\x80-\x9f]|\xe2\x80\xae|\x9b' out err | cat -v | head -5 >&2; fail "$1 shows control characters"; }
	! grep -aqE '^( *0\.0* *)?FORGED' out err || fail "$1 has lines that a name made"
	iconv -f UTF-8 -t UTF-8 out >/dev/null || fail "$1 is not UTF-8"
}

events=$("$tw" info --json e.tw | python3 -c 'import json, sys; print(json.load(sys.stdin)["events"])')
[ "$events" -ge 12 ] || fail "$events events"
cp said err && : >out && clean "record"
for view in "print" "print --tree" "print --format erlang" "print --format json" "print --format chrome" \
	"report --top 0" "report --callers --top 0" "report --tree" "report --json" "flame" "flame --folded" "flame --by-process --folded" \
	"info" "info --json"; do
	# shellcheck disable=SC2086
	expect 0 "$tw" $view e.tw
	clean "$view"
	case $view in
	print | "print --format erlang" | "print --format json") is "$(wc -l <out)" "$events" "lines of $view" ;;
	esac
	case $view in
	"print --format json")
		python3 -c 'import json; [json.loads(line) for line in open("out")]' || fail "JSON lines"
		cp out events
		;;
	*json | *chrome) python3 -c 'import json; json.load(open("out"))' || fail "JSON of $view" ;;
	esac
done
# Files for other tools: what their readers take, with the same names.
cat >names.py <<'P'
import collections, json, re, subprocess, sys
tests, sys.path[:0] = sys.argv[1], [sys.argv[2]]
import protoc_text, unpack_perfetto
report = {f["name"].removesuffix("/_"): f["calls"] for f in json.load(open("report"))["by_function"]}
assert any("\\n" in name for name in report) and sum(report.values()) >= 12, report

def read(path):
    text = open(path, encoding="utf-8", newline="").read()
    bad = re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]", text)
    assert not bad, (path, text[bad.start() - 50:bad.end() + 20])
    return text

def same(what, names):
    assert set(report) <= set(names) and len(set(names)) == len(list(names)), (what, set(report) ^ set(names))

def strings(message):
    for values in message.values():
        for value in values:
            yield from [value] if isinstance(value, str) else strings(value) if isinstance(value, dict) else []

open("e.plain", "wb").write(unpack_perfetto.unpack(open("e.perfetto", "rb").read()))
for form in "perfetto", "pprof", "otlp":
    kind = {"perfetto": "Trace", "pprof": "Profile", "otlp": "Request"}[form]
    proto = f"{tests}/{ {'pprof': 'profile'}.get(form, form) }.proto"
    found = collections.Counter(strings(protoc_text.decode("e." + {"perfetto": "plain"}.get(form, form), proto, kind)))
    if form != "otlp":
        assert set(report) <= set(found), (form, set(report) - set(found))
    assert not any(re.search("[\x00-\x1f\x7f-\x9f\u202e]", name) for name in found), [name for name in found if not name.isprintable()]
same("speedscope", [f["name"] for f in json.loads(read("e.speedscope"))["shared"]["frames"]])
calls = [e for e in json.loads(read("e.chrome"))["traceEvents"] if e["ph"] == "X" and e.get("cat") != "own_time"]
assert collections.Counter(e["name"] for e in calls) == report
folded = [line.rsplit(" ", 1) for line in read("e.folded").splitlines()]
assert all(count.isdigit() for _, count in folded) and {stack.split(";")[-1] for stack, _ in folded} == {name.replace(";", ":") for name in report}, folded
callgrind = read("e.callgrind")
same("callgrind", re.findall(r"^c?fn=\(\d+\) (.*)$", callgrind, re.M))
read("e.csv.shown")
read("e.ctf/metadata")
P
expect 0 "$tw" report --json -n 0 e.tw
mv out report
tests=$(realpath "$common/../tools")
for form in perfetto speedscope chrome ctf pprof callgrind folded otlp; do
	expect 0 "$tw" convert -q --to $form e.tw -o e.$form
done
expect 0 "$tw" convert -q --to ttb e.tw -o e.ttb
if [ -x "$build/bin/tracewheel-sql" ]; then
	for form in sqlite csv; do
		expect 0 "$tw" convert -q --to $form e.tw -o e.$form
	done
	# A terminal gets no names as they are, and readers of UTF-8 nothing else.
	script -qec "'$tw' sql --csv e.tw 'select * from calls'" /dev/null </dev/null | tr -d '\r' >e.csv.shown
	python3 - <<'P' || fail "tables"
import csv, json, sqlite3
rows = list(csv.DictReader(open("e.csv", encoding="utf-8", newline="")))
events = [json.loads(line) for line in open("events")]
calls = sorted((e["function"], e["module"], e["thread_name"]) for e in events if e["kind"] == "call")
assert sorted((r["function"], r["module"], r["thread_name"]) for r in rows) == calls, (rows[0], calls[0])
assert sorted(sqlite3.connect("e.sqlite").execute("select function, module, thread_name from calls")) == calls
assert sqlite3.connect("e.sqlite").execute("select sum(calls) from functions").fetchone()[0] == len(calls)
name = next(name for name, _, _ in calls if "\ufffd" in name)
open("query", "w").write("select count(*) as n from calls where function = '%s'" % name.replace("'", "''"))
open("wanted", "w").write("n\n%d\n" % sum(name == n for n, _, _ in calls))
P
	# A limit that the reader sees knows the name as the column has it.
	expect 0 "$tw" sql --csv e.tw "$(cat query)"
	cmp -s out wanted || fail "calls of a name that is not UTF-8: $(cat out)"
else
	: >e.csv.shown
fi
python3 -S names.py "$tests" "$common" || fail "names in files for others"
if command -v callgrind_annotate >/dev/null; then
	callgrind_annotate --threshold=100 e.callgrind >out 2>err && [ ! -s err ] || fail "callgrind_annotate: $(cat err)"
fi
if command -v babeltrace2 >/dev/null; then
	babeltrace2 e.ctf >out 2>err || fail "babeltrace2: $(cat err)"
	is "$(wc -l <out)" "$events" "events for babeltrace2"
fi

expect 0 "$tw" functions --refused ./$'app\e[7m'
clean "functions"
expect 0 "$tw" functions --json ./$'app\e[7m'
clean "functions --json"
python3 -c 'import json; json.load(open("out"))' || fail "JSON of functions"
# Messages repeat the arguments.
expect 1 "$tw" report $'no\e[2J\nFORGED.tw'
clean "a message"
expect 2 "$tw" report --sort $'no\e[2J\nFORGED' e.tw
clean "a message on options"
# Cleaned names are still distinct.
expect 0 "$tw" print e.tw
shows 'evil\\x1b\]0;owned\\x07\\x1b\[2J'
shows 'forger\\n   0.000000000     FORGED call\\x9b31m \\x9b \\u202e\\x7f'
