#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""fleet_join.py FOLDER - what the summaries below a folder sum to, calls that cross segments' borders included (views/folds/residues.h)."""
import ctypes
import glob
import json
import sys

zstd = ctypes.CDLL("libzstd.so.1")
zstd.ZSTD_getFrameContentSize.restype = ctypes.c_uint64
zstd.ZSTD_decompress.restype = ctypes.c_size_t


def unpack(path):
    packed = open(path, "rb").read()
    size = zstd.ZSTD_getFrameContentSize(packed, ctypes.c_size_t(len(packed)))
    plain = ctypes.create_string_buffer(size + 1)
    got = zstd.ZSTD_decompress(plain, ctypes.c_size_t(size), packed, ctypes.c_size_t(len(packed)))
    assert got == size, path
    return plain.raw[:size]


def read(paths):
    """The rows of each segment, by image and in the order of its segments."""
    images = {}
    for path in paths:
        rows = [json.loads(line) for line in unpack(path).splitlines()]
        head = rows[0]
        if head["kind"] != "segment":
            continue
        boot, capture = head["seg"].split("-")[:2]
        images.setdefault((head["node"], boot, capture, head["process"], head["start"], head["lease"]), {})[head["image_segment"]] = rows
    return images


class Thread:
    """The calls of a thread that are open between segments."""

    def __init__(self):
        self.frames, self.own, self.last = [], 0, 0


def add(sums, name, **more):
    row = sums.setdefault(name, dict.fromkeys(("calls", "returned", "exceptions", "total", "self", "open"), 0))
    for key, value in more.items():
        row[key] += value


def end(sums, thread, at, own, is_return, within=0):
    """The innermost frame ends."""
    frame = thread.frames.pop()
    total = max(at - frame["at"] - (own - frame["own"]), frame["inner"])
    is_nested = any(f["name"] == frame["name"] for f in thread.frames)
    add(sums, frame["name"], total=0 if is_nested else total - within, self=total - frame["inner"], returned=int(is_return),
        open=int(not is_return))
    if thread.frames:
        thread.frames[-1]["inner"] += total


def cross(sums, thread, rows, names):
    """One segment of a thread: returns, sums of its own, frames that are open at its end."""
    for row in sorted((r for r in rows if r["kind"] == "return"), key=lambda r: r["order"]):
        if thread.frames:
            thread.frames[-1]["inner"] += row["inner"]
        name = names[row["id"]]
        at = next((i for i in range(len(thread.frames) - 1, -1, -1) if thread.frames[i]["name"] == name), None)
        if at is None:
            continue
        del thread.frames[at + 1:]
        end(sums, thread, row["at"], thread.own + row["own"], True, row["within"])
    for row in (r for r in rows if r["kind"] == "thread"):
        if thread.frames:
            thread.frames[-1]["inner"] += row["inner"]
        totals = dict(zip((names[i] for i in row.get("ids", ())), row.get("totals", ())))
        for name in {f["name"] for f in thread.frames}:
            add(sums, name, total=-totals.get(name, 0))
        own, last = row["own"], row["last"]
    for row in sorted((r for r in rows if r["kind"] == "open"), key=lambda r: r["order"]):
        thread.frames.append({"name": names[row["id"]], "at": row["at"], "own": thread.own + row["own"], "inner": row["inner"]})
    thread.own += own
    thread.last = max(thread.last, last)


def join(images):
    sums, lost = {}, {}
    for image in images.values():
        threads = {}
        for number in sorted(image):
            rows = image[number]
            names = {r["id"]: (r.get("module", ""), r["function"]) for r in rows if r["kind"] == "function" and "function" in r}
            for row in rows:
                if row["kind"] == "function" and "function" in row:
                    add(sums, names[row["id"]], **{k: row.get(k, 0) for k in ("calls", "returned", "exceptions", "total", "self")})
                elif row["kind"] == "lost":
                    lost[row["cause"]] = lost.get(row["cause"], 0) + row["events"]
            for name in {r["thread"] for r in rows if r["kind"] == "thread"}:
                cross(sums, threads.setdefault(name, Thread()), [r for r in rows if r.get("thread") == name], names)
        for thread in threads.values():
            while thread.frames:
                end(sums, thread, max(thread.last, thread.frames[-1]["at"]), thread.own, False)
    return sums, lost


def main():
    sums, lost = join(read(glob.glob(sys.argv[1] + "/**/*.jsonl.zst", recursive=True)))
    json.dump({"functions": {f"{m}:{f}": row for (m, f), row in sorted(sums.items())}, "lost": lost}, sys.stdout)


if __name__ == "__main__":
    main()
