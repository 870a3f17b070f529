#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal: what is installed works from where it lies: the command finds its agent, and pkg-config tells a compiler all.
build=$1
here=$(realpath "$(dirname "$0")")
. "$here/lib.sh"

expect 0 cmake --install "$build" --prefix "$work/to"
tw=$work/to/bin/tracewheel
expect 0 "$tw" record -q -o a.tw -- ls
expect 0 "$tw" info --json a.tw
[ "$(json 'd["events"]')" -gt 10 ] || fail "the installed command recorded nothing"

export PKG_CONFIG_PATH=$work/to/lib/pkgconfig LD_LIBRARY_PATH=$work/to/lib
flags() {
	pkg-config --define-variable=prefix="$work/to" "$@" || fail "pkg-config"
}
# shellcheck disable=SC2046 # flags are several words
expect 0 gcc -o count "$here/../../examples/count_calls.c" $(flags --cflags --libs tracewheel)
expect 0 ./count
# shellcheck disable=SC2046
expect 0 gcc -o read "$here/../../examples/read_capture.c" $(flags --cflags --libs tracewheel-capture)
expect 0 ./read a.tw
