#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal    On a terminal the output of print, report, info and functions goes through a pager, with the width and the colours of the terminal
#         and the command's own exit code; elsewhere, with --no-pager and for streams it does not.
# Method  Commands on a terminal of 70 columns, with pagers that write a file, read one line, or do not exist.
build=$1
. "$(dirname "$0")/lib.sh"

make_calls
expect 0 "$tw" record -q --follow-fork -t calls:_ -o a.tw -- sh -c 'yes | ./calls >/dev/null'

# on_terminal COMMAND...: its output there in the file shown. Returns its exit code, 128 + signal if one ended it.
on_terminal() {
	python3 - "$@" <<-'EOT' >shown
		import fcntl, os, pty, signal, struct, sys, termios
		pid, fd = pty.fork()
		if pid == 0:
		    os.environ["TERM"] = "xterm"
		    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
		    fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 70, 0, 0))
		    os.execv(sys.argv[1], sys.argv[1:])
		data = b""
		try:
		    while chunk := os.read(fd, 65536):
		        data += chunk
		except OSError:
		    pass
		sys.stdout.buffer.write(data)
		code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
		sys.exit(128 - code if code < 0 else code)
	EOT
}

# through PAGER CODE COMMAND...
through() {
	local got=0
	rm -f paged
	TRACEWHEEL_PAGER=$1 on_terminal "$tw" "${@:3}" || got=$?
	[ "$got" = "$2" ] || fail "exit code $got instead of $2 through $1: ${*:3}: $(cat shown)"
}

for view in "print a.tw" "report a.tw" "info a.tw" "functions ./calls"; do
	# shellcheck disable=SC2086
	through 'cat >paged' 0 $view
	[ -s paged ] && [ ! -s shown ] || fail "no pager for $view"
	# shellcheck disable=SC2086
	expect 0 "$tw" $view
done
through 'cat >paged' 0 report a.tw
grep -q $'\033\\[' paged || fail "no colour in the pager"
! sed 's/\x1b\[[0-9;]*m//g' paged | grep -q '^.\{71\}' || fail "wider than the terminal"
through 'cat >paged' 0 report --color never a.tw
! grep -q $'\033\\[' paged || fail "colour in spite of --color never"

# Messages go there too, and the exit code is the command's.
through 'cat >paged; exit 3' 1 report none.tw
grep -q 'none.tw' paged || fail "the message is not in the pager"

# Not where output is no terminal, where it is not wanted, and for what is shown as it arrives.
rm -f paged
TRACEWHEEL_PAGER='cat >paged' expect 0 "$tw" report a.tw
[ ! -e paged ] || fail "a pager in a pipe"
through 'cat >paged' 0 report --no-pager a.tw
[ ! -e paged ] && [ -s shown ] || fail "a pager with --no-pager"
for none in cat ''; do
	through "$none" 0 report a.tw
	[ -s shown ] || fail "nothing without a pager"
done
rm -f paged
PAGER='cat >paged' TRACEWHEEL_PAGER=cat on_terminal "$tw" info a.tw
[ ! -e paged ] || fail "PAGER counts before TRACEWHEEL_PAGER"
(
	unset TRACEWHEEL_PAGER
	PAGER='cat >paged' on_terminal "$tw" info a.tw
)
[ -s paged ] || fail "PAGER is not used"

# A pager that ends early ends the command by SIGPIPE, as a pipe does; the pager is waited for.
through 'head -n 1 >paged; exec <&-; sleep 0.2; echo last >>paged' 141 print --format json a.tw
is "$(tail -n 1 paged)" last "the pager was not waited for"
