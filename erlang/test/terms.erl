%% SPDX-License-Identifier: Apache-2.0
%% terms:main() - random terms as messages: whole ones are those that were sent; cut ones are as tw_term_copy() cuts.
-module(terms).
-export([main/0, three/3]).

-define(COUNT, rounds:choose(300, 1500)).

main() ->
    Seed = case init:get_plain_arguments() of
               [Text] -> list_to_integer(Text);
               [] -> erlang:system_time() band 16#ffffff
           end,
    io:format("seed ~p~n", [Seed]),
    rand:seed(exsss, Seed),
    [begin
         Terms = special() ++ [term(Depth) || _ <- lists:seq(1, ?COUNT)] ++
                 [padded(term(2), Max + N) || Max =< 100, _ <- lists:seq(1, ?COUNT div 5), N <- [0, 1]],
         Cut = check(Max, Terms),
         %% A term is cut if and only if it exceeds the limit. The last message is the request to stop.
         {Max, Cut} = {Max, length([cut || T <- [{tracewheel_server, self(), make_ref(), stop} | Terms], not is_within(T, Max)])}
     end || {Max, Depth} <- [{7000, 3}, {16, 5}, {40, 5}, {100, 5}, {1000, 5}]],
    check_funs(),
    check_limits(),
    check_work(),
    io:format("ok~n"),
    halt().

bytes(Term) -> byte_size(term_to_binary(Term, [{minor_version, 2}])).

%% Of exactly so many bytes, if it is not larger already.
padded(Term, Bytes) -> {binary:copy(<<"p">>, max(0, Bytes - bytes({<<>>, Term}))), Term}.

is_within(Term, Max) ->
    bytes(Term) =< Max andalso depth(Term) =< 64.

depth([H | T]) -> max(1 + depth(H), if is_list(T) -> depth(T); true -> depth(T) end);
depth(T) when is_tuple(T) -> 1 + lists:max([0 | [depth(E) || E <- tuple_to_list(T)]]);
depth(T) when is_map(T) -> 1 + lists:max([0 | [max(depth(K), depth(V)) || {K, V} <- maps:to_list(T)]]);
depth(_) -> 0.

%% Sends the terms: what `print` shows of them, what `convert --to ttb` says they are, and how many were cut.
capture(Options, Terms) ->
    {ok, _} = tracewheel:start("terms.tw", Options#{processes => self(), flags => [send], on_full => block, force => true, events => infinity,
                                                   rate => infinity}),
    Sink = spawn_link(fun Loop() -> receive _ -> Loop() end end),
    [Sink ! T || T <- Terms],
    {ok, #{lost := 0, cut_terms := Cut}} = tracewheel:stop(),
    "" = os:cmd(os:getenv("TRACEWHEEL") ++ " print --format erlang terms.tw >terms.term"),
    "" = os:cmd(os:getenv("TRACEWHEEL") ++ " convert -q --force --to ttb terms.tw -o terms.ttb 2>&1"),
    {ok, Events} = file:consult("terms.term"),
    Name = list_to_atom(pid_to_list(Sink)),
    {[M || {trace, _, send, M, To} <- Events, To =:= Name], [M || {trace, _, send, M, To} <- read("terms.ttb"), To =:= Sink], Cut}.

check(Max, Terms) ->
    {Texts, Found, Cut} = capture(#{term_bytes => Max}, Terms),
    compare(Max, Terms, [plain(T) || T <- Terms], Texts),
    compare(Max, Terms, Terms, Found),
    Cut.

compare(Max, Terms, Wanted, Found) ->
    true = length(Found) =:= length(Terms),
    [is_right(is_within(T, Max), W, F) orelse begin io:format("FAILED, at most ~p bytes, whole ~p:~n~P~n~P~n", [Max, is_within(T, Max), T, 200, F, 200]), halt(1) end
     || {T, W, F} <- lists:zip3(Terms, Wanted, Found)].

is_right(true, Wanted, Found) -> Wanted =:= Found;
is_right(false, Wanted, Found) -> is_cut_of(Wanted, Found) andalso Wanted =/= Found.

%% The trace files of dbg.
read(Path) ->
    {ok, Bytes} = file:read_file(Path),
    [binary_to_term(B) || <<0, Size:32, B:Size/binary>> <= Bytes].

%% A fun has its name, and nothing of what it holds: no such fun is cut.
check_funs() ->
    Large = lists:seq(1, 100000),
    Funs = [fun lists:map/2, fun() -> Large end, fun(X) -> X end],
    {Texts, Found, 0} = capture(#{term_bytes => 200}, Funs),
    [{Shown, Shown} = {Shown, atom_to_list(Text)} || {F, Text} <- lists:zip(tl(Funs), tl(Texts)), Shown <- [erlang:fun_to_list(F)]],
    Names = [erlang:fun_to_list(F) || F <- Funs],
    Names = [erlang:fun_to_list(F) || F <- Found],
    true = hd(Funs) =:= hd(Found).

%% Limits other than bytes; the elements of an argument list are cut one by one; a map keeps the pairs that fit.
check_limits() ->
    [begin
         {_, [Left], Cut} = capture(Options, [Term]),
         {Options, Wanted} = {Options, Left},
         true = Cut >= 1
     end || {Term, Wanted, Options} <-
                [{{a, [b, {c, [d]}]}, {a, [b, {c, '...'}]}, #{term_depth => 3}},
                 {{a, [b]}, {a, '...'}, #{term_depth => 1}},
                 {lists:seq(1000, 2000), lists:seq(1000, 1014) ++ '...', #{term_elements => 16}},
                 {lists:duplicate(30, $x), lists:duplicate(16, $x) ++ '...', #{term_elements => 17}},
                 {#{a => lists:duplicate(1000, x)}, #{a => [x, x, x | '...']}, #{term_bytes => 30}},
                 {<<0:8003>>, {'...', <<0:56>>, 1000}, #{term_bytes => 31}}]],
    {_, [Map], _} = capture(#{term_bytes => 100}, [maps:from_list([{N, N} || N <- lists:seq(1, 100)])]),
    #{'...' := '...'} = Map,
    true = map_size(Map) > 15,
    {ok, _} = tracewheel:start("terms.tw", #{patterns => "terms:three/3", force => true, term_bytes => 100}),
    three(lists:seq(1, 1000), {self()}, <<0:8000>>),
    {ok, #{events := 1, cut_terms := 1}} = tracewheel:stop(),
    "" = os:cmd(os:getenv("TRACEWHEEL") ++ " convert -q --force --to ttb terms.tw -o terms.ttb 2>&1"),
    [{trace, _, call, {terms, three, [[1, 2 | _], '...', '...']}}] = read("terms.ttb").

three(_, _, _) -> ok.

%% A term of a hundred times the size takes about the same time, once both are cut: the least of many bursts, as other work only adds.
check_work() ->
    {ok, _} = tracewheel:start("terms.tw", #{patterns => "terms:three/3", force => true, on_full => block, events => infinity, rate => infinity}),
    [begin
         {Small, Large} = {least(Make(2000)), least(Make(200000))},
         Large < 8 * Small + 20000 orelse begin io:format("~s: ~p and ~p ns~n", [Name, Small, Large]), halt(1) end
     end || {Name, Make} <- kinds()],
    {ok, #{cut_terms := Cut}} = tracewheel:stop(),
    true = Cut > 0,
    Notes = os:cmd(os:getenv("TRACEWHEEL") ++ " info terms.tw"),
    [{match, _} = re:run(Notes, N) || N <- ["terms were cut: term_bytes 1000", "terms that were cut: " ++ integer_to_list(Cut)]].

least(Term) ->
    lists:min([begin
                   T0 = erlang:monotonic_time(nanosecond),
                   [three(Term, 1, 2) || _ <- lists:seq(1, 10)],
                   erlang:monotonic_time(nanosecond) - T0
               end || _ <- lists:seq(1, 20)]).

kinds() ->
    [{"list", fun(N) -> lists:seq(1000, 1000 + N) end},
     {"text", fun(N) -> lists:duplicate(N, $x) end},
     {"tuple", fun(N) -> list_to_tuple(lists:seq(1, N)) end},
     {"map", fun(N) -> maps:from_list([{K, K} || K <- lists:seq(1, N)]) end},
     {"deep list", fun(N) -> lists:foldl(fun(K, T) -> [K, T] end, [], lists:seq(1, N)) end},
     {"deep tuple", fun(N) -> lists:foldl(fun(K, T) -> {T, K} end, x, lists:seq(1, N)) end},
     {"binary", fun(N) -> binary:copy(<<"x">>, N) end},
     {"binary at a bit", fun(N) -> <<_:3, B/binary>> = <<0:3, (binary:copy(<<"x">>, N))/binary>>, B end},
     {"bit string", fun(N) -> <<0:(8 * N + 3)>> end},
     {"integer", fun(N) -> 1 bsl (8 * N) end},
     {"fun", fun(N) -> Held = lists:seq(1000, 1000 + N), fun() -> Held end end}].

special() ->
    [lists:seq(1, 100000), lists:duplicate(5000, lists:seq(1, 50)), <<0:80000>>, binary:copy(<<"x">>, 1000000), list_to_tuple(lists:seq(1, 5000)),
     maps:from_list([{N, N} || N <- lists:seq(1, 5000)]), lists:foldl(fun(N, T) -> [N, T] end, [], lists:seq(1, 1000)),
     lists:foldl(fun(N, T) -> {T, N} end, x, lists:seq(1, 1000)), 1 bsl 10000, [1, 2 | lists:seq(1, 3)], {<<0:80000>>, a, <<1:80000>>, [b]},
     [a | {b, lists:seq(1, 1000)}], <<0:8003>>, "text" ++ lists:duplicate(10000, $x)].

term(0) -> leaf(rand:uniform(12));
term(Depth) ->
    case rand:uniform(10) of
        1 -> list_to_tuple(terms(Depth));
        2 -> terms(Depth);
        3 -> terms(Depth) ++ term(0);
        4 -> maps:from_list([{term(0), term(Depth - 1)} || _ <- lists:seq(1, rand:uniform(6))]);
        5 -> {term(Depth - 1), terms(Depth)};
        _ -> leaf(rand:uniform(12))
    end.

terms(Depth) -> [term(Depth - 1) || _ <- lists:seq(1, rand:uniform(7) - 1)].

leaf(1) -> rand:uniform(300) - 20;
leaf(2) -> rand:uniform(1 bsl 40) - (1 bsl 39);
leaf(3) -> (rand:uniform(1 bsl 62) bsl rand:uniform(200)) * (rand:uniform(3) - 2);
leaf(4) -> rand:normal();
leaf(5) -> list_to_atom([96 + rand:uniform(26) || _ <- lists:seq(1, rand:uniform(8))]);
leaf(6) -> list_to_atom([rand:uniform(1000) + 31 || _ <- lists:seq(1, rand:uniform(5))]);
leaf(7) -> self();
leaf(8) -> list_to_binary([rand:uniform(256) - 1 || _ <- lists:seq(1, rand:uniform(40))]);
leaf(9) -> <<(rand:uniform(1000)):(rand:uniform(30))>>;
leaf(10) -> [rand:uniform(256) - 1 || _ <- lists:seq(1, rand:uniform(20))];
leaf(11) -> [];
leaf(12) -> make_ref().

plain(T) when is_pid(T) -> list_to_atom(pid_to_list(T));
plain(T) when is_reference(T) -> list_to_atom(ref_to_list(T));
plain([H | T]) -> [plain(H) | plain(T)];
plain(T) when is_tuple(T) -> list_to_tuple(plain(tuple_to_list(T)));
plain(T) when is_map(T) -> maps:from_list(plain(maps:to_list(T)));
plain(T) -> T.

%% The mark stands for anything; a list or map may end in it; bits become {'...',First,Bytes}.
is_cut_of(Same, Same) -> true;
is_cut_of(_, '...') -> true;
is_cut_of(B, {'...', First, Size}) when is_bitstring(B), is_binary(First) ->
    bit_size(B) div 8 =:= Size andalso binary:part(<<B/bits, 0:(7 - (bit_size(B) + 7) rem 8)>>, 0, byte_size(First)) =:= First;
is_cut_of([A | As], [B | Bs]) -> is_cut_of(A, B) andalso is_cut_of(As, Bs);
is_cut_of(A, B) when is_map(A), is_map(B) ->
    (map_size(A) =:= map_size(B) orelse maps:get('...', B, none) =:= '...') andalso
        lists:all(fun({'...', '...'}) -> true; ({K, V}) -> is_map_key(K, A) andalso is_cut_of(maps:get(K, A), V) end, maps:to_list(B));
is_cut_of(A, B) when is_tuple(A), is_tuple(B), tuple_size(A) =:= tuple_size(B) -> is_cut_of(tuple_to_list(A), tuple_to_list(B));
is_cut_of(_, _) -> false.
