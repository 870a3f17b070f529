%% SPDX-License-Identifier: Apache-2.0
%% The helper of `tracewheel record --erlang NODE|PID`: a VM of its own, which gives this application to a running node,
%% starts the trace there, and ends it when its standard input is closed.  The line `snapshot` there asks a flight recorder for one.
%% Of `tracewheel top --erlang`, too: connected to the node, it goes on in tracewheel_top.
%%
%% Arguments (-extra): KEY=VALUE each, as argument/2 has them.  Standard output, a line each:
%%
%%	tracing NODE PATH
%%	elsewhere NODE PATH		the same, of a node that does not see the files of this machine
%%	about TEXT			where it makes the capture
%%	line TEXT			of such a node: a line that is printed
%%	note TEXT			what the trace does not see
%%	snapshot EVENTS PATH	WHY	of a flight recorder
%%	done KEY=VALUE...		the trace has ended, as tracewheel:stop/1 has it
%%	lost PATH			the connection is: the capture is completed there
%%	killed PATH			the process behind the trace was, in the node: as above
%%	failed CODE TEXT		nothing was traced; CODE is an exit code
-module(tracewheel_attach).
-export([main/0]).
-export([start_link/0, address_please/3]).
%% For tracewheel_top.
-export([await_unloaded/2, load/3, reason/3, say/2]).

-import(tracewheel_reach, [fail/2, fail/3, usage/2, shown/1]).

-define(CALL_MS, 60000).
%% In the order in which they can be loaded.
-define(MODULES, [tracewheel_leave, tracewheel_options, tracewheel_processes, tracewheel_pattern, tracewheel_nif, tracewheel_tracer, tracewheel_origins, tracewheel_counters, tracewheel_later, tracewheel_guard, tracewheel_monitor,
                  tracewheel_settings, tracewheel_server, tracewheel]).
-define(NOT_STARTED, 125).
-define(USAGE, 2).

main() ->
    logger:set_primary_config(level, none),
    io:setopts(user, [{encoding, unicode}]),
    Self = self(),
    spawn_link(fun() -> await_end_of_input(Self), Self ! stop end),
    try
        Request = lists:foldl(fun argument/2, #{patterns => [], options => #{}}, init:get_plain_arguments()),
        attach(Request)
    catch
        throw:{failed, Code, Text} -> say("failed ~p ~ts", [Code, lists:join(" ", string:lexemes(Text, "\n"))]);
        Class:Reason:Stack ->
            [{M, F, A, _} | _] = Stack,
            Arity = case A of _ when is_list(A) -> length(A); _ -> A end,
            say("failed ~p the helper VM has a defect (~p ~ts in ~p:~p/~p).", [?NOT_STARTED, Class, kind(Reason), M, F, Arity])
    end,
    halt().

%% Of terms that may hold anything, a secret too, only the kind is told.
kind(Reason) when is_atom(Reason) -> atom_to_list(Reason);
kind(Reason) when is_tuple(Reason), tuple_size(Reason) > 0 -> kind(element(1, Reason));
kind(_) -> "of no name".

%% What another node answers may be long.
brief(Term) -> io_lib:format("~0tp", [Term], [{chars_limit, 400}]).

%% Not to the group leader, which may be another.
say(Format, Arguments) -> io:format(user, Format ++ "~n", Arguments).

argument(Text, Request) ->
    [Key, Value] = string:split(Text, "="),
    argument(Key, Value, Request).

argument("target", V, R) -> R#{target => V};
argument("port", V, R) -> R#{port => list_to_integer(V)};
argument("ssl_opts", V, R) -> R#{ssl_opts => V};
argument("cookie_file", V, R) -> R#{cookie_file => V};
argument("output", V, R) -> R#{path => V};
argument("pattern", V, #{patterns := P} = R) -> R#{patterns := P ++ [V]};
argument("send", V, #{options := O} = R) -> option(send, maps:get(send, O, []) ++ [V], R);
argument("receive", V, #{options := O} = R) -> option('receive', maps:get('receive', O, []) ++ [V], R);
argument("system_monitor", V, #{options := O} = R) -> option(system_monitor, maps:get(system_monitor, O, []) ++ string:lexemes(V, ","), R);
argument("call_" ++ _ = Key, V, #{options := O} = R) ->
    Kind = list_to_atom(Key),
    option(Kind, maps:get(Kind, O, []) ++ [V], R);
argument("process", V, #{options := O} = R) -> option(processes, maps:get(processes, O, []) ++ [V], R);
argument("every", V, #{top := true} = R) -> R#{every => list_to_integer(V)};
argument("top", _, R) -> R#{top => true};
argument("flight", _, R) -> option(flight, true, R);
argument("snapshot_on", V, #{options := O} = R) -> option(snapshot_on, maps:get(snapshot_on, O, []) ++ case V of "none" -> []; "crash" -> [crash]; _ -> [V] end, R);
argument("redact", V, #{options := O} = R) -> option(redact, maps:get(redact, O, []) ++ [V], R);
argument("print", "none", R) -> R#{print => 1 bsl 59};
argument("print", V, R) -> R#{print => list_to_integer(V)};
argument("seq", V, R) -> option(seq, V, R);
argument("recorder", V, R) -> option(recorder, V, R);
argument("flags", V, R) -> option(flags, [flag(F) || F <- string:lexemes(V, ",")], R);
argument("on_full", V, R) -> option(on_full, list_to_atom(V), R);
argument("scope", V, R) -> option(scope, list_to_atom(V), R);
argument("on_load", _, R) -> option(on_load, true, R);
argument("force", _, R) -> option(force, true, R);
argument(Key, "infinity", R) -> option(list_to_atom(Key), infinity, R);
argument(Key, V, R) -> option(list_to_atom(Key), list_to_integer(V), R).

flag(Text) when length(Text) =< 255 -> list_to_atom(Text);
flag(Text) -> usage("'~ts...' is not a flag of erlang:trace/3.", [lists:sublist(Text, 40)]).

option(Key, Value, #{options := O} = R) -> R#{options := O#{Key => Value}}.

attach(#{top := true} = Request) ->
    Checked = tracewheel_top:check(Request),
    tracewheel_top:run(reach(Request), Checked);
attach(Request) ->
    Node = reach(Request),
    Path = case Request of #{path := P} -> P; _ -> filename:absname(atom_to_list(Node) ++ ".tw") end,
    #{options := #{recorder := Recorder}} = Request,
    case tracewheel_elsewhere:shares_files(Node, Recorder) of
        true -> start(Node, Path, Request);
        false -> elsewhere(Node, Path, Recorder, Request)
    end.

reach(Request) ->
    #{node := Node} = Target = tracewheel_reach:find(Request),
    Connected = connect(Target),
    check_node(Connected, Node),
    Node.

%% The node makes the capture where it is, and it comes here at the end.
elsewhere(Node, Path, Recorder, #{options := Options} = Request) ->
    tracewheel_elsewhere:refuse_to_replace(Path, Options),
    Folder = tracewheel_elsewhere:send(Node, Recorder, filename:dirname(tracewheel_options:library(tracewheel_nif))),
    Printing = case Request of
                   #{print := Lines} ->
                       group_leader(spawn_link(fun print_lines/0), self()),
                       #{print => true, lines => Lines};
                   _ -> #{}
               end,
    say("about '~ts' does not see the files of this machine: the capture is made in ~ts there, and comes here at the end.", [Node, Folder]),
    try
        start(Node, Path, Request#{folder => Folder, options := maps:merge(tracewheel_elsewhere:options(Folder, Options), Printing)})
    catch
        throw:Failed ->
            tracewheel_elsewhere:remove(Node, Folder),
            throw(Failed)
    end.

%% The group leader of the trace: lines that are printed there.
print_lines() ->
    receive
        {io_request, From, Tag, {put_chars, _, Lines}} ->
            [say("line ~ts", [L]) || L <- string:split(unicode:characters_to_list(Lines), "\n", all), L =/= ""],
            From ! {io_reply, Tag, ok};
        {io_request, From, Tag, _} -> From ! {io_reply, Tag, {error, enotsup}}
    end,
    print_lines().

%% ---- the connection ----

%% A node without a name of its own, which nobody can connect to: the other one gives it a name.
connect(#{node := Node, host := Host, address := Address, port := Port, cookie := Cookie, source := Source}) ->
    persistent_term:put(?MODULE, {Address, Port}),
    %% A long name wants a host with a domain, and this machine may have none: that of the node is one.
    {Domain, Name} = case lists:member($., Host) of
                         true -> {longnames, list_to_atom("undefined@" ++ lists:sublist(Host, 200))};
                         false -> {shortnames, undefined}
                     end,
    case net_kernel:start(Name, #{name_domain => Domain, dist_listen => false, hidden => true}) of
        {ok, _} -> ok;
        {error, _} -> fail("distribution cannot be started on this machine, by which nodes are reached: `erl -sname x` says why.", [])
    end,
    erlang:set_cookie(Node, Cookie),
    %% It has told its name there: it is of OTP 23 or later, and lets nodes of this host connect.
    net_kernel:hidden_connect_node(Node) =:= true orelse
        fail("'~ts' answers at ~ts, port ~p, and refuses the connection: its cookie is not the one from ~ts (--cookie-file names another file).",
             [Node, shown(Address), Port, Source]),
    erlang:monitor_node(Node, true).

%% In place of erl_epmd (-epmd_module): address and port are known.  The VM asks for each family that it was started with, and takes the
%% one that has an address: only the one that answered does.
start_link() -> ignore.

-define(HANDSHAKE, 6). % since OTP 23
address_please(_Name, _Host, Family) ->
    case persistent_term:get(?MODULE) of
        {{_, _, _, _} = Address, Port} when Family =:= inet -> {ok, Address, Port, ?HANDSHAKE};
        {{_, _, _, _, _, _, _, _} = Address, Port} when Family =:= inet6 -> {ok, Address, Port, ?HANDSHAKE};
        _ -> {error, eafnosupport}
    end.

%% ---- the application there ----

%% Until the trace has begun, an order to stop ends all: await_end/2 has it later.
call(Node, M, F, A) ->
    receive stop -> fail("it was stopped before the trace of '~ts' began.", [Node]) after 0 -> ok end,
    result(Node, M, F, A, rpc:call(Node, M, F, A, ?CALL_MS)).

result(Node, M, F, A, Answer) ->
    case Answer of
        {badrpc, nodedown} -> fail("the connection to '~ts' was lost before the trace began.", [Node]);
        {badrpc, Reason} -> fail("'~ts' does not do ~p:~p/~p: ~ts.", [Node, M, F, length(A), brief(Reason)]);
        Result -> Result
    end.

check_node(true, Node) ->
    case string:to_integer(call(Node, erlang, system_info, [otp_release])) of
        {Release, _} when is_integer(Release), Release >= 25 -> ok;
        {Release, _} -> fail("'~ts' runs OTP ~p; 25 or later is needed.", [Node, Release])
    end.

brought(Request) ->
    ?MODULES ++ [tracewheel_printer || #{options := #{print := true}} <- [Request]] ++
        [tracewheel_flight || #{options := #{flight := true}} <- [Request]].

%% -> the modules that were loaded, and are to be unloaded at the end
load(Node, Modules, Request) ->
    Present = [{M, call(Node, erlang, get_module_info, [M, md5])} || M <- Modules, call(Node, erlang, module_loaded, [M])],
    [case module_md5(M) of
         Md5 -> ok;
         _ -> fail("'~ts' has another version of this application loaded (~ts): trace it there, with tracewheel:start/2, or unload it.",
                   [Node, call(Node, code, which, [M])])
     end || {M, Md5} <- Present],
    Missing = Modules -- [M || {M, _} <- Present],
    try
        [load_one(Node, M, Request) || M <- Missing],
        Missing
    catch
        throw:Failed ->
            catch unload(Node, Missing),
            throw(Failed)
    end.

module_md5(M) ->
    {module, M} = code:ensure_loaded(M),
    erlang:get_module_info(M, md5).

load_one(Node, M, Request) ->
    {M, Binary, Here} = code:get_object_code(M),
    File = case Request of
               #{folder := Folder} -> tracewheel_elsewhere:application_file(Folder, M);
               _ -> Here
           end,
    case call(Node, code, load_binary, [M, filename:absname(File), Binary]) of
        {module, M} -> ok;
        {error, Reason} ->
            fail("'~ts' does not load ~ts: ~ts. Its log has more.", [Node, File, brief(Reason)])
    end.

%% Modules of an earlier trace may be leaving.
await_unloaded(Node, 0) -> fail("'~ts' does not unload the application of an earlier trace.", [Node]);
await_unloaded(Node, N) ->
    call(Node, erlang, whereis, [tracewheel_unload]) =:= undefined orelse begin timer:sleep(50), await_unloaded(Node, N - 1) end.

%% What was loaded twice cannot be deleted before it is purged.
unload(Node, Modules) -> [call(Node, code, F, [M]) || M <- lists:reverse(Modules), F <- [purge, delete, purge]].

start(Node, Path, #{patterns := Patterns, options := Options} = Request) ->
    await_unloaded(Node, 600),
    Loaded = lists:usort(maps:get(loaded, Request, []) ++ load(Node, brought(Request), Request)),
    %% Limits say nothing of owners; with this process the trace ends.
    All = Options#{patterns => Patterns, owner => self(), attached => {self(), Loaded}},
    There = there(Path, Request),
    case begin_trace(Node, [There, All]) of
        {ok, Info} ->
            say("~ts ~ts ~ts", [case There of Path -> "tracing"; _ -> "elsewhere" end, Node, Path]),
            case Info of
                #{other_tracer := N, others := Whose} when N > 0 ->
                    say("note ~p ~ts another tracer in '~ts' (~ts): ~ts events are not recorded.",
                        [N, plural(N, "process or port has", "processes and ports have"), Node, Whose, plural(N, "its", "their")]);
                _ -> ok
            end,
            monitor(process, {tracewheel, Node}),
            await_end(Node, Path, Request);
        unloading -> start(Node, Path, Request#{loaded => Loaded});
        {error, Reason} ->
            {Code, Text} = reason(Node, There, Reason),
            catch call(Node, tracewheel_leave, leave, [Loaded]),
            catch await_unloaded(Node, 600),
            fail(Code, "~ts", [Text])
    end.

%% The modules that were found there may have left since, with an earlier trace.
begin_trace(Node, Arguments) ->
    case rpc:call(Node, tracewheel, start, Arguments, ?CALL_MS) of
        {error, unloading} -> unloading;
        {badrpc, {'EXIT', {undef, [{M, _, _, _} | _]}}} = Answer ->
            case lists:member(M, ?MODULES) of
                true -> unloading;
                false -> result(Node, tracewheel, start, Arguments, Answer)
            end;
        Answer -> result(Node, tracewheel, start, Arguments, Answer)
    end.

await_end_of_input(Main) ->
    case io:get_line("") of
        "snapshot" ++ _ ->
            Main ! snapshot,
            await_end_of_input(Main);
        "reset" ++ _ ->
            Main ! reset,
            await_end_of_input(Main);
        Line when is_list(Line); is_binary(Line) -> await_end_of_input(Main);
        _ -> ok
    end.

there(_, #{folder := Folder}) -> filename:join(Folder, "capture.tw");
there(Path, _) -> Path.

await_end(Node, Path, Request) ->
    receive
        stop ->
            rpc:cast(Node, tracewheel, stop, []),
            await_end(Node, Path, Request);
        snapshot ->
            rpc:cast(Node, tracewheel, snapshot, []),
            await_end(Node, Path, Request);
        {tracewheel_server, snapshot, {ok, File}, Events, Reason} ->
            say("snapshot ~p ~ts\t~ts", [Events, bring_snapshot(Node, File, Path, Request), Reason]),
            await_end(Node, Path, Request);
        {tracewheel_server, snapshot, {error, Why}, _, _} ->
            say("note no snapshot was written: ~ts.", [Why]),
            await_end(Node, Path, Request);
        {tracewheel_server, ended, Info} ->
            catch await_unloaded(Node, 600),
            bring(Node, Path, Request),
            say("done ~ts", [lists:join(" ", [io_lib:format("~p=~p", [K, V]) || {K, V} <- maps:to_list(Info), is_number(V) orelse is_atom(V)])]);
        {nodedown, Node} -> broken("lost", Node, Path, Request);
        {'DOWN', _, process, _, noconnection} -> await_end(Node, Path, Request);
        {'DOWN', _, process, _, _} -> broken("killed", Node, Path, Request)
    end.

%% Each as it comes: the first free one of NAME.tw, NAME-2.tw, ..., as the recorder names them.
bring_snapshot(Node, File, Path, #{folder := _}) ->
    Free = tracewheel_elsewhere:free_path(Path),
    case catch tracewheel_elsewhere:bring(Node, File, Free, #{}) of
        ok -> Free;
        {failed, _, Text} ->
            say("note ~ts", [Text]),
            File
    end;
bring_snapshot(_, File, _, _) -> File.

bring(Node, _, #{folder := Folder, options := #{flight := true}}) -> tracewheel_elsewhere:remove(Node, Folder);
bring(Node, Path, #{folder := Folder, options := Options} = Request) ->
    case catch tracewheel_elsewhere:bring(Node, there(Path, Request), Path, Options) of
        {failed, _, Text} ->
            say("failed 1 ~ts", [Text]),
            halt();
        ok -> tracewheel_elsewhere:remove(Node, Folder)
    end;
bring(_, _, _) -> ok.

%% What was sent to a node elsewhere stays beside the capture.
broken(How, Node, Path, Request) ->
    case there(Path, Request) of
        Path -> say("~ts ~ts", [How, Path]);
        There when is_map_key(flight, map_get(options, Request)) -> say("~ts the folder ~ts at '~ts' stays there", [How, filename:dirname(There), Node]);
        There -> say("~ts ~ts at '~ts', which stays there", [How, There, Node])
    end.

%% What tracewheel:start/2 answers, as a sentence.
reason(Node, _, {already_started, _}) ->
    {?NOT_STARTED, io_lib:format("'~ts' is being traced already; tracewheel:stop() there ends that.", [Node])};
reason(_, _, {eexist, Path, <<"it exists", _/binary>>}) ->
    {?NOT_STARTED, io_lib:format("'~ts' exists; --force replaces it, -o names another.", [Path])};
reason(Node, _, {enospc, Path, _}) ->
    {?NOT_STARTED, io_lib:format("'~ts' cannot be made by '~ts': no space on its disk, or in /dev/shm for the rings; --ring 64K needs less.",
                                 [Path, Node])};
reason(Node, _, {Error, Path, Text}) when is_atom(Error), is_binary(Text) ->
    {?NOT_STARTED, io_lib:format("'~ts' cannot be made by '~ts': ~ts.", [Path, Node, Text])};
reason(Node, _, {no_recorder, {exit_status, 127}}) ->
    {?NOT_STARTED, io_lib:format("'~ts' cannot run this command: its C library is another, or older, than that of this machine.", [Node])};
reason(_, _, {bad_pattern, Pattern, Why}) -> {?USAGE, io_lib:format("the pattern '~ts' is refused: ~ts.", [text(Pattern), text(Why)])};
reason(Node, _, {cannot_trace, {Kind, already_set}}) ->
    {?NOT_STARTED, io_lib:format("'~ts' has a pattern for messages (~ts) already, and before OTP 27 it has one.", [Node, Kind])};
reason(Node, _, {cannot_trace, {system_monitor, {already_set, Whose}}}) ->
    {?NOT_STARTED, io_lib:format("~0tp is the system monitor of '~ts' already, and before OTP 28 it has one.", [Whose, Node])};
reason(Node, _, {cannot_trace, {system_monitor, {not_here, Items}}}) ->
    {?USAGE, io_lib:format("'~ts' has no such system events (long_message_queue: from OTP 27 on): ~0tp.", [Node, Items])};
reason(_, _, {bad_option, seq, without_patterns}) -> {?USAGE, "--seq wants -t PATTERN: the function with whose calls requests begin."};
reason(_, _, {bad_option, seq, Label}) -> {?USAGE, io_lib:format("'~ts' is no label (--seq): write an atom, an integer, or a variable of the pattern's arguments.", [text(Label)])};
reason(Node, _, {cannot_trace, {seq_trace, {already_traced, Whose}}}) ->
    {?NOT_STARTED, io_lib:format("'~ts' has a system tracer of seq_trace already (~0tp), and a node has one.", [Node, Whose])};
reason(_, _, {bad_option, system_monitor, Item}) ->
    {?USAGE, io_lib:format("--system-monitor '~ts' is none: write long_gc=MS, long_schedule=MS, large_heap=WORDS, busy_port, busy_dist_port, "
                           "long_message_queue=DISABLE:ENABLE.", [text(Item)])};
reason(Node, _, {cannot_trace, {{M, F, A}, {already_counted, Kind}}}) ->
    {?NOT_STARTED, io_lib:format("another counts ~ts:~ts/~p of '~ts' (~ts) already, and before OTP 27 a function has one counter.", [M, F, A, Node, Kind])};
reason(Node, _, {cannot_trace, {call_memory, not_here}}) ->
    {?USAGE, io_lib:format("'~ts' does not count memory: OTP 26 or later does.", [Node])};
reason(_, _, {bad_flag, Flag}) -> {?USAGE, io_lib:format("'~ts' is not a flag of erlang:trace/3.", [Flag])};
reason(Node, _, {bad_option, snapshot_on, What}) ->
    {?USAGE, io_lib:format("--snapshot-on '~ts' is none of '~ts': write crash, none, or processes that there are.", [text(What), Node])};
reason(_, _, {bad_option, Key, Value}) -> {?USAGE, io_lib:format("~0tp is not a value of ~ts.", [Value, Key])};
reason(Node, _, {no_process, What}) -> {?USAGE, io_lib:format("'~ts' has no process '~ts' (--process, --snapshot-on).", [Node, text(What)])};
reason(_, _, {bad_process, What}) -> {?USAGE, io_lib:format("'~ts' is not a process of the node (--process).", [text(What)])};
reason(Node, _, {cannot_trace, {no_such_function, {M, F, A}}}) ->
    {?USAGE, io_lib:format("'~ts' has no function ~ts:~ts/~ts (--on-load: it may come later).", [Node, modules(M), text(F), text(A)])};
reason(Node, _, {cannot_trace, {Who, {already_traced, Tracer}}}) when is_list(Tracer) ->
    {?NOT_STARTED, io_lib:format("~ts traces ~0tp of '~ts' already, and before OTP 27 a process has one tracer.", [Tracer, Who, Node])};
reason(Node, _, {cannot_trace, {Who, already_traced}}) ->
    {?NOT_STARTED, io_lib:format("another tracer has ~0tp of '~ts'.", [Who, Node])};
reason(Node, _, Reason) -> {?NOT_STARTED, io_lib:format("'~ts' does not start the trace: ~ts.", [Node, brief(Reason)])}.

plural(1, One, _) -> One;
plural(_, _, Many) -> Many.

modules({modules, Wildcard}) -> Wildcard;
modules(M) -> M.

text('_') -> "_";
text(T) when is_list(T) -> T;
text(T) -> io_lib:format("~0tp", [T]).
