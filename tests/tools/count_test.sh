#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal    Counted calls are as many as the program itself counts: on threads that end, in handlers, in a forked child, in a library that is
#         opened again, and when it is killed; every view marks them; of a large program the largest functions are recorded.
# Method  A program writes its own numbers into a file that it maps, and is recorded with --count; JSON and sentences are compared.
build=$1
. "$(dirname "$0")/lib.sh"

cat >lib.c <<'C'
__attribute__((noinline)) void lib_step(void) { __asm__ volatile("nop;nop;nop;nop;nop;nop;nop;nop"); }
C
cat >work.c <<'C'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>
static _Atomic unsigned long *own; /* calls of step, handled, lib_step, rec; the process */
__attribute__((noinline)) void step(void) { __asm__ volatile("nop;nop;nop;nop;nop;nop;nop;nop"); }
__attribute__((noinline)) void handled(void) { __asm__ volatile("nop;nop;nop;nop;nop;nop;nop;nop"); }
__attribute__((noinline)) void rec(void) { __asm__ volatile("nop;nop;nop;nop;nop;nop;nop;nop"); }
static void on_alarm(int s) { own[1]++; handled(); }
static void *run(void *n)
{
	for (long i = 0; i < (long)n || (long)n < 0; i++) {
		own[0]++;
		step();
		if (i % 100 == 0) {
			own[3]++;
			rec();
		}
	}
	return 0;
}
static void threads(long n)
{
	pthread_t t[4];
	for (int i = 0; i < 4; i++)
		pthread_create(&t[i], 0, run, (void *)n);
	for (int i = 0; n >= 0 && i < 4; i++)
		pthread_join(t[i], 0);
}
int main(int c, char **v)
{
	struct itimerval every = {{0, 300}, {0, 300}}, off = {0};
	int fd = open(v[1], O_RDWR | O_CREAT | O_TRUNC, 0600), status;
	if (ftruncate(fd, 64))
		return 1;
	own = mmap(0, 64, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (!strcmp(v[2], "kill")) {
		threads(-1);
		own[4] = getpid();
		usleep(1 + strtoul(v[3], 0, 10));
		kill(getpid(), SIGKILL);
	}
	signal(SIGALRM, on_alarm);
	setitimer(ITIMER_REAL, &every, 0);
	for (int round = 0; round < 20; round++)
		threads(5000);
	setitimer(ITIMER_REAL, &off, 0);
	pid_t child = fork();
	if (!child) {
		run((void *)1234);
		_exit(0);
	}
	waitpid(child, &status, 0);
	for (int i = 0; i < 3; i++) {
		void *lib = dlopen("./libcounted.so", RTLD_NOW);
		void (*f)(void) = lib ? (void (*)(void))dlsym(lib, "lib_step") : 0;
		for (int k = 0; f && k < 10 + i; k++, own[2]++)
			f();
		dlclose(lib);
	}
	return 0;
}
C
gcc -O1 -shared -fPIC -o libcounted.so lib.c && gcc -O1 -pthread -o work work.c || fail "no programs"

own() { # INDEX: the program's own number
	local number
	number=$(od -An -v -tu8 -j $((8 * $1)) -N 8 numbers) && echo $((number))
}
counted() { # FUNCTION
	json "sum(f['calls'] for f in d.get('counted_by_function', []) if f['function'] == '$1' and f['counted'])"
}

# Plans of entries are kept: later recordings find them in time, whatever the load.
"$tw" record -q -o warm.tw --follow-fork -- ./work numbers all >/dev/null 2>&1

# The child has an image of its own; threads are made again and again. At full load the plan of an object that is opened may come too late: then
# the account says so, and it is recorded once more.
for _ in 1 2 3 4 5; do
	expect 0 "$tw" record --force -o a.tw --follow-fork --returns --count 'work:{step,handled}' --count libcounted:lib_step -t work:rec -- \
		./work numbers all
	says "calls more were counted, not recorded"
	expect 0 "$tw" info --json a.tw
	[ "$(json 'd["account"]["complete"]')" != True ] || break
done
expect 0 "$tw" report --json -n 0 a.tw
is "$(own 0)" 401234 "the program's own calls"
python3 -I -S - <<'P' || fail "not the counts of the program"
import json, struct
d, own = json.load(open("out")), struct.unpack("8Q", open("numbers", "rb").read())
def calls(rows, function):
    return sum(f["calls"] for f in d[rows] if f["function"] == function and (rows == "by_function" or f["counted"]))
for function, wanted in (("step", own[0]), ("handled", own[1]), ("lib_step", 33)):
    found = calls("counted_by_function", function)
    assert found == wanted > 0, f"{function}: {found} calls are counted, not {wanted}"
assert calls("by_function", "rec") == own[3] > 0, "recorded calls"
assert calls("by_function", "step") == 0, "calls of step are recorded"
assert sum(t["calls"] for t in d["counted_by_thread"]) == d["counted_calls"], "by thread"
assert len([t for t in d["counted_by_thread"] if t["thread"] and 5000 <= t["calls"] < 6000]) >= 70, "threads are not told apart"
assert not any("total" in f for f in d["counted_by_function"]), "times of counted calls"
P
expect 0 "$tw" report a.tw
shows "counted, not recorded"
shows "of 3 functions are counted, not recorded"
expect 0 "$tw" info a.tw
shows "^counted  .* of 3 functions are counted, not recorded"
expect 0 "$tw" print --limit 1 a.tw
says "of 3 functions are counted, not recorded"
for view in "report --csv" "flame --folded" "convert --to ttb --force -o count.ttb"; do
	# shellcheck disable=SC2086
	expect 0 "$tw" $view a.tw
	says "of 3 functions are counted, not recorded"
done
expect 0 "$tw" flame a.tw
shows "of 3 functions are counted, not recorded"
expect 0 "$tw" merge -o b.tw a.tw warm.tw
expect 0 "$tw" report --json -n 0 b.tw
is "$(counted step)" 401234 "after merging"
# Parts of the time have none.
expect 0 "$tw" report --json --from 0.001 a.tw
is "$(json "'counted_calls' in d")" False "counts of a part"

# Segments that are removed take no counts with them; functions are named in the last ones too.
expect 0 "$tw" record -o k.tw --rotate 64K --keep 2 --count work:step -t work:rec --args=raw --stack 4 -- ./work numbers all
expect 0 "$tw" report --json -n 0 k.tw
is "$(counted step)" 400000 "with --keep"

# Killed at any moment: each of four threads may have written down one call that it had not made, nor the tracer seen.
rounds=$(rounds 2 8)
for round in $(seq "$rounds"); do
	expect 137 "$tw" record -q --force -o c.tw --count work:step -- ./work numbers kill $((round * 731 % 9000))
	mv numbers numbers.$round
	"$tw" report --json -n 0 c.tw >report.$round 2>err || fail "report of a killed program"
done

# The recorder is killed too: the ring set has the counts.
"$tw" record -q --force -o d.tw --count work:step -- ./work numbers kill 100000000 >out 2>err &
kill_both $!
mv numbers numbers.0
expect 0 "$tw" recover d.tw
"$tw" report --json -n 0 d.tw >report.0 2>err || fail "report of what was recovered"
python3 -I -S - "$rounds" <<'P' || fail "not the counts of a killed program"
import json, struct, sys
total = 0
for number in range(int(sys.argv[1]) + 1):
    d, own = json.load(open(f"report.{number}")), struct.unpack("8Q", open(f"numbers.{number}", "rb").read())
    counted = sum(f["calls"] for f in d.get("counted_by_function", []) if f["function"] == "step" and f["counted"])
    total += counted
    assert 0 <= own[0] - counted <= 4, f"{number or 'recovered'}: {own[0]} calls, {counted} counted"
# One that is killed early may have called nothing.
assert total > 0, "no calls"
P

# More than 10,000 functions: the largest are recorded, and all calls are recorded or counted.
# They are assembled, for which a compiler takes seconds.
python3 -I -S - >large.s <<'PY'
n = 10500
print(".text")
for i in range(n):
    print(f".globl f{i}\n.type f{i}, @function\nf{i}: .cfi_startproc\n.rept {12 if i % 100 else 4}\nnop\n.endr\nret\n.cfi_endproc\n.size f{i}, .-f{i}")
print(".section .data.rel.ro, \"aw\"\n.globl all\n.balign 8\nall:")
for i in range(n):
    print(f".quad f{i}")
print('.section .note.GNU-stack, "", @progbits')
PY
cat >main.c <<'C'
extern void (*const all[10500])(void);
int main(void) { for (int k = 0; k < 3; k++) for (int i = 0; i < 10500; i++) all[i](); return 0; }
C
gcc -O1 -o large main.c large.s || fail "no large program"
expect 0 "$tw" record -o e.tw -- ./large
says "its largest are recorded, and calls of the .* that are smaller than .* bytes are counted; -t _ --callers main records all"
expect 0 "$tw" report --json -n 0 e.tw
python3 -I -S - <<'P' || fail "not the functions expected"
import json
d = json.load(open("out"))
rows = [f for f in d["by_function"] + d["counted_by_function"] if f["function"][0] == "f" and f["function"][1:].isdigit()]
assert sum(f["calls"] for f in rows) == 31500, "calls of a large program"
assert len([f for f in d["counted_by_function"] if f["function"] in ("f0", "f100", "f10400")]) == 3, "the smallest are counted"
assert len([f for f in d["by_function"] if f["function"] in ("f1", "f99", "f10499")]) == 3, "the largest are recorded"
P
expect 0 "$tw" record -o f.tw -t _ --callers main -- ./large
expect 0 "$tw" report --json -n 0 f.tw
is "$(json "'counted_calls' in d, sum(f['calls'] for f in d['by_function'] if f['function'][0] == 'f' and f['function'][1:].isdigit())")" \
	"False 31500" "all are recorded"

expect 2 "$tw" record --count work:nothing -- ./work numbers all
says "work:nothing"
echo "counted"
