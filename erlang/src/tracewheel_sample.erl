%% SPDX-License-Identifier: Apache-2.0
%% The process that `tracewheel top --erlang` has in a node: it answers with numbers of processes, and of functions that are counted.
%%
%% It works only when it is asked, and keeps no numbers itself: tracewheel_top does, in another VM. A round asks some processes by pid, and
%% others in the order of processes/0, going on where the last round ended: 64 in a turn, with 10 ms between turns. Each process is asked
%% only for what the VM answers without looking at its heap or mailbox. (The items memory and total_heap_size walk along the mailbox.)
%%
%% Requests, from the owner:			answers, {tracewheel_sample, Pid, ANSWER}
%%
%%	{tracewheel_sample, round, Pids, Turns}	{round, Samples, Count of other processes, Has the list of all ended?, Counters}
%%	{tracewheel_sample, describe, Pids}	{described, [{Pid, Name, {InitialCall, Behaviour, Application, Label}}]}
%%	{tracewheel_sample, stop}		ended
%%
%% A sample is {Pid, Us, Reductions, Mailbox, Bytes}, or {Pid, ended}. It ends with its owner, removes counters, and its modules go.
-module(tracewheel_sample).
-export([start/3]).
-export([init/1, loop/1]).

-define(TURN, 64).
-define(PAUSE_MS, 10).
-define(NAMES, [tracewheel_top, tracewheel_top_2, tracewheel_top_3, tracewheel_top_4]).

%% Counted: [{M, F, A}]. Modules: those that leave at the end. -> {ok, Pid} | {error, Reason} | unloading
start(Owner, Counted, Modules) ->
    {Pid, Monitor} = spawn_monitor(?MODULE, init, [#{owner => Owner, starter => self(), modules => Modules,
                                                     call_count => Counted, call_time => [], call_memory => []}]),
    receive
        {Pid, Answer} ->
            demonitor(Monitor, [flush]),
            Answer;
        {'DOWN', Monitor, _, _, Reason} -> {error, Reason}
    end.

init(#{owner := Owner, starter := Starter} = Options) ->
    process_flag(sensitive, true), % what it does is not traced
    case claim(?NAMES) of
        ok ->
            try count(Options#{session => undefined}) of
                State ->
                    Starter ! {self(), {ok, self()}},
                    loop(State#{monitor => monitor(process, Owner), left => [], known => #{}, passed_over => #{}})
            catch
                error:Reason ->
                    uncount(Options),
                    Starter ! {self(), {error, Reason}}
            end;
        Refused -> Starter ! {self(), Refused}
    end.

%% The name says that modules are used; a process that unloads them is seen, or sees it.
claim([]) -> {error, already_watched};
claim([Name | Names]) ->
    try register(Name, self()) andalso tracewheel_leave:is_unloading() of
        false -> ok;
        true -> unloading
    catch
        error:badarg -> claim(Names)
    end.

count(#{call_count := []} = State) -> State;
count(State) ->
    tracewheel_counters:set(case tracewheel_settings:ensure_loaded(trace) of
                                {module, trace} ->
                                    Session = trace:session_create(tracewheel_top, self(), []),
                                    put(?MODULE, Session),
                                    State#{session := Session};
                                _ -> State
                            end).

uncount(#{call_count := []}) -> ok;
uncount(_) ->
    case erase(?MODULE) of
        undefined -> tracewheel_guard:release();
        Session -> trace:session_destroy(Session)
    end.

%% Each request is one for the newest version of this module.
loop(#{monitor := Monitor, owner := Owner} = State) ->
    receive
        {?MODULE, round, Pids, Turns} ->
            {Samples, Left, Is_whole} = round(Pids, Turns, State),
            Counting = look(State),
            answer(State, {round, Samples, erlang:system_info(process_count) - 1, Is_whole, counters(Counting)}),
            ?MODULE:loop(Counting#{left := Left});
        {?MODULE, describe, Pids} ->
            {Described, Known} = lists:mapfoldl(fun describe/2, maps:get(known, State), Pids),
            answer(State, {described, Described}),
            ?MODULE:loop(State#{known := Known});
        {?MODULE, stop} ->
            finish(State),
            Owner ! {?MODULE, self(), ended};
        {'DOWN', Monitor, _, _, _} -> finish(State);
        _ -> ?MODULE:loop(State)
    end.

answer(#{owner := Owner}, Answer) -> Owner ! {?MODULE, self(), Answer}.

finish(#{modules := Modules} = State) ->
    uncount(State),
    tracewheel_leave:leave(Modules, 100).

%% ---- processes ----

round(Pids, Turns, #{left := Left} = State) ->
    All = case Left of [] -> processes(); _ -> Left end,
    %% One that is asked twice would have a rate between these two.
    {Swept, Rest} = turns(All, Turns, State#{passed_over := maps:from_keys(Pids, [])}, []),
    {Asked, _} = turns(Pids, length(Pids), State, []),
    {Swept ++ Asked, Rest, Rest =:= []}.

%% An order to stop is found at once.
turns([], _, _, Samples) -> {Samples, []};
turns(Pids, 0, _, Samples) -> {Samples, Pids};
turns(Pids, Turns, #{monitor := Monitor, passed_over := Not} = State, Samples) ->
    {Now, Rest} = split(?TURN, Pids, []),
    Us = erlang:monotonic_time(microsecond),
    More = [sample(P, Us) || P <- Now, P =/= self(), not is_map_key(P, Not)] ++ Samples,
    receive
        {'DOWN', Monitor, _, _, _} = Down ->
            self() ! Down,
            {More, []};
        {?MODULE, stop} = Stop ->
            self() ! Stop,
            {More, []}
    after case Rest of [] -> 0; _ -> ?PAUSE_MS end -> turns(Rest, Turns - 1, State, More)
    end.

split(N, [P | Pids], Taken) when N > 0 -> split(N - 1, Pids, [P | Taken]);
split(_, Pids, Taken) -> {Taken, Pids}.

sample(Pid, Us) ->
    case process_info(Pid, [reductions, message_queue_len, garbage_collection_info]) of
        [{_, Reductions}, {_, Mailbox}, {_, Sizes}] -> {Pid, Us, Reductions, Mailbox, bytes(Sizes)};
        undefined -> {Pid, ended}
    end.

bytes(Sizes) ->
    erlang:system_info(wordsize) * lists:sum([N || {K, N} <- Sizes, lists:member(K, [heap_block_size, old_heap_block_size, mbuf_size])]).

describe(Pid, Known) ->
    try tracewheel_processes:origin(Pid, Known) of
        {none, Now} -> {nothing(Pid), Now};
        {Origin, Now} -> {{Pid, name(process_info(Pid, registered_name)), Origin}, Now}
    catch
        _:_ -> {nothing(Pid), Known}
    end.

nothing(Pid) -> {Pid, <<>>, {<<>>, <<>>, <<>>, <<>>}}.

name({registered_name, Name}) -> atom_to_binary(Name);
name(_) -> <<>>.

%% ---- functions ----

look(#{call_count := []} = State) -> State;
look(State) -> element(2, tracewheel_counters:look(State)).

-define(FUNCTIONS_MAX, 1000).
counters(#{call_count := []}) -> [];
counters(State) ->
    [{F, Calls} || #{function := F, calls := Calls} <- lists:sublist(tracewheel_counters:read(State), ?FUNCTIONS_MAX)].
