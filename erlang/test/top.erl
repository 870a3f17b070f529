%% SPDX-License-Identifier: Apache-2.0
%% top:main() - a node of known processes, which top_test.sh looks at from outside: one that works, one with a mailbox, one with a large heap, and
%% many that wait. Files ask for what is to be done, and are removed.
-module(top).
-export([main/0, step/1, work/1, init/1]).

main() ->
    [spawn(fun() -> receive never -> ok end end) || _ <- lists:seq(1, 300)],
    spawn(fun() -> register(worker, self()), put('$process_label', {worker, 7}), work(0) end),
    Full = proc_lib:spawn(?MODULE, init, [full]),
    Large = spawn(fun() -> register(large, self()), Kept = lists:seq(1, 1000000), receive never -> Kept end end),
    [Full ! {message, N} || N <- lists:seq(1, 5000)],
    await(fun() -> whereis(large) =:= Large andalso whereis(full) =:= Full andalso process_info(Large, status) =:= {status, waiting} end),
    ok = file:write_file("ready.new", "ready"),
    ok = file:rename("ready.new", "ready"),
    loop().

init(full) ->
    register(full, self()),
    receive never -> ok end.

work(N) ->
    ?MODULE:step(N),
    receive after N rem 8 div 7 -> work(N + 1) end.

step(N) -> lists:seq(1, 100), N.

await(Fun) -> Fun() orelse begin timer:sleep(10), await(Fun) end.

loop() ->
    timer:sleep(20),
    asked("unloaded", fun() -> [] =:= [M || {M, _} <- code:all_loaded(), lists:prefix("tracewheel", atom_to_list(M))] end),
    %% Nobody counts calls, and none of the processes of the command is here.
    asked("quiet", fun() -> not is_counted() andalso whereis(tracewheel_top) =:= undefined end),
    asked("counted", fun is_counted/0),
    asked("kill", fun() -> exit(whereis(tracewheel_top), kill) end),
    asked("own", fun() -> 1 =:= erlang:trace_pattern({?MODULE, step, 1}, true, [call_count]) end),
    asked("many", fun() -> is_list([spawn(fun() -> receive never -> ok end end) || _ <- lists:seq(1, 20000)]) end),
    loop().

%% From OTP 27 on by a session.
is_counted() ->
    case code:ensure_loaded(trace) of
        {module, trace} -> trace:session_info({?MODULE, step, 1}) =/= [];
        _ -> is_integer(element(2, erlang:trace_info({?MODULE, step, 1}, call_count)))
    end.

asked(File, Fun) -> filelib:is_regular(File) andalso Fun() andalso file:delete(File).
