#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal    Requests converted for OpenTelemetry: each message is a span of the trace that came in by W3C trace context, below the span of the
#         tracer that sent it, and a service that the request goes on to has the span of our message as its parent.
# Method  protoc decodes the file. Two programs, of which the first gets a request from elsewhere and hands it on by headers, and a
#         capture with known causes are compared with `seq --format json`.
build=$1
. "$(dirname "$0")/lib.sh"
tests=$(realpath "$common/../tools") top=$(realpath "$common/../..")
command -v protoc >/dev/null || { echo "no protoc here: not tested" && exit 77; }
"$build/tests/tools_seq_test" captures "$work" || fail "no captures"

cat >service.c <<'C'
#include <tracewheel/seq.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
int main(int argc, char **argv)
{
	struct tw_seq_headers headers;
	struct tw_seq_token token;
	char parent[56], state[1024] = "";
	FILE *in = fopen(argv[1], "r"), *to = argc > 2 ? fopen(argv[2], "w") : NULL;
	if (!in || !fgets(parent, sizeof parent, in))
		return 1;
	/* The end of the line, and the second header. */
	if (fgets(state, 2, in))
		fgets(state, sizeof state, in);
	if (tw_seq_from_traceparent(parent, *state ? state : NULL, &token))
		return 2;
	tw_seq_accept(&token, tw_term_atom_z(argv[1]));
	tw_seq_print(tw_term_atom_z("working"));
	nanosleep(&(struct timespec){0, 3000000}, NULL);
	if (!to)
		return 0;
	tw_seq_pass(&token, tw_term_atom_z("next"), tw_term_atom_z("order"));
	if (tw_seq_to_traceparent(&token, NULL, NULL, &headers))
		return 3;
	fprintf(to, "%s\n%s", headers.traceparent, headers.tracestate);
	return fclose(to) != 0;
}
C
gcc -w -O1 -I"$top/include" -o front service.c -L"$build/lib" -Wl,-rpath,"$build/lib" -ltracewheel && cp front back || fail "service"
printf 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01 >came_in
expect 0 "$tw" record -q --follow-fork -t libc:fopen -o shop2.tw -- sh -c './front came_in went_out && ./back went_out'

# Labels whose text is cut: each is a trace of its own id.
cat >long.c <<'C'
#include <tracewheel/seq.h>
#include <string.h>
int main(void)
{
	struct tw_seq_headers headers;
	struct tw_seq_token token;
	struct tw_arena arena;
	unsigned char bytes[1500];
	tw_arena_init(&arena, 1 << 20);
	memset(bytes, 200, sizeof bytes);
	tw_seq_set_label(tw_term_binary(&arena, bytes, sizeof bytes));
	tw_seq_set_flags(TW_SEQ_SEND | TW_SEQ_RECEIVE | TW_SEQ_PRINT, true);
	tw_seq_pass(&token, tw_term_atom_z("next"), tw_term_atom_z("order"));
	return 0;
}
C
gcc -w -O1 -I"$top/include" -o long long.c -L"$build/lib" -Wl,-rpath,"$build/lib" -ltracewheel || fail "long"
expect 0 "$tw" record -q -t libc:fopen -o long.tw -- ./long
expect 0 "$tw" convert --to otlp long.tw -o long.otlp
says "long.otlp: 1 request, 1 span"

cat >compare.py <<'P'
import collections, json, subprocess, sys, time
import protoc_text
name, proto = sys.argv[1:3]

def attributes(message):
    return {a["key"][0].decode(): (a["value"][0]["string_value"] or a["value"][0]["int_value"])[0] for a in message["attributes"]}

traces = collections.defaultdict(list)
for part in protoc_text.decode(name + ".otlp", proto, "Request", bytes)["resource_spans"]:
    service = attributes(part["resource"][0])["service.name"].decode()
    assert [s["scope"][0]["name"] for s in part["scope_spans"]] == [[b"tracewheel"]]
    for span in part["scope_spans"][0]["spans"]:
        told = attributes(span)
        assert len(span["trace_id"][0]) == 16 and len(span["span_id"][0]) == 8
        assert span["start_time_unix_nano"][0] <= span["end_time_unix_nano"][0]
        traces[told["tracewheel.label"].decode()].append(
            dict(service=service, trace=span["trace_id"][0].hex(), id=span["span_id"][0].hex(),
                 parent=span["parent_span_id"][0].hex() if span["parent_span_id"] else None, start=span["start_time_unix_nano"][0],
                 end=span["end_time_unix_nano"][0], told=told, events=[e["name"][0].decode() for e in span["events"]]))

requests = json.loads(subprocess.run(["TRACEWHEEL", "seq", "--format", "json", name + ".tw"], stdout=subprocess.PIPE, check=True).stdout)["requests"]
assert len(traces) == len(requests), (list(traces), requests)
for label, spans in traces.items():
    assert len({s["trace"] for s in spans}) == 1 and len({s["id"] for s in spans}) == len(spans)
    told = json.loads(subprocess.run(["TRACEWHEEL", "seq", "--format", "json", "--label", label, name + ".tw"], stdout=subprocess.PIPE, check=True).stdout)
    # The trace-id is as good a name, of whatever label it is made.
    by_trace_id = json.loads(subprocess.run(["TRACEWHEEL", "seq", "--format", "json", "--label", spans[0]["trace"], name + ".tw"], stdout=subprocess.PIPE, check=True).stdout)
    assert by_trace_id == told and told["trace_id"] == spans[0]["trace"], (label, told["trace_id"], spans[0]["trace"])
    assert [r["trace_id"] for r in requests if r["label"] == told["label"]] == [spans[0]["trace"]], requests
    hops = told["hops"]
    wanted = [h for h in hops if h["kind"] == "message" or "cause" not in h]
    assert len(wanted) == len(spans), (wanted, spans)
    # Each message once, by its serial and its ends; its parent is its cause; what it printed is with it.
    by_key = {(s["told"]["tracewheel.serial"].decode(), s["told"]["tracewheel.from"].decode()): s for s in spans}
    assert len(by_key) == len(spans)
    key = lambda h: ("%d,%d" % tuple(h["serial"]), h["from"])
    first = min(h.get("sent_ns", h.get("received_ns", h.get("at_ns"))) for h in hops)
    zero = min(s["start"] for s in spans) - first
    for hop in wanted:
        span = by_key[key(hop)]
        assert span["told"]["tracewheel.message"].decode() == hop["message"], (span, hop)
        assert span["start"] - zero == hop.get("sent_ns", hop.get("received_ns", hop.get("at_ns"))), (span, hop)
        if "cause" in hop:
            assert span["parent"] == by_key[key(hops[hop["cause"]])]["id"], (span, hop)
        prints = [h["message"] for h in hops if h["kind"] == "print" and h.get("cause") == hop["id"]]
        assert span["events"] == ["received"] * ("received_ns" in hop) + prints, (span, prints)
        ends = [h.get("sent_ns", h.get("at_ns")) for h in hops if h.get("cause") == hop["id"]]
        assert span["end"] - zero == max([e for e in ends if e is not None] + [hop.get("received_ns", 0), span["start"] - zero]), (span, hop)

if name == "shop2":
    (spans,) = traces.values()
    front = [s for s in spans if s["parent"] == "b7ad6b7169203331"]
    assert len(front) == 1 and {s["trace"] for s in spans} == {"0af7651916cd43dd8448eb211c80319c"}, spans
    went_out = open("went_out").readline().split("-")
    order = [s for s in spans if s["id"] == went_out[2]]
    assert went_out[1] == spans[0]["trace"] and len(order) == 1, (went_out, spans)
    assert (order[0]["parent"], order[0]["service"], front[0]["service"]) == (front[0]["id"], "back", "front"), spans
    assert front[0]["events"] == order[0]["events"] == ["received", "working"], spans
    assert abs(order[0]["start"] / 1e9 - time.time()) < 600, "the time of day"
    assert front[0]["end"] - front[0]["start"] >= 3000000
else:
    assert sorted(traces) == ["18", "{order,17}"], list(traces)
P
sed -i "s|TRACEWHEEL|$tw|g" compare.py
export PYTHONPATH=$common PYTHONDONTWRITEBYTECODE=1
for name in shop2 shop; do
	expect 0 "$tw" convert --to otlp $name.tw -o $name.otlp
	says "$name.otlp: [12] requests\?, [0-9]* spans"
	python3 -S compare.py $name "$tests/otlp.proto" || fail "$name"
done

# A request from elsewhere is shown by its trace-id, in any case; an id of no request is no request.
for id in 0af7651916cd43dd8448eb211c80319c 0AF7651916CD43DD8448EB211C80319C; do
	expect 0 "$tw" seq --label $id shop2.tw
	shows '^request 0af7651916cd43dd8448eb211c80319c: '
done
expect 1 "$tw" seq --label 1af7651916cd43dd8448eb211c80319c shop2.tw
says "has no events of a request with the label 1af7651916cd43dd8448eb211c80319c"

# Wrong questions, and a capture without requests.
expect 1 "$tw" convert --to otlp shop.tw -o shop.otlp
says "'shop.otlp' exists; --force replaces it"
expect 2 "$tw" convert --to otlp --timestamps wall shop.tw -o other.otlp
expect 0 "$tw" record -q -o none.tw -t libc:malloc -- ls /
expect 0 "$tw" convert -q --to otlp none.tw -o none.otlp
says "none.otlp is empty: the capture has no requests with tokens"
[ ! -s none.otlp ] || fail "none.otlp"
expect 0 "$tw" convert -q --to otlp shop.tw -o -
cmp -s out shop.otlp || fail "on standard output"
exit 0
