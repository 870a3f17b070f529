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
