%% SPDX-License-Identifier: Apache-2.0
%% flight:main() - processes that end by errors while a flight recorder runs.
-module(flight).
-export([main/0, step/1]).

main() ->
    logger:remove_handler(default),
    refused(),
    crashes(),
    chosen(),
    overwritten(),
    killed(),
    io:format("ok~n"),
    halt().

step(N) -> N.

refused() ->
    [{error, Reason} = F() ||
        {F, Reason} <- [{fun() -> tracewheel:flight("none.tw", #{print => true}) end, {bad_option, print, with_flight}},
                        {fun() -> tracewheel:flight("none.tw", [{on_full, block}]) end, {bad_option, on_full, with_flight}},
                        {fun() -> tracewheel:start("none.tw", #{snapshots => 3}) end, {bad_option, snapshots, without_flight}},
                        {fun() -> tracewheel:flight("none.tw", #{snapshot_on => all}) end, {bad_option, snapshot_on, all}},
                        {fun() -> tracewheel:flight("none.tw", #{snapshot_on => nobody}) end, {no_process, nobody}},
                        {fun() -> tracewheel:snapshot() end, not_started}]],
    {ok, _} = tracewheel:start("plain.tw", #{}),
    {error, no_flight_recorder} = tracewheel:snapshot(),
    {ok, _} = tracewheel:stop().

%% By the logger: crash reports, and ends that the VM tells of.
crashes() ->
    Before = logger:get_handler_ids(),
    {ok, #{snapshots := [], passed_over := 0}} = tracewheel:flight("fly.tw", #{patterns => "flight:step/1", every => 1, snapshots => 2}),
    [_] = logger:get_handler_ids() -- Before,
    logger:error("no process has ended"),
    logger:error(#{label => {proc_lib, crash}, report => [not_a_report]}),
    logger:warning("nothing"),
    ended(proc_lib:spawn(fun() -> register(victim, self()), calls(50), error({boom, "with\na line"}) end)),
    [First] = written(1),
    ended(spawn(fun() -> calls(3), 1 / step(0) end)),
    [First, Second] = written(2),
    %% No more than two: others are counted.
    [ended(proc_lib:spawn(fun() -> error(again) end)) || _ <- [1, 2, 3]],
    wait(fun() -> {ok, #{passed_over := N}} = tracewheel:info(), N =:= 3 end),
    {ok, Third} = tracewheel:snapshot(),
    ["fly.tw", "fly-2.tw", "fly-3.tw"] = [filename:basename(P) || P <- [First, Second, Third]],
    {ok, #{snapshots := [First, Second, Third], passed_over := 3, lost := 0}} = tracewheel:stop(),
    Before = logger:get_handler_ids(),
    false = filelib:is_file("fly.tw.flight").

%% By monitors: the reason says whether it is an error.
chosen() ->
    [Well, Ill] = [spawn(fun() -> receive X -> step(X), exit(X) end end) || _ <- [1, 2]],
    {ok, _} = tracewheel:flight("chosen.tw", #{patterns => "flight:step/1", snapshot_on => [Well, Ill, crash], every => 1}),
    Well ! shutdown,
    ended(Well),
    Ill ! oops,
    [_] = written(1),
    %% A name that would be an order of its own.
    ended(proc_lib:spawn(fun() -> register('a\nabort\nb', self()), step(1), error(named) end)),
    [_, _] = written(2),
    {ok, #{snapshots := [_, _]}} = tracewheel:stop().

%% The newest events of a process that ran alone for long: all are known to be its own.
overwritten() ->
    {ok, _} = tracewheel:flight("long.tw", #{patterns => "flight:step/1", ring_bytes => 65536, rate => infinity, snapshot_on => none}),
    Pid = spawn(fun() -> calls(100000), receive stop -> ok end end),
    wait(fun() -> {ok, #{written := N}} = tracewheel:info(), N >= 100000 end),
    {ok, _} = tracewheel:snapshot(),
    Pid ! stop,
    ok = file:write_file("long.pid", pid_to_list(Pid)),
    {ok, _} = tracewheel:stop().

%% The handler goes with its server.
killed() ->
    Before = logger:get_handler_ids(),
    {ok, _} = tracewheel:flight("killed.tw", #{patterns => "flight:step/1"}),
    exit(whereis(tracewheel), kill),
    wait(fun() -> logger:get_handler_ids() =:= Before end).

calls(N) -> [step(I) || I <- lists:seq(1, N)], ok.

ended(Pid) ->
    Monitor = monitor(process, Pid),
    receive {'DOWN', Monitor, _, _, _} -> ok end.

written(Count) ->
    wait(fun() -> {ok, #{snapshots := P}} = tracewheel:info(), length(P) =:= Count end),
    {ok, #{snapshots := Paths}} = tracewheel:info(),
    Paths.

wait(Fun) -> wait(Fun, 1000).
wait(Fun, Tries) when Tries > 0 -> Fun() orelse begin timer:sleep(10), wait(Fun, Tries - 1) end.
