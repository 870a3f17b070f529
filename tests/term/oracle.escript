#!/usr/bin/env escript
%% SPDX-License-Identifier: Apache-2.0
%%! +pc latin1
%%
%% oracle.escript DRIVER DIRECTORY COUNT SEED - random terms, compared between Erlang and term/.
%%
%% Goal:   the external term format both ways, both printed forms, parsing, term order, hashes of equal
%%         terms and arithmetic are those of a real Erlang system.
%% Method: writes random terms with Erlang's answers into DIRECTORY/terms and DIRECTORY/sums; the driver
%%         checks them and writes its own encoding and text of each term into DIRECTORY/back; that is read
%%         back here and compared with the terms. Prints its seed; ends with 1 on the first difference.
-mode(compile).

main([Driver, Dir, Count, Seed0]) ->
    Seed = case Seed0 of "time" -> erlang:system_time(millisecond); _ -> list_to_integer(Seed0) end,
    io:format("seed ~w~n", [Seed]),
    rand:seed(exsss, Seed),
    Terms = special() ++ [term(rand:uniform(4)) || _ <- lists:seq(1, list_to_integer(Count))],
    ok = file:write_file(filename:join(Dir, "terms"), records(Terms)),
    ok = file:write_file(filename:join(Dir, "sums"), sums()),
    {Status, Out} = run(Driver, Dir),
    io:put_chars(Out),
    Status =:= 0 orelse halt(1),
    {ok, Back} = file:read_file(filename:join(Dir, "back")),
    check(Terms, Back, 0),
    io:format("~w terms agree~n", [length(Terms)]).

run(Driver, Dir) ->
    Port = open_port({spawn_executable, Driver}, [{args, [Dir]}, exit_status, stderr_to_stdout, binary]),
    collect(Port, []).

collect(Port, Acc) ->
    receive
        {Port, {data, D}} -> collect(Port, [Acc, D]);
        {Port, {exit_status, S}} -> {S, Acc}
    end.

%% ---- what the driver is given ----

%% Each term: flags, order against the one before (== and =:= order), ETF, ~tw, ~0tp.
records([First | _] = Terms) ->
    {R, _} = lists:mapfoldl(fun(T, Before) -> {record(T, Before), T} end, First, Terms),
    R.

record(T, Before) ->
    Etf = term_to_binary(T, etf_options()),
    {W, P} = case is_readable(T) of
                 true -> {unicode:characters_to_binary(io_lib:format("~tw", [T])),
                          unicode:characters_to_binary(io_lib:format("~0tp", [T]))};
                 false -> {<<>>, <<>>}
             end,
    [<<(flag(is_readable(T))):8, (order(Before, T)):8, (exact_order(Before, T)):8>>,
     sized(Etf), sized(W), sized(P)].

etf_options() ->
    lists:nth(rand:uniform(3), [[], [{minor_version, 1}], [{minor_version, 0}]]).

sized(B) -> [<<(byte_size(B)):32>>, B].
flag(true) -> 1;
flag(false) -> 0.

order(A, B) when A < B -> 0;
order(A, B) when A > B -> 2;
order(_, _) -> 1.

%% The order of keys in a map is the exact one, as far as it can be seen from outside.
exact_order(A, B) when A =:= B -> 1;
exact_order(A, B) ->
    case order(A, B) of
        1 -> 3;                     % equal, but not exactly: either way
        O -> case has_number(A) of true -> 3; false -> O end
    end.

has_number(T) when is_number(T) -> true;
has_number(T) when is_tuple(T) -> has_number(tuple_to_list(T));
has_number([H | T]) -> has_number(H) orelse has_number(T);
has_number(T) when is_map(T) -> true;
has_number(_) -> false.

%% What prints the same on both sides and can be read back from its text.
is_readable(T) when is_pid(T); is_port(T); is_reference(T) -> node(T) =:= node();
is_readable(T) when is_function(T) -> erlang:fun_info(T, type) =:= {type, external};
is_readable(T) when is_tuple(T) -> is_readable(tuple_to_list(T));
is_readable([H | T]) -> is_readable(H) andalso is_readable(T);
is_readable(T) when is_map(T) -> map_size(T) =< 32 andalso is_readable(maps:to_list(T));
is_readable(_) -> true.

%% ---- what the driver gives back ----

check([], <<>>, _) -> ok;
check([T | Ts], <<N:32, Etf:N/binary, M:32, Text:M/binary, Rest/binary>>, I) ->
    Back = (catch binary_to_term(Etf)),
    Back =:= T orelse differ(I, "encoded", T, Back),
    case is_readable(T) andalso is_standard(T) of
        true ->
            Read = (catch read(Text)),
            Read =:= T orelse differ(I, "printed", T, {Text, Read});
        false -> ok
    end,
    check(Ts, Rest, I + 1).

read(Text) ->
    {ok, Tokens, _} = erl_scan:string(unicode:characters_to_list(Text) ++ "."),
    {ok, Term} = erl_parse:parse_term(Tokens),
    Term.

%% What Erlang itself reads: no pids and the like.
is_standard(T) when is_pid(T); is_port(T); is_reference(T) -> false;
is_standard(T) when is_tuple(T) -> is_standard(tuple_to_list(T));
is_standard([H | T]) -> is_standard(H) andalso is_standard(T);
is_standard(T) when is_map(T) -> is_standard(maps:to_list(T));
is_standard(_) -> true.

differ(I, What, T, Got) ->
    io:format("term ~w, ~s: ~0tp~n   came back as ~0tp~n", [I, What, T, Got]),
    halt(1).

%% ---- random terms ----

pick(L) -> lists:nth(rand:uniform(length(L)), L).

special() ->
    Atoms = ['', a, 'A', 'a b', 'after', 'cond', 'a@b_C9', '_', '$1', '0a', [], '\n\t\e\d\0', '\'', '"', '\\',
             list_to_atom([16#e9, 16#f7]), list_to_atom([16#e9]), list_to_atom([16#434, 16#1f600]),
             list_to_atom(lists:duplicate(255, $x)), list_to_atom(lists:duplicate(255, 16#10ffff))],
    Floats = [1.0, 0.1, 100.0, 1000.0, 1.0e-4, 1.0e-5, 1.2e-4, 1.0e21, 1.0e22, 1.0e23, 5.0e-324,
              2.2250738585072014e-308, 1.7976931348623157e308, 9007199254740991.0, 9007199254740992.0,
              9007199254740993.0, 4503599627370497.5, 123456789012345.6, 0.3, 2.0e-3],
    Ints = [S * ((1 bsl B) + D) || B <- [0, 7, 8, 31, 32, 52, 53, 58, 59, 60, 63, 64, 127, 128, 1023, 2048],
                                   D <- [-1, 0, 1], S <- [1, -1]],
    Near = [F || B <- [53, 54, 59, 60, 62, 63, 64, 100, 1000], F <- [float(1 bsl B), -float(1 bsl B)]],
    Atoms ++ Floats ++ lists:append([[I, F] || I <- Ints, F <- [pick(Near ++ Floats)]]) ++
        [lists:seq(1, 70000), lists:duplicate(65535, $a), lists:duplicate(65536, $a), list_to_tuple(lists:seq(1, 300)),
         maps:from_list([{I, I} || I <- lists:seq(1, 1000)]), deep(900, []), <<>>, <<0:1>>, <<5:3>>, <<255, 1:1>>,
         fun lists:map/2, fun erlang:'+'/2, fun(X) -> X end, {}, #{}, [[]], [a | b], make_ref(), self(),
         hd(erlang:ports()), 1 bsl 65000, -(1 bsl 65000)].

deep(0, T) -> T;
deep(N, T) -> deep(N - 1, pick([{T}, [T], #{k => T}, [x | T]])).

term(0) -> leaf();
term(D) ->
    case rand:uniform(12) of
        1 -> list_to_tuple(terms(D));
        2 -> list_to_tuple(terms(D));
        3 -> terms(D);
        4 -> terms(D);
        5 -> terms(D) ++ leaf();
        6 -> maps:from_list([{term(D - 1), term(D - 1)} || _ <- terms(0)]);
        7 -> maps:from_list([{rand:uniform(60), leaf()} || _ <- lists:seq(1, pick([1, 5, 31, 32, 33, 60]))]);
        8 -> [pick("abcdefgh \n\t\"\\'\e") || _ <- lists:seq(1, rand:uniform(20))];
        _ -> leaf()
    end.

terms(D) -> [term(max(D - 1, 0)) || _ <- lists:seq(1, rand:uniform(6) - 1)].

leaf() ->
    case rand:uniform(20) of
        1 -> rand:uniform(10) - 5;
        2 -> rand:uniform(1 bsl 30) - (1 bsl 29);
        3 -> pick([1, -1]) * rand:uniform(1 bsl rand:uniform(70));
        4 -> pick([1, -1]) * rand:uniform(1 bsl rand:uniform(400));
        5 -> random_float();
        6 -> float(rand:uniform(2000) - 1000) / pick([1, 2, 4, 10, 100, 1000]);
        7 -> atom();
        8 -> atom();
        9 -> list_to_binary([rand:uniform(95) + 31 || _ <- lists:seq(1, rand:uniform(20))]);
        10 -> <<0, (rand:bytes(rand:uniform(40)))/binary>>;
        11 -> N = rand:uniform(7), <<(rand:bytes(rand:uniform(5)))/binary, (rand:uniform(128)):N>>;
        12 -> list_to_pid("<0." ++ integer_to_list(rand:uniform(30000)) ++ "." ++ integer_to_list(rand:uniform(9)) ++ ">");
        13 -> external(<<88>>, <<(rand:uniform(9)):32, (rand:uniform(3)):32>>);
        14 -> external(<<120>>, <<(rand:uniform(9)):64>>);
        15 -> reference();
        16 -> pick([fun lists:seq/2, fun lists:seq/3, fun erlang:self/0]);
        17 -> N = rand:uniform(100), pick([fun() -> N end, fun(X) -> X + N end]);
        18 -> [];
        19 -> [pick([16#e9, 16#ff, $a, $ ]) || _ <- lists:seq(1, 5)];
        20 -> pick([[16#434], [128], "a\x{7f}", [$a, 16#1f600], [-1], [65 | 66]])
    end.

atom() -> pick([a, b, ok, 'Error', 'hello world', true, undefined, aa, ab, '$2', list_to_atom([16#e4]), 'div']).

random_float() ->
    case <<(rand:uniform(1 bsl 64) - 1):64>> of
        <<F/float>> when F /= 0.0 -> F;
        _ -> random_float()
    end.

node_etf() -> list_to_binary([119, 3, pick(["a@b", "a@c", "b@b"])]).

external(Tag, Numbers) ->
    binary_to_term(<<131, Tag/binary, (node_etf())/binary, Numbers/binary, (pick([1, 2])):32>>).

reference() ->
    N = pick([1, 2, 3, 3, 3, 5]),
    Words = << <<(rand:uniform(3)):32>> || _ <- lists:seq(1, N) >>,
    binary_to_term(<<131, 90, N:16, (node_etf())/binary, (pick([1, 2])):32, Words/binary>>).

%% ---- arithmetic ----

%% {Op, A, B, Result}, encoded, each behind its size.
sums() ->
    Ops = ['+', '-', '*', 'div', 'rem', 'band', 'bor', 'bxor', 'bsl', 'bsr', '-', abs, 'bnot', float, round, trunc,
           floor, ceil],
    [sized(term_to_binary(sum(pick(Ops)))) || _ <- lists:seq(1, 20000)].

sum(Op) when Op =:= 'bsl'; Op =:= 'bsr' -> sum(Op, integer(), pick([1, -1]) * (rand:uniform(300) - 1));
sum(Op) when Op =:= round; Op =:= trunc; Op =:= floor; Op =:= ceil ->
    F = pick([random_float(), rand:uniform() * 1000 - 500, (rand:uniform(200) - 100) / 2]),
    {Op, F, 0, erlang:Op(F)};
sum(Op) when Op =:= abs; Op =:= 'bnot'; Op =:= float ->
    A = integer(),
    {Op, A, 0, try erlang:Op(A) catch error:_ -> error end};
sum(Op) -> sum(Op, integer(), integer()).

sum(Op, A, B) -> {Op, A, B, try erlang:Op(A, B) catch error:_ -> error end}.

integer() ->
    pick([1, -1]) * case rand:uniform(6) of
        1 -> rand:uniform(10) - 1;
        2 -> (1 bsl pick([59, 60, 63, 64, 128])) + rand:uniform(3) - 2;
        3 -> rand:uniform(1 bsl 59);
        4 -> rand:uniform(1 bsl 64);
        5 -> rand:uniform(1 bsl rand:uniform(1000));
        6 -> rand:uniform(1 bsl rand:uniform(300)) bsl rand:uniform(200)
    end.
