#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal    `convert` reads the trace files of Erlang's file ports and writes such files: each message, each stamp and each drop
#         record passes through a capture and back; dbg:trace_client() reads what is written; a file that was cut off, is damaged
#         or is something else leads to one sentence, and to no capture or one that holds the rest.
# Method  A file of a few messages, restated here byte by byte, becomes a capture and the same bytes again. With Erlang: a file
#         of dbg:trace_port() with all kinds of messages and of stamps; dbg:trace_client() folds it and what became of it.
build=$1
. "$(dirname "$0")/lib.sh"

# ---- without Erlang: <0.7.0> calls m:f(1) and m:f([a]), 3 messages are dropped, it sends ok to <0.8.0>, m:f/1 returns 2 ----
record() {
	printf '%b' "\\x00\\x00\\x00\\x00\\x$(printf '%02x' "$(($(printf '%b' "$1" | wc -c)))")$1"
}
pid() {
	printf '%s' "Xw\\x0dnonode@nohost\\x00\\x00\\x00\\x$1\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00"
}
atom() {
	printf '%s' "w\\x$(printf '%02x' ${#1})$1"
}
stamp='h\x03b\x00\x00\x06\xa4b\x00\x09\xfb\xf1a\x07'
{
	record "\\x83h\\x04$(atom trace)$(pid 07)$(atom call)h\\x03$(atom m)$(atom f)k\\x00\\x01\\x01"
	record "\\x83h\\x05$(atom trace_ts)$(pid 07)$(atom call)h\\x03$(atom m)$(atom f)l\\x00\\x00\\x00\\x01l\\x00\\x00\\x00\\x01$(atom a)jj$stamp"
	printf '\x01\x00\x00\x00\x03'
	record "\\x83h\\x05$(atom trace)$(pid 07)$(atom send)$(atom ok)$(pid 08)"
	record "\\x83h\\x05$(atom trace)$(pid 07)$(atom return_from)h\\x03$(atom m)$(atom f)a\\x01a\\x02"
} >small.trace
expect 0 "$tw" convert --from ttb small.trace -o small.tw
says 'small.tw: 4 events, and 3 dropped before they were written'
expect 0 "$tw" print --format erlang small.tw
cat >wanted <<'TXT'
{trace,'<0.7.0>',call,{m,f,[1]}}.
{trace_ts,'<0.7.0>',call,{m,f,[[a]]},{1700,654321,7}}.
{trace_ts,'<0.7.0>',lost,[{full,3}],1700654321000007000}.
{trace,'<0.7.0>',send,ok,'<0.8.0>'}.
{trace,'<0.7.0>',return_from,{m,f,1},2}.
TXT
cmp out wanted || fail "events of the small file"
# Where there is no space for a file, the beginning of it is no file, and devices stay what they are.
make_calls
expect 0 "$tw" record -q --follow-fork --returns -t calls:_ -o calls.tw -- sh -c 'yes | ./calls >said'
for form in perfetto chrome csv sqlite ttb; do
	if [ -x "$build/bin/tracewheel-sql" ] || [ "$form" != csv ] && [ "$form" != sqlite ]; then
		(trap '' XFSZ && ulimit -f 1 && exec "$tw" convert --to "$form" calls.tw -o cut.out) >out 2>err && fail "$form: 1 KiB was enough"
		says "cut.out' was not written to its end, and is removed"
		[ ! -e cut.out ] || fail "$form: the beginning of a file was left"
	fi
done
expect 1 "$tw" convert --force --to perfetto calls.tw -o /dev/full
[ -c /dev/full ] || fail "a device was removed"
expect 0 "$tw" info small.tw
shows '^events *4'
shows '^complete *yes'
expect 0 "$tw" convert --to ttb small.tw -o small.back
says 'small.back: 4 messages, and 3 dropped'
cmp small.trace small.back || fail "other bytes than those read"
expect 0 "$tw" convert -q --to ttb -o - small.tw
[ ! -s err ] || fail "not quiet"
cmp small.trace out || fail "other bytes on standard output"
expect 0 "$tw" convert -q --to ttb --timestamps wall -o timed.trace small.tw
expect 0 "$tw" convert -q --from ttb timed.trace -o timed.tw
expect 0 "$tw" print --format erlang timed.tw
is "$(grep -c "{1700,654321,7}" out)" 4 "times of day of all messages"
# Wrap files, one behind the other.
expect 0 "$tw" convert -q --from ttb small.trace small.back -o both.tw
expect 0 "$tw" info both.tw
shows '^events *8'

# ---- wrong requests and files ----
expect 1 "$tw" convert --from ttb small.trace -o small.tw
says "'small.tw' exists"
expect 0 "$tw" convert -q --force --from ttb small.trace -o small.tw
expect 1 "$tw" convert --to ttb small.tw -o small.back
says "'small.back' exists"
expect 0 "$tw" convert -q --force --to ttb small.tw -o small.back
mkdir folder && touch folder/mine
expect 1 "$tw" convert --force --from ttb small.trace -o folder
[ -e folder/mine ] || fail "a folder that is no capture was replaced"
expect 2 "$tw" convert small.tw
says 'exactly one of --to and --from'
expect 2 "$tw" convert --to xml small.tw -o x
says "not 'xml'"
expect 2 "$tw" convert --to ttb small.tw
says '-o says where'
expect 1 "$tw" convert --from ttb none.trace -o none.tw
says 'none.trace'
expect 1 "$tw" convert --from ttb "$tw" -o none.tw
says 'is not a trace file of Erlang'
[ ! -e none.tw ] || fail "a capture of no trace file"
head -c 200 small.trace >cut.trace
expect 1 "$tw" convert --from ttb cut.trace -o cut.tw
says "ends inside a message"
expect 1 "$tw" info cut.tw
shows '^events *2'
shows 'complete      no: cut off'
{ cat small.trace && printf 'rubbish'; } >bad.trace
expect 1 "$tw" convert --from ttb bad.trace -o bad.tw
says "from its message 6 on"
expect 1 "$tw" info bad.tw
shows '^events *4'
{ cat small.trace && record "\\x83$(atom hello)"; } >other.trace
expect 0 "$tw" convert --from ttb other.trace -o other.tw
says "1 term of the trace file is not a trace message, and was left out"
# No byte is trusted.
mutants=$(rounds 20 60)
python3 -I -S - "$mutants" <<'PY'
import random, sys
data = open("small.trace", "rb").read()
random.seed(15)
for i in range(int(sys.argv[1])):
    bad = bytearray(data)
    for _ in range(random.randrange(1, 8)):
        bad[random.randrange(len(bad))] = random.randrange(256)
    open(f"mutant{i}.trace", "wb").write(bad)
PY
for ((i = 0; i < mutants; i++)); do
	code=0
	"$tw" convert --from ttb "mutant$i.trace" -o mutant.tw --force >out 2>err || code=$?
	[ "$code" -le 1 ] || fail "exit code $code of mutant $i"
done

# ---- with Erlang ----
command -v erl >/dev/null || { echo "no erl here: conversion of Erlang's own files was not tested" && exit 0; }
cat >play.erl <<'ERL'
-module(play).
-export([write/1, read/1]).

%% Files of dbg:trace_port, one for each kind of stamps.
write(Stamps) ->
    lists:foreach(fun write_one/1, Stamps),
    halt().

write_one(Stamp) ->
    Port = (dbg:trace_port(file, atom_to_list(Stamp) ++ ".trace"))(),
    Flags = [call, send, 'receive', procs, running, garbage_collection, return_to, set_on_spawn] ++ [Stamp || Stamp =/= none],
    Said = [{'_', [], [{return_trace}, {message, {{x, 7}}}]}],
    1 = erlang:trace_pattern({lists, seq, 2}, Said, [local]),
    1 = erlang:trace_pattern({lists, reverse, 1}, [{'_', [], [{exception_trace}]}], [local]),
    1 = erlang:trace_pattern({lists, duplicate, 2}, true, [local]),
    Me = self(),
    Pid = spawn(fun() -> receive go -> ok end, work(Me), Me ! done end),
    Ref = monitor(process, Pid),
    erlang:trace(Pid, true, [{tracer, Port} | Flags]),
    Pid ! go,
    receive {'DOWN', Ref, process, Pid, _} -> ok end,
    erlang:trace_delivered(all),
    receive {trace_delivered, _, _} -> ok end,
    dbg:flush_trace_port(),
    port_close(Port).

work(Me) ->
    register(worker_bee, self()),
    Other = spawn_link(fun() -> receive {X, F} when is_function(F) -> F(X) end end),
    lists:seq(1, 3),
    lists:reverse([a, -1, 2.5, <<"bin">>, #{k => [v]}, lists:duplicate(200, $x), ""]),
    _ = maps:get(k, #{k => 12345678901234567890123}),
    catch lists:reverse(foo),
    Other ! {1 bsl 62, fun(Y) -> Y + 1 end},
    Other ! lists:seq(1, 100),
    garbage_collect(),
    unregister(worker_bee),
    Me ! {self(), make_ref(), hd(erlang:ports()), fun lists:seq/2, <<1:3>>}.

%% Each message on a line, times below 0 from the start of the VM on, sizes of collections in order.
read(Stamps) ->
    [read_one(atom_to_list(Stamp) ++ In, atom_to_list(Stamp) ++ Out) ||
        Stamp <- Stamps, {In, Out} <- [{".trace", ".before"}, {".back", ".after"}]],
    halt().

read_one(In, Out) ->
    Self = self(),
    {ok, To} = file:open(Out, [write]),
    dbg:trace_client(file, In,
                     {fun(end_of_trace, ok) -> Self ! finished, ok;
                         (Message, ok) -> io:format(To, "~0p.~n", [even(Message)]), ok
                      end, ok}),
    receive finished -> ok end,
    file:close(To).

even({_, _, Tag, Sizes, Stamp} = Message) when Tag =:= gc_minor_start; Tag =:= gc_minor_end; Tag =:= gc_major_start; Tag =:= gc_major_end ->
    setelement(4, setelement(5, Message, stamp(Stamp)), lists:sort(Sizes));
even({trace, _, _, [{_, Words} | _] = Sizes} = Message) when is_integer(Words) -> setelement(4, Message, lists:sort(Sizes));
even(Message) when element(1, Message) =:= trace_ts -> setelement(tuple_size(Message), Message, stamp(element(tuple_size(Message), Message)));
even(Message) -> Message.

stamp({Time, Unique}) -> {stamp(Time), stamp(Unique)};
stamp(Time) when is_integer(Time), Time < 0 -> Time + (1 bsl 59);
stamp(Time) -> Time.
ERL
erlc play.erl >erlc.out || fail "erlc: $(cat erlc.out)"
stamps="none timestamp monotonic_timestamp strict_monotonic_timestamp"
# shellcheck disable=SC2086 # words
timeout 60 erl -noshell -s play write $stamps || fail "no trace files"
for stamp in $stamps; do
	expect 0 "$tw" convert --from ttb $stamp.trace -o $stamp.tw
	says "$stamp.tw: [0-9]* events.\$"
	expect 0 "$tw" convert --to ttb $stamp.tw -o $stamp.back
done
# shellcheck disable=SC2086 # words
timeout 60 erl -noshell -s play read $stamps || fail "trace_client, of what Erlang wrote and of the converted files"
for stamp in $stamps; do
	[ "$(wc -l <$stamp.before)" -ge 30 ] || fail "few messages: $(cat $stamp.before)"
	cmp $stamp.before $stamp.after || fail "$stamp: $(diff $stamp.before $stamp.after | head -n 4)"
done
# Times of day are the file's, and those of the monotonic clock end when the file was written last.
for stamp in timestamp monotonic_timestamp; do
	expect 0 "$tw" info $stamp.tw
	shows "from $(date -u -r $stamp.trace +%Y-%m-%d)"
done
expect 0 "$tw" report timestamp.tw
shows 'worker_bee'
shows 'lists:seq/2'
# Returns of lists:duplicate/2 were not asked for: its only call does not last to the end.
grep -Eq '^ +- +- +1 +- +- +- +- +lists:duplicate/2' out || fail "a call without a return has a time"
# A message waits from its send on until its receiver looks for messages, although the VM reports it only then.
expect 0 "$tw" report --json timestamp.tw
grep -q '"waits": *[1-9]' out || fail "no message that waited"
expect 0 "$tw" why-late timestamp.tw
shows "each counts as taken then"
