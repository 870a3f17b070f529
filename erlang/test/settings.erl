%% SPDX-License-Identifier: Apache-2.0
%% settings:main() - messages by content, counters, system monitors: what is recorded; and that the node has none of them at the end,
%% however it comes, and keeps what others have set.
-module(settings).
-export([main/0, cart/0, slow/1, fast/1, count/1, other/0]).

main() ->
    process_flag(trap_exit, true),
    [begin Fun(), is_clean(), io:format("~p~n", [Name]) end
     || {Name, Fun} <- [{messages, fun messages/0}, {messages_refused, fun messages_refused/0}, {counters, fun counters/0},
                        {monitored, fun monitored/0}, {later, fun later/0}, {meta, fun meta/0}, {ends, fun ends/0}]],
    io:format("ok~n"),
    halt().

has_sessions() -> code:ensure_loaded(trace) =:= {module, trace}.

%% Nothing is left in the node.
is_clean() ->
    await(fun() ->
                  [{match_spec, true} = erlang:trace_info(K, match_spec) || K <- [send, 'receive']],
                  [{Kind, false} = erlang:trace_info({?MODULE, F, 1}, Kind) || F <- [slow, fast], Kind <- [call_count, call_time]],
                  undefined = erlang:system_monitor()
          end, 100).

await(Fun, 0) -> Fun();
await(Fun, N) -> try Fun() catch _:_ -> timer:sleep(20), await(Fun, N - 1) end.

start(Options) -> tracewheel:start("settings.tw", Options#{force => true}).
shown(Command) -> os:cmd(os:getenv("TRACEWHEEL") ++ " " ++ Command ++ " settings.tw").
lines(Text) -> [L || L <- string:lexemes(shown("print --format dbg"), "\n"), string:find(L, Text) =/= nomatch].

%% ---- messages ----

cart() ->
    receive
        {pay, _, From} -> From ! {paid, self()};
        _ -> ok
    end,
    ?MODULE:cart().

messages() ->
    Cart = spawn_link(?MODULE, cart, []),
    register(cart, Cart),
    [begin
         {ok, _} = start(Options),
         [Cart ! {pay, N, self()} || N <- lists:seq(1, 10)],
         [receive {paid, Cart} -> ok end || _ <- lists:seq(1, 10)],
         cart ! {hello, 1}, Cart ! {hello, 2},
         erlang:port_info(hd(erlang:ports())), io:format("~n"), % ports have messages that no pattern holds for
         {ok, #{lost := 0}} = tracewheel:stop(),
         {Options, Wanted} = {Options, {length(lines(" ! ")), length(lines(" << "))}}
     end || {Options, Wanted} <- [{#{send => "{pay, Id, _} when Id > 7"}, {3, 0}},
                                  {#{send => ["{pay, Id, _} when Id > 7", "cart ! {hello, _}"], 'receive' => <<"{paid, _}">>}, {4, 10}},
                                  {#{send => [{['_', {hello, '_'}], [], []}], processes => self()}, {2, 0}},
                                  {#{'receive' => "fun([Node, From, {pay, Id, _}]) when Id < 3, Node =:= node() -> true end"}, {0, 2}},
                                  %% Without a pattern all of them.
                                  {#{flags => ['receive'], processes => Cart}, {0, 12}}]],
    %% Without their sends it is not known how long they waited.
    Late = shown("why-late"),
    {true, nomatch} = {string:find(Late, "12 messages were taken whose send is not in the capture (-p send): how long they waited is not known") =/= nomatch,
                       string:find(Late, "in the queue")},
    unlink(Cart), exit(Cart, kill),
    [{error, {bad_pattern, Pattern, _}} = start(#{send => Pattern})
     || Pattern <- ["{pay", "a ! b ! c", "shop:pay(X)", "_ -> stack", "X when foo(X)", 7, fun(X) -> X end, <<255>>, "fun([A]) -> 1 end, 2"]],
    {error, {bad_pattern, _, _}} = start(#{'receive' => "cart ! hello"}),
    {error, {bad_option, redact, _}} = start(#{patterns => ["lists:seq/2"], redact => ["a\nb"]}),
    {error, {badarg, _, <<"the expression '(a' of redact: ", _/binary>>}} = start(#{patterns => ["lists:seq/2"], redact => "(a"}).

%% Before OTP 27 there is one pattern for a node; from then on each capture has its own.
messages_refused() ->
    has_sessions() andalso begin
        {ok, _} = start(#{send => "{pay, _}", call_count => "settings:fast"}),
        {ok, _} = tracewheel:start("two.tw", #{name => two, force => true, send => "{hello, _}", call_count => "settings:fast", processes => self()}),
        self() ! {pay, 1}, [self() ! {hello, N} || N <- [1, 2]], fast(1),
        [receive {_, _} -> ok end || _ <- [1, 2, 3]],
        {ok, #{events := 1}} = tracewheel:stop(),
        fast(2),
        {ok, [#{calls := 2}]} = tracewheel:counters(two),
        {ok, #{events := 2}} = tracewheel:stop(two)
    end,
    has_sessions() orelse begin
        Own = [{['_', mine], [], []}],
        erlang:trace_pattern(send, Own, []),
        {error, {cannot_trace, {send, already_set}}} = start(#{send => "_"}),
        {match_spec, Own} = erlang:trace_info(send, match_spec),
        erlang:trace_pattern(send, true, []),
        %% Another has messages that a pattern would take.
        Other = spawn_link(?MODULE, other, []),
        1 = erlang:trace(self(), true, [send, {tracer, Other}]),
        {error, {cannot_trace, {send, {already_traced, _}}}} = start(#{send => "_"}),
        erlang:trace(self(), false, [all]),
        Other ! stop,
        %% Two captures; and the pattern is the first one's, to its end.
        {ok, _} = start(#{send => "{pay, _}", processes => self()}),
        {match_spec, Spec} = erlang:trace_info(send, match_spec),
        {error, {cannot_trace, {send, already_set}}} = tracewheel:start("none.tw", #{name => two, send => "{pay, _}", processes => new}),
        {match_spec, Spec} = erlang:trace_info(send, match_spec),
        {ok, _} = tracewheel:stop()
    end.

other() -> receive stop -> ok end.

%% ---- counters ----

slow(N) -> [fast(X) || X <- lists:seq(1, N)].
fast(X) -> X.
count(N) -> [slow(10) || _ <- lists:seq(1, N)].

counters() ->
    {ok, _} = start(#{call_count => ["settings:slow/1", {?MODULE, fast, 1}]}),
    count(5),
    {ok, [#{function := {?MODULE, fast, 1}, calls := 50}, #{function := {?MODULE, slow, 1}, calls := 5}]} = tracewheel:counters(),
    has_sessions() orelse begin
        {error, {cannot_trace, {{?MODULE, _, _}, {already_counted, call_count}}}} = tracewheel:start("none.tw", #{name => two, call_count => ?MODULE}),
        {call_count, 50} = erlang:trace_info({?MODULE, fast, 1}, call_count)
    end,
    {ok, #{events := 0, counted := 2}} = tracewheel:stop(),
    [true = has_row("report", Row) || Row <- ["50 *90.9 % .*settings:fast/1", "5 * 9.1 % .*settings:slow/1"]],
    {error, not_started} = tracewheel:counters(),
    %% Time, of processes that are traced, beside events and a number.
    {ok, _} = start(#{call_time => "settings:slow", call_count => "settings:fast", patterns => "settings:count/1", processes => self()}),
    count(5),
    spawn_monitor(?MODULE, count, [7]), receive {'DOWN', _, _, _, _} -> ok end,
    Self = self(),
    {ok, Table} = tracewheel:counters(),
    [#{calls := 5, us := Us, processes := [{Self, 5, Us}]}] = [R || #{function := {_, slow, 1}} = R <- Table],
    [#{calls := 120}] = [R || #{function := {_, fast, 1}} = R <- Table],
    {ok, #{events := 1, counted := 2}} = tracewheel:stop(),
    true = has_row("report --sum duration", "5 .*settings:slow/1"),
    {error, {bad_pattern, _, _}} = start(#{call_time => "settings:slow/1 -> return"}),
    {error, {cannot_trace, {no_such_function, _}}} = start(#{call_count => "settings:none/1"}),
    %% Code that is loaded again.
    module(later_a),
    {ok, _} = start(#{call_count => "later_a:f/1"}),
    later_a:f(1),
    module(later_a),
    await(fun() -> {call_count, 0} = counted(later_a) end, 100),
    [later_a:f(N) || N <- [1, 2]],
    {ok, [#{calls := 2}]} = tracewheel:counters(),
    {ok, _} = tracewheel:stop(),
    true = has_row("info", "later_a was loaded again, or its counters removed"),
    memory(erlang:system_info(otp_release) >= "26").

counted(M) ->
    case has_sessions() of
        true -> timer:sleep(150), {call_count, 0};
        false -> erlang:trace_info({M, f, 1}, call_count)
    end.

memory(false) -> {error, {cannot_trace, {call_memory, not_here}}} = start(#{call_memory => "settings:slow/1"});
memory(true) ->
    {ok, _} = start(#{call_memory => "settings:slow/1"}),
    count(5),
    {ok, [#{function := {?MODULE, slow, 1}, calls := 5, words := Words}]} = tracewheel:counters(),
    true = Words >= 5 * 10 * 2,
    {ok, _} = tracewheel:stop().

has_row(Command, Row) -> re:run(unicode:characters_to_binary(shown(Command)), Row, [unicode]) =/= nomatch.

%% ---- system monitors ----

monitored() ->
    {ok, _} = start(#{system_monitor => ["large_heap=100000", busy_port, {long_gc, 10000}]}),
    {Large, Monitor} = spawn_monitor(fun() -> length(lists:seq(1, 300000)) end),
    receive {'DOWN', Monitor, _, _, _} -> ok end,
    has_monitors() orelse begin
        {_, [_, _, _]} = Mine = erlang:system_monitor(),
        {error, {cannot_trace, {system_monitor, {already_set, _}}}} = tracewheel:start("none.tw", #{name => two, system_monitor => busy_port}),
        Mine = erlang:system_monitor()
    end,
    {ok, #{lost := 0, events := Events}} = tracewheel:stop(),
    true = Events > 0,
    true = [] =/= [L || L <- lines(" large_heap "), string:find(L, pid_to_list(Large)) =/= nomatch],
    true = has_row("report", "- +large_heap +" ++ pid_to_list(Large)),
    has_monitors() orelse begin
        %% Another's is neither taken at the start, nor at the end.
        erlang:system_monitor(self(), [{large_heap, 100000000}]),
        {error, {cannot_trace, {system_monitor, {already_set, Self}}}} = start(#{system_monitor => [busy_port]}),
        Self = self(),
        erlang:system_monitor(undefined),
        {ok, _} = start(#{system_monitor => [busy_port]}),
        erlang:system_monitor(self(), [{large_heap, 100000000}]),
        timer:sleep(250),
        {ok, _} = tracewheel:stop(),
        {Self, [_]} = erlang:system_monitor(),
        true = nomatch =/= string:find(shown("info"), "the system monitor ended before the trace"),
        erlang:system_monitor(undefined)
    end,
    [{error, {bad_option, system_monitor, Item}} = start(#{system_monitor => [Item]}) || Item <- [{long_gc, -1}, "long_gc", "gc=1", long_gc, {long_message_queue, {2, 1}}]],
    Queue = start(#{system_monitor => {long_message_queue, {1, 10}}}),
    case erlang:system_info(otp_release) >= "27" of
        true -> {ok, _} = Queue, {ok, _} = tracewheel:stop();
        false -> {error, {cannot_trace, {system_monitor, {not_here, [_]}}}} = Queue
    end.

has_monitors() -> has_sessions() andalso erlang:function_exported(trace, system, 3).

%% ---- each way in which a trace ends ----

ends() ->
    [begin
         Owner = spawn(?MODULE, other, []),
         {ok, _} = start(#{owner => Owner, send => "{pay, _}", call_count => "settings:fast", call_time => "settings:slow", system_monitor => busy_port}),
         has_sessions() orelse ({match_spec, [_]} = erlang:trace_info(send, match_spec)),
         Monitor = monitor(process, tracewheel),
         case How of
             owner -> Owner ! stop;
             server -> exit(whereis(tracewheel), kill);
             recorder -> os:cmd("kill -9 " ++ integer_to_list(recorder()))
         end,
         receive {'DOWN', Monitor, _, _, _} -> ok end,
         is_clean(),
         exit(Owner, kill),
         shown("recover"), % if its recorder could not complete it
         io:format("~p~n", [How])
     end || How <- [owner, server, recorder]].

recorder() ->
    {links, Links} = process_info(whereis(tracewheel), links),
    [Port] = [L || L <- Links, is_port(L)],
    {os_pid, Pid} = erlang:port_info(Port, os_pid),
    Pid.

%% ---- modules that are loaded later, and meta traces ----

later() ->
    [unload(M) || M <- [later_a, later_b, other_c]],
    module(later_a),
    {error, {cannot_trace, {no_such_function, _}}} = start(#{patterns => "later_z*"}),
    {error, {cannot_trace, {no_such_function, _}}} = start(#{patterns => "later_b:f/1"}),
    {error, {bad_pattern, _, _}} = start(#{call_count => "later_*"}),
    [begin
         unload(later_b),
         {ok, _} = start(#{patterns => Patterns, on_load => OnLoad}),
         [later_a:f(N) || N <- [1, 2]],
         [module(M) || M <- [later_b, other_c]],
         await(fun() -> {ok, #{later := 1}} = tracewheel:info() end, 100),
         [later_b:f(N) || N <- [1, 2, 3]],
         other_c:f(1),
         %% It is traced when it is loaded again, too.
         module(later_b),
         await(fun() -> {ok, #{set_again := 1}} = tracewheel:info() end, 100),
         later_b:f(4),
         {ok, #{events := Events, set_again := 1}} = tracewheel:stop(),
         {Patterns, Wanted} = {Patterns, Events},
         true = nomatch =/= string:find(shown("info"), "the module later_b was loaded, and is traced from now on"),
         {traced, false} = erlang:trace_info({later_b, f, 1}, traced)
     end || {Patterns, OnLoad, Wanted} <- [{"later_*:f/1", false, 6}, {["later_b:f/1 -> return"], true, 8}]].

unload(M) -> code:purge(M), code:delete(M), code:purge(M).

module(M) ->
    {ok, M, Code} = compile:forms([{attribute, 1, module, M}, {attribute, 1, export, [{f, 1}]},
                                   {function, 1, f, 1, [{clause, 1, [{var, 1, 'X'}], [], [{var, 1, 'X'}]}]}]),
    code:purge(M),
    {module, M} = code:load_binary(M, "none", Code).

%% A process that another traces is in a meta trace, and its tracer keeps it.
meta() ->
    Other = spawn_link(?MODULE, other, []),
    1 = erlang:trace(self(), true, [call, {tracer, Other}]),
    {ok, _} = start(#{patterns => "settings:fast(X) when X > 2 -> return", scope => meta}),
    slow(5),
    has_sessions() orelse begin
        {error, {cannot_trace, {{?MODULE, fast, 1}, {already_traced, _}}}} = tracewheel:start("none.tw", #{name => two, patterns => "settings:fast", scope => meta}),
        {tracer, Other} = erlang:trace_info(self(), tracer)
    end,
    {ok, #{events := 6, lost := 0}} = tracewheel:stop(),
    [_, _, _] = lines("call settings:fast("),
    [_, _, _] = lines("returned from settings:fast/1"),
    {meta, false} = erlang:trace_info({?MODULE, fast, 1}, meta),
    erlang:trace(self(), false, [all]),
    Other ! stop,
    {ok, _} = start(#{patterns => "settings:slow/1", flags => [call, return_to]}),
    count(2),
    {ok, #{lost := 0}} = tracewheel:stop(),
    [_, _ | _] = lines("returning to").
