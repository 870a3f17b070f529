%% SPDX-License-Identifier: Apache-2.0
%% peers:main() - plays one row of the table "Ten questions" of docs/erlang.md with the words of the column "elsewhere": row ROW of the environment. The words
%% of rows that end with `...` are completed here. questions_test.sh looks at what the other tool prints.
-module(peers).
-export([main/0]).

main() ->
    Row = list_to_integer(os:getenv("ROW")),
    Words = elsewhere(Row),
    shop:open(),
    play(Row, Words),
    halt().

%% The text of the first column behind the question, without backquotes.
elsewhere(Row) ->
    {ok, Text} = file:read_file(os:getenv("GUIDE")),
    [_, Behind] = string:split(Text, "## Ten questions"),
    Lines = [L || L <- string:split(Behind, "\n", all), string:find(L, "`#{") =/= nomatch],
    [_, _, Elsewhere | _] = string:split(lists:nth(Row, Lines), "|", all),
    lists:append(string:replace(binary_to_list(Elsewhere), "`", "", all)).

%% dbg and recon print by processes of their own.
play(Row, Words) when Row =< 7 ->
    Row < 5 orelse ({ok, _} = dbg:tracer()),
    Pay = [{[shop_cart, {pay, '_', '_'}], [], []}],
    {ok, Tokens, _} = erl_scan:string(Words ++ "."),
    {ok, Expressions} = erl_parse:parse_exprs(Tokens),
    {value, _, _} = erl_eval:exprs(Expressions, [{'Ms', Pay}]),
    timer:sleep(500),
    questions:work(),
    timer:sleep(500);
play(8, _) ->
    {ok, _} = eprof:start(),
    profiling = eprof:start_profiling([whereis(shop_cart)]),
    questions:work(),
    eprof:stop_profiling(),
    eprof:analyze();
play(9, _) ->
    [{module, M} = code:ensure_loaded(M) || M <- [questions, shop]], % the time is that of the work
    eflame:apply(normal_with_children, "stacks.out", fun() -> [questions:work() || _ <- lists:seq(1, 100)] end, []),
    {ok, Stacks} = file:read_file("stacks.out"),
    io:format("~ts~n", [Stacks]);
play(10, _) ->
    {ok, _} = ttb:tracer(node(), [{file, "ttb"}]),
    {ok, _} = ttb:p(all, [call]),
    {ok, _} = ttb:tp(shop, pay, []),
    [seq_trace:set_token(Flag, Value) || {Flag, Value} <- [{label, 8}, {send, true}, {'receive', true}]],
    questions:work(),
    seq_trace:set_token([]),
    ttb:stop([{format, {handler, {fun(_, Event, _, State) -> io:format("~0p~n", [Event]), State end, []}}}]).
