#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal    The ten questions of docs/erlang.md are answered by what its table says.
# Method  A VM plays the options of each row on a small shop (questions.erl), and looks for the answers.
build=$1 modules=(questions shop)
. "$(dirname "$0")/lib.sh"
GUIDE=$root/docs/erlang.md erl_run questions main >out 2>&1 || fail "questions.erl: $(cat out)"
grep -qx ok out || fail "questions.erl: $(cat out)"
