#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# compare_trees.sh BUILD_BEFORE BUILD_NOW [CAPTURE]... - do captures of an earlier tree read the same?
#
# Goal    A change without intended effects has none: captures read byte for byte as before, and the public libraries
#         have the same exports.
# Method  The golden captures of this tree, those named, and fresh ones that the earlier tree records (a file, a
#         stream, arguments, results, stacks, message passing) are printed in Erlang terms by both trees. Then abidiff
#         compares the three libraries. A capture that the earlier tree refuses is named and skipped. Intended changes
#         are an extended sed script in MEANT, applied to both sides, e.g. "s/'(<[0-9.]+>)'/\\1/g": pids are quoted now.
set -eu
[ $# -ge 2 ] || { sed -n 's/^# \?//; 3,10p' "$0"; exit 2; }
before=$1 now=$2
shift 2
golden=$(cd "$(dirname "$0")" && pwd)/golden
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
record() { # NAME OPTION...: by the earlier tree
	local name=$1
	shift
	"$before/bin/tracewheel" record -q -o "$work/$name.tw" "$@" >/dev/null 2>&1 || echo "not recorded: $name"
}

record calls -t 'libc:*' -- ls /
record main -- "$before/bin/actors-untraced" --help
record ends --returns -t 'libc:*' -- cat "$0"
record words --args=raw -t 'libc:*' -- sort "$0"
record stacks --stack 4 -t 'libc:*' -- ls -l /usr
record children --follow-fork -t 'libc:open*' -- sh -c 'ls / >/dev/null; cat /dev/null; true'
record messages -p send,receive,procs -- "$before/bin/actors" --messages=500 ring
"$before/bin/tracewheel" record -q -o - -t 'libc:*' -- ls / 2>/dev/null >"$work/stream.tw" || true

same=0 differ=0 refused=0
for capture in "$work"/*.tw "$golden"/*.tw "$@"; do
	name=$(basename "$capture") old=0 new=0
	"$before/bin/tracewheel" print --format erlang "$capture" >"$work/before" 2>"$work/before.errors" || old=$?
	"$now/bin/tracewheel" print --format erlang "$capture" >"$work/now" 2>"$work/now.errors" || new=$?
	sed -E -i "${MEANT:-}" "$work/before" "$work/now"
	if [ ! -s "$work/before" ] && [ "$old" != 0 ]; then
		printf '%-24s the earlier tree cannot read it\n' "$name"
		refused=$((refused + 1))
	elif cmp -s "$work/before" "$work/now"; then
		printf '%-24s same, %s lines' "$name" "$(wc -l <"$work/before")"
		[ "$old" = "$new" ] || printf ' (exit codes %s, %s)' "$old" "$new"
		echo
		same=$((same + 1))
	else
		printf '%-24s DIFFERS (exit codes %s, %s):\n' "$name" "$old" "$new"
		diff "$work/before" "$work/now" | head -n 6 | cut -c 1-160
		differ=$((differ + 1))
	fi
done
for library in libtracewheel libtracewheel-capture libtracewheel-debug; do
	echo "$library.so:"
	abidiff "$before/lib/$library.so" "$now/lib/$library.so" | sed 's/^/   /' | head -n 40 || true
done
echo "$same captures read the same, $differ differ, $refused could not be read before"
[ "$differ" = 0 ]
