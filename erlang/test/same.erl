%% SPDX-License-Identifier: Apache-2.0
%% same:main() - each scenario of play.erl, traced by a tracer that gives every event to a capture and to a process.  The capture, as
%% `print --format erlang` shows it, must have the same messages in the same order for each tracee.  And where the run-time has
%% sessions, a process tracer of a session of its own traces beside the capture's session.  Then PLAYS random ones of dice.erl, from SEED on.
-module(same).
-export([main/0]).

main() ->
    logger:set_primary_config(level, none), % commands that ports refuse
    Failed = [{How, Name} || How <- [module | [sessions || has_sessions()]], {Name, _, _} = Scenario <- play:scenarios(),
                             %% Collections of one process in two sessions are an error of OTP 27 to 29 (erlang/otp 11624).
             How =:= module orelse not lists:member(Name, [ports, collections, dirty]), check(How, Scenario) =/= same] ++
        [Name || Seed <- lists:seq(number("SEED"), number("SEED") + number("PLAYS") - 1), {Name, _, _} = Scenario <- [dice:scenario(Seed)],
                 check(module, Scenario) =/= same],
    has_sessions() orelse io:format("no module trace in this run-time: sessions not tested~n"),
    Failed =:= [] orelse io:format("FAILED: ~p~n", [Failed]),
    halt(length(Failed)).

number(Variable) -> list_to_integer(os:getenv(Variable)).

has_sessions() -> code:ensure_loaded(trace) =:= {module, trace}.

check(How, {Name, Flags, Patterns}) ->
    Path = atom_to_list(How) ++ case Name of {dice, _} -> ""; _ -> "-" ++ atom_to_list(Name) end ++ ".tw",
    {ok, _} = tracewheel:start(Path, #{force => true, processes => [], events => infinity, rate => infinity, term_bytes => 7000, on_full => block}),
    {tracer, _, Capture} = tracewheel:tracer(),
    Collector = spawn(fun() -> collect([]) end),
    begin_trace(How, Capture, Collector, Flags, Patterns, self()),
    Self = self(),
    {Pid, Monitor} = spawn_monitor(fun() -> receive go -> ok end, run(Name), Self ! done end),
    Trace = trace_process(How, Capture, Collector, Pid, Flags, Patterns),
    Pid ! go,
    receive {'DOWN', Monitor, _, _, normal} -> ok after 30000 -> error({Name, stuck}) end,
    timer:sleep(50),
    end_trace(How, Trace, Patterns),
    {ok, #{lost := 0, events := Events}} = tracewheel:stop(),
    Collector ! {give, self()},
    Messages = receive {given, M} -> [message(How, E) || E <- M] end,
    Printed = printed(Path),
    compare(Name, group(Messages), group(Printed), length(Messages), Events).

run({dice, _} = Name) -> dice:run(Name);
run(Name) -> play:run(Name).

begin_trace(module, _, _, _, Patterns, _) ->
    [erlang:trace_pattern(MFA, Spec, [local]) || {MFA, Spec} <- Patterns],
    ok;
begin_trace(sessions, _, _, _, _, _) -> ok.

port_flags(Flags) -> [F || F <- Flags, lists:member(F, [ports, running_ports, send, 'receive'])].

trace_process(module, Capture, Collector, Pid, Flags, _) ->
    Tracer = {tracer, both, {Capture, Collector}},
    erlang:trace(Pid, true, [Tracer | Flags -- [ports, running_ports]]),
    lists:member(ports, Flags) andalso erlang:trace(new_ports, true, [Tracer | port_flags(Flags)]),
    Tracer;
trace_process(sessions, Capture, Collector, Pid, Flags, Patterns) ->
    [begin
         S = trace:session_create(same, Tracer, []),
         [trace:function(S, MFA, Spec, [local]) || {MFA, Spec} <- Patterns],
         trace:process(S, Pid, true, Flags),
         S
     end || Tracer <- [{tracewheel_tracer, Capture}, Collector]].

end_trace(module, _, Patterns) ->
    erlang:trace(new_ports, false, [all]),
    erlang:trace(all, false, [all]),
    [erlang:trace_pattern(MFA, false, [local]) || {MFA, _} <- Patterns],
    dice:forget();
end_trace(sessions, Sessions, _) ->
    [trace:session_destroy(S) || S <- Sessions].

collect(Events) ->
    receive
        {give, To} -> To ! {given, lists:reverse(Events)};
        Event -> collect([Event | Events])
    end.

%% What erl_tracer's own process tracer sends.
message(sessions, Message) -> plain(Message);
message(module, {event, Tag, Tracee, Term, Options}) ->
    Extra = [E || #{extra := E} <- [Options]] ++ [R || #{match_spec_result := R} <- [Options]] ++
            [S || #{scheduler_id := S} <- [Options]],
    plain(list_to_tuple([trace, Tracee, Tag, Term | Extra])).

%% Pids and the like are atoms in the printed form.  Sizes of a collection come in any order.
plain([{Key, Size} | _] = List) when Key =:= wordsize, is_integer(Size); Key =:= heap_size, is_integer(Size) -> lists:sort(List);
plain(T) when is_pid(T) -> list_to_atom(pid_to_list(T));
plain(T) when is_port(T) -> list_to_atom(port_to_list(T));
plain(T) when is_reference(T) -> list_to_atom(ref_to_list(T));
plain(T) when is_function(T) ->
    case erlang:fun_info(T, type) of
        {type, local} -> list_to_atom(erlang:fun_to_list(T));
        _ -> T
    end;
plain([H | T]) -> [plain(H) | plain(T)];
plain(T) when is_tuple(T) -> list_to_tuple(plain(tuple_to_list(T)));
plain(T) when is_map(T) -> maps:from_list(plain(maps:to_list(T)));
plain(T) -> T.

printed(Path) ->
    Text = os:cmd(os:getenv("TRACEWHEEL") ++ " print --format erlang " ++ Path ++ " | grep -v own_time >printed.term"),
    Text =:= "" orelse Text =:= "tracewheel: the capture holds no events.\n" orelse error({print, Text}),
    {ok, Terms} = file:consult("printed.term"),
    [plain(T) || T <- Terms].

group(Messages) ->
    lists:foldl(fun(M, Map) -> maps:update_with(element(2, M), fun(L) -> [M | L] end, [M], Map) end, #{}, lists:reverse(Messages)).

compare(Name, Same, Same, Count, Count) when Count > 0; is_tuple(Name) ->
    io:format("~p: ~p events of ~p tracees~n", [Name, Count, maps:size(Same)]),
    same;
compare(Name, Wanted, Found, Count, Events) ->
    io:format("~p: ~p events of a process tracer, ~p captured~n", [Name, Count, Events]),
    [first_difference(Tracee, maps:get(Tracee, Wanted, []), maps:get(Tracee, Found, []))
     || Tracee <- lists:usort(maps:keys(Wanted) ++ maps:keys(Found))],
    different.

first_difference(Tracee, [Same | A], [Same | B]) -> first_difference(Tracee, A, B);
first_difference(_, [], []) -> ok;
first_difference(Tracee, A, B) -> io:format("  ~p:~n    ~p~n    ~p~n", [Tracee, lists:sublist(A, 2), lists:sublist(B, 2)]).
