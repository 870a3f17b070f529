#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal    rebar3 and mix build the application as a dependency, with the system's compiler, from a copy of the folder erlang and an installed
#         libtracewheel, which is found by its command in PATH, without any package; and what they build traces.
# Method  An application with the dependency for each; a prefix with the command and a file for pkg-config that leads to the build tree.
build=$1 modules=()
. "$(dirname "$0")/lib.sh"
mkdir -p prefix/bin prefix/lib/pkgconfig
ln -s "$tw" prefix/bin
sed "s|@|$root|; s|%|$build|g" >prefix/lib/pkgconfig/tracewheel.pc <<'PC'
Name: tracewheel
Description: of the build tree
Version: 0
Cflags: -I@/include
Libs: -L%/lib -ltracewheel
PC
export PATH=$PWD/prefix/bin:$PATH
unset TRACEWHEEL_BUILD TRACEWHEEL_SOURCE PKG_CONFIG_PATH
tested=0

# try NAME EBIN COMMAND...
try() {
	local name=$1 ebin=$2
	shift 2
	mkdir -p "$name/src" "$name/_checkouts/tracewheel"
	cp -r "$root"/erlang/{c_src,src,build.sh,rebar.config,mix.exs} "$name/_checkouts/tracewheel"
	echo '{deps, [tracewheel]}.' >"$name/rebar.config"
	echo '{application, app, [{description, ""}, {vsn, "1"}, {applications, [kernel, stdlib]}]}.' >"$name/src/app.app.src"
	echo 'defmodule App.MixProject do
	  use Mix.Project
	  def project, do: [app: :app, version: "1.0.0", deps: [{:tracewheel, path: "_checkouts/tracewheel"}]]
	end' >"$name/mix.exs"
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

! command -v rebar3 >/dev/null || try rebar3 _build/default/checkouts/tracewheel/ebin rebar3 compile
! command -v mix >/dev/null || try mix _build/dev/lib/tracewheel/ebin mix compile
[ "$tested" = 2 ] || echo "rebar3 or mix is not here: $tested of 2 tested"
[ "$tested" != 0 ] || exit 77
