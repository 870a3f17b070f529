#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal    `record --erlang` reaches a node whatever its host's name leads to, and says what each address answered where it does not; it
#         shows no secret, and waits for no file that is none; of a node that sees no file of this machine it brings the capture.
# Method  A resolver of the test (ERL_INETRC), in which a name has addresses of both families; nodes that listen at some of them;
#         cookie files that are too long, pipes, or another user's.
build=$1 modules=(attach refuse ../src/tracewheel_attach)
. "$(dirname "$0")/lib.sh"
command -v epmd >/dev/null || { echo "no epmd here: not tested" && exit 77; }
a_home
serve_refusals

# resolve NAME ADDRESS...: an address as Erlang writes it.
resolve() {
	local name=$1
	shift
	echo '{lookup, [file]}.' >inetrc
	printf "{host, {%s}, [\"$name\"]}.\n" "$@" >>inetrc
	export ERL_INETRC=$work/inetrc
}

reached() {
	expect 0 "$tw" record --erlang -q --force --cookie-file cookie -t attach:step --events 10 -o a.tw "$@"
	[ ! -s err ] || fail "not quiet"
}

start_node -setcookie secret
rename_node shop@localhost shortnames '{127,0,0,1}'
six=0,0,0,0,0,0,0,1
# Further below it leads to both, and in other tests to the first alone.
all=("$six 127,0,0,1" "$six" "127,0,0,1 $six" "127,0,0,1")
for addresses in "${all[@]:0:$(rounds 2 4)}"; do
	# shellcheck disable=SC2086
	resolve localhost $addresses
	reached shop@localhost
done
# By the first part of its name alone, whatever the other is; with a cookie file that ends as on other systems.
printf 'secret\r\n' >cookie
reached shop
printf 'secret\n' >cookie
resolve other "$six" 127,0,0,1
refused 125 "'shop@other' does not answer at other, port [0-9]* (127.0.0.1: 'shop@localhost'; .*): 'shop@localhost' is the name of the node there" \
	--cookie-file cookie -t attach -o none.tw shop@other
resolve nowhere 127,0,0,1
refused 125 "the host other has no address" --cookie-file cookie -t attach -o none.tw shop@other
unset ERL_INETRC

# ---- secrets ----

long=$(printf 'SECRET%.0s' {1..60})
# no_secret SENTENCE FILE: refused with the sentence, without the file's text.
no_secret() {
	refused_here 125 "$1" --cookie-file "$2" -t attach -o none.tw shop@localhost
	! grep -q SECRET out err || fail "the file's text is shown"
}
printf '%s' "$long" >long
no_secret "no cookie in $PWD/long: its text has 360 characters, and a cookie 255 at most" long
for _ in {1..20}; do printf '%s' "$long"; done >huge
no_secret "$PWD/huge has 7200 bytes" huge
printf 'SECRET\nSECRET\n' >lines
no_secret "no cookie in $PWD/lines: it has several lines" lines
: >empty
no_secret "no cookie in $PWD/empty: it is empty" empty
mkfifo pipe
no_secret "$PWD/pipe is not a regular file" pipe
no_secret "/dev/zero is not a regular file" /dev/zero
no_secret "$PWD/home is not a regular file" home
refused_here 2 "the name of a node has at most 255 characters, not 360" -t attach -o none.tw "$long"
refused_here 2 "'SECRET.*' is not a flag of erlang:trace/3" -p "$long" --cookie-file cookie -o none.tw shop@localhost
refused_here 2 "is refused: illegal atom" -t "a$long:f" --cookie-file cookie -o none.tw shop@localhost

# What every user of the machine sees of the helper VM; and what it leaves if it dies.
begin --cookie-file cookie --force -o a.tw shop@localhost
helper=$(pgrep -P $recording)
tr '\0' '\n' <"/proc/$helper/cmdline" >seen
tr '\0' '\n' <"/proc/$helper/environ" >>seen
grep -q setcookie seen || fail "not the helper VM: $(cat seen)"
! grep -qw secret seen || fail "the cookie among arguments or environment of the helper VM"
kill -USR1 "$helper"
ended_with 1
says "the helper VM was ended"
[ -z "$(find . -name 'erl_crash*')" ] || fail "a crash dump, with the cookie"

# ---- orders to stop before the trace begins ----

# The node stands still: an order to stop is obeyed, whatever is waited for.
kill -STOP $node
"$tw" record --erlang --cookie-file cookie -t attach -o none.tw shop@localhost >out 2>err </dev/null &
recording=$!
wait_for $recording pgrep -P $recording >/dev/null
kill -TERM $recording
got=0
wait $recording || got=$?
kill -CONT $node
[ $got = 125 ] || [ $got = 143 ] || fail "exit code $got: $(cat err)"
[ ! -e none.tw ] || fail "a capture of nothing"

# ---- nodes that answer at one address, or not to everyone ----

rename_node two@localhost shortnames '{127,0,0,2}'
refused_here 125 "two@localhost' does not answer at localhost, port [0-9]* (127.0.0.1: connection refused.*): it listens at another address" \
	--cookie-file cookie -t attach -o none.tw two@localhost
rename_node shy@localhost shortnames '{127,0,0,1}'
: >shy
wait_until test ! -e shy
refused_here 125 "127.0.0.1: it lets only nodes connect that net_kernel:allow/1 names" --cookie-file cookie -t attach -o none.tw shy@localhost

# A long name, also where this machine has no domain.
rename_node long@127.0.0.1 longnames '{127,0,0,1}'
reached long@127.0.0.1
reached long
kill $node

# Distribution by IPv6, where loopback has it: the name leads to both families.
if grep -q '^0\{31\}1 ' /proc/net/if_inet6 2>/dev/null; then
	resolve localhost 127,0,0,1 $six
	start_node -sname six@localhost -proto_dist inet6_tcp -kernel inet_dist_use_interface "{$six}" -setcookie secret
	reached six@localhost
	[ -z "${TW_TEST_LONG:-}" ] || reached six
	kill $node
	unset ERL_INETRC
fi

# A node that does not see the files of this machine, as on another host or in a container: what it needs is sent, and the capture comes here.
if unshare -rm mount -t tmpfs none "$build" 2>/dev/null; then
	erl_here=$(command -v erl)
	erl() {
		exec unshare -rm bash -c 'mount -t tmpfs none "$0"; exec "$@"' "$build" "$erl_here" "$@"
	}
	mkdir there
	TMPDIR=$PWD/there start_node -sname far@localhost -setcookie secret
	unset -f erl
	expect 0 "$tw" record --erlang --print --cookie-file cookie -t attach:step --events 10 -o far.tw far@localhost
	is "$(grep -c 'call attach:step(' out)" 10 "lines"
	says "'far@localhost' does not see the files of this machine: the capture is made in $PWD/there/tracewheel-"
	expect 0 "$tw" info --json far.tw
	is "$(json 'd["events"], d["complete"]')" "10 True"
	refused 125 "'$PWD/far.tw' exists; --force replaces it" --cookie-file cookie -t attach:step -o far.tw far@localhost
	refused 2 "has no function attach:none" -q --cookie-file cookie -t attach:none -o none.tw far@localhost
	# Snapshots come one by one, under free names.
	"$tw" record --erlang --flight --cookie-file cookie -t attach:step -o far.tw far@localhost >out 2>err </dev/null &
	recording=$!
	wait_for $recording grep -q 'flight recorder of' err
	kill -USR2 $recording
	wait_for $recording grep -q "$PWD/far-2.tw: [0-9]* events*; it was asked for" err
	kill -TERM $recording
	ended_with 0
	expect 0 "$tw" info far-2.tw
	is "$(ls there)" "" "what was sent is removed"
	kill $node
fi

# A node in a network of its own, as of a container, and without epmd: by its process.
if [ "$(id -u)" = 0 ] && unshare -n true 2>/dev/null && command -v ip >/dev/null; then
	erl_here=$(command -v erl)
	erl() {
		exec unshare -n bash -c 'ip link set lo up; exec "$@"' bash "$erl_here" "$@"
	}
	start_node -erl_epmd_port 4370 -sname held@localhost -setcookie secret
	unset -f erl
	expect 0 "$tw" record --erlang -q --force -t attach:step --events 10 -o a.tw "$node"
	expect 0 "$tw" info --json a.tw
	is "$(json 'd["events"], d["complete"]')" "10 True"
	if command -v setpriv >/dev/null; then
		expect 125 setpriv --bounding-set -sys_admin "$tw" record --erlang -t attach:step -o none.tw "$node"
		says "process $node is in another network, as of a container, which this user may not enter"
	fi
	kill $node
fi

# A process may say anything of its home: another user's file is not read.
if [ "$(id -u)" = 0 ]; then
	mkdir stranger
	printf secret >stranger/.erlang.cookie
	chmod 400 stranger/.erlang.cookie
	HOME=$PWD/stranger start_node -sname home@localhost
	expect 0 "$tw" record --erlang -q --force -t attach:step --events 10 -o a.tw "$node"
	chown 65534 stranger/.erlang.cookie
	refused_here 125 "$PWD/stranger/.erlang.cookie belongs to another user than the process" -t attach -o none.tw "$node"
	kill $node
fi
exit 0
