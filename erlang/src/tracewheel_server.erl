%% SPDX-License-Identifier: Apache-2.0
%% One process for each capture: it starts the recorder, sets what is traced, watches owner and limits, and ends all that.
%%
%% It runs with priority max, so that limits hold in a node that is drowning.
-module(tracewheel_server).
-export([start/1, call/2, leave/1]).
-export([init/1, loop/1]).

%% How often limits are looked at that threads keep by themselves, and how long the recorder may take to start and to end.
-define(LOOK_MS, 100).
-define(RECORDER_MS, 30000).

start(#{name := Name} = Options) ->
    case is_unloading() of
        false -> start(Name, Options);
        true -> {error, unloading}
    end.

start(Name, Options) ->
    Starter = self(),
    {Pid, Monitor} = spawn_opt(?MODULE, init, [Options#{starter => Starter}], [monitor, {priority, max}]),
    receive
        {Pid, {ok, _} = Answer} ->
            demonitor(Monitor, [flush]),
            Answer;
        {Pid, Error} ->
            receive {'DOWN', Monitor, _, _, _} -> Error end;
        {'DOWN', Monitor, _, _, Reason} -> {error, {Name, Reason}}
    end.

call(Name, Request) when is_atom(Name) ->
    Pid = whereis(Name),
    case is_server(Pid) of
        false -> {error, not_started};
        true ->
            Monitor = monitor(process, Pid),
            Pid ! {?MODULE, self(), Monitor, Request},
            receive
                {Monitor, Answer} ->
                    demonitor(Monitor, [flush]),
                    Answer;
                {'DOWN', Monitor, _, _, _} -> {error, not_started}
            end
    end;
call(Name, _) -> {error, {bad_name, Name}}.

%% Nothing is traced here. Whoever begins to trace has its name first, and then asks is_unloading/0.
is_idle() -> [P || N <- registered(), P <- [whereis(N)], P =/= self(), is_server(P)] =:= [].
is_unloading() -> whereis(tracewheel_unload) =/= undefined.
%% Others have names, too.
is_server(Pid) -> is_pid(Pid) andalso process_info(Pid, initial_call) =:= {initial_call, {?MODULE, init, 1}}.

%% ---- start ----

init(#{name := Name, starter := Starter} = Options) ->
    process_flag(trap_exit, true),
    Answer = case claim(Name) of
                 ok -> begin_capture(Options);
                 Refused -> Refused
             end,
    case Answer of
        {ok, State} ->
            Starter ! {self(), {ok, info(State)}},
            look_later(),
            loop(State);
        Error ->
            whereis(Name) =:= self() andalso unregister(Name),
            Starter ! {self(), Error}
    end.

claim(Name) ->
    try register(Name, self()) andalso is_unloading() of
        false -> ok;
        true -> {error, unloading}
    catch
        error:badarg -> claimed(Name, whereis(Name))
    end.

claimed(Name, Holder) ->
    case {is_server(Holder), is_port(Holder) orelse is_pid(Holder) andalso is_process_alive(Holder)} of
        {true, _} -> {error, {already_started, Name}};
        {false, true} -> {error, {bad_option, name, Name}};
        {false, false} -> claim(Name) % it has just ended
    end.

begin_capture(Options) ->
    case libraries() of
        ok ->
            case recorder(Options) of
                {ok, Port, RingSet} -> open(Options, Port, RingSet);
                Error -> Error
            end;
        Error -> Error
    end.

libraries() ->
    case [{M, R} || M <- [tracewheel_nif, tracewheel_tracer], {error, R} <- [ensure_loaded(M)]] of
        [] -> ok;
        [{Module, Reason} | _] -> {error, {nif_not_loaded, tracewheel_options:library(Module) ++ ".so", Reason}}
    end.

%% Also in a node that loads nothing by itself.
ensure_loaded(Module) ->
    case code:ensure_loaded(Module) of
        {error, embedded} -> code:load_file(Module);
        Result -> Result
    end.

recorder(#{path := Path} = Options) ->
    case command(Options) of
        false -> {error, {no_recorder, "the command tracewheel is not in PATH; option recorder names it"}};
        Command ->
            try open_port({spawn_executable, Command}, [{args, arguments(Options)}, {line, 4096}, exit_status, binary]) of
                Port -> await_ready(Port, Path)
            catch
                error:Reason -> {error, {no_recorder, {Command, Reason}}}
            end
    end.

command(#{recorder := Path}) -> Path;
command(_) ->
    case os:getenv("TRACEWHEEL") of
        false -> os:find_executable("tracewheel");
        Path -> Path
    end.

arguments(#{path := Path, on_full := OnFull, ring_bytes := Ring, memory := Memory, force := Force}) ->
    ["record", "--erlang", "-o", Path, "--on-full", atom_to_list(OnFull), "--ring", integer_to_list(Ring), "--ring-cap",
     integer_to_list(Memory)] ++ ["--force" || Force].

await_ready(Port, Path) ->
    receive
        {Port, {data, {eol, <<"ready ", RingSet/binary>>}}} -> {ok, Port, binary_to_list(RingSet)};
        {Port, {data, {eol, <<"error ", Rest/binary>>}}} ->
            [Code | Text] = binary:split(Rest, <<" ">>),
            close(Port),
            {error, {binary_to_atom(Code), Path, iolist_to_binary(Text)}};
        {Port, {exit_status, Status}} -> {error, {no_recorder, {exit_status, Status}}};
        {'EXIT', Port, Reason} -> {error, {no_recorder, Reason}}
    after ?RECORDER_MS ->
            close(Port),
            {error, {no_recorder, timeout}}
    end.

open(#{name := Name, events := Events, rate := Rate, time := Time} = Options, Port, RingSet) ->
    Limits = maps:map(fun(_, N) -> number(N) end, maps:with([term_bytes, term_depth, term_elements], Options)),
    case tracewheel_nif:open(RingSet, binary_to_list(atom_to_binary(Name)),
                             Limits#{node => node(), pid => self(), events => number(Events), per_second => number(Rate),
                                     time_ns => number(Time) * 1000000,
                                     is_blocking => case maps:get(on_full, Options) of block -> 1; drop -> 0 end}) of
        {ok, Capture} ->
            acquaint(Capture),
            State = Options#{port => Port, capture => Capture, session => undefined, timer => timer(Time),
                             monitor => watch(maps:get(owner, Options)), started => erlang:monotonic_time(millisecond)},
            [tracewheel_nif:name(Capture, P, N) || N <- registered(), P <- [whereis(N)], P =/= undefined],
            trace(State);
        {error, Reason} ->
            abort(Port),
            {error, {rings, Reason}}
    end.

%% If tracewheel_nif was unloaded and is here again, the tracer module knows captures of the earlier one only, and traces nothing into others.
acquaint(Capture) ->
    tracewheel_tracer:enabled(trace_status, Capture, self()) =/= remove orelse
        ({module, _} = code:load_abs(filename:rootname(code:which(tracewheel_tracer)))).

number(infinity) -> 0;
number(N) -> N.

timer(infinity) -> none;
timer(Ms) -> erlang:send_after(Ms, self(), {?MODULE, time}).

watch(none) -> none;
watch(Pid) -> monitor(process, Pid).

%% ---- what is traced ----

trace(Options) ->
    State = #{capture := Capture} = with_session(Options),
    try
        set_seq_trace(State),
        {ok, set(State)}
    catch
        Class:Reason ->
            unset(State),
            tracewheel_nif:finish(Capture, stopped),
            abort(maps:get(port, State)),
            {error, case Reason of
                        {cannot_trace, _} -> Reason;
                        _ -> {cannot_trace, {Class, Reason}}
                    end}
    end.

has_sessions() -> ensure_loaded(trace) =:= {module, trace}.

with_session(#{flags := [], patterns := []} = State) -> State;
with_session(#{name := Name, capture := Capture} = State) ->
    case has_sessions() of
        true -> State#{session := trace:session_create(Name, {tracewheel_tracer, Capture}, [])};
        false -> State
    end.

set(#{flags := [], patterns := []} = State) -> State;
set(#{session := undefined, capture := Capture} = State) ->
    set(State, fun erlang:trace_pattern/3,
        fun(Process, Flags) -> erlang:trace(Process, true, [{tracer, tracewheel_tracer, Capture} | Flags]) end);
set(#{session := Session} = State) ->
    set(State, fun(MFA, Spec, Flags) -> trace:function(Session, MFA, Spec, Flags) end,
        fun(Process, Flags) -> trace:process(Session, Process, true, Flags) end).

set(#{patterns := Patterns, processes := Processes, flags := Flags, scope := Scope} = State, Function, Process) ->
    [ensure_loaded(M) || {{M, _, _}, _} <- Patterns, M =/= '_'],
    Counts = [check_function(MFA, catch Function(MFA, Spec, [Scope])) || {MFA, Spec} <- Patterns],
    [check_process(P, catch Process(P, Flags)) || P <- Processes],
    State#{functions => lists:sum(Counts)}.

check_function(_, Count) when is_integer(Count), Count > 0 -> Count;
check_function(MFA, 0) -> error({cannot_trace, {no_such_function, MFA}});
check_function(MFA, {'EXIT', {Reason, _}}) -> error({cannot_trace, {MFA, Reason}}).

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

%% Removes what this capture has set, and nothing that others have.
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
    Delivered = erlang:trace_delivered(all),
    receive {trace_delivered, all, Delivered} -> ok after ?RECORDER_MS -> ok end;
unset_trace(#{session := Session}) ->
    Delivered = trace:delivered(Session, all),
    receive {trace_delivered, all, Delivered} -> ok after ?RECORDER_MS -> ok end,
    trace:session_destroy(Session).

%% ---- while it runs; each message goes to the newest version of this module ----

loop(#{port := Port, capture := Capture, monitor := Monitor} = State) ->
    receive
        {?MODULE, From, Tag, stop} ->
            Info = finish(State, stopped),
            %% The caller may start another capture of this name as soon as it has the answer.
            unregister(maps:get(name, State)),
            From ! {Tag, {ok, Info}};
        {?MODULE, From, Tag, info} ->
            From ! {Tag, {ok, info(State)}},
            ?MODULE:loop(State);
        {?MODULE, From, Tag, tracer} ->
            From ! {Tag, {ok, Capture}},
            ?MODULE:loop(State);
        {?MODULE, time} -> finish(State, time);
        {'DOWN', Monitor, _, _, _} -> finish(State, owner);
        {Port, {exit_status, _}} -> finish(State, recorder);
        {?MODULE, look} ->
            case counts(State) of
                #{state := tracing} ->
                    look_later(),
                    ?MODULE:loop(State);
                #{state := Over} -> finish(State, Over)
            end;
        _ -> ?MODULE:loop(State)
    end.

%% Without the module that made the capture, the trace cannot go on.
counts(#{capture := Capture, path := Path} = State) ->
    try tracewheel_nif:info(Capture)
    catch error:_ ->
            logger:notice("tracewheel: ~ts ended: tracewheel_nif was unloaded", [Path]),
            unset(State),
            exit(unloaded)
    end.

look_later() -> erlang:send_after(?LOOK_MS, self(), {?MODULE, look}).

info(#{path := Path, name := Name, started := Started, events := Events, rate := Rate, time := Time} = State) ->
    (counts(State))#{path => Path, name => Name, functions => maps:get(functions, State, 0),
                                    seconds => (erlang:monotonic_time(millisecond) - Started) / 1000,
                                    limits => #{events => Events, rate => Rate, time => Time}}.

%% Nothing is traced any more, then the rings are closed, then the recorder drains them.
finish(#{capture := Capture, port := Port} = State, Why) ->
    unset(State),
    Info = info(State),
    tracewheel_nif:finish(Capture, Why),
    Recorded = end_recorder(Port),
    Result = account(maps:merge(Info#{state := Why}, Recorded)),
    Why =:= stopped orelse logger:notice("tracewheel: ~ts ended (~p): ~p events", [maps:get(path, State), Why,
                                                                                maps:get(events, Recorded, unknown)]),
    [begin leave(Modules, 100), Pid ! {?MODULE, ended, Result} end || {Pid, Modules} <- [maps:get(attached, State, none)]],
    Result.

%% Modules that came with tracewheel_attach go, unless others trace as well.  They cannot do that themselves: a process with a name, by which
%% their next use waits for it, runs none of them.  It has the name before others are looked for: a start sees it, or is seen.
leave([]) -> true;
leave(Modules) ->
    Purge = [{fun code:purge/1, M} || M <- Modules],
    %% What was loaded twice, as by two attachments at once, cannot be deleted before it is purged.
    Steps = [{fun timer:sleep/1, 500}] ++ Purge ++ [{fun code:delete/1, M} || M <- Modules] ++ [{fun timer:sleep/1, 100}] ++ Purge,
    {Functions, Arguments} = lists:unzip(Steps),
    Unloader = spawn(lists, zipwith, [fun erlang:apply/2, Functions, [[A] || A <- Arguments]]),
    Is_first = (catch register(tracewheel_unload, Unloader)) =:= true,
    Is_first andalso is_idle() orelse exit(Unloader, kill),
    Is_first.

%% Of a server, which is not idle itself: another that has the name does not unload, and soon gives it back.
leave(Modules, Tries) ->
    leave(Modules) orelse Tries =:= 0 orelse begin timer:sleep(50), leave(Modules, Tries - 1) end.

%% All that was lost: by threads, and by the recorder, as it has counted.
account(#{lost_full := A, lost_too_big := B, lost_nested := C, lost_no_ring := D} = Info) -> Info#{lost := A + B + C + D};
account(Info) -> Info.

end_recorder(Port) ->
    catch port_command(Port, <<"stop\n">>),
    await_done(Port, #{}).

await_done(Port, Result) ->
    receive
        {Port, {data, {eol, <<"done ", Rest/binary>>}}} ->
            await_done(Port, maps:from_list([pair(P) || P <- binary:split(Rest, <<" ">>, [global])]));
        {Port, {exit_status, _}} -> Result;
        {'EXIT', Port, _} -> Result
    after ?RECORDER_MS ->
            close(Port),
            Result
    end.

pair(Text) ->
    [Key, Value] = binary:split(Text, <<"=">>),
    {binary_to_atom(Key), binary_to_integer(Value)}.

abort(Port) ->
    catch port_command(Port, <<"abort\n">>),
    await_done(Port, #{}).

close(Port) ->
    catch port_close(Port).
