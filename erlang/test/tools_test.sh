#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal    rebar3 and mix build the application with the system's compiler, from a copy of the folder erlang and an installed
#         libtracewheel, without any package; and what they build traces.
# Method  Both, each with a copy of the folder, and a libtracewheel that pkg-config finds in the build tree.
build=$1 modules=()
. "$(dirname "$0")/lib.sh"
mkdir pc
sed "s|@|$root|; s|%|$build|g" >pc/tracewheel.pc <<'PC'
Name: tracewheel
Description: of the build tree
Version: 0
Cflags: -I@/include
Libs: -L%/lib -ltracewheel
PC
export PKG_CONFIG_PATH=$PWD/pc
unset TRACEWHEEL_BUILD TRACEWHEEL_SOURCE
tested=0

# try NAME EBIN COMMAND...
try() {
	local name=$1 ebin=$2
	shift 2
	mkdir "$name" && cp -r "$root"/erlang/{c_src,src,build.sh,rebar.config,mix.exs} "$name"
	(cd "$name" && HOME=$work "$@") >out 2>&1 </dev/null || fail "$name"
	erl -noshell -pa "$name/$ebin" -eval '
		{ok, _} = tracewheel:start("'"$name"'.tw", #{patterns => ["lists:seq/2"]}),
		lists:seq(1, 3),
		{ok, #{events := 1}} = tracewheel:stop(),
		ok = application:load(tracewheel),
		io:format("ok~n"), halt().' >out 2>&1 </dev/null || fail "built by $name"
	grep -qx ok out || fail "built by $name"
	tested=$((tested + 1))
}

! command -v rebar3 >/dev/null || try rebar3 _build/default/lib/tracewheel/ebin rebar3 compile
! command -v mix >/dev/null || try mix _build/dev/lib/tracewheel/ebin mix compile
[ "$tested" = 2 ] || echo "rebar3 or mix is not here: $tested of 2 tested"
[ "$tested" != 0 ] || exit 77
