#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal    Any term is captured whole where it fits the user's limit; otherwise it is cut and marked, and what is left is its beginning.
# Method  Thousands of random terms, and large, deep and odd ones, are sent as messages with several limits, and compared with what
#         `print --format erlang` shows (terms.erl). The seed is printed; `terms_test.sh BUILD SEED` repeats it.
build=$1
. "$(dirname "$0")/lib.sh"
erl_run terms main ${2:+-extra "$2"} >out 2>&1 || fail "terms.erl"
grep -qx ok out || fail "not the terms that were sent"
