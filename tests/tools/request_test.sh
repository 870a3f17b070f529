#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal    seq shows one request: as text, as JSON that adds up, as terms that Erlang reads, and on a page without network
#         (drawn by pages_test.sh); it says clearly what it has not got. The timeline has an arrow for each message.
# Method  A request with known causes (tools_seq_test), whose messages are hostile to the page.
build=$1
. "$(dirname "$0")/lib.sh"
"$build/tests/tools_seq_test" captures "$work" || fail "no captures"

expect 0 "$tw" seq shop.tw
shows '2 requests; --label LABEL shows one'
expect 0 "$tw" seq --format json shop.tw
is "$(json '[(r["label"], r["messages"], r["prints"], r["processes"], r["nodes"]) for r in d["requests"]]')" \
	"[('{order,17}', 6, 2, 4, 1), ('18', 1, 0, 1, 1)]"
expect 0 "$tw" seq --label '{order, 17}' --format json shop.tw
python3 - <<'EOT' || fail "the hops do not add up"
import json
d = json.load(open("out"))
hops = d["hops"]
assert d["messages"] == 6 and d["prints"] == 2 and d["depth"] == 4 and not d["notes"] and len(hops) == 8
for hop in hops:
    if hop["kind"] == "message":
        assert abs(hop["received_ns"] - hop["sent_ns"] - hop["waited"] * 1e9) < 0.5, hop
    if "cause" in hop:
        cause = hops[hop["cause"]]
        assert cause["received_ns"] <= hop.get("sent_ns", hop.get("at_ns")) and cause["to"] == hop["from"], hop
        assert cause["serial"][1] == hop["serial"][0], hop
EOT
expect 0 "$tw" seq --label 18 shop.tw
shows '500 ns  <0.43.0> a3 -> <0.43.0> a3  again'
expect 0 "$tw" seq --label 18 --format erlang shop.tw
is "$(cat out)" "{seq_trace,18,{send,{4,6},'<0.43.0>','<0.43.0>',again},{0,0,25}}.
{seq_trace,18,{'receive',{4,6},'<0.43.0>','<0.43.0>',again},{0,0,25}}."

# A selection of time; wrong questions.
expect 0 "$tw" seq --from 15us shop.tw
shows 'request 18: 1 message'
expect 1 "$tw" seq --label nobody shop.tw
says "no events of a request with the label nobody"
expect 2 "$tw" seq --html page.html shop.tw
says "has 2: --label, for example --label '{order,17}'"
expect 2 "$tw" seq --format xml shop.tw
says "text, json, mermaid or erlang, not 'xml'"
expect 2 "$tw" seq --format json --html page.html --label 18 shop.tw
says 'one of them'
expect 1 "$tw" seq --label 18 --html none/page.html shop.tw
says 'cannot be written'
expect 0 "$tw" record -q -o none.tw -t libc:malloc -- ls /
expect 1 "$tw" seq none.tw
says 'no request was followed'
expect 0 "$tw" seq --format json none.tw
is "$(json 'd["requests"]')" '[]'

# Arrows of the timeline: one for each message, from its send to its receive.
expect 0 "$tw" print --format chrome shop.tw
python3 - <<'EOT' || fail "not the arrows of the messages"
import json
ends = {}
for event in json.load(open("out"))["traceEvents"]:
    if event.get("cat") == "seq":
        ends.setdefault(event["id"], []).append((event["ph"], round(event["ts"] * 1000)))
assert len(ends) == 7, ends
for pair in ends.values():
    assert [end[0] for end in pair] == ["s", "f"] and pair[0][1] < pair[1][1], pair
EOT

# The page.
expect 0 "$tw" seq --label '{order,17}' --html order.html shop.tw
is "$(cat out)" ''
is "$(grep -c '</script>' order.html)" 2 "ends of scripts"
! grep -qE 'src=["'\'']|@import|<link' order.html || fail "the page needs the network"
