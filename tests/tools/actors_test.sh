#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal: `record -p` shows what the actors of a run-time do: messages, life, turns and calls; the report says who waits for whom.
# Method: a load of examples/actors whose events can be counted beforehand: two supervisors, 200 requests, 4 crashes.
build=$1
. "$(dirname "$0")/lib.sh"
actors=$build/bin/actors

expect 0 "$tw" record --on-full block -o bank.tw -p send,receive,procs,running,exiting -t 'bank:_' -- \
	"$actors" bank --actors 2 --messages 400
shows 'every crashed account was started again'
expect 0 "$tw" print bank.tw
count() { grep -c -- "$1" out; }
is "$(count ' exit {insufficient_funds,\[\]}')" 4 "each 50th request of each supervisor is a crash"
is "$(count ' call bank:withdraw/2')" 200
is "$(count ' send {<0.[0-9]*.0>,[0-9]*} to ')" 396 "200 requests, 196 answers"
is "$(count ' receive {'"'EXIT'"',')" 4 "supervisors trap exits"
is "$(count ' link <0')" 6 "spawned by two supervisors, twice again each"
expect 0 "$tw" report bank.tw
shows 'who waits for whom'

for load in ring fan chat web gc busy self; do
	expect 0 "$actors" "$load" --messages 2000 --schedulers 2
done
expect 64 "$actors" no_such_load
says "there is no load 'no_such_load'"
expect 0 "$actors" --help
shows 'a token goes round a ring'
