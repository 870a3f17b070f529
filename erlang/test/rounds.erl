%% SPDX-License-Identifier: Apache-2.0
%% rounds:choose(Short, Long) - how many, here and in `./run test --long`.
-module(rounds).
-export([choose/2]).

choose(Short, Long) ->
    case os:getenv("TW_TEST_LONG", "") of
        "" -> Short;
        _ -> Long
    end.
