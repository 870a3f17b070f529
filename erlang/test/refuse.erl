%% SPDX-License-Identifier: Apache-2.0
%% refuse:main() - one VM in place of many helpers of `record --erlang`: the script `erl` of lib.sh starts it, with the options of the
%% command, and asks it by TCP for what the helper would say. The file `served` has its port. tracewheel_attach is one that exports all.
-module(refuse).
-export([main/0]).

main() ->
    logger:set_primary_config(level, none),
    {module, _} = code:load_abs("exported/tracewheel_attach"),
    {ok, Listening} = gen_tcp:listen(0, [list, {packet, line}, {buffer, 65536}, {active, false}, {ip, {127, 0, 0, 1}}]),
    {ok, Port} = inet:port(Listening),
    ok = file:write_file("served.new", integer_to_list(Port)),
    ok = file:rename("served.new", "served"),
    serve(Listening).

serve(Listening) ->
    {ok, Socket} = gen_tcp:accept(Listening),
    Arguments = lines(Socket),
    %% A process of its own, whose state ends with it; and a distribution of its own.
    {Pid, Monitor} = spawn_monitor(fun() -> exit({said, answer(Arguments)}) end),
    receive
        {'DOWN', Monitor, process, Pid, {said, Text}} -> gen_tcp:send(Socket, [unicode:characters_to_binary(Text), "\n"]);
        {'DOWN', Monitor, process, Pid, Why} -> gen_tcp:send(Socket, io_lib:format("failed 1 refuse.erl: ~0tp~n", [Why]))
    end,
    gen_tcp:close(Socket),
    net_kernel:stop(),
    serve(Listening).

lines(Socket) ->
    case gen_tcp:recv(Socket, 0) of
        {ok, "\n"} -> [];
        {ok, Line} -> [lists:droplast(Line) | lines(Socket)]
    end.

%% As tracewheel_attach:main() has it.
answer(Arguments) ->
    try
        tracewheel_attach:attach(lists:foldl(fun tracewheel_attach:argument/2, #{patterns => [], options => #{}}, Arguments))
    catch
        throw:{failed, Code, Text} -> io_lib:format("failed ~p ~ts", [Code, lists:join(" ", string:lexemes(Text, "\n"))])
    end.
