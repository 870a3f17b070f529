#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal    `print => true` and `record --erlang --print` show every event of the capture once, in order, as dbg does, or say how many they
#	  left out; a group leader that never answers, or ends, costs the node nothing.
# Method  One VM (print.erl) with group leaders that keep what they are told, are late, stuck or end, and dbg beside them; a shell over
#	  -remsh on a terminal; the command. What was shown is compared with the captures, and with what dbg says of the same events.
build=$1 modules=(print attach)
. "$(dirname "$0")/lib.sh"

# Lines of a capture, made afterwards.
lines_of() {
	"$tw" print --format dbg "$1" 2>&1
}

# ---- in one VM ----
erl_run print main >said 2>&1 || fail "print.erl: $(tail -n 5 said)"
grep -qx ok said || fail "it did not come to its end: $(tail -n 5 said)"
[ "$(grep -c 'is not printed any more' said)" = 0 ] || fail "printing ended before its time"
for capture in all stamped fun short; do
	lines_of $capture.tw >expected
	[ -s expected ] || fail "$capture.tw is empty"
	cmp -s expected $capture.tw.shown || fail "$capture: $(diff expected $capture.tw.shown | head -n 4)"
done
# Of those that were shown, each is one of the capture's, in order, and none is twice.
lines_of fewer.tw >expected
grep -v '^\.\.\.' fewer.tw.shown >shown
diff expected shown | grep -q '^>' && fail "fewer: lines that are not in the capture"
"$tw" info stuck.tw | grep -q 'complete      yes' || fail "stuck.tw is not complete"
is "$(lines_of stuck.tw | wc -l)" 60000 "lines of the trace with a stuck group leader"

# dbg breaks long terms into lines; its file has no names of processes.
for capture in all stamped; do
	"$tw" convert -q --to ttb $capture.tw -o $capture.ttb || fail "ttb"
	erl -noshell -eval "P = dbg:trace_client(file, \"$capture.ttb\"), M = monitor(process, P), receive {'DOWN', M, _, _, _} -> halt() end." \
		</dev/null | tr -d ' \n' >by_dbg
	tr -d ' \n' <$capture.tw.shown >by_us
	[ -s by_dbg ] || fail "dbg shows nothing"
	cmp -s by_dbg by_us || fail "$capture: dbg says otherwise: $(cmp by_dbg by_us)"
done

# ---- in a shell of the node, over -remsh ----
command -v epmd >/dev/null || { echo "no epmd here: the rest is not tested" && exit 77; }
a_home
start_node -sname shop@localhost -setcookie secret -pa "$build/erlang/ebin"
mkfifo keys
TERM=vt100 script -qfc "erl -sname me@localhost -start_epmd false -setcookie secret -remsh shop@localhost" screen <keys >/dev/null 2>&1 &
shell=$!
pids="$pids $shell"
exec 7>keys
on_screen() {
	grep -q -- "$1" screen
}
wait_for $shell on_screen '(shop@localhost)1>'
echo 'tracewheel:start("remsh.tw", #{patterns => "attach:step/1", events => 40, print => true, recorder => "'"$tw"'"}).' >&7
wait_for $shell on_screen 'state => tracing'
complete() {
	"$tw" info "$1" 2>/dev/null | grep -q 'complete      yes'
}
wait_for $shell complete remsh.tw
lines_of remsh.tw >expected
is "$(wc -l <expected)" 40 "events of remsh.tw"
last_is_on_screen() {
	on_screen "$(tail -n 1 expected)"
}
wait_for $shell last_is_on_screen
# The shell shows a prompt wherever it is.
grep -o '(<[0-9.]*>) call attach:step([0-9]*)' screen >shown
cmp -s expected shown || fail "over -remsh: $(diff expected shown | head -n 4)"
exec 7>&-

# ---- from outside ----
start_node -sname far@localhost -setcookie secret
expect 0 "$tw" record --erlang -q --print --cookie-file cookie -t 'attach:step(N) when N > 0 -> return' --events 50 -o far.tw far@localhost
mv out shown
lines_of far.tw >expected
is "$(wc -l <expected)" 50 "events of far.tw"
cmp -s expected shown || fail "--print: $(diff expected shown | head -n 4)"
# The sentences at its end come behind the last line, though another process makes the lines.
"$tw" record --erlang --print --cookie-file cookie -t attach:step --events 30 --force -o far.tw far@localhost >both 2>&1 </dev/null || fail "--print"
is "$(tail -n 2 both | grep -c '^tracewheel: ')" 2 "sentences behind the lines"
is "$(grep -c ') call attach:step(' both)" 30 "lines before them"
# Fewer lines than events.
expect 0 "$tw" record --erlang -q --print --lines 20/s --cookie-file cookie -t attach:step -p call --events 200 -o few.tw far@localhost
is "$(awk '/^\.\.\. [0-9]* events? not shown/ { n += $2 } / call / { n++ } END { print n }' out)" 200 "shown, and said to be left out"
lines_of few.tw >expected
grep call out >shown
diff expected shown | grep -q '^>' && fail "few: lines that are not in the capture"
# Its reader goes: the trace ends, and the capture is whole.
"$tw" record --erlang -q --print --time infinity --cookie-file cookie -t attach:step -o head.tw far@localhost 2>err </dev/null | head -n 3 >shown
is "$(wc -l <shown)" 3 "lines for head"
complete head.tw || fail "head.tw is not complete: $(cat err)"
# Ctrl-C: all that came before is shown, and waited for, however late the process is that prints it.
begin --print --cookie-file cookie -o int.tw far@localhost
printed() {
	[ "$(wc -l <out)" -gt 5 ]
}
wait_for $recording printed
read -ra children <"/proc/$recording/task/$recording/children"
for child in "${children[@]}"; do
	[ "$(<"/proc/$child/comm")" != tracewheel ] || printer=$child
done
kill -STOP "$printer"
kill -TERM $recording
wait_until complete int.tw
for _ in {1..30}; do
	nap
done
! grep -q 'events of' err || fail "the command sums up before its last lines"
kill -CONT "$printer"
ended_with 0
says 'events of'
lines_of int.tw >expected
cmp -s expected out || fail "until it was stopped: $(diff expected out | head -n 4)"
refused 2 "--lines is about --print" --lines 5/s -t attach -o none.tw far@localhost
refused 2 "--lines is a number of lines a second such as 100/s" --print --lines many -t attach -o none.tw far@localhost

# ---- any running capture of a node ----
begin --cookie-file cookie -o any.tw far@localhost
"$tw" print --follow --from 0 --format dbg any.tw >followed 2>follow.err &
follower=$!
followed() {
	[ "$(wc -l <followed)" -gt 5 ]
}
wait_for $follower followed
kill -TERM $recording
ended_with 0
wait $follower || fail "print --follow: $(cat follow.err)"
lines_of any.tw >expected
cmp -s expected followed || fail "--follow: $(diff expected followed | head -n 4)"
