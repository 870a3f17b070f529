#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# make_cli_doc.sh BUILD - writes docs/cli.md to standard output: what every command says of itself.
set -eu
tw=$1/bin/tracewheel
cat <<'TEXT'
# The command line

Made by `tests/make_cli_doc.sh build/release > docs/cli.md`; the test `tools_cli_doc` compares it with `--help`.

Answers go to standard output, everything else to standard error. A message says what happened, why, and what to do.
Colour is for terminals, and not where `NO_COLOR` is set; `--color` decides otherwise. Progress is shown on terminals, when something takes longer
than a second.

`info`, `report`, `print` and `flame` show what can be read, and end with 0 where that is all that was recorded: events that the
program lost and counted, older ones that gave way (`--keep`, `--on-full overwrite`) and a recording that is still going on change
nothing in that. They end with 1 where it is not: a segment is missing, something is damaged or was cut off, the disk was full, the
program wrote into its rings; standard error says which, and how many events that were, where that is known. A capture that
cannot be read at all ends them with 1 as well, 2 is a wrong command line. `record` passes on the program's own code.

TEXT
echo '```'
"$tw" --help
echo '```'
for command in $("$tw" --help | sed -n '/^Commands:/,/^$/s/^  \([a-z]*\) .*/\1/p'); do
	printf '\n## tracewheel %s\n\n```\n' "$command"
	"$tw" "$command" --help
	echo '```'
done
