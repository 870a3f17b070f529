%% SPDX-License-Identifier: Apache-2.0
%% questions:main() - plays the table "Ten questions" of docs/erlang.md on shop.erl: each row's options, and what stands behind them.
-module(questions).
-export([main/0]).

main() ->
    {ok, Text} = file:read_file(os:getenv("GUIDE")),
    [_, Behind] = string:split(Text, "## Ten questions"),
    [Table | _] = string:split(Behind, "\n## "),
    Rows = [row(Line) || Line <- string:split(Table, "\n", all), string:find(Line, "`#{") =/= nomatch],
    {10, 10} = {length(Rows), length(answers())},
    [play(Row, Answer) || {Row, Answer} <- lists:zip(Rows, answers())],
    io:format("ok~n"),
    halt().

%% What stands in backquotes in the last column: options, and what is asked afterwards.
row(Line) ->
    Here = lists:last(string:split(string:trim(Line, trailing, " |"), " | ", all)),
    every_second(string:split(Here, "`", all)).

every_second([_, Quoted | Rest]) -> [binary_to_list(Quoted) | every_second(Rest)];
every_second(_) -> [].

%% What is found in the answer, and how often; in order of the table.
answers() ->
    [[{"call shop:price(8)", 1}, {"returned from shop:price/1 -> 80", 1}],
     [{"call shop:price(", 2}, {"call shop:price(8)", 1}, {"call shop:price(9)", 1}],
     [{"call shop:price(", 5}, {"{shop,pay,2}", 5}],
     [{"call shop:price(", 3}],
     [{"exception_from {shop,price,1} {error,free}", 1}, {"exception_from {shop,pay,2}", 1}],
     [{"shop_cart ! {pay,", 4}, {"paid", 0}],
     [{"call shop:pay(", 4}, {"! {paid,", 4}, {"<< {pay,", 4}],
     [{"{{shop,price,1},5}", 1}],
     [{"shop:pay/2", any}, {"<html", 1}],
     [{"request 8: ", 1}, {"shop_cart  {pay,8,", 1}, {"{paid,160}", 1}]].

play([Options | Asked], Wanted) ->
    Self = self(),
    shop:open(),
    Given = term(Options),
    {ok, _} = tracewheel:start("shop.tw", maps:map(fun(print, true) -> fun(Line) -> Self ! {line, Line} end; (_, V) -> V end, Given#{force => true})),
    work(),
    Counters = [io_lib:format("~0p", [{F, N}]) || {ok, Cs} <- [tracewheel:counters()], #{function := F, calls := N} <- Cs],
    {ok, _} = tracewheel:stop(),
    catch shop:close(),
    Said = case Asked of
               ["tracewheel " ++ Command] -> os:cmd(os:getenv("TRACEWHEEL") ++ " " ++ Command);
               ["tracewheel:counters()"] -> Counters;
               [] -> lines()
           end,
    [case length(string:split(Said, Part, all)) - 1 of
         Count -> ok;
         N when Count =:= any, N > 0 -> ok;
         N -> io:format("~ts~n~p: ~p times, not ~p~n~ts~n", [Options, Part, N, Count, Said]), halt(1)
     end || {Part, Count} <- Wanted].

%% Sales, and one that the exception ends.
work() ->
    [shop:sell(Id) || Id <- [3, 7, 8, 9]],
    catch shop:pay(0, 1),
    ok.

term(Text) ->
    {ok, Tokens, _} = erl_scan:string(Text ++ "."),
    {ok, Term} = erl_parse:parse_term(Tokens),
    Term.

lines() -> receive {line, Line} -> [Line, "\n" | lines()] after 0 -> [] end.
