%% SPDX-License-Identifier: Apache-2.0
%% Patterns of functions, in the forms that users of dbg, recon and redbug know:
%%
%%	"lists:seq/2", "lists:seq", "lists"		every call
%%	"lists:seq/2 -> return"				and its return; also exception, caller, stack; several with commas
%%	"lists:seq(A, B) when A > 1 -> return"		conditions on arguments
%%	"Shop.Cart:add/2", "Shop.Cart.valid?/1"		as Elixir writes names; also "Elixir.Shop.Cart:add/2", as views show them
%%	"shop_*", "shop_*:handle_call/3", "Shop.*"	of all modules of such names, also of those that are loaded later
%%	{M, F, A}, {M, F, '_'}, M			as erlang:trace_pattern/3
%%	{M, F, A, MatchSpec}				with a match specification
%%	{M, F, fun([A, B]) when A > 1 -> return_trace() end}	a fun from the shell, as dbg:fun2ms/1
%%
%% and patterns of messages, one or a list of which one must match:
%%
%%	"{pay, Id, _} when Id > 7"			the message
%%	"shop_cart ! {pay, _, _}"			of send: also to whom, as the sender names it
%%	fun([To, {pay, Id, _}]) when Id > 7 -> true end	of 'receive' fun([Node, From, Message]); from the shell, or as text
%%	MatchSpec					as erlang:trace_pattern(send | 'receive', MatchSpec, [])
-module(tracewheel_pattern).
-export([parse/2, label/1, message/2]).

%% Each call begins a request of seq_trace: the body of a fun over its arguments.
-define(SEQ(Label), "set_seq_token(label, " ++ Label ++ "), set_seq_token(send, true), set_seq_token('receive', true), set_seq_token(print, true)").

%% parse(Pattern, Label) -> {ok, {M | {modules, Wildcard}, F, A}, MatchSpec} | {error, {bad_pattern, Pattern, Why}}; Label is of label/1, or none
parse(Pattern, Label) ->
    try
        {MFA, Spec} = pattern(Pattern, Label),
        {ok, MFA, Spec}
    catch
        throw:Why -> {error, {bad_pattern, Pattern, Why}}
    end.

%% Option seq: an expression as text, in which variables of a pattern may stand, or the label itself; throws {bad_option, seq, Option}
label(none) -> none;
label([C | _] = Text) when is_integer(C) ->
    try erl_parse:parse_exprs(scan(Text) ++ [{dot, 1}]) of
        {ok, [_]} -> Text;
        _ -> throw({bad_option, seq, Text})
    catch
        throw:_ -> throw({bad_option, seq, Text})
    end;
label(Term) ->
    is_kept_label({const, Term}) orelse throw({bad_option, seq, Term}),
    {label, Term}.

%% A token outlives the match specification, and the VM (OTP 25 and 27) does not copy its label: a tuple that one makes, or holds, is free memory
%% soon after.  What an argument holds is the process' own.
is_kept_label({const, Label}) -> is_atom(Label) orelse is_integer(Label) andalso Label bsr 58 =:= Label bsr 59;
is_kept_label({self}) -> true;
is_kept_label(Label) when is_atom(Label) -> Label =/= '$_' andalso Label =/= '$$';
is_kept_label(Label) -> is_integer(Label) andalso is_kept_label({const, Label}).

check_labels(Spec) ->
    [throw("the VM does not keep such a label of seq_trace: it is an atom, an integer, self() or a variable of the arguments")
     || {_, _, Actions} <- Spec, {set_seq_token, label, Label} <- Actions, not is_kept_label(Label)],
    Spec.

%% message(send | 'receive', Patterns) -> MatchSpec; throws {bad_pattern, Pattern, Why}
message(_, []) -> [];
message(Kind, [First | _] = Patterns) when not is_integer(First), not is_tuple(First) ->
    lists:append([message(Kind, P) || P <- Patterns]);
message(Kind, Pattern) ->
    try
        message_spec(Kind, Pattern)
    catch
        throw:Why -> throw({bad_pattern, Pattern, Why})
    end.

pattern(Text, Label) when is_binary(Text) ->
    case unicode:characters_to_list(Text) of
        List when is_list(List) -> text(List, Label);
        _ -> throw("it is not text in UTF-8")
    end;
pattern([C | _] = Text, Label) when is_integer(C) -> text(Text, Label);
pattern(Pattern, Label) ->
    {MFA, Spec} = pattern(Pattern),
    {MFA, with_seq(Spec, seq([{var, 1, '_'}], Label))}.

pattern(Module) when is_atom(Module) -> {{Module, '_', '_'}, true};
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
        _ -> check_labels(Spec)
    end.

%% ---- requests of seq_trace ----

%% The actions that give the process a token.
seq(_, none) -> [];
seq(_, {label, Label}) -> [{set_seq_token, label, {const, Label}} | [{set_seq_token, F, true} || F <- [send, 'receive', print]]];
seq(Arguments, Text) ->
    {clauses, Clauses} = parse_fun(fun_of(Arguments, [], scan(?SEQ(Text)))),
    [{_, _, Actions}] = check_labels(transform(Clauses, [])),
    Actions.

with_seq(Spec, []) -> Spec;
with_seq(false, _) -> false;
with_seq(Spec, Seq) when Spec =:= true; Spec =:= [] -> [{'_', [], Seq}];
with_seq(Spec, Seq) -> [{Head, Guards, Seq ++ Actions} || {Head, Guards, Actions} <- Spec].

%% ---- messages ----

message_spec(Kind, Text) when is_binary(Text) ->
    case unicode:characters_to_list(Text) of
        [_ | _] = List -> message_spec(Kind, List);
        _ -> throw("it is not text in UTF-8")
    end;
message_spec(Kind, [C | _] = Text) when is_integer(C) -> message_text(Kind, scan(Text));
message_spec(_, Fun) when is_function(Fun) -> fun_spec(Fun);
message_spec(_, [{_, _, _} | _] = Spec) -> check_spec(Spec);
message_spec(_, _) -> throw("it is neither text, nor a fun, nor a match specification").

message_text(_, [{'fun', _} | _] = Tokens) ->
    case parse_fun(Tokens ++ [{dot, 1}]) of
        {clauses, Clauses} -> check_spec(transform(Clauses, []));
        _ -> throw("the fun has no arguments")
    end;
message_text(Kind, Tokens) ->
    lists:keymember('->', 1, Tokens) andalso throw("a message has no actions; a fun has, `fun([To, Message]) -> message(caller()) end`"),
    {Terms, Guards} = lists:splitwith(fun(Token) -> element(1, Token) =/= 'when' end, Tokens),
    {Message, To} = case {Kind, split_send(Terms)} of
                        {_, none} -> {Terms, [{var, 1, '_'}]};
                        {send, Found} -> Found;
                        _ -> throw("`!` is of messages that are sent")
                    end,
    Any = case Kind of send -> []; 'receive' -> [{var, 1, '_'}, {',', 1}] end,
    [{Head, Conditions, _}] = fun_clause(Any ++ To ++ [{',', 1} | Message], Guards),
    check_spec([{Head, Conditions, []}]).

split_send(Terms) ->
    case lists:splitwith(fun(Token) -> element(1, Token) =/= '!' end, Terms) of
        {To, [_ | Message]} -> {Message, To};
        _ -> none
    end.

%% ---- funs of the shell ----

fun_spec(Fun) ->
    case erl_eval:fun_data(Fun) of
        {fun_data, Bindings, Clauses} -> transform(Clauses, Bindings);
        _ -> throw("the fun is compiled: only one typed into the shell can become a match specification; elsewhere use dbg:fun2ms/1")
    end.

transform(Clauses, Bindings) ->
    try ms_transform:transform_from_shell(dbg, Clauses, Bindings) of
        {error, [{_, [{_, Module, Error} | _]} | _], _} -> throw(lists:flatten(Module:format_error(Error)));
        Spec -> check_spec(Spec)
    catch
        error:function_clause -> throw("it is not a pattern of terms")
    end.

%% ---- text ----

text(Text, Label) ->
    {Head, Actions} = case string:split(Text, "->") of
                          [H, A] -> {H, [action(string:trim(Word)) || Word <- string:split(A, ",", all)]};
                          [H] -> {H, []}
                      end,
    {Modules, Tokens} = case re:run(Head, "^\\s*([\\w@.]*\\*[\\w@.*]*)(.*)$", [{capture, all_but_first, list}, dotall, unicode, ucp]) of
                            {match, [Wildcard, Rest]} -> {[{modules, wildcard(Wildcard)}], tokens("modules" ++ Rest)};
                            nomatch -> {[], tokens(Head)}
                        end,
    {{M, Function, Arity}, Spec} = head(Tokens, Actions),
    {{hd(Modules ++ [M]), Function, Arity}, with_seq(Spec, seq(list_of(Tokens), Label))}.

%% The arguments as a list, if the pattern has any.
list_of([_, {':', _}, _, {'(', _} | Rest]) ->
    Arguments = lists:takewhile(fun(Token) -> element(1, Token) =/= 'when' end, Rest),
    [{'[', 1} | lists:droplast(Arguments)] ++ [{']', 1}];
list_of(_) -> [{var, 1, '_'}].

wildcard("Elixir." ++ _ = Modules) -> Modules;
wildcard([C | _] = Modules) when C >= $A, C =< $Z -> "Elixir." ++ Modules;
wildcard(Modules) -> Modules.

tokens(Text) -> named(scan(Text)).

scan(Text) ->
    case erl_scan:string(Text) of
        {ok, Tokens, _} -> Tokens;
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
head([{atom, _, M}, {':', _}, {atom, _, F}, {'(', _} | Rest], Actions) -> arguments(M, F, Rest, Actions);
head(_, _) -> throw("write Module:Function/Arity, Module:Function, Module, or Module:Function(Args) when Guards").

any(M, Rest, Actions) when Rest =:= [] -> plain(M, '_', '_', Actions);
any(M, [{'/', _}, {var, _, '_'}], Actions) -> plain(M, '_', '_', Actions);
any(_, _, _) -> throw("every function of a module has any arity: write Module:_").

plain(M, F, A, []) -> {mfa(M, F, A), true};
plain(M, F, A, Actions) -> {mfa(M, F, A), check_spec([{'_', [], Actions}])}.

%% "(A, B) when A > 1": the head of a fun over the list of arguments.
arguments(M, F, Rest, Actions) ->
    {Args, After} = lists:splitwith(fun(Token) -> element(1, Token) =/= 'when' end, Rest),
    case lists:reverse(Args) of
        [{')', _} | Reversed] -> ok;
        _ -> Reversed = [], throw("the arguments end with a closing parenthesis, before `when`")
    end,
    [{SpecHead, Guards, _}] = fun_clause(lists:reverse(Reversed), After),
    {mfa(M, F, length(SpecHead)), check_spec([{SpecHead, Guards, Actions}])}.

%% fun([Arguments]) when Guards -> true end, of tokens; as a match specification.
fun_clause(Arguments, Guards) ->
    case parse_fun(fun_of([{'[', 1}] ++ Arguments ++ [{']', 1}], Guards, [{atom, 1, true}])) of
        {clauses, [{clause, _, [_], _, _}] = Clauses} ->
            case transform(Clauses, []) of
                [{Head, _, _}] = Spec when length(Head) >= 0 -> Spec;
                _ -> throw("the arguments are no list")
            end;
        _ -> throw("the arguments or the guards are not one clause")
    end.

fun_of(Argument, Guards, Body) -> [{'fun', 1}, {'(', 1} | Argument] ++ [{')', 1} | Guards] ++ [{'->', 1} | Body] ++ [{'end', 1}, {dot, 1}].

parse_fun(Tokens) ->
    case erl_parse:parse_exprs(Tokens) of
        {ok, [{'fun', _, Clauses}]} -> Clauses;
        {ok, _} -> throw("it is more than one expression");
        {error, {_, Module, Error}} -> throw(lists:flatten(Module:format_error(Error)))
    end.
