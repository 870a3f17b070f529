#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal: colour on terminals only, and not where NO_COLOR is set, or as --color says; the report fits its terminal.
build=$1
. "$(dirname "$0")/lib.sh"

expect 0 "$tw" record -q -t 'libc:_' -o a.tw -- ls -l /usr/lib
# terminal COLUMNS [OPTION]: the report as a terminal of that width gets it, in the file shown.
terminal() {
	python3 - "$1" "$tw" report "${@:2}" a.tw <<-'EOT' >shown || fail "the report failed on a terminal"
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

# --color says it once for all: in a pipe, in spite of NO_COLOR, and not on a terminal.
NO_COLOR=1 expect 0 "$tw" report --color=always a.tw
grep -q $'\033\\[' out || fail "no colour with --color=always"
sed 's/\x1b\[[0-9;]*m//g' out >bare
expect 0 "$tw" report --color auto a.tw
cmp -s out bare || fail "--color=always changes more than colours"
terminal 80 --color=never
! grep -q $'\033\\[' shown || fail "colour with --color=never"
