#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What an attach to a server takes, what its clients notice, and a snapshot.

    ./run bench native attach [ROUNDS] [OTHER]

Question  How long is it from the start of `tracewheel attach` to "attached", and to the first recorded call?  How many requests less
          does redis-server answer while functions are in flight (`--flight`), or counted by `top`: a list of 30, its commands, all, those
          that are called most?  How long does a snapshot of eight threads with 64 MiB each take, while they go on at full speed
          and while they rest?  OTHER: the command of another tree, which attaches by turns.
Method    Debian's redis-server on a free port of the loopback, with the agent asleep or without it; redis-benchmark with 20
          connections that pipeline 8 requests.  All ways by turns; a first turn, which fills the cache of plans, is not counted.
          Each capture must have events.  How long threads stand still is measured by ./run bench hold.
Unit      Milliseconds of the clock, requests a second, and microseconds of redis' processor time a request: medians over the
          rounds, with the least and the most.
"""
import json
import os
import re
import resource
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.join(ROOT, "build/release")
TW = os.path.join(BUILD, "bin/tracewheel")
AGENT = os.path.join(BUILD, "lib/libtracewheel-agent.so")
REQUESTS = 150000
# Functions through which each request of set and get goes, and others of redis' loop.
FUNCTIONS = """readQueryFromClient processInputBuffer processMultibulkBuffer processCommandAndResetClient processCommand call setCommand
    getCommand setGenericCommand getGenericCommand lookupKey lookupKeyReadWithFlags lookupKeyWriteWithFlags dbAdd dbOverwrite setKey
    addReply addReplyBulk writeToClient handleClientsWithPendingWrites beforeSleep afterSleep serverCron clientsCron databasesCron
    acceptTcpHandler createClient freeClient resetClient commandProcessed""".split()
MOST = 100


def show(what, numbers, unit):
    print(f"{what:66} {statistics.median(numbers):9.2f} ({min(numbers):.2f} to {max(numbers):.2f}) {unit}", flush=True)


class Redis:
    def __init__(self, folder, has_agent):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        environment = dict(os.environ, LD_PRELOAD=AGENT) if has_agent else os.environ
        self.process = subprocess.Popen(["redis-server", "--port", str(self.port), "--bind", "127.0.0.1", "--save", "", "--dir", folder],
                                        env=environment, stdout=subprocess.DEVNULL)
        self.pid = str(self.process.pid)
        for _ in range(200):
            time.sleep(0.02)
            if subprocess.run(["redis-cli", "-p", str(self.port), "ping"], capture_output=True).stdout == b"PONG\n":
                return
        raise SystemExit("redis-server does not answer")

    def benchmark(self, requests, **options):
        return subprocess.Popen(["redis-benchmark", "-p", str(self.port), "-c", "20", "-P", "8", "-t", "set,get", "-n", str(requests),
                                 "-q", "--csv"], text=True, **options)

    def cpu_ns(self):
        with open(f"/proc/{self.pid}/task/{self.pid}/schedstat") as file:
            return int(file.read().split()[0])

    def end(self):
        self.process.kill()
        self.process.wait()


def attached_ms(command, redis, patterns, capture):
    """From the start of the command to its line."""
    begun = time.perf_counter()
    process = subprocess.Popen([command, "attach", "--force", "-o", capture, "--time", "30ms", "--returns", "-t", patterns, redis.pid],
                               stderr=subprocess.PIPE, text=True)
    line = process.stderr.readline()
    passed = (time.perf_counter() - begun) * 1e3
    rest = process.stderr.read()
    assert process.wait() == 0 and "attached to" in line, line + rest
    return passed


def asleep(commands, folder, rounds, patterns):
    redis = Redis(folder, True)
    results = {name: [] for name in commands}
    for turn in range(rounds + 1):
        for name, command in commands.items():
            result = attached_ms(command, redis, patterns, folder + "/a.tw")
            if turn:
                results[name].append(result)
    redis.end()
    for name, numbers in results.items():
        show(f"attached, agent asleep, {patterns}{name}", numbers, "ms")


def cold(commands, folder, rounds, patterns):
    for name, command in commands.items():
        numbers = []
        for turn in range(rounds + 1):
            redis = Redis(folder, False)
            result = attached_ms(command, redis, patterns, folder + "/c.tw")
            redis.end()
            if turn:
                numbers.append(result)
        show(f"attached, program without the agent, {patterns}{name}", numbers, "ms")


def first_call(folder, rounds):
    """The capture's zero is its first event."""
    sys.path.insert(0, os.path.join(BUILD, "python"))
    import tracewheel
    redis = Redis(folder, True)
    load = redis.benchmark(10 ** 9, stdout=subprocess.DEVNULL)
    numbers = []
    for turn in range(rounds + 1):
        capture = folder + "/f.tw"
        begun = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
        subprocess.run([TW, "attach", "-q", "--force", "-o", capture, "--time", "50ms", "-t", "redis-server:*Command", redis.pid], check=True)
        info = tracewheel.open(capture).info
        assert info["events"]
        if turn:
            numbers.append((info["zero_monotonic"] - begun) / 1e6)
    load.kill()
    load.wait()
    redis.end()
    show("the first recorded call, under load, redis-server:*Command", numbers, "ms")


def patterns(functions):
    return [word for name in functions for word in ("-t", "redis-server:" + name)]


def called_most(redis):
    """The functions of redis that requests call most."""
    top = subprocess.Popen([TW, "top", "--batch", "--format", "json", "--sort", "calls", "--top", str(MOST), "-t", "redis-server:_", redis.pid],
                           stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    top.stdout.readline()
    redis.benchmark(REQUESTS, stdout=subprocess.DEVNULL).wait()
    top.send_signal(signal.SIGTERM)
    last = json.loads(top.communicate()[0].splitlines()[-1])
    calls = sum(row["calls"] for row in last["rows"])
    print(f"the {len(last['rows'])} functions called most: {calls / 2 / REQUESTS:.0f} calls a request", flush=True)
    return [row["function"] for row in last["rows"]]


def answers(folder, rounds):
    redis = Redis(folder, True)
    flight = [TW, "attach", "--flight", "--force", "-o", folder + "/r.tw", "--time", "none"]
    top = [TW, "top", "--batch", "--count", "100000"]
    ways = {"untraced": None,
            "--flight of 30 functions": [*flight, *patterns(FUNCTIONS), redis.pid],
            "--flight of all functions": [*flight, "-t", "redis-server:_", redis.pid],
            "top of these 30": [*top, *patterns(FUNCTIONS), redis.pid],
            "top of redis-server:*Command": [*top, "-t", "redis-server:*Command", redis.pid],
            f"top of the {MOST} called most": [*top, *patterns(called_most(redis)), redis.pid]}
    rates, cpu = {way: [] for way in ways}, {way: [] for way in ways}
    for turn in range(rounds + 1):
        for way, command in ways.items():
            tracer = command and subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
            time.sleep(1)
            assert not tracer or tracer.poll() is None, tracer.stderr.read()
            before = redis.cpu_ns()
            text = redis.benchmark(REQUESTS, stdout=subprocess.PIPE).communicate()[0]
            used = redis.cpu_ns() - before
            if tracer:
                tracer.send_signal(signal.SIGTERM)
                tracer.communicate()
            set_rate, get_rate = (float(rate) for rate in re.findall(r'"(?:SET|GET)","([0-9.]+)"', text))
            if turn:
                rates[way].append(2 / (1 / set_rate + 1 / get_rate))
                cpu[way].append(used / 2 / REQUESTS / 1e3)
    redis.end()
    for way in ways:
        less = 100 * (1 - statistics.median(rates[way]) / statistics.median(rates["untraced"]))
        show(f"requests a second, {way}: {less:.1f} % less", rates[way], "/s")
        show(f"redis' processor time a request, {way}", cpu[way], "us")


def cpu_seconds(usage, before):
    return usage.ru_utime + usage.ru_stime - before.ru_utime - before.ru_stime


def snapshots(folder, rounds, work_seconds):
    """Of threads that go on at full speed, or that have rested since their rings are full."""
    program = folder + "/work"
    subprocess.run(["gcc", "-O1", "-pthread", "-o", program, os.path.join(ROOT, "bench/native/attach_work.c")], check=True)
    recorder = subprocess.Popen([TW, "record", "-q", "--force", "--flight=64M", "--ring-cap", "1G", "-t", "work:work", "-o",
                                 folder + "/s.tw", "--", program, *([str(work_seconds)] if work_seconds else [])],
                                stderr=subprocess.PIPE, text=True)
    time.sleep(work_seconds + 3 if work_seconds else 15)  # rings grow to their size
    assert recorder.poll() is None, recorder.stderr.read()
    child = subprocess.run(["pgrep", "-P", str(recorder.pid), "-x", "work"], capture_output=True, text=True, check=True).stdout.strip()
    numbers, cpu = [], []
    for _ in range(min(rounds, 5)):
        begun, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
        name = subprocess.run([TW, "snapshot", "-q", child], cwd=folder, capture_output=True, text=True, check=True).stdout.strip()
        numbers.append((time.perf_counter() - begun) * 1e3)
        cpu.append(cpu_seconds(resource.getrusage(resource.RUSAGE_CHILDREN), before) * 1e3)
        text = subprocess.run([TW, "info", os.path.join(folder, name)], capture_output=True, text=True, check=True).stdout
        events = next(line.split()[1] for line in text.splitlines() if line.startswith("events"))
        shutil.rmtree(os.path.join(folder, name))
    os.kill(int(child), signal.SIGKILL)
    recorder.wait()
    how = "that rest" if work_seconds else "at full speed"
    show(f"snapshot of eight threads {how}, {events} events", numbers, "ms")
    show(f"processor time of that, {how}", cpu, "ms")


def main():
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 10
    commands = {"": TW, ", OTHER": os.path.abspath(sys.argv[2])} if len(sys.argv) > 2 else {"": TW}
    for program in ("redis-server", "redis-benchmark", "gcc"):
        assert shutil.which(program), f"{program} is missing"
    with tempfile.TemporaryDirectory() as folder:
        print(f"{os.cpu_count()} processors, load {os.getloadavg()[0]:.1f}, {rounds} rounds")
        asleep(commands, folder, rounds, "redis-server:*Command")
        asleep(commands, folder, rounds, "redis-server:_")
        cold(commands, folder, rounds, "redis-server:*Command")
        first_call(folder, rounds)
        answers(folder, rounds)
        snapshots(folder, rounds, 0)
        snapshots(folder, rounds, 15)


main()
