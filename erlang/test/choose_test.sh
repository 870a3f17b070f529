#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal    The processes that are named are traced, and no others: by pid, registered name, application, module, behaviour, label, with what they
#	  start or without; a name of none is one error, here and from outside. A call begins a request of seq_trace, also from outside. Calls
#         are shown by the names of processes, and by their initial calls, behaviours, applications and labels.
# Method  A VM with processes of each kind (choose.erl), where the capture says who has sent a message; a node, and the command.
build=$1 modules=(choose attach)
. "$(dirname "$0")/lib.sh"
erl_run choose main >said 2>&1 || fail "choose.erl: $(cat said)"
grep -qx ok said || fail "it did not come to its end: $(cat said)"

command -v epmd >/dev/null || { echo "no epmd here: the rest is not tested" && exit 77; }
a_home
start_node -sname shop@localhost -setcookie secret
outside=(--cookie-file cookie -t attach:step -p call)
expect 0 "$tw" record --erlang -q "${outside[@]}" --events 10 -o all.tw shop@localhost
who=$("$tw" print --format dbg all.tw | sed -n '1s/^(\([^)]*\)) .*/\1/p')
expect 0 "$tw" record --erlang -q "${outside[@]}" --process kernel_sup --process "$who" --events 10 -o one.tw shop@localhost
is "$("$tw" print --format dbg one.tw | grep -cF "($who) call attach:step")" 10 "calls of $who"
expect 0 "$tw" record --erlang -q "${outside[@]}" --process application:kernel --time 500ms -o kernel.tw shop@localhost
is "$("$tw" print --format dbg kernel.tw 2>/dev/null | wc -l)" 0 "calls by processes of kernel"
refused 2 "'shop@localhost' has no process 'nobody' (--process, --snapshot-on)" "${outside[@]}" --process nobody -o none.tw shop@localhost
refused 2 "'<0.x>' is not a process of the node" "${outside[@]}" --process '<0.x>' -o none.tw shop@localhost
expect 2 "$tw" record --erlang --cookie-file cookie --processes calls -o none.tw shop@localhost
says "--processes is --flags now, and --process says which processes"

# Requests of seq_trace that begin with a call: a process of kernel is asked.
expect 0 "$tw" record --erlang -q --cookie-file cookie --seq N -t 'attach:step(N) when N rem 16 =:= 0' --events 20 -o seq.tw shop@localhost
expect 0 "$tw" seq --format json seq.tw
is "$(json 'd["requests"][0]["label"].isdigit(), d["requests"][0]["messages"] > 1')" 'True True' "a request for each call: $(cut -c1-300 out)"
refused 2 "--seq wants -t PATTERN" --cookie-file cookie --seq order -p send -o none.tw shop@localhost
refused 2 "'attach:step(N)' is refused: the VM does not keep such a label" --cookie-file cookie --seq '{a, N}' -t 'attach:step(N)' -o none.tw shop@localhost
