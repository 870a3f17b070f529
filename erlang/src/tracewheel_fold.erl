%% SPDX-License-Identifier: Apache-2.0
%% A capture as terms: tracewheel:fold/3.
%%
%% `tracewheel convert --to ttb` writes the messages that a process tracer would have received into a file, which is read one by one: a capture of any
%% size needs no more memory than its largest message.
-module(tracewheel_fold).
-export([fold/3]).

-define(READ_BYTES, 65536).

%% -> {ok, Acc} | {error, Reason}
fold(Fun, Acc, Path) when is_function(Fun, 2) ->
    case tracewheel_server:command(#{}) of
        false -> {error, {no_recorder, "the command tracewheel is not in PATH; TRACEWHEEL in the environment names it"}};
        Command -> fold(Fun, Acc, Path, Command)
    end.

fold(Fun, Acc, Path, Command) ->
    File = filename:join(case os:getenv("TMPDIR") of false -> "/tmp"; Folder -> Folder end,
                         lists:concat(["tracewheel-", os:getpid(), "-", erlang:unique_integer([positive]), ".ttb"])),
    Port = open_port({spawn_executable, Command},
                     [{args, ["convert", "--quiet", "--to", "ttb", "-o", File, "--", Path]}, exit_status, stderr_to_stdout, binary, hide]),
    try await(Port, <<>>) of
        {0, _} -> messages(Fun, Acc, File);
        {_, Text} -> {error, {Path, unicode:characters_to_list(string:trim(Text))}}
    after
        file:delete(File)
    end.

await(Port, Text) ->
    receive
        {Port, {data, More}} -> await(Port, <<Text/binary, More/binary>>);
        {Port, {exit_status, Status}} -> {Status, Text}
    end.

messages(Fun, Acc, File) ->
    {ok, Opened} = file:open(File, [read, raw, binary, {read_ahead, ?READ_BYTES}]),
    try {ok, each(Fun, Acc, Opened)} after file:close(Opened) end.

%% As a file port writes them: 0 and the bytes of a message, or 1 and how many were dropped.
each(Fun, Acc, File) ->
    case file:read(File, 5) of
        {ok, <<0, Bytes:32>>} ->
            {ok, Message} = file:read(File, Bytes),
            each(Fun, Fun(binary_to_term(Message), Acc), File);
        {ok, <<1, Count:32>>} -> each(Fun, Fun({drop, Count}, Acc), File);
        eof -> Acc
    end.
