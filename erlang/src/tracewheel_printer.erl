%% SPDX-License-Identifier: Apache-2.0
%% Prints a capture while it is written: option print of tracewheel:start/2.
%%
%% Nothing is printed by who is traced, and no event is sent to a process: a port program, `tracewheel print --follow --on-request`, reads the
%% capture and makes the lines.  It gives one packet for each request, and this process makes the next request when the group leader or the fun
%% has taken the lines of the last one.  So there is at most one packet in this VM, however slow they are, and lines that nobody
%% takes are left out, and counted, outside of it.
-module(tracewheel_printer).
-export([start/1, ended/2, finish/1]).
-export([init/2, loop/3]).

%% How long the rest may take to be printed at the end.
-define(END_MS, 2000).

%% By a server, whose end is its end.  -> a printer
start(Options) ->
    Printed = counters:new(1, []),
    {Pid, Monitor} = spawn_opt(?MODULE, init, [maps:with([print, lines, path, command, libraries], Options), Printed], [link, monitor]),
    {Pid, Monitor, Printed}.

%% Has it ended before the trace?  -> false | Why
ended({Pid, Monitor, _}, {'DOWN', Monitor, process, Pid, Why}) -> Why;
ended(_, _) -> false.

%% The trace has ended, and the printer with it, or before.  -> events that were printed
finish({Pid, Before, Printed}) ->
    demonitor(Before, [flush]),
    Monitor = monitor(process, Pid),
    receive
        {'DOWN', Monitor, _, _, _} -> ok
    after ?END_MS ->
            exit(Pid, kill),
            receive {'DOWN', Monitor, _, _, _} -> ok end
    end,
    counters:get(Printed, 1).

%% ---- the process ----

%% Sensitive: what it does is not traced.
init(#{print := Print, lines := Lines, path := Path, command := Command} = Options, Printed) ->
    process_flag(sensitive, true),
    Arguments = ["print", "--follow", "--from", "0", "--format", "dbg", "--on-request", "--lines", integer_to_list(Lines), Path],
    loop(open_port({spawn_executable, Command}, [{args, Arguments}, {packet, 4}, binary, exit_status | tracewheel_server:environment(Options)]), Print, Printed).

%% The port program may have ended when it is asked: then this process ends with the port.
loop(Port, Print, Printed) ->
    catch port_command(Port, <<"\n">>),
    receive
        {Port, {data, Packet}} ->
            [Counts, Lines] = binary:split(Packet, <<"\n">>),
            [Shown, _] = binary:split(Counts, <<" ">>),
            show(Print, Lines),
            counters:put(Printed, 1, binary_to_integer(Shown)),
            ?MODULE:loop(Port, Print, Printed);
        {Port, {exit_status, 0}} -> ok;
        {Port, {exit_status, Status}} -> exit({exit_status, Status})
    end.

show(Print, Lines) ->
    try
        put_lines(Print, Lines)
    catch
        _:Why -> exit(Why)
    end.

put_lines(true, Lines) -> io:put_chars(group_leader(), Lines);
put_lines(Fun, Lines) -> [Fun(Line) || Line <- binary:split(Lines, <<"\n">>, [global, trim])].
