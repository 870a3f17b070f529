%% SPDX-License-Identifier: Apache-2.0
%% The tracer module.  Its state is a capture: {tracer, tracewheel_tracer, Capture}, as tracewheel:tracer/0 gives it.
-module(tracewheel_tracer).
-export([enabled/3, trace/5]).
-nifs([enabled/3, trace/5]).
-on_load(load/0).

load() ->
    erlang:load_nif(tracewheel_options:library(?MODULE), tracewheel_nif:captures()).

enabled(_Tag, _State, _Tracee) -> erlang:nif_error(not_loaded).
trace(_Tag, _State, _Tracee, _Term, _Options) -> erlang:nif_error(not_loaded).
