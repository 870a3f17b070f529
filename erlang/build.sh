#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# build.sh OUT - builds the application with erlc and cc alone into OUT: ebin/ and priv/.
# build.sh --nif - builds the two libraries only, into priv/ here: rebar3 and mix do the rest.
#
# CFLAGS=-DTRACEWHEEL_MEASURE makes libraries that measure each call of the tracer (tracewheel:info() has the longest).
# libtracewheel comes from pkg-config, or from the build tree
# in TRACEWHEEL_BUILD, whose sources are TRACEWHEEL_SOURCE.
set -eu
cd "$(dirname "$0")"
case ${1:-} in
--nif) out=$PWD ;;
"" | -*) echo "usage: build.sh OUT | --nif" >&2 && exit 2 ;;
*) out=$1 ;;
esac
include=$(erl -noshell -eval 'io:format("~ts/usr/include", [code:root_dir()]), halt().')
if [ -n "${TRACEWHEEL_BUILD:-}" ]; then
	source=${TRACEWHEEL_SOURCE:-..}
	# In the build tree, and in the installed one, which may be moved.
	flags="-I$source/include -L$TRACEWHEEL_BUILD/lib -Wl,-rpath,\$ORIGIN/../../lib:\$ORIGIN/../../.. -ltracewheel"
else
	# Beside the command, also where pkg-config does not look: as a dependency of rebar3 and mix it is compiled without PKG_CONFIG_PATH.
	command=$(command -v tracewheel || true)
	for place in "$command" "$(realpath "$command" 2>/dev/null || true)"; do
		prefix=$(dirname "$(dirname "$place")")
		PKG_CONFIG_PATH=${PKG_CONFIG_PATH:+$PKG_CONFIG_PATH:}$prefix/lib/pkgconfig:$prefix/lib/$(uname -m)-linux-gnu/pkgconfig
	done
	export PKG_CONFIG_PATH
	flags=$(pkg-config --cflags --libs tracewheel) || {
		echo "tracewheel: libtracewheel is not installed (pkg-config tracewheel), or its command not in PATH: ./run install in Tracewheel's tree" >&2
		exit 1
	}
	for folder in $(pkg-config --libs-only-L tracewheel); do
		flags="$flags -Wl,-rpath,${folder#-L}"
	done
fi
mkdir -p "$out/priv"
cflags="-std=gnu11 -O2 -g -fPIC -Wall -Wextra -fvisibility=hidden ${CFLAGS:-}"
# RPATH, not RUNPATH: also of what libtracewheel needs, on a host to which all is sent (tracewheel_elsewhere).
flags="-Wl,--disable-new-dtags $flags"
# Never unloaded: captures that an older version made are served by it.
# shellcheck disable=SC2086
${CC:-cc} $cflags -shared -Wl,-z,nodelete -I"$include" -o "$out/priv/tracewheel_nif.so" \
	c_src/tracewheel_nif.c c_src/capture.c c_src/serve.c c_src/event.c c_src/encode.c c_src/leaf.c c_src/bits.c c_src/table.c c_src/measure.c $flags
# shellcheck disable=SC2086
${CC:-cc} $cflags -shared -I"$include" -o "$out/priv/tracewheel_tracer.so" c_src/tracewheel_tracer.c $flags
[ "$1" != --nif ] || exit 0
mkdir -p "$out/ebin"
erlc +debug_info +deterministic -o "$out/ebin" src/*.erl
sed 's/{modules, \[\]}/{modules, [tracewheel, tracewheel_attach, tracewheel_counters, tracewheel_elsewhere, tracewheel_flight, tracewheel_fold, tracewheel_guard, tracewheel_later, tracewheel_leave, tracewheel_monitor, tracewheel_nif, tracewheel_options, tracewheel_origins, tracewheel_otel, tracewheel_pattern, tracewheel_printer, tracewheel_processes, tracewheel_reach, tracewheel_sample, tracewheel_server, tracewheel_settings, tracewheel_top, tracewheel_tracer]}/' \
	src/tracewheel.app.src >"$out/ebin/tracewheel.app"
