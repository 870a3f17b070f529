#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Goal    Where it must not trace, the library has no effect.
# Method  No environment, a wrong one, a static program, a process that is not the root, and a program that
#         the kernel runs with other rights than its caller (as root only).
. "$(dirname "$0")/lib.sh"

quiet() {
	what=$1
	shift
	out=$("$@" 2>&1)
	status=$?
	[ $status = 0 ] && [ "$out" = hello ] || fail "$what: status $status, $out"
}

quiet "no environment" env LD_PRELOAD="$agent" echo hello
for set in relative/path /nonexistent /tmp "" /dev/null; do
	quiet "a wrong environment" env LD_PRELOAD="$agent" TRACEWHEEL_AGENT="$set" echo hello
done
quiet "plugins, inert" sh -c "LD_PRELOAD=$agent $programs/agent_host_runpath -t libagent_plugin_one.so \
	libagent_plugin_one.so >$folder/host && grep -q ': one' $folder/host && echo hello"

# A program with sessions of its own keeps them, preloaded or not, traced or not.
example=$build/examples/example-trace_to_file
if [ -x "$example" ]; then
	same "pattern libc:_" "$example" "$folder/own.tw"
	rm -rf "$folder/own.tw"
	LD_PRELOAD=$agent "$example" "$folder/own.tw" >"$folder/out" 2>&1 || fail "own sessions: $(cat "$folder/out")"
fi

traced "pattern _:_" -- "$programs/agent_static" nothing
[ $status = 0 ] || fail "static: status $status"
[ "$(grep -c ^image "$folder/report")" = 0 ] || fail "a static program has an image"

TRACEWHEEL_ROOT=1 traced "pattern _:_" -- echo hello
[ "$(grep -c ^image "$folder/report")" = 0 ] || fail "another process is the root, and this one is traced"

# An ordinary user runs a set-uid program: the loader refuses the library, the kernel sets AT_SECURE.
if [ "$(id -u)" = 0 ] && command -v setpriv >/dev/null; then
	cp "$(command -v env)" "$folder/env"
	chmod 4755 "$folder/env"
	chmod 755 "$folder"
	traced "pattern _:_" -- setpriv --reuid 65534 --clear-groups "$folder/env" echo hello
	[ $status = 0 ] || fail "set-uid: status $status"
	expect 0 "^call [0-9]* env "
fi
finish
