%% SPDX-License-Identifier: Apache-2.0
%% hold:main() - what a full ring costs the VM: the libraries measure each call of the tracer.
-module(hold).
-export([main/0, step/2, tracewheel_hold/0]).

-define(RING, 1048576).

main() ->
    %% The code that the VM compiles is shared memory, too: what is needed is loaded before.
    {ok, _} = tracewheel:start("warm.tw", #{patterns => "hold:step/2", force => true}),
    {ok, _} = tracewheel:info(),
    os:cmd("true"),
    {ok, _} = tracewheel:stop(),
    Before = shared(),
    {ok, _} = tracewheel:start("hold.tw", #{patterns => "hold:step/2", force => true, events => infinity, rate => infinity,
                                            ring_bytes => ?RING}),
    {links, Links} = process_info(whereis(tracewheel), links),
    [Port] = [L || L <- Links, is_port(L)],
    {os_pid, Recorder} = erlang:port_info(Port, os_pid),
    os:cmd("kill -STOP " ++ integer_to_list(Recorder)),
    %% Every hundredth call has a large argument; where calls are fewer, every fifth, and rings are full as soon.
    {Many, Each} = rounds:choose({15000, 5}, {60000, 100}),
    Workers = [spawn_monitor(fun() -> loop(Many, Each, lists:seq(1000, 100000)) end) || _ <- [1, 2]],
    [receive {'DOWN', Monitor, _, Pid, normal} -> ok end || {Pid, Monitor} <- Workers],
    After = shared(),
    {ok, #{rings := Rings, measured := #{calls := Calls} = Measured}} = tracewheel:info(),
    os:cmd("kill -CONT " ++ integer_to_list(Recorder)),
    {ok, #{events := Events, lost := Lost, lost_full := Full}} = tracewheel:stop(),
    io:format("~p~n~p events, ~p lost, ~p bytes of rings~n", [Measured, Events, Lost, After - Before]),
    true = Calls >= 2 * Many,
    {Made, Made} = {2 * Many, Events + Lost},
    true = Full > Many div 2,
    %% Rings, and the image's head and definitions.
    true = After - Before =< Rings * ?RING + 2 * 1048576,
    %% A ring of 1 MiB is 256 pages; its last growth makes fewer present, and a thread's first event those of 64 KiB.
    true = maps:get(faults, Measured) =< 300,
    many_processes(),
    [begin
         {Pid, Monitor} = on(1, fun() -> slow_definition(OnFull) end),
         receive {'DOWN', Monitor, _, Pid, Why} -> normal = Why end
     end || OnFull <- [drop, block]],
    io:format("ok~n"),
    halt().

%% The capture's memory of what has made events grows a little at a time: no process pays for the others.
many_processes() ->
    %% What made room for all at once, with a word each, would make 40 or 128 pages present, and those of a thread's first event.
    {Many, Faults} = rounds:choose({20000, 40}, {70000, 100}),
    {ok, _} = tracewheel:start("many.tw", #{patterns => "hold:step/2", force => true, events => infinity, rate => infinity, ring_bytes => 65536,
                                            flags => [call]}),
    [begin
         {Pid, Monitor} = spawn_monitor(fun() -> step(N, list_to_atom("a" ++ integer_to_list(N))) end),
         receive {'DOWN', Monitor, _, Pid, normal} -> ok end
     end || N <- lists:seq(1, Many)],
    {ok, #{measured := Measured, lost_no_definition := 0}} = tracewheel:info(),
    {ok, #{events := Events, lost := Lost}} = tracewheel:stop(),
    io:format("~p processes: ~p~n", [Many, Measured]),
    {Many, Many} = {Many, Events + Lost},
    true = maps:get(faults, Measured) =< Faults.

%% A thread is held up while it defines a function (measure_hold() in measure.h): with `drop` others that define something lose an event
%% each, which is counted, and do not wait for it; with `block` they wait, and nothing is lost. What is defined already goes on.
slow_definition(OnFull) ->
    {ok, _} = tracewheel:start("slow.tw", #{patterns => ["hold:step/2", "hold:tracewheel_hold/0"], force => true, events => infinity,
                                            rate => infinity, flags => [call], on_full => OnFull}),
    step(1, 1),
    {_, Monitor} = on(2, fun() -> step(1, 1), tracewheel_hold() end),
    {New, Cut} = until_down(OnFull, Monitor, 0, 0),
    {ok, #{lost_no_definition := Undefined, cut_terms := Cut}} = tracewheel:info(),
    Cut =:= 0 orelse await_note("terms were cut", 600),
    {ok, #{events := Events, lost := Lost}} = tracewheel:stop(),
    io:format("~p: ~p events, ~p lost~n", [OnFull, Events, Lost]),
    {Made, Made} = {3 + 2 * New + Cut, Events + Lost},
    {Lost, Lost} = {Undefined, Lost},
    true = Lost =< New,
    case OnFull of
        drop -> true = Lost >= 20;
        block -> 0 = Lost
    end.

%% A process that stays on a scheduler: one that waits in a call of the tracer keeps its own from all others.
on(Scheduler, Fun) -> spawn_opt(Fun, [monitor, {scheduler, Scheduler}]).

%% Calls of new processes and of this one; returns how many of each, and of further ones with a term that was cut.
until_down(OnFull, Monitor, N, Cut) ->
    receive
        {'DOWN', Monitor, _, _, normal} -> {N, Cut}
    after 0 ->
        {Pid, New} = on(1, fun() -> step(N, 1) end),
        receive {'DOWN', New, _, Pid, normal} -> step(N, 1) end,
        until_down(OnFull, Monitor, N + 1, Cut + cut(OnFull, Cut))
    end.

%% Once while definitions are held up: the thread waits for no lock, and cannot note it. The capture has the note soon after all the same.
cut(drop, 0) ->
    {ok, #{lost_no_definition := Lost}} = tracewheel:info(),
    if
        Lost > 0 -> step(1, lists:seq(1000, 9999)), 1;
        true -> 0
    end;
cut(_, _) -> 0.

await_note(Text, 0) -> error({no_note, Text});
await_note(Text, N) ->
    string:find(os:cmd(os:getenv("TRACEWHEEL") ++ " info slow.tw"), Text) =/= nomatch orelse begin timer:sleep(50), await_note(Text, N - 1) end.

loop(0, _, _) -> ok;
loop(N, Each, Large) when N rem Each =:= 0 -> step(N, Large), loop(N - 1, Each, Large);
loop(N, Each, Large) -> step(N, 1), loop(N - 1, Each, Large).

step(_, _) -> ok.
tracewheel_hold() -> ok.

shared() ->
    {ok, Text} = file:read_file("/proc/self/status"),
    {match, [Kib]} = re:run(Text, "RssShmem:\\s+(\\d+)", [{capture, all_but_first, list}]),
    1024 * list_to_integer(Kib).
