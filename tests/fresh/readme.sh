#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# readme.sh demo|install|package|test - runs README's commands for it, in the tree that they are written for; machine.sh calls it on a fresh
# machine. They are taken from README, so that one that README no longer has is not tested instead of it.
set -eu -o pipefail
top=$(realpath "$(dirname "$0")/../..")
readme=$top/README.md
cd "$top"

fail() {
	echo "FAILED: $*" >&2
	exit 1
}

# play COMMAND: as a user types it.
play() {
	printf '\n$ %s\n' "$1"
	bash -c "$1" || fail "exit code $?: $1"
}

# has TEXT: README has this command.
has() {
	grep -qF -- "$1" "$readme" || fail "README does not have '$1'"
}

demo() {
	local line
	has './run demo '
	mkdir -p build
	play './run demo' 2>&1 | tee build/demo.log
	line=$(sed -n 's/^\$ \(build\/release\/bin\/tracewheel .*\)/\1/p' "$readme" | head -n 1)
	[ -n "$line" ] || fail "README shows no command behind the demo"
	grep -qxF -- "   $line" build/demo.log || fail "./run demo does not show README's command: $line"
	# README shows what a machine without debug symbols shows.
	play "$line" | tee build/shown.log
	sed 1,2d build/shown.log >build/shown
	awk -v line="$line" -f tests/tools/readme_shown.awk "$readme" build/shown || fail "README shows other lines"
	check_bytes
	echo "./run demo, and its last screen is README's"
}

# The bytes an event of README's table are those of the demo, give or take what a busy machine adds to the times.
check_bytes() {
	local told found
	told=$(sed -n 's/^| an event on disk, in the capture of .* | \([0-9.]*\) bytes |$/\1/p' "$readme")
	found=$(sed -n 's/^tracewheel: .* \([0-9.]*\) B an event\.$/\1/p' build/demo.log)
	awk -v told="$told" -v found="$found" 'BEGIN { exit !(found > 0.8 * told && found < 1.25 * told) }' ||
		fail "an event has $found bytes, and README tells $told"
}

install() {
	local by_hand
	has './run install [PREFIX] '
	play './run install'
	play 'tracewheel --version'
	# shellcheck disable=SC2016 # played as printed
	play 'gcc -o build/count examples/count_calls.c $(pkg-config --cflags --libs tracewheel) && build/count'
	play "./run install $HOME/wheel"
	play "mv $HOME/wheel $HOME/moved && $HOME/moved/bin/tracewheel record -q -o $HOME/ls.tw -- ls"
	# shellcheck disable=SC2016 # README's quotes
	by_hand=$(sed -n 's/^The same by hand: `\(.*\)`;$/\1/p' "$readme")
	[ -n "$by_hand" ] || fail "README shows no installation by hand"
	rm -rf build/release
	play "${by_hand/PREFIX/$HOME/by-hand}"
	play "$HOME/by-hand/bin/tracewheel info $HOME/ls.tw"
	five_commands
	echo "installed three times, and the five commands"
}

# What apt installs works without the tree, and goes again.
package() {
	local root='' began
	has './run package '
	has 'apt install ./build/packages/*.deb'
	[ "$(id -u)" = 0 ] || root=sudo
	play './run package'
	began=$SECONDS
	play "$root env DEBIAN_FRONTEND=noninteractive apt-get install -q -y ./build/packages/*.deb"
	mkdir "$HOME/installed"
	cp build/packages/*.deb examples/count_calls.c "$HOME/installed"
	cd "$HOME/installed"
	play 'tracewheel record -q -o ls.tw -- ls'
	play 'tracewheel report -n 5 ls.tw'
	echo "from apt to the first report: $((SECONDS - began)) s"
	play "tracewheel sql --csv ls.tw 'select count(*) > 0 from calls'"
	play "python3 -c 'import tracewheel; print(len(tracewheel.open(\"ls.tw\").calls()))'"
	# shellcheck disable=SC2016 # played as printed
	play 'gcc -o count count_calls.c $(pkg-config --cflags --libs tracewheel) && ./count'
	play "$root apt-get install -q -y --no-install-recommends python3-minimal"
	play "python3 '$top/tests/check_installed_links.py' /usr/share/doc/tracewheel"
	play "! dpkg -S /usr/bin/tracewheel /usr/include/tracewheel | grep -v '^tracewheel: \|^libtracewheel-dev: '"
	play "$root apt-get remove -q -y 'tracewheel*' 'libtracewheel*' 'python3-tracewheel'"
	play '! [ -e /usr/bin/tracewheel ] && ! [ -e /usr/include/tracewheel ]'
	echo "packages were made, installed, used and removed"
}

# README's five, in a folder of their own, with the program that they name.
five_commands() {
	local root='' line
	[ "$(id -u)" = 0 ] || root=sudo
	play "$root env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends sqlite3"
	mkdir "$HOME/work"
	cd "$HOME/work"
	echo 'CREATE TABLE t (a INTEGER PRIMARY KEY, b TEXT);
		WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2000) INSERT INTO t SELECT i, b FROM n, (SELECT '\'b\'' AS b);
		SELECT count(*) FROM t;' >work.sql
	sed -n '/^## Five commands/,/^| command/p' "$readme" | grep '^tracewheel ' >commands
	[ "$(wc -l <commands)" = 5 ] || fail "README does not show five commands"
	while read -r line; do
		play "$line"
		rm -f app.db
	done <commands
}

command=$1
case $command in
demo | install | package) "$command" ;;
test)
	has './run test '
	play './run test'
	;;
*) fail "there is no '$command'" ;;
esac
