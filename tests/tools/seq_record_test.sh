#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal    A recording is the system tracer of a program that sets none: all views show its sequential traces, with stamps. Match
#         specifications see the thread's token in calls of native functions, and set it.
# Method  A program of two threads with tokens, unaware of the recording, which calls getenv() inside and outside of a trace;
#         and the same without any token, where a specification makes them.
build=$1
. "$(dirname "$0")/lib.sh"
top=$(realpath "$(dirname "$0")/../..")
cat >app.c <<'C'
#include <tracewheel/seq.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static struct tw_seq_token token;
static pthread_barrier_t barrier;

static void *other(void *arg)
{
	getenv("INHERITED");
	pthread_barrier_wait(&barrier);
	tw_seq_accept(&token, tw_term_atom_z("job"));
	getenv("ACCEPTED");
	tw_seq_print(tw_term_atom_z("done"));
	tw_seq_accept(NULL, tw_term_atom_z("plain"));
	getenv("PLAIN");
	return arg;
}

int main(int argc, char **argv)
{
	pthread_t thread;

	pthread_barrier_init(&barrier, NULL, 2);
	getenv("BEFORE");
	if (argc > 1) {
		tw_seq_set_label(tw_term_atom_z("lab el"));
		tw_seq_set_flags(TW_SEQ_SEND | TW_SEQ_RECEIVE | TW_SEQ_PRINT, true);
		if (strcmp(argv[1], "1"))
			tw_seq_set_flags((unsigned)atoi(argv[1]), true);
	}
	pthread_create(&thread, NULL, other, NULL);
	tw_seq_pass(&token, (struct tw_term){0}, tw_term_atom_z("job"));
	tw_seq_set_token(NULL, NULL);
	getenv("AFTER");
	pthread_barrier_wait(&barrier);
	pthread_join(thread, NULL);
	return 0;
}
C
gcc -w -O1 -I"$top/include" -o app app.c -L"$build/lib" -Wl,-rpath,"$build/lib" -ltracewheel -lpthread || fail "app"

expect 0 "$tw" record -q -o a.tw -t 'libc:getenv' -- ./app 1
expect 0 "$tw" print --format erlang a.tw
grep seq_trace out >events
# The thread is made, which replies; then the job passes; {0,2} follows the request, or the reply.
is "$(grep -c "{seq_trace,'lab el',{send,{0,1},'<0.1.0>','<0.2.0>',{spawn_request,'<0.1.0>',{undefined,undefined,\[\]},\[\]}}" events)" 1
is "$(grep -c "{seq_trace,'lab el',{'receive',{0,1},'<0.1.0>','<0.2.0>',{spawn_request," events)" 1
is "$(grep -c "{send,{1,2},'<0.2.0>','<0.1.0>',{spawn_reply,ok,'<0.2.0>'}}" events)" 1
is "$(grep -c "{'receive',{1,2},'<0.2.0>','<0.1.0>',{spawn_reply," events)" 1
is "$(grep -c "{send,{2,3},'<0.1.0>',undefined,job}" events)" 1
is "$(grep -c "{'receive',{2,3},'<0.1.0>','<0.2.0>',job}" events)" 1
is "$(grep -c "{print,{3,4},'<0.2.0>',\[\],done}" events)" 1
is "$(wc -l <events)" 7
# All formats.
expect 0 "$tw" print --format json a.tw
is "$(grep -c '"kind":"seq_print".*"label":"'"'lab el'"'","serial":"{3,4}","from":"<0.2.0>","to":"\[\]","message":"done"' out)" 1
expect 0 "$tw" print a.tw
is "$(grep -c "<0.2.0> app *seq_print 'lab el' {3,4} <0.2.0> \[\] done" out)" 1 "$(grep seq_ out)"
# A tuple that is no function and its arguments is shown as it is.
shows "{spawn_reply,ok,<0.2.0>}"
for how in --tree '--format chrome'; do
	# shellcheck disable=SC2086
	expect 0 "$tw" print $how a.tw
done
expect 0 "$tw" report a.tw
# Stamps: the time of day before the strict one, before the other.
for stamp in 8 16 24 32 56; do
	expect 0 "$tw" record -q -o s.tw --force -t 'libc:getenv' -- ./app $stamp
	expect 0 "$tw" print --format erlang s.tw
	grep '{print,' out >events
	case $stamp in
	8 | 24 | 56) grep -qE 'done},\{[0-9]+,[0-9]+,[0-9]+\}\}\.' events || fail "stamp $stamp: $(cat events)" ;;
	16) grep -qE 'done},\{[0-9]+,[0-9]+\}\}\.' events || fail "stamp $stamp: $(cat events)" ;;
	32) grep -qE 'done},[0-9]+\}\.' events || fail "stamp $stamp: $(cat events)" ;;
	esac
done
# Only the calls that the trace makes.
expect 0 "$tw" record -q -o m.tw -t 'libc:getenv' --match "[{'_',[{is_seq_trace}],[{message,{get_seq_token}}]}]" -- ./app 1
expect 0 "$tw" print --format erlang m.tw
is "$(grep -c ',call,' out)" 2
is "$(grep ',call,' out | grep -c "{7,'lab el',2,'<0.2.0>',1}}")" 1 "inherited: $(cat out)"
is "$(grep ',call,' out | grep -c "{7,'lab el',3,'<0.1.0>',2}}")" 1 "accepted: $(cat out)"
# A specification begins the trace of a program that knows of none: the thread of the call has it from then on.
expect 0 "$tw" record -q -o n.tw -t 'libc:getenv' --match \
	"[{'_',[],[{set_seq_token,label,9},{set_seq_token,send,true},{set_seq_token,'receive',true},{message,{get_seq_token}}]}]" -- ./app
expect 0 "$tw" print --format erlang n.tw
grep -q "{seq_trace,9,{send,{0,1},'<0.1.0>',undefined,job}}" out || fail "no send"
is "$(grep -c ',call,.*{3,9,0,' out)" 4 "$(cat out)"
# Tokens that are dropped are counted in the capture: by the recording, and by a session of the program itself.
cat >dropped.c <<'C'
#include <tracewheel/seq.h>
#include <tracewheel/session.h>
#include <stdlib.h>
#include <unistd.h>
int main(int argc, char **argv)
{
	struct tw_seq_token own, bad, out;
	struct tw_tracer tracer = {.kind = TW_TRACER_CAPTURE, .capture_path = argv[1]};
	struct tw_session *session = NULL;
	if (argc > 1 && tw_session_create("own", &tracer, &session) < 0)
		return 1;
	if (session)
		tw_seq_set_system_tracer(session, NULL);
	tw_seq_set_label(tw_term_atom_z("job"));
	tw_seq_pass(&own, (struct tw_term){0}, tw_term_atom_z("job"));
	bad = own;
	bad.words[0] |= 0x8000; /* an unknown flag */
	for (int i = 0; i < 3; i++)
		tw_seq_accept(&bad, tw_term_atom_z("bad"));
	tw_seq_decode("rubbish", 7, NULL, &out);
	if (session) {
		tw_session_destroy(session);
		tw_session_put(session);
	}
	return 0;
}
C
gcc -w -O1 -I"$top/include" -o dropped dropped.c -L"$build/lib" -Wl,-rpath,"$build/lib" -ltracewheel -lpthread || fail "dropped"
expect 0 "$tw" record -q -o d.tw -t 'libc:getenv' -- ./dropped
expect 0 ./dropped own.tw
for capture in d.tw own.tw; do
	expect 0 "$tw" info $capture
	is "$(grep -c 'requests are not followed past tokens that were dropped: 3 damaged, 1 refused because their bytes are cut or damaged$' out)" 1 "$capture"
done
expect 0 "$tw" info a.tw
is "$(grep -c dropped out)" 0
