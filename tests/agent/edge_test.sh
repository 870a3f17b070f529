#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Goal    Calls with unusual conventions and control flow pass armed slots unchanged, however the program was linked, and
#         with everything hooked; hooks allocate nothing, and another preloaded allocator stays in place.
# Method  programs/edge.c checks itself; programs/guard.c ends the program when a hook allocates.
. "$(dirname "$0")/lib.sh"

for how in lazy now noplt nopie; do
	same "pattern _:_" "$programs/agent_edge_$how"
	expect_some "agent_edge_$how libagent_edgelib:edge_sum"
	expect_some "agent_edge_$how libc:asprintf|agent_edge_$how libc:__asprintf_chk"
	expect_some "agent_edge_$how libc:_setjmp|agent_edge_$how libc:setjmp"
	same "" "$programs/agent_edge_$how"
	expect_some "agent_edge_$how libagent_edgelib:edge_add"
	expect 0 "libc libc:"
done

traced "pattern libagent_edgelib:edge_[mw]*" -- "$programs/agent_edge_lazy"
expect 1 "libagent_edgelib:edge_make_big"
expect 2 "libagent_edgelib:edge_wide"
expect 0 "libagent_edgelib:edge_add"

same "pattern _:_" "$programs/agent_throw"
expect_some "agent_throw libagent_edgelib:edge_call_back"

# A program that registers with liburcu itself.
same "" "$programs/agent_rcu"
same "pattern _:_" "$programs/agent_rcu"
expect 4004 "agent_rcu libc:malloc"
# Its read sections are its own, whatever happens to the agent's hits.
same "pattern libc:strtol" "$programs/agent_rcu" jump
expect_some "agent_rcu libc:strtol"
same "pattern libc:strtol" "$programs/agent_rcu" open "$programs/plugins/libagent_plugin_one.so"
expect 10 "libagent_plugin_one libc:strtol"

export GUARD_COUNTS=1
for how in lazy now nopie; do
	traced "pattern _:_" -p "$programs/libagent_guard.so" -- "$programs/agent_edge_$how"
	[ $status = 0 ] || fail "with the guard: status $status: $(cat "$folder/err")"
	grep -q "mallocs: many" "$folder/out" || fail "the guard no longer replaces malloc"
done
finish
