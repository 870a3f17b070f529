%% SPDX-License-Identifier: Apache-2.0
%% pl.erl - functions that do what their second argument says: see player.erl, and ../play.c for the words.
%%
%% Calls are made in the functions themselves, so that callers, and where calls return to, are they.
-module(pl).
-export([a/2, b/2, c/2]).

-define(CALLS(T, O),
        {l, a, T, O} -> a(T, O); {x, a, T, O} -> ?MODULE:a(T, O);
        {l, b, T, O} -> b(T, O); {x, b, T, O} -> ?MODULE:b(T, O);
        {l, c, T, O} -> c(T, O); {x, c, T, O} -> ?MODULE:c(T, O);
        {l, d, T, O} -> d(T, O)).

-define(STEP(S, T, O, I, U, P, J),
        case S of
            {t, I} -> try case I of ?CALLS(U, P); J -> player:do(J) end catch _:_ -> caught end;
            ?CALLS(T, O);
            J -> player:do(J)
        end).

-define(TAIL(S),
        case S of
            {ret, V} -> V;
            {error, V} -> erlang:error(V);
            {exit, V} -> erlang:exit(V);
            {throw, V} -> erlang:throw(V);
            ?CALLS(T0, O0)
        end).

-define(ONE, ?STEP(A, T1, O1, I1, U1, P1, J1)).
-define(TWO, ?STEP(B, T2, O2, I2, U2, P2, J2)).
-define(THREE, ?STEP(C, T3, O3, I3, U3, P3, J3)).

-define(FUNCTION_THAT_DOES(F),
        F(_, [S]) -> ?TAIL(S);
        F(_, [A, S]) -> ?ONE, ?TAIL(S);
        F(_, [A, B, S]) -> ?ONE, ?TWO, ?TAIL(S);
        F(_, [A, B, C, S]) -> ?ONE, ?TWO, ?THREE, ?TAIL(S)).

?FUNCTION_THAT_DOES(a).
?FUNCTION_THAT_DOES(b).
?FUNCTION_THAT_DOES(c).
?FUNCTION_THAT_DOES(d).
