%% SPDX-License-Identifier: Apache-2.0
%% How modules leave that tracewheel_attach has brought into a node: when nobody uses them any more.
%%
%% Those who use them are processes with a name: servers of captures (tracewheel_server), and those that `top` asks (tracewheel_sample).
-module(tracewheel_leave).
-export([leave/1, leave/2, is_unloading/0, is_server/1]).

%% Nothing is traced here. Whoever begins to trace has its name first, and then asks is_unloading/0.
is_idle() -> [P || N <- registered(), P <- [whereis(N)], P =/= self(), began_in(P, [tracewheel_server, tracewheel_sample])] =:= [].
is_unloading() -> whereis(tracewheel_unload) =/= undefined.
%% Others have names, too.
is_server(Pid) -> began_in(Pid, [tracewheel_server]).

began_in(Pid, Modules) ->
    case is_pid(Pid) andalso process_info(Pid, initial_call) of
        {initial_call, {M, init, 1}} -> lists:member(M, Modules);
        _ -> false
    end.

%% Modules that came with tracewheel_attach go, unless others trace as well.  They cannot do that themselves: a process with a name, by which
%% their next use waits for it, runs none of them.  It has the name before others are looked for: a start sees it, or is seen.
leave([]) -> true;
leave(Modules) ->
    Purge = [{fun code:purge/1, M} || M <- Modules],
    %% What was loaded twice, as by two attachments at once, cannot be deleted before it is purged.
    Steps = [{fun timer:sleep/1, 500}] ++ Purge ++ [{fun code:delete/1, M} || M <- Modules] ++ [{fun timer:sleep/1, 100}] ++ Purge,
    {Functions, Arguments} = lists:unzip(Steps),
    Unloader = spawn(lists, zipwith, [fun erlang:apply/2, Functions, [[A] || A <- Arguments]]),
    Is_first = (catch register(tracewheel_unload, Unloader)) =:= true,
    Is_first andalso is_idle() orelse exit(Unloader, kill),
    Is_first.

%% Of a server, which is not idle itself: another that has the name does not unload, and soon gives it back.
leave(Modules, Tries) ->
    leave(Modules) orelse Tries =:= 0 orelse begin timer:sleep(50), leave(Modules, Tries - 1) end.
