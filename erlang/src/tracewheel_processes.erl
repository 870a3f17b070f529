%% SPDX-License-Identifier: Apache-2.0
%% Which processes are traced: option processes of tracewheel:start/2, and `record --erlang --process` as text.
%%
%%	all, new, existing, ...			as erlang:trace/3; as text, too
%%	a pid, a port, "<0.85.0>", "#Port<0.7>"
%%	a registered name, "shop_cart"
%%	{application, App}, "application:App"	processes of a running application
%%	{module, M}, "module:M"			that began with a function of a module: of a gen_server, its callback module
%%	{behaviour, B}, "behaviour:B"		that OTP began with a module of this behaviour
%%	{label, L}, "label:L"			that have called proc_lib:set_label(L), in OTP 27
%%
%% The last four are those that there are when the trace begins.  Text makes no atoms.
-module(tracewheel_processes).
-export([select/1, origin/2]).

-define(ITEMS, [all, new, existing, processes, ports, new_processes, new_ports, existing_processes, existing_ports]).

%% -> a pid, a port, an item of erlang:trace/3, or {selected, Pids}; throws {no_process, What} or {bad_process, What}
select(P) when is_pid(P), node(P) =:= node(); is_port(P), node(P) =:= node() -> P;
select(P) when is_atom(P) -> item_or_name(P, P);
select({Kind, Value} = P) ->
    is_kind(Kind, Value) orelse throw({bad_process, P}),
    selected(P, fun(Pid) -> is(Kind, Value, Pid) end);
select([C | _] = Text) when is_integer(C) -> text(Text);
select(Text) when is_binary(Text) ->
    case unicode:characters_to_list(Text) of
        [_ | _] = List -> text(List);
        _ -> throw({bad_process, Text})
    end;
select(P) -> throw({bad_process, P}).

item_or_name(Name, What) ->
    case {lists:member(Name, ?ITEMS), whereis(Name)} of
        {true, _} -> Name;
        {false, undefined} -> throw({no_process, What});
        {false, Process} -> Process
    end.

selected(What, Fun) ->
    case [P || P <- processes(), Fun(P)] of
        [] -> throw({no_process, What});
        Pids -> {selected, Pids}
    end.

%% ---- text ----

text("<" ++ _ = Text) -> local(Text, fun erlang:list_to_pid/1);
text("#Port<" ++ _ = Text) -> local(Text, fun erlang:list_to_port/1);
text("label:" ++ Label = Text) -> selected(Text, fun(P) -> is_label_text(word(P, '$process_label'), Label) end);
text(Text) ->
    case string:split(Text, ":") of
        [Kind, Value] when Kind =:= "application"; Kind =:= "module"; Kind =:= "behaviour" ->
            {K, V} = {list_to_atom(Kind), atom(Value, Text)},
            selected(Text, fun(P) -> is(K, V, P) end);
        _ ->
            item_or_name(atom(Text, Text), Text)
    end.

local(Text, From) ->
    try From(Text) of
        P when node(P) =:= node() -> P;
        _ -> throw({bad_process, Text})
    catch
        error:badarg -> throw({bad_process, Text})
    end.

%% A name that is no atom yet names nothing here.
atom(Name, Text) ->
    try list_to_existing_atom(Name) catch error:_ -> throw({no_process, Text}) end.

%% ---- kinds ----

is_kind(label, _) -> true;
is_kind(Kind, Value) -> is_atom(Value) andalso lists:member(Kind, [application, module, behaviour]).

is(application, App, Pid) -> application:get_application(Pid) =:= {ok, App};
is(module, M, Pid) -> lists:member(M, modules(Pid));
is(behaviour, B, Pid) -> lists:any(fun(M) -> lists:member(B, behaviours(M)) end, callbacks(Pid));
is(label, Label, Pid) -> word(Pid, '$process_label') =:= Label.

is_label_text(undefined, _) -> false;
is_label_text(Label, Text) -> lists:flatten(io_lib:format("~0tp", [Label])) =:= Text orelse is_same_text(Label, Text).

is_same_text(Label, Text) ->
    (is_list(Label) orelse is_binary(Label)) andalso (catch unicode:characters_to_list(Label)) =:= Text.

modules(Pid) ->
    case {callbacks(Pid), process_info(Pid, initial_call)} of
        {[], {initial_call, {M, _, _}}} -> [M];
        {Modules, _} -> Modules
    end.

%% Of a process that proc_lib has begun; supervisors began with supervisor:CALLBACK-MODULE/1.
callbacks(Pid) ->
    case word(Pid, '$initial_call') of
        {Supervisor, M, _} when Supervisor =:= supervisor; Supervisor =:= supervisor_bridge -> [Supervisor, M];
        {M, _, _} -> [M];
        _ -> []
    end.

behaviours(M) ->
    Attributes = try erlang:get_module_info(M, attributes) catch error:_ -> [] end,
    lists:append([L || {Name, L} <- Attributes, Name =:= behaviour orelse Name =:= behavior]).

%% ---- what kind of process it is ----

%% Dictionaries of processes with a larger heap are not copied.
-define(COPY_MAX, 131072). % words
-define(TEXT_MAX, 200). % characters

%% origin(Pid, Known) -> {{InitialCall, Behaviour, Application, Label}, Known}, as binaries, or {none, Known}: it has ended.
%% Known: a map of what was found out before: behaviours of modules, applications of group leaders.
origin(Pid, Known) ->
    case process_info(Pid, [initial_call, group_leader]) of
        undefined -> {none, Known};
        [{initial_call, Initial}, {group_leader, Leader}] ->
            Words = words(Pid),
            {M, F, A} = Began = maps:get('$initial_call', Words, Initial),
            Module = case Began of {supervisor, _, _} -> supervisor; _ -> M end,
            {Behaviour, Known1} = known({module, Module}, fun() -> behaviour_text(Began) end, Known),
            {Application, Known2} = known({leader, Leader}, fun() -> application_text(Pid) end, Known1),
            Label = case Words of #{'$process_label' := L} -> L; _ -> [] end,
            {{binary("~ts:~ts/~b", [M, F, A]), Behaviour, Application, case Label of [] -> <<>>; _ -> binary("~0tp", [Label]) end}, Known2}
    end.

known(Key, Fun, Known) ->
    case Known of
        #{Key := Value} -> {Value, Known};
        _ when map_size(Known) > 10000 -> {Fun(), #{}};
        _ -> Value = Fun(), {Value, Known#{Key => Value}}
    end.

behaviour_text({supervisor, _, _}) -> <<"supervisor">>;
behaviour_text({M, _, _}) -> binary("~ts", [lists:join(",", [atom_to_list(B) || B <- behaviours(M), is_atom(B)])]).

application_text(Pid) ->
    case application:get_application(Pid) of
        {ok, Application} -> binary("~ts", [Application]);
        undefined -> <<>>
    end.

binary(Format, Arguments) -> unicode:characters_to_binary(io_lib:format(Format, Arguments, [{chars_limit, ?TEXT_MAX}])).

%% -> a map of the words that are there
words(Pid) ->
    Keys = ['$initial_call', '$process_label'],
    try [{K, V} || K <- Keys, {_, V} <- [process_info(Pid, {dictionary, K})], V =/= undefined] of
        Words -> maps:from_list(Words)
    catch
        error:badarg ->
            case is_small(Pid) andalso process_info(Pid, dictionary) of
                {dictionary, All} -> maps:with(Keys, maps:from_list(All));
                _ -> #{}
            end
    end.

%% The item memory would walk along its mailbox.
is_small(Pid) ->
    case process_info(Pid, garbage_collection_info) of
        {_, Sizes} -> lists:sum([N || {K, N} <- Sizes, lists:member(K, [heap_block_size, old_heap_block_size, mbuf_size])]) =< ?COPY_MAX;
        undefined -> false
    end.

%% A word of the dictionary of another process; before OTP 26.2 all of it is copied.
word(Pid, Key) ->
    try process_info(Pid, {dictionary, Key}) of
        {_, Value} -> Value;
        undefined -> undefined
    catch
        error:badarg ->
            case process_info(Pid, dictionary) of
                {dictionary, Words} -> proplists:get_value(Key, Words);
                undefined -> undefined
            end
    end.
