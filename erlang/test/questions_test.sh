#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal    The ten questions of docs/erlang.md are answered by what its table says; in the long form, by the words of other tools, too.
# Method  A VM plays the options of each row on a small shop (questions.erl), and looks for the answers. Then one for each row plays the column
#         "elsewhere" (peers.erl), if TRACEWHEEL_PEERS is a folder with the sources of redbug, recon and eflame; nothing of them is in this tree:
#		for peer in massemanet/redbug ferd/recon proger/eflame; do git clone https://github.com/$peer; done
build=$1 modules=(questions shop peers)
. "$(dirname "$0")/lib.sh"
export GUIDE=$root/docs/erlang.md
erl_run questions main >out 2>&1 || fail "questions.erl: $(cat out)"
grep -qx ok out || fail "questions.erl: $(cat out)"
[ -n "${TW_TEST_LONG:-}" ] || exit 0
[ -d "${TRACEWHEEL_PEERS:-}" ] || { echo "TRACEWHEEL_PEERS names no folder: the column of other tools is not played" && exit 0; }

mkdir parsers
erlc -o parsers "$TRACEWHEEL_PEERS"/redbug/src/*.[xy]rl >peers.out 2>&1 &&
	erlc -I "$TRACEWHEEL_PEERS/redbug/src" "$TRACEWHEEL_PEERS"/{redbug,recon,eflame}/src/*.erl parsers/*.erl >>peers.out 2>&1 ||
	fail "the other tools: $(cat peers.out)"

# row NUMBER COUNT PATTERN: so many lines of the answer have it; `any`: one at least.
row() {
	local got=0
	[ -e "answer$1" ] || ROW=$1 timeout 60 erl -noshell +S 2:2 -pa . -s peers main </dev/null >"answer$1" 2>&1 || got=$?
	is "$got" 0 "row $1: $(cat "answer$1")"
	got=$(grep -c -- "$3" "answer$1")
	[ "$2" = any ] && [ "$got" -gt 0 ] || is "$got" "$2" "row $1, $3: $(cat "answer$1")"
}
row 1 4 'shop:price([3789])'
row 1 1 'shop:price/1 -> 80'
row 2 2 'shop:price([89])'
row 3 5 'shop:pay/2'
row 4 3 'shop:price([378])'
row 5 1 'exception_from {shop,price,1} {error,free}'
row 6 4 'shop_cart ! {pay,'
row 7 4 'call shop:pay('
row 7 4 ' ! {paid,'
row 8 1 '^shop:price/1  *4 '
row 9 any 'questions:work/0;.*shop:sell/1'
row 10 4 'seq_trace,8,{send,.*{pay,'
row 10 4 '{shop,pay,\[[3789],2\]}'
