#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal    Each command in docs/questions.md works as it stands there, and shows what the page says.
# Method  The page's commands are run one after the other. A line that it shows is found in the output, in order: words are the same; numbers,
#         units, addresses and texts in quotes may be others. `...` stands for any lines; where nothing
#         is shown, nothing is printed.
build=$1
. "$(dirname "$0")/lib.sh"
root=$(realpath "$common/../..")
PATH=$PATH:/sbin ldconfig -p | grep -q 'libsqlite3.so.0 ' || { echo "no libsqlite3.so.0 here: not tested" && exit 77; }
cp "$root"/examples/questions/*.c .
mkdir bin
ln -s "$tw" bin/tracewheel
export PATH=$work/bin:$PATH
cat >play.py <<'P'
import re, subprocess, sys
shown = [line[4:] for line in open(sys.argv[1]) if line.startswith("    ")]
commands = []
for line in shown:
    if line.startswith("$ "):
        commands.append((line[2:].strip(), []))
    else:
        commands[-1][1].append(line.rstrip())
def pattern(line):
    words = []
    for word in line.split():
        if re.fullmatch(r"[█▉▊▋▌▍▎▏]+", word):
            continue
        word = re.escape(word)
        word = re.sub(r"0x[0-9a-f]+", "HEX", word)
        word = re.sub(r"(?:\\?[-+~]){0,2}[0-9][0-9,]*(\\\.[0-9]+)?", r"NUM", word)
        word = re.sub(r"sub_(NUM|[0-9a-f])+", "SUB", word)
        words.append(r"(ns|us|ms|s)" if word in ("ns", "us", "ms", "s") else word)
    text = r"\s+".join(words)
    text = re.sub(r'"[^"]*"', '".*"', text)
    return text.replace("SUB", "sub_[0-9a-f]+").replace("HEX", "0x[0-9a-f]+").replace("NUM", r"[-+~]{0,2}[0-9][0-9,.]*")
for command, lines in commands:
    ran = subprocess.run(command, shell=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300)
    got, at = ran.stdout.splitlines(), 0
    for line in lines:
        if line == "...":
            continue
        want = re.compile(r"[\s?]*" + pattern(line) + r"[\s█▉▊▋▌▍▎▏]*")
        found = next((i for i in range(at, len(got)) if want.fullmatch(got[i])), None)
        if found is None:
            sys.exit(f"$ {command}\n{ran.stdout}\nno line as\n{line}\n{want.pattern}")
        at = found + 1
    if not lines and ran.stdout:
        sys.exit(f"$ {command}\n{ran.stdout}")
print(len(commands))
P
count=$(python3 play.py "$root/docs/questions.md") || fail "the page: $count"
[ "$count" -gt 20 ] || fail "$count commands only"
# The test notices: another function, and a line that nothing prints.
for change in 's/shop:load_plugins() =/shop:load_plug() =/' 's/The slowest of/The fastest of/'; do
	sed "$change" "$root/docs/questions.md" >changed.txt
	! python3 play.py changed.txt >/dev/null 2>&1 || fail "not noticed: $change"
done
exit 0
