#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal    `record -p` shows the actors of a run-time: messages, life, turns and calls; the report shows which process
#         waits for which. The ends of its declared functions are recorded on request, like those of native code.
# Method  Loads of examples/actors with a known number of events: two supervisors, 200 requests, 4 crashes; four actors
#         that pass a token 40 times, each a chain of tail calls that ends with the token.
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
shows 'waits by sender'

# Four begin, one becomes a member, 40 steps of the token are two calls each, of which one is a tail call; then all return.
for options in "--returns 85 0" "--return-to 0 44" "--returns --return-to 85 44"; do
	set -- $options
	back=${*: -1} ends=${*: -2:1}
	expect 0 "$tw" record --force --on-full block -o ring.tw "${@:1:$#-2}" -t 'ring:_' -- "$actors" ring -a 4 -m 40
	expect 0 "$tw" print ring.tw
	is "$(count ' call ring:')" 85
	is "$(count ' return_from ring:')" "$ends" "$options"
	is "$(count ' return_to ')" "$back" "$options"
done
expect 0 "$tw" record --on-full block -o crash.tw --exceptions -t 'bank:withdraw' -- "$actors" bank --actors 2 --messages 400
expect 0 "$tw" print crash.tw
is "$(count ' exception_from bank:withdraw/2 -> error insufficient_funds')" 4
is "$(count ' return_from bank:withdraw/2')" 196

# Requests that declared functions do not support are reported, once.
expect 0 "$tw" record -o stacks.tw --stack 4 -t 'bank:_' -- "$actors" bank --actors 2 --messages 400
expect 0 "$tw" info stacks.tw
is "$(count 'callers of functions that the program declares are not recorded')" 1
expect 0 "$tw" record -o named.tw --when 'balance > 3' -t 'bank:_' -- "$actors" bank --actors 2 --messages 400
expect 0 "$tw" info named.tw
is "$(count 'functions that the program declares are not recorded: the names of their')" 1

for load in ring fan chat web gc busy self; do
	expect 0 "$actors" "$load" --messages 2000 --schedulers 2
done
expect 64 "$actors" no_such_load
says "there is no load 'no_such_load'"
expect 0 "$actors" --help
shows 'a token goes round a ring'
