#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Goal    Objects opened at run time are found as without the agent, traced while loaded, and forgotten after.
# Method  Hosts with RUNPATH and RPATH open plugins by every kind of name, often, and on several threads.
. "$(dirname "$0")/lib.sh"

strtol="pattern libc:strtol/_"
for how in runpath rpath; do
	host=$programs/agent_host_$how
	# shellcheck disable=SC2016
	for name in libagent_plugin_one.so '$ORIGIN/plugins/libagent_plugin_one.so' \
		'${ORIGIN}/elsewhere/libagent_plugin_two.so' "$programs/elsewhere/libagent_plugin_two.so"; do
		same "$strtol" "$host" "$name"
		expect 5 "libagent_plugin_[a-z]* libc:strtol"
		grep -q ": one\|: two" "$folder/out" || fail "$name was not found"
	done
	same "$strtol" "$host" libagent_plugin_two.so libnothing.so.77 libm.so.6 libagent_plugin_one.so
	expect 5 "libagent_plugin_one libc:strtol"
	same "pattern _:_" "$host" -200 libagent_plugin_one.so
	expect 1000 "libagent_plugin_one libc:strtol"
	same "pattern _:_" "$host" -t libagent_plugin_one.so
	expect_some "libagent_plugin_one libc:strtol"
	# On a loaded machine a thread may find no ring; then the report says so.
	grep -q "^lost 0 0 0" "$folder/report" && expect 400 "agent_host_$how libc:dlopen"
done

# LD_LIBRARY_PATH comes between RPATH and RUNPATH.
mkdir "$folder/first"
cp "$programs/elsewhere/libagent_plugin_two.so" "$folder/first/libagent_plugin_one.so"
export LD_LIBRARY_PATH="$folder/first"
same "$strtol" "$programs/agent_host_runpath" libagent_plugin_one.so
grep -q ": two" "$folder/out" || fail "LD_LIBRARY_PATH does not come before RUNPATH"
same "$strtol" "$programs/agent_host_rpath" libagent_plugin_one.so
grep -q ": one" "$folder/out" || fail "LD_LIBRARY_PATH comes before RPATH"
unset LD_LIBRARY_PATH

# The program's calls only: a plugin's are not requested.
same "" "$programs/agent_host_runpath" libagent_plugin_one.so
expect 0 "libagent_plugin_one libc:"
expect_some "agent_host_runpath libc:dlsym"
# Signal handlers that run while objects are opened and closed belong to the program, not to the agent.
for how in plain again stack; do
	traced "pattern libc:strtol" -- "$programs/agent_opener" $how "$programs/plugins/libagent_plugin_one.so"
	[ $status = 0 ] || fail "opener $how: status $status"
	expect_exact "handlers ($how) during dlopen"
	[ $how = again ] || grep -q "^lost [0-9]* 0 " "$folder/report" || fail "handlers ($how): $(grep ^lost "$folder/report")"
done

finish
