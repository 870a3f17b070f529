#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# make_cli_doc.sh BUILD - writes docs/cli.md to standard output: the help of every command.
set -eu
tw=$1/bin/tracewheel
cat <<'TEXT'
# The command line

Made by `tests/make_cli_doc.sh build/release > docs/cli.md`; the test `tools_cli_doc` compares it with `--help`.

Results go to standard output, everything else to standard error. A message says what happened, why, and what to do.
Colour is used on terminals unless `NO_COLOR` is set; `--color` overrides both. Progress is shown on terminals when a command takes
longer than a second.

`info`, `report`, `print` and `flame` show all that can be read. They end with 0 if every recorded event is there; events that the
program lost and counted, older ones that gave way (`--keep`, `--on-full overwrite`) and a recording that still goes on do not change
that. They end with 1 if a segment is missing, damaged or cut off, if the disk was full, or if the program wrote into its rings;
standard error says which, and how many events are missing, if that is known. `info` checks every block; a view of a part
(`--from`, `--limit`) finds damaged events in that part only. They also end with 1 for a capture that
cannot be read at all, and with 2 for a wrong command line. `record` passes on the program's own code.

Options may stand in a file: `tracewheel record @server.opts -- ./server` has the words of `server.opts` in its place, separated by blanks
and line breaks, with quotes and backslashes as in a shell, and comments from `#` at the begin of a word. The name of the file comes
directly behind the command, several may follow one another, and files name no others. Messages about an option say its line.

Bash, zsh and fish complete commands, options, values, captures and processes, and behind `-t` modules and functions of the program on the line or of the
process (`functions` of it; two seconds at most).

TEXT
echo '```'
"$tw" --help
echo '```'
for command in $("$tw" --help | sed -n '/^Commands:/,/^$/s/^  \([a-z-]*\) .*/\1/p'); do
	printf '\n## tracewheel %s\n\n```\n' "$command"
	"$tw" "$command" --help
	echo '```'
	[ "$command" = record ] || [ "$command" = top ] || continue
	printf '\n## tracewheel %s --erlang\n\n```\n' "$command"
	"$tw" "$command" --erlang --help
	echo '```'
done
