#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# compare_trees.sh BUILD_BEFORE BUILD_NOW [CAPTURE]... - do captures of an earlier tree read the same?
#
# Goal    A change without intended effects has none: captures read byte for byte as before, and the public libraries
#         have the same exports.
# Method  The golden captures of this tree, those named, and fresh ones that the earlier tree records (calls and returns,
#         losses, rotation, kill -9, exec, fork, threads, ports, locks, messages, tokens, a stream) are shown in every view
#         by both trees: output, messages and exit code are the same. Then abidiff compares the three libraries, if it is
#         installed. Intended changes are an extended sed script in MEANT, applied to both sides, e.g.
#         "s/'(<[0-9.]+>)'/\\1/g": pids are quoted now.
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

record losses --returns --ring 64K --on-full drop -t 'libc:*' -- python3 -c 'print(sum(len(str(i)) for i in range(4000)))'
record newest --returns --ring 64K --on-full overwrite -t 'libc:*' -- python3 -c 'print(sum(len(str(i)) for i in range(4000)))'
record rotated --rotate 64K --keep 3 -t 'libc:*' -- python3 -c 'print(sum(len(str(i)) for i in range(4000)))'
record killed --returns -t 'libc:*' -- sh -c 'ls / >/dev/null; kill -9 $$'
record execs --returns --follow-fork -t 'libc:*' -- sh -c '(exec ls /) >/dev/null; exec sort /etc/passwd'
record threads --returns -t 'libc:*' -- xz -T2 -c /etc/services
record ports --ports -- sh -c 'sort /etc/passwd | cat >/dev/null'
record locks --locks -- xz -T2 -c /etc/services
record bank --returns -p send,receive,procs,running -t 'bank:_' -t 'mailbox:_' -- "$before/bin/actors" --messages=500 bank
record web -p send,receive,procs,running,ports -- "$before/bin/actors" --messages=300 web
record waits --ring 64K --on-full drop -p send,receive,procs,running -- "$before/bin/actors" --messages=20000 busy
record own --returns -t '_:_' -- sqlite3 :memory: 'select count(*) from (values (1),(2));'

# Every view, and every option that changes what is read.
views() {
	printf '%s\n' info 'info --json' print 'print --format erlang' 'print --format json' 'print --format chrome' 'print --tree' \
		'print --tree --limit 50' 'print --limit 50' 'print --tail 40' 'print --from 1ms --to 3ms' 'print --tree --from 1ms --to 3ms' \
		'print --format chrome --from 1ms --limit 60' 'print --process 0' report 'report --json' 'report --from 1ms --to 3ms --json' \
		'report --tree' 'report --callers' 'report --locks' 'report --locks --json' 'report --ports' 'report --ports --json' \
		'print --format erlang --bare-pids --timestamps wall' 'convert --quiet --to ttb -o -' 'convert --quiet --to ttb --timestamps wall -o -' \
		flame 'flame --folded' why-late 'why-late --json' 'why-late --from 1ms' seq 'seq --json'
}

same=0 differ=0
for capture in "$work"/*.tw "$golden"/*.tw "$@"; do
	name=$(basename "$capture") different=0 lines=0
	while read -r view; do
		old=0 new=0
		# shellcheck disable=SC2086
		"$before/bin/tracewheel" $view "$capture" >"$work/before" 2>"$work/before.errors" || old=$?
		# shellcheck disable=SC2086
		"$now/bin/tracewheel" $view "$capture" >"$work/now" 2>"$work/now.errors" || new=$?
		sed -E -i "${MEANT:-}" "$work/before" "$work/now" "$work/before.errors" "$work/now.errors"
		lines=$((lines + $(wc -l <"$work/before")))
		if ! cmp -s "$work/before" "$work/now" || ! cmp -s "$work/before.errors" "$work/now.errors" || [ "$old" != "$new" ]; then
			printf '%-24s %s DIFFERS (exit codes %s, %s):\n' "$name" "$view" "$old" "$new"
			diff "$work/before" "$work/now" | head -n 6 | cut -c 1-160
			diff "$work/before.errors" "$work/now.errors" | head -n 4 | cut -c 1-160
			different=1
		fi
	done < <(views)
	if [ "$different" = 0 ]; then
		printf '%-24s same, %s lines\n' "$name" "$lines"
		same=$((same + 1))
	fi
	differ=$((differ + different))
done
for library in libtracewheel libtracewheel-capture libtracewheel-debug; do
	echo "$library.so:"
	command -v abidiff >/dev/null || { echo '   abidiff is not installed'; continue; }
	abidiff "$before/lib/$library.so" "$now/lib/$library.so" | sed 's/^/   /' | head -n 40 || true
done
echo "$same captures read the same, $differ differ"
[ "$differ" = 0 ]
