#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Goal    A process is traced across exec; children are silent, or each has an image of its own.
# Method  programs/forker.c forks five children of ten calls, then replaces itself.
. "$(dirname "$0")/lib.sh"

add="pattern libagent_edgelib:edge_add"
traced "$add" -- "$programs/agent_forker" 5
[ $status = 0 ] || fail "status $status"
expect 200 edge_add
[ "$(grep -c ^image "$folder/report")" = 2 ] || fail "not two images"

traced "$add" -f -- "$programs/agent_forker" 5
[ $status = 0 ] || fail "followed: status $status"
expect 250 edge_add
[ "$(grep -c ^image "$folder/report")" = 7 ] || fail "not seven images"
[ "$(awk '$1 == "call" && $NF == 10' "$folder/report" | wc -l)" = 5 ] || fail "not five children of ten calls"

# From eight threads at once, under load; more children than there are image slots.
traced "pattern _:_" -- "$programs/agent_forker" -t
[ $status = 0 ] || fail "from threads: status $status"
traced "pattern _:_" -f -- "$programs/agent_forker" -t
[ $status = 0 ] || fail "from threads, followed: status $status"

# Through a shell: the shell is the root, and its children are not traced unless children are followed.
traced "$add" -- sh -c "$programs/agent_forker 0; exit 3"
[ $status = 3 ] || fail "through a shell: status $status"
expect 0 edge_add
traced "$add" -f -- sh -c "$programs/agent_forker 0; exit 3"
expect 100 edge_add
finish
