#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal    Colour on terminals only, and not if NO_COLOR is set, unless --color says so; the report fits its terminal.
build=$1
. "$(dirname "$0")/lib.sh"

expect 0 "$tw" record -q -t 'libc:_' -o a.tw -- ls -l /usr/lib
# terminal COLUMNS [OPTION]: writes the report as on a terminal of that width to the file shown.
terminal() {
	# shellcheck disable=SC2086
	python3 - "$1" "$tw" ${view:-report} "${@:2}" a.tw <<-'EOT' >shown || fail "the report failed on a terminal"
		import fcntl, os, pty, struct, sys, termios
		pid, fd = pty.fork()
		if pid == 0:
		    os.environ["TERM"] = "xterm"
		    fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack("HHHH", 50, int(sys.argv[1]), 0, 0))
		    os.execv(sys.argv[2], sys.argv[2:])
		data = b""
		try:
		    while chunk := os.read(fd, 65536):
		        data += chunk
		except OSError:
		    pass
		sys.stdout.buffer.write(data)
		sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
	EOT
}
for columns in 40 60 80 120; do
	terminal "$columns"
	grep -q $'\033\\[' shown || fail "no colour on a terminal"
	python3 - "$columns" <<-'EOT' || fail "lines longer than $columns columns"
		import re, sys
		lines = re.sub("\x1b\\[[0-9;]*m", "", open("shown").read()).splitlines()
		wide = [line for line in lines if len(line.rstrip()) > int(sys.argv[1])]
		assert lines and not wide, wide
	EOT
done
export NO_COLOR=1
terminal 80
! grep -q $'\033\\[' shown || fail "colour in spite of NO_COLOR"
unset NO_COLOR
expect 0 "$tw" report a.tw
! grep -q $'\033\\[' out || fail "colour in a pipe"

# --color overrides everything: in a pipe, in spite of NO_COLOR, and off on a terminal.
NO_COLOR=1 expect 0 "$tw" report --color=always a.tw
grep -q $'\033\\[' out || fail "no colour with --color=always"
sed 's/\x1b\[[0-9;]*m//g' out >bare
expect 0 "$tw" report --color auto a.tw
cmp -s out bare || fail "--color=always changes more than colours"
terminal 80 --color=never
! grep -q $'\033\\[' shown || fail "colour with --color=never"

# The tree: names fit the terminal, and are whole in a pipe; after a limit, calls are not shown as open.
cat >app.cc <<'EOT'
#include <string>
__attribute__((noinline)) int take(const std::string &text)
{
	asm volatile("");
	return (int)text.size();
}
int main()
{
	return take("a") + take("bb") - 3;
}
EOT
if ${CXX:-c++} -O2 -g -fpatchable-function-entry=9 app.cc -o app 2>/dev/null; then
	expect 0 "$tw" record --force -q --returns -t app:main -t 'app:take*' -o a.tw -- ./app 'one two' "it's" ''
	expect 0 "$tw" report a.tw
	is "$(head -n 1 out)" "./app 'one two' 'it'\\''s' ''" "the command line"
	expect 0 "$tw" print --tree a.tw
	shows 'app:take(std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> > const&) = 1$'
	expect 0 "$tw" print --tree --limit 3 a.tw
	tail -n 1 out | grep -q '}  app:main  (continued after --limit)$' || fail "a call that continued after the limit"
	expect 0 "$tw" print --tree --limit 6 a.tw
	! grep -q limit out || fail "nothing is behind the limit"
	view='print --tree' terminal 60
	awk 'length > 61 { print; bad = 1 } END { exit bad }' shown || fail "a tree wider than 60 columns"
	grep -q 'app:take(.*) = 2' shown || fail "a name that was cut"
fi

# Pids stay whole on any width; the names after them are cut.
expect 0 "$tw" record --force -q -p send,receive,running -o a.tw -- "$build/bin/actors" chat -m 300
for columns in 44 60 66; do
	COLUMNS=$columns expect 0 "$tw" report --top 0 a.tw
	[ "$(grep -cE '<0\.[0-9]+\.0>' out)" -gt 60 ] || fail "no pids at $columns columns"
	! grep -E '<0' out | sed -E 's/<0\.[0-9]+\.[0-9]+>//g' | grep -E '<0|0>' || fail "pids were cut at $columns columns"
done
