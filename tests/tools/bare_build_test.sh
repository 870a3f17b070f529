#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal    Without the packages for tests, benchmarks, SQL and Python, everything that is installed can be configured and built; a
#         request for tests without them, or a missing required package, is reported by name.
# Method  The project is configured as if they were missing; its build rules are read, not run.
build=$1
here=$(realpath "$(dirname "$0")")
top=$(realpath "$here/../..")
. "$here/lib.sh"

# An empty result stands for a search that found nothing: CMake does not search again.
none="-DTW_CMOCKA_LIBRARY= -DTW_BENCHMARK_LIBRARY= -DTW_SQLITE_LIBRARY= -DTW_CURL_LIBRARY= -DTW_PYTHON_INCLUDE= -DCMAKE_DISABLE_FIND_PACKAGE_Python3=ON"
# shellcheck disable=SC2086
expect 0 cmake -S "$top" -B made -G Ninja $none
shows "tests: not built, libcmocka-dev is not installed"
shows "benchmarks: not built, libbenchmark-dev is not installed"
shows "tracewheel sql: not built, libsqlite3-dev is not installed"
shows "tracewheel ship and fleet: not built, libcurl4-openssl-dev, libjansson-dev, libssl-dev or libzstd-dev is not installed"
shows "import tracewheel: not built, python3-dev is not installed"
ninja -C made -t targets all >targets
grep -q '^product: phony' targets || fail "no target product"
grep -E '_test|cmocka|tracewheel-bench|tracewheel-sql|tracewheel-ship|tracewheel-fleet|tracewheel-python' targets && fail "tests or benchmarks would be built"
expect 0 ninja -C made -n product
# The build consists of the installed files; here with those of all packages that there are.
expect 0 cmake -S "$top" -B made -G Ninja -DTW_SQLITE_LIBRARY="$(sed -n 's/^TW_SQLITE_LIBRARY:[A-Z]*=//p' "$build/CMakeCache.txt")" \
	-DTW_CURL_LIBRARY="$(sed -n 's/^TW_CURL_LIBRARY:[A-Z]*=//p' "$build/CMakeCache.txt")" \
	-DTW_PYTHON_INCLUDE="$(sed -n 's/^TW_PYTHON_INCLUDE:[A-Z]*=//p' "$build/CMakeCache.txt")"
sed -n 's/^ *file(INSTALL .*FILES "\(.*\)".*/\1/p' made/cmake_install.cmake made/*/cmake_install.cmake | sed 's/" "/\n/g' |
	sed -n "s|^$work/made/||p" >installed
# `inputs` leaves out what the target itself names, and older versions of ninja do not have it.
ninja -C made -t inputs product >inputs 2>/dev/null || ninja -C made -n -v product >inputs
ninja -C made -t query product >>inputs
grep -q . installed || fail "nothing is installed"
while read -r file; do
	case $file in
	*.cmake | *.pc | manual/*) continue ;;
	esac
	grep -q -- "${file%.[0-9]*.[0-9]*.[0-9]*}" inputs || fail "$file is installed, and not built by the target product"
done <installed

# shellcheck disable=SC2086
expect 1 cmake -S "$top" -B asked -G Ninja $none -DTW_TESTS=ON
says "TW_TESTS is ON, and libcmocka-dev is not installed"
expect 1 cmake -S "$top" -B poor -G Ninja -DTW_LIBRARY_lz4=
says "lz4 not found: apt-get install liblz4-dev"
