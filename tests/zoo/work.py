# SPDX-License-Identifier: Apache-2.0
"""The work of python3 in the zoo: threads, subprocesses by vfork, a pool of processes, signals, extension modules."""
import ctypes
import hashlib
import json
import multiprocessing
import os
import signal
import sqlite3
import subprocess
import sys
import threading
import zlib


# In the short form of the zoo, less of the same.
IS_LONG = bool(os.environ.get("ZOO_LONG"))


def square(n):
    return n * n


def run_many(failed):
    for _ in range(12 if IS_LONG else 1):
        if subprocess.run(["/bin/echo", "x"], stdout=subprocess.DEVNULL, check=False).returncode != 0:
            failed.append(1)


def main():
    failed = []
    threads = [threading.Thread(target=run_many, args=(failed,)) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print("failed", len(failed))
    with multiprocessing.get_context("fork").Pool(3) as pool:
        print(sum(pool.map(square, range(1000))))
    base = sqlite3.connect(":memory:")
    base.execute("create table t(a)")
    base.executemany("insert into t values(?)", [(i,) for i in range(2000 if IS_LONG else 200)])
    print(base.execute("select sum(a) from t").fetchone()[0])
    print(hashlib.sha256(zlib.compress(json.dumps(list(range(5000 if IS_LONG else 500))).encode())).hexdigest()[:8] != "")
    print(ctypes.CDLL("libm.so.6").abs(-4))
    caught = []
    signal.signal(signal.SIGALRM, lambda *_: caught.append(1))
    signal.setitimer(signal.ITIMER_REAL, 0.01, 0.01)
    while len(caught) < (20 if IS_LONG else 5):
        sum(range(1000))
    signal.setitimer(signal.ITIMER_REAL, 0)
    child = os.fork()
    if child == 0:
        os._exit(8)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    sys.exit(3)


main()
