# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2034
# lib.sh - read by the tests beside it: programs that are hard on a tracer, and the ways of tracing them.
build=$1
. "$(dirname "$0")/../tools/lib.sh"
programs=$build/tests/faults
hard=$programs/faults_hard

# All ways of tracing; each is a line of options.
ways=("--local" "--global")
if "$tw" record --help | grep -q -- '--returns'; then
	ways+=("--local --returns" "--global --returns")
fi
if "$tw" record --help | grep -q -- '--exceptions'; then
	ways+=("--local --exceptions")
fi
