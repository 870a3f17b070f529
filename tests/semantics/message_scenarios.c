/* SPDX-License-Identifier: Apache-2.0 */
/* message_scenarios.c - docs/semantics.md F, O: send, receive, and their match specifications. */
#include "bed.h"

CODE(self_send_and_register)
{
	(void)env;
	send_to(self, self_pid(self), atom("a"));
	receive_value(self, atom("a"), FOREVER);
	register_name(self, atom("xyz"), self_pid(self));
	unregister_name(self, atom("xyz"));
	return ATOM(OK);
}

CODE(self_send)
{
	(void)env;
	send_to(self, self_pid(self), atom("a"));
	receive_value(self, atom("a"), FOREVER);
	return ATOM(OK);
}

static struct tw_term s_silent_other_events(struct bed *b)
{
	struct st x = st(b, "send,receive,procs,silent");
	struct tw_term without;

	run(b, x.p, self_send_and_register);
	without = elements(b, 3, ev(b, x.s));
	send_pattern(b, x.s, "[{['_','_'],[],[]}]");
	recv_pattern(b, x.s, "[{['_','_','_'],[],[]}]");
	run(b, x.p, self_send);
	return lit(b, "{without_ms,%t,with_ms,%t}", without, elements(b, 3, ev(b, x.s)));
}

CODE(sends_to_nobody)
{
	(void)env;
	send_to(self, atom("unregistered_name"), atom("x"));
	return ATOM(OK);
}

/* env: {Q,D} */
CODE(sends_all_over)
{
	struct value hello = TUPLE(heap_of(self), atom("hello"), integer(1));

	send_to(self, element(env, 0), hello);
	send_to(self, element(env, 1), atom("x"));
	send_to(self, self_pid(self), atom("me"));
	receive_value(self, atom("me"), FOREVER);
	catch_call(self, sends_to_nobody, NONE);
	receive_value(self, atom("nothing"), 5);
	return ATOM(OK);
}

static struct value pair(struct bed *b, struct value first, struct value second)
{
	return TUPLE(heap_of(b->me), first, second);
}

static struct tw_term s_send_recv(struct bed *b)
{
	struct st x = st(b, "send,receive");
	struct value q = tracee(b, "q"), d = dead(b, "dead");

	run_with(b, x.p, sends_all_over, pair(b, q, d));
	return ev_own(b, x.s);
}

CODE(sends_a_and_b)
{
	send_to(self, env, atom("a"));
	send_to(self, atom("qname"), atom("b"));
	return ATOM(OK);
}

static struct tw_term s_send_patterns(struct bed *b)
{
	struct st x = st(b, "send");
	struct value q = tracee(b, "q");
	struct tw_term rows[7];

	register_name(b->me, atom("qname"), q);
	for (unsigned i = 0; i < 7; i++) {
		static const char *const specs[] = {"true",
						    "[]",
						    "false",
						    NULL,
						    "[{[qname,'_'],[],[]}]",
						    "[{['_',a],[],[{message,hit}]}]",
						    "[{['_','$1'],[{is_atom,'$1'}],[{message,false}]}]"};
		int64_t set = specs[i] ? send_pattern(b, x.s, specs[i])
				       : send_pattern_term(x.s, lit(b, "[{[%t,'_'],[],[]}]", pid_term(b, q)));

		run_with(b, x.p, sends_a_and_b, q);
		rows[i] = lit(b, "{%t,%t}", answer(b, set), ev_own(b, x.s));
	}
	unregister_name(b->me, atom("qname"));
	return list_of(b, rows, 7);
}

CODE(receives_a_and_waits)
{
	(void)env;
	receive_value(self, atom("a"), FOREVER);
	receive_value(self, atom("no"), 3);
	return ATOM(OK);
}

/* The name of this node is read by a match specification: node() has no call in C. */
static struct tw_term s_recv_patterns(struct bed *b)
{
	struct st x = st(b, "receive");
	struct tw_term rows[5];

	for (unsigned i = 0; i < 5; i++) {
		static const char *const specs[] = {"true", "false", NULL,
						    "[{['_','$1',a],[{is_pid,'$1'}],[{message,'$1'}]}]",
						    "[{['$1',undefined,timeout],[],[{message,'$1'}]}]"};
		int64_t set = specs[i] ? recv_pattern(b, x.s, specs[i])
				       : recv_pattern_term(x.s, lit(b, "[{['$1',%t,'_'],[{'=:=','$1',{node}}],[]}]",
								    pid_term(b, self_pid(b->me))));

		send_to(b->me, x.p, atom("a"));
		run(b, x.p, receives_a_and_waits);
		rows[i] = lit(b, "{%t,%t}", answer(b, set), ev_own(b, x.s));
	}
	return list_of(b, rows, 5);
}

static struct tw_term s_send_recv_badarg(struct bed *b)
{
	/* NULL: options, which neither call has. */
	static const char *const sends[] = {"a",
					    NULL,
					    NULL,
					    "restart",
					    "[{['_','_'],[],[{caller}]}]",
					    "[{['_','_'],[],[{silent,true}]}]",
					    "[{['_','_','_'],[],[]}]",
					    "[{['_','_'],[],[{return_trace}]}]",
					    "[{['_','_'],[],[{exception_trace}]}]",
					    "[{['_','_'],[],[{enable_trace,call}]}]",
					    "[{['_','_'],[{is_seq_trace}],[]}]",
					    "[{['_','_'],[],[{current_stacktrace}]}]",
					    "[{['_','_'],[],[{process_dump}]}]"};
	static const char *const bodies[] = {"{caller}",
					     "{silent,true}",
					     "{return_trace}",
					     "{exception_trace}",
					     "{enable_trace,call}",
					     "{disable_trace,call}",
					     "{trace,[],[call]}",
					     "{get_seq_token}",
					     "{set_seq_token,label,1}",
					     "{process_dump}",
					     "{current_stacktrace}",
					     "{message,x}",
					     "{set_tcw,1}",
					     "{get_tcw}",
					     "{display,x}"};
	struct sess *s = s(b, tracer_as(b, "t"));
	struct tw_term send[13], recv[15];

	for (unsigned i = 0; i < 13; i++)
		send[i] = sends[i] ? answer(b, send_pattern(b, s, sends[i])) : lit(b, "{error,badarg}");
	for (unsigned i = 0; i < 15; i++) {
		struct tw_term body = lit(b, bodies[i]);

		recv[i] = lit(b, "{%t,%t}", body,
			      answer(b, recv_pattern_term(s, lit(b, "[{['_','_','_'],[],[%t]}]", body))));
	}
	return LIST(b, lit(b, "{send,%t}", list_of(b, send, 13)), lit(b, "{recv,%t}", list_of(b, recv, 15)),
		    lit(b, "{recv_guard,%t}", answer(b, recv_pattern(b, s, "[{['_','_','_'],[{is_seq_trace}],[]}]"))),
		    lit(b, "{recv_flags,{error,badarg}}"));
}

static struct tw_term s_recv_before_match(struct bed *b)
{
	struct st x = st(b, "receive");

	send_to(b->me, x.p, atom("never_matched"));
	pause_ms(10);
	return ev_own(b, x.s);
}

static struct tw_term s_two_sessions_send_patterns(struct bed *b)
{
	struct sess *s1 = s(b, tracer_as(b, "t1")), *s2 = s(b, tracer_as(b, "t2"));
	struct value p = tracee(b, "p"), q = tracee(b, "q");
	struct tw_term first, second, result;

	process(b, s1, p, true, "send");
	process(b, s2, p, true, "send");
	send_pattern(b, s1, "[{['_',a],[],[]}]");
	send_pattern(b, s2, "false");
	register_name(b->me, atom("qname"), q);
	run_with(b, p, sends_a_and_b, q);
	first = ev_own(b, s1);
	second = ev(b, s2);
	result = lit(b, "{%t,%t,%t,%t}", first, second, info(b, s1, lit(b, "send"), "match_spec"),
		     info(b, s2, lit(b, "send"), "match_spec"));
	unregister_name(b->me, atom("qname"));
	return lit(b, "{%t,%t,%t}", result, destroy(b, s1), destroy(b, s2));
}

const struct scenario message_scenarios[] = {
	SCENARIO(s_silent_other_events),
	SCENARIO(s_send_recv),
	SCENARIO(s_send_patterns),
	SCENARIO(s_recv_patterns),
	SCENARIO(s_send_recv_badarg),
	SCENARIO(s_recv_before_match),
	SCENARIO(s_two_sessions_send_patterns),
	{0},
};
