#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal    docs/cli.md equals the output of --help.
build=$1
here=$(realpath "$(dirname "$0")")
. "$here/lib.sh"

"$here/../make_cli_doc.sh" "$build" >made || fail "make_cli_doc.sh"
diff "$here/../../docs/cli.md" made >out ||
	fail "docs/cli.md is behind: tests/make_cli_doc.sh build/release > docs/cli.md"
