#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal    The C in the documents works: every piece stands, line by line, in an example, which is compiled and run by
#         a test, or is compiled and run here.
# Method  All pieces of README.md, docs/ and the examples' READMEs, and all pieces without a language that call a function of
#         the library, which would escape. The tracer module of docs/tracer-modules.md is built, and told of the messages
#         of an example.
build=$1
. "$(dirname "$0")/lib.sh"
top=$(realpath "$(dirname "$0")/../..")
python3 - "$top" <<'PY' || fail "see above"
import glob, re, sys
top = sys.argv[1]
def bare(lines):
    return [line.strip() for line in lines if line.strip()]
examples = {path: bare(open(path)) for path in glob.glob(top + '/examples/**/*.[ch]', recursive=True)}
def stands(piece):
    return any(lines[i:i + len(piece)] == piece for lines in examples.values() for i in range(len(lines)))
count = 0
for page in [top + '/README.md'] + glob.glob(top + '/docs/**/*.md', recursive=True) + glob.glob(top + '/examples/**/*.md', recursive=True):
    name = page[len(top) + 1:]
    for language, piece in re.findall(r'^```(\w*)\n(.*?)^```', open(page).read(), re.M | re.S):
        if not language and re.search(r'\b(tw_\w+|TW_DEFINE_FUNCTION)\(', piece):
            sys.exit('%s: C that is not marked as such:\n%s' % (name, piece))
        if language != 'c':
            continue
        count += 1
        if name == 'docs/tracer-modules.md':
            open('module.c', 'a').write('#include <tracewheel/tracer.h>\n' + piece)
        elif not stands(bare(piece.split('\n'))):
            sys.exit('%s: in no example:\n%s' % (name, piece))
assert count >= 20, count
PY
expect 0 gcc -shared -fPIC -Wall -Werror -I"$top/include" -o module.so module.c
expect 0 "$tw" record -q -o module.tw --tracer ./module.so -p send -- "$build/examples/example-mailbox"
grep -q 'the sum of the squares is 14' out || fail "the program does not do its work"
expect 0 "$tw" info module.tw
