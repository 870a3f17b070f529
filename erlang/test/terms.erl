%% SPDX-License-Identifier: Apache-2.0
%% terms:main() - random terms as messages: whole ones are those that were sent; cut ones are as tw_term_copy() cuts.
-module(terms).
-export([main/0]).

-define(COUNT, 3000).

main() ->
    Seed = case init:get_plain_arguments() of
               [Text] -> list_to_integer(Text);
               [] -> erlang:system_time() band 16#ffffff
           end,
    io:format("seed ~p~n", [Seed]),
    rand:seed(exsss, Seed),
    Whole = [term(3) || _ <- lists:seq(1, ?COUNT)],
    check("whole.tw", 7000, Whole, fun(Sent, Plain, Found) -> size_of(Sent) > 7000 orelse Plain =:= Found end),
    [begin
         Terms = special() ++ [term(5) || _ <- lists:seq(1, ?COUNT)],
         check("cut.tw", Max, Terms, fun(Sent, Plain, Found) ->
                                     is_cut_of(Plain, Found) andalso (size_of(Sent) > Max orelse Plain =:= Found)
                             end)
     end || Max <- [16, 40, 100, 1000]],
    io:format("ok~n"),
    halt().

%% Some encodings are a few bytes longer than the VM's, and a number takes place for the longest.
size_of(Term) ->
    Binary = term_to_binary(Term),
    byte_size(Binary) + 16 + 8 * length([x || <<C>> <= Binary, C =:= $X orelse C =:= $Z orelse C =:= $d]).

check(Path, Max, Terms, Is) ->
    {ok, _} = tracewheel:start(Path, #{processes => self(), flags => [send], term_bytes => Max, force => true, events => infinity,
                                       rate => infinity}),
    Sink = spawn_link(fun Loop() -> receive _ -> Loop() end end),
    [Sink ! T || T <- Terms],
    {ok, #{lost := 0}} = tracewheel:stop(),
    "" = os:cmd(os:getenv("TRACEWHEEL") ++ " print --format erlang " ++ Path ++ " >terms.term"),
    {ok, Events} = file:consult("terms.term"),
    Name = list_to_atom(pid_to_list(Sink)),
    Found = [M || {trace, _, send, M, To} <- Events, To =:= Name],
    true = length(Found) =:= length(Terms),
    [Is(T, plain(T), F) orelse begin io:format("FAILED, at most ~p bytes:~n~p~n~p~n", [Max, T, F]), halt(1) end || {T, F} <- lists:zip(Terms, Found)].

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

%% The mark stands for anything; a list may end in it; a binary becomes {'...',First,Size}.
is_cut_of(Same, Same) -> true;
is_cut_of(_, '...') -> true;
is_cut_of(B, {'...', First, Size}) when is_binary(B) -> byte_size(B) =:= Size andalso binary:part(B, 0, byte_size(First)) =:= First;
is_cut_of([A | As], [B | Bs]) -> is_cut_of(A, B) andalso is_cut_of(As, Bs);
is_cut_of(A, B) when is_tuple(A), is_tuple(B), tuple_size(A) =:= tuple_size(B) -> is_cut_of(tuple_to_list(A), tuple_to_list(B));
is_cut_of(_, _) -> false.
