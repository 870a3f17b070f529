%% SPDX-License-Identifier: Apache-2.0
%% tokens:main() - the same requests with a process as system tracer, and with a capture.
-module(tokens).
-export([main/0, order/2]).

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
    begun(),
    otel(),
    case {plain(Wanted), plain(Found)} of
        {Same, Same} when length(Same) > 20 -> io:format("~p events~nok~n", [length(Same)]);
        {A, B} -> io:format("FAILED~n~p~n~p~n", [A, B])
    end,
    halt().

%% Requests that begin with calls: the label is a variable of the pattern, or the same for all; what the VM does not keep is refused.
begun() ->
    [begin
         {ok, _} = tracewheel:start("begun.tw", #{patterns => P, seq => Label, on_full => block, force => true}),
         {_, Monitor} = spawn_monitor(fun() -> [order(N, client) || N <- [{7, "a"}, {8, "b"}]] end),
         receive {'DOWN', Monitor, _, _, normal} -> ok end,
         {ok, #{lost := 0}} = tracewheel:stop(),
         false = seq_trace:get_system_tracer(),
         "" = os:cmd(os:getenv("TRACEWHEEL") ++ " print --format erlang begun.tw | grep '^{seq_trace' >begun.term"),
         {ok, Events} = file:consult("begun.term"),
         {P, Label, Wanted} = {P, Label, [{L, element(1, I)} || {seq_trace, L, I} <- Events]}
     end || {P, Label, Wanted} <- [{"tokens:order(Id, _)", "Id", [{{7, "a"}, print}, {{8, "b"}, print}]},
                                   {"tokens:order({N, _}, client) when N > 7 -> return", "N", [{8, print}]},
                                   {{?MODULE, order, 2}, "order", [{order, print}, {order, print}]},
                                   {{?MODULE, order, 2, [{[{'$1', '_'}, '_'], [], [{return_trace}]}]}, 17, [{17, print}, {17, print}]}]],
    Kept = "the VM does not keep such a label of seq_trace: it is an atom, an integer, self() or a variable of the arguments",
    [{P, L, {error, Why}} = {P, L, tracewheel:start("none.tw", #{patterns => P, seq => L})}
     || {P, L, Why} <- [{"tokens:order(Id, _)", "{order, Id}", {bad_pattern, "tokens:order(Id, _)", Kept}},
                        {tokens, {order, 1}, {bad_option, seq, {order, 1}}}, {tokens, "1 +", {bad_option, seq, "1 +"}},
                        {[], "order", {bad_option, seq, without_patterns}}]],
    Spec = {?MODULE, order, 2, [{'_', [], [{set_seq_token, label, {const, {a, 1}}}]}]},
    {error, {bad_pattern, Spec, Kept}} = tracewheel:start("none.tw", #{patterns => Spec}).

%% A request that OpenTelemetry brought goes on as a token to a server, which gives it back to OpenTelemetry.  otel.term: the spans.
otel() ->
    seq_trace:reset_trace(),
    Trace = 16#0af7651916cd43dd8448eb211c80319c,
    Parent = 16#b7ad6b7169203331,
    {error, no_span} = tracewheel:seq_from_otel(),
    {error, no_token} = tracewheel:seq_to_otel(),
    otel_tracer:set_current_span(otel_tracer:from_remote_span(0, 0, 1)),
    {error, no_span} = tracewheel:seq_from_otel(),
    [] = seq_trace:get_token(),
    {ok, _} = tracewheel:start("otel.tw", #{seq_trace => true, on_full => block}),
    otel_tracer:set_current_span(otel_tracer:from_remote_span(Trace, Parent, 1)),
    seq_trace:set_token(label, mine),
    {ok, {_, mine, _, _, _} = Before} = tracewheel:seq_from_otel(),
    {7, <<Trace:128>>, _, _, _} = seq_trace:get_token(),
    {Trace, Span, 1} = ask(),
    %% Those that are not sampled pass on, and make no events.
    otel_tracer:set_current_span(otel_tracer:from_remote_span(Trace + 1, Parent, 0)),
    {ok, _} = tracewheel:seq_from_otel(),
    {0, <<Next:128>>, _, _, _} = seq_trace:get_token(),
    {Next, _, 0} = ask(),
    Next = Trace + 1,
    %% A label of our own has the trace-id that views show; the context before is back afterwards, with its tracestate.
    seq_trace:set_token([]),
    [seq_trace:set_token(K, V) || {K, V} <- [{label, {order, self()}}, {send, true}, {print, true}]],
    Context = get('$__current_otel_ctx'),
    {ok, Context} = tracewheel:seq_to_otel(),
    {span_ctx, Own, _, 1, {tracestate, []}, true, true, false, undefined} = otel_tracer:current_span_ctx(),
    otel_tracer:detach(Context),
    seq_trace:set_token(Before),
    mine = element(2, seq_trace:get_token()),
    seq_trace:set_token([]),
    {ok, #{lost := 0}} = tracewheel:stop(),
    ok = file:write_file("otel.ids", io_lib:format("~16.16.0b ~16.16.0b ~32.16.0b~n", [Parent, Span, Own])),
    %% Without the application, the record is made here.
    code:purge(otel_tracer), code:delete(otel_tracer), code:del_path("."),
    seq_trace:set_token(label, <<Trace:128>>),
    {ok, Context} = tracewheel:seq_to_otel(),
    #{{otel_tracer, span_ctx} := {span_ctx, Trace, _, 0, _, true, true, false, undefined}} = get('$__current_otel_ctx'),
    seq_trace:set_token([]).

ask() ->
    Self = self(),
    Server = spawn(fun() -> receive ask -> ok end, Old = tracewheel:seq_to_otel(), {ok, undefined} = Old,
                            {span_ctx, T, S, F, _, true, true, false, _} = otel_tracer:current_span_ctx(), Self ! {self(), {T, S, F}} end),
    Server ! ask,
    receive {Server, Span} -> Span end.

order(_, _) -> seq_trace:print(ordered).

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
