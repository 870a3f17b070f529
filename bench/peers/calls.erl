%% SPDX-License-Identifier: Apache-2.0
%% Calls of an Erlang process under the tracers that OTP brings, and under tracewheel, for peers.py: one line of JSON for each.
-module(calls).
-export([main/1, none/0, two/2]).

none() -> ok.
two(A, B) -> A + B.

run(none, N) -> repeat_none(N);
run(two, N) -> repeat_two(N, 0).

repeat_none(0) -> ok;
repeat_none(N) ->
    none(),
    repeat_none(N - 1).

repeat_two(0, _) -> ok;
repeat_two(N, Sum) -> repeat_two(N - 1, two(Sum band 65535, N)).

main([Calls, Only]) ->
    process_flag(trap_exit, true),
    process_flag(priority, high),
    [[try measure(Name, Case, list_to_integer(Calls))
      catch
          Class:Reason -> say(Name, Case, [{refused, lists:flatten(io_lib:format("~p: ~0.200p", [Class, Reason]))}])
      end || Case <- cases(Name)] || Name <- tracers(), re:run(atom_to_list(Name), Only) =/= nomatch],
    halt().

tracers() -> [untraced, empty, tracewheel, 'erlang:trace', dbg, dbg_file, ttb].

cases(_) -> [call, words, pair].

function(call) -> {none, 0};
function(_) -> {two, 2}.

spec(pair) -> [{'_', [], [{return_trace}]}];
spec(_) -> [].

%% A call that is not traced costs nothing of what a tracer takes; the process waits until it is.
measure(Name, Case, Most) ->
    Calls = case Name of
                untraced -> Most * 20;
                _ -> Most
            end,
    Self = self(),
    {Function, _} = function(Case),
    Pid = spawn_link(fun() ->
                             receive go -> ok end,
                             Before = {cpu(), erlang:monotonic_time(nanosecond)},
                             run(Function, Calls),
                             Self ! {ran, Before, erlang:monotonic_time(nanosecond)},
                             receive stop -> ok end
                     end),
    Stop = start(Name, Case, Pid),
    Pid ! go,
    {Cpu0, T0, T1} = receive {ran, {C, Begun}, Ended} -> {C, Begun, Ended} end,
    Ref = erlang:trace_delivered(Pid),
    receive {trace_delivered, Pid, Ref} -> ok end,
    {Read, Lost, Bytes} = Stop(),
    Cpu = receive {cpu, Later} -> Later after 0 -> cpu() end,
    unlink(Pid),
    exit(Pid, kill),
    Records = case Case of
                  pair -> 2;
                  _ -> 1
              end,
    say(Name, Case, [{made, Calls}, {calls, Calls}, {cpu_ns, Cpu - Cpu0}, {wall_ns, T1 - T0}, {recorded, Read div Records}, {lost, Lost}, {bytes, Bytes}]).

say(Name, Case, Pairs) ->
    Text = lists:join(", ", [io_lib:format("\"~s\": ~s", [K, value(V)]) || {K, V} <- [{peer, Name}, {'case', Case} | Pairs]]),
    io:format("{~s}~n", [Text]).

value(V) when is_integer(V) -> integer_to_list(V);
value(V) when is_atom(V) -> value(atom_to_list(V));
value(V) -> ["\"", [C || C <- V, C >= 32, C =/= $", C =/= $\\], "\""].

%% Processor time of all threads of the VM, in ns: a tracer's process is one of its own.
cpu() ->
    {ok, Threads} = file:list_dir("/proc/self/task"),
    lists:sum([case file:read_file("/proc/self/task/" ++ T ++ "/schedstat") of
                   {ok, Text} -> binary_to_integer(hd(binary:split(Text, <<" ">>)));
                   _ -> 0
               end || T <- Threads]).

%% Starts a tracer of one process; what is returned stops it, and says what its reader finds.
start(untraced, _, _) -> fun() -> tell(), {0, 0, 0} end;
start(empty, Case, Pid) -> flags(Case, Pid, {tracer, empty_tracer, []}, fun() -> {0, 0, 0} end);
start('erlang:trace', Case, Pid) ->
    Reader = spawn_link(fun() -> count(0) end),
    flags(Case, Pid, {tracer, Reader}, fun() ->
                                               Reader ! {how_many, self()},
                                               receive {count, N} -> {N, 0, 0} end
                                       end);
start(tracewheel, Case, Pid) ->
    {Function, Arity} = function(Case),
    Returns = case Case of
                  pair -> " -> return";
                  _ -> ""
              end,
    Pattern = lists:flatten(io_lib:format("calls:~s/~w~s", [Function, Arity, Returns])),
    {ok, _} = tracewheel:start("calls.tw", #{force => true, events => infinity, rate => infinity, time => infinity, on_full => block,
                                             patterns => [Pattern], processes => Pid}),
    fun() ->
            tell(),
            {ok, #{events := Events, lost := Lost}} = tracewheel:stop(),
            {Events, Lost, size_of("calls.tw")}
    end;
start(dbg, Case, Pid) ->
    Count = counters:new(1, []),
    {ok, _} = dbg:tracer(process, {fun(_, C) -> counters:add(C, 1, 1), C end, Count}),
    dbg_on(Case, Pid),
    fun() ->
            settle(Count, 0, 500),
            tell(),
            dbg_off(),
            {counters:get(Count, 1), 0, 0}
    end;
start(dbg_file, Case, Pid) ->
    file:delete("calls.dbg"),
    {ok, _} = dbg:tracer(port, dbg:trace_port(file, "calls.dbg")),
    dbg_on(Case, Pid),
    fun() ->
            ok = dbg:flush_trace_port(),
            tell(),
            dbg_off(),
            Self = self(),
            dbg:trace_client(file, "calls.dbg", {fun(end_of_trace, N) -> Self ! {read, N};
                                                    (_, N) -> N + 1
                                                 end, 0}),
            receive {read, N} -> {N, 0, filelib:file_size("calls.dbg")} end
    end;
start(ttb, Case, Pid) ->
    {module, ttb} = code:ensure_loaded(ttb),
    [file:delete(F) || F <- filelib:wildcard("*calls.ttb*")],
    {ok, _} = ttb:tracer(node(), [{file, "calls.ttb"}, {process_info, false}]),
    {ok, _} = ttb:p(Pid, call),
    {Function, Arity} = function(Case),
    {ok, _} = ttb:tpl(calls, Function, Arity, spec(Case)),
    fun() ->
            stopped = ttb:stop(nofetch), % which writes what waits in the port
            tell(),
            [File] = [F || F <- filelib:wildcard("*calls.ttb"), filelib:is_regular(F)],
            Count = counters:new(1, []),
            ok = ttb:format(File, [{out, "ttb.out"}, {handler, {fun(_, {drop, _}, _, C) -> C;
                                                                   (_, end_of_trace, _, C) -> C;
                                                                   (_, _, _, C) -> counters:add(Count, 1, 1), C
                                                                end, 0}}]),
            {counters:get(Count, 1), 0, filelib:file_size(File)}
    end.

%% The processor time up to here is the tracer's; reading comes behind it.
tell() -> self() ! {cpu, cpu()}.

flags(Case, Pid, Tracer, Read) ->
    {Function, Arity} = function(Case),
    1 = erlang:trace_pattern({calls, Function, Arity}, match(spec(Case)), [local]),
    1 = erlang:trace(Pid, true, [call, Tracer]),
    fun() ->
            Result = Read(),
            tell(),
            erlang:trace(Pid, false, [all]),
            erlang:trace_pattern({calls, Function, Arity}, false, [local]),
            Result
    end.

match([]) -> true;
match(Spec) -> Spec.

count(N) ->
    receive
        {how_many, From} -> From ! {count, N};
        _ -> count(N + 1)
    end.

dbg_on(Case, Pid) ->
    {Function, Arity} = function(Case),
    {ok, _} = dbg:tpl(calls, Function, Arity, spec(Case)),
    {ok, _} = dbg:p(Pid, [c]).

dbg_off() ->
    dbg:ctpl(),
    dbg:stop_clear().

%% Until the handler has had all messages, which it takes one by one.
settle(_, _, 0) -> ok;
settle(Count, Before, Tries) ->
    receive after 20 -> ok end,
    case counters:get(Count, 1) of
        Before when Before > 0 -> ok;
        Now -> settle(Count, Now, Tries - 1)
    end.

size_of(Folder) ->
    {ok, Files} = file:list_dir(Folder),
    lists:sum([filelib:file_size(filename:join(Folder, F)) || F <- Files]).
