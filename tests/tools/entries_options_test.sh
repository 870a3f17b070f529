#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal    Each option of record means the same at entries of unmodified functions as at compiled sleds; sessions, counters and meta
#         tracing of a program that uses the library work on the recorder's entries.
# Method  The same source is compiled with and without sleds, recorded with the same options, and every event is compared: order,
#         arguments, values, exceptions, callers, what matched. The bytes behind planted jumps are int3.
build=$1
include=$(realpath "$(dirname "$0")/../../include")
. "$(dirname "$0")/lib.sh"
plant_with_traps
mkdir sled entry

cat >few.cc <<'CC'
#include <csetjmp>
#include <cstring>
#define FUNCTION extern "C" __attribute__((noinline))
static jmp_buf place;
FUNCTION long few_plus(long left, long right) { __asm__ volatile("" : "+r"(left)); return left + right; }
FUNCTION long few_text(const char *name, long size) { return few_plus((long)strlen(name), size); }
FUNCTION double few_scale(long count, double factor) { return (double)few_plus(count, 1) * factor; }
FUNCTION long few_tail(long n) { return few_plus(n, 3); }
FUNCTION long few_down(long n) { return n ? few_down(n - 1) + few_plus(n, 0) : 0; }
FUNCTION long few_throw(long n) { if (n == 3) throw n; return few_plus(n, 1) + 1; }
FUNCTION long few_catch(long n) { try { return few_throw(n) + 1; } catch (long) { return -1; } }
FUNCTION void few_jump(long n) { if (!n) longjmp(place, 1); few_jump(n - 1); __asm__ volatile(""); }
FUNCTION long few_set(long n) { if (setjmp(place)) return 7; few_jump(n); return 0; }
CC
cat >app.cc <<'CC'
#include <cerrno>
#include <cstdio>
#include <sys/wait.h>
#include <unistd.h>
extern "C" {
long few_plus(long, long), few_text(const char *, long), few_tail(long), few_down(long), few_catch(long), few_set(long);
double few_scale(long, double);
__attribute__((noinline)) long work(long n)
{
	long sum = 0;
	errno = EBADF;
	for (long i = 0; i < n; i++)
		sum += few_text(i % 2 ? "odd" : "even", i) + few_tail(i) + few_down(i % 4) + few_catch(i % 5) + few_set(i % 3) +
		       (long)few_scale(i, 1.5);
	return sum + (errno == EBADF);
}
}
int main()
{
	int status;
	printf("%ld\n", work(20));
	fflush(stdout);
	if (fork() == 0)
		_exit((int)(work(5) & 63));
	wait(&status);
	printf("%d\n", WEXITSTATUS(status));
	return 0;
}
CC
# make FOLDER FLAG...
make() {
	local folder=$1
	shift
	g++ -O2 -g -fno-omit-frame-pointer "$@" -shared -fPIC few.cc -o "$folder/libfew.so" -Wl,--build-id &&
		g++ -O2 -g -fno-omit-frame-pointer "$@" app.cc -o "$folder/app" "$folder/libfew.so" -Wl,--build-id "-Wl,-rpath,$work/$folder" ||
		fail "g++ $*"
}
make sled -fpatchable-function-entry=9
make entry
./entry/app >answer

cat >same.py <<'P'
# same.py: compares both ways of each recording whose options are a line of the file tried, "FOLDER KIND,... PROCESSES OPTION...".
import json
def read(name):
    events, processes = [], {}
    for line in open(name):
        event = json.loads(line)
        for times in ("ns", "thread"):
            event.pop(times, None)
        event["process"] = processes.setdefault(event["process"], len(processes))
        if event["kind"] == "return_to":
            event.pop("values", None)
        if "args" in event and "names" not in event:  # raw registers: the first is defined everywhere
            event["args"] = event["args"][:1]
        if event.get("function") == "few_text" and isinstance(event.get("args", [""])[0], int):
            event["args"] = "a pointer"
        if event.get("module") == "libc":  # --locks: addresses of mutexes
            event.pop("args", None)
        for frame in event.get("stack", []):
            frame.pop("address")
        events.append(event)
    return events, len(processes)
def compare(folder, kinds, processes):
    for way in ("sled", "entry"):
        info = json.load(open(f"{folder}/{way}.info"))
        assert info["complete"] and not sum(info["lost"].values()), (way, info)
        assert not [note for note in info.get("notes", []) if "not traced" in str(note)], (way, info)
    (a, _), (b, count) = read(folder + "/sled"), read(folder + "/entry")
    for number, (x, y) in enumerate(zip(a, b)):
        assert x == y, f"event {number}:\n{x}\n{y}"
    assert len(a) == len(b) > 0, (len(a), len(b))
    assert {e["kind"] for e in b} >= set(kinds.split(",")), kinds
    assert processes in ("-", str(count)), count
for line in open("tried"):
    print(line, end="", flush=True)
    compare(*line.split()[:3])
P

# same KIND,... PROCESSES OPTION...: records both, for same.py: among the events are some of these kinds, of so many processes (-: any).
tried=0
same() {
	local kinds=$1 processes=$2 way
	shift 2
	tried=$((tried + 1))
	mkdir $tried
	for way in sled entry; do
		expect 0 "$tw" record --local --force -q -o $way.tw --on-full block -t 'libfew:_' -t 'app:work' "$@" -- ./$way/app
		cmp -s answer out || fail "another answer: $way $*"
		expect 0 "$tw" print --format json $way.tw
		mv out $tried/$way
		expect 0 "$tw" info --json $way.tw
		mv out $tried/$way.info
	done
	echo "$tried $kinds $processes $*" >>tried
}

# Options that another recording has too, in the long form only.
also() {
	[ -z "${TW_TEST_LONG:-}" ] || same "$@"
}

expect 0 "$tw" functions --local -t 'libfew:few_plus' ./sled/app
shows '^sled '
expect 0 "$tw" functions --local -t 'libfew:few_plus' ./entry/app
shows '^entry '
# In the short form one recording has several options that do not change what the others do; the long form has each alone as well.
also call - --args
also call,return_from - --args=raw --returns
also call,return_from,exception_from - --exceptions
also call,return_to - --return-to
also call,return_from,stack - --stack 16 --returns
also call,return_from,exception_from,return_to,stack - --args --exceptions --return-to --stack 4
also call - --when '$1 > 3'
also call - --when 'n == 3'
also call - --args --when 'string_at($1) == "odd" or $1 == 2'
same call - --args --when 'string_at($1) == "odd" or $1 == 2 or n == 3'
also call,return_from - --match "[{['\$1'|'_'],[{'<','\$1',3}],[{message,{{small,'\$1'}}},{return_trace}]}]"
also call,return_from,exception_from - --exceptions --match "[{'_',[],[{exception_trace}]}]"
also call - --match "[{'_',[],[{message,{caller}}]}]"
also call - --match "[{['\$1'|'_'],[{'==','\$1',2}],[{silent,true}]},{'_',[],[]}]"
clauses="{['\$1'|'_'],[{'==','\$1',1}],[{message,{{small,'\$1'}}},{return_trace}]},{['\$1'|'_'],[{'==','\$1',18}],[{silent,true}]}"
same call,return_from,exception_from - --exceptions --match "[$clauses,{['\$1'|'_'],[{'<','\$1',4}],[{exception_trace}]},{'_',[],[{message,{caller}}]}]"
also call - --locks --args=raw
same call,return_from - --locks --args=raw --returns
also call,return_from,exception_from,return_to,stack 2 --follow-fork --args --exceptions --return-to --stack 4
also call,return_from - --follow-fork --returns --rotate 64K --segment-time 100ms
same call,return_from,exception_from,return_to,stack 2 --follow-fork --args --exceptions --return-to --stack 16 --rotate 64K --segment-time 100ms

same call -
expect 0 python3 same.py

# The control: a call more is noticed.
sed -n 3p $tried/entry >>$tried/entry
expect 1 python3 same.py
is "$(tail -n 1 out)" "$(tail -n 1 tried)"
says AssertionError

# Only calls of the program: a function of a library is none, whatever the way.
expect 2 "$tw" record --local --callers main -o no.tw -t 'libfew:_' -- ./entry/app
says "'libfew:_' can match nothing: .*--callers main"

# Code without call frame information is none of the entries.
printf '%s\n' '__asm__(".globl bare\n.type bare,@function\nbare: mov %edi,%eax\nadd $3,%eax\nret\n.size bare,.-bare\n");' \
	'int bare(int);' 'int main(void) { return bare(2) - 5; }' >bare.c
gcc -O2 -o bare bare.c -Wl,--build-id || fail "the program does not compile"
expect 2 "$tw" record --local -o no.tw -t 'bare:bare' -- ./bare
says 'bare exists, but has no sled and no call frame information (--local): compile with'
# The loader chooses one of several functions, whose names are others.
expect 2 "$tw" record --local -o no.tw -t 'libc:strlen' -- ./bare
says "strlen of libc cannot be traced: the loader chooses its code, which is recorded under this name without --local"

# A tracer module gets the words and the ends of calls.
for way in sled entry; do
	expect 0 "$tw" record --local --force -o t.tw --tracer "$build/tests/log_tracer.so:{a,1}" --args=raw --returns -t 'libfew:few_plus' -- ./$way/app
	is "$(head -1 out)" "$(head -1 answer)"
	grep '^log: ' err | sed 's/\({libfew,few_plus,\[[0-9]*,[0-9]*\),[^]]*/\1/' >$way/log
done
cmp sled/log entry/log || fail "another log"
is "$(grep -c '^log: call' entry/log)" "$(grep -c '^log: return_from' entry/log)"
[ "$(wc -l <entry/log)" -gt 100 ] || fail "the log is too short"

# ---- a program that uses the library: its sessions see the recorder's entries ----
cat >counts.c <<'C'
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <tracewheel/tracewheel.h>
long few_plus(long, long), few_down(long);
static const char *info(struct tw_session *session, const char *what, const char *item)
{
	static char text[400];
	struct tw_arena arena;
	struct tw_term term, shown;
	tw_arena_init(&arena, 1 << 16);
	if (tw_term_parse(&arena, what, strlen(what), &term, NULL) ||
	    tw_trace_info(session, term, tw_term_atom_z(item), &arena, &shown))
		return "?";
	tw_term_format(shown, TW_PRINT_WRITE, text, sizeof text);
	tw_arena_fini(&arena);
	return text;
}
int main(void)
{
	const uint32_t kinds = TW_FUNCTION_CALL_COUNT | TW_FUNCTION_CALL_TIME;
	struct tw_tracer tracer = {.kind = TW_TRACER_CAPTURE, .capture_path = "own.tw"};
	struct tw_session *counts, *own;
	unsigned matched = 0;
	uint64_t counted = 0;
	long sum = 0;
	if (tw_session_create("counts", NULL, &counts) || tw_session_create("own", &tracer, &own))
		return 1;
	tw_trace_process(counts, tw_process_self(), true, TW_FLAG_CALL);
	matched += (unsigned)tw_trace_function(counts, "libfew", "_", TW_ARITY_ANY, TW_MATCH_TRUE, kinds) > 8;
	matched += tw_trace_function(own, "libfew", "few_plus", TW_ARITY_ANY, TW_MATCH_TRUE, TW_FUNCTION_META) == 1;
	for (long i = 0; i < 10; i++)
		sum += few_plus(i, 1) + few_down(3);
	matched += tw_trace_call_count(counts, "libfew", "few_plus", TW_ARITY_ANY, &counted) == 1;
	printf("%u %" PRIu64 " %s", matched, counted, info(counts, "{libfew,few_down,'_'}", "call_count"));
	printf(" %s\n", info(counts, "{libfew,few_down,'_'}", "call_time"));
	tw_trace_function(counts, "libfew", "few_plus", TW_ARITY_ANY, TW_MATCH_PAUSE, TW_FUNCTION_CALL_COUNT);
	tw_session_destroy(own);
	tw_session_put(own);
	for (long i = 0; i < 3; i++)
		sum += few_plus(i, 1);
	printf("%s\n", info(counts, "{libfew,few_plus,'_'}", "call_count"));
	tw_session_destroy(counts);
	tw_session_put(counts);
	printf("%ld\n", sum + few_plus(1, 1));
	return 0;
}
C
gcc -O1 -I"$include" counts.c -o sled/counts -Lsled -lfew -L"$build/lib" -ltracewheel "-Wl,-rpath,$build/lib" '-Wl,-rpath,$ORIGIN' ||
	fail "the program does not compile"
cp sled/counts entry/counts
for way in sled entry; do
	rm -rf own.tw
	expect 0 "$tw" record --local --force -o counts.tw --on-full block -t 'libfew:_' -- ./$way/counts
	is "$(sed -n 1p out | sed 's/,[0-9]*,[0-9]*}\]}$//')" "3 40 {call_count,40} {call_time,[{<0.1.0>,40" "$way"
	is "$(sed -n 2p out)" "{call_count,40}" "$way: paused"
	is "$(sed -n 3p out)" 123 "$way"
	for capture in own counts; do
		expect 0 "$tw" report --json -n 0 $capture.tw
		mv out $way/$capture.json
	done
done
python3 - <<'P' || fail "the library's session, or the recorder's"
import json
for way in ("sled", "entry"):
    own, counts = (json.load(open(f"{way}/{name}.json")) for name in ("own", "counts"))
    assert (own["calls"], [f["function"] for f in own["by_function"]]) == (40, ["few_plus"]), (way, "meta, 13 calls after it excepted", own)
    assert (counts["calls"], sum(counts["lost"].values())) == (84, 0), (way, "the recorder's session sees all", counts)
P
