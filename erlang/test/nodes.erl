%% SPDX-License-Identifier: Apache-2.0
%% nodes:server() and nodes:client(Server) - two nodes, each with a capture of the requests that pass through it.
-module(nodes).
-export([server/0, client/1, quiet/0, quiet/1, order/1]).

server() ->
    {ok, _} = tracewheel:start("server.tw", #{seq_trace => true, on_full => block}),
    register(shop, self()),
    ok = file:write_file("ready", atom_to_list(node())),
    serve(3).

serve(0) ->
    seq_trace:set_token([]),
    {ok, #{lost := 0}} = tracewheel:stop(),
    halt();
serve(N) ->
    receive {From, What} -> seq_trace:print(serving), From ! {What, done} end,
    serve(N - 1).

client([Server]) ->
    %% A token with a label that is not an integer passes only once the other node has said that it takes such.
    pong = net_adm:ping(list_to_atom(Server)),
    {ok, _} = tracewheel:start("client.tw", #{seq_trace => true, on_full => block}),
    [request(list_to_atom(Server), N) || N <- [1, 2, 3]],
    {ok, #{lost := 0}} = tracewheel:stop(),
    halt().

request(Server, N) ->
    seq_trace:set_token(label, {order, N}),
    [seq_trace:set_token(F, true) || F <- [send, 'receive', print]],
    {shop, Server} ! {self(), N},
    receive {N, done} -> ok end,
    seq_trace:set_token([]).

%% Both, without a capture of their own: quiet() answers, quiet([Server]) asks, until the end.
quiet() ->
    register(shop, self()),
    ok = file:write_file("quiet", atom_to_list(node())),
    answer().

quiet([Server]) ->
    pong = net_adm:ping(list_to_atom(Server)),
    ask(list_to_atom(Server), 1).

answer() ->
    receive {From, What} -> From ! {What, done} end,
    answer().

ask(Server, N) ->
    order(N),
    {shop, Server} ! {self(), N},
    receive {N, done} -> ok end,
    seq_trace:set_token([]),
    timer:sleep(20),
    ask(Server, N + 1).

order(N) -> N.
