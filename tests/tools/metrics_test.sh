#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal    `record --metrics FILE` has the numbers of the recording, while it goes on and at its end, in Prometheus' text form, whole at any time;
#         a file that cannot be written harms no recording.
# Method  A program waits in its middle until the file has the first half of its calls; a reader takes the form apart. Rings that are too
#         small: what is lost is what the report says.
build=$1
. "$(dirname "$0")/lib.sh"

make_calls
mkfifo go
# metric NAME: its value. Fails where any line is not of the form.
metric() {
	python3 - "$1" <<'P' || fail "$1 of m.prom: $(cat m.prom)"
import re, sys
values, types = {}, {}
for line in open("m.prom"):
    if kind := re.fullmatch(r"# TYPE (tracewheel_\w+) (counter|gauge)\n", line):
        types[kind[1]] = kind[2]
    elif not re.fullmatch(r"# HELP tracewheel_\w+ .+\n", line):
        name, labels, value = re.fullmatch(r'(tracewheel_\w+)(\{cause="\w+"\})? (\d+)\n', line).groups()
        assert types[name] == "counter" or not name.endswith("_total")
        values[name + (labels or "")] = int(value)
print(values["tracewheel_" + sys.argv[1]])
P
}
has_half() { [ -e m.prom ] && [ "$(metric events_total)" -ge 500 ]; }

"$tw" record -q --metrics m.prom -t calls:step -o a.tw -- ./calls <go >/dev/null &
pid=$!
exec 3>go
wait_for $pid has_half
is "$(metric events_total)" 500 "events of the first half"
is "$(metric is_recording)" 1
is "$(metric rings)" 1
printf xx >&3
exec 3>&-
wait $pid || fail "the recording"
is "$(metric events_total)" 1000 "events at the end"
is "$(metric is_recording)" 0
is "$(metric 'lost_total{cause="full"}')" 0
is "$(echo m.prom*)" m.prom "temporary files are left"

expect 0 "$tw" record -q --metrics m.prom --on-full drop --ring 64K -t libc:_ -o lossy.tw -- sh -c 'i=0; while [ $i -lt 3000 ]; do i=$((i + 1)); done'
expect 0 "$tw" report --json lossy.tw
for cause in full too_big nested no_ring; do
	is "$(metric "lost_total{cause=\"$cause\"}")" "$(json "d['lost']['$cause']")" "$cause"
done

expect 0 "$tw" record -q --metrics missing/m.prom -t libc:_ -o b.tw -- true
is "$(grep -c "metrics: 'missing/m.prom' cannot be written" err)" 1 "said once"
