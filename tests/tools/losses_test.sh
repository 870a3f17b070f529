#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal    After a loss, calls nest in those still open, sums with losses in them are marked, and time that a thread
#         waited for the recorder is in no call.
# Method  A program measures its parts by its own clock, from before each part's first event until after its last: no time
#         in a capture is longer. It is recorded with rings that are too small, and with a recorder that stands still for a
#         while.
build=$1
. "$(dirname "$0")/lib.sh"

cat >phases.c <<'EOT'
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#define OUT __attribute__((noinline))
static inline __attribute__((always_inline)) double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}
OUT int leaf(int i) { __asm__ volatile("" : "+r"(i)); return i; }
OUT int parse(int n) { int sum = 0; for (int i = 0; i < n; i++) sum += leaf(i); return sum; }
OUT void slow(void) { const struct timespec t = {0, 30000000}; nanosleep(&t, NULL); __asm__ volatile(""); }
OUT void rest(void) { for (int i = 0; i < 5; i++) slow(); __asm__ volatile(""); }
static double start, parsed;
__attribute__((constructor, patchable_function_entry(0, 0))) static void begin(void) { start = now(); }
__attribute__((destructor, patchable_function_entry(0, 0))) static void tell(void)
{
	double end = now();
	printf("%f %f\n", parsed, end - start);
}
int main(int argc, char **argv)
{
	parsed = now();
	parse(atoi(argv[1]));
	parsed = now() - parsed;
	rest();
	return 0;
}
EOT
${CC:-cc} -O2 -g -fpatchable-function-entry=9 phases.c -o phases || fail "no program"

lossy=0
for round in $(seq "$(rounds 1 3)"); do
	expect 0 "$tw" record -q --force --returns -t phases:_ -N 'phases:{begin,tell}' --on-full drop --ring 64K -o lossy.tw -- ./phases 300000
	read -r parse whole <out
	expect 0 "$tw" report --json lossy.tw
	python3 -I -S - "$parse" "$whole" <<'EOT' || fail "round $round"
import json, sys
parse, whole = map(float, sys.argv[1:])
d = json.load(open("out"))
f = {r["name"].split(":")[1].split("/")[0]: r for r in d["by_function"]}
lost = sum(d["lost"].values())
print("lost", lost, {n: (r["calls"], r["total"], r["in_losses"], r["lossy"]) for n, r in f.items()})
assert d["events"] + lost == 2 * (300000 + 5 + 3), d["events"]
# No time is longer than measured, except where a loss is shown; the clocks agree within a hundredth.
assert f["leaf"]["total"] - f["leaf"]["in_losses"] <= parse * 1.01 + 0.001
for name in f:
    assert f[name]["total"] <= whole * 1.01 + 0.001, name
if f["slow"]["calls"] == 5 and not f["slow"]["lossy"]:
    assert [c["name"].split(":")[1].split("/")[0] for c in f["slow"]["callers"]] in (["rest"], ["main"]), f["slow"]
    assert f["slow"]["total"] >= 0.15
for r in f.values():
    for c in r["callers"]:
        assert not c["name"].startswith("phases:leaf"), "a call in a leaf"
        assert not c["name"].startswith("phases:slow"), "a call in a leaf"
for name in ("main",):
    assert bool(f[name]["lossy"]) == bool(lost), name
EOT
	[ "$(json 'sum(d["lost"].values())')" -eq 0 ] || lossy=1
	if [ "$(json 'sum(d["lost"].values())')" -gt 0 ]; then
		expect 0 "$tw" report lossy.tw
		shows '^ *?.*phases:main'
		expect 0 "$tw" flame lossy.tw
		grep -q '"lossy":\[[0-9]' out || fail "the flame graph marks no frame"
		expect 0 "$tw" print --format chrome lossy.tw
		grep -q '"lossy":true' out || fail "the timeline marks no slice"
	fi
done
[ "$lossy" = 1 ] || echo "nothing was lost here: only half is tested"

# A recorder that stands still: the program waits, and no call of it includes that time. The recorder stands still for as
# long as this machine lets it: if that was too short to be seen, or more than the second after which the program waits no
# longer, or if the machine paused the program between its clock and its calls, the same is tried again.
has_waited() {
	local recorder parse whole code=0
	"$tw" record -q --force --returns -t phases:_ --on-full block --ring 64K -o waits.tw -- ./phases 1000000 >said &
	recorder=$!
	wait_until eval "[ -e waits.tw/segment-000001.tws.part ] || ! kill -0 $recorder"
	kill -STOP $recorder
	sleep 0.4
	kill -CONT $recorder
	wait $recorder || fail "the program failed"
	read -r parse whole <said
	expect 0 "$tw" print --format json --setups -t phases:main waits.tw
	mv out main.json
	expect 0 "$tw" report --json waits.tw
	python3 -I -S - "$parse" "$whole" <<-'EOT' || code=$?
		import json, sys
		parse, whole = map(float, sys.argv[1:])
		d = json.load(open("out"))
		f = {r["name"].split(":")[1].split("/")[0]: r for r in d["by_function"]}
		waits, events = d["account"]["waits"], [json.loads(line) for line in open("main.json")]
		# That of the thread lies before the program's clock begins, in the call of main.
		began = next(e["ns"] for e in events if e["kind"] == "call")
		setups = sum(e["own_ns"] for e in events if e.get("why") == "setup" and e["ns"] > began) / 1e9
		print("waits", waits, "parse", f["parse"]["total"], "of", parse, "lost", sum(d["lost"].values()))
		if sum(d["lost"].values()):
		    sys.exit(2)
		assert waits["count"] > 0
		assert f["parse"]["total"] + waits["seconds"] <= parse * 1.01 + 0.001
		assert f["main"]["total"] + waits["seconds"] + setups <= whole * 1.01 + 0.001
		assert f["leaf"]["max"] < parse and f["leaf"]["total"] <= f["parse"]["total"]
		sys.exit(0 if waits["seconds"] > 0.1 and parse - f["parse"]["total"] - waits["seconds"] < 0.1 * parse + 0.02 else 2)
	EOT
	[ $code != 1 ] || fail "waits"
	return $code
}
for try in {1..20}; do
	! has_waited || break
	[ "$try" -lt 20 ] || fail "no recording has a wait that can be judged"
done
expect 0 "$tw" info waits.tw
shows '^waits  *waited [0-9,]* times*, .* in all, for space in the rings'
expect 0 "$tw" report waits.tw
shows 'The program waited [0-9,]* times*, .*: this is not in the times of calls'
expect 0 "$tw" print -t phases:rest waits.tw
shows 'tracer: the thread waited for space'
expect 0 "$tw" print -t phases:rest --format json waits.tw
shows '"kind":"own_time","why":"wait","own_ns":[1-9]'
expect 0 "$tw" print --tree -t phases:rest waits.tw
shows '(tracer: wait)'
expect 0 "$tw" print --format chrome -t phases:rest waits.tw
shows '"name":"(tracer: wait)"'

# Handlers inside hits: their losses come after the event that they interrupted, in the order of time of all threads.
cat >handlers.c <<'EOT'
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/time.h>
#define OUT __attribute__((noinline, noclone))
OUT void work(long k) { __asm__ volatile("" ::"r"(k)); }
OUT void handled(long k) { __asm__ volatile("" ::"r"(k)); }
static void on_alarm(int number) { for (long i = 0; i < 3; i++) handled(i); }
static void *run(void *unused) { for (long k = 0; k < CALLS; k++) work(k); return unused; }
int main(void)
{
	struct sigaction action;
	struct itimerval timer = {{0, 500}, {0, 500}};
	sigset_t set;
	pthread_t threads[3];
	memset(&action, 0, sizeof action);
	action.sa_handler = on_alarm;
	action.sa_flags = SA_RESTART;
	sigaction(SIGALRM, &action, 0);
	setitimer(ITIMER_REAL, &timer, 0);
	for (int i = 0; i < 3; i++)
		pthread_create(&threads[i], 0, run, 0);
	/* The workers take the signals. */
	sigemptyset(&set);
	sigaddset(&set, SIGALRM);
	pthread_sigmask(SIG_BLOCK, &set, 0);
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], 0);
	memset(&timer, 0, sizeof timer);
	setitimer(ITIMER_REAL, &timer, 0);
	return 0;
}
EOT
${CC:-cc} -O2 -g -DCALLS="$(rounds 60000 200000)" -fpatchable-function-entry=9 handlers.c -o handlers -lpthread || fail "no program"
expect 0 "$tw" record -q --force --on-full block --ring 64K --args -t 'handlers:{work,handled}' -o nested.tw -- ./handlers
"$tw" print --format json nested.tw >lines 2>err || fail "print"
awk -F '"ns":' '{ ns = $2 + 0 } NF < 2 || ns < last { exit 1 } { last = ns }' lines || fail "not in order of time"

# Events that newer ones replaced are not lost, in any view, and each thread says how far back its events reach.
expect 0 "$tw" record -q --force --on-full overwrite --ring 64K -t phases:_ -N 'phases:{begin,tell}' -o newest.tw -- ./phases 300000
expect 0 "$tw" report --json newest.tw
gone=$((300000 + 5 + 3 - $(json 'd["calls"]')))
for view in "report --json" "info --json"; do
	# shellcheck disable=SC2086
	expect 0 "$tw" $view newest.tw
	is "$(json 'd["lost"]["overwritten"], sum(d["lost"].values())')" "$gone $gone" "replaced and lost events of $view"
	is "$(json 'd["account"]["missing"]["overwritten"]["events"]')" "$gone" "replaced events of the account"
done
expect 0 "$tw" print --format json newest.tw
is "$(grep '"lost"' out | python3 -I -S -c 'import json, sys; d = [json.loads(l) for l in sys.stdin]; print(sum(e["full"] for e in d), sum(e["overwritten"] for e in d))')" \
	"0 $gone" "replaced events of print"
for view in report "report --to 10" info print "print --tree" "print --format erlang" flame; do
	# shellcheck disable=SC2086
	expect 0 "$tw" $view newest.tw
	! grep -qE 'LOST|full [0-9]|\{full' out err || fail "$view: replaced events are called lost"
done
# Output for other programs has no place for it: standard error has.
for view in "report --csv" "flame --folded"; do
	# shellcheck disable=SC2086
	expect 0 "$tw" $view newest.tw
	says "replaced by newer ones"
	! grep -q LOST err || fail "$view: replaced events are called lost"
	# shellcheck disable=SC2086
	expect 0 "$tw" $view lossy.tw
	says "LOST .* events of the capture: full "
done
expect 0 "$tw" report newest.tw
shows "replaced by newer ones, which cover [0-9.]* [mun]*s$"
# They cover the time from the first event that is there, not from the first that was replaced.
cp out shown
expect 0 "$tw" report --json newest.tw
cp out report.json
expect 0 "$tw" print --format json newest.tw
python3 -I -S - <<'PY' || fail "the time that the events of a thread cover"
import json, re
seconds = {row["thread"]: row["seconds"] for row in json.load(open("report.json"))["by_thread"] if row["lost"]["overwritten"]}
times = {}
for event in map(json.loads, open("out")):
    if event["kind"] != "lost":
        times.setdefault(event["thread"], []).append(event["ns"])
units = {"s": 1, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}
texts = [float(n) * units[unit] for n, unit in re.findall(r"which cover ([0-9.]+) ([mun]?s)\n", open("shown").read())]
true = [(times[thread][-1] - times[thread][0]) / 1e9 for thread in seconds]
assert seconds and all(abs(a - b) < 2e-9 for a, b in zip(seconds.values(), true)), (seconds, true)
assert all(abs(a - b) < b / 50 for a, b in zip(sorted(texts), sorted(true))) and len(texts) == len(true), (texts, true)
PY
# Nor where calls have times.
expect 0 "$tw" record -q --force --on-full overwrite --ring 64K --returns -t phases:_ -o times.tw -- ./phases 30000
for view in "report" "report --by result"; do
	# shellcheck disable=SC2086
	expect 0 "$tw" $view times.tw
	shows "Older events were replaced by newer ones at [0-9]* place.*: sums with such places in them have a ?"
	! grep -q 'were lost' out || fail "$view: replaced events are called lost"
done

# Nor in views that say which of their rows may be wrong: locks and messages.
cat >lock.c <<'EOT'
#include <pthread.h>
int main(void)
{
	pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	for (int i = 0; i < 20000; i++) {
		pthread_mutex_lock(&lock);
		pthread_mutex_unlock(&lock);
	}
	return 0;
}
EOT
gcc -O1 lock.c -o lock || fail "cannot build lock.c"
expect 0 "$tw" record -q --force --on-full overwrite --ring 64K --locks -o lock.tw -- ./lock
expect 0 "$tw" record -q --force --on-full overwrite --ring 64K -p send,receive,procs,running -o chat.tw -- \
	"$build/bin/actors" chat -m 3000
while read -r capture view; do
	# shellcheck disable=SC2086
	expect 0 "$tw" $view --json $capture.tw
	is "$(json '(lambda g: (g["lost"], g["overwritten"] > 0))(d.get("lock_gaps", d))')" "(0, True)" "replaced events of $view --json"
	# shellcheck disable=SC2086
	expect 0 "$tw" $view $capture.tw
	shows "older events were replaced by newer ones: "
	! grep -qE 'LOST|were lost' out || fail "$view: replaced events are called lost"
done <<-'LIST'
	lock report --locks
	chat why-late
LIST
