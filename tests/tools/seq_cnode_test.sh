#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal    An Erlang node and a C node continue each other's sequential trace: serials go on and labels of every type survive, both
#         ways; each side's record has the sends and receives of the other with the same key.
# Method  Erlang with an epmd of its own and examples/seq_cnode.c: requests from Erlang, and traces that the C node begins.
#         Erlang's system tracer and the C node's capture are compared with what the rule of serials demands.
build=$1
. "$(dirname "$0")/lib.sh"

cnode=$build/examples/example-seq_cnode
if [ ! -x "$cnode" ] || ! command -v erl epmd erlc >/dev/null; then
	echo "skipped: there is no Erlang, or no ei (erlang-base, erlang-dev)"
	exit 77
fi
cat >traced.erl <<'ERL'
-module(traced).
-export([main/0]).

main() ->
    register(traced, self()),
    Tracer = spawn_link(fun() -> collect([]) end),
    seq_trace:set_system_tracer(Tracer),
    file:write_file("ready", <<>>),
    Server = {server, connected()},
    Requests = [17, {any, "term", #{a => 1}}, <<0:128>>, -123456789012345678901234567890],
    [request(Label, Server, Tracer) || Label <- Requests],
    [answer(Label, Server, Tracer) || Label <- [5, {order, <<1, 2, 3>>, [1.5, self()]}]],
    exits(6, Server, Tracer),
    Server ! stop,
    io:format("done~n"),
    init:stop().

%% The trace begins here: two requests, each answered after a print.
request(Label, Server, Tracer) ->
    reset(Server),
    seq_trace:set_token(label, Label),
    [seq_trace:set_token(F, true) || F <- [send, 'receive', print]],
    Server ! {self(), one},
    Token1 = receive {reply, one} -> seq_trace:get_token() end,
    Server ! {self(), two},
    Token2 = receive {reply, two} -> seq_trace:get_token() end,
    seq_trace:set_token([]),
    check([{7, Label, 3, c, 1}, {7, Label, 6, c, 4}], [named(T) || T <- [Token1, Token2]]),
    check([{Label, send, {0, 1}, erlang}, {Label, 'receive', {1, 3}, c}, {Label, send, {3, 4}, erlang},
           {Label, 'receive', {4, 6}, c}], events(Tracer, 4)).

%% The trace begins in the C node.
answer(Label, Server, Tracer) ->
    reset(Server),
    Server ! {'begin', traced, Label},
    Token1 = receive {hello, Label, Pid} -> seq_trace:get_token() end,
    Pid ! {self(), three},
    Token2 = receive {reply, three} -> seq_trace:get_token() end,
    seq_trace:set_token([]),
    check([{7, Label, 1, c, 0}, {7, Label, 4, c, 2}], [named(T) || T <- [Token1, Token2]]),
    check([{Label, 'receive', {0, 1}, c}, {Label, send, {1, 2}, erlang}, {Label, 'receive', {2, 4}, c}], events(Tracer, 3)).

%% An exit signal carries the token of a process that is linked to the C node.
exits(Label, Server, Tracer) ->
    reset(Server),
    Server ! {'begin', traced, none},
    CPid = receive {hello, none, P} -> P end,
    seq_trace:set_token([]),
    reset(Server),
    check([{none, 'receive', {0, 1}, c}], events(Tracer, 1)),
    spawn(fun() ->
        link(CPid),
        seq_trace:set_token(label, Label),
        [seq_trace:set_token(F, true) || F <- [send, 'receive', print]],
        exit(bye)
    end),
    Token = receive {exited, bye} -> seq_trace:get_token() end,
    seq_trace:set_token([]),
    check({7, Label, 2, c, 1}, named(Token)),
    check([{Label, send, {0, 1}, erlang}, {Label, 'receive', {1, 2}, c}], events(Tracer, 2)).

reset(Server) ->
    seq_trace:reset_trace(),
    Server ! reset.

check(Same, Same) -> ok;
check(Expected, Found) -> io:format("expected ~0p, found ~0p~n", [Expected, Found]).

connected() ->
    case nodes(hidden) of
        [Node] -> Node;
        [] -> timer:sleep(10), connected()
    end.

%% Events take a way of their own to the system tracer: it answers when it has as many as are expected.
collect(Events) ->
    receive
        {get, Pid, Count} when length(Events) >= Count -> Pid ! {events, lists:reverse(Events)}, collect([]);
        {seq_trace, Label, {What, Serial, From, _, _}} -> collect([{Label, What, Serial, side(From)} | Events])
    end.

events(Tracer, Count) ->
    Tracer ! {get, self(), Count},
    receive {events, Events} -> Events end.

named({Flags, Label, Serial, From, Last}) -> {Flags, Label, Serial, side(From), Last}.

%% The sender names the OS process of the C node, not its node in the distribution.
side(Pid) when node(Pid) =:= node() -> erlang;
side(Pid) -> case atom_to_list(node(Pid)) of "tw-" ++ _ -> c; Other -> Other end.
ERL
export HOME=$work
own_epmd
erlc traced.erl || fail "traced.erl does not compile"
erl -noinput -start_epmd false -sname one@localhost -setcookie secret -s traced main >events 2>erl.err &
erl=$!
pids="$pids $erl"
until [ -e ready ]; do
	kill -0 $erl 2>/dev/null || { cp erl.err err; cp events out; fail "the Erlang node does not start"; }
	sleep 0.05
done
"$cnode" one@localhost native@localhost secret cnode.tw >out 2>err || fail "the C node"
wait $erl || { cp erl.err err; cp events out; fail "the Erlang node"; }
is "$(cat events)" done "tokens and events in Erlang"
expect 0 "$tw" print --format erlang cnode.tw
kinds() {
	sed -nE "s/.*\{(send|'receive'|print),(\{[0-9]+,[0-9]+\}).*/\1 \2/p" | tr -d "'" | tr '\n' ';'
}
request='receive {0,1};print {1,2};send {1,3};receive {3,4};print {4,5};send {4,6};'
answer='send {0,1};receive {1,2};print {2,3};send {2,4};'
is "$(kinds <out)" "$request$request$request$request$answer${answer}send {0,1};receive {0,1};send {1,2};" "events of the C node"
for label in 17 '{any,\[116,101,114,109\],#{a => 1}}' '<<0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0>>' -123456789012345678901234567890; do
	is "$(grep -c "^{seq_trace,$label," out)" 6 "events with label $label"
done
is "$(grep -c "^{seq_trace,{order,<<1,2,3>>,\[1.5,'<0\.[0-9]*\.0>@one@localhost'\]}," out)" 4 "events of the trace that the C node began"
shows "^{seq_trace,6,{'receive',{0,1},.*,{'EXIT','<0\.[0-9]*\.0>@one@localhost',bye}}}"
echo "an Erlang node and a C node continued each other's traces"
