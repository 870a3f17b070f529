%% SPDX-License-Identifier: Apache-2.0
%% A shop with a cart, for the questions of docs/erlang.md.
-module(shop).
-export([open/0, close/0, sell/1, pay/2, price/1, stock/1, restock/0, cart/1]).

open() ->
    Cart = spawn(?MODULE, cart, [[]]),
    register(shop_cart, Cart),
    Cart.

close() ->
    Monitor = monitor(process, shop_cart),
    shop_cart ! close,
    receive {'DOWN', Monitor, _, _, _} -> ok end.

%% A customer: a process that asks the cart and is answered.
sell(Id) ->
    {_, Monitor} = spawn_monitor(fun() -> shop_cart ! {pay, Id, self()}, receive {paid, Sum} -> Sum end end),
    receive {'DOWN', Monitor, _, _, normal} -> ok end.

cart(Sold) ->
    receive
        {pay, Id, From} ->
            From ! {paid, ?MODULE:pay(Id, 2)},
            ?MODULE:cart([Id | Sold]);
        close -> ok
    end.

pay(Id, Count) -> Count * ?MODULE:price(Id).

price(0) -> error(free);
price(Id) -> ?MODULE:stock(Id), 10 * Id.

stock(Id) -> length(lists:seq(1, Id)).

restock() -> garbage_collect(whereis(shop_cart)).
