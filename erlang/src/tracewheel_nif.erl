%% SPDX-License-Identifier: Apache-2.0
%% Captures, as the NIF has them: c_src/tracewheel_nif.c.
-module(tracewheel_nif).
-export([open/3, finish/2, info/1, name/3, note/2, sum/2, newcomers/2, describe/3, captures/0, w3c/4]).
-nifs([open/3, finish/2, info/1, name/3, note/2, sum/2, newcomers/2, describe/3, captures/0, w3c/4]).
-on_load(load/0).

load() ->
    erlang:load_nif(tracewheel_options:library(?MODULE), none).

open(_RingSetPath, _Name, _Options) -> erlang:nif_error(not_loaded).
finish(_Capture, _Why) -> erlang:nif_error(not_loaded).
info(_Capture) -> erlang:nif_error(not_loaded).
name(_Capture, _Process, _Name) -> erlang:nif_error(not_loaded).
note(_Capture, _Text) -> erlang:nif_error(not_loaded).
sum(_Capture, _Counted) -> erlang:nif_error(not_loaded).
newcomers(_Capture, _Max) -> erlang:nif_error(not_loaded).
describe(_Capture, _Pid, _Origin) -> erlang:nif_error(not_loaded).
%% w3c(LabelInExternalFormat, Node, {Number, Serial}, Current) -> {TraceId, ParentId} | {error, Reason}
w3c(_Label, _Node, _Pid, _Current) -> erlang:nif_error(not_loaded).
captures() -> erlang:nif_error(not_loaded).
