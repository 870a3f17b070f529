%% SPDX-License-Identifier: Apache-2.0
%% Where the node is that tracewheel_attach connects to: its name, the address and port at which it answers, and its cookie.
%%
%% Nothing is taken on trust: a host has addresses of two families, epmd and node may listen at one of them only, and the port may be
%% another program's.  Each address is asked, by the first messages of the distribution's handshake: a node answers any name with its
%% own, before any cookie.
-module(tracewheel_reach).
-export([find/1, shown/1, fail/2, fail/3, usage/2]).

-include_lib("kernel/include/file.hrl").

-define(EPMD_PORT, 4369).
-define(NOT_STARTED, 125).
-define(USAGE, 2).
-define(ANSWER_MS, 5000).
-define(ATOM_MAX, 255). % characters
-define(NAMES_MAX, 1048576). % bytes, of epmd's answer
-define(COOKIE_FILE_MAX, 4096). % bytes
-define(COOKIE_FILE, ".erlang.cookie").

fail(Format, Arguments) -> fail(?NOT_STARTED, Format, Arguments).
fail(Code, Format, Arguments) -> throw({failed, Code, lists:flatten(io_lib:format(Format, Arguments))}).
usage(Format, Arguments) -> fail(?USAGE, Format, Arguments).

%% find(#{target, port, cookie_file, ssl_opts}) -> #{node, host, address, port, cookie, source}, or a throw of fail/3
find(#{target := Text} = Request) ->
    [begin_tls(File) || #{ssl_opts := File} <- [Request]],
    Target = case string:to_integer(Text) of
                 {Pid, ""} -> process(Pid);
                 _ -> named(Text, maps:get(port, Request, epmd))
             end,
    {Cookie, Source} = cookie(Request, Target),
    Target#{cookie => Cookie, source => Source}.

%% ---- by its name ----

named(Text, Given) ->
    length(Text) =< ?ATOM_MAX orelse
        usage("the name of a node has at most ~p characters, not ~p.", [?ATOM_MAX, length(Text)]),
    {Name, Host} = case string:split(Text, "@") of
                       [[_ | _] = N, [_ | _] = H] -> {N, H};
                       [[_ | _]] -> {Text, own_host()};
                       _ -> usage("'~ts' is neither the name of a node nor the number of a process.", [Text])
                   end,
    Addresses = addresses(Host),
    Addresses =/= [] orelse fail("the host ~ts has no address~ts.", [Host, case families() of [inet] -> " of IPv4, by which --ssl-opts reaches nodes"; _ -> "" end]),
    Port = case Given of
               epmd -> port(Text, Name, Host, Addresses);
               _ -> Given
           end,
    named(Text, Host, Port, ask(Addresses, Port, fun(Own) -> is_name_of(Text, Own) end)).

%% The first address that tells the name which was given; of a name without a host, any host.
named(Text, Host, Port, Answers) ->
    case [{Address, Own} || {Address, {name, Own}} <- Answers, is_name_of(Text, Own)] of
        [{Address, Own} | _] -> target(Own, Address, Port);
        [] ->
            Why = case [Own || {_, {name, Own}} <- Answers] of
                      [] -> "it listens at another address, which the number of its process finds";
                      [Own | _] -> ["'", Own, "' is the name of the node there"]
                  end,
            fail("'~ts' does not answer at ~ts, port ~p (~ts): ~ts.", [Text, Host, Port, tried(Answers), Why])
    end.

is_name_of(Text, Own) -> Text =:= Own orelse Text =:= hd(string:split(Own, "@")).

target(Name, Address, Port) ->
    [_, Host] = string:split(Name, "@"),
    #{node => list_to_atom(Name), host => Host, address => Address, port => Port}.

own_host() ->
    {ok, Host} = inet:gethostname(),
    hd(string:split(Host, ".")).

%% Of both families; IPv4 first, where nodes listen if they are not told otherwise.  Names of this machine lead to loopback as well.
addresses(Host) ->
    Known = case inet:parse_address(Host) of
                {ok, Address} -> [A || A <- [Address], is_of_families(A)];
                {error, _} ->
                    [A || Family <- families(), {ok, L} <- [inet:getaddrs(Host, Family)], A <- L, not is_mapped(A)]
            end,
    lists:uniq(Known ++ case lists:member(Host, ["localhost", own_host(), element(2, inet:gethostname())]) of
                            true -> loopback();
                            false -> []
                        end).

%% A VM begins distribution by TLS for one family.
families() -> case get(?MODULE) of undefined -> [inet, inet6]; _ -> [inet] end.

is_of_families(Address) -> lists:member(family(Address), families()).

loopback() -> [A || A <- [{127, 0, 0, 1}, {0, 0, 0, 0, 0, 0, 0, 1}], is_of_families(A)].

%% An IPv4 address once more.
is_mapped({0, 0, 0, 0, 0, 16#ffff, _, _}) -> true;
is_mapped(_) -> false.

port(Text, Name, Host, Addresses) ->
    Epmd = case init:get_argument(epmd_port) of
               {ok, [[Number | _] | _]} -> list_to_integer(Number);
               _ -> ?EPMD_PORT
           end,
    Answers = [{Address, names(Address, Epmd)} || Address <- Addresses],
    Known = lists:append([Names || {_, {ok, Names}} <- Answers]),
    case lists:keyfind(Name, 1, Known) of
        {_, Port} -> Port;
        false ->
            [] =:= [ok || {_, {ok, _}} <- Answers] andalso
                fail("no epmd answers on ~ts, port ~p (~ts): no node with a name runs there, or ERL_EPMD_PORT is another.",
                     [Host, Epmd, tried(Answers)]),
            fail("there is no node '~ts'; epmd on ~ts knows ~ts.", [Text, Host, known(Known)])
    end.

known([]) -> "none";
known(Names) -> lists:join(", ", lists:uniq([N || {N, _} <- Names])).

%% ---- by its process ----

%% The name of a VM may have been set after its start: the port that epmd has for it is one that the process listens at, and there it tells
%% its name.  If epmd has none, as of a node with a port of its own (-erl_epmd_port, -start_epmd false), all are asked.  It may have its cookie among its arguments; else its user's file has it.
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
    Epmd = case string:to_integer(value_of("-epmd_port", Arguments)) of {Number, ""} -> Number; _ -> ?EPMD_PORT end,
    Known = lists:append([Names || Address <- addresses("localhost"), {ok, Names} <- [names(Address, Epmd)]]),
    Listens = listens_at(Pid, Folder),
    Ports = case [L || {_, Port} = L <- Listens, lists:keymember(Port, 2, Known)] of
                [] -> Listens;
                Told -> Told
            end,
    Answers = [{Port, Answer} || {Addresses, Port} <- Ports, Answer <- ask([A || A <- Addresses, is_of_families(A)], Port, fun(_) -> true end)],
    Answers =/= [] orelse Ports =:= [] orelse
        fail("process ~p listens at no address of IPv4, by which --ssl-opts reaches nodes.", [Pid]),
    Answers =/= [] orelse
        fail("process ~p is an Erlang VM without a name: it listens at no port. "
             "net_kernel:start/2 in its shell gives it a name, or tracewheel:start/2 there traces it.", [Pid]),
    case [{Name, Address, Port} || {Port, {Address, {name, Name}}} <- Answers] of
        [{Name, Address, Port} | _] ->
            Cookie = [{argument, C} || C <- [value_of("-setcookie", Arguments)], C =/= none],
            Home = [{home, H} || H <- [value_of("-home", Arguments)], H =/= none],
            maps:merge(target(Name, Address, Port), maps:from_list([{user, user_of(Folder)} | Cookie ++ Home]));
        [] ->
            [{Port, _} | _] = Answers,
            fail("process ~p does not tell its name, at port ~p (~ts).", [Pid, Port, tried([A || {_, A} <- Answers])])
    end.

value_of(Key, [Key, Value | _]) -> Value;
value_of(Key, [_ | Rest]) -> value_of(Key, Rest);
value_of(_, []) -> none.

%% -> [{[Address], Port}] of TCP sockets of the process.
listens_at(Pid, Folder) ->
    Descriptors = case file:list_dir(Folder ++ "/fd") of
                      {ok, L} -> L;
                      {error, Reason} ->
                          fail("the descriptors of process ~p, which tell where it listens, cannot be read (~ts): run this as its user or as root, "
                               "or give the node's name.", [Pid, file:format_error(Reason)])
                  end,
    Sockets = [lists:sublist(Link, 9, length(Link) - 9)
               || D <- Descriptors, {ok, "socket:[" ++ _ = Link} <- [file:read_link(filename:join([Folder, "fd", D]))]],
    [{listening(Address), list_to_integer(Port, 16)}
     || File <- ["/net/tcp", "/net/tcp6"], {ok, Text} <- [file:read_file(Folder ++ File)], Line <- string:lexemes(binary_to_list(Text), "\n"),
        [_, Local, _, "0A", _, _, _, _, _, Inode | _] <- [string:lexemes(Line, " ")], lists:member(Inode, Sockets),
        [Address, Port] <- [string:split(Local, ":")]].

%% As the kernel writes it: words of 32 bits, each from its last byte to its first.  What listens at all addresses has those of loopback, too.
listening(Hex) ->
    Words = [list_to_integer(lists:sublist(Hex, At, 8), 16) || At <- lists:seq(1, length(Hex), 8)],
    case << <<W:32/little>> || W <- Words >> of
        <<0:32>> -> [{127, 0, 0, 1}];
        <<0:128>> -> lists:reverse(loopback());
        <<A, B, C, D>> -> [{A, B, C, D}];
        IPv6 -> [list_to_tuple([Part || <<Part:16>> <= IPv6])]
    end.

user_of(Folder) ->
    case file:read_file_info(Folder) of
        {ok, #file_info{uid = User}} -> User;
        {error, _} -> none
    end.

%% ---- what is asked over the network ----

%% What the addresses answered, for a sentence.
tried(Answers) ->
    lists:join("; ", [[shown(Address), ": ", case Answer of
                                                 {error, Text} -> Text;
                                                 {ok, _} -> "epmd";
                                                 {name, Name} -> ["'", Name, "'"]
                                             end] || {Address, Answer} <- Answers]).

shown(Address) -> inet:ntoa(Address).

%% -> [{Address, {name, Name} | {error, Text}}], as far as the first name that is wanted
ask([], _, _) -> [];
ask([Address | Rest], Port, Is_wanted) ->
    Answer = ask_name(Address, Port),
    Is_found = case Answer of {name, Name} -> Is_wanted(Name); _ -> false end,
    [{Address, Answer} | case Is_found of true -> []; false -> ask(Rest, Port, Is_wanted) end].

%% The part `client` of a file of -ssl_dist_optfile, as this VM's own distribution reads it.
begin_tls(File) ->
    case application:ensure_all_started(ssl) of
        {ok, _} -> ok;
        {error, _} -> fail("TLS wants OTP's application ssl on this machine (Debian: erlang-ssl).", [])
    end,
    try ssl_dist_sup:consult(File) of
        Parts when is_list(Parts) -> put(?MODULE, proplists:get_value(client, Parts, []));
        _ -> bad_tls(File, "it is no list")
    catch
        _:{Reason, _} when is_list(Reason); is_binary(Reason) -> bad_tls(File, Reason);
        _:Reason -> bad_tls(File, io_lib:format("~0tP", [Reason, 12]))
    end.

bad_tls(File, Why) -> usage("~ts does not hold options of TLS as of the flag -ssl_dist_optfile (~ts).", [File, Why]).

%% Which certificate belongs to which name is checked by the distribution itself.
open(Address, Port) ->
    case get(?MODULE) of
        undefined -> connect(Address, Port, [{packet, 2}]);
        Options ->
            case ssl:connect(Address, Port, [family(Address), binary, {active, false}, {packet, 4}, {server_name_indication, disable} | Options], ?ANSWER_MS) of
                {ok, Socket} -> {ok, Socket};
                {error, timeout} -> {error, "no answer by TLS within 5 seconds"};
                {error, {options, _} = Reason} -> usage("these options of TLS are refused: ~0tP.", [Reason, 12]);
                {error, Reason} -> {error, ["TLS: ", ssl:format_error(Reason)]}
            end
    end.

transport() ->
    case get(?MODULE) of
        undefined -> gen_tcp;
        _ -> ssl
    end.

-define(FLAGS, 16#d07df7fbc). % what OTP 27 offers; the connection ends before any of it is used
ask_name(Address, Port) ->
    Transport = transport(),
    case open(Address, Port) of
        {ok, Socket} ->
            Ours = list_to_binary("tracewheel" ++ os:getpid() ++ "@" ++ own_host()),
            _ = Transport:send(Socket, <<$N, ?FLAGS:64, 1:32, (byte_size(Ours)):16, Ours/binary>>),
            Answer = case Transport:recv(Socket, 0, ?ANSWER_MS) of
                         {ok, <<"sok">>} -> name_in(Transport:recv(Socket, 0, ?ANSWER_MS));
                         {ok, <<"snot_allowed">>} -> {error, "it lets only nodes connect that net_kernel:allow/1 names"};
                         Other -> name_in(Other)
                     end,
            Transport:close(Socket),
            Answer;
        Error -> Error
    end.

name_in({error, {tls_alert, _} = Alert}) -> {error, ["TLS: ", ssl:format_error(Alert)]};
name_in({ok, <<$N, _:64, _:32, _:32, Length:16, Text:Length/binary, _/binary>>}) when Length =< 4 * ?ATOM_MAX ->
    case unicode:characters_to_list(Text) of
        [_ | _] = Name when length(Name) =< ?ATOM_MAX -> {name, Name};
        _ -> name_in(none)
    end;
name_in({error, timeout}) -> {error, "no answer within 5 seconds"};
name_in(_) -> {error, "no node of OTP 23 or later answers: an older one, one with distribution by TLS (--ssl-opts), or another program"}.

%% The request NAMES_REQ of epmd's protocol.  -> {ok, [{Name, Port}]} | {error, Text}
names(Address, Epmd) ->
    case connect(Address, Epmd, []) of
        {ok, Socket} ->
            _ = gen_tcp:send(Socket, <<1:16, $n>>),
            Answer = read_all(Socket, <<>>),
            gen_tcp:close(Socket),
            case Answer of
                <<_:32, Text/binary>> ->
                    {ok, [{Name, list_to_integer(Port)}
                          || Line <- string:lexemes(binary_to_list(Text), "\n"), ["name", Name, "at", "port", Port] <- [string:lexemes(Line, " ")]]};
                _ -> {error, "something answers, but no epmd"}
            end;
        Error -> Error
    end.

read_all(Socket, Read) when byte_size(Read) < ?NAMES_MAX ->
    case gen_tcp:recv(Socket, 0, ?ANSWER_MS) of
        {ok, More} -> read_all(Socket, <<Read/binary, More/binary>>);
        {error, _} -> Read
    end;
read_all(_, Read) -> Read.

family(Address) -> case tuple_size(Address) of 4 -> inet; 8 -> inet6 end.

connect(Address, Port, Options) ->
    case gen_tcp:connect(Address, Port, [family(Address), binary, {active, false} | Options], ?ANSWER_MS) of
        {ok, Socket} -> {ok, Socket};
        {error, timeout} -> {error, "no answer within 5 seconds"};
        {error, Reason} -> {error, inet:format_error(Reason)}
    end.

%% ---- the cookie ----

%% -> {Cookie, where it was found}
cookie(#{cookie_file := File}, _) -> {read_cookie(File, any), File};
cookie(_, #{argument := Cookie}) -> {checked(Cookie, "the process' arguments"), "the process' arguments"};
%% What a process says of its home may be anything: only a file of its own user is read.
cookie(_, #{home := Home, user := User}) -> first_cookie([filename:join(Home, F) || F <- [?COOKIE_FILE, ".config/erlang/" ?COOKIE_FILE]], User);
cookie(_, _) ->
    {ok, [[Home]]} = init:get_argument(home),
    first_cookie([filename:join(Home, ?COOKIE_FILE), filename:join(filename:basedir(user_config, "erlang"), ?COOKIE_FILE)], any).

%% The two places where OTP looks.
first_cookie([File, Other], User) ->
    Found = case {file:read_file_info(File), file:read_file_info(Other)} of
                {{error, enoent}, {ok, _}} -> Other;
                _ -> File
            end,
    {read_cookie(Found, User), Found}.

%% The text of a file is in no message: it may be another secret.
read_cookie(File, User) ->
    is_readable(File, file:read_file_info(File), User), % a pipe would wait for its writer as it is opened
    case file:open(File, [raw, read, binary]) of
        {ok, Opened} ->
            is_readable(File, file:read_file_info(Opened), User),
            Text = file:read(Opened, ?COOKIE_FILE_MAX),
            file:close(Opened),
            case Text of
                {ok, Bytes} -> checked(string:trim(binary_to_list(Bytes), trailing, [[$\r, $\n], $\r, $\n]), File);
                eof -> checked("", File);
                {error, Reason} -> unreadable(File, Reason)
            end;
        {error, Reason} -> unreadable(File, Reason)
    end.

is_readable(File, {ok, #file_info{type = Type}}, _) when Type =/= regular -> fail("~ts is not a regular file: no cookie is read from it.", [File]);
is_readable(File, {ok, #file_info{size = Size}}, _) when Size > ?COOKIE_FILE_MAX ->
    fail("~ts has ~p bytes: it is no cookie's file (--cookie-file names another).", [File, Size]);
is_readable(File, {ok, #file_info{uid = Owner}}, User) when User =/= any, Owner =/= User ->
    fail("~ts belongs to another user than the process: no cookie is read from it (--cookie-file names a file to read).", [File]);
is_readable(_, {ok, _}, _) -> ok;
is_readable(File, {error, Reason}, _) -> unreadable(File, Reason).

unreadable(File, Reason) ->
    fail("the cookie cannot be read from ~ts: ~ts; --cookie-file names another file.", [File, file:format_error(Reason)]).

%% As OTP checks it.
checked("", Source) -> fail("there is no cookie in ~ts: it is empty.", [Source]);
checked(Cookie, Source) when length(Cookie) > ?ATOM_MAX ->
    fail("there is no cookie in ~ts: its text has ~p characters, and a cookie ~p at most.", [Source, length(Cookie), ?ATOM_MAX]);
checked(Cookie, Source) ->
    lists:all(fun(C) -> C >= $\s andalso C =< $~ end, Cookie) orelse
        fail("there is no cookie in ~ts: it has several lines, or characters that no cookie has.", [Source]),
    list_to_atom(Cookie).
