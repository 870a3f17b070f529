%% SPDX-License-Identifier: Apache-2.0
%% Scenarios: programs of a few processes, each with what is traced of it.
-module(play).
-export([scenarios/0, run/1]).
-export([one/1, count/1, fails/1, catches/1, deep/1, tail/2, pair/2, none/0]).

%% {Name, Flags, [{MFA, MatchSpec}]}
scenarios() ->
    Return = [{'_', [], [{return_trace}]}],
    Exception = [{'_', [], [{exception_trace}]}],
    Local = {?MODULE, '_', '_'},
    [{calls, [call], [{Local, true}]},
     {calls_arity, [call, arity], [{Local, true}]},
     {returns, [call], [{Local, Return}]},
     {exceptions, [call], [{Local, Exception}]},
     {return_to, [call, return_to], [{Local, true}]},
     {extra, [call], [{{?MODULE, one, 1}, [{['$1'], [{'>', '$1', 1}], [{message, {{found, '$1'}}}]},
                                           {['$1'], [{'=:=', '$1', 1}], [{message, false}]}, {'_', [], []}]},
                      {{?MODULE, pair, 2}, [{['$1', '_'], [], [{message, {caller}}]}]}]},
     {extra_arity, [call, arity], [{{?MODULE, one, 1}, [{['$1'], [], [{message, '$1'}, {return_trace}]}]}]},
     {values, [call, send, 'receive'], [{{?MODULE, pair, 2}, Return}]},
     {messages, [send, 'receive'], []},
     {life, [procs, send, set_on_spawn], []},
     {first_links, [procs, set_on_first_link], []},
     {collections, [garbage_collection], []},
     {running, [running, exiting, procs], []},
     {scheduler, [call, running, scheduler_id], [{Local, true}]},
     {dirty, [running, garbage_collection], []},
     {ports, [ports, running_ports, send, 'receive'], []},
     {silent, [call, silent], [{{?MODULE, one, 1}, [{[2], [], [{silent, false}]}, {'_', [], []}]}]}].

%% What the traced process does.
run(Name) when Name =:= calls; Name =:= calls_arity; Name =:= returns; Name =:= exceptions; Name =:= return_to; Name =:= extra;
               Name =:= extra_arity; Name =:= scheduler; Name =:= silent ->
    [?MODULE:one(N) || N <- lists:seq(0, 3)],
    one(-5), one(1 bsl 40), one(1 bsl 63), one(1 bsl 64), one(foo),
    count(20), deep(5), tail(3, []), none(), pair(1, 2), pair(a, {b, "c"}),
    catches(error), catches(throw), catches(exit), catches(ok);
run(values) ->
    Self = self(),
    Deep = lists:foldl(fun(N, T) -> {N, T} end, nil, lists:seq(1, 40)),
    Values = [0, 255, 256, -1, 2147483647, 2147483648, -2147483648, -2147483649, 1 bsl 59, -(1 bsl 60), 1 bsl 100, -(1 bsl 200),
              0.0, -1.5, 1.0e300, ok, '', 'a b', list_to_atom([8364, 955]), list_to_atom([233]), [], "abc", [1, 2, 300], [1, 2 | x],
              [[]], lists:seq(1, 200), <<>>, <<"bytes">>, <<1:3>>, {}, {1}, {Self, make_ref()}, #{}, #{a => 1, "b" => [2]},
              fun lists:map/2, Deep, list_to_pid("<0.1.0>"), hd(erlang:ports()), list_to_tuple(lists:seq(1, 300)),
              maps:from_list([{N, N} || N <- lists:seq(1, 50)]), true],
    [begin pair(V, V), Self ! {V}, receive {_} -> ok end end || V <- Values];
run(messages) ->
    Self = self(),
    Echo = spawn(fun Loop() -> receive {From, X} -> From ! {echo, X}, Loop(); stop -> ok end end),
    register(echo, Echo),
    [begin Echo ! {Self, N}, receive {echo, N} -> ok end end || N <- lists:seq(1, 50)],
    echo ! {Self, named}, receive {echo, named} -> ok end,
    {echo, node()} ! {Self, full}, receive {echo, full} -> ok end,
    Monitor = monitor(process, Echo),
    Echo ! stop,
    receive {'DOWN', Monitor, _, _, _} -> ok end,
    Echo ! too_late,
    receive never -> ok after 5 -> ok end;
run(life) ->
    process_flag(trap_exit, true),
    A = spawn_link(fun() -> register(first, self()), unregister(first), exit(bye) end),
    receive {'EXIT', A, bye} -> ok end,
    B = spawn(fun() -> receive go -> ok end end),
    link(B), unlink(B), link(B),
    B ! go,
    receive {'EXIT', B, normal} -> ok end,
    C = spawn_link(fun() -> spawn_link(fun() -> exit({inner, [1, 2]}) end), receive after infinity -> ok end end),
    receive {'EXIT', C, {inner, _}} -> ok end;
run(first_links) ->
    process_flag(trap_exit, true),
    A = spawn(fun() -> receive go -> spawn(fun() -> ok end) end end),
    B = spawn(fun() -> receive go -> ok end end),
    link(A), link(B), A ! go, B ! go,
    receive {'EXIT', A, _} -> ok end, receive {'EXIT', B, _} -> ok end;
run(collections) ->
    [begin lists:seq(1, 3000), erlang:garbage_collect() end || _ <- lists:seq(1, 5)],
    erlang:garbage_collect(self(), [{type, minor}]);
run(running) ->
    Self = self(),
    P = spawn(fun() -> [begin Self ! N, receive N -> ok end end || N <- lists:seq(1, 30)] end),
    [receive N -> P ! N end || N <- lists:seq(1, 30)],
    erlang:yield();
%% Files are read, and large heaps collected, by dirty schedulers.
run(dirty) ->
    [{ok, _} = file:read_file(code:which(lists)) || _ <- lists:seq(1, 20)],
    Heap = [{N, integer_to_list(N)} || N <- lists:seq(1, 200000)],
    erlang:garbage_collect(),
    200000 = length(Heap);
run(ports) ->
    Port = open_port({spawn, "cat"}, [binary]),
    port_command(Port, <<"hello\n">>),
    receive {Port, {data, _}} -> ok end,
    true = port_connect(Port, self()),
    port_close(Port),
    receive never -> ok after 20 -> ok end.

one(X) -> X.
none() -> none.
count(0) -> 0;
count(N) -> 1 + count(N - 1).
deep(0) -> throw_not;
deep(N) -> {deep(N - 1), N}.
tail(0, Acc) -> lists:reverse(Acc);
tail(N, Acc) -> tail(N - 1, [N | Acc]).
pair(A, _) -> A.
fails(error) -> error(oops);
fails(throw) -> throw(ball);
fails(exit) -> exit(out);
fails(ok) -> ok.
catches(How) -> try fails(How) catch Class:_ -> Class end.
