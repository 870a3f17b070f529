%% SPDX-License-Identifier: Apache-2.0
%% Names for processes that have no registered name: their label, or the function with which they began, as observer shows it.
%%
%% A process of its own asks them, since an answer may take as long as its process wants: the one behind the capture waits for none.  It asks the oldest
%% processes first, since servers that are called need not make an event, and now and then those that have made one: some may have ended by then.
-module(tracewheel_namer).
-export([start/1, finish/1]).
-export([init/3, loop/3]).

-define(LOOK_MS, 100).
-define(END_MS, 500).
%% In one look, and in all: names take space from the definitions of processes and functions.
-define(LOOK_MAX, 500).
-define(NAMES_MAX, 10000).
-define(OLDEST_MAX, 2000).
%% Words.  Before OTP 26.2 the whole dictionary is copied.
-define(HEAP_MAX, 262144).

%% By a server, whose end is its end.  -> a namer.  A process that is asked is scheduled in and out: none is where that is traced.
start(#{capture := Capture, flags := Flags}) ->
    case lists:any(fun(F) -> lists:member(F, Flags) end, [all, running, running_procs, exiting]) of
        true -> none;
        false -> spawn_opt(?MODULE, init, [Capture, self(), ?NAMES_MAX], [monitor])
    end.

%% Names what has come since the last look.
finish(none) -> ok;
finish({Pid, Monitor}) ->
    Pid ! finish,
    receive
        {'DOWN', Monitor, _, _, _} -> ok
    after ?END_MS ->
            exit(Pid, kill),
            receive {'DOWN', Monitor, _, _, _} -> ok end
    end.

%% Sensitive: what it does is not traced.
init(Capture, Server, Left) ->
    process_flag(sensitive, true),
    monitor(process, Server),
    loop(Capture, look, give(Capture, lists:sublist(processes(), ?OLDEST_MAX), Left)).

loop(_, _, 0) ->
    receive finish -> ok; {'DOWN', _, _, _, _} -> ok end;
loop(Capture, look, Left) ->
    receive
        finish -> look(Capture, Left);
        {'DOWN', _, _, _, _} -> ok
    after ?LOOK_MS -> ?MODULE:loop(Capture, look, look(Capture, Left))
    end.

%% Without the module that made the capture there are no more names.
look(Capture, Left) ->
    try give(Capture, tracewheel_nif:unnamed(Capture, min(Left, ?LOOK_MAX)), Left)
    catch error:badarg -> 0
    end.

give(Capture, Pids, Left) ->
    [tracewheel_nif:name(Capture, P, N) || P <- Pids, N <- [name(P)], N =/= none],
    Left - length(Pids).

name(Pid) ->
    case process_info(Pid, [registered_name, total_heap_size, initial_call]) of
        [{_, Name}, _, _] when Name =/= [] -> none; % the capture has it
        [_, {_, Words}, {_, Call}] when Words =< ?HEAP_MAX -> name(tracewheel_processes:word(Pid, '$process_label'), tracewheel_processes:word(Pid, '$initial_call'), Call);
        [_, _, {_, Call}] -> name(undefined, undefined, Call);
        undefined -> none
    end.

name(undefined, undefined, {M, _, _}) when M =:= erlang; M =:= proc_lib; M =:= erts_internal -> none;
name(undefined, undefined, {M, F, A}) -> name(undefined, {M, F, A}, none);
name(undefined, {M, F, A}, _) when is_atom(M), is_atom(F), is_integer(A) -> text("~ts:~ts/~p", [M, F, A]);
name(undefined, _, _) -> none;
name(Label, _, _) -> text("~0tp", [Label]).

text(Format, Arguments) -> unicode:characters_to_binary(io_lib:format(Format, Arguments, [{chars_limit, 60}])).
