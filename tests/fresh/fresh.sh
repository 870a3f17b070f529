#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# fresh.sh - README's commands on newly made Debian 12 systems: ./run fresh --help
#
# Each machine is a folder with a minimal Debian, made with this machine's package sources, and a clone of what is committed. machine.sh
# runs it in name spaces of its own for processes, mounts, the host's name and IPC, so that nothing of it outlives it. The network is
# this machine's, since packages come through it.
set -u
here=$(realpath "$(dirname "$0")")
top=$(realpath "$here/../..")
release=bookworm
need_mib=8000

usage() {
	cat <<-'USAGE'
		usage: ./run fresh [demo|install|package|test]... [--form FORM]... [--shm SIZE] [--keep]
		       ./run fresh --enter FOLDER

		Makes a minimal Debian 12 for each form and command, and runs README's commands there: all four in all forms
		when none is named. The logs are build/fresh/FORM-COMMAND.log. Needs root.

		  --form FORM     root        as root; /dev/shm as large as on a machine
		                  user        as an ordinary user with sudo
		                  container   as root, with a /dev/shm of 64 MiB
		  --shm SIZE      another size of /dev/shm, such as 16M
		  --keep          keeps the folder of a machine where a command failed
		  --enter FOLDER  opens a shell in such a folder
	USAGE
}

bad() {
	echo "run fresh: $*" >&2
	exit 2
}

refuse() {
	echo "run fresh: $*" >&2
	exit 1
}

commands=() forms=() shm='' keep=0 enter=''
read_options() {
	while [ $# -gt 0 ]; do
		case $1 in
		demo | install | package | test) commands+=("$1") ;;
		--form | --shm | --enter)
			[ $# -ge 2 ] || bad "$1 needs a value; --help shows it."
			case $1:$2 in
			--form:root | --form:user | --form:container) forms+=("$2") ;;
			--form:*) bad "there is no form '$2': root, user or container." ;;
			--shm:*[0-9][KMG%]) shm=$2 ;;
			--shm:*) bad "'$2' is no size: a number with K, M, G or %." ;;
			--enter:*) enter=$2 ;;
			esac
			shift
			;;
		--keep) keep=1 ;;
		-h | --help) usage && exit 0 ;;
		*) bad "there is no '$1': demo, install, package, test, or an option that --help shows." ;;
		esac
		shift
	done
	[ -z "$shm" ] || [[ $shm =~ ^[0-9]+[KMG%]$ ]] || bad "'$shm' is no size: a number with K, M, G or %."
	[ "${#commands[@]}" -gt 0 ] || commands=(demo install package test)
	[ "${#forms[@]}" -gt 0 ] || forms=(root user container)
}

# The mirror of this machine's apt that has the release: the first one.
find_mirror() {
	# shellcheck disable=SC2016 # apt's own variables
	mirror=$(apt-get indextargets --format '$(REPO_URI) $(RELEASE) $(COMPONENT)' 2>/dev/null |
		awk -v release=$release '$2 == release && $3 == "main" { print $1; exit }')
	[ -n "$mirror" ] || refuse "apt on this machine has no source of Debian 12 ($release main), from which a machine could be made."
}

make_folder() {
	local free options
	folder=$(mktemp -d "${TMPDIR:-/var/tmp}/tracewheel-fresh.XXXXXX") || exit 1
	chmod 755 "$folder"
	free=$(df -m --output=avail "$folder" | tail -n 1)
	[ "$free" -ge $need_mib ] || refuse "$((free)) MiB are free in ${folder%/*}, and $need_mib are needed; TMPDIR may name another folder."
	options=$(findmnt -n -o OPTIONS -T "$folder")
	case ,$options, in
	*,noexec,* | *,nosuid,* | *,nodev,*) refuse "${folder%/*} is mounted with noexec, nosuid or nodev; TMPDIR may name another folder." ;;
	esac
}

# isolated COMMAND...: in name spaces of its own, without a terminal; $running is what ends them all. The signals that a shell
# ignores for background processes have their effect again there.
running=
isolated() {
	local status
	env --default-signal=INT,QUIT setsid setpriv --pdeathsig KILL \
		unshare --mount --mount-proc --pid --uts --ipc --fork --kill-child "$@" </dev/null &
	running=$!
	wait "$running"
	status=$?
	running=
	return $status
}

# The first process of the name spaces takes all others with it, and unshare ends when none is left.
clean_up() {
	trap '' INT TERM HUP
	if [ -n "$running" ]; then
		# shellcheck disable=SC2046 # no word when there is no process yet
		while [ -d "/proc/$running" ] && ! kill -KILL $(cat "/proc/$running/task/$running/children"); do
			sleep 0.1
		done 2>/dev/null
		wait "$running" 2>/dev/null
	fi
	[ -n "$kept" ] || rm -rf --one-file-system "$folder"
}

# The settings of apt that lead to the packages: sources, keys, proxies and checks.
copy_sources() {
	local to=$1/etc/apt name key
	rm -rf "$to/sources.list" "$to/sources.list.d"
	for name in sources.list sources.list.d trusted.gpg trusted.gpg.d keyrings auth.conf auth.conf.d; do
		[ ! -e "/etc/apt/$name" ] || cp -a "/etc/apt/$name" "$to"
	done
	apt-config dump | grep -E '^Acquire::(http|https|ftp|Check-|Retries|ForceIPv)' >"$to/apt.conf.d/90machine"
	for name in http https; do
		key=${name}_proxy
		[ -z "${!key:-}" ] || echo "Acquire::$name::Proxy \"${!key}\";"
	done >>"$to/apt.conf.d/90machine"
	# Keys that a source names by their path.
	grep -hoE '/[^] ,]+\.(gpg|asc|pgp)' -r "$to/sources.list" "$to/sources.list.d" 2>/dev/null | sort -u | while read -r key; do
		if [ -e "$key" ] && [ ! -e "$1$key" ]; then
			mkdir -p "$1${key%/*}" && cp -L "$key" "$1$key"
		fi
	done
}

make_debian() {
	local debian=$folder/debian
	echo "== a minimal Debian 12 from this machine's sources (log: build/fresh/debian.log)"
	isolated debootstrap --variant=minbase $release "$debian" "$mirror" >"$logs/debian.log" 2>&1 ||
		{ tail -n 20 "$logs/debian.log" && refuse "debootstrap failed."; }
	copy_sources "$debian"
	cp -L /etc/resolv.conf "$debian/etc/resolv.conf"
	rm -f "$debian"/var/cache/apt/archives/*.deb
	git clone --quiet --no-hardlinks "$top" "$folder/clone" || refuse "the tree cannot be cloned."
	[ -z "$(git -C "$top" status --porcelain)" ] || echo "   changes that are not committed are not in it"
	mkdir -p "$folder/archives/partial"
}

# closing_line LOG: ctest's sum, behind which it lists tests that were skipped; else the last line.
closing_line() {
	grep -aE '^[0-9]+% tests passed' "$1" | tail -n 1 | grep . || tail -n 1 "$1"
}

# play FORM COMMAND: on a machine of its own.
play() {
	local form=$1 command=$2 log=$logs/$1-$2.log machine=$folder/$1-$2 started=$SECONDS status=0 size=$shm
	printf '   %-10s %-8s (log: build/fresh/%s) ' "$form" "$command" "${log##*/}"
	[ -n "$size" ] || [ "$form" != container ] || size=64M
	if ! cp -a "$folder/debian" "$machine" || ! cp -a "$folder/clone" "$machine/root/tracewheel"; then
		refuse "no copy of the system can be made."
	fi
	isolated "$here/machine.sh" "$machine" "$folder/archives" "$form" "$size" "$command" >"$log" 2>&1 || status=$?
	if [ $status = 0 ]; then
		echo "passed: $(closing_line "$log"), $(((SECONDS - started) / 60)) min"
	else
		echo "FAILED with exit code $status, $(((SECONDS - started) / 60)) min:"
		tail -n 60 "$log"
		failed=$((failed + 1))
		if [ $keep = 1 ]; then
			kept=1
			echo "   kept: ./run fresh --enter $machine"
			return
		fi
	fi
	rm -rf --one-file-system "$machine"
}

main() {
	local form command
	read_options "$@"
	[ "$(id -u)" = 0 ] || refuse "only root can make a machine: sudo ./run fresh"
	if [ -n "$enter" ]; then
		[ -x "$enter/usr/bin/bash" ] || bad "'$enter' is no folder with a system."
		exec unshare --mount --pid --uts --ipc --fork --kill-child "$here/machine.sh" "$(realpath "$enter")" '' enter "$shm" bash
	fi
	logs=$top/build/fresh failed=0 kept='' folder=''
	find_mirror
	trap clean_up EXIT
	trap 'exit 130' INT
	trap 'exit 143' TERM HUP
	make_folder
	mkdir -p "$logs"
	make_debian
	echo "== README's commands, each on a machine of its own: ${commands[*]}"
	for command in "${commands[@]}"; do
		for form in "${forms[@]}"; do
			play "$form" "$command"
		done
	done
	[ -z "$kept" ] || rm -rf --one-file-system "$folder/debian" "$folder/clone" "$folder/archives"
	echo
	echo "$((${#commands[@]} * ${#forms[@]} - failed)) passed, $failed failed"
	[ $failed = 0 ]
}

main "$@"
