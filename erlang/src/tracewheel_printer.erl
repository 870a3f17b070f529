%% SPDX-License-Identifier: Apache-2.0
%% Prints a capture while it is written: option print of tracewheel:start/2.
%%
%% Nothing is printed by who is traced, and no event is sent to a process: a port program, `tracewheel print --follow --on-request`, reads the
%% capture and makes the lines.  It gives one packet for each request, and this process makes the next request when the group leader or the fun
%% has taken the lines of the last one.  So there is at most one packet in this VM, however slow they are, and lines that nobody
%% takes are left out, and counted, outside of it.
-module(tracewheel_printer).
-export([start/1, ended/2, finish/1]).
-export([init/1, loop/2]).

%% How long the rest may take to be printed at the end.
-define(END_MS, 2000).

%% By a server, whose end is its end.  -> a printer: {Pid, Monitor}, or {ended, Printed}
start(Options) -> spawn_opt(?MODULE, init, [maps:with([print, lines, path, command], Options)], [link, monitor]).

%% Has it ended before the trace?  -> false | {Why, Printer}
ended({Pid, Monitor}, {'DOWN', Monitor, process, Pid, Reason}) -> {why(Reason), {ended, printed(Reason)}};
ended(_, _) -> false.

%% The trace has ended.  -> events that were printed
finish({ended, Printed}) -> Printed;
finish({Pid, Monitor}) ->
    receive
        {'DOWN', Monitor, _, _, Reason} -> printed(Reason)
    after ?END_MS ->
            Printed = case process_info(Pid, dictionary) of
                          {dictionary, Words} -> proplists:get_value(?MODULE, Words, 0);
                          undefined -> 0
                      end,
            exit(Pid, kill),
            receive {'DOWN', Monitor, _, _, Reason} -> max(Printed, printed(Reason)) end
    end.

printed({?MODULE, Printed, _}) -> Printed;
printed(_) -> 0.

why({?MODULE, _, Why}) -> Why;
why(Reason) -> Reason.

%% ---- the process ----

%% Sensitive: what it does is not traced.
init(#{print := Print, lines := Lines, path := Path, command := Command}) ->
    process_flag(sensitive, true),
    put(?MODULE, 0),
    Arguments = ["print", "--follow", "--from", "0", "--format", "dbg", "--on-request", "--lines", integer_to_list(Lines), Path],
    loop(open_port({spawn_executable, Command}, [{args, Arguments}, {packet, 4}, binary, exit_status]), Print).

loop(Port, Print) ->
    catch port_command(Port, <<"\n">>),
    receive
        {Port, {data, Packet}} ->
            [Counts, Lines] = binary:split(Packet, <<"\n">>),
            [Printed, _] = binary:split(Counts, <<" ">>),
            show(Print, Lines),
            put(?MODULE, binary_to_integer(Printed)),
            ?MODULE:loop(Port, Print);
        {Port, {exit_status, 0}} -> finished(normal);
        {Port, {exit_status, Status}} -> finished({exit_status, Status})
    end.

finished(Why) -> exit({?MODULE, get(?MODULE), Why}).

show(Print, Lines) ->
    try
        put_lines(Print, Lines)
    catch
        _:Why -> finished(Why)
    end.

put_lines(true, Lines) -> io:put_chars(group_leader(), Lines);
put_lines(Fun, Lines) -> [Fun(Line) || Line <- binary:split(Lines, <<"\n">>, [global, trim])].
