%% SPDX-License-Identifier: Apache-2.0
%% Patterns of functions, in the forms that users of dbg, recon and redbug know:
%%
%%	"lists:seq/2", "lists:seq", "lists"		every call
%%	"lists:seq/2 -> return"				and its return; also exception, caller, stack; several with commas
%%	"lists:seq(A, B) when A > 1 -> return"		conditions on arguments
%%	"Shop.Cart:add/2", "Shop.Cart.valid?/1"		as Elixir writes names; also "Elixir.Shop.Cart:add/2", as views show them
%%	{M, F, A}, {M, F, '_'}, M			as erlang:trace_pattern/3
%%	{M, F, A, MatchSpec}				with a match specification
%%	{M, F, fun([A, B]) when A > 1 -> return_trace() end}	a fun from the shell, as dbg:fun2ms/1
-module(tracewheel_pattern).
-export([parse/1]).

%% parse(Pattern) -> {ok, {M, F, A}, MatchSpec} | {error, {bad_pattern, Pattern, Why}}
parse(Pattern) ->
    try
        {MFA, Spec} = pattern(Pattern),
        {ok, MFA, Spec}
    catch
        throw:Why -> {error, {bad_pattern, Pattern, Why}}
    end.

pattern(Module) when is_atom(Module) -> {{Module, '_', '_'}, true};
pattern(Text) when is_binary(Text) ->
    case unicode:characters_to_list(Text) of
        List when is_list(List) -> text(List);
        _ -> throw("it is not text in UTF-8")
    end;
pattern([C | _] = Text) when is_integer(C) -> text(Text);
pattern({M, F, Fun}) when is_atom(M), is_atom(F), is_function(Fun) -> {{M, F, '_'}, fun_spec(Fun)};
pattern({M, F, A}) -> {mfa(M, F, A), true};
pattern({M, F, A, Spec}) when is_list(Spec); is_boolean(Spec) -> {mfa(M, F, A), check_spec(Spec)};
pattern(_) -> throw("it is neither text, nor a module, nor {M,F,A}, {M,F,A,MatchSpec} or {M,F,Fun}").

mfa(M, F, A) when is_atom(M), is_atom(F), (A =:= '_' orelse (is_integer(A) andalso A >= 0 andalso A =< 255)) ->
    if
        M =:= '_', F =/= '_' -> throw("a function of every module cannot be named; give the module");
        F =:= '_', A =/= '_' -> throw("every function of a module has any arity: give no arity");
        true -> {M, F, A}
    end;
mfa(_, _, _) -> throw("module and function are atoms, the arity is a number from 0 to 255 or '_'").

check_spec(Spec) when is_boolean(Spec) -> Spec;
check_spec(Spec) ->
    case erlang:match_spec_test([], Spec, trace) of
        {error, Errors} -> throw(lists:flatten([Text || {_, Text} <- Errors]));
        _ -> Spec
    end.

%% ---- funs of the shell ----

fun_spec(Fun) ->
    case erl_eval:fun_data(Fun) of
        {fun_data, Bindings, Clauses} -> transform(Clauses, Bindings);
        _ -> throw("the fun is compiled: only one typed into the shell can become a match specification; elsewhere use dbg:fun2ms/1")
    end.

transform(Clauses, Bindings) ->
    case ms_transform:transform_from_shell(dbg, Clauses, Bindings) of
        {error, [{_, [{_, Module, Error} | _]} | _], _} -> throw(lists:flatten(Module:format_error(Error)));
        Spec -> check_spec(Spec)
    end.

%% ---- text ----

text(Text) ->
    {Head, Actions} = case string:split(Text, "->") of
                          [H, A] -> {H, [action(string:trim(Word)) || Word <- string:split(A, ",", all)]};
                          [H] -> {H, []}
                      end,
    head(tokens(Head), Actions).

tokens(Text) ->
    case erl_scan:string(Text) of
        {ok, Tokens, _} -> named(Tokens);
        {error, {_, Module, Error}, _} -> throw(lists:flatten(Module:format_error(Error)))
    end.

%% Names of Elixir become atoms: Shop.Cart is the module 'Elixir.Shop.Cart', behind which a dot may stand, and functions may end with ? or !
named([{var, Line, Part} | Rest]) when Part =/= '_' -> alias(Rest, Line, [Part]);
named([{atom, _, _} = Module, {':', _} = Colon | Rest]) -> [Module, Colon | function(Rest)];
named(Tokens) -> Tokens.

alias([{'.', _}, {var, _, Part} | Rest], Line, Parts) when Part =/= '_' -> alias(Rest, Line, [Part | Parts]);
alias([{Sign, _} | Rest], Line, Parts) when Sign =:= '.'; Sign =:= ':' -> [elixir(Line, lists:reverse(Parts)), {':', Line} | function(Rest)];
alias(Rest, Line, Parts) -> [elixir(Line, lists:reverse(Parts)) | Rest].

elixir(Line, ['Elixir' | [_ | _] = Parts]) -> elixir(Line, Parts);
elixir(Line, Parts) -> {atom, Line, joined(['Elixir.' | lists:join('.', Parts)])}.

function([{atom, Line, Name}, {Sign, _} | Rest]) when Sign =:= '?'; Sign =:= '!' -> [{atom, Line, joined([Name, Sign])} | Rest];
function(Tokens) -> Tokens.

joined(Parts) ->
    Name = lists:concat(Parts),
    length(Name) =< 255 orelse throw("the name is longer than an atom"),
    list_to_atom(Name).

action("return") -> {return_trace};
action("exception") -> {exception_trace};
action("caller") -> {message, {caller}};
action("stack") -> {message, {process_dump}};
action(Word) -> throw("there is no action '" ++ Word ++ "': return, exception, caller, stack").

head([{atom, _, M}], Actions) -> plain(M, '_', '_', Actions);
head([{atom, _, M}, {':', _}, {F, Function}], Actions) when F =:= atom -> plain(M, Function, '_', Actions);
head([{atom, _, M}, {':', _}, {atom, _, F}], Actions) -> plain(M, F, '_', Actions);
head([{Type, _, M}, {':', _}, {var, _, '_'} | Rest], Actions) when Type =:= atom; Type =:= var -> any(M, Rest, Actions);
head([{atom, _, M}, {':', _}, {atom, _, F}, {'/', _}, {integer, _, A}], Actions) -> plain(M, F, A, Actions);
head([{atom, _, M}, {':', _}, {atom, _, F}, {'/', _}, {var, _, '_'}], Actions) -> plain(M, F, '_', Actions);
head([{atom, _, M}, {':', _}, {atom, _, F}, {'(', Line} | Rest], Actions) -> arguments(M, F, Line, Rest, Actions);
head(_, _) -> throw("write Module:Function/Arity, Module:Function, Module, or Module:Function(Args) when Guards").

any(M, Rest, Actions) when Rest =:= [] -> plain(M, '_', '_', Actions);
any(M, [{'/', _}, {var, _, '_'}], Actions) -> plain(M, '_', '_', Actions);
any(_, _, _) -> throw("every function of a module has any arity: write Module:_").

plain(M, F, A, []) -> {mfa(M, F, A), true};
plain(M, F, A, Actions) -> {mfa(M, F, A), check_spec([{'_', [], Actions}])}.

%% "(A, B) when A > 1": the head of a fun over the list of arguments.
arguments(M, F, Line, Rest, Actions) ->
    {Args, After} = lists:splitwith(fun(Token) -> element(1, Token) =/= 'when' end, Rest),
    case lists:reverse(Args) of
        [{')', _} | Reversed] -> ok;
        _ -> Reversed = [], throw("the arguments end with a closing parenthesis, before `when`")
    end,
    Fun = [{'fun', Line}, {'(', Line}, {'[', Line}] ++ lists:reverse(Reversed) ++ [{']', Line}, {')', Line}] ++ After ++
          [{'->', Line}, {atom, Line, true}, {'end', Line}, {dot, Line}],
    case erl_parse:parse_exprs(Fun) of
        {ok, [{'fun', _, {clauses, [{clause, _, [List], _, _}] = Clauses}}]} ->
            [{SpecHead, Guards, _}] = transform(Clauses, []),
            {mfa(M, F, count(List)), check_spec([{SpecHead, Guards, Actions}])};
        {error, {_, Module, Error}} -> throw(lists:flatten(Module:format_error(Error)))
    end.

count({cons, _, _, Tail}) -> 1 + count(Tail);
count({nil, _}) -> 0.
