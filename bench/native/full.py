#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""full.py BUILD [--rounds N] [--busy N] [--only NAME] - what a first recording loses and costs, by the policy of full rings.

Question: `record -- COMMAND` without options (or with -t PATTERN), of programs that nobody here wrote: with `--on-full drop` and with `block` (the default),
how many events are lost, and what do processor and wall time become? How do the latencies of servers change?
Method: both ways by turns, beside processes that keep all processors busy; medians, and the least and most. Each run asserts that the
command's output is that of the plain run, and that something was recorded.
"""
import argparse
import json
import os
import resource
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time

WORK_SQL = """CREATE TABLE trip (id INTEGER PRIMARY KEY, city TEXT, km INTEGER);
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000)
INSERT INTO trip SELECT i, 'city ' || (i * 7919 % 500), i * 104729 % 1000 FROM n;
CREATE INDEX trip_city ON trip (city);
SELECT city, count(*), sum(km) FROM trip GROUP BY city ORDER BY sum(km) DESC LIMIT 3;
"""
SCRIPT = "import json, re; print(sum(len(json.dumps({'n': i, 't': [i] * 5})) for i in range(20000)))"
PROGRAM_C = "#include <stdio.h>\n" + "".join("int f%d(int x) { return printf(\"%%d\", x * %d); }\n" % (i, i) for i in range(400))
JAVA = 'public class Full { public static void main(String[] a) { long s = 0; for (int i = 0; i < 300000; i++) s += ("n" + i).hashCode(); System.out.println(s); } }'


def commands(folder):
    """{name: (command, standard input)} of those that are installed."""
    with open(os.path.join(folder, "full.c"), "w", encoding="ascii") as file:
        file.write(PROGRAM_C)
    with open(os.path.join(folder, "Full.java"), "w", encoding="ascii") as file:
        file.write(JAVA)
    repository = os.path.join(folder, "repository")
    subprocess.run("git init -q %s && cd %s && git config user.email a@b && git config user.name a && for i in $(seq 60); do echo $i >>f && git add f "
                   "&& git commit -qm $i; done" % (repository, repository), shell=True, check=True)
    every = {
        "sqlite3": (["sqlite3", ":memory:"], WORK_SQL),
        "python3": (["python3", "-c", SCRIPT], ""),
        "node": (["node", "-e", "let s = 0; for (let i = 0; i < 2e5; i++) s += JSON.stringify({i}).length; console.log(s)"], ""),
        "gcc": (["gcc", "-O1", "-S", "-o", "-", os.path.join(folder, "full.c")], ""),
        "git": (["git", "-C", repository, "log", "--stat"], ""),
        "java": (["java", "-Xshare:auto", os.path.join(folder, "Full.java")], ""),
    }
    return {name: row for name, row in every.items() if shutil.which(row[0][0])}


def timed(command, text, folder):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.monotonic()
    done = subprocess.run(command, input=text.encode(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=folder, check=False)
    wall = time.monotonic() - start
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        sys.exit("%s ended with %d: %s" % (" ".join(command), done.returncode, done.stderr.decode(errors="replace")[:500]))
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, done.stdout


def info_of(tw, capture):
    done = subprocess.run([tw, "info", "--json", capture], stdout=subprocess.PIPE, check=False)
    info = json.loads(done.stdout)
    return info["events"], sum(info["lost"].values()), info["account"]["waits"]["seconds"] if "waits" in info["account"] else 0


def spread(values):
    return "%8.3f (%.3f-%.3f)" % (statistics.median(values), min(values), max(values))


def measure(tw, name, command, text, folder, options):
    capture = os.path.join(folder, "full.tw")
    _, _, expected = timed(command, text, folder)
    rows = {"plain": [], "drop": [], "block": []}
    lost = {"drop": [], "block": []}
    events = {"drop": 0, "block": 0}
    chosen = ["-t", options.pattern] if options.pattern else []
    for _ in range(options.rounds):
        rows["plain"].append(timed(command, text, folder)[:2])
        for policy in ("drop", "block"):
            wall, cpu, output = timed([tw, "record", "-q", "--force", "--on-full", policy, "-o", capture, *chosen, "--", *command], text, folder)
            if output != expected:
                sys.exit("%s recorded with %s has other output" % (name, policy))
            events[policy], gone, _ = info_of(tw, capture)
            if not events[policy]:
                sys.exit("%s: nothing was recorded" % name)
            rows[policy].append((wall, cpu))
            lost[policy].append(gone)
    for policy, times in rows.items():
        print("%-9s%-7s wall %s s  cpu %s s" % (name, policy, spread([w for w, _ in times]), spread([c for _, c in times])), end="")
        if policy != "plain":
            print("  %11s events, lost %s (most %s), in %d of %d runs" % (
                format(events[policy], ","), format(int(statistics.median(lost[policy])), ","), format(max(lost[policy]), ","),
                sum(n > 0 for n in lost[policy]), options.rounds), end="")
        print()
    wall, cpu = (statistics.median(b[i] / d[i] for b, d in zip(rows["block"], rows["drop"])) for i in (0, 1))
    print("%-9sblock / drop: wall x %.2f, cpu x %.2f" % (name, wall, cpu), flush=True)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def latencies(port, request, answer_end, count):
    """Milliseconds of each of so many requests over one connection."""
    times = []
    with socket.create_connection(("127.0.0.1", port)) as client:
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for _ in range(count):
            start = time.monotonic()
            client.sendall(request)
            answer = b""
            while not answer.endswith(answer_end):
                more = client.recv(65536)
                if not more:
                    sys.exit("the server has closed the connection")
                answer += more
            times.append((time.monotonic() - start) * 1e3)
    return times


def wait_for(port):
    for _ in range(600):
        try:
            socket.create_connection(("127.0.0.1", port)).close()
            return
        except OSError:
            time.sleep(0.05)
    sys.exit("no server came up")


def serve(tw, name, folder, rounds, requests=3000):
    """p50 and p99 of a server's answers: plain, drop, block."""
    rows = {"plain": [], "drop": [], "block": []}
    for _ in range(rounds):
        for policy, all_times in rows.items():
            port = free_port()
            if name == "redis":
                command = ["redis-server", "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", folder]
                request, end = b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1\r\nv\r\n", b"\r\n"
            else:
                conf = os.path.join(folder, "nginx.conf")
                with open(conf, "w", encoding="ascii") as file:
                    file.write("daemon off; master_process off; pid %s/pid; error_log %s/error; events {} http { access_log off; keepalive_requests 1000000; "
                               "server { listen 127.0.0.1:%d; location / { return 200 'hello'; } } }" % (folder, folder, port))
                command = ["nginx", "-e", os.path.join(folder, "error"), "-c", conf, "-p", folder]
                request, end = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", b"hello"
            if policy != "plain":
                command = [tw, "record", "-q", "--force", "--on-full", policy, "-o", os.path.join(folder, "full.tw"), "--", *command]
            server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            try:
                wait_for(port)
                latencies(port, request, end, 200)
                all_times.append(latencies(port, request, end, requests))
            finally:
                server.terminate()
                server.wait()
    for policy, runs in rows.items():
        p50, p99 = ([statistics.quantiles(run, n=100)[at] for run in runs] for at in (49, 98))
        print("%-9s%-7s ms an answer: p50 %s  p99 %s" % (name, policy, spread(p50), spread(p99)), flush=True)


def main():
    parser = argparse.ArgumentParser(description="What a first recording loses and costs, by the policy of full rings.")
    parser.add_argument("build")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--busy", type=int, default=4, help="processes beside that keep the processors busy")
    parser.add_argument("--pattern", help="what is recorded, as '_:_'; by default what record chooses by itself")
    parser.add_argument("--only", help="one program or server")
    options = parser.parse_args()
    tw = os.path.realpath(os.path.join(options.build, "bin", "tracewheel"))
    folder = tempfile.mkdtemp(prefix="tracewheel-bench.")
    busy = [subprocess.Popen(["sh", "-c", "while :; do :; done"]) for _ in range(options.busy)]
    try:
        print("%d rounds by turns beside %d busy processes on %d processors: median (least-most)" % (options.rounds, options.busy, os.cpu_count()))
        for name, (command, text) in commands(folder).items():
            if options.only in (None, name):
                measure(tw, name, command, text, folder, options)
        for name, program in (("redis", "redis-server"), ("nginx", "nginx")):
            if options.only in (None, name) and shutil.which(program):
                serve(tw, name, folder, max(3, options.rounds // 4))
    finally:
        for process in busy:
            process.kill()
            process.wait()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
