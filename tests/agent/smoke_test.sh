#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Goal    Common programs behave and answer the same with everything hooked.
# Method  Those that are installed, with work for threads, plugins, children and temporary files.
. "$(dirname "$0")/lib.sh"

everything="pattern _:_"
same "$everything" ls -l "$build/CMakeFiles"
expect_some "libc"
same "$everything" sh -c 'for i in 1 2 3; do echo $((i * i)); done | sort -r; exit 5'
same "$everything" sort -R --random-source=/dev/zero /etc/passwd

if command -v sqlite3 >/dev/null; then
	same "$everything" sqlite3 :memory: \
		"with recursive n(i) as (select 1 union all select i + 1 from n where i < 3000)
		 select sum(i), count(*), max(printf('%04.1f', i / 7.0)), group_concat(i % 3) from n where i % 7;"
	expect_some "sqlite3 libsqlite3:sqlite3_step"
	same "pattern libsqlite3:sqlite3_*/_" sqlite3 :memory: "select 1; select nothing;"
	expect 0 "libc:"
fi

python=/usr/bin/python3
if [ -x $python ]; then
	same "$everything" $python -c '
import ctypes, json, subprocess, sys, tempfile, threading, zlib
threads = [threading.Thread(target=lambda: json.dumps(list(range(2000)))) for _ in range(8)]
[t.start() for t in threads]; [t.join() for t in threads]
print(subprocess.run(["echo", "child"], capture_output=True).stdout, ctypes.CDLL(None).abs(-3))
with tempfile.TemporaryFile() as f:
    f.write(zlib.compress(b"x" * 100000)); print(f.tell())
sys.exit(4)'
	expect_some "libpython|python3"
fi

if command -v git >/dev/null; then
	export GIT_AUTHOR_DATE=@1700000000 GIT_COMMITTER_DATE=@1700000000 GIT_CONFIG_NOSYSTEM=1 HOME="$folder"
	same "$everything" sh -c 'r=$(mktemp -d) && cd "$r" && git init -q -b main && echo x >f && git add f &&
		git -c user.name=a -c user.email=b commit -qm c && git log --format=%H%an && git gc -q && git fsck;
		rm -rf "$r"'
	traced "$everything" -f -- git --version
	[ $status = 0 ] || fail "git, followed: status $status"
fi
finish
