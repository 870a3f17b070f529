%% SPDX-License-Identifier: Apache-2.0
%% A flight recorder of a node: the newest events stay in memory, and are written as a capture when a process ends by an error.
%%
%% Such ends are known by the logger: crash reports of processes of proc_lib, and what the VM says of others; or by monitors of chosen
%% processes.  The handler of the logger sends the server one message for each snapshot that may be written: while none may, a crash
%% costs the node an atomic addition, and no mailbox grows.  Other log events cost what a handler of the level error costs.
-module(tracewheel_flight).
-export([check/1, start/1, message/2, ask/2, await/1, info/1, undo/1]).
-export([log/2]).

-define(REASON_MAX, 200). % characters
-define(REMOVE_MS, 1000).
-define(WRITE_MS, 30000).
-define(CLOSED, 1). % of the gate: 1 if no snapshot may be written now, and how many ends of processes were passed over
-define(PASSED, 2).

%% ---- options ----

%% -> [crash | Pid]; throws
check([C | _] = Text) when is_integer(C) -> check([Text]);
check(On) when is_list(On) -> lists:append([one(O) || O <- On]);
check(none) -> [];
check(On) -> one(On).

one(crash) -> [crash];
one(Which) ->
    case tracewheel_processes:select(Which) of
        Pid when is_pid(Pid) -> [Pid];
        {selected, Pids} -> Pids;
        _ -> throw({bad_option, snapshot_on, Which})
    end.

%% ---- of the server: State has flight => #{...} meanwhile ----

start(#{flight := true, snapshot_on := On, name := Name} = State) ->
    Gate = atomics:new(2, []),
    lists:member(crash, On) andalso listen(list_to_atom("tracewheel_flight_" ++ atom_to_list(Name)), Gate),
    State#{flight := #{gate => Gate, monitors => maps:from_list([{monitor(process, P), P} || P <- On, is_pid(P)]),
                       made => 0, paths => [], asked => queue:new()}}.

listen(Handler, Gate) ->
    tracewheel_guard:hold({logger, Handler}),
    Config = #{level => error, config => #{gate => Gate, server => self()}},
    logger:remove_handler(Handler), % of a server that has just been killed
    case logger:add_handler(Handler, ?MODULE, Config) of
        ok -> ok;
        Error -> say("tracewheel: crashes are not seen, the logger takes no handler: ~0tp", [Error])
    end.

%% By tracewheel_guard.  A logger that is stuck does not keep a trace from ending.
undo(Handler) ->
    {_, Monitor} = spawn_monitor(logger, remove_handler, [Handler]),
    receive {'DOWN', Monitor, _, _, _} -> ok after ?REMOVE_MS -> demonitor(Monitor, [flush]) end.

%% What stop/0 and info/0 say.
info(#{flight := #{paths := Paths, gate := Gate}}) -> #{snapshots => Paths, passed_over => atomics:get(Gate, ?PASSED)}.

%% Those that are being written: the recorder answers before it ends.
await(#{port := Port, flight := #{asked := Asked}} = State) ->
    case queue:is_empty(Asked) of
        true -> State;
        false ->
            receive
                {Port, {data, {eol, Line}}} -> await(written(Line, State));
                {'EXIT', Port, _} -> State
            after ?WRITE_MS -> State
            end
    end.

%% From is who waits for the answer: {Pid, Tag}.
ask(From, State) -> write(State, From, 0, "it was asked for").

%% -> a new State, or false: the message is of something else.
message({?MODULE, ended, Pid, Name, Why, At}, State) -> ended(State, Pid, Name, Why, At);
message({?MODULE, open}, #{flight := #{gate := Gate}} = State) ->
    atomics:put(Gate, ?CLOSED, 0),
    State;
message({'DOWN', Monitor, process, Pid, Reason}, #{flight := #{monitors := Monitors, gate := Gate} = Flight} = State) when is_map_key(Monitor, Monitors) ->
    Now = State#{flight := Flight#{monitors := maps:remove(Monitor, Monitors)}},
    At = erlang:monotonic_time(nanosecond),
    case is_error(Reason) andalso is_open(Gate) of
        true -> ended(Now, Pid, undefined, text(Reason), At);
        false -> Now
    end;
message({Port, {data, {eol, Line}}}, #{port := Port, flight := #{asked := Asked}} = State) ->
    not queue:is_empty(Asked) andalso written(Line, State);
message(_, _) -> false.

ended(#{flight := #{made := Made, gate := Gate} = Flight, snapshots := Most, every := Every} = State, Pid, Name, Why, At) ->
    Made + 1 < Most andalso erlang:send_after(Every, self(), {?MODULE, open}),
    atomics:put(Gate, ?CLOSED, 1),
    Who = case is_atom(Name) andalso Name =/= undefined of
              true ->
                  tracewheel_nif:name(maps:get(capture, State), Pid, Name),
                  io_lib:format(" ~ts", [Name]);
              false -> ""
          end,
    Age = max(0, erlang:monotonic_time(nanosecond) - At),
    write(State#{flight := Flight#{made := Made + 1}}, none, Age, ["process ", pid_to_list(Pid), Who, " ended: ", Why]).

write(#{port := Port, flight := #{asked := Asked} = Flight} = State, Whose, Age, Reason) ->
    Line = line(Reason),
    catch port_command(Port, unicode:characters_to_binary(["snapshot ", integer_to_list(Age), " ", Line, "\n"])),
    State#{flight := Flight#{asked := queue:in({Whose, Line}, Asked)}}.

%% The recorder answers in the order in which it was asked.
written(Line, #{flight := #{asked := Asked, paths := Paths} = Flight} = State) ->
    {{value, {Whose, Reason}}, Rest} = queue:out(Asked),
    {Events, Answer} = case Line of
                           <<"snapshot ", Told/binary>> ->
                               [Count, Path] = binary:split(Told, <<" ">>),
                               {binary_to_integer(Count), {ok, unicode:characters_to_list(Path)}};
                           <<"unwritten ", Why/binary>> -> {0, {error, Why}};
                           _ -> {0, {error, Line}}
                       end,
    case Whose of
        {Pid, Tag} -> Pid ! {Tag, Answer};
        none -> tell(Answer)
    end,
    [Attached ! {tracewheel_server, snapshot, Answer, Events, Reason} || {Attached, _} <- [maps:get(attached, State, none)]],
    State#{flight := Flight#{asked := Rest, paths := Paths ++ [P || {ok, P} <- [Answer]]}}.

tell({ok, Path}) -> say("tracewheel: ~ts has what was before a process ended by an error", [Path]);
tell({error, Why}) -> say("tracewheel: what was before a process ended by an error was not written: ~ts", [Why]).

%% Handlers of the logger may wait; the server does not.
say(Format, Arguments) -> spawn(logger, notice, [Format, Arguments]).

%% ---- what is an error ----

is_error(normal) -> false;
is_error(shutdown) -> false;
is_error({shutdown, _}) -> false;
is_error(noproc) -> false;
is_error(noconnection) -> false;
is_error(_) -> true.

%% The first since it was open; others are counted.
is_open(Gate) ->
    case atomics:exchange(Gate, ?CLOSED, 1) of
        0 -> true;
        _ ->
            atomics:add(Gate, ?PASSED, 1),
            false
    end.

%% In the process that logs: nothing that fails here may reach it.
log(#{msg := Message, meta := Meta}, #{config := #{gate := Gate, server := Server}}) ->
    try who_ended(Message, Meta) of
        {Pid, Name, Reason} ->
            At = erlang:monotonic_time(nanosecond),
            is_open(Gate) andalso (Server ! {?MODULE, ended, Pid, Name, text(Reason), At}),
            ok;
        nobody -> ok
    catch
        _:_ -> ok
    end.

%% A crash report of proc_lib; or the VM's words on another process.
who_ended({report, #{label := {proc_lib, crash}, report := [Info | _]}}, _) ->
    {_, Pid} = lists:keyfind(pid, 1, Info),
    {_, {_, Reason, _}} = lists:keyfind(error_info, 1, Info),
    {Pid, proplists:get_value(registered_name, Info, undefined), Reason};
who_ended({_, [Pid | Rest]}, #{error_logger := #{emulator := true, tag := error}, pid := Pid}) ->
    {Pid, undefined, case lists:last(Rest) of {Reason, _} -> Reason; Reason -> Reason end};
who_ended(_, _) -> nobody.

text(Reason) -> lists:sublist(lists:flatten(io_lib:format("~0tp", [Reason], [{chars_limit, ?REASON_MAX}])), ?REASON_MAX).

%% Names are atoms with any characters: a line for the recorder has one end.
line(Text) -> [case C < $\s of true -> $\s; false -> C end || C <- lists:sublist(lists:flatten(Text), 2 * ?REASON_MAX)].
