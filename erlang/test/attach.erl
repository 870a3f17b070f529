%% SPDX-License-Identifier: Apache-2.0
%% attach:main() - a node that works, and knows nothing of the application: attach_test.sh reaches it from outside.
-module(attach).
-export([main/0, step/1]).

main() ->
    ok = file:write_file("ready", ""),
    loop(0).

step(N) -> N.

%% Does what files ask for, and answers by removing them.
loop(N) ->
    ?MODULE:step(N),
    receive after 1 -> ok end,
    asked("unloaded", fun() -> [] =:= application() end),
    asked("disconnect", fun() -> lists:all(fun erlang:disconnect_node/1, nodes(hidden)) end),
    asked("reload", fun() -> lists:all(fun({M, File}) -> {module, M} =:= code:load_abs(filename:rootname(File)) end, application()) end),
    asked("leave", fun() -> register(tracewheel_unload, spawn(timer, sleep, [1000])) end),
    asked("snatch", fun() -> is_pid(spawn(fun snatch/0)) end),
    asked("other", fun() -> 1 =:= erlang:trace(spawn(timer, sleep, [infinity]), true, [call, {tracer, whereis(kernel_sup)}]) end),
    asked("again", fun() -> {module, ?MODULE} =:= code:load_file(?MODULE) end),
    asked("remove", fun() -> is_integer(erlang:trace(all, false, [all])) end),
    asked("kill", fun() -> exit(whereis(tracewheel), kill) end),
    loop(N + 1).

%% A module leaves between its loading and its use.
snatch() ->
    case erlang:module_loaded(tracewheel_server) of
        true -> erlang:delete_module(tracewheel_options);
        false -> snatch()
    end.

application() -> [Loaded || {M, _} = Loaded <- code:all_loaded(), lists:prefix("tracewheel", atom_to_list(M))].

asked(File, Fun) -> filelib:is_regular(File) andalso Fun() andalso file:delete(File).
