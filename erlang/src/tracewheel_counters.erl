%% SPDX-License-Identifier: Apache-2.0
%% Counters of functions: options call_count, call_time and call_memory of tracewheel:start/2, as the VM has them.
%%
%% Calls that are counted make no events.  The VM counts them by function, those of call_time and call_memory by process, too; a table of
%% them is tracewheel:counters/0, and at the end their sums come into the capture.
%%
%% Before OTP 27 a function has one counter of each kind: another's is neither set to 0 nor removed.
-module(tracewheel_counters).
-export([check/2, set/1, look/1, read/1, store/1, is_empty/1, undo/2]).

-define(KINDS, [call_count, call_time, call_memory]).

%% -> [MFA]; throws {bad_pattern, Pattern, Why}
check(Kind, [C | _] = Text) when is_integer(C) -> check(Kind, [Text]);
check(Kind, Patterns) when is_list(Patterns) -> [function(Kind, P) || P <- Patterns];
check(Kind, Pattern) -> check(Kind, [Pattern]).

function(Kind, Pattern) ->
    case tracewheel_pattern:parse(Pattern, none) of
        {ok, {{modules, _}, _, _}, _} -> throw({bad_pattern, Pattern, atom_to_list(Kind) ++ " has no wildcards: name the module"});
        {ok, MFA, true} -> MFA;
        {ok, _, _} -> throw({bad_pattern, Pattern, atom_to_list(Kind) ++ " has no conditions and no actions: all calls are counted"});
        {error, Reason} -> throw(Reason)
    end.

is_empty(Options) -> wanted(Options) =:= [].

wanted(Options) -> [{Kind, MFA} || Kind <- ?KINDS, MFA <- maps:get(Kind, Options)].

%% ---- setting ----

set(State) ->
    Wanted = wanted(State),
    [tracewheel_settings:ensure_loaded(M) || {_, {M, _, _}} <- Wanted, M =/= '_'],
    [refuse(State, Kind, MFA) || {Kind, MFA} <- Wanted],
    [set(State, Kind, MFA) || {Kind, MFA} <- Wanted],
    State#{counted => [{Kind, MFA, witness(State, Kind, MFA)} || {Kind, MFA} <- Wanted]}.

%% A function by which is seen whether the counters are still there: code that is loaded again has none.
witness(_, _, {'_', _, _}) -> none;
witness(State, Kind, MFA) ->
    case [F || F <- functions(MFA), is_counted(State, Kind, F)] of
        [F | _] -> F;
        [] -> none
    end.

%% -> {Texts, State}: what had to be set again; the numbers before are gone with the code.
look(#{counted := Counted} = State) ->
    Looked = [case Witness =:= none orelse is_counted(State, Kind, Witness) of
                  true -> {[], One};
                  false -> look_again(State, Kind, MFA)
              end || {Kind, MFA, Witness} = One <- Counted],
    {lists:usort(lists:append([Texts || {Texts, _} <- Looked])), State#{counted := [One || {_, One} <- Looked]}}.

look_again(State, Kind, {M, _, _} = MFA) ->
    catch tracewheel_settings:pattern(State, MFA, true, [Kind]),
    {[[atom_to_list(M), " was loaded again, or its counters removed: its calls are counted from then on, not those before"]],
     {Kind, MFA, witness(State, Kind, MFA)}}.

%% Those of a capture whose server was killed are just being removed.
refuse(#{session := undefined} = State, Kind, MFA) -> refuse(State, Kind, MFA, 10);
refuse(_, _, _) -> ok.

refuse(State, Kind, MFA, Tries) ->
    case [F || F <- functions(MFA), is_counted(State, Kind, F)] of
        [] -> ok;
        _ when Tries > 0 -> timer:sleep(20), refuse(State, Kind, MFA, Tries - 1);
        [F | _] -> error({cannot_trace, {F, {already_counted, Kind}}})
    end.

set(#{session := Session} = State, Kind, MFA) ->
    Session =:= undefined andalso tracewheel_guard:hold({counters, Kind, MFA}),
    case catch tracewheel_settings:pattern(State, MFA, true, [Kind]) of
        Count when is_integer(Count), Count > 0 -> ok;
        0 -> error({cannot_trace, {no_such_function, MFA}});
        {'EXIT', {badarg, _}} when Kind =:= call_memory -> error({cannot_trace, {call_memory, not_here}});
        {'EXIT', {Reason, _}} -> error({cannot_trace, {MFA, Reason}})
    end.

%% By tracewheel_guard.
undo(Kind, MFA) -> catch erlang:trace_pattern(MFA, false, [Kind]).

functions({'_', _, _}) -> [F || {M, _} <- code:all_loaded(), F <- functions({M, '_', '_'})];
functions({M, F, A}) ->
    [{M, N, I} || {N, I} <- (try erlang:get_module_info(M, functions) catch error:_ -> [] end), F =:= '_' orelse F =:= N, A =:= '_' orelse A =:= I].

is_counted(State, Kind, MFA) ->
    case tracewheel_settings:trace_info(State, MFA, Kind) of
        {Kind, Value} -> is_integer(Value) orelse is_list(Value);
        _ -> false
    end.

%% ---- reading ----

%% -> [#{function, calls, us, words, processes}], the most time, memory or calls first; functions that were not called are not in it
read(State) ->
    Rows = lists:foldl(fun({Kind, MFA}, Map) -> lists:foldl(fun(F, Into) -> add(State, Kind, F, Into) end, Map, functions(MFA)) end, #{}, wanted(State)),
    lists:sort(fun(A, B) -> order(A) >= order(B) end, [Row#{function => F} || {F, Row} <- maps:to_list(Rows)]).

order(#{calls := Calls} = Row) -> {maps:get(us, Row, 0), maps:get(words, Row, 0), Calls, maps:get(function, Row)}.

add(State, Kind, F, Map) ->
    case tracewheel_settings:trace_info(State, F, Kind) of
        {call_count, N} when is_integer(N), N > 0 -> put_in(F, #{calls => N}, Map);
        {call_time, [_ | _] = L} ->
            put_in(F, #{calls => lists:sum([N || {_, N, _, _} <- L]), us => lists:sum([S * 1000000 + Us || {_, _, S, Us} <- L]),
                        processes => [{P, N, S * 1000000 + Us} || {P, N, S, Us} <- L]}, Map);
        {call_memory, [_ | _] = L} ->
            put_in(F, #{calls => lists:sum([N || {_, N, _} <- L]), words => lists:sum([W || {_, _, W} <- L])}, Map);
        _ -> Map
    end.

put_in(_, #{calls := 0}, Map) -> Map;
put_in(F, Row, Map) ->
    Before = maps:get(F, Map, #{calls => 0}),
    %% All calls are counted, those of call_time only where the process is traced.
    Map#{F => maps:merge(maps:merge(Before, Row), #{calls => max(maps:get(calls, Before), maps:get(calls, Row))})}.

%% At the end: sums for views.
store(#{capture := Capture} = State) ->
    Rows = case is_empty(State) of true -> []; false -> read(State) end,
    Failed = [R || R <- Rows, not tracewheel_nif:sum(Capture, R)],
    Failed =:= [] orelse
        tracewheel_nif:note(Capture, iolist_to_binary(io_lib:format("functions whose counted calls found no room: ~p", [length(Failed)]))),
    length(Rows).
