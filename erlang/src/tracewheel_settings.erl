%% SPDX-License-Identifier: Apache-2.0
%% What a capture has set in the VM: patterns and flags, of a session of its own from OTP 27 on; whether they still hold; and how they
%% are set again, and removed.
%%
%% Before OTP 27 a process has one tracer, and patterns are the node's.  erlang:trace/3 leaves processes of others out without a word,
%% and takes new processes from whoever had them: others/1 counts the first, and set/1 refuses the second.
-module(tracewheel_settings).
-export([with_session/1, set/1, set_seq_trace/1, unset/1, others/1, is_kept/1, set_again/1, ensure_loaded/1]).

-define(DELIVERY_MS, 30000).

%% Also in a node that loads nothing by itself.
ensure_loaded(Module) ->
    case code:ensure_loaded(Module) of
        {error, embedded} -> code:load_file(Module);
        Result -> Result
    end.

has_sessions() -> ensure_loaded(trace) =:= {module, trace}.

with_session(#{flags := [], patterns := []} = State) -> State;
with_session(#{name := Name, capture := Capture} = State) ->
    case has_sessions() of
        true -> State#{session := trace:session_create(Name, {tracewheel_tracer, Capture}, [])};
        false -> State
    end.

%% ---- the VM's calls, with and without a session ----

pattern(#{session := undefined}, MFA, Spec, Flags) -> erlang:trace_pattern(MFA, Spec, Flags);
pattern(#{session := Session}, MFA, Spec, Flags) -> trace:function(Session, MFA, Spec, Flags).

%% Of processes that were selected by what they are, some may have ended since.
process(State, {selected, Pids}, Flags) -> lists:sum([N || P <- Pids, N <- [catch process(State, P, Flags)], is_integer(N)]);
process(#{session := undefined, capture := Capture}, Process, Flags) ->
    erlang:trace(Process, true, [{tracer, tracewheel_tracer, Capture} | Flags]);
process(#{session := Session}, Process, Flags) -> trace:process(Session, Process, true, Flags).

trace_info(#{session := undefined}, Item, Key) -> catch erlang:trace_info(Item, Key);
trace_info(#{session := Session}, Item, Key) -> catch trace:info(Session, Item, Key).

%% ---- setting ----

set(#{flags := [], patterns := []} = State) -> State;
set(#{patterns := Patterns, processes := Processes, flags := Flags} = State) ->
    [refuse_to_take(State, P) || P <- Processes],
    [ensure_loaded(M) || {{M, _, _}, _} <- Patterns, M =/= '_'],
    Counts = [check_function(MFA, set_pattern(State, MFA, Spec)) || {MFA, Spec} <- Patterns],
    [check_process(P, catch process(State, P, Flags)) || P <- Processes],
    Named = lists:append([[P || is_pid(P) orelse is_port(P)] ++ selected(P) ++ news(P) || P <- Processes]),
    State#{functions => lists:sum(Counts), witnesses => [{MFA, Spec, witness(State, MFA)} || {MFA, Spec} <- Patterns],
           tracees => [P || P <- Named, is_traced(State, P)]}.

%% Every module also means those that are loaded later.
set_pattern(#{scope := Scope} = State, {'_', _, _} = MFA, Spec) ->
    trace_info(State, on_load, traced) =:= {traced, false} andalso pattern(State, on_load, Spec, [Scope]),
    catch pattern(State, MFA, Spec, [Scope]);
set_pattern(#{scope := Scope} = State, MFA, Spec) -> catch pattern(State, MFA, Spec, [Scope]).

check_function(_, Count) when is_integer(Count), Count > 0 -> Count;
check_function(MFA, 0) -> error({cannot_trace, {no_such_function, MFA}});
check_function(MFA, {'EXIT', {Reason, _}}) -> error({cannot_trace, {MFA, Reason}}).

check_process({selected, Pids}, 0) -> error({cannot_trace, {hd(Pids), process_reason(hd(Pids), badarg)}});
check_process(_, Count) when is_integer(Count) -> Count;
check_process(P, {'EXIT', {Reason, _}}) -> error({cannot_trace, {P, process_reason(P, Reason)}}).

process_reason(P, badarg) when is_pid(P) ->
    case catch erlang:trace_info(P, tracer) of
        undefined -> noproc;
        {tracer, []} -> badarg;
        _ -> already_traced
    end;
process_reason(_, Reason) -> Reason.

set_seq_trace(#{seq_trace := false}) -> ok;
set_seq_trace(#{capture := Capture}) ->
    case seq_trace:get_system_tracer() of
        false -> seq_trace:set_system_tracer({tracewheel_tracer, Capture});
        Other -> error({cannot_trace, {seq_trace, {already_traced, Other}}})
    end.

%% ---- other tracers ----

%% New processes have one tracer; who sets it anew takes them from the one before.
refuse_to_take(State, Process) ->
    [error({cannot_trace, {Process, {already_traced, name_of(Tracer)}}})
     || New <- news(Process), {tracer, Tracer} <- [other_tracer(State, New)]].

news(P) when P =:= all; P =:= new -> [new_processes, new_ports];
news(P) when P =:= processes; P =:= new_processes -> [new_processes];
news(P) when P =:= ports; P =:= new_ports -> [new_ports];
news(_) -> [].

existing(P) when P =:= all; P =:= existing -> processes() ++ erlang:ports();
existing(P) when P =:= processes; P =:= existing_processes -> processes();
existing(P) when P =:= ports; P =:= existing_ports -> erlang:ports();
existing(P) -> selected(P).

selected({selected, Pids}) -> Pids;
selected(_) -> [].

other_tracer(#{session := undefined, capture := Capture}, Item) ->
    case catch erlang:trace_info(Item, tracer) of
        {tracer, []} -> none;
        {tracer, {tracewheel_tracer, Capture}} -> none;
        {tracer, Tracer} -> {tracer, Tracer};
        _ -> none
    end;
other_tracer(_, _) -> none.

%% -> {Count, Text}: processes and ports that would be traced, had they no other tracer; and their tracers, some at least.
others(#{flags := []}) -> {0, ""};
others(#{session := undefined, processes := Processes} = State) ->
    Tracers = [Tracer || P <- Processes, One <- existing(P), {tracer, Tracer} <- [other_tracer(State, One)]],
    {length(Tracers), lists:flatten(lists:join(", ", [name_of(T) || T <- lists:sublist(lists:uniq(Tracers), 3)]))};
others(_) -> {0, ""}.

name_of({tracewheel_tracer, Capture}) ->
    case [N || N <- registered(), is_serving(whereis(N), Capture)] of
        [Name | _] -> "the capture " ++ atom_to_list(Name);
        [] -> "another capture"
    end;
name_of({Module, _}) when is_atom(Module) -> "the tracer module " ++ atom_to_list(Module);
name_of(Pid) when is_pid(Pid) ->
    case process_info(Pid, [registered_name, dictionary]) of
        [{registered_name, Name}, _] when is_atom(Name) -> atom_to_list(Name) ++ " " ++ pid_to_list(Pid);
        _ -> pid_to_list(Pid)
    end;
name_of(Tracer) -> io_lib:format("~0tp", [Tracer]).

%% Servers are not asked: two that start at once would wait for each other.
is_serving(Pid, Capture) when is_pid(Pid) ->
    case process_info(Pid, dictionary) of
        {dictionary, Words} -> lists:keyfind(?MODULE, 1, Words) =:= {?MODULE, Capture};
        _ -> false
    end;
is_serving(_, _) -> false.

%% ---- does it still hold? ----

%% The VM removes a tracer whose module it does not find; others may remove any.
is_kept(#{tracees := Tracees} = State) -> erlang:module_loaded(tracewheel_tracer) andalso has_tracees(State, Tracees);
is_kept(_) -> true.

%% Of those that were named or are new, one at least; those that have ended say nothing.
has_tracees(State, Tracees) ->
    case [P || P <- Tracees, {_, _} <- [trace_info(State, P, flags)]] of
        [] -> true;
        Living -> lists:any(fun(P) -> is_traced(State, P) end, Living) orelse not lists:any(fun is_alive/1, Living)
    end.

%% A process that is just ending has no flags any more, and is not one whose tracer was removed.
is_alive(P) when is_pid(P) -> is_process_alive(P);
is_alive(_) -> true.

is_traced(State, P) ->
    case trace_info(State, P, flags) of
        {flags, [_ | _]} -> other_tracer(State, P) =:= none;
        _ -> false
    end.

%% A function by which is seen whether the pattern is still set.  Those of every module are not looked at: there is on_load.
witness(_, {'_', _, _}) -> none;
witness(State, {M, F, A} = MFA) ->
    case [{M, N, I} || {N, I} <- functions(State, MFA), F =:= '_' orelse F =:= N, A =:= '_' orelse A =:= I, is_set(State, {M, N, I})] of
        [One | _] -> One;
        [] -> none
    end.

functions(_, {_, F, A}) when F =/= '_', A =/= '_' -> [{F, A}];
functions(#{scope := local}, {M, _, _}) -> functions(M, functions);
functions(#{scope := global}, {M, _, _}) -> functions(M, exports);
functions(M, What) when is_atom(What) ->
    try erlang:get_module_info(M, What) catch error:_ -> [] end.

is_set(State, MFA) ->
    case trace_info(State, MFA, traced) of
        {traced, Scope} -> Scope =:= local orelse Scope =:= global;
        _ -> false
    end.

%% -> {Texts, State}: what had to be set again, as a module was loaded again or someone removed its patterns.
set_again(#{witnesses := Witnesses} = State) ->
    Looked = [look(State, W) || W <- Witnesses],
    {lists:append([Text || {Text, _} <- Looked]), State#{witnesses := [W || {_, W} <- Looked]}};
set_again(State) -> {[], State}.

look(_, {_, _, none} = Known) -> {[], Known};
look(State, {{M, _, _} = MFA, Spec, {gone, Md5}} = Known) ->
    case md5(M) of
        Md5 -> {[], Known};
        _ -> look_again(State, MFA, Spec)
    end;
look(State, {MFA, Spec, Witness} = Known) ->
    case is_set(State, Witness) of
        true -> {[], Known};
        false -> look_again(State, MFA, Spec)
    end.

look_again(State, {M, F, A} = MFA, Spec) ->
    Name = io_lib:format("~ts:~ts/~ts", [M, shown(F), shown(A)]),
    case set_pattern(State, MFA, Spec) of
        Count when is_integer(Count), Count > 0 ->
            {[[atom_to_list(M), " was loaded again, or its patterns removed: ", Name, " is traced again, calls between the two are not here"]],
             {MFA, Spec, witness(State, MFA)}};
        _ ->
            {[[Name, " is traced no more: its module was unloaded, or loaded again without it"]], {MFA, Spec, {gone, md5(M)}}}
    end.

shown('_') -> "_";
shown(Number) when is_integer(Number) -> integer_to_list(Number);
shown(Name) -> atom_to_list(Name).

md5(M) ->
    try erlang:get_module_info(M, md5) catch error:_ -> none end.

%% ---- removal: of what this capture has set, and nothing that others have ----

unset(#{capture := Capture} = State) ->
    seq_trace:get_system_tracer() =:= {tracewheel_tracer, Capture} andalso seq_trace:set_system_tracer(false),
    %% A flag of the node.
    lists:member(cpu_timestamp, maps:get(flags, State)) andalso erlang:trace(all, false, [cpu_timestamp]),
    unset_trace(State).

unset_trace(#{flags := [], patterns := []}) -> ok;
unset_trace(#{session := undefined, capture := Capture, patterns := Patterns, scope := Scope}) ->
    Mine = {tracer, {tracewheel_tracer, Capture}},
    [erlang:trace(P, false, [all]) || P <- [new_processes, new_ports], erlang:trace_info(P, tracer) =:= Mine],
    [catch erlang:trace(P, false, [all]) || P <- processes() ++ erlang:ports(), catch erlang:trace_info(P, tracer) =:= Mine],
    [erlang:trace_pattern(MFA, false, [Scope]) || {MFA, _} <- Patterns],
    [erlang:trace_pattern(on_load, false, [Scope]) || {{'_', _, _}, _} <- Patterns],
    Delivered = erlang:trace_delivered(all),
    receive {trace_delivered, all, Delivered} -> ok after ?DELIVERY_MS -> ok end;
unset_trace(#{session := Session}) ->
    Delivered = trace:delivered(Session, all),
    receive {trace_delivered, all, Delivered} -> ok after ?DELIVERY_MS -> ok end,
    trace:session_destroy(Session).
