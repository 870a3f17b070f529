#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Goal    The preloaded library can be loaded anywhere, also late, by dlopen: its thread-local memory is small and fits the
#         reserve that libc keeps for such libraries, and it needs no library that adds more of it.
# Method  Its own headers; a python3 that opens it at run time, on its first thread and on another one, and beside
#         libraries that have used up some of that reserve.
. "$(dirname "$0")/lib.sh"
agent=$(realpath "$agent")

# Bytes and alignment of the TLS segment.
set -- $(readelf -lW "$agent" | awk '$1 == "TLS" { print $6, $NF }')
[ $# = 2 ] || fail "no thread-local memory: this test knows too little"
[ $(($1)) -le 256 ] && [ $(($2)) -le 64 ] || fail "thread-local memory: $(($1)) bytes, aligned to $(($2))"

readelf -dW "$agent" | grep NEEDED | grep -vE 'libc\.so|libm\.so|libgmp\.so|ld-linux' && fail "the library needs others"

command -v python3 >/dev/null || { echo "no python3: the library is not opened late" && finish; }
cat >"$folder/late.py" <<'EOT'
import ctypes, sys, threading
def load():
    ctypes.CDLL(sys.argv[1])
    print("loaded")
worker = threading.Thread(target=load)
worker.start()
worker.join()
load()
EOT
for preload in "" libgomp.so.1; do
	LD_PRELOAD=$preload timeout 60 python3 "$folder/late.py" "$agent" >"$folder/out" 2>"$folder/err"
	[ "$(grep -c loaded "$folder/out")" = 2 ] || fail "python3 cannot open it late: $(tail -1 "$folder/err")"
done
finish
