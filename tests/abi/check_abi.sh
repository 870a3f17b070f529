#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# check_abi.sh BUILD [--write] - are functions, structures and enumerations of the public headers, as programs were compiled with them, those
# that are kept here?
#
# A difference is no mistake by itself: --write keeps the new interface, so that each change of it is seen in a commit. One that breaks
# programs is a page in docs/decisions, and another SONAME after 1.0. Names alone are in cmake/*.map (check_public).
set -eu
build=$(realpath "$1")
here=$(cd "$(dirname "$0")" && pwd)
for program in abidw abidiff xz; do
	command -v $program >/dev/null || { echo "no $program here: not tested" && exit 77; }
done
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0
for name in tracewheel tracewheel-capture tracewheel-debug; do
	library=$build/lib/lib$name.so kept=$here/$name.abi.xz
	readelf -S "$library" | grep -q ' \.debug_info' || { echo "$library has no debug information: not tested" && exit 77; }
	if [ "${2-}" = --write ]; then
		abidw --headers-dir "$here/../../include/tracewheel" --no-corpus-path \
			--no-comp-dir-path --no-elf-needed --out-file "$work/$name.abi" "$library"
		xz -9 <"$work/$name.abi" >"$kept"
		continue
	fi
	xz -d <"$kept" >"$work/$name.abi"
	code=0
	abidiff --suppressions "$here/public.suppr" "$work/$name.abi" "$library" \
		>"$work/difference" || code=$?
	if [ "$code" != 0 ]; then
		head -n 60 "$work/difference"
		failed=1
	fi
done
if [ "$failed" = 1 ]; then
	echo "The binary interface has changed: tests/abi/check_abi.sh $1 --write keeps the new one; a break is a page in docs/decisions."
	exit 1
fi
