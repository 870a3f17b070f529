#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# make_cli_doc.sh BUILD - writes docs/cli.md to standard output: what every command says of itself.
set -eu
tw=$1/bin/tracewheel
cat <<'TEXT'
# The command line

Made by `tests/make_cli_doc.sh build/release > docs/cli.md`; the test `tools_cli_doc` compares it with `--help`.

Answers go to standard output, everything else to standard error. A message says what happened, why, and what to do.
Colour is for terminals, and not where `NO_COLOR` is set. Progress is shown on terminals, when something takes longer
than a second.

TEXT
echo '```'
"$tw" --help
echo '```'
for command in $("$tw" --help | sed -n '/^Commands:/,/^$/s/^  \([a-z]*\) .*/\1/p'); do
	printf '\n## tracewheel %s\n\n```\n' "$command"
	"$tw" "$command" --help
	echo '```'
done
