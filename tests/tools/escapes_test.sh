#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal    No name of a function, object, thread, file, type or program reaches a terminal with a control character, in any
#         view; no name starts a line of its own; JSON and Erlang terms stay valid.
# Method  A program and a library whose names hold escape sequences, line feeds, bells, eight-bit controls and marks of
#         writing's direction. All views are searched for such bytes; their lines are counted; JSON is parsed.
build=$1
. "$(dirname "$0")/lib.sh"

bad=$'\e]0;owned\a\e[2J'
cat >library.c <<'C'
__attribute__((noipa)) int evil(int number) { return number; }
__attribute__((noipa)) int forger(int number) { return evil(number) + 1; }
C
cat >main.c <<'C'
#include <pthread.h>
#include <sys/prctl.h>
int forger(int);
static void *run(void *name)
{
	prctl(PR_SET_NAME, name);
	for (int i = 0; i < 3; i++)
		forger(i);
	return NULL;
}
int main(void)
{
	pthread_t thread;
	pthread_create(&thread, NULL, run, "w\033[31m\nFORGED");
	pthread_join(thread, NULL);
	run("\233m");
	return 0;
}
C
gcc -O1 -g -fPIC -fpatchable-function-entry=9 -c library.c && gcc -O1 -c main.c || fail "the compiler"
# \x9b alone is the eight-bit form of ESC [; U+009B in UTF-8 is the same; U+202E reverses the direction of the following
# text.
forged=$'forger\n   0.000000000     FORGED call\x9b31m \xc2\x9b \xe2\x80\xae\x7f'
objcopy --redefine-sym evil="evil$bad" --redefine-sym forger="$forged" library.o || fail "objcopy"
objcopy --redefine-sym forger="$forged" main.o || fail "objcopy"
library=$'lib\e[5m\nFORGED\a.so'
gcc -shared -o "$library" library.o && gcc -o $'app\e[7m' main.o "./$library" -lpthread -Wl,-rpath,. || fail "the linker"
expect 0 "$tw" record --returns --args --stack 4 -t 'lib*FORGED*:_' -t 'libc:pthread*' -o e.tw -- ./$'app\e[7m' $'argument\e[3m\nFORGED'
cp err said

# clean WHAT: neither output nor messages contain such bytes, nor lines that begin with the contents of a name.
clean() {
	! LC_ALL=C grep -aqP '[\x00-\x08\x0b-\x1f\x7f]|\xc2[\x80-\x9f]|\xe2\x80\xae|^[^!]*\x9b(?![\x80-\xbf])' out err ||
		{ LC_ALL=C grep -anP '[\x00-\x08\x0b-\x1f\x7f]|\xc2[\x80-\x9f]|\xe2\x80\xae|\x9b' out err | cat -v | head -5 >&2; fail "$1 shows control characters"; }
	! grep -aqE '^( *0\.0* *)?FORGED' out err || fail "$1 has lines that a name made"
	iconv -f UTF-8 -t UTF-8 out >/dev/null || fail "$1 is not UTF-8"
}

events=$("$tw" info --json e.tw | python3 -c 'import json, sys; print(json.load(sys.stdin)["events"])')
[ "$events" -ge 12 ] || fail "$events events"
cp said err && : >out && clean "record"
for view in "print" "print --tree" "print --format erlang" "print --format json" "print --format chrome" \
	"report --top 0" "report --callers --top 0" "report --tree" "report --json" "flame" "flame --folded" "flame --by-process --folded" \
	"info" "info --json"; do
	# shellcheck disable=SC2086
	expect 0 "$tw" $view e.tw
	clean "$view"
	case $view in
	print | "print --format erlang" | "print --format json") is "$(wc -l <out)" "$events" "lines of $view" ;;
	esac
	case $view in
	"print --format json") python3 -c 'import json; [json.loads(line) for line in open("out")]' || fail "JSON lines" ;;
	*json | *chrome) python3 -c 'import json; json.load(open("out"))' || fail "JSON of $view" ;;
	esac
done
expect 0 "$tw" functions --refused ./$'app\e[7m'
clean "functions"
expect 0 "$tw" functions --json ./$'app\e[7m'
clean "functions --json"
python3 -c 'import json; json.load(open("out"))' || fail "JSON of functions"
# Messages repeat the arguments.
expect 1 "$tw" report $'no\e[2J\nFORGED.tw'
clean "a message"
expect 2 "$tw" report --sort $'no\e[2J\nFORGED' e.tw
clean "a message on options"
# Cleaned names are still distinct.
expect 0 "$tw" print e.tw
shows 'evil\\x1b\]0;owned\\x07\\x1b\[2J'
shows 'forger\\n   0.000000000     FORGED call\\x9b31m \\x9b \\u202e\\x7f'
