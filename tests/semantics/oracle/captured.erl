%% SPDX-License-Identifier: Apache-2.0
%% captured.erl - scenarios of player.erl with a tracer module in place of a process: their events go into one capture, which is read
%% at the end.  A mark, an event that the player writes itself, ends what belongs to one answer.
%%
%% The module is tracewheel_tracer; or `both` of ../../../erlang/test, which gives each event to the process as well: then the capture
%% must have the same events, in the same order for each tracee.
-module(captured).
-export([why_not/1, start/1, is_on/0, tracer/1, mark/0, mark/1, answers/1]).

-define(PATH, "oracle.tw").

%% Scenarios in which the tracer itself runs, is traced or dies: a tracer module is not a process.
why_not({_, Steps, _}) ->
    case [T || T <- [t | tracers(Steps)], is_process(T, list_to_atom([$@ | atom_to_list(T)]), Steps)] of
        [] -> none;
        _ -> "the tracer is a process that runs, is traced or is killed"
    end.

tracers({session, _, T}) -> [T];
tracers(T) when is_tuple(T) -> tracers(tuple_to_list(T));
tracers([H | T]) -> tracers(H) ++ tracers(T);
tracers(_) -> [].

is_process(_, Pid, Pid) -> true;
is_process(T, _, {Verb, T}) when Verb =:= kill; Verb =:= gone -> true;
is_process(T, _, {Verb, T, _}) when Verb =:= run; Verb =:= tell; Verb =:= start; Verb =:= value -> true;
is_process(T, Pid, Step) when is_tuple(Step) -> is_process(T, Pid, tuple_to_list(Step));
is_process(T, Pid, [Head | Tail]) -> is_process(T, Pid, Head) orelse is_process(T, Pid, Tail);
is_process(_, _, _) -> false.

start(Module) ->
    {ok, _} = tracewheel:start(?PATH, #{processes => [], events => infinity, rate => infinity, time => infinity, on_full => block,
                                        term_bytes => 7000}),
    {tracer, tracewheel_tracer, Capture} = tracewheel:tracer(),
    ets:new(marks, [named_table, public]),
    ets:insert(marks, [{module, Module}, {capture, Capture}, {last, 0}]),
    mark().

is_on() -> ets:whereis(marks) =/= undefined.
value(Key) -> ets:lookup_element(marks, Key, 2).

%% In the order of the options of erlang:trace/3.
tracer(Process) -> tracer(Process, is_on() andalso value(module)).
tracer(Process, false) -> [Process];
tracer(_, tracewheel_tracer) -> [tracewheel_tracer, value(capture)];
tracer(Process, both) -> [both, {value(capture), Process}].

mark() -> is_on() andalso mark(unknown).

%% Messages: what a process received.
mark(Messages) ->
    N = ets:update_counter(marks, last, 1),
    ets:insert(marks, {N, Messages}),
    ok = tracewheel_tracer:trace('receive', value(capture), self(), {mark, N}, #{}),
    N.

%% Ends the capture.
answers(Answers) ->
    {ok, #{lost := 0}} = tracewheel:stop(),
    "" = os:cmd(os:getenv("TRACEWHEEL") ++ " print --format erlang " ++ ?PATH ++ " | grep -v own_time >oracle.captured"),
    {ok, Terms} = file:consult("oracle.captured"),
    Events = by_mark([native(T) || T <- Terms], [], #{}),
    value(last) =:= maps:size(Events) orelse error({marks, value(last), maps:size(Events)}),
    value(module) =:= both andalso compare(Events),
    [lists:map(fun({later, Mark, Fun}) -> Fun(maps:get(Mark, Events)); (A) -> A end, List) || List <- Answers].

by_mark([], _, Map) -> Map;
by_mark([{trace, _, 'receive', {mark, N}} | T], Events, Map) -> by_mark(T, [], Map#{N => lists:reverse(Events)});
by_mark([E | T], Events, Map) -> by_mark(T, [E | Events], Map).

%% Pids, ports and references are printed as atoms.
native(A) when is_atom(A) ->
    case atom_to_list(A) of
        "<" ++ _ = Text -> try list_to_pid(Text) catch error:badarg -> A end;
        "#Port<" ++ _ = Text -> list_to_port(Text);
        "#Ref<" ++ _ = Text -> list_to_ref(Text);
        _ -> A
    end;
native([H | T]) -> [native(H) | native(T)];
native(T) when is_tuple(T) -> list_to_tuple(native(tuple_to_list(T)));
native(M) when is_map(M) -> maps:from_list(native(maps:to_list(M)));
native(T) -> T.

%% With the events that the process received at once.
compare(Captured) ->
    Marks = [{N, [message(M) || M <- L, element(1, M) =:= event]} || {N, L} <- ets:tab2list(marks), is_integer(N), is_list(L)],
    Different = [{N, Wanted, Found} || {N, L} <- Marks, Wanted <- [by_tracee(L)], Found <- [by_tracee(maps:get(N, Captured))], Wanted =/= Found],
    [io:format("mark ~p: the process received~n  ~0p~nthe capture has~n  ~0p~n", [N, W, F]) || {N, W, F} <- Different],
    io:format("~p events of a process and of the capture, ~p answers differ~n", [lists:sum([length(L) || {_, L} <- Marks]), length(Different)]),
    Different =:= [] orelse halt(1).

by_tracee(Events) -> lists:keysort(2, [player:plain(E) || E <- Events]).

%% {event, Tag, Tracee, Term, Options} as the message of a process tracer.
message({event, seq_trace, Label, Info, Options}) -> stamped([seq_trace, Label, Info], seq_trace, Options);
message({event, Tag, Tracee, Term, Options}) ->
    stamped([trace, Tracee, Tag, Term] ++ [E || #{extra := E} <- [Options]] ++ [R || #{match_spec_result := R} <- [Options], R =/= true], trace_ts, Options).

stamped([_ | Rest], Name, #{timestamp := Kind}) -> list_to_tuple([Name | Rest] ++ [stamp(Kind)]);
stamped(All, _, _) -> list_to_tuple(All).

stamp(monotonic) -> 1;
stamp(strict_monotonic) -> {1, 1};
stamp(cpu_timestamp) -> {0, 0, 1};
stamp(timestamp) -> {1700, 0, 0}.
