#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# run.sh BUILD [SECONDS] - what events cost in the Erlang VM beside the VM's own tracers, what is sustained, what is lost at full speed
# for SECONDS (60), bytes on disk. Two schedulers.
set -eu
build=$(realpath "$1")
here=$(cd "$(dirname "$0")" && pwd)
[ -e "$build/erlang/priv/tracewheel_nif.so" ] || { echo "the application was not built: erlang-base or erlang-dev is missing" >&2 && exit 1; }
work=$(mktemp -d "${TMPDIR:-/tmp}/tracewheel-bench.XXXXXX")
trap 'rm -rf "$work"' EXIT
cd "$work"
include=$(erl -noshell -eval 'io:format("~ts/usr/include", [code:root_dir()]), halt().')
cc -O2 -shared -fPIC -I"$include" -o empty_tracer.so "$here/empty_tracer.c"
cp "$here"/*.erl .
erlc ./*.erl
export TRACEWHEEL=$build/bin/tracewheel SECONDS_DROP=${2:-60}
erl -noshell +S 2:2 -pa "$build/erlang/ebin" -pa . -s erlang_bench main
