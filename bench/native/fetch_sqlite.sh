#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# fetch_sqlite.sh DIR - puts SQLite's amalgamation (sqlite3.c, sqlite3.h) into DIR, out of the npm package that ships it.
set -eu
dir=$1
mkdir -p "$dir"
[ -s "$dir/sqlite3.c" ] && exit 0
if ! command -v npm >/dev/null 2>&1; then
	echo "fetch_sqlite: npm is needed to fetch SQLite's source (apt-get install npm); or put sqlite3.c and sqlite3.h into $dir." >&2
	exit 1
fi
cd "$dir"
if ! npm pack --silent better-sqlite3@12 >package.name; then
	echo "fetch_sqlite: npm could not fetch the package better-sqlite3; put sqlite3.c and sqlite3.h into $dir instead." >&2
	exit 1
fi
tar xzf "$(tail -n 1 package.name)" --strip-components=3 package/deps/sqlite3/sqlite3.c package/deps/sqlite3/sqlite3.h
rm -f package.name ./*.tgz
