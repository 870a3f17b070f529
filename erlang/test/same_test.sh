#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal    A capture of Erlang processes has, for each of them, the events that a process tracer receives, in the same order.
# Method  Seventeen scenarios with all flags that make events, in one VM: a tracer module hands each event to the capture and to a
#         process; where there are sessions (OTP 27), a process tracer traces beside the capture. `print --format erlang` is compared.
build=$1 modules=(same play both)
. "$(dirname "$0")/lib.sh"
compile_both
erl_run same main >out 2>&1 || fail "not the same events"
cat out
