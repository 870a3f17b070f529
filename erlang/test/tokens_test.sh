#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal    As the system tracer of seq_trace, a capture has what a process would have received: labels, serials, senders, receivers,
#         messages and kinds of stamps.
# Method  The same requests through three processes, first with a process as system tracer, then with a capture (tokens.erl).
build=$1 modules=(tokens)
. "$(dirname "$0")/lib.sh"
erl_run tokens main >out 2>&1 || fail "tokens.erl"
grep -qx ok out || fail "not the same events"
