#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal    Each command in docs/questions.md, and in the README of each folder in examples/questions, works as it stands there, and shows
#         what the page says.
# Method  The page's commands are run one after the other. A line that it shows is found in the output, in order: words are the same; numbers,
#         units, addresses and texts in quotes may be others. `...` stands for any lines; where nothing
#         is shown, nothing is printed.
build=$1
. "$(dirname "$0")/lib.sh"
root=$(realpath "$common/../..")
PATH=$PATH:/sbin ldconfig -p | grep -q 'libsqlite3.so.0 ' || { echo "no libsqlite3.so.0 here: not tested" && exit 77; }
cp "$root"/examples/questions/*.{c,py} .
# With fewer rows the same functions are slow, but less.
rows=$(rounds 3000 20000)
grep -q 'i < 20000)' shop.c || fail "no number of rows"
sed -i "s/i < 20000)/i < $rows)/" shop.c
mkdir bin
ln -s "$tw" bin/tracewheel
export PATH=$work/bin:$PATH
cat >play.py <<'P'
import functools, re, subprocess, sys
def commands_of(page):
    commands = []
    for line in page.splitlines():
        if line.startswith("    $ "):
            commands.append((line[6:].strip(), []))
        elif line.startswith("    "):
            commands[-1][1].append(line[4:].rstrip())
    return commands
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
@functools.cache
def output(number, command):
    ran = subprocess.run(command, shell=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300)
    return ran.stdout
def fault(page):
    for number, (command, lines) in enumerate(commands_of(page)):
        shown = output(number, command)
        got, at = shown.splitlines(), 0
        for line in lines:
            if line == "...":
                continue
            want = re.compile(r"[\s?]*" + pattern(line) + r"[\s█▉▊▋▌▍▎▏]*")
            found = next((i for i in range(at, len(got)) if want.fullmatch(got[i])), None)
            if found is None:
                return f"$ {command}\n{shown}\nno line as\n{line}\n{want.pattern}"
            at = found + 1
        if not lines and shown:
            return f"$ {command}\n{shown}"
page = open(sys.argv[1]).read()
if said := fault(page):
    sys.exit(said)
if len(sys.argv) > 2:
    sys.exit()
# The test notices another function, and a line that nothing prints: the output is compared with the changed page again.
for old, new in ("shop:load_plugins() =", "shop:load_plug() ="), ("The slowest of", "The fastest of"):
    if old not in page or not fault(page.replace(old, new)):
        sys.exit(f"not noticed: {new}")
print(len(commands_of(page)))
P
count=$(python3 -I -S play.py "$root/docs/questions.md") || fail "the page: $count"
[ "$count" -gt 20 ] || fail "$count commands only"
# A folder each, with what its README needs.
folders=0
for folder in "$root"/examples/questions/*/; do
	name=$(basename "$folder")
	case $name in
	where-is-the-time) command -v rustc >/dev/null || continue ;;
	what-may-others-see) command -v sqlite3 >/dev/null || continue ;;
	esac
	cp -r "$folder" "$name"
	said=$(cd "$name" && python3 -I -S ../play.py README.md alone 2>&1) || fail "$name: $said"
	folders=$((folders + 1))
done
[ "$folders" -ge 5 ] || fail "$folders folders only"
exit 0
