#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal    why-late explains the slowest messages of a run-time: its times add up, agree with the report, and are on a
#         page without network (drawn by pages_test.sh). It reports what a capture lacks.
# Method  A play with waits counted by hand (tools_whylate_test), and actors that queue and crash.
build=$1
. "$(dirname "$0")/lib.sh"
"$build/tests/tools_whylate_test" captures "$work" || fail "no captures"
actors=$build/bin/actors

expect 0 "$tw" record -q --on-full block -o bank.tw -p send,receive,procs,running -t 'mailbox:_' -- "$actors" bank --actors 4 --messages 4000
expect 0 "$tw" why-late --json --top 50 bank.tw
is "$(json 'd["taken"], d["lost"], d["unsure"], d["knows_takes"], d["knows_waits"], d["notes"]')" '4000 0 0 True True []'
python3 - <<'EOT' || fail "the times of a wait do not add up"
import json
d = json.load(open("out"))
rows = d["late"]
assert len(rows) == 50 and rows == sorted(rows, key=lambda r: -r["waited"]) and rows[0]["waited"] == d["longest_wait"]
for row in rows:
    # A process that is linked to one that died gets a message that nobody sent.
    has_sender = row["sender"] or row["message"].startswith("{'EXIT',")
    assert row["message"] and has_sender and row["receiver"] and row["is_sure"], row
    assert row["chain"][0]["process"] == row["receiver"] and abs(row["chain"][0]["seconds"] - row["waited"]) < 2e-9, row
    for step in row["chain"]:
        assert abs(sum(step[k] for k in ("ran", "ready", "blocked", "unknown")) - step["seconds"]) < 5e-9, step
        assert step["unknown"] == 0, step
EOT
# 4,000 messages between supervisors and accounts; the collector outside gets 4 more and does not tell of its mailbox.
is "$(json 'd["messages"]')" 4004
expect 0 "$tw" why-late --top 1 bank.tw
shows '4,000 messages were taken; in the queue: median '
expect 0 "$tw" why-late --process nobody bank.tw
says "no process 'nobody' took a message"

# Missing parts of a capture are reported.
expect 0 "$tw" record -q --on-full block -o less.tw -p send,receive -- "$actors" bank --actors 4 --messages 400
expect 0 "$tw" why-late less.tw
shows 'When messages were taken is not in this capture'
shows 'No schedules were recorded'
expect 0 "$tw" record -q -o none.tw -t libc:malloc -- ls /
expect 0 "$tw" why-late none.tw
shows 'No messages were recorded'
expect 2 "$tw" why-late --top 0 chain.tw
says 'number from 1'
expect 2 "$tw" why-late --html --json chain.tw
says 'one of them'

# The page.
expect 0 "$tw" why-late --html chain.tw
mv out late.html
is "$(grep -c '</script>' late.html)" 2 "ends of scripts"
! grep -qE 'src=["'\'']|@import|<link' late.html || fail "the page needs the network"
