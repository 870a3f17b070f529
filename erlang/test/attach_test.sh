#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal    `record --erlang NODE|PID` traces a running node that has not loaded the application, until a signal or a limit, and leaves
#         nothing there; what cannot be reached is one sentence and an exit code; when the connection or the VM is lost in the middle,
#         the capture is whole.
# Method  A node with a name and an epmd of its own on loopback; the command, with it and with what is wrong.
build=$1 modules=(attach refuse ../src/tracewheel_attach)
. "$(dirname "$0")/lib.sh"
command -v epmd >/dev/null || { echo "no epmd here: not tested" && exit 77; }
a_home
serve_refusals

# ask unloaded: until the node has nothing of the application. ask reload: it loads the application again. ask disconnect: it
# closes connections. ask leave: for a second, a process has the name of one that unloads modules. ask snatch: a module leaves while
# the application is loaded. ask kill: it kills the process behind the trace. ask other: a process of it gets another tracer. ask again: it
# loads its own module again. ask remove: it ends all traces of the node. ask version: it loads another version of the application.
ask() {
	: >"$1"
	wait_until test ! -e "$1"
}

complete() {
	"$tw" info "$1" 2>/dev/null | grep -q 'complete      yes'
}

recorded() {
	"$tw" print "$1" 2>/dev/null | grep -q .
}

start_node -sname shop@localhost -setcookie secret

# Until a signal; twice at once is refused.
begin --cookie-file cookie -o a.tw shop@localhost
wait_for $recording recorded a.tw
refused 125 "is being traced already" --cookie-file cookie -t attach:step -o none.tw shop@localhost
# Another that begins at the same moment loads the modules again, and as it is refused, they would leave but for this trace.
ask reload
ask leave
kill -TERM $recording
ended_with 0
says 'events of'
complete a.tw || fail "a.tw is not complete"
"$tw" print --format erlang a.tw | grep -q "call,{attach,step,\[" || fail "no calls"
ask unloaded
! grep -q REPORT node.out || fail "the node's log: $(cat node.out)"

# A process, until a limit; another right after it.
expect 0 "$tw" record --erlang -t 'attach:step(N) when N > 0 -> return' --events 100 -o b.tw "$node"
says "its limit of --events"
expect 0 "$tw" info --json b.tw
is "$(json 'd["events"], d["complete"], d["account"]["whole"]')" "100 True True" "the node lives on, and nothing is missing for that"
# Several schedulers define processes at once: with `drop`, one could lose an event, and say so.
expect 0 "$tw" record --erlang -q -p running,send --time infinity --events 20 --on-full block --force -o b.tw "$node"
[ ! -s err ] || fail "--quiet"
"$tw" print b.tw | grep -q ' in ' || fail "no schedules"
ask unloaded

# Text is replaced before it is written, of an expression with a group that of the group.
expect 0 "$tw" record --erlang -t filelib:is_regular --redact 'un(load)ed' --redact 'snatch$' --events 40 -o r.tw "$node"
says "was replaced by '\*' (--redact)"
expect 0 "$tw" print --format dbg r.tw
grep -q 'is_regular("un\*\*\*\*ed")' out && grep -q '"\*\*\*\*\*\*"' out && grep -q '"version"' out || fail "no text was replaced"
! grep -q 'unloaded\|snatch' out || fail "text is left"
refused_here 2 "--redact '(a': " --redact '(a' -t attach:step -o none.tw "$node"
ask unloaded

# Modules leave that an earlier trace has brought, after they were found.
ask snatch
expect 0 "$tw" record --erlang -q -t attach:step --events 10 -o g.tw "$node"
ask unloaded

refused_here 125 "refuses the connection: its cookie is not the one from $HOME/.erlang.cookie" -t attach -o none.tw shop@localhost
refused_here 125 "there is no node 'nobody@localhost'; epmd on localhost knows shop" -t attach -o none.tw nobody@localhost
refused_here 125 "the cookie cannot be read from $PWD/missing" --cookie-file missing -t attach -o none.tw shop@localhost
refused_here 125 "process $$ is not an Erlang VM: it runs" -t attach -o none.tw $$
refused_here 125 "there is no process 0" -t attach -o none.tw 0
refused_here 125 "'$PWD/b.tw' exists; --force replaces it" -t attach -o b.tw "$node"
refused_here 125 "'$PWD/missing/none.tw' cannot be made by 'shop@localhost'" -t attach -o $PWD/missing/none.tw "$node"
refused 2 "has no function attach:none/_" -t attach:none -o none.tw "$node"
refused_here 2 "the pattern 'attach:' is refused: write Module" -t attach: -o none.tw "$node"
refused_here 2 "'calls' is not a flag of erlang:trace/3" -p calls -o none.tw "$node"
refused_here 2 "what is to be traced" -o none.tw "$node"
refused 2 "which node" -t attach -o none.tw
refused 2 "--print is of one NODE or PID" --print -t attach -o none.tw shop shop
refused_here 2 "neither the name of a node nor" -t attach -o none.tw @
refused 2 "--rate is a number" -t attach --rate fast "$node"
expect 2 "$tw" record -q --erlang shop
says "--erlang comes first"
expect 127 env PATH=/nowhere "$tw" record --erlang -t attach -o none.tw "$node"
says "the command erl is not in PATH"
ERL_EPMD_PORT=1 refused 125 "no epmd answers on localhost, port 1" -t attach -o none.tw shop@localhost
ask unloaded

# What the capture does not have is said as it begins and as it ends; code that is loaded again is traced again.
sessions=$(<ready)
[ "$sessions" = module ] || ask other
begin --cookie-file cookie -o h.tw shop@localhost
wait_until recorded h.tw
ask again
[ "$sessions" = module ] || says "1 process or port has another tracer in 'shop@localhost' (kernel_sup <.*): its events are not recorded"
again() {
	"$tw" info h.tw 2>/dev/null | grep -q 'attach was loaded again, or its patterns removed: attach:step/1 is traced again'
}
wait_until again
kill -TERM $recording
ended_with 0
says "code was loaded again, or patterns removed, 1 time: calls before they were set again are missing"
[ "$sessions" = module ] || says "1 process or port has another tracer at the end: events of it are not in"
ask unloaded
if [ "$sessions" != module ]; then
	begin --cookie-file cookie -o i.tw shop@localhost
	wait_until recorded i.tw
	ask remove
	ended_with 1
	says "the trace has ended before its time: its processes have no tracer any more"
	complete i.tw || fail "i.tw is not complete"
	ask unloaded
fi

# The connection is lost in the middle.
begin -o c.tw "$node"
wait_for $recording recorded c.tw
ask disconnect
ended_with 1
says "the connection to the node is lost"
wait_until complete c.tw
# The command itself is killed.
ask unloaded
begin -o d.tw "$node"
wait_for $recording recorded d.tw
kill -9 $recording
wait $recording 2>/dev/null
wait_until complete d.tw
ask unloaded

# The process behind the trace is killed.
begin -o f.tw "$node"
wait_for $recording recorded f.tw
ask kill
ended_with 1
says "the process that traces was killed"
wait_until complete f.tw
# The VM is killed.
begin -o e.tw "$node"
wait_for $recording recorded e.tw
kill -9 $node
ended_with 1
wait_until complete e.tw
for capture in c d e f; do
	expect 0 "$tw" info --json $capture.tw
	cat out >>infos
done
python3 -I -S - <<-'EOT' || fail "c.tw, d.tw, e.tw, f.tw"
	import json
	text, read = open("infos").read(), []
	while text := text.lstrip():
	    found, end = json.JSONDecoder().raw_decode(text)
	    text = text[end:]
	    read.append((found["events"] > 0, sum(found["lost"].values())))
	assert read == [(True, 0)] * 4, read
EOT

# VMs without a name, with one that was set after the start, and with another version of the application.
start_node -setcookie secret
refused_here 125 "is an Erlang VM without a name: it listens at no port" -t attach -o none.tw "$node"
rename_node late@localhost shortnames '{127,0,0,1}'
expect 0 "$tw" record --erlang -q -t attach:step --events 10 "$node"
[ -d late@localhost.tw ] || fail "another name than late@localhost"
# An address that the name does not lead to: the process has it. It also knows its epmd.
rename_node two@localhost shortnames '{127,0,0,2}'
refused_here 125 "'two@localhost' does not answer at localhost, port" --cookie-file cookie -t attach -o none.tw two@localhost
expect 0 env -u ERL_EPMD_PORT "$tw" record --erlang -q -t attach:step --events 10 -o two.tw "$node"
ask unloaded
ask version
refused_here 125 "another version of this application loaded" -t attach -o none.tw "$node"
kill $node

# A node that no epmd knows: by its process, or by its port.
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
ERL_EPMD_PORT=1 start_node -erl_epmd_port "$port" -sname lone@localhost -setcookie secret
expect 0 "$tw" record --erlang -q -t attach:step --events 10 -o lone.tw "$node"
expect 0 "$tw" record --erlang -q --force --cookie-file cookie --port "$port" -t attach:step --events 10 -o lone.tw lone@localhost
refused 2 "--port is a number from 1 to 65535" --port 70000 -t attach -o none.tw lone
refused_here 125 "'other@localhost' does not answer at localhost, port $port .*'lone@localhost' is the name of the node there" \
	--cookie-file cookie --port "$port" -t attach -o none.tw other@localhost
kill $node

# Distribution by IPv6, where loopback has it.
if grep -q '^0\{31\}1 ' /proc/net/if_inet6 2>/dev/null; then
	start_node -name six@::1 -proto_dist inet6_tcp -kernel inet_dist_use_interface '{0,0,0,0,0,0,0,1}' -setcookie secret
	targets=("$node" six@::1)
	for target in "${targets[@]:0:$(rounds 1 2)}"; do
		expect 0 "$tw" record --erlang -q --force --cookie-file cookie -t attach:step --events 10 -o six.tw "$target"
	done
	kill $node
fi
exit 0
