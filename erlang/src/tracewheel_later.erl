%% SPDX-License-Identifier: Apache-2.0
%% Modules that are loaded while a capture runs: patterns with wildcards, and with on_load those of modules that were not there.
%%
%% It is looked for them as for code that is loaded again: docs/decisions/0040.
-module(tracewheel_later).
-export([named/1, begin_to_look/1, look/1]).

%% -> [{{M, F, A}, MatchSpec}]: of the modules that are loaded now; those of this application are in no wildcard
named(Patterns) -> named(Patterns, fun erlang:loaded/0).

named(Patterns, Loaded) ->
    lists:append([case M of
                      {modules, Wildcard} -> [{{One, F, A}, Spec} || One <- matching(Wildcard, Loaded())];
                      _ -> [Pattern]
                  end || {{M, F, A}, Spec} = Pattern <- Patterns]).

matching(Wildcard, Modules) ->
    Parts = string:split(Wildcard, "*", all),
    {ok, Re} = re:compile(["^", lists:join(".*", [quoted(P) || P <- Parts]), "$"], [unicode, dotall]),
    [M || M <- Modules, re:run(atom_to_binary(M), Re, [{capture, none}]) =:= match, not is_own(M)].

quoted(Text) -> [case C of $. -> "\\."; _ -> C end || C <- Text].

is_own(M) -> lists:prefix("tracewheel", atom_to_list(M)).

%% ---- by a server ----

begin_to_look(#{patterns := Patterns, on_load := OnLoad} = State) ->
    case [P || {{M, _, _}, _} = P <- Patterns, is_tuple(M) orelse OnLoad andalso M =/= '_' andalso not erlang:module_loaded(M)] of
        [] -> State;
        Later -> State#{later => Later, loaded => lists:sort(erlang:loaded())}
    end.

%% -> {Texts, State}: which modules have come, and are traced from now on.
look(#{later := Later, loaded := Before, witnesses := Witnesses} = State) ->
    case lists:sort(erlang:loaded()) of
        Before -> {[], State};
        Loaded ->
            %% A module that has left and is here again has a witness.
            New = ordsets:subtract(Loaded, Before) -- [W || {{W, _, _}, _, Witness} <- Witnesses, Witness =/= none],
            Wanted = [P || {{M, _, _}, _} = P <- named(Later, fun() -> New end), lists:member(M, New)],
            Set = [{MFA, Spec} || {MFA, Spec} <- Wanted, Count <- [catch tracewheel_settings:set_pattern(State, MFA, Spec)], is_integer(Count), Count > 0],
            {[["the module ", atom_to_list(M), " was loaded, and is traced from now on"] || M <- lists:usort([M || {{M, _, _}, _} <- Set])],
             State#{loaded := Loaded, witnesses := Witnesses ++ [{MFA, Spec, tracewheel_settings:witness(State, MFA)} || {MFA, Spec} <- Set]}}
    end;
look(State) -> {[], State}.
