#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal    Threads that add to a table of the application at once get one entry a key, with its bytes, and neither lose nor leak one.
# Method  table.c alone, without a VM, and four threads with keys of their own and in common (table.c here), with the thread sanitizer.
build=$1 modules=()
. "$(dirname "$0")/lib.sh"
include=$(erl -noshell -eval 'io:format("~ts/usr/include", [code:root_dir()]), halt().')
cc -std=gnu11 -O1 -g -Wall -Wextra -Werror -fsanitize=thread -pthread -I"$include" -I"$root/erlang/c_src" -o table "$tests/table.c" \
	"$root/erlang/c_src/table.c" || fail "the compiler"
for _ in 1 2 3; do
	TSAN_OPTIONS=halt_on_error=1 timeout 60 ./table >out 2>&1 || fail "table: $(cat out)"
	grep -qx ok out || fail "it did not come to its end"
done
