#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# peers_test.sh BUILD
#
# Goal    The table of `./run bench peers` holds what happened: all calls are read back, what a tracer leaves out is said, and a tracer that is
#         not here is named with the package that has it.
# Method  A few calls, with a PATH of few commands. Its strace is false, and writes each second call only; then a false `tracewheel` reports
#         a call too few, which fails the run.
set -e
here=$(cd "$(dirname "$0")" && pwd)
build=$(realpath "$1")
folder=$(mktemp -d "${TMPDIR:-/tmp}/tracewheel-peers-test.XXXXXX")
trap 'rm -rf "$folder"' EXIT
export PYTHONDONTWRITEBYTECODE=1
mkdir -p "$folder/path" "$folder/false/bin"
for command in gcc as ld python3 sh sed awk; do
	ln -s /usr/bin/$command "$folder/path/$command"
done
cat >"$folder/path/strace" <<'S'
#!/bin/sh
while [ "$1" != -o ]; do shift; done
awk "BEGIN { for (i = 0; i < $7 + 1000; i += 2) print \"1 0.1 getppid() = 1\" }" >"$2"
shift 4
exec "$@"
S
cat >"$folder/false/bin/tracewheel" <<S
#!/bin/sh
[ "\$1" = report ] || exec "$build/bin/tracewheel" "\$@"
"$build/bin/tracewheel" "\$@" | sed 's/"calls": 1\([0-9]*\)0\b/"calls": 1\11/'
S
chmod +x "$folder/path/strace" "$folder/false/bin/tracewheel"
peers() {
	PATH=$folder/path python3 "$here/peers.py" "$@" --rounds 1 --share 0.001 --json --only '^(LTT|ltrace|strace)'
}
peers "$build" >"$folder/out.json"
python3 - "$folder/out.json" <<'P'
import json
import sys
table = json.load(open(sys.argv[1]))
rows = {(row["peer"], row["case"]): row for row in table["rows"]}
for case in "call", "two words", "call and return", "system call":
    row = rows["tracewheel", case]
    assert row["recorded"] == row["calls"] > 1000 and row["lost"] == row["uncounted"] == 0, row
    assert row["bytes_per_event"] > 0 and row["program_ns"]["least"] <= row["program_ns"]["median"] <= row["program_ns"]["most"], row
row = rows["strace", "system call"]
assert row["recorded"] == row["uncounted"] == row["calls"] // 2 and row["lost"] == 0, row
assert row["times_ours"]["median"] != 0, row
said = {row["peer"]: row["reason"] for row in table["missing"]}
assert said["ltrace"].endswith("apt-get install ltrace") and said["LTTng-UST"].endswith("apt-get install lttng-tools"), said
assert "strace" not in said and table["machine"]["kernel"], table
P
if peers "$folder/false" >"$folder/out.json" 2>"$folder/err"; then
	echo "a call that was not recorded was not noticed" >&2
	exit 1
fi
grep -q 'tracewheel did not record what was called: .*events are missing' "$folder/err" || { cat "$folder/err" >&2 && exit 1; }
