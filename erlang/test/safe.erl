%% SPDX-License-Identifier: Apache-2.0
%% safe:main() - limits end a trace, also for its owner's death; wrong requests are refused; and the node works on after each.
-module(safe).
-export([main/0, loop/1, step/1, bad_version/0]).

main() ->
    process_flag(trap_exit, true),
    [begin ok = check(Name, Fun), ok = is_clean(Name) end || {Name, Fun} <- cases()],
    io:format("ok~n"),
    halt().

check(Name, Fun) ->
    try Fun() of
        _ -> io:format("~p~n", [Name])
    catch
        Class:Reason:Stack ->
            io:format("FAILED ~p: ~p ~p~n~p~n", [Name, Class, Reason, Stack]),
            halt(1)
    end.

%% Nothing is left of a trace.
is_clean(Name) ->
    {error, not_started} = tracewheel:info(),
    {flags, F} = erlang:trace_info(new, flags),
    {traced, T} = erlang:trace_info({?MODULE, step, 1}, traced),
    {[], false} =:= {F, T} orelse error({Name, F, T}),
    ok.

cases() ->
    [{limit_of_events, fun limit_of_events/0},
     {limit_of_rate, fun limit_of_rate/0},
     {limit_of_time, fun limit_of_time/0},
     {owner_dies, fun owner_dies/0},
     {stop_from_anywhere, fun stop_from_anywhere/0},
     {not_started, fun not_started/0},
     {started_twice, fun started_twice/0},
     {bad_paths, fun bad_paths/0},
     {bad_memory, fun bad_memory/0},
     {bad_requests, fun bad_requests/0},
     {bad_processes, fun bad_processes/0},
     {already_traced, fun already_traced/0},
     {no_recorder, fun no_recorder/0},
     {good_patterns, fun good_patterns/0},
     {elixir_patterns, fun elixir_patterns/0},
     {stamps, fun stamps/0},
     {works_after_all, fun works/0}].

step(N) -> N.
loop(0) -> ok;
loop(N) -> step(N), loop(N - 1).

start(Options) -> tracewheel:start("safe.tw", Options#{force => true, patterns => [{?MODULE, step, 1}]}).

%% Runs until the trace has ended by itself; its events.
until_end(Options) ->
    {ok, #{state := tracing}} = start(Options#{processes => self()}),
    run_until(fun() -> tracewheel:info() =:= {error, not_started} end),
    {flags, []} = erlang:trace_info(self(), flags),
    events("safe.tw").

run_until(Is) ->
    loop(2000),
    Is() orelse run_until(Is).

events(Path) ->
    length([x || $\n <- os:cmd(os:getenv("TRACEWHEEL") ++ " print --format erlang " ++ Path ++ " | grep call")]).

limit_of_events() ->
    Events = until_end(#{events => 5000, rate => infinity, time => infinity}),
    true = Events =< 5000 andalso Events > 4900.

limit_of_rate() ->
    Events = until_end(#{events => infinity, rate => 3000, time => infinity}),
    true = Events =< 3000 andalso Events > 0,
    %% Of several schedulers, none takes so much that few events of all look like many.
    {ok, _} = start(#{rate => 100}),
    [begin
         {Pid, Monitor} = spawn_opt(fun() -> loop(20) end, [monitor, {scheduler, S}]),
         receive {'DOWN', Monitor, _, Pid, normal} -> ok end
     end || S <- [1, 2]],
    {ok, #{events := 40}} = tracewheel:stop().

limit_of_time() ->
    T0 = erlang:monotonic_time(millisecond),
    {ok, _} = start(#{processes => self(), time => 300}),
    loop(10),
    await_end(300),
    true = erlang:monotonic_time(millisecond) - T0 >= 300,
    loop(10),
    true = events("safe.tw") =< 10.

await_end(0) -> error(not_ended);
await_end(N) ->
    timer:sleep(100),
    tracewheel:info() =:= {error, not_started} orelse await_end(N - 1).

owner_dies() ->
    {Pid, Monitor} = spawn_monitor(fun() -> {ok, _} = start(#{}), loop(7) end),
    receive {'DOWN', Monitor, _, Pid, normal} -> ok end,
    await_end(300),
    7 = events("safe.tw").

stop_from_anywhere() ->
    {ok, _} = start(#{}),
    loop(3),
    Self = self(),
    spawn(fun() -> Self ! {stopped, tracewheel:stop()} end),
    receive {stopped, {ok, #{events := 3, lost := 0, state := stopped}}} -> ok end.

not_started() ->
    {error, not_started} = tracewheel:stop(),
    {error, not_started} = tracewheel:info(),
    {error, not_started} = tracewheel:tracer(),
    {error, not_started} = tracewheel:stop(nobody),
    {error, not_started} = tracewheel:stop(kernel_sup),
    {error, {bad_name, "x"}} = tracewheel:stop("x").

started_twice() ->
    {ok, _} = start(#{}),
    {error, {already_started, tracewheel}} = tracewheel:start("other.tw", #{}),
    {ok, _} = tracewheel:stop().

bad_paths() ->
    Missing = filename:absname("missing/x.tw"),
    {error, {enoent, Missing, _}} = tracewheel:start("missing/x.tw"),
    {error, {enoent, "/dev/null/x.tw", _}} = tracewheel:start("/dev/null/x.tw"),
    {error, {eacces, "/sys/x.tw", _}} = tracewheel:start("/sys/x.tw"),
    Long = "/tmp/" ++ lists:duplicate(5000, $x),
    {error, {bad_path, Long}} = tracewheel:start(Long),
    {error, {bad_path, [$x, 0]}} = tracewheel:start([$x, 0]),
    ok = file:make_dir("folder"),
    ok = file:write_file("folder/precious", "x"),
    {error, {eexist, _, _}} = tracewheel:start("folder", #{force => true}),
    {ok, _} = file:read_file("folder/precious"),
    {error, {eexist, _, <<"it exists; force => true replaces it">>}} = tracewheel:start("safe.tw"),
    {error, {bad_path, {x}}} = tracewheel:start({x}),
    {error, {bad_path, ""}} = tracewheel:start("").

bad_memory() ->
    true = os:putenv("TRACEWHEEL_SHM", "/proc/1/nowhere"),
    {error, {_, _, _}} = start(#{}),
    true = os:unsetenv("TRACEWHEEL_SHM"),
    {error, {bad_option, memory, 65536}} = start(#{ring_bytes => 1048576, memory => 65536}),
    {error, {bad_option, ring_bytes, 100000}} = start(#{ring_bytes => 100000}).

bad_requests() ->
    Bad = fun(Options) -> {error, Reason} = tracewheel:start("bad.tw", Options), Reason end,
    {unknown_option, speed} = Bad(#{speed => 1}),
    {bad_options, speed} = Bad(speed),
    {bad_options, [speed]} = Bad([speed]),
    {bad_option, events, 0} = Bad(#{events => 0}),
    {bad_option, rate, fast} = Bad(#{rate => fast}),
    {bad_option, time, _} = Bad(#{time => 1 bsl 80}),
    {bad_option, memory, _} = Bad(#{memory => 1 bsl 80}),
    {bad_option, name, kernel_sup} = Bad(#{name => kernel_sup}),
    {bad_option, on_full, wait} = Bad([{on_full, wait}]),
    {bad_flag, calls} = Bad(#{flags => [calls]}),
    [{bad_pattern, P, _} = Bad(#{patterns => [P]})
     || P <- ["lists:seq/2 -> returns", "lists:", "lists:seq/x", "Lists.seq:all/2", "Lists.", "lists:seq//2", <<255>>, "lists:seq(A when A > 1", "lists:seq(A) when foo(A)",
              {lists, seq}, {lists, "seq", 2}, {lists, seq, 256}, {lists, seq, -1}, {'_', seq, 2}, {lists, seq, 2, [nonsense]},
              {lists, seq, 2, [{['$1'], [{hd}], []}]}, {lists, seq, fun(_) -> ok end}, {17}, "", [x]]],
    {cannot_trace, {no_such_function, {lists, no_such, 1}}} = Bad(#{patterns => ["lists:no_such/1"]}),
    {cannot_trace, {no_such_function, {'Elixir.Lists', seq, 2}}} = Bad(#{patterns => ["Lists:seq/2"]}),
    {cannot_trace, {no_such_function, {no_module, '_', '_'}}} = Bad(#{patterns => [no_module]}),
    [false, false] = [filelib:is_dir(F) || F <- ["bad.tw", "bad.tw.old"]].

bad_processes() ->
    Dead = spawn(fun() -> ok end),
    run_until(fun() -> not is_process_alive(Dead) end),
    {error, {cannot_trace, {Dead, noproc}}} = start(#{processes => Dead}),
    {error, {no_process, nobody}} = start(#{processes => nobody}),
    {error, {cannot_trace, {_, badarg}}} = start(#{processes => self(), flags => [call, cpu_timestamp]}),
    {error, {bad_process, {x}}} = start(#{processes => [{x}]}).

already_traced() ->
    Pid = spawn(fun() -> receive stop -> ok end end),
    erlang:trace(Pid, true, [procs]),
    case code:ensure_loaded(trace) of
        {module, trace} -> {ok, _} = start(#{processes => Pid}), {ok, _} = tracewheel:stop();
        _ -> {error, {cannot_trace, {Pid, already_traced}}} = start(#{processes => Pid})
    end,
    {flags, [procs]} = erlang:trace_info(Pid, flags),
    erlang:trace(Pid, false, [procs]),
    Pid ! stop.

no_recorder() ->
    {error, {no_recorder, _}} = start(#{recorder => "/nowhere/tracewheel"}),
    {error, {no_recorder, {exit_status, _}}} = start(#{recorder => "/bin/false"}).

good_patterns() ->
    Fun = erl_eval:expr(hd(element(2, erl_parse:parse_exprs(element(2, erl_scan:string("fun([A]) when A > 7 -> return_trace() end."))))), []),
    [begin
         {ok, #{functions := F}} = tracewheel:start("safe.tw", #{force => true, patterns => P, processes => self()}),
         true = F >= 1,
         loop(8),
         {ok, #{events := E}} = tracewheel:stop(),
         {P, E} = {P, Wanted}
     end || {P, Wanted} <- [{"safe:step/1", 8}, {<<"safe:step">>, 8}, {["safe:step/1 -> return"], 16}, {"safe:step(N) when N > 6 -> return", 4},
                            {"safe:step(_)", 8}, {{?MODULE, step, 1}, 8}, {{?MODULE, step, '_'}, 8},
                            {[{?MODULE, step, 1, [{[3], [], [{return_trace}]}]}], 2}, {[{?MODULE, step, element(2, Fun)}], 2},
                            {["lists:seq/2", "safe:step/1 -> caller"], 8}]].

%% Names as Elixir writes them, and as views show them.
elixir_patterns() ->
    Function = fun(Name, Arguments) -> {function, 1, Name, length(Arguments), [{clause, 1, Arguments, [], [{atom, 1, true}]}]} end,
    {ok, M, Binary} = compile:forms([{attribute, 1, module, 'Elixir.Safe.Cart'}, {attribute, 1, export, [{add, 2}, {'full?', 1}]},
                                     Function(add, [{var, 1, '_'}, {var, 1, '_'}]), Function('full?', [{var, 1, '_'}])]),
    {module, M} = code:load_binary(M, "cart", Binary),
    [begin
         {ok, _} = tracewheel:start("safe.tw", #{force => true, patterns => P, processes => self()}),
         M:add(1, 2), M:'full?'(3), M:add(4, 5),
         {ok, #{events := E}} = tracewheel:stop(),
         {P, E} = {P, Wanted}
     end || {P, Wanted} <- [{"Safe.Cart", 3}, {"Safe.Cart:_", 3}, {"Safe.Cart._", 3}, {"Safe.Cart:add/2", 2}, {"Safe.Cart.add", 2},
                            {<<"Safe.Cart.add/2 -> return">>, 4}, {"Safe.Cart.add(A, _) when A > 1", 1}, {"Elixir.Safe.Cart:full?/1", 1},
                            {"Safe.Cart.full?(_) -> return", 2}, {"'Elixir.Safe.Cart':full?/1", 1}]],
    {match, _} = re:run(os:cmd(os:getenv("TRACEWHEEL") ++ " print safe.tw"), "call Elixir.Safe.Cart:full\\?/1 \\(3\\)").

%% Kinds of time stamps, and their values within the time of the trace.
stamps() ->
    [begin
         T0 = {erlang:monotonic_time(nanosecond) + erlang:time_offset(nanosecond), element(1, erlang:statistics(runtime))},
         %% cpu_timestamp is a flag of all processes.
         {ok, _} = start(#{processes => all, flags => [call | Flags]}),
         loop(3),
         {ok, #{events := 3}} = tracewheel:stop(),
         "" = os:cmd(os:getenv("TRACEWHEEL") ++ " print --format erlang safe.tw | grep -v own_time >stamps.term"),
         {ok, [A, B, C]} = file:consult("stamps.term"),
         Is(A, B, C, T0) orelse error({Flags, A, B, C})
     end || {Flags, Is} <-
                [{[], fun({trace, _, call, {safe, step, [3]}}, {trace, _, call, _}, {trace, _, call, _}, _) -> true end},
                 {[monotonic_timestamp], fun(A, B, C, _) -> 5 =:= tuple_size(A) andalso element(5, A) =< element(5, B)
                                                             andalso element(5, B) =< element(5, C) end},
                 {[strict_monotonic_timestamp], fun(A, B, C, _) -> {_, 1} = element(5, A), {_, 2} = element(5, B), {_, 3} = element(5, C), true end},
                 {[timestamp], fun(A, _, _, {Ns, _}) -> {M, S, U} = element(5, A), abs((M * 1000000 + S) * 1000000 + U - Ns div 1000) < 600000000 end},
                 {[timestamp, cpu_timestamp], fun(A, _, _, {_, Ms}) -> {0, S, U} = element(5, A), S * 1000000 + U >= Ms * 1000 end}],
                not (lists:member(cpu_timestamp, Flags) andalso code:ensure_loaded(trace) =:= {module, trace})]. % sessions have no such flag

works() ->
    Name = list_to_atom(lists:duplicate(255, 8364)),
    {ok, _} = start(#{name => Name}),
    loop(100),
    {ok, #{events := 100, lost := 0, complete := 1}} = tracewheel:stop(Name),
    {match, _} = re:run(os:cmd(os:getenv("TRACEWHEEL") ++ " print safe.tw"), "call safe:step/1 \\(100\\)").

%% A library of another version.
bad_version() ->
    {error, {nif_not_loaded, Path, _}} = tracewheel:start("version.tw"),
    "tracewheel_tracer.so" = filename:basename(Path),
    {error, {nif_not_loaded, _, _}} = tracewheel:start("version.tw"),
    false = filelib:is_dir("version.tw"),
    io:format("ok~n"),
    halt().
