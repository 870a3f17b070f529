#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal    The commands in README work as printed: the one after `./run demo`, and the five.
# Method  They are taken from README and run by a shell, in the folder of the files that they name; `run` must make the
#         capture that README reads.
build=$1
here=$(realpath "$(dirname "$0")")
top=$(realpath "$here/../..")
. "$here/lib.sh"
command -v sqlite3 >/dev/null || { echo "no sqlite3 here: not tested" && exit 77; }

make_work
mkdir bin && ln -s "$tw" bin/tracewheel
PATH=$work/bin:$PATH

# block HEADING: the commands of the first piece of code below a heading.
block() {
	sed -n "/^$1/,\$p" "$top/README.md" | sed -n '/^```$/,/^```$/{/^```$/!p}' | sed -n '1,/^$/p' | sed 's/^\$ //'
}
block '## Five commands' | grep '^tracewheel' | head -n 5 >commands
is "$(wc -l <commands)" 5
while read -r line; do
	sh -c "$line" >out 2>err || fail "exit code $?: $line"
	rm -f app.db
done <commands
grep -q '<html' sqlite3.html || fail "no page"
expect 0 "$tw" info --json large.tw
[ "$(json 'd["events"]')" -ge 1 ] || fail "the condition of README let nothing pass"

# The first command after the demo, on a capture made as by `./run demo`.
line=$(sed -n 's/^\$ \(build\/release\/bin\/tracewheel .*\)/\1/p' "$top/README.md" | head -n 1)
capture=$(grep -o 'build/demo/[a-z0-9]*\.tw' <<<"$line") || fail "README shows no command behind the demo"
grep -q 'dir=build/demo$' "$top/run" && grep -q -- "-o \"\$dir/${capture##*/}\"" "$top/run" || fail "./run demo does not make $capture"
mkdir -p build/release build/demo && ln -s "$work/bin" build/release/bin
eval "$(sed -n '/^demo() {/,/^}/s|^\t\("$bin" record .*\)|\1|p' "$top/run" | sed 's|"$bin"|"$tw"|; s|"$dir/work.sql"|work.sql|; s|\$dir|build/demo|g')" >out 2>err ||
	fail "the recording of ./run demo"
sh -c "$line" >out 2>err || fail "exit code $?: $line"
awk -v line="$line" -f "$here/readme_shown.awk" "$top/README.md" out >err || fail "README"
# It would notice another line.
sed '/CreateTable/d' out >other
! awk -v line="$line" -f "$here/readme_shown.awk" "$top/README.md" other >err || fail "a line is missing, and nothing was noticed"
says CreateTable
# It is the command whose output the demo shows.
grep -o "'[^']*'\|--limit [0-9]*" <<<"$line" | while read -r words; do
	sed -n '/^demo() {/,/^}/p' "$top/run" | grep -qF -- "$words" || fail "./run demo does not show README's command: $words"
done || exit 1
