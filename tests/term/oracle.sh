#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# oracle.sh DRIVER COUNT [SEED] - runs oracle.escript in a directory of its own.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
if ! command -v escript >/dev/null 2>&1; then
	echo "SKIPPED: no escript here (Debian package erlang-base); term/ was not compared with Erlang"
	exit 77
fi
work=$(mktemp -d "${TMPDIR:-/tmp}/tracewheel-term.XXXXXX")
trap 'rm -rf "$work"' EXIT INT TERM
escript "$here/oracle.escript" "$1" "$work" "$2" "${3:-time}"
