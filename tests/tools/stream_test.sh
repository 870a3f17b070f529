#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Goal: a recording as a stream is read while it comes, holds what a capture holds, and its reader may go.
# Method: a program whose calls are known, recorded to pipes and files; a reader that leaves, and cut streams.
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

# The stream is standard output's alone: what the program writes goes to standard error.
$tool record -q -o - -t 'libc:read' -- sh prog.sh > a.tws 2> err || fail "record -o - failed: $(cat err)"
grep -q '^to-the-program$' err || fail "the program's output is not on standard error"
$tool print a.tws > a.txt
grep -q 'call libc:read/' a.txt || fail "no event in the stream's file: $(cat a.txt)"
$tool print - < a.tws > b.txt
cmp a.txt b.txt || fail "a file and a pipe are not read alike"
$tool print --format erlang a.tws | grep -q "^{trace,<0.1.0>,call,{libc,read,'_'}}" || fail "no message in Erlang's form"
test "$($tool print --limit 1 a.tws | wc -l)" = 1 || fail "--limit is not obeyed"
test "$($tool print -t 'libc:no_such' a.tws | wc -l)" = 0 || fail "-t is not obeyed"

# As many events as a capture holds.
$tool record -q -o c.tw -t 'libc:read' -- sh prog.sh > out 2>&1
test "$($tool print c.tw | wc -l)" = "$(wc -l < a.txt)" || fail "the stream holds other events than a capture"

# What comes is shown before the program ends: the reader sees a line, and lets the program go on.
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
grep -q 'call libc:read/' first || fail "nothing came while the program ran"

# A reader that goes does no harm to the program.
$tool record -o - -- sh -c 'i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; echo done; exit 3' 2> err > /dev/full && fail "the exit code was lost"
{ $tool record -o - --callers all -- sh -c 'i=0; while [ $i -lt 3000 ]; do i=$((i+1)); read -r l < /dev/null; done; echo done; exit 3' 2> err || echo $? > code; } |
	head -c 100 > /dev/null
grep -q '^done$' err || fail "the program did not end as it should: $(tail -3 err)"
test "$(cat code)" = 3 || fail "the exit code is not the program's: $(cat code)"

# Cut, or no stream at all.
head -c 300 a.tws | $tool print - > /dev/null 2> err || true
grep -q 'cut off' err || fail "a cut stream is not said to be: $(cat err)"
echo nothing | $tool print - > /dev/null 2> err && fail "text was taken for a stream"
grep -q 'not the stream' err || fail "$(cat err)"
$tool print - < /dev/null > /dev/null 2>&1 && fail "nothing was taken for a stream"
exit 0
