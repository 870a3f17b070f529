#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""fake_s3.py FOLDER [FAULT:PERCENT,...] - a strict object store on loopback, for tests: it prints its port.

It checks what real stores check and lenient ones do not: the signature (version 4) over every header that it names, the age of the request,
x-amz-content-sha256, which each request must have, and characters of keys.  An object is a file in FOLDER whose name has % for /.

Faults: 500, 503; cut: no answer, nothing stored; lost: stored, no answer; slow: stored, answered a second later; kill-before and kill-after:
SIGKILL to one of the processes in the file FOLDER/victims before or after the object is stored.  While FOLDER/AWAY exists, nobody answers.
"""
import hashlib
import hmac
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
        found = re.fullmatch(r"AWS4-HMAC-SHA256 Credential=([^/]+)/(\d+)/([^/]+)/s3/aws4_request, ?SignedHeaders=([^,]+), ?Signature=(\w+)",
                             self.headers.get("Authorization", ""))
        if not found or found[1] not in KEYS:
            return False
        names = found[4].split(";")
        date = self.headers.get("x-amz-date", "")
        if any(self.headers.get(name) is None for name in names) or "host" not in names or "x-amz-content-sha256" not in names:
            return False
        try:
            age = abs(time.time() - time.mktime(time.strptime(date, "%Y%m%dT%H%M%SZ")) + time.timezone)
        except ValueError:
            return False
        if age > 900 or date[:8] != found[2]:
            return False
        path = urllib.parse.quote(urllib.parse.unquote(self.path), safe="/-_.~")
        canonical = "\n".join([self.command, path, ""] + [name + ":" + " ".join(self.headers[name].split()) for name in names] +
                              ["", found[4], self.headers["x-amz-content-sha256"]])
        scope = f"{found[2]}/{found[3]}/s3/aws4_request"
        text = "\n".join(["AWS4-HMAC-SHA256", date, scope, hashlib.sha256(canonical.encode()).hexdigest()])
        key = ("AWS4" + KEYS[found[1]]).encode()
        for word in (found[2], found[3], "s3", "aws4_request"):
            key = sign(key, word)
        return hmac.compare_digest(sign(key, text).hex(), found[5])

    def do_PUT(self):
        if os.path.exists(ROOT + "/AWAY"):
            self.close_connection = True
            return
        if self.headers.get("Expect"):
            self.send_response_only(100)
            self.end_headers()
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        fault = draw()
        if fault == "kill-before":
            kill()
        if fault == "cut" or len(body) != int(self.headers.get("Content-Length", 0)):
            self.close_connection = True
        elif fault in ("500", "503"):
            self.answer(int(fault), "InternalError" if fault == "500" else "SlowDown")
        elif not self.headers.get("x-amz-content-sha256"):
            self.answer(403, "MissingContentHash")
        elif not self.is_signed():
            self.answer(403, "SignatureDoesNotMatch")
        elif not self.path.startswith(f"/{BUCKET}/"):
            self.answer(404, "NoSuchBucket")
        elif not re.fullmatch(r"[A-Za-z0-9_./-]+", self.path):
            self.answer(403, "SignatureDoesNotMatch")
        elif hashlib.sha256(body).hexdigest() != self.headers["x-amz-content-sha256"]:
            self.answer(400, "XAmzContentSHA256Mismatch")
        elif os.path.exists(ROOT + "/REFUSE"):
            self.answer(400, "InvalidRequest")
        else:
            self.store(body, fault)

    def store(self, body, fault):
        name = os.path.join(ROOT, self.path[len(BUCKET) + 2:].replace("/", "%"))
        with LOCK:
            is_other = os.path.exists(name) and open(name, "rb").read() != body
            with open(ROOT + "/log", "a") as log:
                log.write(("OTHER " if is_other else "put ") + self.path + "\n")
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
