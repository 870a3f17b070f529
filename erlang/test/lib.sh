# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# lib.sh - what the tests of the Erlang application share. A test starts with
#	build=$1; . "$(dirname "$0")/lib.sh"
tests=$(cd "$(dirname "$0")" && pwd)
root=$(dirname "$(dirname "$tests")")
. "$root/tests/tools/lib.sh"
command -v erl >/dev/null || { echo "no erl here: not tested" && exit 77; }
[ -e "$build/erlang/priv/tracewheel_nif.so" ] || { echo "the application was not built: not tested" && exit 77; }
export TRACEWHEEL=$tw
erlc "$tests"/*.erl >erlc.out || fail "erlc: $(cat erlc.out)"

# A tracer module of the tests, which looks inside captures.
compile_both() {
	local include
	include=$(erl -noshell -eval 'io:format("~ts/usr/include", [code:root_dir()]), halt().')
	cc -shared -fPIC -O1 -Wall -I"$include" -I"$root/include" -I"$root/erlang/c_src" -o both.so "$tests/both.c" ||
		fail "the compiler"
}

# erl_run MODULE FUNCTION [ERL-OPTION]...: a VM with the application and the tests' modules.
erl_run() {
	local module=$1 function=$2
	shift 2
	timeout "${ERL_SECONDS:-100}" erl -noshell +S 2:2 -pa "$build/erlang/ebin" -pa . -s "$module" "$function" "$@" </dev/null
}

# ---- nodes that know nothing of the application, and `record --erlang` (attach.erl) ----

# a_home: an epmd of this test alone; a home with a wrong cookie, and the file `cookie` with the right one, which is `secret`.
a_home() {
	unset TRACEWHEEL
	own_epmd
	mkdir home
	printf wrong >home/.erlang.cookie
	printf secret >cookie
	chmod 600 home/.erlang.cookie cookie
	export HOME=$work/home
}

# start_node OPTION...: sets $node.
start_node() {
	rm -f ready
	erl -noinput +S 2:2 -start_epmd false "$@" -pa . -s attach main >node.out 2>&1 &
	node=$!
	pids="$pids $node"
	until [ -e ready ] || ! kill -0 $node 2>/dev/null; do sleep 0.05; done
	[ -e ready ] || fail "the node does not start: $(cat node.out)"
}

# begin OPTION...: the command in the background, until it traces. Sets $recording.
begin() {
	: >err # it may have words of an earlier one
	"$tw" record --erlang -t attach:step/1 --time infinity "$@" >out 2>err </dev/null &
	recording=$!
	wait_for $recording grep -q tracing err
}

ended_with() {
	local got=0
	wait $recording || got=$?
	is "$got" "$1" "exit code: $(cat err)"
}

# refused CODE SENTENCE ARGUMENT...
refused() {
	local code=$1 sentence=$2
	shift 2
	expect "$code" "$tw" record --erlang "$@"
	says "$sentence"
	is "$(grep -c '^tracewheel' err)" 1 "one sentence: $(cat err)"
	[ ! -e none.tw ] || fail "a capture of nothing"
}
