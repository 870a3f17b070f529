#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# erlang27.sh FOLDER - fetches Debian 13's Erlang 27 by apt into FOLDER, beside the system: nothing is installed. FOLDER/bin/erl and
# erlc run it, with the C library that it was built for.
set -eu
mkdir -p "$1"
folder=$(cd "$1" && pwd)
[ ! -x "$folder/bin/erl" ] || exit 0
apt=$folder/apt
mkdir -p "$apt"/{lists,archives}/partial "$apt/debs" "$folder/root" "$folder/bin"
: >"$apt/status"
echo 'deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://deb.debian.org/debian trixie main' >"$apt/sources.list"
options=(-q -o "Dir::Etc::sourcelist=$apt/sources.list" -o Dir::Etc::sourceparts=- -o "Dir::State::lists=$apt/lists"
	-o "Dir::State::status=$apt/status" -o "Dir::Cache=$apt" -o "APT::Sandbox::User=$(id -un)")
apt-get "${options[@]}" update >"$apt/log"
(cd "$apt/debs" && apt-get "${options[@]}" download erlang-base libc6 libstdc++6 libgcc-s1 libtinfo6 zlib1g libsystemd0 libcap2 libzstd1 \
	>>"$apt/log")
for package in "$apt"/debs/*.deb; do
	dpkg-deb -x "$package" "$folder/root"
done
rm -rf "$apt/lists" "$apt/debs" "$apt"/*.bin

erlang=$folder/root/usr/lib/erlang
binaries=$(echo "$erlang"/erts-*/bin)
libraries=$folder/root/usr/lib/x86_64-linux-gnu
loader=$libraries/ld-linux-x86-64.so.2
# Each program of it is started by its own loader.
for program in beam.smp erlexec erl_child_setup inet_gethost erlc epmd; do
	mv "$binaries/$program" "$binaries/$program.elf"
	cat >"$binaries/$program" <<-SH
		#!/bin/sh
		exec $loader --library-path $libraries --argv0 $program $binaries/$program.elf "\$@"
	SH
	chmod 755 "$binaries/$program"
done
cat >"$folder/bin/erl" <<SH
#!/bin/sh
export ROOTDIR=$erlang BINDIR=$binaries EMU=beam PROGNAME=$folder/bin/erl
exec $binaries/erlexec "\$@"
SH
cat >"$folder/bin/erlc" <<SH
#!/bin/sh
export ERLC_EMULATOR=$folder/bin/erl
exec $binaries/erlc "\$@"
SH
chmod 755 "$folder"/bin/*
