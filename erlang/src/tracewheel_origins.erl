%% SPDX-License-Identifier: Apache-2.0
%% What kind of process each is that makes events, for views by group: its initial call, behaviour, application and label.
%%
%% A process of this module asks every 10 ms who is new, and describes them in the capture: those that ended before are not known. A process
%% that is asked while it runs is scheduled once more for the answer: where schedules are traced, all are asked at the end only; where
%% others call erlang:trace/3, which may trace schedules, none is.
-module(tracewheel_origins).
-export([start/2, finish/1]).
-export([init/3, loop/5]).

-define(LOOK_MS, 10).
%% So many in each look, and in all: a description takes 100 bytes of the log of definitions, which holds 32 MiB.
-define(BATCH, 64).
-define(MOST, 50000).
-define(FINISH_MS, 200).

%% By a server, before anything is traced, with the flags of the trace. -> the process, or none
start(_, []) -> none;
start(Capture, Flags) ->
    Wait = case [F || F <- Flags, lists:member(F, [all, running, running_procs, exiting])] of [] -> ?LOOK_MS; _ -> infinity end,
    {Pid, Monitor} = spawn_monitor(?MODULE, init, [self(), Capture, Wait]),
    receive
        {Pid, ready} -> demonitor(Monitor, [flush]);
        {'DOWN', Monitor, _, _, _} -> ok
    end,
    Pid.

%% When nothing is traced any more. All that are known then are described, as far as time allows.
finish(none) -> ok;
finish(Pid) ->
    Monitor = monitor(process, Pid),
    Pid ! {?MODULE, finish},
    receive {'DOWN', Monitor, _, _, _} -> ok
    after ?FINISH_MS ->
            exit(Pid, kill),
            receive {'DOWN', Monitor, _, _, _} -> ok end
    end.

%% ---- the process: what it does is not traced ----

init(Server, Capture, Wait) ->
    process_flag(sensitive, true),
    Monitor = monitor(process, Server),
    Server ! {self(), ready},
    loop(Monitor, Capture, Wait, #{}, ?MOST).

%% Each look is one of the newest version of this module.
loop(_, _, _, _, Left) when Left =< 0 -> ok;
loop(Monitor, Capture, Wait, Known, Left) ->
    receive
        {?MODULE, finish} -> describe_all(Capture, Known, Left);
        {'DOWN', Monitor, _, _, _} -> ok
    after Wait ->
            {Count, Now} = describe(Capture, Known),
            ?MODULE:loop(Monitor, Capture, Wait, Now, Left - Count)
    end.

describe_all(Capture, Known, Left) ->
    case describe(Capture, Known) of
        {Count, Now} when Count > 0, Left > Count -> describe_all(Capture, Now, Left - Count);
        _ -> ok
    end.

%% -> {Count, Known}
describe(Capture, Known) ->
    New = tracewheel_nif:newcomers(Capture, ?BATCH),
    {length(New), lists:foldl(fun(Pid, K) -> describe(Capture, Pid, K) end, Known, New)}.

%% One that cannot be described is not known.
describe(Capture, Pid, Known) ->
    try tracewheel_processes:origin(Pid, Known) of
        {none, Now} -> Now;
        {Origin, Now} ->
            tracewheel_nif:describe(Capture, Pid, Origin),
            Now
    catch
        _:_ -> Known
    end.
