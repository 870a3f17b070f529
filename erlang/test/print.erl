%% SPDX-License-Identifier: Apache-2.0
%% print:main() - what option print shows: print_test.sh compares the files that it writes with the captures, and with dbg.
-module(print).
-export([main/0, step/1, fail/1, play/0]).

%% The most messages that may wait: the server's own timers, and one that stops it; one packet, or one request to a group leader.
-define(QUEUE, 5).

main() ->
    [begin io:format("~p~n", [Name]), Fun() end || {Name, Fun} <- cases()],
    io:format("ok~n"),
    halt().

cases() ->
    [{all, fun all/0},
     {stamped, fun stamped/0},
     {fewer, fun fewer/0},
     {a_fun, fun a_fun/0},
     {stuck, fun stuck/0},
     {stuck_with_dbg, fun stuck_with_dbg/0},
     {late, fun late/0},
     {leader_ends, fun leader_ends/0},
     {fun_fails, fun fun_fails/0},
     {short, fun short/0},
     {bad, fun bad/0}].

step(N) -> N.
fail(N) -> error({no, N}).

calls(0) -> ok;
calls(N) -> step(N), calls(N - 1).

%% Of every kind that dbg has a line of its own for.
play() ->
    calls(3),
    catch fail({"text", <<"bytes">>, 1.5, 'an atom', #{key => [value]}}),
    Self = self(),
    Other = spawn(fun() -> receive {Self, M} -> Self ! {answer, M} end, receive last -> exit(over) end end),
    Other ! {Self, [1, "two", {3, [4 | 5]}]},
    receive {answer, _} -> ok end,
    Monitor = monitor(process, Other),
    Other ! last,
    receive {'DOWN', Monitor, _, _, _} -> ok end,
    ok.

patterns() -> ["print:step/1 -> return", "print:fail/1 -> exception", "print:play"].

%% ---- group leaders ----

%% One that keeps what is printed; it is called as one that a shell has.
keeper(Lines) ->
    receive
        {io_request, From, Tag, Request} ->
            {put_chars, unicode, Text} = Request,
            From ! {io_reply, Tag, ok},
            keeper([Lines, Text]);
        {what, From} ->
            From ! {text, iolist_to_binary(Lines)},
            keeper(Lines)
    end.

kept(Keeper) ->
    Keeper ! {what, self()},
    receive {text, Text} -> Text end.

with_keeper(File, Options, Fun) ->
    Keeper = spawn(fun() -> keeper([]) end),
    Info = with_leader(Keeper, File, Options, Fun),
    Text = kept(Keeper),
    ok = file:write_file(File ++ ".shown", Text),
    {Info, Text}.

with_leader(Leader) -> fun(File, Options, Fun) -> with_leader(Leader, File, Options, Fun) end.

with_leader(Leader, File, Options, Fun) ->
    Mine = group_leader(),
    group_leader(Leader, self()),
    {ok, _} = tracewheel:start(File, Options#{force => true}),
    group_leader(Mine, self()),
    Fun(),
    {ok, Info} = tracewheel:stop(),
    is_clean(),
    Info.

worker(Fun) ->
    Self = self(),
    spawn(fun() -> receive go -> ok end, Self ! {done, Fun()}, receive never -> ok end end).

%% Traced with what it spawns.
with_worker(File, Options, Fun) -> with_worker(File, Options, Fun, fun with_keeper/3).
with_worker(File, Options, Fun, With) ->
    Worker = worker(Fun),
    Result = With(File, Options#{processes => Worker}, fun() -> Worker ! go, receive {done, _} -> ok end end),
    exit(Worker, kill),
    Result.

is_clean() ->
    {error, not_started} = tracewheel:info(),
    [] = printers(),
    [] = [P || P <- erlang:ports(), {name, Name} <- [erlang:port_info(P, name)], is_of_tracewheel(Name)],
    ok.

is_of_tracewheel(Name) -> string:find(Name, "tracewheel") =/= nomatch.

printers() -> [P || P <- processes(), {initial_call, {tracewheel_printer, init, 2}} <- [process_info(P, initial_call)]].

counts(#{events := Events, printed := Printed, left_out := LeftOut}) -> {Events, Printed, LeftOut}.

%% ---- cases ----

all() ->
    {Info, _} = with_worker("all.tw", #{patterns => patterns(), flags => [call, send, 'receive', procs, set_on_spawn], print => true},
                            fun play/0),
    {N, N, 0} = counts(Info),
    true = N > 15.

stamped() ->
    {Info, _} = with_worker("stamped.tw", #{patterns => patterns(), flags => [call, timestamp, arity], print => true}, fun play/0),
    {N, N, 0} = counts(Info).

%% More events than lines.
fewer() ->
    {Info, Text} = with_worker("fewer.tw", #{patterns => "print:step/1", print => true, lines => 50}, fun() -> calls(5000) end),
    {5000, Printed, _} = counts(Info),
    true = Printed >= 50,
    adds_up(Info, Text).

%% Some were left out; those that were printed, and those that are said to be left out, are all.
adds_up(Info, Text) ->
    {Events, Printed, LeftOut} = counts(Info),
    Events = Printed + LeftOut,
    true = LeftOut > 0,
    Lines = binary:split(Text, <<"\n">>, [global, trim]),
    Notices = [L || <<"... ", _/binary>> = L <- Lines],
    Printed = length(Lines) - length(Notices),
    LeftOut = lists:sum([number(L) || L <- Notices]).

%% "... 4,950 events not shown ..."
number(<<"... ", Rest/binary>>) ->
    [Number, _] = binary:split(Rest, <<" event">>),
    binary_to_integer(binary:replace(Number, <<",">>, <<>>, [global])).

a_fun() ->
    Self = self(),
    Print = fun(Line) -> Self ! {line, Line} end,
    Info = with_worker("fun.tw", #{patterns => patterns(), flags => [call, send, set_on_spawn], print => Print}, fun play/0,
                       with_leader(group_leader())),
    {N, N, 0} = counts(Info),
    ok = file:write_file("fun.tw.shown", [[L, $\n] || L <- received()]),
    N = length(binary:matches(element(2, file:read_file("fun.tw.shown")), <<"\n">>)).

received() -> receive {line, L} -> [L | received()] after 0 -> [] end.

%% A group leader that never answers: the capture is whole, no mailbox grows, the traced process runs to its end, and the trace ends.
stuck() ->
    Leader = spawn(fun() -> receive never -> ok end end),
    Self = self(),
    Queues = spawn(fun() -> longest_queue(Leader, Self, 0) end),
    N = 60000,
    Info = with_worker("stuck.tw", #{patterns => "print:step/1", print => true, rate => infinity, on_full => block},
                       fun() -> paced(N) end, with_leader(Leader)),
    {N, 0, N} = counts(Info),
    #{lost := 0} = Info,
    Queues ! tell,
    receive {longest, Longest} -> Longest =< ?QUEUE orelse error({queue, Longest}) end.

%% In steps, so that there are many packets.
paced(0) -> ok;
paced(N) -> calls(1000), timer:sleep(5), paced(N - 1000).

%% Of the group leader, and every process here; not of those that wait in this test.
longest_queue(Leader, To, Longest) ->
    receive
        tell -> To ! {longest, Longest}
    after 1 ->
            Ours = [whereis(P) || P <- [tracewheel], whereis(P) =/= undefined] ++ printers(),
            Lengths = [L || P <- [Leader | Ours], {message_queue_len, L} <- [process_info(P, message_queue_len)]],
            longest_queue(Leader, To, lists:max([Longest | Lengths]))
    end.

%% The check above sees what dbg does.
stuck_with_dbg() ->
    Leader = spawn(fun() -> receive never -> ok end end),
    Mine = group_leader(),
    group_leader(Leader, self()),
    {ok, Tracer} = dbg:tracer(process, {fun(T, Out) -> Out ! T, Out end, Leader}),
    group_leader(Mine, self()),
    Worker = worker(fun() -> paced(5000) end),
    {ok, _} = dbg:p(Worker, c),
    {ok, _} = dbg:tpl(?MODULE, step, []),
    Worker ! go,
    receive {done, _} -> ok end,
    timer:sleep(100),
    Lengths = [L || P <- [Leader, Tracer], {message_queue_len, L} <- [process_info(P, message_queue_len)]],
    dbg:stop_clear(),
    true = lists:max(Lengths) > ?QUEUE.

%% One that answers after a while gets the oldest lines, is told how many are missing, and then new ones.
late() ->
    Leader = spawn(fun() -> receive begin_now -> ok end, keeper([]) end),
    Info = with_worker("late.tw", #{patterns => "print:step/1", print => true, lines => 100},
                       fun() -> calls(3000), await_request(Leader), Leader ! begin_now, until_printed(Leader) end, with_leader(Leader)),
    Text = kept(Leader),
    adds_up(Info, Text),
    [_, After] = binary:split(Text, <<" not shown (">>),
    {_, _} = binary:match(After, <<"step(again)">>).

await_request(Leader) ->
    case process_info(Leader, message_queue_len) of
        {_, 0} -> timer:sleep(5), await_request(Leader);
        _ -> ok
    end.

until_printed(Leader) ->
    step(again),
    timer:sleep(20),
    binary:match(kept(Leader), <<"step(again)">>) =/= nomatch orelse until_printed(Leader).

%% The group leader ends: the trace goes on.
leader_ends() ->
    Leader = spawn(fun() -> receive {io_request, _, _, _} -> ok end end),
    logger:set_primary_config(level, error),
    Info = with_worker("ends.tw", #{patterns => "print:step/1", print => true},
                       fun() -> calls(10), await_no_printer(), calls(10) end,
                       with_leader(Leader)),
    {20, 0, 20} = counts(Info).

await_no_printer() ->
    case printers() of
        [] -> ok;
        _ -> timer:sleep(5), await_no_printer()
    end.

fun_fails() ->
    Print = fun(_) -> error(no_more) end,
    Info = with_worker("fails.tw", #{patterns => "print:step/1", print => Print},
                       fun() -> calls(10), await_no_printer(), calls(10) end,
                       with_leader(group_leader())),
    {20, 0, 20} = counts(Info),
    logger:set_primary_config(level, notice).

%% One that is over before the reader has begun.
short() ->
    {Info, _} = with_worker("short.tw", #{patterns => "print:step/1", print => true}, fun() -> step(1) end),
    {1, 1, 0} = counts(Info),
    {Nothing, <<>>} = with_worker("nothing.tw", #{patterns => "print:step/1", print => true}, fun() -> ok end),
    {0, 0, 0} = counts(Nothing).

bad() ->
    [{error, {bad_option, Key, Value}} = tracewheel:start("bad.tw", #{Key => Value, patterns => print})
     || {Key, Value} <- [{print, 1}, {print, fun() -> ok end}, {lines, 0}, {lines, infinity}]],
    {error, enoent} = file:read_file_info("bad.tw").
