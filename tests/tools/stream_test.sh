#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Goal    A recording as a stream is read live, contains the same as a capture, and its reader may end.
# Method  A program with known calls, recorded to pipes and files; a reader that ends, and cut streams.
set -eu
bin=$1/bin
tool=$bin/tracewheel
dir=$(mktemp -d /tmp/stream_test-XXXXXX)
trap 'rm -rf "$dir"' EXIT
fail() {
	echo "$1" >&2
	exit 1
}
cd "$dir"
cat > prog.sh <<'END'
echo to-the-program
for i in 1 2 3; do read -r line < /dev/null || true; done
END

# Standard output belongs to the stream: the program's output goes to standard error.
$tool record -q -o - -t 'libc:read' -- sh prog.sh > a.tws 2> err || fail "record -o - failed: $(cat err)"
grep -q '^to-the-program$' err || fail "the program's output is not on standard error"
$tool print a.tws > a.txt
grep -q 'call libc:read\b' a.txt || fail "no event in the stream's file: $(cat a.txt)"
$tool print - < a.tws > b.txt
cmp a.txt b.txt || fail "a file and a pipe are not read alike"
$tool print --format erlang --bare-pids a.tws | grep -q "^{trace,<0.1.0>,call,{libc,read,'_'}}" || fail "no message in Erlang's form"
test "$($tool print --limit 1 a.tws | wc -l)" = 1 || fail "--limit is not obeyed"
test "$($tool print -t 'libc:no_such' a.tws | wc -l)" = 0 || fail "-t is not obeyed"

# The same number of events as in a capture.
$tool record -q -o c.tw -t 'libc:read' -- sh prog.sh > out 2>&1
test "$($tool print c.tw | wc -l)" = "$(wc -l < a.txt)" || fail "the stream holds other events than a capture"

# Events are shown before the program ends: the reader sees a line, and lets the program continue.
mkfifo go
cat > wait.sh <<'END'
read -r line < /dev/null || true
read -r line < go
END
$tool record -q -o - -t 'libc:read' -- sh wait.sh 2> err | $tool print - | {
	read -r first
	echo now > go
	cat > rest
	echo "$first" > first
}
grep -q 'call libc:read\b' first || fail "nothing came while the program ran"

# Other views read it to its end, and then as they read a capture: a pipe, a file, and views that need two passes.
$tool record -q -o - --returns --follow-fork -t 'libc:_' -- sh -c 'sh prog.sh; ls / > /dev/null; true' > d.tws 2> err || fail "$(cat err)"
for view in 'info' 'info --json' 'report' 'report --json' 'report --top 0 --callers' 'report --tree' 'flame --folded' 'flame' \
	'print --tree' 'print --format chrome'; do
	# shellcheck disable=SC2086
	cat d.tws | $tool $view - > pipe.txt 2> err || fail "$view -: $(cat err)"
	# A tree also says the tracer's own cost, where it is known.
	grep -v "the tracer's own cost is in these times" err > more && fail "$view -: $(cat more)"
	# shellcheck disable=SC2086
	$tool $view d.tws > file.txt || fail "$view of a file with a stream failed"
	cmp pipe.txt file.txt || fail "$view: a file and a pipe are not read alike"
	test -s pipe.txt || fail "$view - says nothing"
done
events=$($tool print --format json d.tws | wc -l)
$tool info --json - < d.tws | grep -q "\"events\": $events,*$" || fail "info counts other events than print shows: $events"
$tool report --json - < d.tws | grep -q "\"events\": $events,*$" || fail "report counts other events than print shows: $events"
$tool info - < d.tws | grep -q '^complete *yes' || fail "a whole stream is not complete"
$tool report - < d.tws | grep -q '^Nothing was lost' || fail "report does not say that nothing was lost"
# Not from its beginning.
{ dd bs=1 count=3 > /dev/null 2>&1; $tool report -; } < d.tws > /dev/null 2> err && fail "the middle of a file was taken for a stream"
for command in recover compact functions; do
	code=0
	$tool $command - < d.tws > /dev/null 2> err || code=$?
	test "$code-$(wc -l < err)" = 1-1 || fail "$command -: exit code $code: $(cat err)"
done

# Losses are shown: the program stops its recorder, and fills its ring.
# shellcheck disable=SC2016
$tool record -q -o - --ring 64K --on-full drop -t 'libc:read' -- sh -c 'kill -STOP $PPID
i=0; while [ $i -lt 10000 ]; do i=$((i+1)); read -r l < /dev/null; done
kill -CONT $PPID' > lost.tws 2> err || fail "$(cat err)"
$tool report - < lost.tws > lost.txt || fail "a stream with losses is no failure"
grep -q '^LOST ' lost.txt || fail "report - does not show what was lost: $(cat lost.txt)"
$tool info --json - < lost.tws | python3 -c 'import json, sys
info = json.load(sys.stdin)
lost = sum(info["lost"].values())
assert lost > 1000 and lost + info["events"] == 10000 and info["complete"], info' || fail "not all calls are recorded or counted"

# Ctrl-C goes to the whole pipeline: the reader waits for the end of the stream. A second one ends it.
python3 - "$tool" d.tws << 'END' || fail "SIGINT while a stream comes"
import signal, subprocess, sys, time
tool, path = sys.argv[1:]
whole = open(path, 'rb').read()
def patient(pid):
    caught = [int(l.split()[1], 16) for l in open(f'/proc/{pid}/status') if l.startswith('SigCgt')][0]
    return caught & 1 << signal.SIGINT - 1
for again in (False, True):
    report = subprocess.Popen([tool, 'report', '-'], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
    report.stdin.write(whole[:1000])
    report.stdin.flush()
    while not patient(report.pid):
        time.sleep(0.01)
    report.send_signal(signal.SIGINT)
    while patient(report.pid):
        time.sleep(0.01)
    if again:
        report.send_signal(signal.SIGINT)
        assert report.wait() == -signal.SIGINT
        continue
    text = report.communicate(whole[1000:])[0]
    assert report.returncode == 0 and b'Nothing was lost' in text, (report.returncode, text)
END

# A reader that ends does not affect the program.
$tool record -o - -- sh -c 'i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; echo done; exit 3' 2> err > /dev/full && fail "the exit code was lost"
{ $tool record -o - --callers all -- sh -c 'i=0; while [ $i -lt 3000 ]; do i=$((i+1)); read -r l < /dev/null; done; echo done; exit 3' 2> err || echo $? > code; } |
	head -c 100 > /dev/null
grep -q '^done$' err || fail "the program did not end as it should: $(tail -3 err)"
test "$(cat code)" = 3 || fail "the exit code is not the program's: $(cat code)"

# Cut anywhere after its beginning: the received part is shown, the cut is reported, and the exit code says so.
bytes=$(wc -c < a.tws)
for at in 192 200 300 $((bytes / 2)) $((bytes - 8)); do
	for view in print info report 'flame --folded' 'print --tree'; do
		code=0
		# shellcheck disable=SC2086
		head -c "$at" a.tws | $tool $view - > out 2> err || code=$?
		test "$code" = 1 || fail "$view of a stream cut at $at of $bytes bytes: exit code $code"
		grep -Eqs 'cut off|ends here' err out || fail "$view: cut at $at, and not said to be: $(cat err)"
	done
done
echo nothing | $tool print - > /dev/null 2> err && fail "text was taken for a stream"
grep -q 'not the stream' err || fail "$(cat err)"
$tool print - < /dev/null > /dev/null 2>&1 && fail "nothing was taken for a stream"
exit 0
