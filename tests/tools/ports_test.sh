#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal    record -p shows ports in every view: text, Erlang, JSON, tree, timeline, report; those that a program without
#         a run-time declares, and the sockets of actors.
# Method  A pipe that a program declares; a web server of actors whose 8 clients ask twice each, over a port each time.
build=$1
. "$(dirname "$0")/lib.sh"

expect 0 "$tw" record -q -o pipe.tw -p send,receive,ports,running_ports -- "$build/examples/example-ports"
shows '5 bytes went through the pipe'
expect 0 "$tw" print --format erlang --bare-pids pipe.tw
sed 's/<0\.[0-9]*>/<0.P>/; s/<0\.[0-9]*\.0>/<0.N.0>/' out >got
diff - got <<'EOT' || fail "other events of the pipe"
{trace,#Port<0.P>,open,<0.N.0>,pipe}.
{trace,#Port<0.P>,getting_linked,<0.N.0>}.
{trace,#Port<0.P>,in,command}.
{trace,#Port<0.P>,'receive',{<0.N.0>,{command,<<104,101,108,108,111>>}}}.
{trace,#Port<0.P>,out,command}.
{trace,#Port<0.P>,closed,normal}.
EOT
expect 0 "$tw" print pipe.tw
shows ' #Port<0.[0-9]*> pipe:\[[0-9]*\] open <0.[0-9]*.0> pipe$'
shows ' #Port<0.[0-9]*> pipe:\[[0-9]*\] out command$'
expect 0 "$tw" print --format json pipe.tw
grep '"kind":"in"' out | grep -q '"pid":"#Port<0.[0-9]*>","pid_name":"pipe:\[[0-9]*\]","kind":"in","command":"command"}' || fail "no command in JSON"

expect 0 "$tw" record -q --on-full block -o web.tw -p send,receive,ports,running_ports,running -- "$build/bin/actors" web -m 16
expect 0 "$tw" print --format json web.tw
python3 - <<'EOT' || fail "the ports of the web server do not add up"
import collections, json
kinds = collections.defaultdict(list)
for line in open("out"):
    event = json.loads(line)
    if event["pid"].startswith("#Port"):
        kinds[event["pid"]].append(event["kind"])
listening = [pid for pid, of in kinds.items() if of.count("open") == 1 and of.count("receive") <= 1]
assert all(of[0] == "open" for of in kinds.values()), kinds
assert all(of.count("in") == of.count("out") for of in kinds.values()), kinds
assert sum(of.count("open") for of in kinds.values()) == len(kinds)
assert sum(of.count("closed") for of in kinds.values()) == len(kinds), kinds
EOT
expect 0 "$tw" print --tree web.tw
shows '#Port<0.[0-9]*> tcp_inet  *|  in command'
expect 0 "$tw" print --format chrome web.tw
python3 - <<'EOT' || fail "the timeline does not show the runs of ports"
import json
events = json.load(open("out"))["traceEvents"]
runs = [e for e in events if e["ph"] == "X" and e["name"].startswith("#Port<0.")]
assert runs and all(e["args"]["command"] in ("command", "close") for e in runs), runs[:3]
assert any(e["ph"] == "M" and e["args"].get("name", "").endswith("tcp_inet, listening") for e in events)
EOT
expect 0 "$tw" report --json web.tw
is "$(json 'all(p["sent"] + p["received"] > 0 or p["runs"] for p in d["processes"]), any(p["pid"].startswith("#Port<0.") for p in d["processes"])')" 'True True'
expect 0 "$tw" report web.tw
shows '#Port<0.[0-9]*> tcp_inet'

expect 2 "$tw" record -q -p port -- true
says "'port' is not a flag"
