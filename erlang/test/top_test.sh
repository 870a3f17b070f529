#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal    `top --erlang NODE` shows which processes of a node work, have messages that wait, and have memory, by what they are; calls that are
#         counted; on a terminal its keys do what they say. A node of many processes is not asked about all at once. Whatever ends it, nothing is left.
# Method  A node of known processes (top.erl); rounds as JSON, the screen as tmux shows it.
build=$1 modules=(top)
. "$(dirname "$0")/lib.sh"
command -v epmd >/dev/null || { echo "no epmd here: not tested" && exit 77; }
a_home
terminal=(tmux -S "$work/terminal" -f /dev/null)
trap '"${terminal[@]}" kill-server 2>/dev/null; kill $pids 2>/dev/null; rm -rf "$work"' EXIT

# ask WHAT: top.erl has the list.
ask() {
	: >"$1"
	wait_until test ! -e "$1"
}

nothing_left() {
	ask quiet
	ask unloaded
}

# value EXPRESSION: of the rounds d; row(name) is one of the last.
value() {
	python3 -I -S -c "import json
d = [json.loads(l) for l in open('out') if l.strip()]
def row(name): return next(r for r in d[-1]['rows'] if r.get('name') == name)
print($1)" || fail "not the JSON expected: $1"
}

node_main=top start_node -sname shop@localhost -setcookie secret
top=("$tw" top --erlang --cookie-file cookie --every 100ms)

expect 0 "${top[@]}" --format json --count 8 -t top:step/1 -t top:init shop@localhost
[ ! -s err ] || fail "words beside the rounds"
is "$(value 'len(d), d[-1]["processes"] > 300, all(r["asked"] >= 300 for r in d)')" "8 True True"
is "$(value 'row("full")["mailbox"], row("full")["initial_call"], row("worker")["label"]')" "5000 top:init/1 {worker,7}"
is "$(value 'max(d[-1]["rows"], key=lambda r: r["memory"])["name"], row("large")["memory"] > 8000000')" "large True"
is "$(value '"worker" in [r.get("name") for r in d[-1]["rows"][:3]], row("worker")["new_reductions"] > 0')" "True True" "the busiest come first"
is "$(value 'row("kernel_sup")["behaviour"], row("kernel_sup")["application"]')" "supervisor kernel"
is "$(value 'any(r["functions"][0]["name"] == "top:step/1" and r["functions"][0]["calls"] > r["functions"][0]["new_calls"] > 0 for r in d)')" True
is "$(value 'len(d[-1]["rows"]) <= 400')" True
nothing_left

# As text, by its process, in another order.
expect 0 "$tw" top --erlang --every 200ms --batch --count 2 --top 1 --sort mailbox -t top:step "$node"
is "$(grep -c ' full  *top:init/1' out)" 2 "rounds"
is "$(grep -c '^ *reductions/s .* label$' out)" 2
is "$(grep -c ' top:step/1$' out)" 2
nothing_left

# Many processes are asked in turn: in a round of 100 ms 320 at most, and those that are shown.
ask many
expect 0 "${top[@]}" --format json --count 4 shop@localhost
is "$(value 'd[0]["asked"] <= 320, d[-1]["asked"] <= 4 * 320 + 400, d[-1]["processes"] > 20000')" "True True True"
nothing_left

# begin_top OPTION...: in the background, until a round is there.
begin_top() {
	: >out
	"${top[@]}" --format json -t top:step/1 shop@localhost >out 2>err </dev/null &
	watching=$!
	wait_for $watching grep -q functions out
	ask counted
}

# Signals; the command is killed; its process in the node is.
begin_top
kill -TERM $watching
wait $watching
is $? 0
nothing_left
begin_top
kill -9 $watching
wait $watching 2>/dev/null
nothing_left
begin_top
ask kill
wait $watching
is $? 1
says "the process that looks at others was killed in the node"
nothing_left

# What cannot be, and why.
denied() {
	local code=$1 sentence=$2
	shift 2
	expect "$code" "$tw" top --erlang "$@"
	says "$sentence"
	is "$(grep -c '^tracewheel' err)" 1 "one sentence: $(cat err)"
}
denied 2 "which node" --batch
denied 2 "--sort is rate, reductions" --sort calls shop
denied 2 "has no function top:none" --cookie-file cookie -t top:none shop@localhost
denied 2 "all calls are counted" --cookie-file cookie -t 'top:step -> return' shop@localhost
expect 2 "$tw" top --batch --erlang shop
says "--erlang comes first"
# Another's counter stays.
if [ -n "${TW_TEST_LONG:-}" ] && erl -noshell -eval 'halt(case code:ensure_loaded(trace) of {module, _} -> 1; _ -> 0 end)'; then
	ask own
	denied 125 "another counts top:step/1" --cookie-file cookie -t top:step shop@localhost
	ask counted
fi
ask unloaded

# On a terminal.
type tmux >/dev/null 2>&1 || exit 0
screen() {
	"${terminal[@]}" capture-pane -p >screen 2>/dev/null && grep -q -- "$1" screen
}
press() {
	"${terminal[@]}" send-keys "$@"
}
"${terminal[@]}" new-session -d -x 120 -y 12 "${top[*]} -t lists:seq/2 shop@localhost; echo code \$?; sleep 1000" || fail "tmux"
wait_until screen ' worker  *erlang:apply/2'
wait_until screen '; by rate'
press s s
wait_until screen '; by mailbox'
wait_until screen ' 5,000 .* full '
press t
wait_until screen ' lists:seq/2'
press t r /
press l a r g
wait_until screen '^/larg'
press Enter
wait_until screen 'Esc: all'
screen ' full ' && fail "the filter"
press q
wait_until screen '^code 0'
ask unloaded
