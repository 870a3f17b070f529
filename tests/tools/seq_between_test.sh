#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal    One request is followed from thread to thread through a queue and a pipe, and from program to program over TCP: each
#         receive has the label and serial of its send, in two captures, and is joined with it when these are merged.
# Method  examples/seq_threads.c, and both sides of examples/seq_tcp.c, each with a capture of its own; merge and seq.
build=$1
. "$(dirname "$0")/lib.sh"

# events CAPTURE: kind, label, serial, sender of each event, in order.
events() {
	"$tw" print --format json "$1" | python3 -c '
import json, sys
for line in sys.stdin:
    e = json.loads(line)
    if e.get("kind", "").startswith("seq_"):
        print(e["kind"][4:], e["label"], e["serial"], "own" if e["kind"] != "seq_receive" and e["from"] == e["pid"] else e["from"])'
}

expect 0 "$build/examples/example-seq_threads" threads.tw
shows "the square of 5 is 25"
events threads.tw >found || fail "the events of threads.tw"
cat >expected <<'EOT'
send 17 {0,1} own
receive 17 {0,1} <0.1.0>
print 17 {1,2} own
send 17 {1,3} own
receive 17 {1,3} <0.2.0>
EOT
diff expected found || fail "seq_threads"

"$build/examples/example-seq_tcp" serve server.tw >port 2>server.err &
server=$!
trap 'kill $server 2>/dev/null; rm -rf "$work"' EXIT
until [ -s port ]; do
	kill -0 $server || fail "the server does not start"
	sleep 0.05
done
expect 0 "$build/examples/example-seq_tcp" call "$(cat port)" client.tw
wait $server || fail "the server: $(cat server.err)"
[ ! -s server.err ] || fail "$(cat server.err)"
events client.tw >client
events server.tw >server
# The clocks of both go on from request to request.
python3 - <<'EOT' || fail "the events of client and server"
client = [line.rsplit(" ", 1) for line in open("client").read().splitlines()]
server = [line.rsplit(" ", 1) for line in open("server").read().splitlines()]
expected_client, expected_server, clock = [], [], 0
for number in 1, 2, 3:
    label = "{request,%d}" % number
    sent, done = "{%d,%d}" % (clock, clock + 1), "{%d,%d}" % (clock + 1, clock + 3)
    expected_client += ["send %s %s" % (label, sent), "receive %s %s" % (label, done)]
    expected_server += ["receive %s %s" % (label, sent), "print %s {%d,%d}" % (label, clock + 1, clock + 2), "send %s %s" % (label, done)]
    clock += 3
assert [e[0] for e in client] == expected_client, client
assert [e[0] for e in server] == expected_server, server
for events in client, server:
    assert all(sender == "own" for e, sender in events if not e.startswith("receive"))
    # A pid of the other program is no pid of this one: it names its node, the same in both events.
    assert all(sender.startswith("<0.1.0>@tw-") for e, sender in events if e.startswith("receive")), events
    assert len({sender for e, sender in events if e.startswith("receive")}) == 1, events
EOT
expect 0 "$tw" merge client.tw server.tw -o all.tw
cat out err | grep -q "15 events of 2 captures, 6 messages between them" || fail "merge does not join all messages"
# Pids of other nodes are the same in every form and in every reader, and no atom of this one.
for options in "" "--format erlang" "--format erlang --bare-pids" "--format json"; do
	# shellcheck disable=SC2086
	expect 0 "$tw" print $options all.tw
	is "$(grep -cE "(receive.*<0\.1\.0>@tw-[0-9]+-[0-9]+@[0-9a-f]{8})" out)" 6 "foreign pids: print $options"
	is "$(grep -cE '<[1-9][0-9]*\.[0-9]+\.[0-9]+>' out)" 0 "channels: print $options"
done
# A process of one node, as views name it; without a node those of all.
for process in 'client:<0.1.0>' '<0.1.0>@client' "client:$(sed -n 's/.*client: *\([0-9]*\) seq.*/\1/p' <("$tw" print all.tw) | head -n 1)"; do
	expect 0 "$tw" print --process "$process" all.tw
	is "$(grep -c ' client: ' out) $(grep -c ' server: ' out)" "6 0" "--process $process"
done
expect 0 "$tw" print --process '<0.1.0>' all.tw
is "$(grep -c ' client: ' out) $(grep -c ' server: ' out)" "6 9"
expect 0 "$tw" print --process '<0.1.0>@nowhere' all.tw
says "no process"
for number in 1 2 3; do
	expect 0 "$tw" seq --label "{request,$number}" --format json all.tw
	is "$(json '(d["messages"], d["prints"], d["processes"], d["depth"], d["no_send"], d["no_receive"], d["notes"])')" "(2, 1, 2, 2, 0, 0, [])"
	is "$(json '[h["kind"] for h in d["hops"]]')" "['message', 'print', 'message']"
done
echo "requests are followed through threads, a pipe and two programs"
