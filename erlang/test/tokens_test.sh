#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal    As the system tracer of seq_trace, a capture has what a process would have received: labels, serials, senders, receivers,
#         messages and kinds of stamps. The context of OpenTelemetry is taken over as a token, and back.
# Method  The same requests through three processes, first with a process as system tracer, then with a capture (tokens.erl); a
#         stand-in of OpenTelemetry, whose spans are looked for in the converted capture.
build=$1 modules=(tokens otel_tracer)
. "$(dirname "$0")/lib.sh"
erl_run tokens main >out 2>&1 || fail "tokens.erl"
grep -qx ok out || fail "not the same events"

read -r parent span own <otel.ids
expect 0 "$tw" seq --label 0af7651916cd43dd8448eb211c80319c otel.tw
shows '^request 0af7651916cd43dd8448eb211c80319c: 4 messages, 2 prints'
expect 0 "$tw" seq --label "$own" otel.tw
shows '^request {order,<0\.[0-9]*\.0>}: 0 messages, 1 print'
expect 1 "$tw" seq --label 0af7651916cd43dd8448eb211c80319d otel.tw
expect 0 "$tw" convert --to otlp otel.tw -o otel.otlp
# Fields of spans: 2 its id, 4 that of its parent.
python3 -I -S - "$parent" "$span" <<'P' || fail "the spans of otel.otlp"
import sys
parent, span = map(bytes.fromhex, sys.argv[1:])
spans = open("otel.otlp", "rb").read()
assert spans.count(b"\x22\x08" + parent) >= 2, "children of the span that the request came from"
assert spans.count(b"\x12\x08" + span) == 1, "the span that OpenTelemetry has as parent"
P
