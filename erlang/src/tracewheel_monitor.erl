%% SPDX-License-Identifier: Apache-2.0
%% System events of the node in a capture: option system_monitor of tracewheel:start/2, as of erlang:system_monitor/2.
%%
%%	{long_gc, Ms}, {long_schedule, Ms}, {large_heap, Words}, busy_port, busy_dist_port
%%	{long_message_queue, {Disable, Enable}}		from OTP 27 on
%%	"long_gc=10", "long_message_queue=100:1000"	the same as text
%%
%% The VM sends them to a process of this module, which hands each to the tracer module: so they are in the order and at the time in which
%% it takes them.  Before OTP 28 a node has one system monitor: another's is not replaced.
-module(tracewheel_monitor).
-export([check/1, start/1, stop/0, lost/0]).
-export([init/3, loop/2]).

%% So many messages may wait; with more, the monitor ends.
-define(QUEUE_MAX, 10000).
-define(START_MS, 5000).

%% -> a list as erlang:system_monitor/2 takes it; throws {bad_option, system_monitor, Item}
check([C | _] = Text) when is_integer(C) -> check([Text]);
check(Items) when is_list(Items) -> [item(I) || I <- Items];
check(Item) -> check([Item]).

item(I) when I =:= busy_port; I =:= busy_dist_port -> I;
item({Event, N} = I) when is_integer(N), N >= 0, (Event =:= long_gc orelse Event =:= long_schedule orelse Event =:= large_heap) -> I;
item({long_message_queue, {Disable, Enable}} = I) when is_integer(Disable), is_integer(Enable), 0 =< Disable, Disable < Enable -> I;
item([C | _] = Text) when is_integer(C) ->
    try
        case {string:split(Text, "="), string:lexemes(Text, "=:")} of
            {["busy_port"], _} -> busy_port;
            {["busy_dist_port"], _} -> busy_dist_port;
            {_, ["long_message_queue", Disable, Enable]} -> item({long_message_queue, {list_to_integer(Disable), list_to_integer(Enable)}});
            {[Event, N], _} -> item({list_to_existing_atom(Event), list_to_integer(N)})
        end
    catch
        _:_ -> throw({bad_option, system_monitor, Text})
    end;
item(I) -> throw({bad_option, system_monitor, I}).

%% ---- by a server ----

start(#{system_monitor := []}) -> ok;
start(#{system_monitor := Items, capture := Capture}) ->
    {Pid, Monitor} = spawn_opt(?MODULE, init, [self(), Capture, Items], [link, monitor, {priority, high}]),
    receive
        {Pid, ok} ->
            demonitor(Monitor, [flush]),
            put(?MODULE, Pid);
        {'DOWN', Monitor, _, _, Reason} -> error({cannot_trace, {system_monitor, Reason}})
    after ?START_MS -> error({cannot_trace, {system_monitor, timeout}})
    end.

%% What the VM has sent is in the capture then.
stop() ->
    case erase(?MODULE) of
        undefined -> ok;
        Pid ->
            Monitor = monitor(process, Pid),
            Pid ! {?MODULE, stop},
            receive {'DOWN', Monitor, _, _, _} -> ok after ?START_MS -> exit(Pid, kill) end
    end.

%% Has it ended before the trace, as another was set or it was asked too much?  Says so once.
lost() ->
    case get(?MODULE) of
        undefined -> false;
        Pid ->
            IsLost = not is_process_alive(Pid) orelse not (has_sessions() orelse is_mine(Pid)),
            IsLost andalso stop(),
            IsLost
    end.

has_sessions() -> tracewheel_settings:ensure_loaded(trace) =:= {module, trace} andalso erlang:function_exported(trace, system, 3).

is_mine(Pid) ->
    case erlang:system_monitor() of
        {Pid, _} -> true;
        _ -> false
    end.

%% ---- the process: what it does is not traced ----

init(Server, Capture, Items) ->
    process_flag(sensitive, true),
    case has_sessions() of
        true ->
            Session = trace:session_create(?MODULE, self(), []),
            [trace:system(Session, Event, Value) || Item <- Items, {Event, Value} <- [pair(Item)]],
            put(session, Session);
        false -> set(Items, erlang:system_monitor())
    end,
    Server ! {self(), ok},
    loop(Capture, 0).

pair({Event, Value}) -> {Event, Value};
pair(Event) -> {Event, true}.

set(Items, undefined) ->
    try erlang:system_monitor(self(), Items) of
        undefined -> ok;
        Other -> % it came in between
            erlang:system_monitor(Other),
            exit({already_set, element(1, Other)})
    catch
        error:badarg -> exit({not_here, Items})
    end;
set(_, {Other, _}) -> exit({already_set, Other}).

%% It sleeps in no code of this module, which may be loaded again.
loop(Capture, Count) ->
    receive
        {monitor, Item, Event, Info} ->
            tracewheel_tracer:trace(monitor, Capture, Item, Event, #{extra => Info}),
            Count rem 64 =/= 0 orelse is_too_long() andalso exit(too_many),
            loop(Capture, Count + 1);
        {?MODULE, stop} ->
            unset(get(session)),
            drain(Capture)
    after 0 -> erlang:hibernate(?MODULE, loop, [Capture, Count])
    end.

is_too_long() -> element(2, process_info(self(), message_queue_len)) > ?QUEUE_MAX.

unset(undefined) -> is_mine(self()) andalso erlang:system_monitor(undefined);
unset(Session) -> trace:session_destroy(Session).

drain(Capture) ->
    receive
        {monitor, Item, Event, Info} ->
            tracewheel_tracer:trace(monitor, Capture, Item, Event, #{extra => Info}),
            drain(Capture)
    after 0 -> ok
    end.
