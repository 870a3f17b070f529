#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""held.py TRACEWHEEL STORM LIBRARY... - stops the processes that hold threads, in a storm of dlopen (held_test.sh).

In each round one of them is stopped: the recorder, the process that stops threads for it (tw-holder), both, or the recorder's whole
process group.  All threads of the program must go on meanwhile.

TW_HELD_ROUNDS=N: rounds for each victim (2); TW_HELD_SECONDS: how long each is stopped (0.3); TW_HELD_MAX_MS: fail if a thread
stood longer (no limit: a busy machine keeps threads waiting by itself).
"""
import mmap
import os
import random
import signal
import statistics
import struct
import subprocess
import sys
import time

THREADS = 21
ROUNDS = int(os.environ.get("TW_HELD_ROUNDS", "2"))
SECONDS = float(os.environ.get("TW_HELD_SECONDS", "0.3"))
MAX_MS = float(os.environ.get("TW_HELD_MAX_MS", "0"))
VICTIMS = ["none", "recorder", "holder", "both", "group"]
GIVE_UP = 60


class Storm:
    def __init__(self, tracewheel, program, libraries):
        with open("beats", "wb") as file:
            file.truncate(4096)
        with open("beats", "r+b") as file:
            self.memory = mmap.mmap(file.fileno(), 4096)
        self.capture = "storm.tw"
        self.recorder = subprocess.Popen(
            [tracewheel, "record", "--local", "-t", "libstorm*:_", "-q", "--force", "-o", self.capture, "--", program, "beats", *libraries],
            stdin=subprocess.DEVNULL, process_group=0)
        self.wait("the program has not begun", lambda: self.word(8) and self.rounds()[0] >= 5)
        self.program = self.word(8)

    def word(self, at):
        return struct.unpack_from("Q", self.memory, at)[0]

    def rounds(self):
        return [self.word(16 + 16 * i) for i in range(THREADS)]

    def longest_ms(self):
        """Of the threads that open nothing."""
        return max(self.word(24 + 16 * i) for i in range(1, THREADS)) / 1e6

    def wait(self, what, is_true):
        end = time.monotonic() + GIVE_UP
        while not is_true():
            if time.monotonic() > end or self.recorder.poll() is not None:
                self.fail(what)
            time.sleep(0.001)

    def fail(self, what):
        for process in (self.recorder.pid, self.word(8)):
            if process:
                subprocess.run(["kill", "-KILL", str(process)], check=False)
        sys.exit(f"held.py: {what}")

    def holders(self):
        for folder in os.listdir("/proc"):
            try:
                with open(f"/proc/{folder}/stat") as file:
                    head, rest = file.read().rsplit(")", 1)
            except (OSError, ValueError):
                continue
            if head.endswith("(tw-holder") and rest.split()[1] == str(self.recorder.pid):
                yield int(folder)

    def stop(self, victim):
        """Stops it at a random moment; the process ids to continue, or None if the holder was not there."""
        holders = list(self.holders()) if victim in ("holder", "both") else []
        time.sleep(random.random() / 50)
        targets = {"none": [], "recorder": [self.recorder.pid], "holder": holders,
                   "both": [self.recorder.pid] + holders, "group": [-self.recorder.pid]}[victim]
        for target in targets:
            try:
                os.kill(target, signal.SIGSTOP)
            except ProcessLookupError:
                return None
        return [target for target in targets if target not in holders] if targets or victim == "none" else None

    def end(self):
        struct.pack_into("Q", self.memory, 0, 1)
        try:
            code = self.recorder.wait(GIVE_UP)
        except subprocess.TimeoutExpired:
            self.fail("the recorder has not ended")
        if code:
            self.fail(f"exit code {code}")
        if list(self.holders()):
            self.fail("a holder is left")


def play(victim, arguments):
    storm = Storm(*arguments)
    for i in range(1, THREADS):
        struct.pack_into("Q", storm.memory, 24 + 16 * i, 0)
    before, begun = storm.rounds(), time.monotonic()
    stopped = storm.stop(victim)
    storm.wait(f"threads stand while this is stopped: {victim}",
               lambda: all(now >= then + (3 if i == 0 else 30)
                           for i, (now, then) in enumerate(zip(storm.rounds(), before))))
    time.sleep(max(0, SECONDS - (time.monotonic() - begun)))
    longest = storm.longest_ms()
    for target in stopped or []:
        os.kill(target, signal.SIGCONT)
    storm.end()
    if MAX_MS and longest > MAX_MS:
        sys.exit(f"held.py: a thread stood for {longest:.1f} ms: {victim}")
    return longest if stopped is not None else None


def main():
    seed = int(os.environ.get("TW_SEED", time.time_ns() & 0xffffffff))
    random.seed(seed)
    print(f"seed {seed}")
    for victim in VICTIMS:
        times = [play(victim, (sys.argv[1], sys.argv[2], sys.argv[3:])) for _ in range(ROUNDS)]
        times = [ms for ms in times if ms is not None]
        if times:
            print(f"stopped: {victim}; {len(times)} rounds; longest stand of a thread: "
                  f"median {statistics.median(times):.1f} ms, at most {max(times):.1f} ms", flush=True)


main()
