#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal    record -p shows the events that a program's own run-time reports about its processes, without functions unless
#         they are requested; each process' events are in order; wrong flags are refused; a program without a run-time
#         has threads.
build=$1
. "$(dirname "$0")/lib.sh"
office=$build/examples/example-mailbox

expect 0 "$tw" record -o all.tw -p send,receive,procs,running,garbage_collection -t 'office:_' -- "$office"
expect 0 "$tw" print --format erlang --bare-pids all.tw
cp out all.txt
shows '^{trace,<0.[0-9]*.0>,send,{job,1},<0.[0-9]*.0>}\.$'
shows "^{trace,<0.[0-9]*.0>,'receive',{job,3}}\.$"
shows '^{trace,<0.[0-9]*.0>,spawn,<0.[0-9]*.0>,{office,work,\[\]}}\.$'
shows '^{trace,<0.[0-9]*.0>,in,{office,clerk,0}}\.$'
shows '^{trace,<0.[0-9]*.0>,gc_minor_start,\['
python3 - <<'PY' || fail "the events of a process are not in order"
import re
events = {}
for line in open('all.txt'):
    pid, tag = re.match(r"\{trace,(<[0-9.]*>),'?(\w+)", line).groups()
    events.setdefault(pid, []).append(tag)
workers = [e for e in events.values() if 'spawned' in e]
assert len(workers) == 3, events
want = 'spawned getting_linked receive in call gc_minor_start gc_minor_end send exit'.split()
for e in workers:
    assert e == want, e
clerk = next(e for e in events.values() if 'register' in e)
assert clerk[-2:] == ['exit', 'unregister'], clerk
assert clerk.count('receive') == 4 and clerk.count('spawn') == 3 and clerk.count('link') == 3, clerk
scheduled = [tag for tag in clerk if tag in ('in', 'out')]
assert scheduled == ['in', 'out'] * (len(scheduled) // 2) + ['in'], clerk
PY

# Messages only: no functions, no other events.
expect 0 "$tw" record -o messages.tw -p send -- "$office"
expect 0 "$tw" print --format erlang --bare-pids messages.tw
[ "$(grep -c ',send,' out)" = 7 ] && [ "$(wc -l <out)" = 7 ] || fail "other events than seven sends"

# Every flag: calls are among them, and so they are traced; none is silent.
expect 0 "$tw" record -o every.tw -p all -- "$office"
expect 0 "$tw" print every.tw
shows 'call office:work/1'
shows 'out_exited'

# CPU time is shown in the stamps, and only if no other stamp is requested.
expect 0 "$tw" record -o cpu.tw -p send,cpu_timestamp -t 'office:_' -- "$office"
expect 0 "$tw" print --format erlang --bare-pids cpu.tw
[ "$(grep -c '^{trace_ts,.*,{0,[0-9]*,[0-9]*}}\.$' out)" = "$(wc -l <out)" ] || fail "stamps that are not CPU time"
grep -q ',send,' out && grep -q ',call,' out || fail "not both kinds of events"
calls=$(grep -c ',call,' out)
expect 0 "$tw" print --format erlang --bare-pids --timestamps wall cpu.tw
[ "$(grep -c '^{trace_ts,.*,{[1-9][0-9]*,[0-9]*,[0-9]*}}\.$' out)" = "$(wc -l <out)" ] || fail "no times of day"
expect 0 "$tw" print --format json cpu.tw
[ "$(grep -c '"cpu_ns":[1-9]' out)" = "$(wc -l <out)" ] || fail "events without CPU time"
expect 0 "$tw" report --json cpu.tw
python3 -c "import json; r = json.load(open('out')); assert sum(f['calls'] for f in r['by_function']) == $calls, r" ||
	fail "the report counts other calls"

# Native calls and their results as well.
expect 0 "$tw" record -o native.tw --returns -p call,cpu_timestamp -t 'libc:_' -- ls
expect 0 "$tw" print --format json native.tw
[ "$(grep -c '"cpu_ns":[1-9]' out)" = "$(wc -l <out)" ] || fail "native events without CPU time"
grep -q '"return_from"' out || fail "no returns"

for wrong in nosuch send,nosuch '' send,; do
	expect 2 "$tw" record -o never.tw -p "$wrong" -- ls
	says 'is not a flag'
	[ ! -e never.tw ] || fail "a capture was made for '$wrong'"
done
# The former name of the option.
expect 2 "$tw" record --processes sned -- true
says '--processes is --flags now'
expect 2 "$tw" record --flags sned -- true
says "'sned' is not a flag"
exit 0
