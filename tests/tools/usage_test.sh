#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal: help, version and every wrong command line get an answer of the right kind.
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
expect 2 "$tw" recrod
says "no command 'recrod'; did you mean record?"
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
expect 2 "$tw" record -o
says "wants a value"
expect 2 "$tw" record -t ':::/x' -- true
says "is not a pattern"
expect 2 "$tw" record --ring 100000 -- true
says "power of two"
expect 2 "$tw" record --on-full explode -- true
says "drop, block or overwrite"
expect 2 "$tw" record --rotate 12 -- true
says "not a size"
expect 2 "$tw" report a.tw b.tw
says "one capture at a time"
expect 2 "$tw" print --limit many a.tw
says "is a number"
expect 2 "$tw" print --format xml a.tw
says "text, erlang, json or chrome"
expect 2 "$tw" print --tree --format json a.tw
says "tree is text"
expect 2 "$tw" report --sort size a.tw
says "total, self, calls"
for command in report print flame info; do
	expect 1 "$tw" "$command" missing.tw
	says "there is no capture 'missing.tw'"
done
expect 1 "$tw" recover missing.tw
says "there is no capture 'missing.tw'"
