%% SPDX-License-Identifier: Apache-2.0
%% `tracewheel top --erlang`, in the helper VM: what is known of the processes of a node, and the lines of each round.
%%
%% The node's process (tracewheel_sample) answers only what it is asked. All processes of a small node are asked in each round; of a larger one so
%% many as come into the round, in turn, and those that were shown in the last one. Rates are those between the two last samples of a process.
%%
%% Standard output, a line each; parts behind the numbers are separated by tabulators:
%%
%%	watching NODE
%%	round NS NS PROCESSES SEEN		since the beginning; of this round; in the node; known here
%%	process REDUCTIONS NEW US MAILBOX BYTES	PID	NAME	INITIAL-CALL	BEHAVIOUR	APPLICATION	LABEL
%%	function CALLS NEW	MODULE:FUNCTION/ARITY
%%	end					of the round
%%	lost, killed, failed CODE TEXT		as of tracewheel_attach
%%
%% Standard input: `reset`: numbers begin at 0; its end: the order to stop.
-module(tracewheel_top).
-export([run/2, modules/1, check/1]).

-import(tracewheel_reach, [fail/2, fail/3, usage/2]).
-import(tracewheel_attach, [say/2]).

-define(CALL_MS, 60000).
%% Half of a round at most.
-define(TURN_MS, 20).
-define(TURNS_MAX, 50).
%% Of each order: rates, reductions, mailboxes, memory.
-define(SHOWN, 100).
-define(DESCRIBED, 64).

%% In the order in which they can be loaded; counters want more.
modules(#{counted := []}) -> [tracewheel_leave, tracewheel_processes, tracewheel_sample];
modules(_) -> [tracewheel_leave, tracewheel_processes, tracewheel_guard, tracewheel_counters, tracewheel_settings, tracewheel_sample].

%% -> the request with the functions that are counted
check(#{patterns := Patterns} = Request) ->
    try tracewheel_counters:check(call_count, Patterns) of
        Counted -> Request#{counted => Counted}
    catch
        throw:{bad_pattern, Pattern, Why} -> usage("the pattern '~ts' is refused: ~ts.", [Pattern, Why])
    end.

run(Node, #{every := Every, counted := Counted} = Request) ->
    tracewheel_attach:await_unloaded(Node, 600),
    Loaded = lists:usort(maps:get(loaded, Request, []) ++ tracewheel_attach:load(Node, modules(Request), Request)),
    case rpc:call(Node, tracewheel_sample, start, [self(), Counted, Loaded], ?CALL_MS) of
        {ok, Pid} ->
            say("watching ~ts", [Node]),
            Now = now_ns(),
            rounds(#{node => Node, loaded => Loaded, pid => Pid, monitor => monitor(process, Pid), every => Every, begun => Now, last => Now,
                     processes => #{}, calls => #{}, sweep => 0, reset => false, described => #{}, shown => []});
        unloading -> run(Node, Request#{loaded => Loaded});
        {badrpc, {'EXIT', {undef, _}}} -> run(Node, Request#{loaded => Loaded});
        Answer ->
            leave(Node, Loaded),
            refused(Node, Answer)
    end.

leave(Node, Loaded) ->
    catch rpc:call(Node, tracewheel_leave, leave, [Loaded], ?CALL_MS),
    catch tracewheel_attach:await_unloaded(Node, 600).

refused(Node, {error, already_watched}) -> fail("'~ts' is watched by four commands already.", [Node]);
refused(Node, {error, Reason}) ->
    {Code, Text} = tracewheel_attach:reason(Node, "", Reason),
    fail(Code, "~ts", [Text]);
refused(Node, {badrpc, nodedown}) -> fail("the connection to '~ts' was lost before its processes were looked at.", [Node]);
refused(Node, Other) -> fail("'~ts' does not answer: ~0tP.", [Node, Other, 20]).

%% ---- rounds ----

rounds(#{every := Every, shown := Shown, pid := Pid} = State) ->
    Begun = erlang:monotonic_time(millisecond),
    Pid ! {tracewheel_sample, round, Shown, max(1, min(?TURNS_MAX, Every div ?TURN_MS))},
    case answer(State) of
        {{round, Samples, Count, Is_whole, Calls}, Now} ->
            case show(take_calls(Calls, take(Samples, Is_whole, Now)), Count) of
                stopped -> ok;
                Next ->
                    %% The next round begins when this one is over.
                    case await(max(0, Begun + Every - erlang:monotonic_time(millisecond)), Next) of
                        stopped -> ok;
                        Ready -> rounds(Ready)
                    end
            end;
        stopped -> ok
    end.

%% -> {Answer, State}, or stopped
answer(#{pid := Pid} = State) ->
    receive
        {tracewheel_sample, Pid, Answer} -> {Answer, State};
        Other ->
            case other(Other, State) of
                stopped -> stopped;
                Now -> answer(Now)
            end
    end.

await(Ms, State) ->
    End = erlang:monotonic_time(millisecond) + Ms,
    receive
        Other ->
            case other(Other, State) of
                stopped -> stopped;
                Now -> await(max(0, End - erlang:monotonic_time(millisecond)), Now)
            end
    after Ms -> State
    end.

other(stop, #{node := Node, pid := Pid, monitor := Monitor}) ->
    Pid ! {tracewheel_sample, stop},
    receive {'DOWN', Monitor, _, _, _} -> ok after ?CALL_MS -> ok end,
    catch tracewheel_attach:await_unloaded(Node, 600),
    stopped;
other({nodedown, _}, _) -> say("lost", []), stopped;
other({'DOWN', _, process, _, noconnection}, State) -> State;
other({'DOWN', Monitor, process, _, _}, #{monitor := Monitor, node := Node, loaded := Loaded}) ->
    leave(Node, Loaded),
    say("killed", []),
    stopped;
other(reset, #{processes := Processes, calls := Calls} = State) ->
    State#{begun := now_ns(), reset := true, processes := maps:map(fun(_, P) -> P#{base := maps:get(reductions, P)} end, Processes),
           calls := maps:map(fun(_, {N, New, _}) -> {N, New, N} end, Calls)};
other(_, State) -> State.

now_ns() -> erlang:monotonic_time(nanosecond).

%% ---- what is known ----

%% Those that have ended are not asked again: in a whole sweep they are not found.
take(Samples, Is_whole, #{processes := Processes, sweep := Sweep, reset := Reset} = State) ->
    Now = lists:foldl(fun(S, Map) -> sample(S, Sweep, Reset, Map) end, Processes, Samples),
    case Is_whole of
        false -> State#{processes := Now};
        true ->
            Living = maps:filter(fun(_, #{sweep := S}) -> S =:= Sweep end, Now),
            State#{processes := Living, sweep := Sweep + 1, described := maps:with(maps:keys(Living), maps:get(described, State))}
    end.

sample({Pid, ended}, _, _, Map) -> maps:remove(Pid, Map);
sample({Pid, Us, Reductions, Mailbox, Bytes}, Sweep, Reset, Map) ->
    New = case Map of
              #{Pid := #{us := Before, reductions := R} = Known} when Us > Before ->
                  Known#{new := max(0, Reductions - R), span := Us - Before};
              #{Pid := Known} -> Known;
              _ -> #{new => 0, span => 0, base => case Reset of true -> Reductions; false -> 0 end}
          end,
    Map#{Pid => New#{us => Us, reductions => Reductions, mailbox => Mailbox, bytes => Bytes, sweep => Sweep}}.

%% {All, New, Before the last reset}
take_calls(Counted, #{calls := Calls} = State) ->
    State#{calls := lists:foldl(fun({F, N}, Map) ->
                                        case Map of
                                            #{F := {Before, _, Base}} when N >= Before -> Map#{F := {N, N - Before, Base}};
                                            %% Its code was loaded again.
                                            _ -> Map#{F => {N, N, 0}}
                                        end
                                end, maps:map(fun(_, {N, _, Base}) -> {N, 0, Base} end, Calls), Counted)}.

%% ---- what is shown ----

%% The first of each order, in turn: that with the most of each, then the seconds, ...
busiest(Processes) ->
    Orders = [fun rate/1, fun(#{reductions := R, base := B}) -> R - B end, fun(#{mailbox := M}) -> M end, fun(#{bytes := B}) -> B end],
    lists:uniq(in_turn([first(Order, Processes) || Order <- Orders])).

in_turn(Lists) ->
    case [L || [_ | _] = L <- Lists] of
        [] -> [];
        Rest -> [H || [H | _] <- Rest] ++ in_turn([T || [_ | T] <- Rest])
    end.

first(Order, Processes) ->
    {_, Set} = maps:fold(fun(Pid, P, Into) -> offer({Order(P), Pid}, Into) end, {0, gb_sets:new()}, Processes),
    lists:reverse([Pid || {_, Pid} <- gb_sets:to_list(Set)]).

offer(Item, {Count, Set}) when Count < ?SHOWN -> {Count + 1, gb_sets:add(Item, Set)};
offer(Item, {Count, Set} = Full) ->
    case Item > gb_sets:smallest(Set) of
        true -> {Count, gb_sets:add(Item, element(2, gb_sets:take_smallest(Set)))};
        false -> Full
    end.

show(#{processes := Processes, pid := Sampler} = State, Count) ->
    Shown = busiest(Processes),
    Unknown = lists:sublist([P || P <- Shown, not is_map_key(P, maps:get(described, State))], ?DESCRIBED),
    Unknown =:= [] orelse (Sampler ! {tracewheel_sample, describe, Unknown}),
    case Unknown =:= [] orelse answer(State) of
        true -> put_round(State#{shown := Shown}, Count);
        {{described, Texts}, #{described := Known} = Now} ->
            put_round(Now#{shown := Shown, described := maps:merge(Known, maps:from_list([{P, texts(N, T)} || {P, N, T} <- Texts]))}, Count);
        stopped -> stopped
    end.

rate(#{new := New, span := Span}) when Span > 0 -> New / Span;
rate(_) -> 0.

texts(Name, {Initial, Behaviour, Application, Label}) -> [[$\t, one_line(T)] || T <- [Name, Initial, Behaviour, Application, Label]].

one_line(Text) -> string:replace(string:replace(Text, "\t", " ", all), "\n", " ", all).

put_round(#{begun := Begun, last := Last, processes := Processes, described := Described, calls := Calls, shown := Shown} = State, Count) ->
    Now = now_ns(),
    None = texts(<<>>, {<<>>, <<>>, <<>>, <<>>}),
    say("round ~b ~b ~b ~b", [Now - Begun, Now - Last, Count, map_size(Processes)]),
    [say("process ~b ~b ~b ~b ~b\t~ts~ts", [R - B, New, Span, Mailbox, Bytes, shown(Pid), maps:get(Pid, Described, None)])
     || Pid <- Shown, #{reductions := R, base := B, new := New, span := Span, mailbox := Mailbox, bytes := Bytes} <- [maps:get(Pid, Processes)]],
    [say("function ~b ~b\t~ts", [N - Base, New, one_line(io_lib:format("~ts:~ts/~b", [M, F, A]))]) || {{M, F, A}, {N, New, Base}} <- maps:to_list(Calls)],
    say("end ", []),
    State#{last := Now, shown := [P || P <- Shown, is_map_key(P, Processes)]}.

%% As the node shows it.
shown(Pid) ->
    [_ | Rest] = string:split(pid_to_list(Pid), "."),
    ["<0.", Rest].
