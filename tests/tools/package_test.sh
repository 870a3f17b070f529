#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal    The Debian packages hold what is installed, each file in one of them, need each other as they must, and work.
# Method  Components are installed one by one, and compared with the whole, file by file. The long form packs them, reads what each package
#         needs, and unpacks them into a folder, where the command records; `./run fresh package` installs them.
build=$1
. "$(dirname "$0")/lib.sh"
command -v dpkg-shlibdeps >/dev/null || { echo "no dpkg-shlibdeps here: not tested" && exit 77; }
[ -e "$build/CPackConfig.cmake" ] || { echo "the build has no packages (TW_PACKAGE): not tested" && exit 77; }

# Each installed file is in one component.
DESTDIR=$work/installed expect 0 cmake --install "$build"
# shellcheck disable=SC2013 # words
for component in $(sed -n 's/^set(CPACK_COMPONENTS_ALL "\(.*\)")/\1/p' "$build/CPackConfig.cmake" | tr ';' ' '); do
	DESTDIR=$work/component expect 0 cmake --install "$build" --component "$component"
	(cd component && find . ! -type d) | sed 's/^\.//'
	rm -rf component
done | LC_ALL=C sort >files
[ -z "$(uniq -d files)" ] || fail "in two packages: $(uniq -d files)"
(cd installed && find . ! -type d | sed 's/^\.//') | LC_ALL=C sort | diff - files >difference || fail "installed and packed: $(cat difference)"
expect 0 python3 "$(dirname "$common")/check_installed_links.py" "$(dirname "$(find installed -path '*/doc/tracewheel/README.md')")"
[ -n "${TW_TEST_LONG:-}" ] || exit 0

expect 0 cpack --config "$build/CPackConfig.cmake" -B packed
mkdir together
for deb in packed/*.deb; do
	dpkg-deb -x "$deb" together
	dpkg-deb -c "$deb" | awk '$1 !~ /^d/ { sub(/^\./, "", $6); print $6 }'
done | LC_ALL=C sort | diff files - >difference || fail "installed and packed: $(cat difference)"

field() {
	dpkg-deb -f packed/"$1"_*.deb "$2"
}
# name, field, what must be there
while read -r name field word; do
	field "$name" "$field" | grep -qF -- "$word" || fail "$name: no '$word' in $field: $(field "$name" "$field")"
done <<'LIST'
tracewheel Depends libdw1
tracewheel Depends libzydis4.0
tracewheel Architecture amd64
libtracewheel0 Depends libgmp10
libtracewheel-dev Depends libtracewheel0 (=
libtracewheel-dev Depends tracewheel (=
tracewheel-doc Architecture all
LIST
for deb in packed/*.deb; do
	name=${deb#packed/} name=${name%%_*}
	found=$(find together -path "*/doc/$name/copyright")
	[ -n "$found" ] && [ -e "${found%copyright}changelog.Debian.gz" ] || fail "$name: no copyright or changelog"
done
# Nothing but programs and libraries of the system and of these packages is needed.
! dpkg-deb -f packed/tracewheel_*.deb Depends | grep -q libtracewheel0 || fail "the command needs no library of ours"

tw=$(find together -path '*/bin/tracewheel')
expect 0 "$tw" record -q -o a.tw -- ls
expect 0 "$tw" info --json a.tw
[ "$(json 'd["events"]')" -gt 10 ] || fail "the packed command recorded nothing"
! readelf -S "$tw" | grep -q debug_info || fail "the command has debug information"
exit 0
