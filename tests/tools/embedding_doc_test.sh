#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal    Every piece of C in docs/embedding.md is, line by line, in an example that is compiled and run; pieces that
#         show the form of a call compile on their own.
here=$(realpath "$(dirname "$0")/../..")
python3 - "$here" <<'PY'
import glob, re, sys
here = sys.argv[1]
def bare(lines):
    return [line.strip() for line in lines if line.strip()]
examples = {path: bare(open(path)) for path in glob.glob(here + '/examples/**/*.c', recursive=True)}
pieces = re.findall(r'^```c\n(.*?)^```', open(here + '/docs/embedding.md').read(), re.M | re.S)
assert len(pieces) >= 8, len(pieces)
def stands(piece, lines):
    return any(lines[i:i + len(piece)] == piece for i in range(len(lines)))
for piece in pieces:
    lines = bare(piece.split('\n'))
    if not any(stands(lines, example) for example in examples.values()):
        sys.exit('in no example:\n' + piece)
PY
[ $? = 0 ] || exit 1
{
	printf '#include <tracewheel/tracewheel.h>\nint made(void);\nint made(void)\n{\n'
	sed -n '/answer 0 or an error:$/,/^A scheduler/p' "$here/docs/embedding.md" | sed -n '/^```/,/^```/{/^```/!p}'
	printf '\treturn error;\n}\n'
} >"${TMPDIR:-/tmp}/embedding-$$.c"
gcc -fsyntax-only -Wall -Werror -I"$here/include" "${TMPDIR:-/tmp}/embedding-$$.c"
code=$?
grep -q tw_process_create "${TMPDIR:-/tmp}/embedding-$$.c" || code=1
rm -f "${TMPDIR:-/tmp}/embedding-$$.c"
exit $code
