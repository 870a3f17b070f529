#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# run.sh BUILD [SECONDS] - what events cost in the Erlang VM beside the VM's own tracers, what is sustained, what is lost at full speed
#	for SECONDS (60), bytes on disk. Two schedulers.
# run.sh BUILD drop [SECONDS] - full speed alone; what a capture remembers of processes; then how long one call of the tracer held up a scheduler, each measured, for a third of
#	the time.
# run.sh BUILD print [SECONDS] - what `print => true` takes from the node, with group leaders that answer and one that does not.
# run.sh BUILD figures [SECONDS] - what is promised, each with its goal: a call, no loss, printing (for SECONDS, 3), 2,000 patterns, log events.
# run.sh BUILD terms - arguments of all sizes alone.
set -eu
build=$(realpath "$1")
root=$(cd "$(dirname "$0")/../.." && pwd)
here=$root/bench/erlang
parts=(all) quiet=()
case ${2:-} in
drop) parts=(drop hold) && shift ;;
terms) parts=(terms) && shift ;;
print) parts=(print) && shift ;;
figures) parts=(figures) && shift && set -- "$1" "${2:-3}" ;;
esac
seconds=${2:-60}
[ -e "$build/erlang/priv/tracewheel_nif.so" ] || { echo "the application was not built: erlang-base or erlang-dev is missing" >&2 && exit 1; }
work=$(mktemp -d "${TMPDIR:-/tmp}/tracewheel-bench.XXXXXX")
trap 'rm -rf "$work"' EXIT
cd "$work"
include=$(erl -noshell -eval 'io:format("~ts/usr/include", [code:root_dir()]), halt().')
cc -O2 -shared -fPIC -I"$include" -o empty_tracer.so "$here/empty_tracer.c"
cp "$here"/*.erl .
erlc ./*.erl
export TRACEWHEEL=$build/bin/tracewheel
# part NAME SECONDS APPLICATION
part() {
	# Schedulers that look for work would be counted as the cost of printing.
	[ "$1" != print ] && [ "$1" != figures ] || quiet=(+sbwt none +sbwtdcpu none +sbwtdio none)
	# The lines that are printed meanwhile are none of the figures.
	PART=$1 SECONDS_DROP=$2 erl -noshell +S 2:2 "${quiet[@]}" -pa "$3/ebin" -pa . -s erlang_bench main |
		if [ "$1" = figures ]; then grep -av '^(<\|^\.\.\. '; else cat; fi
}
for name in "${parts[@]}"; do
	if [ "$name" = hold ]; then
		TRACEWHEEL_BUILD=$build TRACEWHEEL_SOURCE=$root CFLAGS=-DTRACEWHEEL_MEASURE "$root/erlang/build.sh" "$work/measured/erlang"
		ln -s "$build/lib" "$work/measured/lib"
		part hold $((seconds / 3 + 1)) "$work/measured/erlang"
	else
		part "$name" "$seconds" "$build/erlang"
	fi
done
