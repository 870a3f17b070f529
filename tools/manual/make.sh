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
		# A program of its own may not have been built.
		help=$("$command" "$name" --help) || continue
		printf '\f%s\n%s\n' "$name" "$help"
	done
} >"$to/help"
version=$("$command" --version | sed 's/ (.*//')

# `record --erlang` and `top --erlang` have options of their own: pages, but no commands. Made first: the other pages replace tracewheel.1.
for name in record top; do
	{
		printf 'Commands:\n  %s-erlang an Erlang node that runs\n\n\f%s-erlang\n' "$name" "$name"
		"$command" "$name" --erlang --help
	} >"$to/help-erlang"
	awk -v folder="$to/man1" -v version="$version" -f "$here/parse.awk" -f "$here/man.awk" "$to/help-erlang"
	page=$to/man1/tracewheel-$name-erlang.1
	sed "s/^\.B tracewheel $name-erlang/.B tracewheel $name/" "$page" >"$to/page"
	mv "$to/page" "$page"
done
awk -v folder="$to/man1" -v version="$version" -f "$here/parse.awk" -f "$here/man.awk" "$to/help"
awk -v here="$here" -f "$here/parse.awk" -f "$here/bash.awk" "$to/help" >"$to/tracewheel.bash"
awk -v here="$here" -f "$here/parse.awk" -f "$here/zsh.awk" "$to/help" >"$to/_tracewheel"
awk -v here="$here" -f "$here/parse.awk" -f "$here/fish.awk" "$to/help" >"$to/tracewheel.fish"
