#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal    Captures of two Erlang nodes become one, in which each request is followed from one to the other and back; one command makes them
#         from outside.
# Method  A client and a server with names, an epmd of their own on a free port (nodes.erl); merge and seq.
build=$1 modules=(nodes)
. "$(dirname "$0")/lib.sh"
command -v epmd >/dev/null || { echo "no epmd here: not tested" && exit 77; }
own_epmd
# The host localhost is the same everywhere; the name of this machine may lead to an address at which the epmd of the test does not listen.
loopback=(-start_epmd false -kernel inet_dist_use_interface '{127,0,0,1}' -setcookie "$$")
erl_run nodes server "${loopback[@]}" -sname "server$$@localhost" >server.out 2>&1 &
server=$!
pids="$pids $server"
until [ -s ready ] || ! kill -0 $server 2>/dev/null; do sleep 0.05; done
[ -s ready ] || fail "the server does not start: $(cat server.out)"
timeout 100 erl -noshell +S 2:2 -pa "$build/erlang/ebin" -pa . "${loopback[@]}" -sname "client$$@localhost" -run nodes client "$(cat ready)" </dev/null >client.out 2>&1 ||
	fail "the client: $(cat client.out)"
wait $server || fail "the server: $(cat server.out)"
expect 0 "$tw" merge -o both.tw client.tw server.tw
shows ', 6 messages between them'
! grep -q 'one end only' out || fail "messages were not paired"
for n in 1 2 3; do
	expect 0 "$tw" seq --label "{order,$n}" --format json both.tw
	is "$(json 'd["messages"], d["prints"], d["depth"], d["no_send"] + d["no_receive"]')" '2 1 2 0'
	is "$(json '[(h["from"].split("@")[1], h.get("cause")) for h in d["hops"]]')" "[('client', None), ('server', 0), ('server', 0)]"
done

# Two nodes that know nothing of it, with one command, until one of its signals.
known() {
	epmd -names | grep -q "name $1 at"
}
for name in stock store; do
	arguments=()
	[ $name = stock ] || arguments=("$(cat quiet)")
	erl -noinput +S 2:2 +sbwt none +sbwtdio none -pa . "${loopback[@]}" -sname "$name$$@localhost" -run nodes quiet "${arguments[@]}" >$name.out 2>&1 &
	pids="$pids $!"
	wait_until test -s quiet
	wait_until known "$name$$"
done
printf %s "$$" >cookie
"$tw" record --erlang --cookie-file cookie --seq N -t 'nodes:order(N)' -o all.tw "stock$$@localhost" "store$$@localhost" >out 2>err </dev/null &
recording=$!
asked() {
	[ "$(grep -c ': tracing' err)" = 2 ] && "$tw" print --limit 40 "stock$$@localhost.tw" 2>/dev/null | grep -q done
}
wait_for $recording asked
kill -TERM $recording
wait $recording || fail "exit code $?: $(cat err)"
shows ', [0-9]* messages between them'
expect 0 "$tw" seq --format json all.tw
is "$(json 'max(r["nodes"] for r in d["requests"])')" 2 "a request through both"
expect 125 "$tw" record --erlang --cookie-file cookie -t nodes:order -o all.tw "stock$$@localhost" "store$$@localhost"
says "'all.tw' exists; --force"
expect 125 "$tw" record --erlang --cookie-file cookie -t nodes:order -o none.tw "store$$@localhost" "nobody$$@localhost"
says "there is no node 'nobody$$@localhost'"
[ ! -e none.tw ] || fail "a capture of nothing"
exit 0
