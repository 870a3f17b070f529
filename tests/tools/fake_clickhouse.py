#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""fake_clickhouse.py STATEMENTS FOLDER - a strict stand-in of a ClickHouse server on loopback, for tests: it prints its port.

STATEMENTS is the folder of clickhouse.sql and clickhouse_ask.sql. Statements of setup must come in their order, and questions must be those
of clickhouse_ask.sql, letter by letter but for their words; anything else is an error 500. Questions are answered from the summaries below
FOLDER, as ClickHouse would answer. FOLDER/statements gets a line for each that was right. FOLDER/fault may have: 401, 500, cut (the answer
ends early), short (its last line is missing), old (a version), tables (there are none), failure (the loader has failed).
"""
import collections
import ctypes
import glob
import http.server
import json
import os
import re
import sys
import urllib.parse

STATEMENTS, FOLDER = sys.argv[1:3]
USER = ("reader", "secret")
ZSTD = ctypes.CDLL("libzstd.so.1")
ZSTD.ZSTD_decompress.restype = ctypes.c_size_t


def template(text):
    """A statement with $WORDS as an expression, whose groups are the words."""
    seen, parts = set(), []
    for i, part in enumerate(re.split(r"\$([A-Z]+)", text)):
        if i % 2 == 0:
            parts.append(re.escape(part))
        else:
            parts.append(f"(?P={part})" if part in seen else f"(?P<{part}>.*?)")
            seen.add(part)
    return re.compile("".join(parts), re.DOTALL)


SETUP = [template(text) for text in open(STATEMENTS + "/clickhouse.sql").read().split(";\n")[:-1]]
SECTIONS = {part.split("\n", 1)[0]: template(re.split(r"\n-- ", part.split("\n", 1)[1])[0].strip())
            for part in open(STATEMENTS + "/clickhouse_ask.sql").read().split("-- @")[1:]}


def read(path):
    packed, plain = open(path, "rb").read(), ctypes.create_string_buffer(1 << 22)
    size = ZSTD.ZSTD_decompress(plain, ctypes.c_size_t(1 << 22), packed, ctypes.c_size_t(len(packed)))
    return plain.raw[:size].decode()


def load():
    """The summaries by path: their rows, or why they are none."""
    for path in sorted(glob.glob(FOLDER + "/**/*.jsonl.zst", recursive=True)):
        text = read(path)
        rows = [json.loads(line) for line in text.splitlines()] if text.endswith("\n") else []
        yield path, rows, "" if rows else "it was cut off"


def chosen(objects, condition):
    """Those that a condition on rows of `loaded` is true of."""
    found = re.fullmatch(r"reason = '' AND toUnixTimestamp64Nano\(visible\) <= 17 AND `to` >= (\d+) AND `(to|from)` < (\d+) AND (.*)", condition)
    nodes = None if found[4] == "1" else re.findall(r"'([^']*)'", found[4])
    return [(path, rows) for path, rows, reason in objects if not reason and rows[0]["to"] >= int(found[1]) and
            rows[0][found[2]] < int(found[3]) and (nodes is None or rows[0]["node"] in nodes)]


def first(segments):
    """One content of each number."""
    seen = set()
    for path, rows in segments:
        key = rows[0]["node"], rows[0]["seg"].rsplit("-", 1)[0]
        if key not in seen:
            seen.add(key)
            yield path, rows


def functions(segments, by_node):
    sums = {}
    for _, rows in first(segments):
        for row in rows:
            if row["kind"] != "function":
                continue
            of = sums.setdefault((row["node"] if by_node else "", row["name"]), {"bins": collections.Counter()})
            for key in "calls", "returned", "exceptions", "cut", "lossy", "total", "self":
                of[key] = of.get(key, 0) + row.get(key, 0)
            if row.get("counts"):
                of["min"], of["max"] = min(of.get("min", 1 << 64), row["min"]), max(of.get("max", 0), row["max"])
                of["bins"].update(dict(zip(row["bins"], row["counts"])))
    for (node, name), of in sums.items():
        yield {**of, "kind": "function", "node": node, "id": -1, "name": name, "bins": list(of["bins"]), "counts": list(of["bins"].values())}


def segments(objects, words):
    every = chosen(objects, words["SEGMENTS"])
    mine = list(first(every))
    opened = {(path, row["id"]) for path, rows in mine for row in rows if row["kind"] == "open"}
    names = sorted({row["name"] for path, rows in mine for row in rows if row["kind"] == "function" and (path, row["id"]) in opened})
    if words["CROSSING"] == "0":
        names = []
    yield {"kind": "names", "names": names}
    slow = []
    if words["FUNCTIONS"] != "0":
        only = None if words["FUNCTIONS"] == "1" else re.findall(r"'([^']*)'", words["FUNCTIONS"])
        column = words["COLUMN"].strip("`")
        slow = [row for _, rows in mine for row in rows if row.get("counts") and (only is None or row["name"] in only)]
        slow = sorted(slow, key=lambda row: (-row[column], row["seg"], row["name"], row["node"]))[:int(words["TOP"])]
    for path, rows, reason in objects:
        if reason:
            yield {"kind": "aside", "path": path, "reason": reason}
        if path not in dict(every):
            continue
        yield {**rows[0], "path": path}
        if path not in dict(mine):
            continue
        ids = {row["id"]: names.index(row["name"]) + 1 for row in rows if row["kind"] == "function" and row["name"] in names}
        for row in rows[1:]:
            if row["kind"] == "lost" or any(row is one for one in slow):
                yield {**row, "id": -1}
            elif row["kind"] in ("return", "open") and words["CROSSING"] == "1":
                yield {**row, "id": ids.get(row["id"], -1)}
            elif row["kind"] == "thread" and words["CROSSING"] == "1":
                kept = [(ids[i], total) for i, total in zip(row.get("ids", []), row.get("totals", [])) if i in ids]
                yield {**row, "ids": [i for i, _ in kept], "totals": [total for _, total in kept]}


def answer(name, words):
    objects = list(load())
    if name == "nodes":
        return [{"name": node} for node in sorted({rows[0]["node"] for _, rows, reason in objects if not reason})]
    if name == "names":
        return [{"name": row} for row in sorted({row["name"] for _, rows in chosen(objects, words["SEGMENTS"]) for row in rows if "name" in row})]
    if name == "functions":
        return functions(chosen(objects, words["SEGMENTS"]), words["NODE"] == "s.node")
    return segments(objects, words)


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    at = 0  # which statement of setup comes next

    def log_message(self, *args):
        pass

    def answer(self, status, text, cut=0):
        body = text.encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[:len(body) - cut])
        self.close_connection = cut > 0

    def log(self, text):
        with open(FOLDER + "/statements", "a") as log:
            log.write(text + "\n")

    def do_POST(self):
        text = self.rfile.read(int(self.headers["Content-Length"])).decode()
        asked = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(self.path).query))
        fault = open(FOLDER + "/fault").read().strip() if os.path.exists(FOLDER + "/fault") else ""
        if fault == "401" or (self.headers.get("X-ClickHouse-User"), self.headers.get("X-ClickHouse-Key")) != USER:
            return self.answer(401, "Code: 516. DB::Exception: reader: Authentication failed. (AUTHENTICATION_FAILED)\n")
        if fault == "500":
            return self.answer(500, "Code: 241. DB::Exception: Memory limit exceeded\x1b[31m. (MEMORY_LIMIT_EXCEEDED)\nmore\n")
        if asked.get("wait_end_of_query") != "1":
            return self.answer(500, "Code: 1. DB::Exception: the answer may be cut off")
        if text == "SELECT version() FORMAT LineAsString":
            return self.answer(200, "23.8.1.1\n" if fault == "old" else "26.7.2.1\n")
        found = SETUP[Handler.at].fullmatch(text)
        if found:
            self.log(f"setup {Handler.at} {found.groupdict()}")
            Handler.at = (Handler.at + 1) % len(SETUP)
            return self.answer(200, "")
        matches = [(name, expression.fullmatch(text.strip())) for name, expression in SECTIONS.items()]
        name, found = next(((name, found) for name, found in matches if found), ("", None))
        if not found or asked.get("database") != "tracewheel":
            return self.answer(500, "Code: 62. DB::Exception: Syntax error: this is no statement of these files")
        if fault == "tables":
            return self.answer(404, "Code: 60. DB::Exception: Unknown table expression identifier 'loaded'. (UNKNOWN_TABLE)\n")
        self.log("ask " + name)
        if name == "state":
            failure = "Code: 499. DB::Exception: The AWS Access Key Id does not exist" if fault == "failure" else ""
            loaded = sum(1 for _ in load()) if os.path.isdir(FOLDER) else 0
            return self.answer(200, json.dumps({"version": "26.7.2.1", "loaded": loaded, "visible": 17, "failure": failure}) + "\n")
        lines = "".join(json.dumps(row) + "\n" for row in answer(name, found.groupdict()))
        self.answer(200, lines + ("" if fault == "short" else '{"kind":"end"}\n'), 9 if fault == "cut" else 0)


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
server.daemon_threads = True
print(server.server_address[1], flush=True)
server.serve_forever()
