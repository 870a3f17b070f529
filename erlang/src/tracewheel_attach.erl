%% SPDX-License-Identifier: Apache-2.0
%% The helper of `tracewheel record --erlang NODE|PID`: a VM of its own, which gives this application to a running node of this machine,
%% starts the trace there, and ends it when its standard input is closed.
%%
%% Arguments (-extra): KEY=VALUE each, as argument/2 has them.  Standard output, a line each:
%%
%%	tracing NODE PATH
%%	done KEY=VALUE...		the trace has ended, as tracewheel:stop/1 has it
%%	lost PATH			the connection is: the capture is completed there
%%	killed PATH			the process behind the trace was, in the node: as above
%%	failed CODE TEXT		nothing was traced; CODE is an exit code
-module(tracewheel_attach).
-export([main/0]).
-export([start_link/0, address_please/3]).

-define(CALL_MS, 60000).
-define(EPMD_PORT, 4369).
%% In the order in which they can be loaded.
-define(MODULES, [tracewheel_options, tracewheel_pattern, tracewheel_nif, tracewheel_tracer, tracewheel_server, tracewheel]).
-define(NOT_STARTED, 125).
-define(USAGE, 2).

main() ->
    logger:set_primary_config(level, none),
    io:setopts([{encoding, unicode}]),
    try
        Request = lists:foldl(fun argument/2, #{patterns => [], options => #{}}, init:get_plain_arguments()),
        attach(Request)
    catch
        throw:{failed, Code, Text} -> say("failed ~p ~ts", [Code, lists:join(" ", string:lexemes(Text, "\n"))]);
        Class:Reason:Stack -> say("failed ~p ~0tp", [?NOT_STARTED, {Class, Reason, hd(Stack)}])
    end,
    halt().

say(Format, Arguments) -> io:format(Format ++ "~n", Arguments).
fail(Format, Arguments) -> fail(?NOT_STARTED, Format, Arguments).
fail(Code, Format, Arguments) -> throw({failed, Code, lists:flatten(io_lib:format(Format, Arguments))}).

argument(Text, Request) ->
    [Key, Value] = string:split(Text, "="),
    argument(Key, Value, Request).

argument("target", V, R) -> R#{target => V};
argument("cookie_file", V, R) -> R#{cookie_file => V};
argument("output", V, R) -> R#{path => V};
argument("pattern", V, #{patterns := P} = R) -> R#{patterns := P ++ [V]};
argument("recorder", V, R) -> option(recorder, V, R);
argument("flags", V, R) -> option(flags, [list_to_atom(F) || F <- string:lexemes(V, ",")], R);
argument("on_full", V, R) -> option(on_full, list_to_atom(V), R);
argument("scope", V, R) -> option(scope, list_to_atom(V), R);
argument("force", _, R) -> option(force, true, R);
argument(Key, "infinity", R) -> option(list_to_atom(Key), infinity, R);
argument(Key, V, R) -> option(list_to_atom(Key), list_to_integer(V), R).

option(Key, Value, #{options := O} = R) -> R#{options := O#{Key => Value}}.

attach(Request) ->
    #{node := Node} = Target = target(Request),
    Connected = connect(Target, cookie(Request, Target)),
    check_node(Connected, Node, Request),
    Path = case Request of #{path := P} -> P; _ -> filename:absname(atom_to_list(Node) ++ ".tw") end,
    start(Node, Path, Request).

%% ---- which node ----

%% -> #{node, name, host} and epmd, or port; of a process also cookie or home
target(#{target := Text}) ->
    case string:to_integer(Text) of
        {Pid, ""} -> process(Pid);
        _ -> named(Text, #{epmd => epmd_port()})
    end.

epmd_port() ->
    case init:get_argument(epmd_port) of
        {ok, [[Port | _] | _]} -> list_to_integer(Port);
        _ -> ?EPMD_PORT
    end.

named(Text, Target) ->
    case string:split(Text, "@") of
        [[_ | _] = Name, [_ | _] = Host] -> Target#{node => list_to_atom(Text), name => Name, host => Host};
        [[_ | _]] ->
            {ok, Host} = inet:gethostname(),
            named(Text ++ "@" ++ hd(string:split(Host, ".")), Target);
        _ -> fail(?USAGE, "'~ts' is neither the name of a node nor the number of a process.", [Text])
    end.

%% The name of a VM may have been set after its start: the port that epmd has for it is one that the process listens at, and there it tells
%% its name.  It may have its cookie among its arguments; else its user's file has it.
process(Pid) ->
    Folder = "/proc/" ++ integer_to_list(Pid),
    Arguments = case file:read_file(Folder ++ "/cmdline") of
                    {ok, Line} -> [unicode:characters_to_list(A) || A <- binary:split(Line, <<0>>, [global])];
                    {error, _} -> fail("there is no process ~p.", [Pid])
                end,
    %% Behind a loader, in some packages.
    case [A || A <- lists:sublist(Arguments, 8), lists:prefix("beam", filename:basename(A))] of
        [_ | _] -> ok;
        [] -> fail("process ~p is not an Erlang VM: it runs ~ts.", [Pid, hd(Arguments)])
    end,
    Epmd = case value_of("-epmd_port", Arguments) of none -> ?EPMD_PORT; Port -> list_to_integer(Port) end,
    Known = case names("localhost", Epmd) of
                {error, _} -> [];
                Names -> Names
            end,
    case [{Address, Number} || {Address, Number} <- listens_at(Pid, Folder), lists:keymember(Number, 2, Known)] of
        [{Where, Own} | _] ->
            Cookie = [{cookie, C} || C <- [value_of("-setcookie", Arguments)], C =/= none],
            Home = [{home, H} || H <- [value_of("-home", Arguments)], H =/= none],
            named(ask_name(Pid, Where, Own), maps:from_list([{port, Own}, {address, Where} | Cookie ++ Home]));
        [] ->
            fail("process ~p is an Erlang VM without a name that epmd (port ~p) knows. "
                 "net_kernel:start/2 in its shell gives it a name, or tracewheel:start/2 there traces it.", [Pid, Epmd])
    end.

%% -> [{Address, Port}] of TCP sockets of the process.
listens_at(Pid, Folder) ->
    Descriptors = case file:list_dir(Folder ++ "/fd") of
                      {ok, L} -> L;
                      {error, Reason} ->
                          fail("the descriptors of process ~p, which tell where it listens, cannot be read (~ts): run this as its user or as root, "
                               "or give the node's name.", [Pid, file:format_error(Reason)])
                  end,
    Sockets = [lists:sublist(Link, 9, length(Link) - 9)
               || D <- Descriptors, {ok, "socket:[" ++ _ = Link} <- [file:read_link(filename:join([Folder, "fd", D]))]],
    [{address(Address), list_to_integer(Port, 16)}
     || File <- ["/net/tcp", "/net/tcp6"], {ok, Text} <- [file:read_file(Folder ++ File)], Line <- string:lexemes(binary_to_list(Text), "\n"),
        [_, Local, _, "0A", _, _, _, _, _, Inode | _] <- [string:lexemes(Line, " ")], lists:member(Inode, Sockets),
        [Address, Port] <- [string:split(Local, ":")]].

%% As the kernel writes it: words of 32 bits, each from its last byte to its first.  What listens at all addresses has that of loopback, too.
address(Hex) ->
    Words = [list_to_integer(lists:sublist(Hex, At, 8), 16) || At <- lists:seq(1, length(Hex), 8)],
    case << <<W:32/little>> || W <- Words >> of
        <<0:32>> -> {127, 0, 0, 1};
        <<0:128>> -> {127, 0, 0, 1};
        <<A, B, C, D>> -> {A, B, C, D};
        IPv6 -> list_to_tuple([Part || <<Part:16>> <= IPv6])
    end.

%% The first messages of the distribution's handshake: a node answers our name with its own, before any cookie.
-define(FLAGS, 16#d07df7fbc). % what OTP 27 offers; the connection ends before any of it is used
ask_name(Pid, Address, Port) ->
    Ours = "tracewheel" ++ os:getpid() ++ "@localhost",
    Name = try
               {ok, Socket} = gen_tcp:connect(Address, Port, [binary, {active, false}, {packet, 2}], 5000),
               ok = gen_tcp:send(Socket, <<$N, ?FLAGS:64, 1:32, (length(Ours)):16, (list_to_binary(Ours))/binary>>),
               {ok, <<"sok">>} = gen_tcp:recv(Socket, 0, 5000),
               {ok, <<$N, _:64, _:32, _:32, Length:16, Text:Length/binary, _/binary>>} = gen_tcp:recv(Socket, 0, 5000),
               gen_tcp:close(Socket),
               binary_to_list(Text)
           catch error:{badmatch, _} -> none
           end,
    Name =/= none orelse fail("process ~p does not tell its name, at port ~p: it is older than OTP 23, or its distribution is by TLS.", [Pid, Port]),
    Name.

value_of(Key, [Key, Value | _]) -> Value;
value_of(Key, [_ | Rest]) -> value_of(Key, Rest);
value_of(_, []) -> none.

%% -> {Cookie, where it was found}
cookie(#{cookie_file := File}, _) -> read_cookie(File);
cookie(_, #{cookie := Cookie}) -> {list_to_atom(Cookie), "the process' arguments"};
cookie(_, #{home := Home}) -> read_cookie(filename:join(Home, ".erlang.cookie"));
cookie(_, _) ->
    {ok, [[Home]]} = init:get_argument(home),
    read_cookie(filename:join(Home, ".erlang.cookie")).

read_cookie(File) ->
    case file:read_file(File) of
        {ok, Text} -> {list_to_atom(string:trim(binary_to_list(Text))), File};
        {error, Reason} -> fail("the cookie cannot be read from ~ts: ~ts; --cookie-file names another file.", [File, file:format_error(Reason)])
    end.

%% ---- the connection ----

%% A node without a name of its own, which nobody can connect to: the other one gives it a name.
connect(#{node := Node, host := Host} = Target, {Cookie, Source}) ->
    Port = port(Target),
    Where = maps:get(address, Target, Host),
    persistent_term:put(?MODULE, {Where, Port}),
    Domain = case lists:member($., Host) of true -> longnames; false -> shortnames end,
    case net_kernel:start(undefined, #{name_domain => Domain, dist_listen => false, hidden => true}) of
        {ok, _} -> ok;
        {error, Why} -> fail("distribution cannot be started here: ~0tp.", [Why])
    end,
    erlang:set_cookie(Node, Cookie),
    net_kernel:hidden_connect_node(Node) =:= true orelse refused(Node, Where, Port, Source),
    erlang:monitor_node(Node, true).

%% In place of erl_epmd (-epmd_module): the port is known, and of a process the address. IPv4 is asked for first.
start_link() -> ignore.

-define(HANDSHAKE, 6). % since OTP 23
address_please(_Name, _Host, Family) ->
    {Where, Port} = persistent_term:get(?MODULE),
    case inet:getaddr(Where, Family) of
        {ok, Address} -> {ok, Address, Port, ?HANDSHAKE};
        Error -> Error
    end.

refused(Node, Where, Port, Source) ->
    case gen_tcp:connect(Where, Port, [family(Where)], 5000) of
        {ok, _} ->
            fail("'~ts' refuses the connection: its cookie is not the one from ~ts (--cookie-file names another file), it is older than "
                 "OTP 23, or its distribution is by TLS.", [Node, Source]);
        {error, Reason} ->
            fail("'~ts' does not answer at ~ts, port ~p (~ts): it listens at another address, which the number of its process finds.",
                 [Node, shown(Where), Port, inet:format_error(Reason)])
    end.

shown(Where) when is_tuple(Where) -> inet:ntoa(Where);
shown(Where) -> Where.

family(Where) ->
    case inet:getaddr(Where, inet) of
        {ok, _} -> inet;
        {error, _} -> inet6
    end.

%% epmd is asked here: a process may have another one than ours.
port(#{port := Port}) -> Port;
port(#{node := Node, name := Name, host := Host, epmd := Epmd}) ->
    case names(Host, Epmd) of
        {error, Reason} ->
            fail("no epmd answers on ~ts, port ~p (~ts): no node with a name runs there, or ERL_EPMD_PORT is another.",
                 [Host, Epmd, inet:format_error(Reason)]);
        Names ->
            case lists:keyfind(Name, 1, Names) of
                {_, Port} -> Port;
                false -> fail("there is no node '~ts'; epmd on ~ts knows ~ts.", [Node, Host, known(Names)])
            end
    end.

known([]) -> "none";
known(Names) -> lists:join(", ", [N || {N, _} <- Names]).

%% The request NAMES_REQ of epmd's protocol.
names(Host, Epmd) ->
    case gen_tcp:connect(Host, Epmd, [family(Host), binary, {active, false}], 5000) of
        {ok, Socket} ->
            ok = gen_tcp:send(Socket, <<1:16, $n>>),
            Answer = read_all(Socket, <<>>),
            gen_tcp:close(Socket),
            [{Name, list_to_integer(Port)}
             || <<_:32, Text/binary>> <- [Answer], Line <- string:lexemes(binary_to_list(Text), "\n"),
                ["name", Name, "at", "port", Port] <- [string:lexemes(Line, " ")]];
        {error, Reason} -> {error, Reason}
    end.

read_all(Socket, Read) ->
    case gen_tcp:recv(Socket, 0, 5000) of
        {ok, More} -> read_all(Socket, <<Read/binary, More/binary>>);
        {error, _} -> Read
    end.

%% ---- the application there ----

call(Node, M, F, A) ->
    result(Node, M, F, A, rpc:call(Node, M, F, A, ?CALL_MS)).

result(Node, M, F, A, Answer) ->
    case Answer of
        {badrpc, nodedown} -> fail("the connection to '~ts' was lost before the trace began.", [Node]);
        {badrpc, Reason} -> fail("'~ts' does not do ~p:~p/~p: ~0tp.", [Node, M, F, length(A), Reason]);
        Result -> Result
    end.

check_node(true, Node, #{options := #{recorder := Recorder}}) ->
    case string:to_integer(call(Node, erlang, system_info, [otp_release])) of
        {Release, _} when is_integer(Release), Release >= 25 -> ok;
        {Release, _} -> fail("'~ts' runs OTP ~p; 25 or later is needed.", [Node, Release])
    end,
    [call(Node, filelib, is_regular, [File]) orelse
         fail("'~ts' does not see ~ts: it runs on another machine, in a container, or as a user who may not read it. "
              "Start the trace where it runs, as a user whom both can read.", [Node, File])
     || File <- [Recorder, tracewheel_options:library(tracewheel_nif) ++ ".so"]].

%% -> the modules that were loaded, and are to be unloaded at the end
load(Node) ->
    Present = [{M, call(Node, erlang, get_module_info, [M, md5])} || M <- ?MODULES, call(Node, erlang, module_loaded, [M])],
    [case module_md5(M) of
         Md5 -> ok;
         _ -> fail("'~ts' has another version of this application loaded (~ts): trace it there, with tracewheel:start/2, or unload it.",
                   [Node, call(Node, code, which, [M])])
     end || {M, Md5} <- Present],
    Missing = ?MODULES -- [M || {M, _} <- Present],
    [load(Node, M, Missing) || M <- Missing],
    Missing.

module_md5(M) ->
    {module, M} = code:ensure_loaded(M),
    erlang:get_module_info(M, md5).

load(Node, M, Missing) ->
    {M, Binary, File} = code:get_object_code(M),
    case call(Node, code, load_binary, [M, filename:absname(File), Binary]) of
        {module, M} -> ok;
        {error, Reason} ->
            unload(Node, Missing),
            fail("'~ts' does not load ~ts: ~0tp. Its log has more.", [Node, File, Reason])
    end.

%% Modules of an earlier trace may be leaving.
await_unloaded(Node, 0) -> fail("'~ts' does not unload the application of an earlier trace.", [Node]);
await_unloaded(Node, N) ->
    call(Node, erlang, whereis, [tracewheel_unload]) =:= undefined orelse begin timer:sleep(50), await_unloaded(Node, N - 1) end.

%% What was loaded twice cannot be deleted before it is purged.
unload(Node, Modules) -> [call(Node, code, F, [M]) || M <- lists:reverse(Modules), F <- [purge, delete, purge]].

start(Node, Path, #{patterns := Patterns, options := Options} = Request) ->
    await_unloaded(Node, 600),
    Loaded = lists:usort(maps:get(loaded, Request, []) ++ load(Node)),
    %% Limits say nothing of owners; with this process the trace ends.
    All = Options#{patterns => Patterns, owner => self(), attached => {self(), Loaded}},
    case begin_trace(Node, [Path, All]) of
        {ok, _} ->
            say("tracing ~ts ~ts", [Node, Path]),
            monitor(process, {tracewheel, Node}),
            Self = self(),
            spawn_link(fun() -> await_end_of_input(), Self ! stop end),
            await_end(Node, Path);
        unloading -> start(Node, Path, Request#{loaded => Loaded});
        {error, Reason} ->
            {Code, Text} = reason(Node, Path, Reason),
            catch call(Node, tracewheel_server, leave, [Loaded]),
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

await_end_of_input() ->
    case io:get_line("") of
        Line when is_list(Line); is_binary(Line) -> await_end_of_input();
        _ -> ok
    end.

await_end(Node, Path) ->
    receive
        stop ->
            rpc:cast(Node, tracewheel, stop, []),
            await_end(Node, Path);
        {tracewheel_server, ended, Info} ->
            catch await_unloaded(Node, 600),
            say("done ~ts", [lists:join(" ", [io_lib:format("~p=~p", [K, V]) || {K, V} <- maps:to_list(Info), is_number(V) orelse is_atom(V)])]);
        {nodedown, Node} -> say("lost ~ts", [Path]);
        {'DOWN', _, process, _, noconnection} -> await_end(Node, Path);
        {'DOWN', _, process, _, _} -> say("killed ~ts", [Path])
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
reason(_, _, {bad_pattern, Pattern, Why}) -> {?USAGE, io_lib:format("-t '~ts' is refused: ~ts.", [Pattern, text(Why)])};
reason(_, _, {bad_flag, Flag}) -> {?USAGE, io_lib:format("'~ts' is not a flag of erlang:trace/3.", [Flag])};
reason(_, _, {bad_option, Key, Value}) -> {?USAGE, io_lib:format("~0tp is not a value of ~ts.", [Value, Key])};
reason(Node, _, {cannot_trace, {no_such_function, {M, F, A}}}) ->
    {?USAGE, io_lib:format("'~ts' has no function ~ts:~ts/~ts.", [Node, M, text(F), text(A)])};
reason(Node, _, {cannot_trace, {Who, already_traced}}) ->
    {?NOT_STARTED, io_lib:format("another tracer has ~0tp of '~ts'.", [Who, Node])};
reason(Node, _, Reason) -> {?NOT_STARTED, io_lib:format("'~ts' does not start the trace: ~0tp.", [Node, Reason])}.

text('_') -> "_";
text(T) when is_list(T) -> T;
text(T) -> io_lib:format("~0tp", [T]).
