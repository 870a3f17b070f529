#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal    The traced program's exit code is passed on, and its death leaves a complete capture.
build=$1
. "$(dirname "$0")/lib.sh"

expect 7 "$tw" record -o a.tw -- bash -c 'exit 7'
expect 0 "$tw" record -o b.tw -- true
expect 143 "$tw" record -o c.tw -- bash -c 'kill -TERM $$'
expect 137 "$tw" record -t 'libc:_' -o d.tw -- bash -c 'for i in {1..2000}; do printf -v x %d "$i"; done; kill -KILL $$'
expect 0 "$tw" info --json d.tw
is "$(json 'd["complete"]')" True "killed by SIGKILL, and the capture is whole"
[ "$(json 'd["events"]')" -gt 1000 ] || fail "the killed program's events are missing"
