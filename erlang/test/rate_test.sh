#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal    The limit of events in a second counts each event once, in one second: where a second ends, no event is counted with those of the
#         last one, and a thread that comes late does not begin the count anew.
# Method  rate.h alone, without a VM: a late thread, and four threads that pass 20,000 seconds together (rate.c), with the thread sanitizer.
build=$1 modules=()
. "$(dirname "$0")/lib.sh"
cc -std=gnu11 -O1 -g -Wall -Wextra -Werror -fsanitize=thread -pthread -I"$root/erlang/c_src" -o rate "$tests/rate.c" || fail "the compiler"
TSAN_OPTIONS=halt_on_error=1 timeout 60 ./rate >out 2>&1 || fail "rate: $(cat out)"
grep -qx ok out || fail "it did not come to its end"
