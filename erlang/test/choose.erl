%% SPDX-License-Identifier: Apache-2.0
%% choose:main() - which processes are traced, for each way to name them; seen by who has sent messages in the capture.
-module(choose).
-behaviour(gen_server).
-export([main/0, loop/0, init/1, handle_call/3, handle_cast/2, handle_info/2]).

main() ->
    {ok, Server} = gen_server:start(?MODULE, server, []),
    {ok, Supervisor} = supervisor:start_link(?MODULE, supervisor),
    Plain = spawn(?MODULE, loop, []),
    Named = spawn(fun() -> register(choose_named, self()), loop() end),
    Labelled = spawn(fun() -> put('$process_label', {worker, 7}), loop() end),
    Texted = spawn(fun() -> put('$process_label', "the last"), loop() end),
    Mine = [Server, Supervisor, Plain, Named, Labelled, Texted],
    [poke(P) || P <- Mine],
    Kernel = whereis(kernel_sup),
    [check(Who, [Kernel | Mine], Wanted)
     || {Who, Wanted} <- [{{module, ?MODULE}, [Server, Supervisor, Plain]}, {"module:choose", [Server, Supervisor, Plain]},
                          {{behaviour, gen_server}, [Server, Supervisor, Kernel]}, {"behaviour:supervisor", [Kernel]},
                          {{application, kernel}, [Kernel]}, {"application:kernel", [Kernel]},
                          {choose_named, [Named]}, {"choose_named", [Named]}, {<<"choose_named">>, [Named]},
                          {Plain, [Plain]}, {pid_to_list(Plain), [Plain]},
                          {{label, {worker, 7}}, [Labelled]}, {"label:{worker,7}", [Labelled]}, {["label:the last"], [Texted]},
                          {[{label, {worker, 7}}, "choose_named", Plain], [Labelled, Named, Plain]},
                          {"all", [Kernel | Mine]}, {existing, [Kernel | Mine]}, {"new", []}]],
    children(Plain),
    names(),
    kinds(),
    refused(),
    io:format("ok~n"),
    halt().

%% ---- processes of each kind ----

loop() ->
    receive
        {poke, From} -> From ! {poked, self()};
        {spawn, From} -> From ! {child, spawn(fun loop/0)}
    end,
    loop().

init(server) -> {ok, none};
init(supervisor) -> {ok, {#{}, []}}.
handle_call(_, _, S) -> {reply, ok, S}.
handle_cast(_, S) -> {noreply, S}.
handle_info({poke, From}, S) -> From ! {poked, self()}, {noreply, S}.

%% It sends a message.
poke(P) ->
    case process_info(P, dictionary) of
        {dictionary, Words} ->
            case lists:keyfind('$initial_call', 1, Words) of
                {_, {supervisor, _, _}} -> supervisor:which_children(P);
                _ -> P ! {poke, self()}, receive {poked, P} -> ok end
            end
    end.

%% ---- what is traced ----

check(Who, Processes, Wanted) ->
    {ok, _} = start(#{processes => Who, flags => [send]}),
    [poke(P) || P <- Processes],
    {ok, _} = tracewheel:stop(),
    Senders = [P || P <- Processes, lists:member(P, senders())],
    {Who, lists:sort(Wanted)} =:= {Who, lists:sort(Senders)} orelse error({Who, Wanted, Senders}).

start(Options) -> tracewheel:start("choose.tw", Options#{force => true}).

senders() ->
    os:cmd(os:getenv("TRACEWHEEL") ++ " print --format erlang choose.tw >choose.term"),
    {ok, Events} = file:consult("choose.term"),
    lists:usort([list_to_pid(atom_to_list(P)) || {trace, P, send, _, _} <- Events]).

%% What they start is traced as well, if that was asked for, and only then.
children(Parent) ->
    [begin
         {ok, _} = start(#{processes => Parent, flags => [send | Flags]}),
         Parent ! {spawn, self()},
         Child = receive {child, C} -> C end,
         poke(Child),
         {ok, _} = tracewheel:stop(),
         Senders = senders(),
         {Flags, [true, IsTraced]} = {Flags, [lists:member(P, Senders) || P <- [Parent, Child]]}
     end || {Flags, IsTraced} <- [{[set_on_spawn], true}, {[], false}]].

%% Calls by server and by caller: by registered names, also where a pid was given; and as terms.
names() ->
    {ok, Named} = gen_server:start({local, choose_server}, ?MODULE, server, []),
    {ok, Other} = gen_server:start(?MODULE, server, []),
    {ok, _} = start(#{patterns => ["gen_server:call -> return"]}),
    {Worker, Monitor} = spawn_monitor(fun() -> [ok = gen_server:call(S, x) || S <- [Named, choose_server, Other]] end),
    receive {'DOWN', Monitor, _, _, normal} -> ok end,
    {ok, _} = tracewheel:stop(),
    Rows = lists:sort([[pid_to_list(Other), "1"], ["choose_server", "2"]]),
    Rows = rows("server"),
    Callers = [[pid_to_list(Worker), "3"]],
    Callers = rows("name"),
    Calls = fun({trace, P, call, {gen_server, call, [S, x]}}, Found) -> [{P, S} | Found]; (_, Found) -> Found end,
    {ok, [{Worker, Other}, {Worker, choose_server}, {Worker, Named}]} = tracewheel:fold(Calls, [], "choose.tw"),
    {error, {"missing.tw", "tracewheel: " ++ _}} = tracewheel:fold(Calls, [], "missing.tw").

%% Calls by what kind of process makes them.
kinds() ->
    {ok, Server} = gen_server:start(?MODULE, server, []),
    Labelled = spawn(fun() -> put('$process_label', seven), loop() end),
    poke(Labelled),
    Kernel = whereis(kernel_sup),
    {ok, _} = start(#{patterns => ["choose:handle_info -> return", "choose:loop", "supervisor:handle_call -> return"]}),
    [poke(P) || P <- [Server, Labelled, Labelled, Kernel]],
    {ok, _} = tracewheel:stop(),
    [{By, Wanted} = {By, [Name || [Name | _] <- rows(By, "")]}
     || {By, Wanted} <- [{"application", ["kernel", "no application"]}, {"behaviour", ["gen_server", "no behaviour", "supervisor"]},
                         {"initial-call", ["choose:init/1", "erlang:apply/2", "supervisor:kernel/1"]}, {"label", ["no label", "seven"]}]],
    %% Labels are the program's words.
    [[{Cut, Left} = {Cut, [Name || [Name | _] <- rows("label", "", "part.tw")]}
      || "" <- [os:cmd(os:getenv("TRACEWHEEL") ++ " cut -q --force " ++ Cut ++ " -o part.tw choose.tw")]]
     || {Cut, Left} <- [{"--strip", ["no label"]}, {"--redact ev", ["no label", "s**en"]}]],
    Folded = os:cmd(os:getenv("TRACEWHEEL") ++ " flame --folded --by application choose.tw"),
    {Folded, true} = {Folded, lists:prefix("kernel;supervisor:handle_call/3 ", Folded) orelse string:find(Folded, "\nkernel;supervisor:handle_call/3 ") =/= nomatch},
    {Folded, true} = {Folded, string:find(Folded, "no application;choose:handle_info/2 ") =/= nomatch}.

%% -> [[Name, Calls]]
rows(By) -> rows(By, " -t gen_server:call").
rows(By, Pattern) -> rows(By, Pattern, "choose.tw").
rows(By, Pattern, Capture) ->
    Text = os:cmd(os:getenv("TRACEWHEEL") ++ " report --csv --columns calls --by " ++ By ++ Pattern ++ " " ++ Capture ++ " 2>&1"),
    lists:sort(tl([lists:sublist(string:lexemes(Line, ",\""), 2) || Line <- string:lexemes(Text, "\n")])).

refused() ->
    [begin
         {Who, {error, Why}} = {Who, start(#{processes => Who, flags => [send]})},
         {error, not_started} = tracewheel:info()
     end || {Who, Why} <- [{nobody, {no_process, nobody}}, {"nobody", {no_process, "nobody"}},
                           {"no atom of that name is here", {no_process, "no atom of that name is here"}},
                           {{application, choose}, {no_process, {application, choose}}},
                           {"module:no_module_of_that_name", {no_process, "module:no_module_of_that_name"}},
                           {{label, none}, {no_process, {label, none}}},
                           {"<0.85", {bad_process, "<0.85"}}, {<<255>>, {bad_process, <<255>>}},
                           {{application, "kernel"}, {bad_process, {application, "kernel"}}},
                           {{city, oslo}, {bad_process, {city, oslo}}}, {1.5, {bad_process, 1.5}}]].
