#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal    With `drop`, a recorder that takes nothing costs the VM the memory of the rings and no more; every lost event is counted; and no
#         call of the tracer does more for it than make the pages of one ring present.
#         A thread that is held up while it defines something holds up no other, and with `block` loses nothing.
# Method  Libraries that measure each call (-DTRACEWHEEL_MEASURE), a recorder that is stopped, and two processes that fill their rings
#         many times over (hold.erl). The verdict is about pages and counts; `./run bench erlang drop` has the times.
build=$1 modules=(hold rounds)
. "$(dirname "$0")/lib.sh"
copy_application measured
CFLAGS="-DTRACEWHEEL_MEASURE -Werror -g0" TRACEWHEEL_BUILD=$build TRACEWHEEL_SOURCE=$root measured/erlang/build.sh --nif ||
	fail "the build that measures"
build=$work/measured
erl_run hold main >out 2>&1 || fail "hold.erl"
grep -qx ok out || fail "it did not come to its end"
