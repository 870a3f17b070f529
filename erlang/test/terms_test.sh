#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal    A term is captured whole if term_to_binary() needs no more than the user's limit for it; otherwise, and only then, it is
#         cut, marked and counted, and what is left is its beginning. How long that takes does not depend on the term's size.
# Method  Many random terms, and large, deep and unusual ones, are sent as messages with several limits, and compared with what
#         `print --format erlang` shows and with the terms that `convert --to ttb` gives back (terms.erl). The seed is printed; `terms_test.sh BUILD SEED` repeats it.
build=$1 modules=(terms rounds)
. "$(dirname "$0")/lib.sh"
erl_run terms main ${2:+-extra "$2"} >out 2>&1 || fail "terms.erl"
grep -qx ok out || fail "not the terms that were sent"
