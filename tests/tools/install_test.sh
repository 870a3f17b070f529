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
	pkg-config "$@" || fail "pkg-config"
}
# shellcheck disable=SC2046 # flags are several words
expect 0 gcc -o count "$here/../../examples/count_calls.c" $(flags --cflags --libs tracewheel)
expect 0 ./count
# shellcheck disable=SC2046
expect 0 gcc -o read "$here/../../examples/read_capture.c" $(flags --cflags --libs tracewheel-capture)
expect 0 ./read a.tw

# A package that is unpacked elsewhere is found there.
mv "$work/to" "$work/moved"
PKG_CONFIG_PATH=$work/moved/lib/pkgconfig pkg-config --cflags tracewheel >flags
grep -q -- "-I$work/moved/lib/pkgconfig/../../include" flags || fail "pkg-config names a folder that is not there: $(cat flags)"
mv "$work/moved" "$work/to"

# A project that includes tracewheel_instrument: its program shows every call, and its sleds are compact.
mkdir -p project/made
cat >project/CMakeLists.txt <<'CMAKE'
cmake_minimum_required(VERSION 3.20)
project(app C)
list(APPEND CMAKE_MODULE_PATH ${CMAKE_PREFIX_PATH}/lib/cmake/tracewheel)
include(tracewheel_instrument)
add_executable(app app.c)
tracewheel_instrument(app)
CMAKE
cat >project/app.c <<'C'
__attribute__((noinline)) static int twice(int a) { __asm__ volatile("" : "+r"(a)); return a * 2; }
int main(int argc, char **argv) { (void)argv; return twice(argc) - 2; }
C
expect 0 cmake -S project -B project/made -DCMAKE_PREFIX_PATH="$work/to" -DCMAKE_BUILD_TYPE=Release
expect 0 cmake --build project/made
expect 0 "$tw" compact project/made/app
says " 0 sleds"
expect 0 "$tw" record -q --local -o app.tw -- project/made/app
expect 0 "$tw" info --json app.tw
[ "$(json 'd["events"]')" = 2 ] || fail "main and twice were not both recorded"
