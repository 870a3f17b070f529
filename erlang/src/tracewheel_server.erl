%% SPDX-License-Identifier: Apache-2.0
%% One process for each capture: it starts the recorder, sets what is traced, watches owner and limits, and ends all that.
%%
%% It runs with priority max, so that limits hold in a node that is drowning.
-module(tracewheel_server).
-export([start/1, call/2, environment/1, command/1]).
-export([init/1, loop/1]).
-include_lib("kernel/include/file.hrl").

-import(tracewheel_leave, [is_server/1, is_unloading/0]).

%% How often limits are looked at that threads keep by themselves, and how long the recorder may take to start and to end.
-define(LOOK_MS, 100).
-define(RECORDER_MS, 30000).
%% How often patterns are looked at: so long is code that was loaded again not traced.
-define(CODE_MS, 10).
-define(NOTES_MAX, 16).
-define(NOTE_MAX, 200). % characters

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

%% ---- start ----

init(#{name := Name, starter := Starter} = Options) ->
    process_flag(trap_exit, true),
    Answer = case claim(Name) of
                 ok -> begin_capture(Options);
                 Refused -> Refused
             end,
    case Answer of
        {ok, Begun} ->
            State = with_flight(with_printer(Begun)),
            Starter ! {self(), {ok, info(State)}},
            look_later(),
            look_at_code_later(State),
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
                {ok, Command, Port, RingSet} -> open(Options#{command => Command}, Port, RingSet);
                Error -> Error
            end;
        Error -> Error
    end.

libraries() ->
    case [{M, R} || M <- [tracewheel_nif, tracewheel_tracer], {error, R} <- [tracewheel_settings:ensure_loaded(M)]] of
        [] -> ok;
        [{Module, Reason} | _] -> {error, {nif_not_loaded, tracewheel_options:library(Module) ++ ".so", Reason}}
    end.

recorder(#{path := Path} = Options) ->
    case command(Options) of
        false -> {error, {no_recorder, "the command tracewheel is not in PATH; option recorder names it"}};
        Command ->
            try
                ok = executable(Command),
                open_port({spawn_executable, Command}, [{args, arguments(Options)}, {line, 4096}, exit_status, binary | environment(Options)])
            of
                Port -> await_ready(Command, Port, Path)
            catch
                error:{badmatch, {error, Reason}} -> {error, {no_recorder, {Command, Reason}}};
                error:Reason -> {error, {no_recorder, {Command, Reason}}}
            end
    end.

%% OTP 25 leaves a descriptor open for each open_port/2 that fails, so that a node that tried often would have none left.
executable(Command) ->
    case file:read_file_info(Command, [raw]) of
        {ok, #file_info{type = regular, mode = Mode}} when Mode band 8#111 =/= 0 -> ok;
        {ok, _} -> {error, eacces};
        Error -> Error
    end.

command(#{recorder := Path}) -> Path;
command(_) ->
    case os:getenv("TRACEWHEEL") of
        false -> os:find_executable("tracewheel");
        Path -> Path
    end.

%% Where tracewheel_elsewhere has brought them.
environment(#{libraries := Folder}) -> [{env, [{"LD_LIBRARY_PATH", Folder}]}];
environment(_) -> [].

arguments(#{path := Path, on_full := OnFull, ring_bytes := Ring, memory := Memory, force := Force, flight := Flight, redact := Redact}) ->
    ["record", "--erlang", "-o", Path, "--on-full", atom_to_list(OnFull), "--ring", integer_to_list(Ring), "--ring-cap",
     integer_to_list(Memory)] ++ ["--force" || Force] ++ ["--flight" || Flight] ++ lists:append([["--redact", E] || E <- Redact]).

await_ready(Command, Port, Path) ->
    receive
        {Port, {data, {eol, <<"ready ", RingSet/binary>>}}} -> {ok, Command, Port, binary_to_list(RingSet)};
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
            put(tracewheel_settings, Capture), % by which others know whose it is
            State = Options#{port => Port, capture => Capture, session => undefined, timer => timer(Time),
                             monitor => watch(maps:get(owner, Options)), origins => tracewheel_origins:start(Capture, maps:get(flags, Options)), started => erlang:monotonic_time(millisecond)},
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
    State = #{capture := Capture} = tracewheel_settings:with_session(Options),
    try
        tracewheel_settings:set_seq_trace(State),
        Set = tracewheel_settings:set(State),
        Counting = tracewheel_counters:set(Set),
        tracewheel_monitor:start(State),
        {ok, tell_others(Counting, "as the trace began")}
    catch
        Class:Reason ->
            tracewheel_settings:unset(State),
            tracewheel_nif:finish(Capture, stopped),
            abort(maps:get(port, State)),
            {error, case Reason of
                        {cannot_trace, _} -> Reason;
                        _ -> {cannot_trace, {Class, Reason}}
                    end}
    end.

%% Processes whose events go elsewhere are a gap of the capture.
tell_others(#{capture := Capture} = State, When) ->
    {Count, Whose} = tracewheel_settings:others(State),
    Count > 0 andalso
        tracewheel_nif:note(Capture, text("processes that another tracer had ~s: ~p (~ts); their events are not here", [When, Count, Whose])),
    State#{other_tracer => Count, others => Whose}.

look_at_counters(#{capture := Capture} = State) ->
    {Texts, Now} = tracewheel_counters:look(State),
    [tracewheel_nif:note(Capture, text("~ts", [T])) || T <- Texts],
    Now.

tell_monitor(#{capture := Capture}) ->
    tracewheel_monitor:lost() andalso
        tracewheel_nif:note(Capture, <<"the system monitor ended before the trace: another has set it, or it had too many events">>).

%% A module may be loaded again: its new code is traced as the old one was.
set_again(#{capture := Capture} = State) ->
    {Texts, Later, Now} = tracewheel_settings:set_again(State),
    Before = maps:get(set_again, State, 0),
    [tracewheel_nif:note(Capture, text("~ts", [T])) || T <- lists:sublist(Texts, max(0, ?NOTES_MAX - Before))],
    Come = maps:get(later_count, State, 0),
    [tracewheel_nif:note(Capture, text("~ts", [T])) || T <- lists:sublist(Later, max(0, ?NOTES_MAX - Come))],
    Now#{set_again => Before + length(Texts), later_count => Come + length(Later)}.

text(Format, Arguments) -> unicode:characters_to_binary(lists:sublist(lists:flatten(io_lib:format(Format, Arguments)), ?NOTE_MAX)).

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
        {?MODULE, From, Tag, counters} ->
            From ! {Tag, {ok, tracewheel_counters:read(State)}},
            ?MODULE:loop(State);
        {?MODULE, From, Tag, snapshot} when is_map(map_get(flight, State)) -> ?MODULE:loop(tracewheel_flight:ask({From, Tag}, State));
        {?MODULE, From, Tag, snapshot} ->
            From ! {Tag, {error, no_flight_recorder}},
            ?MODULE:loop(State);
        {?MODULE, From, Tag, tracer} ->
            From ! {Tag, {ok, Capture}},
            ?MODULE:loop(State);
        {?MODULE, time} -> finish(State, time);
        {'DOWN', Monitor, _, _, _} -> finish(State, owner);
        {Port, {exit_status, _}} -> finish(State, recorder);
        {?MODULE, look} ->
            tell_monitor(State),
            case {counts(State), tracewheel_settings:is_kept(State)} of
                {#{state := tracing}, true} ->
                    look_later(),
                    ?MODULE:loop(look_at_counters(State));
                {#{state := tracing}, false} -> finish(State, tracer);
                {#{state := Over}, _} -> finish(State, Over)
            end;
        {?MODULE, look_at_code} ->
            Now = set_again(State),
            look_at_code_later(Now),
            ?MODULE:loop(Now);
        Other -> ?MODULE:loop(more(State, Other))
    end.

%% Neither is tracewheel_flight there.
with_flight(#{flight := true} = State) -> tracewheel_flight:start(State);
with_flight(State) -> State.

snapshots(#{flight := #{}} = State) -> tracewheel_flight:info(State);
snapshots(_) -> #{}.

more(#{flight := #{}} = State, Message) ->
    case tracewheel_flight:message(Message, State) of
        false -> State;
        Now -> Now
    end;
more(State, Message) -> printing(State, Message).

%% tracewheel_printer is not there where record --erlang brought the modules: it prints by itself.
with_printer(#{print := false} = State) -> State;
with_printer(State) -> State#{printer => tracewheel_printer:start(State)}.

%% Printing ends before the trace if the group leader does, or the fun fails.
printing(#{printer := Printer, path := Path} = State, Message) ->
    case tracewheel_printer:ended(Printer, Message) of
        false -> ok;
        Why -> logger:notice("tracewheel: ~ts is not printed any more (~0tp): the trace goes on", [Path, Why])
    end,
    State;
printing(State, _) -> State.

%% Without the module that made the capture, the trace cannot go on.
counts(#{capture := Capture, path := Path} = State) ->
    try tracewheel_nif:info(Capture)
    catch error:_ ->
            logger:notice("tracewheel: ~ts ended: tracewheel_nif was unloaded", [Path]),
            tracewheel_settings:unset(State),
            exit(unloaded)
    end.

look_later() -> erlang:send_after(?LOOK_MS, self(), {?MODULE, look}).

look_at_code_later(#{patterns := []}) -> ok;
look_at_code_later(_) -> erlang:send_after(?CODE_MS, self(), {?MODULE, look_at_code}).

info(#{path := Path, name := Name, started := Started, events := Events, rate := Rate, time := Time} = State) ->
    (maps:merge(snapshots(State), counts(State)))#{path => Path, name => Name, functions => maps:get(functions, State, 0),
                                    other_tracer => maps:get(other_tracer, State, 0), others => maps:get(others, State, ""),
                                    set_again => maps:get(set_again, State, 0), later => maps:get(later_count, State, 0),
                                    seconds => (erlang:monotonic_time(millisecond) - Started) / 1000,
                                    limits => #{events => Events, rate => Rate, time => Time}}.

%% Nothing is traced any more, then the rings are closed, then the recorder drains them.
finish(#{capture := Capture, port := Port} = Before, Why) ->
    State = tell_others(set_again(written(Before, Why)), "as it ended"),
    Counted = tracewheel_counters:store(look_at_counters(State)),
    tracewheel_settings:unset(State),
    tracewheel_origins:finish(maps:get(origins, State)),
    Info = info(State),
    tracewheel_nif:finish(Capture, Why),
    Recorded = end_recorder(Port),
    Result = with_printed(account(maps:merge(Info#{state := Why, counted => Counted}, Recorded)), State),
    Why =:= stopped orelse logger:notice("tracewheel: ~ts ended (~p): ~p events", [maps:get(path, State), Why,
                                                                                maps:get(events, Recorded, unknown)]),
    [begin tracewheel_leave:leave(Modules, 100), Pid ! {?MODULE, ended, Result} end || {Pid, Modules} <- [maps:get(attached, State, none)]],
    Result.

written(#{flight := #{}} = State, Why) when Why =/= recorder -> tracewheel_flight:await(State);
written(State, _) -> State.

%% All that was lost: by threads, and by the recorder, as it has counted.
account(#{lost_full := A, lost_too_big := B, lost_nested := C, lost_no_ring := D} = Info) -> Info#{lost := A + B + C + D};
account(Info) -> Info.

%% What is not printed is in the capture.
with_printed(Info, #{printer := Printer}) ->
    Printed = tracewheel_printer:finish(Printer),
    Info#{printed => Printed, left_out => maps:get(events, Info, Printed) - Printed};
with_printed(Info, _) -> Info.

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
