%% SPDX-License-Identifier: Apache-2.0
%% tokens:main() - the same requests with a process as system tracer, and with a capture.
-module(tokens).
-export([main/0]).

main() ->
    Self = self(),
    false = seq_trace:set_system_tracer(Self),
    Wanted = lists:append([play(F) || F <- flags()]),
    Self = seq_trace:set_system_tracer(false),
    {ok, _} = tracewheel:start("seq.tw", #{seq_trace => true, on_full => block}),
    {error, {cannot_trace, {seq_trace, {already_traced, _}}}} = tracewheel:start("seq2.tw", #{seq_trace => true, name => second}),
    [] = lists:append([play(F) || F <- flags()]),
    {ok, #{lost := 0}} = tracewheel:stop(),
    false = seq_trace:get_system_tracer(),
    "" = os:cmd(os:getenv("TRACEWHEEL") ++ " print --format erlang seq.tw | grep -v own_time >seq.term"),
    {ok, Found} = file:consult("seq.term"),
    case {plain(Wanted), plain(Found)} of
        {Same, Same} when length(Same) > 20 -> io:format("~p events~nok~n", [length(Same)]);
        {A, B} -> io:format("FAILED~n~p~n~p~n", [A, B])
    end,
    halt().

flags() -> [[], [timestamp], [monotonic_timestamp], [strict_monotonic_timestamp]].

%% A client asks a server, which asks a second one.  Serials begin anew.
play(Flags) ->
    seq_trace:reset_trace(),
    Self = self(),
    {_, Monitor} = spawn_monitor(fun() -> requests(Flags), Self ! quiet end),
    receive {'DOWN', Monitor, _, _, normal} -> ok end,
    timer:sleep(20),
    received().

requests(Flags) ->
    Back = spawn_link(fun Loop() -> receive {From, X} -> From ! {X, [self(), <<"x">>]}, Loop() end end),
    Front = spawn_link(fun Loop() -> receive {From, X} -> Back ! {self(), X}, receive {X, _} -> From ! {X, done} end, Loop() end end),
    register(front, Front),
    seq_trace:set_token(label, {request, length(Flags)}),
    [seq_trace:set_token(F, true) || F <- [send, 'receive', print | Flags]],
    Front ! {self(), one}, receive {one, done} -> ok end,
    seq_trace:print("between"),
    front ! {self(), two}, receive {two, done} -> ok end,
    seq_trace:set_token([]),
    unregister(front),
    unlink(Front), unlink(Back), exit(Front, kill), exit(Back, kill).

received() ->
    receive Event when element(1, Event) =:= seq_trace -> [Event | received()]; quiet -> received() after 0 -> [] end.

%% Pids by their first appearance; of stamps their form.
plain(Events) ->
    {Plain, _} = lists:mapfoldl(fun event/2, #{}, Events),
    Plain.
event({seq_trace, Label, Info, Stamp}, Pids) ->
    {I, P} = term(Info, Pids),
    {{seq_trace, Label, I, form(Stamp)}, P};
event(Event, Pids) -> term(Event, Pids).
form({_, _, _}) -> wall;
form({_, _}) -> strict;
form(N) when is_integer(N) -> monotonic.

term(P, Pids) when is_pid(P) -> term(list_to_atom(pid_to_list(P)), Pids);
term(A, Pids) when is_atom(A) ->
    case atom_to_list(A) of
        "<" ++ _ ->
            New = Pids#{A => maps:get(A, Pids, {pid, maps:size(Pids)})},
            {maps:get(A, New), New};
        _ -> {A, Pids}
    end;
term([H | T], Pids) ->
    {H1, P1} = term(H, Pids),
    {T1, P2} = term(T, P1),
    {[H1 | T1], P2};
term(T, Pids) when is_tuple(T) ->
    {L, P} = term(tuple_to_list(T), Pids),
    {list_to_tuple(L), P};
term(T, Pids) -> {T, Pids}.
