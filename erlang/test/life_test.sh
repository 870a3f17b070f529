#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal    Two captures at once, libraries loaded again and unloaded, tracers removed, tracees and the serving process killed, the
#         distribution lost, states used after their end: each capture has what it should, and the node works on.
# Method  One VM goes through all of it (life.erl); another one loads libraries whose captures have another layout.
build=$1 modules=(life rounds)
. "$(dirname "$0")/lib.sh"
# As many files as a login gives a program: none may stay open for each start that is refused.
ulimit -n 1024
# Distribution without epmd, which would stay.
port=$((20000 + $$ % 20000))
erl_run life main -start_epmd false -erl_epmd_port $port >out 2>&1 || fail "life.erl"
grep -qx ok out || fail "it did not come to its end"

copy_application other
sed -i 's/^\tconst struct callbacks \*callbacks;$/&\n\tchar other_layout[4096];/' other/erlang/c_src/capture.h
grep -q other_layout other/erlang/c_src/capture.h || fail "the other layout"
CFLAGS=-g0 TRACEWHEEL_BUILD=$build TRACEWHEEL_SOURCE=$root other/erlang/build.sh --nif || fail "the build of the other layout"
export OTHER=$work/other/erlang/ebin
erl_run life layout >out 2>&1 || fail "libraries with another layout"
grep -qx ok out || fail "libraries with another layout: it did not come to its end"
