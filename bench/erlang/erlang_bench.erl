%% SPDX-License-Identifier: Apache-2.0
%% What an event costs in the Erlang VM, by tracer; what is sustained without loss; memory and losses at full speed; bytes on disk.
-module(erlang_bench).
-export([main/0, loop/1, tail/1, pass/2, log/2]).

-define(CALLS, 300000).
-define(BURST, 300).

main() ->
    process_flag(trap_exit, true),
    process_flag(priority, high),
    Rounds = list_to_integer(os:getenv("ROUNDS", "9")),
    Seconds = list_to_integer(os:getenv("SECONDS_DROP", "60")),
    case os:getenv("PART", "all") of
        "all" -> costs(Rounds), terms(Rounds), sustained(), dropping(Seconds), real_work();
        "terms" -> terms(Rounds);
        "drop" -> dropping(Seconds), remembering();
        "print" -> printing(Seconds);
        "figures" -> figures(Rounds, Seconds);
        "hold" -> holding(Seconds)
    end,
    halt().

loop(0) -> ok;
loop(N) -> loop(N - 1).

%% ---- one event ----

tracers() ->
    [{none, "not traced"},
     {empty, "a tracer module that does nothing"},
     {arity, "into a capture, with arity"},
     {ours, "into a capture, with the argument"},
     {process, "a process that discards (priority max)"}]
        ++ [{file, "the file port of dbg"} || code:ensure_loaded(dbg) =:= {module, dbg}].

costs(Rounds) ->
    io:format("a call of a one-argument function, ns: median of ~p rounds (range)~n", [Rounds]),
    All = [[{T, measure(T)} || {T, _} <- tracers()] || _ <- lists:seq(1, Rounds)],
    Empty = median([proplists:get_value(empty, R) || R <- All]),
    [begin
         Times = lists:sort([proplists:get_value(T, R) || R <- All]),
         io:format("  ~-42s ~7.1f  (~.1f to ~.1f)  ~s~n", [Text, median(Times), hd(Times), lists:last(Times), above(median(Times) - Empty)])
     end || {T, Text} <- tracers()].

above(Ns) when Ns > 0 -> io_lib:format("~.1f above the empty one", [Ns]);
above(_) -> "".

median(L) -> lists:nth((length(L) + 1) div 2, lists:sort(L)).

measure(Tracer) -> measure(Tracer, {?MODULE, loop, 1}, ?CALLS, fun() -> loop(?CALLS) end).

%% With a term as argument: processor time does not tell of a single process, so the fewest ns of short bursts are taken.
measure(Tracer, pass, Term) ->
    lists:min([measure(Tracer, {?MODULE, pass, 2}, ?BURST, fun() -> pass(?BURST, Term) end) || _ <- lists:seq(1, 3)]).

measure(Tracer, Function, Calls, Run) ->
    Self = self(),
    {State, Options} = open(Tracer),
    Pid = spawn(fun() ->
                        receive go -> ok end,
                        T0 = erlang:monotonic_time(nanosecond),
                        Run(),
                        Self ! {ns, (erlang:monotonic_time(nanosecond) - T0) / Calls},
                        receive stop -> ok end
                end),
    Options =:= [] orelse begin
                              erlang:trace_pattern(Function, true, [local]),
                              1 = erlang:trace(Pid, true, [call | Options])
                          end,
    Pid ! go,
    Ns = receive {ns, N} -> N end,
    erlang:trace(Pid, false, [all]),
    erlang:trace_pattern(Function, false, [local]),
    Pid ! stop,
    close(Tracer, State, Calls),
    Ns.

open(none) -> {ok, []};
open(empty) -> {ok, [{tracer, empty_tracer, []}]};
open(ours) -> ours([]);
open(arity) -> ours([arity]);
open(process) ->
    Pid = spawn_opt(fun Discard() -> receive stop -> ok; _ -> Discard() end end, [{priority, max}, {message_queue_data, off_heap}]),
    {Pid, [{tracer, Pid}]};
open(file) ->
    Port = (dbg:trace_port(file, "bench.dbg"))(),
    {Port, [{tracer, Port}]}.

start(Options) ->
    {ok, _} = tracewheel:start("bench.tw", maps:merge(#{force => true, events => infinity, rate => infinity, time => infinity}, Options)).

ours(Flags) ->
    start(#{}),
    {ok, [tracewheel:tracer() | Flags]}.

close(Tracer, _, Calls) when Tracer =:= ours; Tracer =:= arity ->
    {ok, #{events := E, lost := L}} = tracewheel:stop(),
    E + L >= Calls orelse error({events, E, L});
close(process, Pid, _) -> Pid ! stop;
close(file, Port, _) -> port_close(Port);
close(_, _, _) -> ok.

%% ---- arguments of all sizes ----

large() ->
    Numbers = lists:seq(1000, 101000),
    Deep = fun(Wrap) -> lists:foldl(Wrap, bottom, lists:seq(1, 1000)) end,
    State = {state, self(), make_ref(), #{queue => q, backing => #{a => 1, b => <<"name">>}}, [{consumer, N, self()} || N <- lists:seq(1, 4)], "text"},
    <<_:3, Shifted/binary>> = <<0:3, (binary:copy(<<"x">>, 1000000))/binary>>,
    [{"a small integer", 17},
     {"a record of a server, whole (about 400 bytes)", State},
     {"twenty of them in a tuple", list_to_tuple(lists:duplicate(20, State))},
     {"a list, 1,000 levels deep", Deep(fun(N, T) -> [N, T] end)},
     {"a tuple, 1,000 levels deep", Deep(fun(N, T) -> {T, N} end)},
     {"100,000 integers in a list", Numbers},
     {"a text of 100,000 characters", lists:duplicate(100000, $x)},
     {"a tuple of 100,000", list_to_tuple(Numbers)},
     {"a map of 10,000", maps:from_list([{N, N} || N <- lists:seq(1, 10000)])},
     {"maps in maps, 1,000 levels deep", Deep(fun(N, T) -> #{N => T, a => b} end)},
     {"a binary of 1 MB", binary:copy(<<"x">>, 1000000)},
     {"the same, not at a whole byte", Shifted},
     {"a bit string of 1 MB and 3 bits", <<0:8000003>>},
     {"an integer of 100,000 bytes", 1 bsl 800000},
     {"200 integers of 990 bytes in a tuple", list_to_tuple(lists:duplicate(200, 1 bsl 7920))},
     {"a fun with 100,000 integers inside", fun() -> Numbers end},
     {"300 references in an improper list", lists:foldl(fun(_, T) -> [make_ref() | T] end, x, lists:seq(1, 300))}].

pass(0, _) -> ok;
pass(N, Term) -> pass(N - 1, Term).

%% Above the empty tracer in the same round; a return ends the burst that a slow tracer would make too long.
terms(Rounds) ->
    io:format("a call with such an argument, ns above a tracer module that does nothing: median of ~p rounds (range)~n", [Rounds]),
    [begin
         Times = lists:sort([measure(ours, pass, Term) - measure(empty, pass, Term) || _ <- lists:seq(1, Rounds)]),
         io:format("  ~-46s ~10.1f  (~.1f to ~.1f)~n", [Text, median(Times), hd(Times), lists:last(Times)])
     end || {Text, Term} <- large()].

%% ---- two schedulers ----

tail(0) -> ok;
tail(N) -> tail(N - 1).

workers(Count, Run) ->
    Self = self(),
    [spawn(fun() -> receive go -> ok end, Self ! {done, self(), Run()} end) || _ <- lists:seq(1, Count)].

run(Pids) ->
    [P ! go || P <- Pids],
    [receive {done, P, Result} -> Result end || P <- Pids].

sustained() ->
    N = 4000000,
    Pids = workers(2, fun() -> tail(N) end),
    start(#{on_full => block, patterns => ["erlang_bench:tail/1"], processes => Pids, flags => [call, arity]}),
    T0 = erlang:monotonic_time(millisecond),
    run(Pids),
    {ok, #{events := Events, lost := 0}} = tracewheel:stop(),
    Ms = erlang:monotonic_time(millisecond) - T0,
    io:format("two processes, nothing lost (block), until the capture is complete: ~.2f million events a second~n", [Events / Ms / 1000]),
    io:format("  on disk, with arity: ~.2f bytes an event~n", [bytes("bench.tw") / Events]).

%% What printing 1,000 events a second takes from the node, and what a group leader that never answers takes from the traced process.
printing(Seconds) ->
    Answering = spawn(fun answer/0),
    Stuck = spawn(fun() -> receive never -> ok end end),
    Leaders = [{"traced, not printed", group_leader(), false}, {"printed, to the shell's or standard output", group_leader(), true},
               {"printed, to a process that answers", Answering, true}, {"printed, to one that never answers", Stuck, true}],
    Rounds = 5,
    io:format(standard_error, "1,000 calls a second for ~p s, processor time of the VM, % of a core: ~p rounds~n", [Seconds, Rounds]),
    Shares = [[at_pace(Seconds, Leader, Print) || {_, Leader, Print} <- Leaders] || _ <- lists:seq(1, Rounds)],
    [io:format(standard_error, "  ~-46s ~s~n", [Text, [io_lib:format("~6.2f", [lists:nth(N, R)]) || R <- Shares]])
     || {N, {Text, _, _}} <- number(Leaders)],
    Times = [[at_speed(Leader, Print) || {_, Leader, Print} <- Leaders] || _ <- lists:seq(1, 9)],
    io:format(standard_error, "~p calls at full speed (block), ns a call of the traced process' time: median of 9 rounds (range)~n", [?CALLS]),
    [begin
         Sorted = lists:sort([lists:nth(N, R) || R <- Times]),
         io:format(standard_error, "  ~-46s ~7.1f  (~.1f to ~.1f)~n", [Text, median(Sorted), hd(Sorted), lists:last(Sorted)])
     end || {N, {Text, _, _}} <- number(Leaders)].

%% ---- what is promised, each with its goal ----

figures(Rounds, Seconds) ->
    Calls = [{measure(empty), measure(ours)} || _ <- lists:seq(1, Rounds)],
    figure("a call above a tracer module that does nothing, ns", "50 at most", [O - E || {E, O} <- Calls]),
    sustained(),
    Stuck = spawn(fun() -> receive never -> ok end end),
    Shares = [{at_pace(Seconds, group_leader(), false), at_pace(Seconds, group_leader(), true), at_pace(Seconds, Stuck, true)} || _ <- lists:seq(1, 5)],
    figure("printing 1,000 events a second, % of a core", "1 at most", [P - N || {N, P, _} <- Shares]),
    figure("the same to a group leader that never answers", "1 at most", [S - N || {N, _, S} <- Shares]),
    figure("a trace of 2,000 patterns begins, ms", "200 at most", [patterns(2000) || _ <- lists:seq(1, Rounds)]),
    Logs = [{logs(notice, false), logs(notice, true), logs(error, false), logs(error, true)} || _ <- lists:seq(1, Rounds)],
    figure("a log event below error while a flight recorder runs, ns more", "", [W - N || {N, W, _, _} <- Logs]),
    figure("one of the level error that is no crash, ns more", "", [W - N || {_, _, N, W} <- Logs]).

figure(What, Goal, Values) ->
    Sorted = lists:sort(Values),
    io:format("~-64s ~8.1f  (~.1f to ~.1f)  ~s~n", [What, median(Sorted) * 1.0, hd(Sorted) * 1.0, lists:last(Sorted) * 1.0, Goal]).

%% Each is a function of its own.
patterns(Count) ->
    Names = [list_to_atom("f" ++ integer_to_list(N)) || N <- lists:seq(1, Count)],
    {ok, M, Code} = compile:forms([{attribute, 1, module, many}, {attribute, 1, export, [{F, 0} || F <- Names]} |
                                   [{function, 1, F, 0, [{clause, 1, [], [], [{atom, 1, ok}]}]} || F <- Names]]),
    {module, M} = code:load_binary(M, "many", Code),
    Patterns = [lists:concat([M, ":", F, "/0 -> return"]) || F <- Names],
    T0 = erlang:monotonic_time(microsecond),
    start(#{patterns => Patterns}),
    Ms = (erlang:monotonic_time(microsecond) - T0) / 1000,
    {ok, #{functions := Count}} = tracewheel:info(),
    {ok, _} = tracewheel:stop(),
    Ms.

%% With one handler that does nothing, as any node has one that does more.
logs(Level, HasFlight) ->
    logger:remove_handler(default),
    ok = logger:add_handler(bench, ?MODULE, #{}),
    HasFlight andalso ({ok, _} = tracewheel:flight("bench.tw", #{patterns => "erlang_bench:tail/1"})),
    T0 = erlang:monotonic_time(nanosecond),
    [logger:log(Level, "an event") || _ <- lists:seq(1, 20000)],
    Ns = (erlang:monotonic_time(nanosecond) - T0) / 20000,
    HasFlight andalso ({ok, _} = tracewheel:stop()),
    logger:remove_handler(bench),
    Ns.

log(_, _) -> ok.

number(List) -> lists:zip(lists:seq(1, length(List)), List).

answer() ->
    receive {io_request, From, Tag, _} -> From ! {io_reply, Tag, ok} end,
    answer().

with_leader(Leader, Options) ->
    Mine = group_leader(),
    group_leader(Leader, self()),
    start(Options),
    group_leader(Mine, self()).

%% In steps of 10 ms.
at_pace(Seconds, Leader, Print) ->
    Pids = workers(1, fun() -> [begin tail(10), timer:sleep(9) end || _ <- lists:seq(1, Seconds * 100)] end),
    with_leader(Leader, #{patterns => ["erlang_bench:tail/1"], processes => Pids, print => Print}),
    T0 = erlang:monotonic_time(microsecond),
    {Before, _} = statistics(runtime),
    run(Pids),
    {After, _} = statistics(runtime),
    T = erlang:monotonic_time(microsecond) - T0,
    {ok, #{events := Events}} = tracewheel:stop(),
    Print =:= false orelse T / Seconds < 1.5e6 orelse io:format(standard_error, "only ~p events in ~.1f s~n", [Events, T / 1.0e6]),
    (After - Before) * 1000 * 100 / T.

at_speed(Leader, Print) ->
    Self = self(),
    Pids = workers(1, fun() ->
                              T0 = erlang:monotonic_time(nanosecond),
                              tail(?CALLS),
                              Self ! {took, erlang:monotonic_time(nanosecond) - T0}
                      end),
    with_leader(Leader, #{patterns => ["erlang_bench:tail/1"], processes => Pids, print => Print, on_full => block}),
    run(Pids),
    {ok, #{lost := 0}} = tracewheel:stop(),
    receive {took, Ns} -> Ns / ?CALLS end.

%% Full speed with drop: memory of the VM and of the recorder, and exact losses.
dropping(Seconds) ->
    Stop = counters:new(1, []),
    Pids = workers(2, fun() -> until(Stop, 0) end),
    Before = memory(os:getpid()),
    start(#{patterns => ["erlang_bench:tail/1"], processes => Pids}),
    Recorder = recorder(),
    [P ! go || P <- Pids],
    {Vm, Other} = watch(Recorder, erlang:monotonic_time(millisecond) + Seconds * 1000, {Before, {0, 0}}),
    counters:put(Stop, 1, 1),
    Made = lists:sum([receive {done, P, Calls} -> Calls end || P <- Pids]),
    {ok, #{rings := Rings}} = tracewheel:info(),
    {ok, #{events := Events, lost := Missing}} = tracewheel:stop(),
    {Made, Made} = {Made, Events + Missing},
    io:format("two processes at full speed for ~p s (drop): ~.2f million calls a second; ~p made = ~p recorded + ~p lost (~.1f %)~n"
              "  the VM grew by ~.1f MiB, and by ~.1f MiB of shared memory for ~p rings of 1 MiB; the recorder took ~.1f MiB at most, rings included~n",
              [Seconds, Made / Seconds / 1.0e6, Made, Events, Missing, 100 * Missing / Made, mib(grown(1, Vm, Before)),
               mib(grown(2, Vm, Before)), Rings, mib(element(1, Other) + element(2, Other))]).

grown(N, After, Before) -> element(N, After) - element(N, Before).
mib(Kib) -> Kib / 1024.

until(Stop, Calls) ->
    tail(99),
    case counters:get(Stop, 1) of
        0 -> until(Stop, Calls + 100);
        _ -> Calls + 100
    end.

%% Processes that make one event each, until the capture has no space for more.
remembering() ->
    {Before, _} = memory(os:getpid()),
    start(#{patterns => ["erlang_bench:tail/1"], flags => [call]}),
    [begin
         {Pid, Monitor} = spawn_monitor(fun() -> tail(0) end),
         receive {'DOWN', Monitor, _, Pid, _} -> ok end
     end || _ <- lists:seq(1, 900000)],
    {After, _} = memory(os:getpid()),
    {ok, #{events := Events, lost := Missing}} = tracewheel:stop(),
    io:format("900000 processes with an event each: ~p recorded + ~p lost; the VM grew by ~p bytes a process that is remembered~n",
              [Events, Missing, (After - Before) * 1024 div Events]).

recorder() ->
    {links, Links} = process_info(whereis(tracewheel), links),
    [Port] = [L || L <- Links, is_port(L)],
    {os_pid, Pid} = erlang:port_info(Port, os_pid),
    integer_to_list(Pid).

%% The most of a tenth of a second each.
watch(Recorder, End, Most) ->
    receive after 100 -> ok end,
    Now = most(Most, {memory(os:getpid()), memory(Recorder)}),
    case erlang:monotonic_time(millisecond) < End of
        true -> watch(Recorder, End, Now);
        false -> Now
    end.

most({{A, B}, {C, D}}, {{E, F}, {G, H}}) -> {{max(A, E), max(B, F)}, {max(C, G), max(D, H)}}.

%% Resident memory in KiB: of its own, and shared, as rings are.
memory(Pid) ->
    {ok, Text} = file:read_file("/proc/" ++ Pid ++ "/status"),
    [Own, Shared] = [begin
                         {match, [Kib]} = re:run(Text, Key ++ ":\\s+(\\d+)", [{capture, all_but_first, list}]),
                         list_to_integer(Kib)
                     end || Key <- ["RssAnon", "RssShmem"]],
    {Own, Shared}.

%% The longest call of the tracer, by libraries that measure each: with arguments of all sizes, new processes and functions, and
%% a recorder that is stopped two fifths of the time, so that rings fill and grow.
holding(Seconds) ->
    Stop = counters:new(1, []),
    Terms = [T || {_, T} <- large()],
    Pids = workers(2, fun() -> all_kinds(Stop, Terms) end),
    start(#{patterns => ["erlang_bench:tail/1", "erlang_bench:pass/2", lists, maps, string], processes => Pids,
            flags => [call, send, procs, running, garbage_collection, set_on_spawn]}),
    Recorder = recorder(),
    [P ! go || P <- Pids],
    interrupt(Recorder, erlang:monotonic_time(millisecond) + Seconds * 1000),
    {ok, #{measured := #{calls := Calls, cpu_ns := Cpu, wall_ns := Wall, unpreempted_ns := Unpreempted, faults := Faults, waits := Waits}}} =
        tracewheel:info(),
    counters:put(Stop, 1, 1),
    [receive {done, P, _} -> ok end || P <- Pids],
    {ok, #{events := Events, lost := Missing, cut_terms := Cut}} = tracewheel:stop(),
    io:format("~p calls of the tracer in ~p s, each measured; ~p events recorded, ~p lost, ~p terms cut; the most of one call:~n"
              "  processor time ~p us; on the wall ~p us, ~p us where it was not preempted; ~p pages made present, ~p waits~n",
              [Calls, Seconds, Events, Missing, Cut, Cpu div 1000, Wall div 1000, Unpreempted div 1000, Faults, Waits]).

all_kinds(Stop, Terms) ->
    [begin
         tail(200),
         pass(3, T),
         spawn(fun() -> lists:sort([3, 1, 2]), maps:from_list([{a, 1}]) end) ! T
     end || T <- Terms],
    case counters:get(Stop, 1) of
        0 -> all_kinds(Stop, Terms);
        _ -> ok
    end.

interrupt(Recorder, End) ->
    os:cmd("kill -STOP " ++ Recorder),
    receive after 400 -> ok end,
    os:cmd("kill -CONT " ++ Recorder),
    receive after 600 -> ok end,
    erlang:monotonic_time(millisecond) < End andalso interrupt(Recorder, End).

%% ---- bytes on disk ----

real_work() ->
    Source = filename:join(filename:dirname(code:which(?MODULE)), "erlang_bench.erl"),
    [begin
         {Pid, Monitor} = spawn_monitor(fun() -> receive go -> ok end, Run() end),
         start(#{on_full => block, patterns => Patterns, processes => Pid, flags => [call, set_on_spawn | Flags]}),
         Pid ! go,
         receive {'DOWN', Monitor, _, _, normal} -> ok end,
         {ok, #{events := Events}} = tracewheel:stop(),
         io:format("~s: ~p events, ~.2f bytes each on disk~n", [Text, Events, bytes("bench.tw") / Events])
     end || {Text, Patterns, Flags, Run} <-
                [{"the compiler at work, calls of five modules with arity", [lists, maps, beam_ssa, v3_core, cerl], [arity],
                  fun() -> {ok, _, _} = compile:file(Source, [binary]) end},
                 {"a recursive function, calls with their argument", ["erlang_bench:fib/1"], [], fun() -> fib(24) end},
                 {"the same with returns", ["erlang_bench:fib/1 -> return"], [], fun() -> fib(24) end}]].

fib(N) when N < 2 -> N;
fib(N) -> fib(N - 1) + fib(N - 2).

bytes(Path) ->
    {ok, Files} = file:list_dir(Path),
    lists:sum([filelib:file_size(filename:join(Path, F)) || F <- Files]).
