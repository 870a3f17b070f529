%% SPDX-License-Identifier: Apache-2.0
%% What a capture has set in the VM: patterns and flags, of a session of its own from OTP 27 on; whether they still hold; and how they
%% are set again, and removed.
%%
%% Before OTP 27 a process has one tracer, and patterns are the node's.  erlang:trace/3 leaves processes of others out without a word,
%% and takes new processes from whoever had them: others/1 counts the first, and set/1 refuses the second.
-module(tracewheel_settings).
-export([pattern/4, trace_info/3, set_pattern/3, witness/2]).
-export([with_session/1, set/1, set_seq_trace/1, unset/1, others/1, is_kept/1, set_again/1, ensure_loaded/1]).

-define(DELIVERY_MS, 30000).

%% Also in a node that loads nothing by itself.
ensure_loaded(Module) ->
    case code:ensure_loaded(Module) of
        {error, embedded} -> code:load_file(Module);
        Result -> Result
    end.

has_sessions() -> ensure_loaded(trace) =:= {module, trace}.

with_session(#{name := Name, capture := Capture, flags := Flags, patterns := Patterns} = State) ->
    case (Flags =/= [] orelse Patterns =/= [] orelse not tracewheel_counters:is_empty(State)) andalso has_sessions() of
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

%% The VM does not look at patterns of messages where a port sends or receives: then ports have these flags no more than others that
%% were not asked for.
items(P, #{flags := Flags, send := [], 'receive' := []}) -> [{P, Flags}];
items(P, #{flags := Flags} = State) when P =:= all; P =:= new; P =:= existing ->
    {Processes, Ports} = case P of
                             all -> {processes, ports};
                             new -> {new_processes, new_ports};
                             existing -> {existing_processes, existing_ports}
                         end,
    Of_ports = Flags -- [K || K <- [send, 'receive'], maps:get(K, State) =/= []],
    [{Processes, Flags} | [{Ports, Of_ports} || lists:any(fun(F) -> lists:member(F, [ports, running_ports, send, 'receive']) end, Of_ports)]];
items(P, #{flags := Flags}) -> [{P, Flags}].

trace_info(#{session := undefined}, Item, Key) -> catch erlang:trace_info(Item, Key);
trace_info(#{session := Session}, Item, Key) -> catch trace:info(Session, Item, Key).

%% ---- setting ----

set(#{flags := [], patterns := []} = State) -> State;
set(#{patterns := Patterns, processes := Processes} = State) ->
    [refuse_to_take(State, P) || P <- Processes],
    [ensure_loaded(M) || {{M, _, _}, _} <- Patterns, is_atom(M), M =/= '_'],
    [refuse_meta(State, MFA) || {MFA, _} <- tracewheel_later:named(Patterns)],
    put({?MODULE, is_set}, true), % what is refused has set nothing
    [set_messages(State, Kind, maps:get(Kind, State)) || Kind <- [send, 'receive']],
    Looking = tracewheel_later:begin_to_look(State),
    Counts = [set_patterns(State, P) || P <- Patterns],
    [check_process(P, catch process(State, Item, Of)) || P <- Processes, {Item, Of} <- items(P, State)],
    Named = lists:append([[P || is_pid(P) orelse is_port(P)] ++ selected(P) ++ news(P) || P <- Processes]),
    Looking#{functions => lists:sum(Counts),
             witnesses => [{MFA, Spec, witness(State, MFA)} || {MFA, Spec} <- tracewheel_later:named(Patterns)],
             tracees => [P || P <- Named, is_traced(State, P)]}.

set_patterns(State, {MFA, _} = Pattern) ->
    Count = lists:sum([set_pattern(State, One, Spec) || {One, Spec} <- tracewheel_later:named([Pattern])]),
    Count > 0 orelse maps:get(on_load, State) orelse error({cannot_trace, {no_such_function, MFA}}),
    Count.

%% Every module also means those that are loaded later.
set_pattern(State, {'_', _, _} = MFA, Spec) ->
    trace_info(State, on_load, traced) =:= {traced, false} andalso pattern(State, on_load, Spec, scope(State)),
    pattern_or_error(State, MFA, Spec);
set_pattern(State, MFA, Spec) -> pattern_or_error(State, MFA, Spec).

pattern_or_error(State, MFA, Spec) ->
    try pattern(State, MFA, Spec, scope(State))
    catch error:Reason -> error({cannot_trace, {MFA, Reason}})
    end.

scope(#{scope := meta, session := undefined, capture := Capture}) -> [{meta, tracewheel_tracer, Capture}];
scope(#{scope := Scope}) -> [Scope].

%% Before OTP 27 a function has one meta tracer.
refuse_meta(#{scope := meta, session := undefined}, {M, _, _}) when M =:= '_' ->
    error({cannot_trace, {meta, 'every module'}});
refuse_meta(#{scope := meta, session := undefined} = State, MFA) ->
    [error({cannot_trace, {One, {already_traced, lists:flatten(name_of(Tracer))}}})
     || One <- named(State, MFA), {meta, Tracer} <- [trace_info(State, One, meta)], is_pid(Tracer) orelse is_tuple(Tracer)];
refuse_meta(_, _) -> ok.

%% Before OTP 27 there is one pattern for all messages of the node that are sent, and one for those that are received: it is not taken from
%% those who have set it, nor are messages from other tracers.
set_messages(_, _, []) -> ok;
set_messages(#{session := undefined} = State, Kind, Spec) ->
    await_no_pattern(Kind, 10) orelse error({cannot_trace, {Kind, already_set}}),
    Others = lists:uniq([T || P <- existing(all), is_flag_set(P, Kind), {tracer, T} <- [other_tracer(State, P)]]),
    Others =:= [] orelse error({cannot_trace, {Kind, {already_traced, lists:flatten(name_of(hd(Others)))}}}),
    tracewheel_guard:hold({message, Kind, Spec}),
    check_pattern(Kind, catch erlang:trace_pattern(Kind, Spec, []));
set_messages(#{session := Session}, send, Spec) -> check_pattern(send, catch trace:send(Session, Spec, []));
set_messages(#{session := Session}, 'receive', Spec) -> check_pattern('receive', catch trace:recv(Session, Spec, [])).

%% That of a capture whose server was killed is just being removed.
await_no_pattern(Kind, Tries) ->
    erlang:trace_info(Kind, match_spec) =:= {match_spec, true} orelse
        Tries > 0 andalso begin timer:sleep(20), await_no_pattern(Kind, Tries - 1) end.

is_flag_set(P, Flag) ->
    case catch erlang:trace_info(P, flags) of
        {flags, Flags} -> lists:member(Flag, Flags);
        _ -> false
    end.

check_pattern(_, Count) when is_integer(Count) -> ok;
check_pattern(Kind, {'EXIT', {Reason, _}}) -> error({cannot_trace, {Kind, Reason}}).

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
witness(State, MFA) ->
    case [One || One <- named(State, MFA), is_set(State, One)] of
        [One | _] -> One;
        [] -> none
    end.

named(State, {M, F, A} = MFA) -> [{M, N, I} || {N, I} <- functions(State, MFA), F =:= '_' orelse F =:= N, A =:= '_' orelse A =:= I].

functions(_, {_, F, A}) when F =/= '_', A =/= '_' -> [{F, A}];
functions(#{scope := global}, {M, _, _}) -> functions(M, exports);
functions(#{scope := _}, {M, _, _}) -> functions(M, functions);
functions(M, What) when is_atom(What) ->
    try erlang:get_module_info(M, What) catch error:_ -> [] end.

is_set(#{scope := meta} = State, MFA) ->
    case trace_info(State, MFA, meta) of
        {meta, Tracer} -> Tracer =/= false;
        _ -> false
    end;
is_set(State, MFA) ->
    case trace_info(State, MFA, traced) of
        {traced, Scope} -> Scope =:= local orelse Scope =:= global;
        _ -> false
    end.

%% -> {Texts, Later, State}: what had to be set again, and what has come; as a module was loaded again or someone removed its patterns.
set_again(#{witnesses := Witnesses} = State) ->
    Looked = [look(State, W) || W <- Witnesses],
    {Texts, Now} = tracewheel_later:look(State#{witnesses := [W || {_, W} <- Looked]}),
    {lists:append([Text || {Text, _} <- Looked]), Texts, Now};
set_again(State) -> {[], [], State}.

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
    case catch set_pattern(State, MFA, Spec) of
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
    tracewheel_monitor:stop(),
    unset_trace(State),
    tracewheel_guard:release().

unset_trace(#{session := undefined} = State) -> erase({?MODULE, is_set}) =:= true andalso unset_trace(State, without_session);
unset_trace(#{session := Session}) ->
    Delivered = trace:delivered(Session, all),
    receive {trace_delivered, all, Delivered} -> ok after ?DELIVERY_MS -> ok end,
    trace:session_destroy(Session).

unset_trace(#{capture := Capture, patterns := Patterns, scope := Scope}, without_session) ->
    Mine = {tracer, {tracewheel_tracer, Capture}},
    [erlang:trace(P, false, [all]) || P <- [new_processes, new_ports], erlang:trace_info(P, tracer) =:= Mine],
    [catch erlang:trace(P, false, [all]) || P <- processes() ++ erlang:ports(), catch erlang:trace_info(P, tracer) =:= Mine],
    [erlang:trace_pattern(MFA, false, [Scope]) || {MFA, _} <- tracewheel_later:named(Patterns)],
    [erlang:trace_pattern(on_load, false, [Scope]) || {{'_', _, _}, _} <- Patterns],
    Delivered = erlang:trace_delivered(all),
    receive {trace_delivered, all, Delivered} -> ok after ?DELIVERY_MS -> ok end.
