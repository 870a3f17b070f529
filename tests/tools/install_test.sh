#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal    The installed tree works from any location: the command finds its agent, pkg-config and find_package give a
#         compiler all flags, manual pages and completions know every option, and the libraries export versioned names.
# Method  A package is made (DESTDIR, another prefix) and moved; examples are built against it there, and no installed
#         file may name the folder of the build.
build=$1
here=$(realpath "$(dirname "$0")")
top=$(realpath "$here/../..")
. "$here/lib.sh"

DESTDIR=$work/package expect 0 cmake --install "$build" --prefix /opt/wheel
to=$work/moved
mv package/opt/wheel "$to"
lib=$to/$(sed -n 's/^CMAKE_INSTALL_LIBDIR:PATH=//p' "$build/CMakeCache.txt")
tw=$to/bin/tracewheel
find "$to" -type f \( -name '*.cmake' -o -name '*.pc' -o -name '*.h' -o -path '*/man1/*' \) -exec grep -l -e "$build" -e "$top" {} + &&
	fail "files that name the folder of the build"
for file in share/doc/tracewheel/LICENSE share/doc/tracewheel/docs/cli.md share/doc/tracewheel/examples/count_calls.c share/tracewheel/prototypes/libc.proto; do
	[ -s "$to/$file" ] || fail "no $file"
done

# The command, by its path, by a link, and by PATH.
expect 0 "$tw" record -q -o a.tw -- ls
expect 0 "$tw" info --json a.tw
[ "$(json 'd["events"]')" -gt 10 ] || fail "the installed command recorded nothing"
ln -s "$tw" wheel
expect 0 ./wheel record -q -o b.tw -- ls
PATH=$to/bin:$PATH expect 0 tracewheel record -q -o c.tw -- ls
if [ -e "$build/bin/tracewheel-sql" ]; then
	PATH=$to/bin:$PATH expect 0 tracewheel sql --csv c.tw 'select count(*) > 10 from calls'
	is "$(tail -1 out)" 1
fi
# Without its agent it names the missing file.
mkdir -p alone/bin && cp "$tw" alone/bin
expect 125 alone/bin/tracewheel record -q -o d.tw -- ls
says "/libtracewheel-agent.so is missing"

# The application for Erlang, where it was built.
if command -v erl >/dev/null && [ -e "$build/erlang/priv/tracewheel_nif.so" ]; then
	expect 0 erl -noshell -pa "$lib/tracewheel/erlang/ebin" -eval "
		{ok, _} = tracewheel:start(\"lists.tw\", #{patterns => [\"lists:seq/2\"], recorder => \"$tw\"}),
		lists:seq(1, 3), {ok, #{events := 1}} = tracewheel:stop(), halt()."
	ldd "$lib/tracewheel/erlang/priv/tracewheel_nif.so" | grep -q "$to/lib.*libtracewheel" || fail "not the installed library"
	[ -e "$lib/tracewheel/erlang/ebin/tracewheel_attach.beam" ] || fail "nothing to attach with"
	expect 125 "$tw" record --erlang -t lists -o none.tw 0
	says 'there is no process 0'
fi

# Every name that a public library exports has a version; linked programs require it.
for name in tracewheel tracewheel-capture tracewheel-debug; do
	objdump -p "$lib/lib$name.so" | grep -q "SONAME *lib$name.so.0$" || fail "SONAME of $name"
	nm -D --defined-only --with-symbol-versions "$lib/lib$name.so" | grep -v ' A ' | grep -v '@@TRACEWHEEL_' >bare &&
		fail "without a version: $(cat bare)"
	nm -D --defined-only "$lib/lib$name.so" | awk '$2 != "A" { sub(/@.*/, "", $3); print $3 }' | LC_ALL=C sort >shown
	sed -n 's/^\t\([a-z]\w*\);.*/\1/p' "$top/cmake/$name.map" | LC_ALL=C sort | diff - shown >difference ||
		fail "cmake/$name.map and what the library shows differ (is TW_API missing?): $(cat difference)"
done

# pkg-config.
flags() {
	PKG_CONFIG_PATH=$lib/pkgconfig pkg-config "$@" || fail "pkg-config"
}
export LD_LIBRARY_PATH=$lib
# shellcheck disable=SC2046 # flags are several words
expect 0 gcc -o count "$top/examples/count_calls.c" $(flags --cflags --libs tracewheel)
expect 0 ./count
objdump -T count | grep -q 'TRACEWHEEL_0[.]1.* tw_hit' || fail "the program does not ask for a version"
# shellcheck disable=SC2046
expect 0 gcc -o read "$top/examples/read_capture.c" $(flags --cflags --libs tracewheel-capture)
expect 0 ./read a.tw
# When recorded, the agent replaces the library.
expect 0 "$tw" record -q -t '_:_' -o e.tw -- ./count
unset LD_LIBRARY_PATH

# find_package: libraries, and tracewheel_instrument(): that program shows every call, and its sleds are compact.
mkdir -p project/made
cp "$top/examples/count_calls.c" "$top/examples/read_capture.c" project
cat >project/CMakeLists.txt <<'CMAKE'
cmake_minimum_required(VERSION 3.20)
project(app C)
find_package(tracewheel 0.1 REQUIRED)
add_executable(app app.c)
tracewheel_instrument(app)
add_executable(count count_calls.c)
target_link_libraries(count PRIVATE tracewheel::tracewheel)
add_executable(read read_capture.c)
target_link_libraries(read PRIVATE tracewheel::capture)
CMAKE
cat >project/app.c <<'C'
__attribute__((noinline)) static int twice(int a) { __asm__ volatile("" : "+r"(a)); return a * 2; }
int main(int argc, char **argv) { (void)argv; return twice(argc) - 2; }
C
expect 0 cmake -S project -B project/made -G Ninja -DCMAKE_PREFIX_PATH="$to" -DCMAKE_BUILD_TYPE=Release
expect 0 cmake --build project/made
expect 0 project/made/count
expect 0 project/made/read a.tw
expect 0 "$tw" compact project/made/app
says " 0 sleds"
expect 0 "$tw" record -q --local -o app.tw -- project/made/app
expect 0 "$tw" info --json app.tw
[ "$(json 'd["events"]')" = 2 ] || fail "main and twice were not both recorded"

# Manual pages and completions know every option of every command.
share=$to/share
completions="$share/bash-completion/completions/tracewheel $share/zsh/site-functions/_tracewheel \
	$share/fish/vendor_completions.d/tracewheel.fish"
commands=$("$tw" --help | sed -n '/^Commands:/,/^$/s/^  \([a-z-]*\) .*/\1/p')
mkdir help pages
for command in $commands; do
	"$tw" "$command" --help >"help/$command" || fail "$command --help"
	cp "$share/man/man1/tracewheel-$command.1" pages || fail "no manual page of $command"
done
cat >explained.py <<'P'
import pathlib, re, sys
man, bash, zsh, fish = (pathlib.Path(name).read_text() for name in sys.argv[1:])
options = 0
for help in sorted(pathlib.Path("help").iterdir()):
    name = help.name
    assert re.search(f"tracewheel.*-{name}", man), f"tracewheel.1 does not name {name}"
    page = pathlib.Path(f"pages/tracewheel-{name}.1").read_text().replace("\\-", "-").replace("\\fB", "")
    in_zsh = "\n".join(re.findall(rf"^\t\t{name}\).*?;;$", zsh, re.M | re.S))
    for option in re.findall(r"^  (?:-[A-Za-z],|   ) --([a-z-]*)", help.read_text(), re.M):
        options += 1
        assert re.search(rf"^(-[A-Za-z]\\fR, )?--{option}\\fR", page, re.M), f"the page of {name} does not explain --{option}"
        assert re.search(rf"^\t{name}\) options='.*--{option}[ ']", bash, re.M), f"bash: {name} --{option}"
        assert re.search(rf"'\*--{option}[=\[]", in_zsh), f"zsh: {name} --{option}"
        assert re.search(rf"from {name}' .*-l {option} ", fish), f"fish: {name} --{option}"
print(options > 100)
P
# shellcheck disable=SC2086 # three names
expect 0 python3 -S explained.py "$share/man/man1/tracewheel.1" $completions
is "$(cat out)" True "so many options"
if command -v groff >/dev/null; then
	expect 0 groff -man -Tutf8 -ww -z pages/*.1
	[ ! -s err ] || fail "groff warns of the manual pages"
fi
grep -q 'cookie' "$share/man/man1/tracewheel-record-erlang.1" || fail "no page of record --erlang"
# shellcheck disable=SC2086
set -- $completions
for shell in bash zsh fish; do
	command -v "$shell" >/dev/null && expect 0 "$shell" -n "$1"
	shift
done
# complete WORD...: what bash offers for the last word.
complete_bash() {
	bash -c 'source "$0"; COMP_WORDS=(tracewheel "$@"); COMP_CWORD=$#; _tracewheel; echo "${COMPREPLY[*]}"' \
		"$share/bash-completion/completions/tracewheel" "$@" 2>/dev/null
}
is "$(complete_bash rep)" report
is "$(complete_bash print --form)" --format
is "$(complete_bash print --format e)" erlang
is "$(complete_bash record --on-full '')" "block drop overwrite"
is "$(complete_bash record -t 'libc:_' --ret)" "--returns --return-to"
is "$(complete_bash report app)" app.tw
touch app.txt
is "$(complete_bash report app)" app.tw "captures come before other files"
is "$(complete_bash functions app.t | tr ' ' '\n' | sort | paste -sd ' ')" "app.tw app.txt" "files of any kind"
case " $(complete_bash detach '' | tr '\n' ' ') " in *" $$ "*) ;; *) fail "bash: no processes" ;; esac
# complete_line INDEX LINE WORD...: the same of a line, which bash has divided into words, at colons too.
complete_line() {
	bash -c 'source "$0"; COMP_CWORD=$1 COMP_LINE=$2; shift 2; COMP_WORDS=("$@"); _tracewheel; echo "${COMPREPLY[*]}"' \
		"$share/bash-completion/completions/tracewheel" "$@" 2>/dev/null
}
printf 'int first_one(int a) { return a * a + 1; }\nint first_two(int a) { return a * a + 2; }\nint main(int c, char **v) { return first_one(c) + first_two(c); }\n' >own.c
gcc -O0 -o own own.c || fail "the compiler"
PATH=$to/bin:$PATH
is "$(complete_line 3 'tracewheel record -t  -- ./own' tracewheel record -t '' -- ./own | tr ' ' '\n' | grep -c '^own:$\|^libc:$')" 2 "modules"
is "$(complete_line 5 'tracewheel record -t own:fi --returns ./own' tracewheel record -t own : fi --returns ./own)" "first_one first_two"
is "$(complete_line 5 'tracewheel functions -t own:first_o ./own' tracewheel functions -t own : first_o ./own)" first_one
is "$(complete_line 5 'tracewheel record -t own:fi' tracewheel record -t own : fi)" "" "no program is known"
is "$(complete_line 6 'tracewheel record -t own:first_one --ret' tracewheel record -t own : first_one --ret)" "--returns --return-to"
sleep 60 &
is "$(complete_line 5 "tracewheel attach -t libc:clock_nanosl $!" tracewheel attach -t libc : clock_nanosl $!)" clock_nanosleep "of a process"
kill $!
# The same in zsh and fish, where they are installed: their own functions say what the line is.
if command -v zsh >/dev/null; then
	cat >play.zsh <<'Z'
_arguments() { : }
compadd() { while [[ $1 != -- ]]; do shift; done; shift; print -r -- ${(M)@:#${PREFIX}*} }
source "$1"
valued='-t --trace -o --output' tracewheel=tracewheel
play() { PREFIX=$1 CURRENT=$2; shift 2; words=("$@"); _tracewheel_functions }
play own:fi 3 record -t own:fi --returns -o x.tw -- ./own
play '' 3 record -t '' ./own
play own:fi 3 record -t own:fi
play own:fi 3 print -t own:fi ./own
Z
	expect 1 zsh -f play.zsh "$share/zsh/site-functions/_tracewheel"
	is "$(sed -n 1p out)" "own:first_one own:first_two" "zsh: functions"
	is "$(sed -n 2p out | tr ' ' '\n' | grep -c '^own$\|^libc$')" 2 "zsh: modules"
	is "$(sed -n '3,$p' out)" "" "zsh: no program is known"
fi
if command -v fish >/dev/null; then
	cat >play.fish <<'F'
source $argv[1] 2>/dev/null
function commandline
    switch "$argv"
        case -opc
            printf '%s\n' $words[1..3]
        case -op
            string match -v '' -- $words
        case '*'
            printf '%s\n' $words[4]
    end
end
function play
    set -g words $argv
    __tracewheel_functions -t --trace -o --output | string match "$words[4]*" | string join ' '
end
play tracewheel record -t own:fi --returns -o x.tw -- ./own
play tracewheel record -t '' ./own
play tracewheel record -t own:fi
F
	expect 1 fish --no-config play.fish "$share/fish/vendor_completions.d/tracewheel.fish"
	is "$(sed -n 1p out)" "own:first_one own:first_two" "fish: functions"
	is "$(sed -n 2p out | tr ' ' '\n' | grep -c '^own:$\|^libc:$')" 2 "fish: modules"
	is "$(sed -n '3,$p' out)" "" "fish: no program is known"
fi
# A name that no command has: commands are offered too, and a folder of the same name then twice.
mkdir folder-of-this-test
is "$(complete_bash record --ring 4M -- folder-of-this)" folder-of-this-test
