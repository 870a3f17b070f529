#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# make.sh COMMAND FOLDER - manual pages and completions, made of what --help of every command says, which is made of the
# tables of options: FOLDER/man1/*.1, FOLDER/tracewheel.bash, FOLDER/_tracewheel (zsh), FOLDER/tracewheel.fish.
set -eu
command=$1
to=$2
here=$(cd "$(dirname "$0")" && pwd)
export LC_ALL=C
rm -rf "$to/man1"
mkdir -p "$to/man1"

# All the help as one text, a line with a form feed before each command's.
{
	"$command" --help
	for name in $("$command" --help | sed -n '/^Commands:/,/^$/s/^  \([a-z-]*\) .*/\1/p'); do
		printf '\f%s\n' "$name"
		"$command" "$name" --help
	done
} >"$to/help"
version=$("$command" --version | sed 's/ (.*//')
awk -v folder="$to/man1" -v version="$version" -f "$here/parse.awk" -f "$here/man.awk" "$to/help"
awk -f "$here/parse.awk" -f "$here/bash.awk" "$to/help" >"$to/tracewheel.bash"
awk -f "$here/parse.awk" -f "$here/zsh.awk" "$to/help" >"$to/_tracewheel"
awk -f "$here/parse.awk" -f "$here/fish.awk" "$to/help" >"$to/tracewheel.fish"
