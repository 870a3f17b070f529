# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# lib.sh - what the tests of the Erlang application share. A test starts with
#	build=$1 modules=(NAME...)
#	. "$(dirname "$0")/lib.sh"
# modules are those of this folder that it needs; compiling one takes half a second.
tests=$(cd "$(dirname "$0")" && pwd)
root=$(dirname "$(dirname "$tests")")
. "$root/tests/tools/lib.sh"
command -v erl >/dev/null || { echo "no erl here: not tested" && exit 77; }
[ -e "$build/erlang/priv/tracewheel_nif.so" ] || { echo "the application was not built: not tested" && exit 77; }
export TRACEWHEEL=$tw
mkfifo napping
modules=("${modules[@]/#/$tests/}")
[ ${#modules[@]} = 0 ] || erlc +export_all +nowarn_export_all "${modules[@]/%/.erl}" >erlc.out || fail "erlc: $(cat erlc.out)"

# No process for each.
nap() {
	read -rt 0.05 <>napping
}

# A tracer module of the tests, which looks inside captures.
compile_both() {
	local include
	include=$(erl -noshell -eval 'io:format("~ts/usr/include", [code:root_dir()]), halt().')
	cc -shared -fPIC -O1 -Wall -I"$include" -I"$root/include" -I"$root/erlang/c_src" -o both.so "$tests/both.c" ||
		fail "the compiler"
}

# copy_application FOLDER: the application of the build, and what its libraries are made of, for `FOLDER/erlang/build.sh --nif`.
copy_application() {
	mkdir "$1"
	cp -r "$build/erlang" "$1"
	cp -r "$root/erlang/build.sh" "$root/erlang/c_src" "$1/erlang"
	rm "$1"/erlang/priv/*
	ln -s "$build/lib" "$1/lib"
}

# erl_run MODULE FUNCTION [ERL-OPTION]...: a VM with the application and the tests' modules.
erl_run() {
	local module=$1 function=$2
	shift 2
	timeout "${ERL_SECONDS:-100}" erl -noshell +S 2:2 -pa "$build/erlang/ebin" -pa . -s "$module" "$function" "$@" </dev/null
}

# ---- nodes that know nothing of the application, and `record --erlang` (attach.erl) ----

# a_home: an epmd of this test alone; a home with a wrong cookie, and the file `cookie` with the right one, which is `secret`.
a_home() {
	unset TRACEWHEEL
	own_epmd
	mkdir home
	printf wrong >home/.erlang.cookie
	printf secret >cookie
	chmod 600 home/.erlang.cookie cookie
	export HOME=$work/home
}

# start_node OPTION...: sets $node, which runs attach:main(), or that of the module $node_main. Its threads do not look for work while there is none.
start_node() {
	rm -f ready
	erl -noinput +S 2:2 +sbwt none +sbwtdio none -start_epmd false "$@" -pa . -s "${node_main:-attach}" main >node.out 2>&1 &
	node=$!
	pids="$pids $node"
	until [ -e ready ] || ! kill -0 $node 2>/dev/null; do nap; done
	[ -e ready ] || fail "the node does not start: $(cat node.out)"
}

# rename_node NAME shortnames|longnames ADDRESS: of a node that was started without a name; it listens at that address.
rename_node() {
	echo "{'$1', $2, $3}." >new
	mv new name
	wait_until test ! -e name
}

# begin OPTION...: the command in the background, until it traces. Sets $recording.
begin() {
	: >err # it may have words of an earlier one
	"$tw" record --erlang -t attach:step/1 --time infinity "$@" >out 2>err </dev/null &
	recording=$!
	wait_for $recording begun
}

begun() {
	mapfile -t said <err
	[[ ${said[*]} = *tracing* ]]
}

ended_with() {
	local got=0
	wait $recording || got=$?
	is "$got" "$1" "exit code: $(cat err)"
}

# refused CODE SENTENCE ARGUMENT...
refused() {
	local code=$1 sentence=$2
	shift 2
	expect "$code" "$tw" record --erlang "$@"
	says "$sentence"
	is "$(grep -c '^tracewheel' err)" 1 "one sentence: $(cat err)"
	[ ! -e none.tw ] || fail "a capture of nothing"
}

# serve_refusals: of refused_here, one VM says what a helper VM of each command would (refuse.erl), which takes half a second to start.
# In the long form each command has its own. A test that calls it has refuse and ../src/tracewheel_attach among its modules.
serve_refusals() {
	mkdir exported serving
	mv tracewheel_attach.beam exported
	[ -z "${TW_TEST_LONG:-}" ] || return 0
	cat >serving/erl <<-'EOT'
		#!/bin/bash
		# erl OPTION... -s tracewheel_attach main -extra ARGUMENT...
		while [ "$1" != -extra ]; do
			options+=("$1")
			shift
		done
		if [ ! -e server ]; then
			options[-2]=refuse
			PATH=${PATH#*:} erl "${options[@]}" -pa . </dev/null >serve.out 2>&1 &
			echo $! >server
		fi
		until [ -e served ] || ! kill -0 "$(<server)"; do sleep 0.05; done
		exec 3<>"/dev/tcp/127.0.0.1/$(<served)" || exit 1
		printf '%s\n' "${@:2}" '' >&3
		read -rt 60 -u 3 line
		printf '%s\n' "$line"
	EOT
	chmod +x serving/erl
}

refused_here() {
	PATH=$work/serving:$PATH refused "$@"
	[[ ! -e server || " $pids " = *" $(<server) "* ]] || pids="$pids $(<server)"
}
