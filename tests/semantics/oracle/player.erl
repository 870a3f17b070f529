%% SPDX-License-Identifier: Apache-2.0
%% player.erl - plays scenarios on a real Erlang system: the answers in *.term were recorded by it on OTP 25.
%%
%%      erlc *.erl
%%      erl -noshell -run player record plays.term [NAME...]   prints each line with the answer of this system
%%      erl -noshell -run player check *.term                  are the answers in them those of this system?
%%      erl -noshell -run player captured MODULE *.term        are they those of a capture? captured.erl
%%
%% OTP 25 has one session for all: erlang:trace/3, trace_pattern/3, trace_info/2.  A scenario of several sessions is played once for
%% each of them, with the settings and queries of that session alone: each must see what it would see if it were alone.  A line
%% {Name,Steps,Answer,Why} is about something that this system does not have, or does otherwise.  Scenarios say what they do in the
%% words of ../play.c.  In answers processes have names, times are kinds, and this module is `outside`.
-module(player).
-compile(export_all).
-compile(nowarn_export_all).

record(Arguments) ->
    erlang:system_info(otp_release) =:= "25" orelse halt(77),
    {Lines, Names} = begin_with(Arguments),
    [io:format("~0p.~n", [setelement(3, L, play(element(2, L)))]) || L <- Lines, Names =:= [] orelse lists:member(element(1, L), Names)],
    halt(0).

check(Files) ->
    erlang:system_info(otp_release) =:= "25" orelse halt(77),
    {Lines, []} = begin_with(Files),
    compare([{N, Answer, play(Steps)} || {N, Steps, Answer} <- Lines]).

captured([Module | Files]) ->
    erlang:system_info(otp_release) =:= "25" orelse halt(77),
    {Lines, []} = begin_with(Files),
    {Played, Left} = lists:partition(fun(L) -> captured:why_not(L) =:= none end, [L || L <- Lines, tuple_size(L) =:= 3]),
    [io:format("not played: ~p: ~ts~n", [element(1, L), captured:why_not(L)]) || L <- Left],
    captured:start(list_to_atom(Module)),
    Answers = [{N, Answer, play(Steps)} || {N, Steps, Answer} <- Played],
    compare([{N, Answer, Now} || {{N, Answer, _}, Now} <- lists:zip(Answers, captured:answers([A || {_, _, A} <- Answers]))]).

compare(Answers) ->
    Others = [A || {_, Answer, Now} = A <- Answers, Now =/= Answer],
    [io:format("~p:~n  ~0p~nrecorded:~n  ~0p~n", [N, Now, Answer]) || {N, Answer, Now} <- Others],
    io:format("~p plays, ~p answered otherwise~n", [length(Answers), length(Others)]),
    halt(min(1, length(Others))).

begin_with(Arguments) ->
    logger:set_primary_config(level, none), % processes die of undefined functions
    [{module, M} = code:ensure_loaded(M) || M <- [pl, pm, seq_trace]],
    [ets:new(T, [named_table, public]) || T <- [names, pids]],
    {Files, Names} = lists:partition(fun(A) -> filename:extension(A) =:= ".term" end, Arguments),
    {lists:flatmap(fun(F) -> {ok, L} = file:consult(F), L end, Files), [list_to_atom(N) || N <- Names]}.

%% Each answer has the number of its step: the same for each session.
play(Steps) ->
    Answers = lists:usort(lists:append([play_alone(Steps, S) || S <- [s | sessions(Steps)]])),
    [A || {_, A} <- Answers].

sessions({session, S, _}) -> [S];
sessions(T) when is_tuple(T) -> sessions(tuple_to_list(T));
sessions([H | T]) -> sessions(H) ++ sessions(T);
sessions(_) -> [].

play_alone(Steps, Session) ->
    Me = self(),
    {P, M} = spawn_monitor(fun() -> Me ! {played, self(), scenario(Steps, Session)} end),
    Answers = receive
                  {played, P, R} -> erlang:demonitor(M, [flush]), R;
                  {'DOWN', M, _, _, Why} -> [{0, {died, Why}}]
              after 40000 -> exit(P, kill), [{0, timeout}] end,
    clean(),
    Answers.

clean() ->
    forget(),
    erlang:system_flag(trace_control_word, 0),
    seq_trace:reset_trace(),
    seq_trace:set_system_tracer(false),
    [exit(P, kill) || {_, P} <- ets:tab2list(names)],
    [catch unregister(N) || N <- [n1, n2, n3]],
    [ets:delete_all_objects(T) || T <- [names | [pids || not captured:is_on()]]],
    captured:mark().

%% All that a session has set.
forget() ->
    [erlang:trace(Who, false, [all]) || Who <- [all, new]],
    erlang:trace(all, false, [cpu_timestamp]),
    [erlang:trace_pattern(F, false, O) || F <- [{pl, '_', '_'}, {pm, '_', '_'}, {lists, seq, '_'}, on_load], O <- [[global], [local, meta, call_count, call_time]]],
    [erlang:trace_pattern(E, true, []) || E <- [send, 'receive']],
    erlang:system_monitor(undefined).

name(N, P) -> ets:insert(names, {N, P}), ets:insert(pids, {P, N}), P.
pid(N) -> ets:lookup_element(names, N, 2).

%% In the process dictionary: which session is played, which one steps are about, its tracer, the number of the step.
scenario(Steps, Session) ->
    process_flag(trap_exit, true),
    [put(K, V) || {K, V} <- [{played, Session}, {session, s}, {number, 0}, {busy, []}, {tracers, []}]],
    name(me, self()),
    session(s, t),
    steps(Steps).

session(S, T) ->
    ets:member(names, T) orelse name(T, spawn(fun() -> collect([]) end)),
    put(tracers, [T | get(tracers)]),
    S =:= get(played) andalso put(tracer, T).

%% The process; and what is given to the system as the tracer.
tracer() -> pid(get(tracer)).
tracer_option(Key) -> list_to_tuple([Key | captured:tracer(tracer())]).

steps(Steps) -> lists:append([numbered(S) || S <- Steps]).

numbered({in, S, Steps}) -> Outer = put(session, S), R = steps(Steps), put(session, Outer), R;
numbered({each, X, Values, Steps}) -> lists:append([steps(with(X, V, Steps)) || V <- Values]);
numbered({times, N, Steps}) -> lists:append([steps(Steps) || _ <- lists:seq(1, N)]);
numbered({results, Steps}) -> put(results, all), R = steps(Steps), erase(results), R;
numbered({last, Step}) -> [{N, lists:last(A)} || {N, A} <- numbered(Step), A =/= []];
numbered({destroy, S}) -> one({destroy}, S);
numbered(Step) -> one(Step, get(session)).

one(Step, S) ->
    N = put(number, get(number) + 1),
    case is_of_session(Step) andalso S =/= get(played) of true -> []; false -> [{N, A} || A <- step(Step)] end.

is_of_session(Step) ->
    lists:member(if is_tuple(Step) -> element(1, Step); true -> Step end,
                 [process, function, send_pattern, recv_pattern, info, all_info, ev, ev_now, tags, count, seq_ev, system_tracer,
                  only, alternating, monitored, system_monitor, delivered, everybody, destroy]).

with(X, V, X) -> V;
with(X, V, [H | T]) -> [with(X, V, H) | with(X, V, T)];
with(X, V, T) when is_tuple(T) -> list_to_tuple(with(X, V, tuple_to_list(T)));
with(_, _, O) -> O.

collect(L) ->
    receive
        {get, P} -> P ! {events, self(), lists:reverse(L)}, collect([]);
        {run, P, Ops} -> R = (catch ops(Ops, ok)), P ! {ran, self(), R}, collect(L);
        M -> collect([M | L])
    end.

%% ---- processes ----

loop() -> receive {run, P, Ops} -> R = (catch ops(Ops, ok)), seq_trace:set_token([]), P ! {ran, self(), R}, loop(); stop -> ok end.

ops([], R) -> R;
ops([O | T], _) -> ops(T, op(O)).

%% Not the last thing that it does: then the call would return to somewhere else.
op({x, e, T, O}) -> R = pm:e(T, O), do(none), R;
op({times, N, O}) -> [op(O) || _ <- lists:seq(1, N)], ok;
op({t, {x, a, T, O}}) -> try pl:a(T, O) catch _:_ -> caught end;
op({t, {x, b, T, O}}) -> try pl:b(T, O) catch _:_ -> caught end;
op({t, {x, c, T, O}}) -> try pl:c(T, O) catch _:_ -> caught end;
op({t, O}) -> try do(O) catch _:_ -> caught end;
op({x, a, T, O}) -> R = pl:a(T, O), do(none), R;
op({x, b, T, O}) -> R = pl:b(T, O), do(none), R;
op({x, c, T, O}) -> R = pl:c(T, O), do(none), R;
op(O) -> do(O).

do(none) -> ok;
do({times, N, O}) -> [op(O) || _ <- lists:seq(1, N)], ok;
do({send, To, M}) -> (catch To ! M), ok;
do({recv, M}) -> receive M -> ok end;
do({recv, M, Ms}) -> receive M -> ok after Ms -> timeout end;
do({spawn, N}) -> name(N, spawn(?MODULE, loop, []));
do({spawn_link, N}) -> name(N, spawn_link(?MODULE, loop, []));
do({link, P}) -> link(P);
do({unlink, P}) -> unlink(P);
do({register, N, P}) -> (catch register(N, P)), ok;
do({unregister, N}) -> (catch unregister(N)), ok;
do({exit, P, R}) -> exit(P, R);
do({die, error, R}) -> error(R);
do({die, exit, R}) -> exit(R);
do({die, throw, R}) -> throw(R);
do({trap, B}) -> process_flag(trap_exit, B);
do({sensitive, B}) -> process_flag(sensitive, B);
do({monitor, P}) -> erlang:monitor(process, P), ok;
do(gc) -> erlang:garbage_collect();
do(reload) -> code:purge(pm), code:delete(pm), code:purge(pm), {module, pm} = code:load_file(pm), ok;
do({spawn_undef, N}) -> name(N, spawn(nomod, nofun, []));
do({grow, N}) -> _ = length(grow(N, [])), erlang:garbage_collect(), ok;
do({max_heap, Words}) -> process_flag(max_heap_size, #{size => Words, kill => true, error_logger => false}), ok;
do({sleep, Ms}) -> receive after Ms -> ok end;
do({set_token, C, V}) -> try seq_trace:set_token(C, V) catch error:_ -> badarg end;
do({set_token, T}) -> try seq_trace:set_token(T) catch error:_ -> badarg end;
do({set_tokens, L}) -> [seq_trace:set_token(F, true) || F <- L], ok;
do({get_token}) -> seq_trace:get_token();
do({get_token, C}) -> try case seq_trace:get_token(C) of {_, {badarg, _}} -> badarg; V -> V end catch error:_ -> badarg end;
do({seq_print, L, I}) -> seq_trace:print(L, I);
do({seq_print, I}) -> seq_trace:print(I);
do({reset_trace}) -> seq_trace:reset_trace();
do({all, Ops}) -> list_to_tuple([op(O) || O <- Ops]).

grow(0, L) -> L;
grow(N, L) -> grow(N - 1, [N | L]).

run(P, Ops) -> P ! {run, self(), Ops}, await(P).
await(P) -> receive {ran, P, R} -> R after 3000 -> no_answer end.

%% '@p' is the pid of p.
with_pids(A) when is_atom(A) -> case atom_to_list(A) of [$@ | N] -> pid(list_to_atom(N)); _ -> A end;
with_pids([H | T]) -> [with_pids(H) | with_pids(T)];
with_pids(T) when is_tuple(T) -> list_to_tuple(with_pids(tuple_to_list(T)));
with_pids(X) -> X.

%% ---- what the tester does; module_info/0,1 are not counted ----

step(alone) -> [];
step({session, S, T}) -> session(S, T), [];
step({destroy}) -> First = put(destroyed, true) =:= undefined, forget(), [First];
step({tracee, N}) -> name(N, spawn(?MODULE, loop, [])), [];
step({process, Who, How, Flags}) ->
    R = set_flags(Who, How, Flags),
    result(case lists:member(Who, [existing, all]) andalso is_integer(R) andalso R > 0 of true -> 1; false -> R end);
step({function, MFA, Spec, Options}) ->
    R = answer(fun() -> erlang:trace_pattern(MFA, with_pids(Spec), options(Spec, Options)) end),
    result(case MFA of {pl, '_', '_'} when is_integer(R) -> R - 2; _ -> R end);
step({send_pattern, Spec}) -> result(answer(fun() -> erlang:trace_pattern(send, with_pids(Spec), []) end));
step({recv_pattern, Spec}) -> result(answer(fun() -> erlang:trace_pattern('receive', with_pids(Spec), []) end));
step({run, P, Ops}) -> run(pid(P), with_pids(Ops)), [];
step({value, P, Ops}) -> [{value, plain(run(pid(P), with_pids(Ops)))}];
step({start, P, Ops}) -> put(busy, [P | get(busy)]), pid(P) ! {run, self(), with_pids(Ops)}, [];
step({await, P}) -> put(busy, get(busy) -- [P]), [{value, plain(await(pid(P)))}];
step({tell, P, M}) -> pid(P) ! with_pids(M), [];
step({do, Op}) -> do(with_pids(Op)), [];
step({kill, P}) -> exit(pid(P), kill), gone(pid(P));
step({gone, P}) -> gone(pid(P));
step({wait, Ms}) -> timer:sleep(Ms), [];
step({info, What, Item}) -> [info(with_pids(What), Item)];
step({tcw, N}) -> erlang:system_flag(trace_control_word, N), [];
step(get_tcw) -> [{tcw, erlang:system_info(trace_control_word)}];
step(all_info) -> [[[info({pl, F, 2}, I) || I <- [traced, match_spec, meta, meta_match_spec, call_count]] || F <- [a, b, c]]];
step({system_tracer, B}) ->
    seq_trace:set_system_tracer(B andalso case captured:tracer(tracer()) of [T] -> T; [Module, State] -> {Module, State} end), [];
step(seq_ev) -> sync(), [taken(fun(L) -> lists:sort([plain(E) || E <- L, element(1, E) =:= seq_trace]) end)];
step(ev) -> sync(), [events(fun(L) -> L end)];
step(ev_now) -> [events(fun(L) -> L end)];
step({system_monitor, Event, Value}) -> result(set_monitor(Event, Value));
step({monitored, P}) -> all_delivered(), [[{E, keys(V)} || {monitor, Q, E, V} <- plain_events(messages(tracer())), Q =:= P]];
step({only, Tag}) -> [events(fun(L) -> [E || E <- L, element(3, E) =:= Tag] end)];
step({alternating, N}) -> [events(fun(L) -> {alternating, alternating([element(3, E) || E <- L], N)} end)];
step(count) -> [events(fun(L) -> {count, length(L)} end)];
step({delivered, Who}) -> [answer(fun() -> delivered(with_pids(Who)) end)];
step({everybody, Who, How, Flags}) -> [{everybody, everybody(Who, How, Flags)}];
step(tags) -> [events(fun(L) -> [element(3, E) || E <- L] end)].

sync() -> [run(P, []) || {N, P} <- ets:tab2list(names), not lists:member(N, [me | get(tracers) ++ get(busy)]), is_process_alive(P)].

%% 1 is what is expected: told only inside {results,Steps}.
result(1) -> [1 || get(results) =:= all];
result(R) -> [R].

options(Spec, [meta | T]) when Spec =/= false -> [tracer_option(meta) | options(Spec, T)];
options(Spec, [H | T]) -> [H | options(Spec, T)];
options(_, O) -> O.

set_flags(Who, How, Flags) ->
    W = case Who of existing -> existing_processes; new -> new_processes; all -> everybody(Flags); _ -> with_pids(Who) end,
    answer(fun() -> erlang:trace(W, How, [tracer_option(tracer) || How] ++ Flags) end).

%% Others come and go meanwhile: the count of a moment in which they did not.
everybody(Who, How, Flags) ->
    Before = length(processes()),
    R = set_flags(Who, How, Flags),
    case length(processes()) of Before -> R =:= Before; _ -> everybody(Who, How, Flags) end.

%% Each call sets all that is monitored.
set_monitor(Event, Value) ->
    Others = lists:keydelete(Event, 1, case get(monitors) of undefined -> []; L -> L end),
    All = [{Event, Value} || Value =/= false] ++ Others,
    R = answer(fun() -> erlang:system_monitor(tracer(), [case V of true -> E; _ -> {E, V} end || {E, V} <- All]), 1 end),
    R =:= 1 andalso put(monitors, All),
    R.

keys([{_, _} | _] = L) -> lists:sort([K || {K, _} <- L]);
keys(V) -> V.

alternating([in, out | T], N) -> alternating([out | T], N - 1);
alternating([out, in | T], N) -> alternating([in | T], N - 1);
alternating([Last], N) -> N =< 1 andalso lists:member(Last, [in, out]);
alternating(_, _) -> false.

delivered(Who) ->
    Ref = erlang:trace_delivered(Who),
    receive {trace_delivered, W, Ref} -> ok end,
    taken(fun(L) -> {delivered, plain(W), length(L)} end).

%% Ports as well where it cannot be otherwise.
everybody(Flags) -> case lists:member(cpu_timestamp, Flags) of true -> all; false -> processes end.

answer(F) -> try F() catch error:badarg -> {error, badarg} end.

gone(P) -> case is_process_alive(P) of true -> timer:sleep(1), gone(P); false -> timer:sleep(5), [] end.

%% What Fun makes of the events since the last time.
events(Fun) ->
    all_delivered(),
    %% A tracer that is dead has nothing.
    case is_process_alive(tracer()) of
        true -> taken(fun(L) -> Fun(plain_events(L)) end);
        false -> Fun([])
    end.

all_delivered() ->
    Ref = erlang:trace_delivered(all),
    receive {trace_delivered, all, Ref} -> ok end.

plain_events(L) -> lists:keysort(2, [plain(E) || E <- L, not is_run(E)]).

%% A capture is read at its end: until then the answer is a fun.
taken(Fun) ->
    L = messages(tracer()),
    case captured:is_on() of
        true -> {later, captured:mark(L), Fun};
        false -> Fun(L)
    end.

messages(T) -> T ! {get, self()}, receive {events, T, L} -> L end.

is_run(E) when tuple_size(E) >= 4, element(3, E) =:= 'receive'; tuple_size(E) >= 4, element(3, E) =:= send ->
    is_tuple(element(4, E)) andalso lists:member(element(1, element(4, E)), [run, ran, get]);
is_run(_) -> false.

info(system, all) -> {all, case erlang:system_monitor() of {_, L} -> L; undefined -> [] end};
info(What, Item) ->
    case answer(fun() -> erlang:trace_info(What, Item) end) of
        {flags, L} when is_list(L) -> {flags, lists:sort(L)};
        {call_time, L} when is_list(L) -> {call_time, lists:sort([{plain(P), N} || {P, N, _, _} <- L])};
        {meta, []} -> case erlang:trace_info(What, meta_match_spec) of {_, false} -> {meta, false}; _ -> {meta, []} end; % not set, as of OTP 29
        {error, R} -> R;
        X -> plain(X)
    end.

plain({Module, {State, T}}) when Module =:= both, is_reference(State) -> plain(T);
plain({tracewheel_tracer, State}) when is_reference(State) -> get(tracer);
plain(P) when is_pid(P) -> case ets:lookup(pids, P) of [{_, N}] -> N; [] -> a_pid end;
plain(T) when element(1, T) =:= trace_ts ->
    [Time | Rest] = lists:reverse(tuple_to_list(T)),
    list_to_tuple([plain(X) || X <- lists:reverse(Rest)] ++ [kind(Time)]);
plain({trace, P, Tag, Sizes}) when Tag =:= gc_major_start; Tag =:= gc_major_end; Tag =:= gc_minor_start; Tag =:= gc_minor_end;
                                 Tag =:= gc_max_heap_size ->
    {trace, plain(P), Tag, lists:sort([K || {K, _} <- Sizes])};
plain({seq_trace, L, I, Time}) -> {seq_trace, plain(L), plain(I), kind(Time)};
plain({player, _, _}) -> outside;
%% What else these hold differs between systems.
plain(T) when element(1, T) =:= spawn_request -> spawn_request;
plain({spawn_reply, _, ok, P}) -> {spawn_reply, ok, plain(P)};
plain({M, F, [Tag, _]}) when M =:= pl; M =:= pm -> {M, F, [plain(Tag)]};
plain({pl, F, A, _}) when is_integer(A) -> {pl, F, A}; % without the line
plain(T) when is_tuple(T) -> list_to_tuple([plain(X) || X <- tuple_to_list(T)]);
plain([H | T]) -> [plain(H) | plain(T)];
plain(R) when is_reference(R) -> ref;
plain(B) when byte_size(B) > 40 -> long_binary;
plain(X) -> X.

kind({Mega, _, _}) when Mega < 1000 -> cpu_ts; % by day it is more since 2001
kind({_, _, _}) -> ts;
kind({_, _}) -> strict_mono;
kind(_) -> mono.
