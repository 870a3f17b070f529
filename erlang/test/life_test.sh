#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal    Two captures at once, libraries loaded again and unloaded, tracers removed, tracees and the serving process killed, the
#         distribution lost, states used after their end: each capture has what it should, and the node works on.
# Method  One VM goes through all of it (life.erl).
build=$1
. "$(dirname "$0")/lib.sh"
# Distribution without epmd, which would stay.
port=$((20000 + $$ % 20000))
erl_run life main -start_epmd false -erl_epmd_port $port >out 2>&1 || fail "life.erl"
grep -qx ok out || fail "it did not come to its end"
