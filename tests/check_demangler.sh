#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# check_demangler.sh BUILD - libiberty is linked into the command, and into nothing that comes into other programs.
set -eu
defined() { nm "$1" 2>/dev/null | grep -qE ' [A-Za-z] (rust_demangle|cplus_demangle_v3|d_demangle_callback)$' && ! nm "$1" | grep -qE ' U (rust_demangle|cplus_demangle_v3)$'; }
defined "$1/bin/tracewheel" || { echo "the command has no demangler"; exit 1; }
for file in "$1"/lib/libtracewheel*.{so,a} "$1"/erlang/priv/*.so; do
	[ ! -e "$file" ] || ! defined "$file" || { echo "$file has libiberty"; exit 1; }
done
! ldd "$1/bin/tracewheel" | grep -q iberty || { echo "the command loads libiberty"; exit 1; }
