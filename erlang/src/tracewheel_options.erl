%% SPDX-License-Identifier: Apache-2.0
%% The options of tracewheel:start/2, checked; and where the libraries are.
-module(tracewheel_options).
-export([check/2, library/1]).

%% -> {ok, Map} | {error, Reason}
check(Path, Options) when is_list(Options) ->
    case lists:all(fun({Key, _}) -> is_atom(Key); (_) -> false end, Options) of
        true -> check(Path, maps:from_list(Options));
        false -> {error, {bad_options, Options}}
    end;
check(Path, Options) when is_map(Options) ->
    try
        Unknown = maps:keys(maps:without(keys(), Options)),
        Unknown =:= [] orelse throw({unknown_option, hd(Unknown)}),
        Checked = maps:map(fun value/2, maps:merge(defaults(Options), Options)),
        maps:get(ring_bytes, Checked) =< maps:get(memory, Checked) orelse throw({bad_option, memory, maps:get(memory, Checked)}),
        {ok, patterns(Checked#{path => path(Path), owner => owner(Options)})}
    catch
        throw:Reason -> {error, Reason}
    end;
check(_, Options) -> {error, {bad_options, Options}}.

defaults(#{flight := true} = Options) ->
    [throw({bad_option, K, with_flight}) || K <- [print, lines, on_full, force], is_map_key(K, Options)],
    maps:merge(defaults(), of_flight());
defaults(Options) ->
    [throw({bad_option, K, without_flight}) || K <- [snapshot_on, snapshots, every], is_map_key(K, Options)],
    defaults().

keys() -> [owner, recorder, libraries, attached | maps:keys(defaults())].

defaults() ->
    #{patterns => [], send => [], 'receive' => [], system_monitor => [], call_count => [], call_time => [],
      call_memory => [], on_load => false, processes => all, flags => default, scope => local, events => 1000000, rate => 200000, time => 60000,
      on_full => drop, ring_bytes => 1048576, memory => 268435456, term_bytes => 1000, term_depth => 64, term_elements => infinity, force => false, redact => [], name => tracewheel, seq_trace => false, seq => none, print => false, lines => 1000,
      flight => false, snapshot_on => [crash], snapshots => 5, every => 10000}.

%% Nothing is written before something happens: the limits are those of memory, and of the rate.
of_flight() -> #{events => infinity, time => infinity, ring_bytes => 4194304}.

path(Path) ->
    try unicode:characters_to_list(Path) of
        [_ | _] = Text ->
            Absolute = filename:absname(Text),
            (lists:member(0, Text) orelse byte_size(unicode:characters_to_binary(Absolute)) >= 4096) andalso throw({bad_path, Path}),
            Absolute;
        _ -> throw({bad_path, Path})
    catch
        error:_ -> throw({bad_path, Path})
    end.

owner(#{owner := none}) -> none;
owner(#{owner := Pid}) when is_pid(Pid) -> Pid;
owner(#{owner := Other}) -> throw({bad_option, owner, Other});
owner(_) -> self().

value(Key, infinity) when Key =:= events; Key =:= rate; Key =:= time; Key =:= term_elements -> infinity;
value(Key, N) when is_integer(N), N > 0, (Key =:= events orelse Key =:= rate orelse Key =:= time andalso N < 1 bsl 40) -> N;
value(ring_bytes, N) when is_integer(N), N >= 65536, N =< 1073741824, N band (N - 1) =:= 0 -> N;
value(memory, N) when is_integer(N), N >= 65536, N < 1 bsl 60 -> N;
value(term_bytes, N) when is_integer(N), N >= 16 -> N;
value(term_elements, N) when is_integer(N), N >= 16 -> N;
value(term_depth, N) when is_integer(N), N >= 1, N =< 64 -> N;
value(on_full, P) when P =:= drop; P =:= block -> P;
value(scope, S) when S =:= local; S =:= global; S =:= meta -> S;
value(on_load, B) when is_boolean(B) -> B;
value(force, B) when is_boolean(B) -> B;
value(seq_trace, B) when is_boolean(B) -> B;
value(seq, L) -> tracewheel_pattern:label(L);
value(flight, B) when is_boolean(B) -> B;
value(snapshot_on, [crash]) -> [crash]; % without a module that is not sent to nodes
value(snapshot_on, On) -> tracewheel_flight:check(On);
value(Key, N) when is_integer(N), N > 0, N < 1 bsl 32, (Key =:= snapshots orelse Key =:= every) -> N;
value(name, N) when is_atom(N), N =/= undefined -> N;
value(recorder, P) when is_list(P) -> P;
value(libraries, P) when is_list(P) -> P;
value(print, P) when is_boolean(P); is_function(P, 1) -> P;
value(lines, N) when is_integer(N), N > 0, N < 1 bsl 60 -> N;
value(owner, O) -> O;
value(attached, {Pid, Modules}) when is_pid(Pid), is_list(Modules) -> {Pid, Modules};
value(redact, [C | _] = Text) when is_integer(C) -> [expression(Text)];
value(redact, L) when is_list(L) -> [expression(E) || E <- L];
value(redact, E) -> [expression(E)];
value(patterns, [C | _] = Text) when is_integer(C) -> [Text];
value(patterns, L) when is_list(L) -> L;
value(patterns, P) -> [P];
value(processes, [C | _] = Text) when is_integer(C) -> [tracewheel_processes:select(Text)];
value(processes, L) when is_list(L) -> [tracewheel_processes:select(P) || P <- L];
value(processes, P) -> [tracewheel_processes:select(P)];
value(Kind, P) when Kind =:= send; Kind =:= 'receive' -> tracewheel_pattern:message(Kind, P);
value(system_monitor, M) -> tracewheel_monitor:check(M);
value(Kind, P) when Kind =:= call_count; Kind =:= call_time; Kind =:= call_memory -> tracewheel_counters:check(Kind, P);
value(flags, default) -> default;
value(flags, L) when is_list(L) ->
    [throw({bad_flag, F}) || F <- L, not lists:member(F, flags())],
    L;
value(Key, Value) -> throw({bad_option, Key, Value}).

%% A line of the recorder's configuration.  Whether it is an expression says the recorder.
expression(Text) ->
    try unicode:characters_to_binary(Text) of
        <<_, _/binary>> = Bytes -> binary:match(Bytes, [<<0>>, <<10>>]) =:= nomatch orelse throw({bad_option, redact, Text}), Bytes;
        _ -> throw({bad_option, redact, Text})
    catch
        error:_ -> throw({bad_option, redact, Text})
    end.

flags() ->
    [all, send, 'receive', procs, ports, call, arity, return_to, silent, running, exiting, running_procs, running_ports,
     garbage_collection, timestamp, cpu_timestamp, monotonic_timestamp, strict_monotonic_timestamp, set_on_spawn,
     set_on_first_spawn, set_on_link, set_on_first_link, scheduler_id].

patterns(#{patterns := Patterns, flags := Flags, scope := Scope, seq := Label, seq_trace := SeqTrace} = Options) ->
    Label =:= none orelse Patterns =/= [] orelse throw({bad_option, seq, without_patterns}),
    Parsed = [case tracewheel_pattern:parse(P, Label) of
                  {ok, MFA, Spec} -> {MFA, Spec};
                  {error, Reason} -> throw(Reason)
              end || P <- Patterns],
    Kinds = [K || K <- [send, 'receive'], maps:get(K, Options) =/= []],
    %% A meta trace is of the calls of all processes, whatever their flags.
    Default = [call || Parsed =/= [], Scope =/= meta],
    %% Time and memory are counted of processes that are traced.
    Call = [call || K <- [call_time, call_memory], maps:get(K, Options) =/= []],
    Options#{patterns := Parsed, seq_trace := SeqTrace orelse Label =/= none, flags := lists:usort(case Flags of default -> Default; _ -> Flags end ++ Kinds ++ Call)}.

%% The libraries lie in priv/ beside ebin/.  Modules that look for theirs are being loaded: nothing is known of them yet.
library(Module) ->
    Beam = case code:which(?MODULE) of
               File when is_list(File), File =/= "" -> File;
               _ -> filename:join([code:lib_dir(tracewheel), "ebin", "x"])
           end,
    filename:join([filename:dirname(filename:dirname(filename:absname(Beam))), "priv", atom_to_list(Module)]).
