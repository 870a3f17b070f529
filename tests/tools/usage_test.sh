#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal    Help, version and every wrong command line get the right kind of answer.
build=$1
. "$(dirname "$0")/lib.sh"

expect 0 "$tw" --help
shows 'record'
shows 'Exit codes'
expect 0 "$tw" --version
shows '^tracewheel [0-9]'
expect 2 "$tw"
says 'Usage: tracewheel COMMAND'
expect 2 "$tw" no-such-command
says "no command 'no-such-command'"
[ "$(wc -l <err)" -eq 2 ] || fail "the sentence on a command that does not exist is lost in other text"
expect 2 "$tw" recrod
says "no command 'recrod', and no program tracewheel-recrod; did you mean record?"
expect 0 "$tw" version
shows '^tracewheel [0-9]'
expect 0 "$tw" help report
shows '^Usage: tracewheel report'
commands=$("$tw" --help | sed -n 's/^  \([a-z]\+\) .*/\1/p' | grep -v '^tracewheel$' | sort -u)
[ "$(echo "$commands" | wc -l)" -ge 6 ] || fail "only these commands: $commands"
for command in record report print flame info functions recover; do
	expect 0 "$tw" "$command" --help
	shows '^Usage: tracewheel '"$command"
	shows '^Examples:'
	[ ! -s err ] || fail "--help of $command says something on standard error"
	expect 2 "$tw" "$command" --no-such-option
	says "no option --no-such-option"
	says "tracewheel $command --help"
	expect 2 "$tw" "$command"
done
# All help fits 80 columns.
for command in '' $commands; do
	# shellcheck disable=SC2086
	wide=$("$tw" $command --help | awk 'length > 80')
	[ -z "$wide" ] || fail "--help of '$command' is wider than 80 columns: $wide"
done
# A list of words that is too long for a line goes on in the next one.
"$tw" convert --help | grep -q "^ *csv|ttb$" || fail "convert --help cuts its list of formats"
# On a narrow terminal it is narrower, except for lines to be copied.
python3 - "$tw" >out <<'EOT' || fail "--help on a terminal"
import fcntl, os, pty, struct, sys, termios
pid, fd = pty.fork()
if pid == 0:
    fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 60, 0, 0))
    os.execv(sys.argv[1], [sys.argv[1], "record", "--help"])
data = b""
try:
    while chunk := os.read(fd, 65536):
        data += chunk
except OSError:
    pass
assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
text = data.decode().replace("\r", "").split("Examples:")[0]
assert all(len(line) <= 60 for line in text.splitlines()[1:]), [l for l in text.splitlines() if len(l) > 60]
assert any(len(line) > 50 for line in text.splitlines()[1:])
EOT

# Options from files: words, quotes, comments; messages name the line; the traced program's words are its own.
cat >options <<'O'
# what is recorded
--returns -q  # and when it returns
-t 'libc:{getenv,
set\env}' -t "libc:\"\\" -o a\ b.tw
O
expect 2 "$tw" record @options -- true
says "record: options:3: .* is not a pattern: it has more than one line"
printf -- '-t "libc:{setenv,exit,_exit}" -q\n--allow-nothing -o a\\ b.tw # the end' >options
expect 0 "$tw" record @options --force -- echo @options
shows '^@options$'
expect 0 "$tw" info 'a b.tw'
printf -- '-q\n\n--retruns' >options
expect 2 "$tw" record @options -- true
says 'tracewheel record: options:3: there is no option --retruns; did you mean --returns?'
printf -- '-q\n--longer 3x' >options
expect 2 "$tw" record @options -- true
says 'record: options:2: --longer is a duration'
printf -- '-q\n"--returns' >options
expect 2 "$tw" record @options -- true
says 'options:2: a quote that begins in this word does not end'
expect 2 "$tw" record @no-such-file -- true
says "options of 'no-such-file' cannot be read: there is no such file"
expect 2 "$tw" record @/dev/zero -- true
says 'it is no regular file'
printf '@options' >options
expect 127 "$tw" record @options
says "no program '@options' in any folder of PATH; a file of options comes first"
head -c 2000000 /dev/zero | tr '\0' a >long
expect 2 "$tw" record @long -- true
says 'more than 1 MiB'
head -c 30000 /dev/zero | tr '\0' '\n' | sed 's/^/a/' >many
expect 2 "$tw" record @many -- true
says 'many:10001: there are more than 10,000 words'
head -c 10 /dev/zero >zeros
expect 2 "$tw" record @zeros -- true
says 'bytes of 0'

# A failure to write is reported.
for arguments in '--help' '--version' 'report --help'; do
	code=0
	# shellcheck disable=SC2086
	"$tw" $arguments >/dev/full 2>err || code=$?
	is "$code" 1 "$arguments to a full disk"
	says 'writing the answer failed: No space left'
done

# A misspelled option, an ambiguous one, one that takes no value.
expect 2 "$tw" record --retruns -- true
says 'there is no option --retruns; did you mean --returns?'
expect 2 "$tw" report --by-calls a.tw
says 'there is no option --by-calls\.'
expect 2 "$tw" record --re -- true
says '--re may be one of --redact, --returns, --return-to'
expect 2 "$tw" record --returns=5 -- true
says '--returns takes no value'
expect 2 "$tw" record -Z -- true
says 'there is no option -Z'
expect 2 "$tw" report --color=blue a.tw
says '--color is auto, always or never'
expect 2 "$tw" record --ring 512M -- true
says 'one ring of 512 MiB, and 4 KiB beside it, does not fit into --ring-cap, which is 256 MiB'
expect 2 "$tw" record -q --ring 128K --ring-cap 128K -- true
says 'one ring of 128 KiB, and 4 KiB beside it'
expect 2 "$tw" record -q --ring-cap 64K -- true
says "ring-cap is a size from 68K to 1024G"
# Not a whole number of pages.
expect 0 "$tw" record -q --force -o cap.tw --ring 64K --ring-cap 70001 -- true

# Without a name: the newest capture of the folder; commands that change captures do not guess.
expect 0 "$tw" record -q -t 'libc:_' -o first.tw -- ls
expect 0 "$tw" record -q -t 'libc:_' -o second.tw -- ls
mkdir third
for command in report print info 'flame --folded'; do
	# shellcheck disable=SC2086
	expect 0 "$tw" $command
	says 'second.tw, the newest capture here'
	cp out named
	# shellcheck disable=SC2086
	expect 0 "$tw" $command second.tw
	[ ! -s err ] || fail "a message about a capture that was named"
	cmp -s out named || fail "$command without a name is another"
	# shellcheck disable=SC2086
	expect 0 "$tw" $command second
	cmp -s out named || fail "$command second is not of second.tw"
done
code=0
"$tw" record -q -o - -- ls 2>/dev/null | "$tw" report >out 2>err || code=$?
is "$code" 2 "a stream without its -"
says 'or - for the stream on standard input'
expect 2 "$tw" recover
says 'which capture'
expect 1 "$tw" report nothing
says "there is no capture 'nothing'; the newest here is second.tw"
cp "$(type -P true)" first
expect 1 "$tw" report first
says "'first' is not a capture; did you mean first.tw?"
rm -r first.tw second.tw third first
expect 2 "$tw" record -o
says "wants a value"
# A value that was forgotten is not looked for in the next option; behind a = it may be anything.
for forgotten in --count -t --when -o; do
	expect 2 "$tw" record $forgotten --returns -- true
	says "record: $forgotten wants a value"
	expect 2 "$tw" record $forgotten -- true
	says "record: $forgotten wants a value"
done
expect 2 "$tw" record --when=--returns -o never.tw -- true
! grep -q 'wants a value' err || fail "a value behind ="
expect 2 "$tw" record -t ':::/x' -- true
says "is not a pattern"
expect 2 "$tw" record --ring 100000 -- true
says "power of two"
expect 2 "$tw" record --on-full explode -- true
says "drop, block or overwrite"
expect 2 "$tw" record --rotate 12 -- true
says "not a size"
expect 2 "$tw" report a.tw b.tw
says "one capture at a time, not 2"
expect 2 "$tw" report ''
says "Its name is empty"
mkdir folder
expect 1 "$tw" report folder
says "'folder' is not a capture: there are no segments"
expect 127 "$tw" record -- 'ls -l'
says "there is no program 'ls -l' in any folder of PATH; arguments .* without the quotes"
expect 2 "$tw" print --limit many a.tw
says "is a number"
expect 2 "$tw" print --format xml a.tw
says "text, strace, erlang, dbg, json, perfetto, speedscope or chrome"
expect 2 "$tw" print --tree --format json a.tw
says "tree is text"
expect 2 "$tw" report --sort size a.tw
says "total, self, tracer_ns"
for command in report print flame info; do
	expect 1 "$tw" "$command" missing.tw
	says "there is no capture 'missing.tw'"
done
expect 1 "$tw" recover missing.tw
says "there is no capture 'missing.tw'"
