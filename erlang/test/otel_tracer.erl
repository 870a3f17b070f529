%% SPDX-License-Identifier: Apache-2.0
%% What opentelemetry_api has of these functions, in the same shape: the current span is a record in a map in the process dictionary.
-module(otel_tracer).
-export([from_remote_span/3, set_current_span/1, current_span_ctx/0, detach/1]).
-record(span_ctx, {trace_id, span_id, trace_flags = 0, tracestate = {tracestate, []}, is_valid, is_remote = false, is_recording, span_sdk}).

from_remote_span(TraceId, SpanId, Flags) ->
    #span_ctx{trace_id = TraceId, span_id = SpanId, trace_flags = Flags, is_valid = true, is_remote = true, is_recording = false}.

set_current_span(Span) ->
    Map = case get('$__current_otel_ctx') of
              #{} = M -> M;
              _ -> #{}
          end,
    put('$__current_otel_ctx', Map#{{?MODULE, span_ctx} => Span}).

current_span_ctx() -> maps:get({?MODULE, span_ctx}, get('$__current_otel_ctx')).

detach(Context) -> put('$__current_otel_ctx', Context).
