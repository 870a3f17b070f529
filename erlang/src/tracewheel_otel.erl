%% SPDX-License-Identifier: Apache-2.0
%% The context that OpenTelemetry has in a process as a token of seq_trace, and back.
%%
%% opentelemetry_api keeps it in the process dictionary: a map, in which the current span is the record span_ctx. The application is not needed for
%% either function; where it is loaded, it makes the record.
%%
%% Prints tell `tracewheel convert --to otlp` where a request came from, {traceparent, Header}, and at which span it went there, traceparent.
-module(tracewheel_otel).
-export([from/0, to/0]).

-define(CONTEXT, '$__current_otel_ctx').
-define(SPAN, {otel_tracer, span_ctx}).

from() ->
    case span(get(?CONTEXT)) of
        {Trace, Span, Flags} ->
            Old = seq_trace:set_token([]),
            Header = header(Trace, Span, Flags),
            seq_trace:set_token(label, <<Trace:128>>),
            seq_trace:set_token(serial, {0, 0}),
            [seq_trace:set_token(F, true) || Flags band 1 =:= 1, F <- [send, 'receive', print]],
            seq_trace:print({traceparent, Header}),
            {ok, Old};
        none -> {error, no_span}
    end.

to() ->
    case seq_trace:get_token() of
        {Flags, Label, _, _, _} ->
            seq_trace:print(traceparent),
            {_, _, Current, From, _} = Token = seq_trace:set_token([]), % files and modules that are read here are not of the request
            Ids = tracewheel_nif:w3c(term_to_binary(Label), node_of(From), numbers(From), Current),
            Answer = case Ids of
                         {<<Trace:128>>, Span} -> {ok, attach(Trace, Span, sampled(Flags))};
                         Error -> Error
                     end,
            seq_trace:set_token(Token),
            Answer;
        [] -> {error, no_token}
    end.

span(#{?SPAN := Context}) when element(1, Context) =:= span_ctx, tuple_size(Context) >= 4 ->
    case {element(2, Context), element(3, Context), element(4, Context)} of
        {T, S, F} when is_integer(T), T > 0, T < 1 bsl 128, is_integer(S), S > 0, S < 1 bsl 64, is_integer(F) -> {T, S, F};
        _ -> none
    end;
span(_) -> none.

header(Trace, Span, Flags) -> iolist_to_binary(io_lib:format("00-~32.16.0b-~16.16.0b-~2.16.0b", [Trace, Span, Flags band 1])).

%% send 1, receive 2, print 4; others are kinds of time stamps.
sampled(Flags) when Flags band 7 =/= 0 -> 1;
sampled(_) -> 0.

%% -> what otel_ctx:attach/1 returns: the context before, for otel_ctx:detach/1.
attach(Trace, Span, Flags) ->
    Old = get(?CONTEXT),
    New = remote(Trace, Span, Flags),
    Kept = case Old of
               #{?SPAN := Before} when element(1, Before) =:= span_ctx, element(2, Before) =:= Trace, tuple_size(Before) >= 5 ->
                   setelement(5, New, element(5, Before)); % tracestate
               _ -> New
           end,
    put(?CONTEXT, case Old of
                      #{} -> Old#{?SPAN => Kept};
                      _ -> #{?SPAN => Kept}
                  end).

remote(Trace, Span, Flags) ->
    try otel_tracer:from_remote_span(Trace, Span, Flags)
    catch error:undef -> {span_ctx, Trace, Span, Flags, [], true, true, false, undefined}
    end.

numbers(Pid) ->
    [_, Number, Serial] = string:lexemes(pid_to_list(Pid), "<.>"),
    {list_to_integer(Number), list_to_integer(Serial)}.

%% As captures name it: a node without a name by its process.
node_of(Pid) when node(Pid) =/= nonode@nohost -> atom_to_binary(node(Pid));
node_of(_) ->
    {ok, Stat} = file:read_file("/proc/self/stat"),
    {ok, <<Boot:8/binary, _/binary>>} = file:read_file("/proc/sys/kernel/random/boot_id"),
    Start = lists:nth(20, string:lexemes(lists:last(binary:split(Stat, <<") ">>, [global])), " ")),
    iolist_to_binary(["tw-", os:getpid(), "-", Start, "@", Boot]).
