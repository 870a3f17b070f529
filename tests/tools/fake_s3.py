#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""fake_s3.py FOLDER [FAULT:PERCENT,...] - a strict object store on loopback, for tests: it prints its port.

It checks what real stores check and lenient ones do not: the signature (version 4) over every header that it names, the age of the request,
x-amz-content-sha256, which each request must have, the query in canonical form, and characters of keys.  An object is a file in FOLDER
whose name has % for /.  Lists (ListObjectsV2) come by pages of 7 keys.

Faults: 500, 503; cut: no answer, nothing stored; lost: stored, no answer; slow: stored, answered a second later; kill-before and kill-after:
SIGKILL to one of the processes in the file FOLDER/victims before or after the object is stored.  While FOLDER/AWAY exists, nobody answers.
"""
import hashlib
import hmac
import html
import http.server
import os
import random
import re
import signal
import sys
import threading
import time
import urllib.parse

KEYS = {"TWACCESS": "TWSECRET"}
BUCKET = "traces"
PAGE = 7
ROOT = sys.argv[1]
FAULTS = [(kind, float(share)) for kind, share in (f.split(":") for f in (sys.argv[2] if len(sys.argv) > 2 else "").split(",") if f)]
LOCK = threading.Lock()


def sign(key, text):
    return hmac.new(key, text.encode(), hashlib.sha256).digest()


def draw():
    at = random.random() * 100
    for kind, share in FAULTS:
        if at < share:
            return kind
        at -= share
    return None


def kill():
    try:
        victims = [int(line) for line in open(ROOT + "/victims").read().split()]
        os.kill(random.choice(victims), signal.SIGKILL)
    except (OSError, IndexError):
        pass


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def answer(self, status, code="", body=b""):
        if code:
            body = f"<?xml version='1.0'?><Error><Code>{code}</Code></Error>".encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def is_signed(self):
        """By the header Authorization, or in the query (a presigned address)."""
        path, _, query = self.path.partition("?")
        asked = urllib.parse.parse_qsl(query, keep_blank_values=True)
        if "X-Amz-Signature" in dict(asked):
            found = dict(asked)
            who, names, signature = found.get("X-Amz-Credential", "").split("/"), found.get("X-Amz-SignedHeaders", ""), found["X-Amz-Signature"]
            date, limit, payload = found.get("X-Amz-Date", ""), int(found.get("X-Amz-Expires", "0")), "UNSIGNED-PAYLOAD"
            asked = [pair for pair in asked if pair[0] != "X-Amz-Signature"]
        else:
            found = re.fullmatch(r"AWS4-HMAC-SHA256 Credential=([^,]+), ?SignedHeaders=([^,]+), ?Signature=(\w+)", self.headers.get("Authorization", ""))
            if not found or "x-amz-content-sha256" not in found[2].split(";"):
                return False
            who, names, signature = found[1].split("/"), found[2], found[3]
            date, limit, payload = self.headers.get("x-amz-date", ""), 900, self.headers["x-amz-content-sha256"]
        if len(who) != 5 or who[0] not in KEYS or who[3:] != ["s3", "aws4_request"] or "host" not in names.split(";"):
            return False
        if any(self.headers.get(name) is None for name in names.split(";")):
            return False
        try:
            age = time.time() - time.mktime(time.strptime(date, "%Y%m%dT%H%M%SZ")) + time.timezone
        except ValueError:
            return False
        if age > limit or age < -900 or date[:8] != who[1]:
            return False
        path = urllib.parse.quote(urllib.parse.unquote(path), safe="/-_.~")
        query = "&".join(sorted("=".join(urllib.parse.quote(word, safe="-_.~") for word in pair) for pair in asked))
        canonical = "\n".join([self.command, path, query] + [name + ":" + " ".join(self.headers[name].split()) for name in names.split(";")] +
                              ["", names, payload])
        text = "\n".join(["AWS4-HMAC-SHA256", date, "/".join(who[1:]), hashlib.sha256(canonical.encode()).hexdigest()])
        key = ("AWS4" + KEYS[who[0]]).encode()
        for word in who[1:]:
            key = sign(key, word)
        return hmac.compare_digest(sign(key, text).hex(), signature)

    def do_GET(self):
        path, _, query = self.path.partition("?")
        fault = draw()
        if os.path.exists(ROOT + "/AWAY") or fault in ("cut", "lost"):
            self.close_connection = True
        elif fault in ("500", "503"):
            self.answer(int(fault), "InternalError" if fault == "500" else "SlowDown")
        elif self.headers.get("x-amz-content-sha256") != hashlib.sha256(b"").hexdigest() or not self.is_signed():
            self.answer(403, "SignatureDoesNotMatch")
        elif path.split("/")[1] != BUCKET:
            self.answer(404, "NoSuchBucket")
        elif path == "/" + BUCKET:
            self.list(dict(urllib.parse.parse_qsl(query)))
        else:
            try:
                self.answer(200, body=open(os.path.join(ROOT, path[len(BUCKET) + 2:].replace("/", "%")), "rb").read())
            except OSError:
                self.answer(404, "NoSuchKey")

    def list(self, asked):
        if asked.get("list-type") != "2":
            return self.answer(400, "InvalidArgument")
        keys = sorted(name.replace("%", "/") for name in os.listdir(ROOT) if "%" in name and not name.endswith(".new"))
        keys = [key for key in keys if key.startswith(asked.get("prefix", "")) and key > asked.get("start-after", "")]
        with open(ROOT + "/lists", "a") as log:
            log.write(self.path + "\n")
        contents = "".join(f"<Contents><Key>{html.escape(key)}</Key><Size>1</Size></Contents>" for key in keys[:PAGE])
        self.answer(200, body=(f'<?xml version="1.0"?><ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Name>{BUCKET}</Name>'
                               f'<IsTruncated>{"true" if len(keys) > PAGE else "false"}</IsTruncated>{contents}</ListBucketResult>').encode())

    def do_PUT(self):
        if os.path.exists(ROOT + "/AWAY"):
            self.close_connection = True
            return
        if self.headers.get("Expect"):
            self.send_response_only(100)
            self.end_headers()
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        path, _, query = self.path.partition("?")
        is_presigned = "X-Amz-Signature=" in query
        fault = draw()
        if fault == "kill-before":
            kill()
        if fault == "cut" or len(body) != int(self.headers.get("Content-Length", 0)):
            self.close_connection = True
        elif fault in ("500", "503"):
            self.answer(int(fault), "InternalError" if fault == "500" else "SlowDown")
        elif not is_presigned and not self.headers.get("x-amz-content-sha256"):
            self.answer(403, "MissingContentHash")
        elif not self.is_signed():
            self.answer(403, "SignatureDoesNotMatch")
        elif not path.startswith(f"/{BUCKET}/"):
            self.answer(404, "NoSuchBucket")
        elif not re.fullmatch(r"[A-Za-z0-9_./-]+", path) or (query and not is_presigned):
            self.answer(403, "SignatureDoesNotMatch")
        elif not is_presigned and hashlib.sha256(body).hexdigest() != self.headers["x-amz-content-sha256"]:
            self.answer(400, "XAmzContentSHA256Mismatch")
        elif os.path.exists(ROOT + "/REFUSE"):
            self.answer(400, "InvalidRequest")
        else:
            self.store(path, body, fault)

    def store(self, path, body, fault):
        name = os.path.join(ROOT, path[len(BUCKET) + 2:].replace("/", "%"))
        with LOCK:
            is_other = os.path.exists(name) and open(name, "rb").read() != body
            with open(ROOT + "/log", "a") as log:
                log.write(("OTHER " if is_other else "put ") + path + "\n")
            with open(name + ".new", "wb") as new:
                new.write(body)
            os.rename(name + ".new", name)
        if fault == "kill-after":
            kill()
        if fault == "slow":
            time.sleep(1)
        if fault == "lost":
            self.close_connection = True
        else:
            self.answer(200)


class Server(http.server.ThreadingHTTPServer):
    request_queue_size = 64
    daemon_threads = True

    def handle_error(self, request, client_address):
        pass


os.makedirs(ROOT, exist_ok=True)
server = Server(("127.0.0.1", 0), Handler)
print(server.server_address[1], flush=True)
server.serve_forever()
