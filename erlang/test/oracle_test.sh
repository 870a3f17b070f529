#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal    Traced into a capture, the scenarios of tests/semantics have the answers that a process tracer had: calls, returns, match
#         specifications, life of processes, messages, schedules, collections, meta, sequential traces.
# Method  tests/semantics/oracle/player.erl plays them on OTP 25 with the tracer module; then with one that gives each event to a process
#         as well, whose messages must be those of the capture, in the same order for each tracee.
build=$1 modules=(both)
. "$(dirname "$0")/lib.sh"
oracle=$root/tests/semantics/oracle
erlc "$oracle"/*.erl >erlc.out || fail "erlc: $(cat erlc.out)"
compile_both
mapfile -t plays < <(ls "$oracle"/*.term | grep -v '/c\.term$')
export ERL_CRASH_DUMP=/dev/null
for module in tracewheel_tracer both; do
	rm -rf oracle.tw
	got=0
	timeout 100 erl -noshell +S 2:2 -pa "$build/erlang/ebin" -pa . -run player captured "$module" "${plays[@]}" </dev/null >out 2>err || got=$?
	[ "$got" != 77 ] || { echo "another Erlang than OTP 25, on which the answers were recorded: not tested" && exit 77; }
	[ "$got" = 0 ] || fail "answers of $module"
	cat out
done
