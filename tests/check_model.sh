#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# check_model.sh MODEL.pml - all states of a Promela model, without an error; or, for a negative control
# (*_broken*.pml), with one: a model that cannot fail proves nothing.
#
# The verifier is compiled as fast as it can be: with -O2 that takes longer than nearly all searches.
#
# A line `cc: FLAGS` or `pan: FLAGS` in the model's first comment adds to the compiler or the search.
set -eu
model=$(realpath "$1")
work=$(mktemp -d "${TMPDIR:-/tmp}/tracewheel-model.XXXXXX")
trap 'rm -rf "$work"' EXIT INT TERM
cd "$work"
cc_flags=$(sed -n 's/^[ *]*cc: *//p' "$model" | head -n 1)
pan_flags=$(sed -n 's/^[ *]*pan: *//p' "$model" | head -n 1)
if [ "$(grep -c '[cp][ca]n*: *-' "$model")" != "$(grep -c '^[ *]*[cp][ca]n*: *-' "$model")" ]; then
	echo "flags that do not begin their line are not used: cc: or pan: of $model"
	exit 1
fi
spin -a "$model" >spin.log 2>&1 || {
	cat spin.log
	exit 1
}
# shellcheck disable=SC2086 # flags are several words
gcc -O0 -w $cc_flags -o pan pan.c
# shellcheck disable=SC2086
./pan -m1000000 -n $pan_flags >pan.log 2>&1 || true
cat pan.log
if grep -q 'max search depth too small\|out of memory\|Search not completed' pan.log && ! grep -q 'errors: [1-9]' pan.log; then
	echo "the search was not complete"
	exit 1
fi
case "$model" in
*_broken*)
	grep -q 'errors: [1-9]' pan.log || {
		echo "this model is broken on purpose, and no error was found"
		exit 1
	}
	;;
*) grep -q 'errors: 0' pan.log ;;
esac
