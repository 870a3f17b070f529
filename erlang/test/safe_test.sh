#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal    A trace ends at each limit, with its owner, and by stop from any process, and leaves nothing behind; every wrong request is
#         one error term, changes nothing, and the node works on.
# Method  One VM goes through all of it (safe.erl); another finds a library of another version.
build=$1 modules=(safe)
. "$(dirname "$0")/lib.sh"
erl_run safe main >out 2>&1 || fail "safe.erl"
grep -qx ok out || fail "it did not come to its end"

cp -r "$build/erlang" other
include=$(erl -noshell -eval 'io:format("~ts/usr/include", [code:root_dir()]), halt().')
sed 's/0x74772d6e696630[0-9]*/0x74772d6e69663939/' "$root/erlang/c_src/capture.h" >capture.h
cp "$root"/erlang/c_src/{encode.h,measure.h,table.h,tracewheel_tracer.c} .
cc -shared -fPIC -I. -I"$include" -I"$root/include" -o other/priv/tracewheel_tracer.so tracewheel_tracer.c || fail "the compiler"
mkdir other-build && ln -s "$build/lib" other-build/lib
build=$PWD/other-build
mv other "$build/erlang"
erl_run safe bad_version >out 2>&1 || fail "a library of another version"
grep -qx ok out || fail "a library of another version"
