%% SPDX-License-Identifier: Apache-2.0
%% dice:scenario(Seed) - a random scenario for same.erl: a process opens and closes ports, sends them commands as calls and as messages, links to
%% them, gives them to others and loses them, and loads, calls and purges a module for which patterns wait (on_load).
-module(dice).
-export([scenario/1, run/1, forget/0]).

-define(STEPS, 40).
-define(SLOTS, 3).
-define(CODE, dice_code).

%% -> {Name, Flags, Patterns}, as play.erl has them
scenario(Seed) ->
    load(), % the compiler's modules, for which no pattern is to wait
    unload(),
    rand:seed(exsss, Seed),
    Flags = [F || F <- [ports, running_ports, send, 'receive', procs, running, arity, return_to, set_on_spawn], rand:uniform(2) =:= 1],
    Specs = [true, [{'_', [], [{return_trace}]}], [{'_', [], [{exception_trace}]}], [{[1], [], [{message, {caller}}]}, {'_', [], []}]],
    {{dice, Seed}, [call | Flags], [{on_load, one(Specs)} || rand:uniform(4) > 1] ++ [{{?MODULE, step, '_'}, one(Specs)}]}.

one(List) -> lists:nth(rand:uniform(length(List)), List).

%% What is loaded by a scenario keeps its patterns.
forget() -> erlang:trace_pattern({?CODE, '_', '_'}, false, [local]).

run({dice, Seed}) ->
    rand:seed(exsss, {Seed, 1, 1}),
    process_flag(trap_exit, true),
    steps(?STEPS, #{}),
    receive never -> ok after 20 -> ok end.

steps(0, Ports) ->
    [catch port_close(P) || P <- maps:values(Ports)],
    unload();
steps(N, Ports) -> steps(N - 1, random_step(rand:uniform(18), rand:uniform(?SLOTS), Ports)).

%% 1 to 4 for each slot: whatever is there is forgotten, and not closed.
random_step(Kind, Slot, Ports) when Kind =< 4 -> Ports#{Slot => open(one(["cat", "cat", "cat", "true", "false", "echo one; echo two"]))};
random_step(5, _, Ports) -> load(), Ports;
random_step(6, _, Ports) -> unload(), Ports;
random_step(Kind, _, Ports) when Kind =:= 7; Kind =:= 8 -> catch ?CODE:f(rand:uniform(2)), Ports;
random_step(Kind, Slot, Ports) ->
    case Ports of
        #{Slot := Port} -> catch with(Kind, Port);
        _ -> receive _ -> ok after 1 -> ok end
    end,
    Ports.

open(Command) -> open_port({spawn, "sh -c '" ++ Command ++ "' 2>/dev/null"}, [one([binary, eof, exit_status, {line, 4}])]).

with(9, Port) -> port_command(Port, one(["hello\n", <<"binary\n">>, [<<"a">>, $b, "c\n"]]));
with(10, Port) -> Port ! {self(), {command, "a message\n"}};
with(11, Port) -> port_close(Port);
with(12, Port) -> Port ! {self(), close};
with(13, Port) -> unlink(Port);
with(14, Port) -> link(Port);
with(15, Port) -> exit(Port, one([kill, normal, reason]));
with(16, Port) -> receive {Port, _} -> ok after 5 -> ok end;
%% The new owner ends at once, or closes it; the port ends with it.
with(17, Port) ->
    End = one([fun() -> port_close(Port) end, fun() -> ok end]),
    Pid = spawn(fun() -> receive go -> ok end, catch port_command(Port, "of another\n"), catch End() end),
    port_connect(Port, Pid),
    unlink(Port),
    Pid ! go;
%% Wrong ones: signals of bad commands, of others than the owner.
with(18, Port) ->
    (one([fun() -> Port ! {self(), nonsense} end, fun() -> spawn(fun() -> Port ! {self(), {command, "x"}} end) end,
          fun() -> port_control(Port, 1, "") end, fun() -> erlang:port_info(Port) end, fun() -> port_command(Port, not_iodata) end]))().

%% A version that differs from the one before.
load() ->
    {ok, M, Code} = compile:forms([{attribute, 1, module, ?CODE}, {attribute, 1, export, [{f, 1}]},
                                   {function, 1, f, 1, [{clause, 1, [{integer, 1, 1}], [], [{integer, 1, rand:uniform(1000)}]},
                                                        {clause, 1, [{var, 1, 'X'}], [], [{call, 1, {atom, 1, error}, [{var, 1, 'X'}]}]}]}]),
    code:purge(M),
    {module, M} = code:load_binary(M, "dice", Code).

unload() ->
    code:purge(?CODE),
    code:delete(?CODE),
    code:purge(?CODE).
