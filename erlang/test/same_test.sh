#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal    A capture of Erlang processes has, for each of them, the events that a process tracer receives, in the same order.
# Method  Seventeen scenarios with all flags that make events, in one VM: a tracer module hands each event to the capture and to a
#         process; where there are sessions (OTP 27), a process tracer traces beside the capture. `print --format erlang` is compared. Then random
#         scenarios (dice.erl) with ports and modules that are loaded and purged: of another seed, and more, with PLAYS=N SEED=N.
build=$1 modules=(same play dice both)
. "$(dirname "$0")/lib.sh"
compile_both
PLAYS=${PLAYS:-$(rounds 10 200)} SEED=${SEED:-1} erl_run same main >out 2>&1 || { grep -v ' tracees$' out >differences; mv differences out; fail "not the same events"; }
cat out
