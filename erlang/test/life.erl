%% SPDX-License-Identifier: Apache-2.0
%% life:main() - captures, libraries and tracees that begin and end in each other's midst.
-module(life).
-export([main/0, layout/0, victim/0, until_full/0, loop/1, step/1, cut/1, forever/1]).

main() ->
    process_flag(trap_exit, true),
    [begin Fun(), {error, not_started} = tracewheel:info(), io:format("~p~n", [Name]) end
     || {Name, Fun} <- [{two_at_once, fun two_at_once/0},
                        {one_name, fun one_name/0},
                        {leaving, fun leaving/0},
                        {upgraded, fun upgraded/0},
                        {unloaded, fun unloaded/0},
                        {reloaded, fun reloaded/0},
                        {other_tracers, fun other_tracers/0},
                        {tracer_removed, fun tracer_removed/0},
                        {nif_unloaded, fun nif_unloaded/0},
                        {removed, fun removed/0},
                        {killed_tracees, fun killed_tracees/0},
                        {killed_in_callback, fun killed_in_callback/0},
                        {killed_server, fun killed_server/0},
                        {killed_recorder, fun killed_recorder/0},
                        {distribution_lost, fun distribution_lost/0},
                        {blocked, fun blocked/0},
                        {kept_state, fun kept_state/0}]],
    io:format("ok~n"),
    halt().

step(N) -> N.
cut(_) -> ok.
loop(0) -> ok;
loop(N) -> step(N), loop(N - 1).
forever(N) -> step(N), forever(N + 1).

start(Path, Options) ->
    {ok, _} = tracewheel:start(Path, maps:merge(#{force => true, patterns => [{?MODULE, step, 1}], events => infinity, rate => infinity},
                                                Options)).

do(N) when is_integer(N) -> loop(N);
do(Fun) -> Fun().

%% A process that runs what it is told.
worker() -> spawn_link(fun Loop() -> receive {From, N} -> do(N), From ! {done, self()}, Loop() end end).
work(Pid, N) -> Pid ! {self(), N}, receive {done, Pid} -> ok end.

two_at_once() ->
    A = worker(), B = worker(),
    start("a.tw", #{name => a, processes => A}),
    start("b.tw", #{name => b, processes => B}),
    work(A, 100), work(B, 200),
    {ok, #{events := 100, lost := 0}} = tracewheel:stop(a),
    work(A, 100),
    {error, not_started} = tracewheel:stop(a),
    %% Before OTP 27 patterns are the node's: a's end was theirs, and b has set its own again.
    has_sessions() orelse await_set_again(b, 1),
    work(B, 200),
    {ok, #{events := 400, lost := 0}} = tracewheel:stop(b).

%% Shells that start at once: each is told that another has the name, or why its own start ends.
one_name() ->
    Shells = [spawn_monitor(fun() -> [one_start() || _ <- lists:seq(1, rounds:choose(500, 3000))] end) || _ <- lists:seq(1, 4)],
    [receive {'DOWN', Monitor, _, _, Reason} -> normal = Reason end || {_, Monitor} <- Shells].

one_start() ->
    case tracewheel:start("none.tw", #{name => one, recorder => "/nowhere"}) of
        {error, {no_recorder, _}} -> ok;
        {error, {already_started, one}} -> ok
    end.

%% A start that has just found that nothing leaves.
leaving() ->
    {ok, Options} = tracewheel_options:check("leaving.tw", #{force => true}),
    register(tracewheel_unload, self()),
    {error, unloading} = tracewheel:start("leaving.tw"),
    Server = spawn(tracewheel_server, init, [Options#{starter => self()}]),
    receive {Server, Answer} -> {error, unloading} = Answer end,
    unregister(tracewheel_unload),
    start("leaving.tw", #{processes => []}),
    {ok, _} = tracewheel:stop().

%% The libraries are loaded again while processes make events.
upgraded() ->
    A = worker(),
    start("up.tw", #{processes => A}),
    work(A, 10),
    Runner = spawn_link(fun() -> forever(0) end),
    erlang:trace_pattern({?MODULE, step, 1}, true, [local]),
    1 = erlang:trace(Runner, true, [call, tracewheel:tracer()]),
    [begin
         purge(M, 500),
         {module, M} = code:load_file(M),
         timer:sleep(20)
     end || _ <- lists:seq(1, 3), M <- [tracewheel_nif, tracewheel_tracer, tracewheel_server, tracewheel]],
    {ok, #{written := W}} = tracewheel:info(),
    await_more(W, 500),
    unlink(Runner), exit(Runner, kill),
    erlang:trace_pattern({?MODULE, step, 1}, false, [local]),
    {ok, _} = tracewheel:stop().

%% Libraries whose captures lie otherwise in memory, from another path, are loaded while a capture of the first ones runs.
layout() ->
    A = worker(),
    start("layout.tw", #{processes => A}),
    work(A, 10),
    true = code:add_patha(os:getenv("OTHER")),
    [begin
         purge(M, 500),
         {module, M} = code:load_file(M),
         true = filename:dirname(code:which(M)) =:= os:getenv("OTHER")
     end || M <- [tracewheel_options, tracewheel_nif, tracewheel_tracer]], % the first one knows where libraries are
    work(A, 10),
    {ok, #{written := 20, lost := 0, cut_terms := 0, state := tracing}} = tracewheel:info(),
    {ok, #{events := 20, lost := 0}} = tracewheel:stop(),
    start("layout.tw", #{processes => A}),
    work(A, 10),
    {ok, #{events := 10, lost := 0}} = tracewheel:stop(),
    io:format("ok~n"),
    halt().

await_more(_, 0) -> error(no_more_events);
await_more(W, N) ->
    {ok, #{written := Now}} = tracewheel:info(),
    Now > W orelse begin timer:sleep(20), await_more(W, N - 1) end.

purge(M, 0) -> error({used, M});
purge(M, N) -> code:soft_purge(M) orelse begin timer:sleep(20), purge(M, N - 1) end.

%% The tracer module is gone: the VM drops the tracer, and the trace ends instead of going on without events.
unloaded() ->
    A = worker(),
    start("gone.tw", #{processes => A}),
    work(A, 10),
    purge(tracewheel_tracer, 500),
    true = code:delete(tracewheel_tracer),
    code:purge(tracewheel_tracer),
    work(A, 10),
    await_end(600),
    await_complete("gone.tw", 600),
    noted("gone.tw", "the trace ended: its processes have no tracer any more"),
    {module, _} = code:ensure_loaded(tracewheel_tracer),
    start("gone.tw", #{processes => A}),
    work(A, 10),
    {ok, #{events := 10}} = tracewheel:stop().

noted(Path, Text) ->
    Shown = os:cmd(os:getenv("TRACEWHEEL") ++ " info " ++ Path),
    nomatch =/= string:find(Shown, Text) orelse error({no_note, Text, Shown}).

%% A traced module is loaded again, leaves, and returns without one of its functions: the rest is traced all the same.
reloaded() ->
    version("f(X) -> X + 1. g(X) -> X."),
    start("again.tw", #{patterns => ["version:f/1", "version:g(X) when X > 1"]}),
    [version:f(N) || N <- [1, 2, 3]],
    version("f(X) -> X + 2. g(X) -> X."),
    await_set_again(2),
    [version:f(N) || N <- [4, 5, 6]],
    [version:g(N) || N <- [1, 2]],
    {ok, #{written := 7, state := tracing}} = tracewheel:info(),
    code:purge(version),
    true = code:delete(version),
    await_set_again(4),
    version("f(X) -> X + 3."),
    await_set_again(6),
    version:f(7),
    {ok, #{events := 8, lost := 0, set_again := 6}} = tracewheel:stop(),
    noted("again.tw", "version was loaded again, or its patterns removed: version:f/1 is traced again"),
    noted("again.tw", "version:g/1 is traced no more: its module was unloaded, or loaded again without it"),
    %% At the very end, too.
    start("again.tw", #{patterns => ["version:f/1"]}),
    version("f(X) -> X + 4."),
    {ok, #{set_again := 1}} = tracewheel:stop(),
    {traced, false} = erlang:trace_info({version, f, 1}, traced),
    %% A pattern of every module is also one of those that come later.
    A = worker(),
    start("again.tw", #{patterns => [{'_', '_', '_'}], processes => A}),
    version("f(X) -> X + 5."),
    work(A, fun() -> version:f(1) end),
    {ok, _} = tracewheel:stop(),
    "" =/= os:cmd(os:getenv("TRACEWHEEL") ++ " print again.tw | grep version:f"),
    version("f(X) -> X + 6."),
    {traced, false} = erlang:trace_info({version, f, 1}, traced).

version(Functions) ->
    ok = file:write_file("version.erl", ["-module(version). -compile(export_all). -compile(nowarn_export_all). ", Functions]),
    {ok, version, Code} = compile:file("version.erl", [binary]),
    code:purge(version),
    {module, version} = code:load_binary(version, "version.erl", Code).

await_set_again(N) -> await_set_again(tracewheel, N).
await_set_again(Name, N) ->
    {ok, #{set_again := Now}} = tracewheel:info(Name),
    Now >= N orelse begin timer:sleep(5), await_set_again(Name, N) end.

%% Processes that another tracer has are counted, and a second capture does not take them from the first, before OTP 27.
other_tracers() ->
    has_sessions() orelse begin
        [A, B] = [worker(), worker()],
        Tracer = spawn_link(fun() -> receive stop -> ok end end),
        register(some_tracer, Tracer),
        1 = erlang:trace(A, true, [call, {tracer, Tracer}]),
        start("others.tw", #{}),
        [work(P, 10) || P <- [A, B]],
        {ok, #{other_tracer := 1, others := Others, written := 10}} = tracewheel:info(),
        "some_tracer <" ++ _ = Others,
        [{error, {cannot_trace, {Who, {already_traced, "the capture tracewheel"}}}} = tracewheel:start("none.tw", #{name => second, patterns => ["lists:seq/2"],
                                                                                                                   processes => Who})
         || Who <- [all, new, processes]],
        %% What only seems to be left alone.
        {ok, #{other_tracer := N}} = tracewheel:start("second.tw", #{name => second, force => true, flags => [procs], processes => existing}),
        true = N > 10,
        {ok, _} = tracewheel:stop(second),
        {ok, #{other_tracer := 1}} = tracewheel:stop(),
        noted("others.tw", "processes that another tracer had as the trace began: 1 (some_tracer <"),
        noted("others.tw", "processes that another tracer had as it ended: 1 ("),
        noted("others.tw", "nothing, but not everything was traced"),
        erlang:trace(A, false, [all]),
        %% Another tracer has new processes.
        erlang:trace(new_processes, true, [procs, {tracer, Tracer}]),
        {error, {cannot_trace, {all, {already_traced, "some_tracer <" ++ _}}}} = tracewheel:start("none.tw", #{patterns => [{?MODULE, step, 1}]}),
        {tracer, Tracer} = erlang:trace_info(new_processes, tracer),
        erlang:trace(new_processes, false, [all]),
        Tracer ! stop
    end.

has_sessions() -> code:ensure_loaded(trace) =:= {module, trace}.

%% Another ends all traces of the node.
tracer_removed() ->
    has_sessions() orelse
        [begin
             start("none_left.tw", #{processes => P}),
             erlang:trace(all, false, [all]),
             await_end(600),
             await_complete("none_left.tw", 1),
             noted("none_left.tw", "the trace ended: its processes have no tracer any more")
         end || P <- [all, new, worker()]].

%% The module that makes captures is gone: the trace ends, and leaves nothing. What is traced later is not lost for that.
nif_unloaded() ->
    A = worker(),
    start("gone.tw", #{processes => A}),
    work(A, 10),
    Monitor = monitor(process, tracewheel),
    purge(tracewheel_nif, 500),
    true = code:delete(tracewheel_nif),
    code:purge(tracewheel_nif),
    receive {'DOWN', Monitor, _, _, unloaded} -> ok end,
    {traced, false} = erlang:trace_info({?MODULE, step, 1}, traced),
    {flags, []} = erlang:trace_info(A, flags),
    await_complete("gone.tw", 600),
    start("free.tw", #{processes => A}),
    work(A, 10),
    {ok, #{events := 10, lost := 0}} = tracewheel:stop().

removed() ->
    A = worker(),
    start("removed.tw", #{processes => []}),
    {tracer, M, S} = tracewheel:tracer(),
    erlang:trace_pattern({?MODULE, step, 1}, true, [local]),
    1 = erlang:trace(A, true, [call, {tracer, M, S}]),
    work(A, 10),
    1 = erlang:trace(A, false, [all]),
    work(A, 10),
    1 = erlang:trace(A, true, [call, {tracer, M, S}]),
    work(A, 5),
    {tracer, {M, S}} = erlang:trace_info(A, tracer),
    {ok, #{events := 15, lost := 0}} = tracewheel:stop(),
    work(A, 5),
    {tracer, []} = erlang:trace_info(A, tracer),
    erlang:trace_pattern({?MODULE, step, 1}, false, [local]).

killed_tracees() ->
    start("killed.tw", #{processes => new, flags => [call, procs, send, running, garbage_collection]}),
    [begin
         Pids = [spawn(fun() -> forever(0) end) || _ <- lists:seq(1, 10)],
         timer:sleep(2),
         [exit(P, kill) || P <- Pids]
     end || _ <- lists:seq(1, 20)],
    {ok, #{written := W}} = tracewheel:stop(),
    true = W > 200.

%% Tracees are killed while rings are full and their recorder stands still: some of them in the tracer, where they wait for it.
killed_in_callback() ->
    [begin
         start("callback.tw", #{processes => new, on_full => block, ring_bytes => 65536}),
         Recorder = recorder(),
         signal("STOP", Recorder),
         try
             [begin
                  {A, Monitor} = spawn_monitor(fun() -> forever(0) end),
                  timer:sleep(20),
                  exit(A, kill),
                  receive {'DOWN', Monitor, _, _, killed} -> ok end
              end || _ <- lists:seq(1, 20)]
         after
             signal(Signal, Recorder) % also of a test that fails: a process that stands still would stay
         end,
         case Signal of
             "CONT" -> {ok, #{written := W, events := W, complete := 1}} = tracewheel:stop();
             "KILL" -> await_end(600), os:cmd(os:getenv("TRACEWHEEL") ++ " recover callback.tw")
         end
     end || Signal <- ["CONT", "KILL"]].

recorder() ->
    {links, Links} = process_info(whereis(tracewheel), links),
    [Port] = [L || L <- Links, is_port(L)],
    {os_pid, Pid} = erlang:port_info(Port, os_pid),
    Pid.

signal(Name, Pid) -> os:cmd("kill -" ++ Name ++ " " ++ integer_to_list(Pid)).

killed_server() ->
    A = worker(),
    start("server.tw", #{processes => A}),
    work(A, 100),
    Server = whereis(tracewheel),
    Monitor = monitor(process, Server),
    exit(Server, kill),
    receive {'DOWN', Monitor, _, _, _} -> ok end,
    %% Its tracees are free at once, those that do nothing as well.
    start("free.tw", #{processes => A}),
    work(A, 10),
    {ok, #{events := 10, lost := 0}} = tracewheel:stop(),
    [work(A, 1000) || _ <- lists:seq(1, 20)],
    erlang:trace_pattern({?MODULE, step, 1}, false, [local]),
    %% The recorder has seen its end of the pipe close, and has completed the capture.
    await_complete("server.tw", 600),
    start("again.tw", #{processes => worker()}),
    {ok, _} = tracewheel:stop().

killed_recorder() ->
    A = worker(),
    start("recorder.tw", #{processes => A}),
    work(A, 100),
    signal("KILL", recorder()),
    await_end(600),
    [work(A, 1000) || _ <- lists:seq(1, 20)],
    {flags, []} = erlang:trace_info(A, flags),
    os:cmd(os:getenv("TRACEWHEEL") ++ " recover recorder.tw"),
    await_complete("recorder.tw", 1).

await_end(0) -> error(not_ended);
await_end(N) -> tracewheel:info() =:= {error, not_started} orelse begin timer:sleep(20), await_end(N - 1) end.

await_complete(Path, 0) -> error({incomplete, Path});
await_complete(Path, N) ->
    case string:find(os:cmd(os:getenv("TRACEWHEEL") ++ " info " ++ Path), "complete      yes") of
        nomatch -> timer:sleep(50), await_complete(Path, N - 1);
        _ -> ok
    end.

distribution_lost() ->
    A = worker(),
    case net_kernel:start(['life@localhost', longnames]) of
        {ok, _} -> ok;
        {error, _} -> io:format("no distribution here: that part not tested~n")
    end,
    start("net.tw", #{processes => A, flags => [call, send, 'receive']}),
    work(A, 10),
    work(A, fun() -> catch {nobody, 'nowhere@localhost'} ! hello end),
    _ = net_kernel:stop(),
    work(A, 10),
    {ok, #{lost := 0}} = tracewheel:stop().

blocked() ->
    A = worker(),
    start("blocked.tw", #{processes => A, on_full => block, ring_bytes => 65536}),
    %% The ring has place for a few thousand.
    Calls = rounds:choose(50000, 300000),
    work(A, Calls),
    {ok, #{events := Calls, lost := 0}} = tracewheel:stop().

%% The tracer's state is kept after the end, and used.
kept_state() ->
    A = worker(),
    start("kept.tw", #{processes => []}),
    {tracer, M, S} = tracewheel:tracer(),
    {ok, _} = tracewheel:stop(),
    erlang:trace_pattern({?MODULE, step, 1}, true, [local]),
    catch erlang:trace(A, true, [call, {tracer, M, S}]),
    work(A, 10),
    {flags, []} = erlang:trace_info(A, flags),
    catch erlang:trace(A, true, [call, {tracer, M, no_capture}]),
    work(A, 10),
    {flags, []} = erlang:trace_info(A, flags),
    erlang:trace_pattern({?MODULE, step, 1}, false, [local]).

%% For crash_test.sh: a term that is cut; says how many events are certainly committed, and goes on until it is killed.
victim() ->
    A = worker(),
    start("victim.tw", #{processes => A, on_full => block, patterns => [{?MODULE, step, 1}, {?MODULE, cut, 1}]}),
    work(A, fun() -> cut(lists:seq(1, 10000)) end),
    work(A, 50000),
    io:format("50000~n"),
    work(A, 1 bsl 59).

%% No memory for rings, then a full disk; the node works on.
until_full() ->
    true = os:putenv("TRACEWHEEL_SHM", filename:absname("small")),
    {error, {enospc, _, _}} = tracewheel:start("none.tw", #{patterns => [{?MODULE, step, 1}]}),
    false = filelib:is_dir("none.tw"),
    true = os:unsetenv("TRACEWHEEL_SHM"),
    A = worker(),
    start("full/full.tw", #{processes => A, term_bytes => 1000}),
    Rounds = rounds:choose(15, 40),
    [work(A, 100000) || _ <- lists:seq(1, Rounds)],
    {ok, #{events := Stored, lost := Lost, write_errors := Errors}} = tracewheel:stop(),
    io:format("~p ~p ~p ~p~n", [Rounds * 100000, Stored, Lost, Errors]),
    start("free.tw", #{processes => A}),
    work(A, 10),
    {ok, #{events := 10}} = tracewheel:stop(),
    io:format("ok~n"),
    halt().
