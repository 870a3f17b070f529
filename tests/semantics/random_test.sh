#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# random_test.sh PLAYER ERLC [SEED [COUNT]]
# Goal    Random scenarios have the same answers on a real Erlang system as here, half of them with two sessions.
# Method  random_plays.py writes them, oracle/player.erl on OTP 25 answers them, and PLAYER (semantics_play) compares.
set -eu
player=$(realpath "$1")
erlc=$2
seed=${3:-1}
count=${4:-$([ -z "${TW_TEST_LONG:-}" ] && echo 40 || echo 300)}
here=$(dirname "$(realpath "$0")")
work=$(mktemp -d "${TMPDIR:-/tmp}/tracewheel-test.XXXXXX")
trap 'rm -rf "$work"' EXIT
export ERL_CRASH_DUMP=/dev/null
"$erlc" -o "$work" "$here"/oracle/*.erl
cd "$work"
python3 "$here/random_plays.py" "$seed" "$count" >plays.term
erl -noshell -run player record plays.term >answered.term || exit $?
echo "seed $seed, $(wc -l <answered.term) scenarios"
[ "$(wc -l <answered.term)" = "$count" ] || { echo "Erlang answered $(wc -l <answered.term) of $count" && exit 1; }
"$player" answered.term
