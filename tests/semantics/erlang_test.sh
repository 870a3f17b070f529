#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# erlang_test.sh ERLC FILE.term...
# Goal    The recorded answers are those of a real Erlang system.
# Method  oracle/player.erl plays the files on OTP 25, compiled into a folder of this run: tests run side by side.
set -eu
erlc=$1
shift
work=$(mktemp -d "${TMPDIR:-/tmp}/tracewheel-test.XXXXXX")
trap 'rm -rf "$work"' EXIT
export ERL_CRASH_DUMP=/dev/null
"$erlc" -o "$work" "$(dirname "$(realpath "$0")")"/oracle/*.erl
status=0
erl -noshell -pa "$work" -run player check "$@" || status=$?
exit $status
