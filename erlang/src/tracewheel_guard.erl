%% SPDX-License-Identifier: Apache-2.0
%% Settings that are the node's, not a capture's: each server holds those that it has made, and undoes them at its end.  If it is
%% killed, a process of this module undoes them.
%%
%%	{message, send | 'receive', MatchSpec}		patterns of messages, before OTP 27
%%	{counters, Kind, MFA}				of functions, before OTP 27
%%	{logger, Handler}				of a flight recorder
%%
%% What others have set meanwhile is not undone.
-module(tracewheel_guard).
-export([hold/1, release/0]).
-export([init/1, loop/2]).

%% By a server, before it makes the setting.
hold(Setting) ->
    {Guard, Held} = case get(?MODULE) of
                        undefined -> {spawn(?MODULE, init, [self()]), []};
                        Before -> Before
                    end,
    Guard ! {?MODULE, hold, Setting},
    put(?MODULE, {Guard, [Setting | Held]}).

%% By the server, at its end; this does not need the other process.
release() ->
    case erase(?MODULE) of
        undefined -> ok;
        {Guard, Held} ->
            undo(Held),
            Monitor = monitor(process, Guard),
            Guard ! {?MODULE, release},
            receive {'DOWN', Monitor, _, _, _} -> ok end
    end.

init(Server) ->
    process_flag(sensitive, true), % what it does is not traced
    loop(monitor(process, Server), []).

%% It sleeps in no code of this module, which may be loaded again.
loop(Monitor, Held) ->
    receive
        {?MODULE, hold, Setting} -> loop(Monitor, [Setting | Held]);
        {?MODULE, release} -> ok;
        {'DOWN', Monitor, _, _, _} -> undo(Held)
    after 0 -> erlang:hibernate(?MODULE, loop, [Monitor, Held])
    end.

undo(Held) -> [undo_one(Setting) || Setting <- Held].

undo_one({message, Kind, Spec}) ->
    erlang:trace_info(Kind, match_spec) =:= {match_spec, Spec} andalso erlang:trace_pattern(Kind, true, []);
undo_one({counters, Kind, MFA}) -> tracewheel_counters:undo(Kind, MFA);
undo_one({logger, Handler}) -> tracewheel_flight:undo(Handler).
