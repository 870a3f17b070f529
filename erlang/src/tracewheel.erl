%% SPDX-License-Identifier: Apache-2.0
%% Traces into a capture.  docs/erlang.md is the guide.
%%
%%	1> tracewheel:start("/tmp/seq.tw", #{patterns => ["lists:seq/2 -> return"]}).
%%	2> lists:seq(1, 3).
%%	3> tracewheel:stop().
%%
%% Options of start/2, a map or a list of pairs:
%%
%%	patterns	functions whose calls are traced: tracewheel_pattern; default none
%%	processes	all (default), new, existing, a pid, a port, a registered name, {application, A}, {module, M}, {behaviour, B},
%%			{label, L}, the same as text, or a list of such: tracewheel_processes
%%	send, 'receive'	messages that are traced, by what they are: tracewheel_pattern; default all, if flags has these words
%%	call_count	functions whose calls are counted: counters/0; call_time, call_memory (OTP 26): also their time in us, their words
%%	system_monitor	system events, as of erlang:system_monitor/2: [{long_gc, Ms}, {large_heap, Words}, busy_port, ...]
%%	flags		flags of erlang:trace/3: call if there are patterns (default), send, 'receive', procs, running, arity, ...
%%	scope		local (default): all calls; global: calls that name the module; meta: of all processes, whatever their flags and tracer
%%	on_load		true: patterns may be of modules that are loaded later; default false
%%	events		the most events, default 1000000; infinity
%%	rate		the most events in one second, default 200000; infinity
%%	time		the longest time in ms, default 60000; infinity
%%	on_full		drop (default): events without space are lost, and counted; block: the process waits
%%	ring_bytes	of one thread, default 1 MiB: it grows up to that, in steps of 0.6 ms at most
%%	memory		of all rings, in bytes, default 256 MiB
%%	term_bytes	of one term, default 1000: the rest is cut, and '...' marks the cut
%%	term_elements	of one term, in all levels; default as many as its bytes
%%	term_depth	levels of one term, default 64
%%	print		true: events are also printed, as dbg does, to the group leader; or a fun that takes each line, a binary; default false
%%	lines		the most lines that are printed in one second, default 1000: how many events are left out is printed
%%	seq_trace	true: this capture is the system tracer of seq_trace; default false
%%	seq		the label of a request of seq_trace that begins with each call of patterns, as text: "order", or "Id", a variable of
%%			the pattern; seq_trace is then true.  An atom or an integer is the label itself
%%	redact		POSIX extended regular expressions, as of grep -E: what they match in strings and binaries of terms is replaced by *
%%			before it is written (docs/security.md); default none
%%	force		true: an existing capture is replaced
%%	name		of the capture among several that are traced at once, default tracewheel
%%	owner		the process at whose end the trace ends: default the caller; none
%%	recorder	the path of the command `tracewheel`; default: where it is installed
-module(tracewheel).
-export([start/1, start/2, flight/1, flight/2, snapshot/0, snapshot/1, stop/0, stop/1, info/0, info/1, counters/0, counters/1, tracer/0, tracer/1, fold/3,
         seq_from_otel/0, seq_to_otel/0]).

start(Path) ->
    start(Path, #{}).

%% -> {ok, Info} | {error, Reason}
start(Path, Options) ->
    case tracewheel_options:check(Path, Options) of
        {ok, Checked} ->
            code:ensure_loaded(tracewheel_otel), % that is no part of the first request
            tracewheel_server:start(Checked);
        Error -> Error
    end.

%% A flight recorder: the newest events stay in memory.  Path.tw, Path-2.tw, ... are written when a process ends by an error, or by snapshot/0.
%% Options of its own, beside those of start/2 (but print, on_full and force; events and time are infinity, ring_bytes 4 MiB):
%%
%%	snapshot_on	crash (default): what the logger is told, crash reports of OTP's processes and ends of others by an error; processes
%%			as of the option processes: their ends, but normal and shutdown; a list of both; none
%%	snapshots	the most that are written so, default 5
%%	every		and how far apart, in ms, default 10000
%% -> as start/2
flight(Path) -> flight(Path, #{}).
flight(Path, Options) when is_list(Options) -> start(Path, [{flight, true} | Options]);
flight(Path, Options) when is_map(Options) -> start(Path, Options#{flight => true});
flight(_, Options) -> {error, {bad_options, Options}}.

%% Writes what is in memory.  -> {ok, Path} | {error, Reason}
snapshot() -> snapshot(tracewheel).
snapshot(Name) -> tracewheel_server:call(Name, snapshot).

%% Ends the trace; from any process.  -> {ok, Info} | {error, not_started}
stop() -> stop(tracewheel).
stop(Name) -> tracewheel_server:call(Name, stop).

%% -> {ok, Info} | {error, not_started}
info() -> info(tracewheel).
info(Name) -> tracewheel_server:call(Name, info).

%% What call_count, call_time and call_memory have counted so far, the most time, memory or calls first.
%% -> {ok, [#{function := {M, F, Arity}, calls := N, us => N, words => N, processes => [{Pid, Calls, Us}]}]} | {error, not_started}
counters() -> counters(tracewheel).
counters(Name) -> tracewheel_server:call(Name, counters).

%% For erlang:trace/3: erlang:trace(Pid, true, [call, tracewheel:tracer()]).  With OTP 27: trace:session_create(s, {M, State}, []).
%% -> {tracer, tracewheel_tracer, Capture}
tracer() -> tracer(tracewheel).
tracer(Name) ->
    case tracewheel_server:call(Name, tracer) of
        {ok, Capture} -> {tracer, tracewheel_tracer, Capture};
        Error -> Error
    end.

%% The events of a capture that has ended, as the messages that a process tracer would have received, and {drop, N} for lost ones: Fun(Message, Acc),
%% in order of time.  Pids are those of a node without a name.
%% -> {ok, Acc} | {error, Reason}
fold(Fun, Acc, Path) -> tracewheel_fold:fold(Fun, Acc, Path).

%% The current span of OpenTelemetry, as opentelemetry_api has it in this process, becomes the process' token of seq_trace: its trace-id is the label.
%% -> {ok, Token}, the one before, for seq_trace:set_token/1 | {error, no_span}
seq_from_otel() -> tracewheel_otel:from().

%% The token becomes OpenTelemetry's current span of this process: spans that it starts are children of the message that it has taken.
%% -> {ok, Context}, the one before, for otel_ctx:detach/1 | {error, no_token}
seq_to_otel() -> tracewheel_otel:to().
