%% SPDX-License-Identifier: Apache-2.0
%% attach:main() - a node that works, and knows nothing of the application: attach_test.sh and reach_test.sh reach it from outside.
-module(attach).
-export([main/0, step/1]).

main() ->
    ok = file:write_file("ready.new", atom_to_list(element(1, code:ensure_loaded(trace)))),
    ok = file:rename("ready.new", "ready"),
    loop(0).

step(N) -> N.

%% Does what files ask for, and answers by removing them. It looks for them now and then only, which costs more than all else.
loop(N) ->
    ?MODULE:step(N),
    receive after 2 -> ok end,
    N rem 16 =/= 0 orelse look(),
    loop(N + 1).

look() ->
    asked("unloaded", fun() -> [] =:= application() end),
    asked("disconnect", fun() -> lists:all(fun erlang:disconnect_node/1, nodes(hidden)) end),
    asked("reload", fun() -> lists:all(fun({M, File}) -> {module, M} =:= code:load_abs(filename:rootname(File)) end, application()) end),
    asked("leave", fun() -> register(tracewheel_unload, spawn(timer, sleep, [1000])) end),
    asked("snatch", fun() -> is_pid(spawn(fun snatch/0)) end),
    asked("other", fun() -> 1 =:= erlang:trace(spawn(timer, sleep, [infinity]), true, [call, {tracer, whereis(kernel_sup)}]) end),
    asked("again", fun() -> {module, ?MODULE} =:= code:load_file(?MODULE) end),
    asked("remove", fun() -> is_integer(erlang:trace(all, false, [all])) end),
    asked("name", fun name/0),
    asked("shy", fun() -> ok =:= net_kernel:allow([nobody@nowhere]) end),
    asked("version", fun version/0),
    asked("crash", fun() -> is_pid(proc_lib:spawn(fun() -> register(victim, self()), ?MODULE:step(victim), error(boom) end)) end),
    asked("kill", fun() -> exit(whereis(tracewheel), kill) end).

%% A node without a name gets one, or another.
name() ->
    {ok, [{Name, Domain, Address}]} = file:consult("name"),
    net_kernel:stop(),
    application:set_env(kernel, inet_dist_use_interface, Address),
    {ok, _} = net_kernel:start([Name, Domain]),
    true.

version() ->
    {ok, M, Code} = compile:forms([{attribute, 1, module, tracewheel}]),
    {module, M} =:= code:load_binary(M, "other", Code).

%% A module leaves between its loading and its use.
snatch() ->
    case erlang:module_loaded(tracewheel_server) of
        true -> erlang:delete_module(tracewheel_options);
        false ->
            %% Only once the loading has begun there is no time to wait.
            erlang:module_loaded(tracewheel_options) orelse timer:sleep(1),
            snatch()
    end.

application() -> [Loaded || {M, _} = Loaded <- code:all_loaded(), lists:prefix("tracewheel", atom_to_list(M))].

asked(File, Fun) -> filelib:is_regular(File) andalso Fun() andalso file:delete(File).
