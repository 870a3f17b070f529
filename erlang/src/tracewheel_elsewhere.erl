%% SPDX-License-Identifier: Apache-2.0
%% A node that does not see the files of this machine: on another host, or in a container.  The command, its libraries and those of the application
%% are sent to a folder of its own there, which is removed at the end, when the capture has come back.
%%
%% Over there no code is needed for that: files come as a tar file, which stdlib unpacks, and a capture goes in pieces that erl_eval reads.
-module(tracewheel_elsewhere).
-export([shares_files/2, send/3, application_file/2, options/2, refuse_to_replace/2, free_path/1, bring/4, remove/2]).

-include_lib("kernel/include/file.hrl").

-import(tracewheel_reach, [fail/2]).

-define(CALL_MS, 60000).
-define(PIECE, 1048576). % bytes, in the node's memory at once
%% Of the host's own C library, which must fit its kernel and the VM.
-define(OWN, ["linux-vdso", "ld-linux", "libc.so", "libm.so", "libpthread.so", "libdl.so", "librt.so", "libgcc_s.so"]).

%% Is a file that is seen here the same that the node sees?
shares_files(Node, File) ->
    same(call(Node, file, read_file, ["/proc/sys/kernel/random/boot_id"]), file:read_file("/proc/sys/kernel/random/boot_id")) andalso
        same(identity(call(Node, file, read_file_info, [File])), identity(file:read_file_info(File))).

identity({ok, #file_info{inode = Inode, major_device = Device}}) -> {ok, {Inode, Device}};
identity(Error) -> Error.

same({ok, Same}, {ok, Same}) -> true;
same(_, _) -> false.

%% -> the folder there
send(Node, Recorder, Priv) ->
    Here = iolist_to_binary(erlang:system_info(system_architecture)),
    case iolist_to_binary(call(Node, erlang, system_info, [system_architecture])) of
        <<"x86_64", _/binary>> -> ok;
        There -> fail("'~ts' runs on ~ts, and this command on ~ts: it cannot be sent there.", [Node, There, Here])
    end,
    Libraries = [filename:join(Priv, L) || L <- ["tracewheel_nif.so", "tracewheel_tracer.so"]],
    Needed = lists:usort(lists:append([needed(F) || F <- [Recorder | Libraries]])),
    Files = [{"bin/tracewheel", Recorder}] ++ [{"erlang/priv/" ++ filename:basename(F), F} || F <- Libraries] ++
            [{"lib/" ++ Name, F} || {Name, F} <- Needed],
    Folder = make_folder(Node, 10),
    try
        ok = unpacked(Node, Folder, call(Node, erl_tar, extract, [{binary, pack(Files)}, [compressed, {cwd, Folder}]])),
        [ok = call(Node, file, change_mode, [filename:join(Folder, F), 8#755]) || F <- ["bin/tracewheel"]],
        Folder
    catch
        Class:Reason:Stack ->
            remove(Node, Folder),
            erlang:raise(Class, Reason, Stack)
    end.

unpacked(_, _, ok) -> ok;
unpacked(Node, Folder, {error, Reason}) -> fail("the files of this command cannot be written into ~ts at '~ts': ~ts.", [Folder, Node, erl_tar:format_error(Reason)]).

%% -> [{Name, File}]: what its dynamic linker finds for it here.
needed(File) ->
    Lines = string:lexemes(os:cmd("/lib64/ld-linux-x86-64.so.2 --list '" ++ File ++ "'"), "\n"),
    [{Name, Path} || Line <- Lines, [Name, "=>", [$/ | _] = Path | _] <- [string:lexemes(Line, " \t")],
                     not lists:any(fun(Own) -> lists:prefix(Own, Name) end, ?OWN)].

pack(Files) ->
    Me = self(),
    %% Not on a disk: the folder of this command may be one that nobody may write to.
    {ok, Tar} = erl_tar:init([], write, fun(write, {_, Data}) -> Me ! {tar, Data}, ok; (position, {_, _}) -> {ok, 0}; (close, _) -> ok end),
    [ok = erl_tar:add(Tar, file(F), Name, []) || {Name, F} <- Files],
    ok = erl_tar:close(Tar),
    packed(taken()).

%% The fastest way: half of the time is that of the other end.
packed(Data) ->
    Z = zlib:open(),
    ok = zlib:deflateInit(Z, best_speed, deflated, 31, 8, default),
    Packed = zlib:deflate(Z, Data, finish),
    zlib:close(Z),
    iolist_to_binary(Packed).

taken() -> receive {tar, Data} -> [Data | taken()] after 0 -> [] end.

%% Without what only debuggers read: a loader knows segments, not sections, and most of the bytes lie behind the last segment.
file(F) ->
    {ok, Bytes} = file:read_file(F),
    <<127, "ELF", 2, 1, Ident:10/binary, Kind:8/binary, Entry:8/binary, Segments_at:64/little, _Sections_at:64, Flags:4/binary, Header_bytes:2/binary,
      Size:16/little, Count:16/little, Section_bytes:2/binary, _Sections:16, _Names:16, _/binary>> = Bytes,
    End = lists:max([Offset + In_file || <<_:64, Offset:64/little, _:128, In_file:64/little, _/binary>>
                                             <- [binary:part(Bytes, Segments_at + N * Size, Size) || N <- lists:seq(0, Count - 1)]]),
    <<_:64/binary, Rest/binary>> = binary:part(Bytes, 0, End),
    <<127, "ELF", 2, 1, Ident/binary, Kind/binary, Entry/binary, Segments_at:64/little, 0:64, Flags/binary, Header_bytes/binary,
      Size:16/little, Count:16/little, Section_bytes/binary, 0:16, 0:16, Rest/binary>>.

%% Of a name that nobody has guessed, and for its user alone.
make_folder(Node, Tries) ->
    Base = case call(Node, os, getenv, ["TMPDIR"]) of false -> "/tmp"; Other -> Other end,
    Folder = filename:join(Base, "tracewheel-" ++ binary_to_list(binary:encode_hex(rand_bytes()))),
    case call(Node, file, make_dir, [Folder]) of
        ok ->
            ok = call(Node, file, change_mode, [Folder, 8#700]),
            Folder;
        {error, eexist} when Tries > 0 -> make_folder(Node, Tries - 1);
        {error, Reason} -> fail("'~ts' cannot make the folder ~ts, into which this command would be sent: ~ts.", [Node, Folder, file:format_error(Reason)])
    end.

rand_bytes() ->
    {ok, Source} = file:open("/dev/urandom", [read, raw, binary]),
    {ok, Bytes} = file:read(Source, 8),
    file:close(Source),
    Bytes.

%% The name under which a module is loaded there: beside it libraries are looked for.
application_file(Folder, Module) -> filename:join([Folder, "erlang/ebin", atom_to_list(Module) ++ ".beam"]).

options(Folder, Options) -> Options#{recorder => filename:join(Folder, "bin/tracewheel"), libraries => filename:join(Folder, "lib")}.

%% ---- the capture ----

%% Before anything is traced.
refuse_to_replace(Path, #{flight := true}) ->
    filelib:is_dir(filename:dirname(Path)) orelse fail("'~ts' cannot be made: its folder does not exist.", [Path]);
refuse_to_replace(Path, Options) ->
    case {filelib:is_file(Path), maps:get(force, Options, false) andalso is_capture(Path)} of
        {false, _} -> filelib:is_dir(filename:dirname(Path)) orelse fail("'~ts' cannot be made: its folder does not exist.", [Path]);
        {true, true} -> true;
        {true, false} -> fail("'~ts' exists; --force replaces it if it is a capture, -o names another.", [Path])
    end.

%% NAME.tw, NAME-2.tw, ...
free_path(Path) -> free_path(Path, filename:rootname(Path, ".tw"), 2).

free_path(Free, Name, Number) ->
    case filelib:is_file(Free) of
        true -> free_path(lists:concat([Name, "-", Number, ".tw"]), Name, Number + 1);
        false -> Free
    end.

is_capture(Path) -> filelib:is_dir(Path) andalso filelib:wildcard("segment-*", Path) =/= [].

%% From the node's folder to a path here.
bring(Node, There, Path, Options) ->
    refuse_to_replace(Path, Options),
    Part = Path ++ ".coming",
    try
        ok = done(file:make_dir(Part)),
        ok = done(file:change_mode(Part, 8#700)),
        {ok, Names} = call(Node, file, list_dir, [There]),
        [copy(Node, filename:join(There, N), filename:join(Part, filename:basename(N))) || N <- lists:sort(Names)],
        not filelib:is_dir(Path) orelse file:del_dir_r(Path),
        ok = done(file:rename(Part, Path))
    catch
        Class:Reason ->
            file:del_dir_r(Part),
            Class =:= throw andalso element(1, Reason) =:= failed andalso throw(Reason),
            fail("the capture cannot be brought here (~0tp): it lies at '~ts' in ~ts.", [Reason, Node, There])
    end.

done(ok) -> ok;
done({error, Reason}) -> throw(Reason).

copy(Node, From, To) ->
    {ok, File} = file:open(To, [write, raw, binary]),
    ok = pieces(Node, From, File, 0),
    ok = done(file:close(File)).

pieces(Node, From, File, At) ->
    case piece(Node, From, At) of
        {ok, Bytes} ->
            ok = done(file:write(File, Bytes)),
            pieces(Node, From, File, At + byte_size(Bytes));
        eof -> ok;
        {error, Reason} -> throw(Reason)
    end.

%% Opened for each: a file is closed with the process that has opened it.
piece(Node, From, At) ->
    {ok, Tokens, _} = erl_scan:string("case file:open(Path, [read, raw, binary]) of "
                                      "{ok, F} -> Read = file:pread(F, At, Bytes), file:close(F), Read; Error -> Error end."),
    {ok, Expressions} = erl_parse:parse_exprs(Tokens),
    {value, Read, _} = call(Node, erl_eval, exprs, [Expressions, [{'Path', From}, {'At', At}, {'Bytes', ?PIECE}]]),
    Read.

remove(Node, Folder) -> rpc:call(Node, file, del_dir_r, [Folder], ?CALL_MS).

call(Node, M, F, A) ->
    case rpc:call(Node, M, F, A, ?CALL_MS) of
        {badrpc, Reason} -> throw({failed, 125, lists:flatten(io_lib:format("'~ts' does not do ~p:~p/~p: ~0tP.", [Node, M, F, length(A), Reason, 20]))});
        Result -> Result
    end.
