/* SPDX-License-Identifier: Apache-2.0 */
/* match_scenarios.c - docs/semantics.md S: match specifications in real traces. */
#include "bed.h"

#include <string.h>

#define SPEC_OF(body) "[{'_',[],[" body "]}]"

CODE(calls_loc_1)
{
	(void)env;
	return call(self, &tro_calls_loc, integer(1));
}

CODE(calls_loc_1_and_9)
{
	(void)env;
	call(self, &tro_calls_loc, integer(1));
	call(self, &tro_calls_loc, integer(9));
	return ATOM(OK);
}

CODE(f1_twice)
{
	(void)env;
	call_remote(self, &tro_f1, integer(1));
	call_remote(self, &tro_f1, integer(2));
	return ATOM(OK);
}

/* The control word belongs to the program, as in OTP: other scenarios see it too, so it is restored. */
static struct tw_term s_two_sessions_tcw(struct bed *b)
{
	struct sess *s1, *s2;
	struct value p = tracee(b, "p");
	struct tw_term first, second;
	uint32_t before = tw_trace_control_word_set(0), word;

	b->makes_twins = false;
	s1 = s(b, tracer_as(b, "t1"));
	s2 = s(b, tracer_as(b, "t2"));
	process(b, s1, p, true, "call");
	process(b, s2, p, true, "call");
	/* Sessions are queried in no particular order: the first query sees 0. */
	function(b, s1, "tro:f1/1", SPEC_OF("{message,{set_tcw,7}}"), "local");
	function(b, s2, "tro:f1/1", SPEC_OF("{message,{get_tcw}}"), "local");
	run(b, p, f1_twice);
	first = ev(b, s1);
	second = ev(b, s2);
	if (tw_term_is_equal(second, lit(b, "[{trace,p,call,{tro,f1,[1]},7},{trace,p,call,{tro,f1,[2]},7}]")))
		second = lit(b, "[{trace,p,call,{tro,f1,[1]},0},{trace,p,call,{tro,f1,[2]},7}]");
	word = tw_trace_control_word_set(before);
	return lit(b, "{%d,%t,%t}", (int)word, first, second);
}

/* The run-time decides what {process_dump} shows. */
static size_t dump_process(void *context, struct tw_term pid, char *buffer, size_t bytes)
{
	static const char text[] = "=proc:\nState: Running\nSpawned as: runner:loop/0\nHeap: 233 words\n";
	size_t count = sizeof text - 1 < bytes ? sizeof text - 1 : bytes;

	(void)context, (void)pid;
	memcpy(buffer, text, count);
	return count;
}

/* A call in C has no known line: the answer has undefined or [] there, for Erlang's file and line. */
static struct tw_term give_lines(struct tw_arena *arena, struct tw_term term, void *context)
{
	(void)context;
	if (tw_term_is_equal(term, lit_in(arena, "{tro,calls_loc,1,undefined}")))
		return lit_in(arena, "{tro,calls_loc,1,{\"tro.erl\",48}}");
	if (tw_term_is_equal(term, lit_in(arena, "{tro,calls_loc,1,[]}")))
		return lit_in(arena, "{tro,calls_loc,1,[{file,\"tro.erl\"},{line,48}]}");
	return (struct tw_term){0};
}

static struct tw_term s_ms_body(struct bed *b)
{
	static const char *const bodies[] = {"[]",
					     "[{message,hi}]",
					     "[{message,true}]",
					     "[{message,false}]",
					     "[{message,{caller}}]",
					     "[{message,{caller_line}}]",
					     "[{message,{self}}]",
					     "[{message,{process_dump}}]",
					     "[{message,{get_seq_token}}]",
					     "[{message,{is_seq_trace}}]",
					     "[{message,{get_tcw}}]",
					     "[{message,'$_'}]",
					     "[{message,{current_stacktrace,1}}]",
					     "[{message,{hd,[]}}]",
					     "[{hd,[]}]"};
	static const struct tw_process_dumper dumper = {.dump = dump_process};
	struct st x = st(b, "call");
	struct tw_term rows[15];
	uint32_t word = tw_trace_control_word_set(7);

	tw_process_dump_set(&dumper);

	for (unsigned i = 0; i < 15; i++) {
		struct tw_term body = lit(b, bodies[i]), events;

		function_term(b, x.s, "tro:loc/1", lit(b, "[{'_',[],%t}]", body), "local");
		run(b, x.p, calls_loc_1);
		events = ev(b, x.s);
		rows[i] = lit(b, "{%t,%t}", body, lit_map(&b->arena, events, give_lines, NULL));
	}
	tw_trace_control_word_set(word);
	tw_process_dump_set(NULL);
	return list_of(b, rows, 15);
}

/* 'EXIT' and other non-booleans; bool for an event without one. */
static struct tw_term extras(struct bed *b, struct tw_term events)
{
	struct tw_term all[16];
	size_t count = 0;

	for (unsigned with = 0; with < 2; with++)
		for (struct tw_term rest = events; tw_term_type(rest) == TW_TYPE_CONS && count < 16;
		     rest = tw_term_tail(rest)) {
			struct tw_term event = tw_term_head(rest);

			if (!lit_is(tw_term_element(event, 2), "call"))
				continue;
			if (tw_term_tuple_count(event) == (with ? 4 : 5))
				all[count++] = with ? tw_term_atom_z("bool") : tw_term_element(event, 4);
		}
	return list_of(b, all, count);
}

static struct tw_term flags_sorted(struct bed *b, struct sess *s, struct value pid)
{
	return sorted(b, tw_term_element(info_pid(b, s, pid, "flags"), 1));
}

static struct tw_term s_ms_enable_disable(struct bed *b)
{
	struct st x = st(b, "call");
	struct value q = tracee(b, "q");
	struct tw_term pid = pid_term(b, q), rows[14];
	const struct tw_term bodies[] = {
		lit(b, "{enable_trace,send}"),
		lit(b, "{disable_trace,send}"),
		lit(b, "{enable_trace,%t,send}", pid),
		lit(b, "{disable_trace,%t,send}", pid),
		lit(b, "{enable_trace,qreg,procs}"),
		lit(b, "{enable_trace,foo}"),
		lit(b, "{enable_trace,no_such_name,send}"),
		lit(b, "{trace,[],[send]}"),
		lit(b, "{trace,[send],['receive']}"),
		lit(b, "{trace,['receive'],[]}"),
		lit(b, "{trace,%t,[procs],[send]}", pid),
		lit(b, "{trace,%t,[],[send]}", pid),
		lit(b, "{trace,[call],[]}"),
		lit(b, "{trace,[],[call]}"),
	};

	register_name(b->me, atom("qreg"), q);
	for (unsigned i = 0; i < 14; i++) {
		struct tw_term seen;

		function_term(b, x.s, "tro:loc/1", lit(b, "[{'_',[],[{message,%t}]}]", bodies[i]), "local");
		run(b, x.p, calls_loc_1);
		seen = extras(b, ev(b, x.s));
		rows[i] = lit(b, "{%t,%t,{%t,%t}}", named(b, bodies[i]), seen, flags_sorted(b, x.s, x.p),
			      flags_sorted(b, x.s, q));
	}
	unregister_name(b->me, atom("qreg"));
	return list_of(b, rows, 14);
}

static struct tw_term s_improper_head(struct bed *b)
{
	struct st x = st(b, "call");
	int64_t set = function(b, x.s, "tro:loc/1", "[{['$1'|'_'],[{'>','$1',5}],[]}]", "local");

	run(b, x.p, calls_loc_1_and_9);
	struct tw_term events = ev(b, x.s);

	return lit(b, "{%t,%t,%t}", answer(b, set), events, destroy(b, x.s));
}

static struct tw_term s_ms_arity_flag_same_call(struct bed *b)
{
	struct st x = st(b, "call");

	function(b, x.s, "tro:loc/1", SPEC_OF("{trace,[],[arity]}"), "local");
	struct tw_term events;

	run(b, x.p, calls_loc_1);
	events = ev(b, x.s);
	return lit(b, "{%t,%t}", events, destroy(b, x.s));
}

/* calls_loc(1), calls_loc(2), seq_trace:get_token(label) */
CODE(calls_twice_and_the_label)
{
	struct terms terms;
	struct tw_term got;
	int64_t label = -1;

	call(self, &tro_calls_loc, integer(1));
	call(self, &tro_calls_loc, integer(2));
	terms_init(&terms);
	if (tw_seq_component(&terms.arena, tw_term_atom_z("label"), &got) == 0)
		tw_term_get_int64(tw_term_element(got, 1), &label);
	terms_fini(&terms);
	return TUPLE(heap_of(self), atom("label"), integer(label));
}

static struct tw_term s_ms_seq_token(struct bed *b)
{
	/* A process has one token, which a twin would set first. */
	b->makes_twins = false;
	struct st x = st(b, "call");

	function(b, x.s, "tro:loc/1",
		 "[{'_',[{is_seq_trace}],[{message,had}]},"
		 "{'_',[],[{set_seq_token,label,99},{message,{get_seq_token}}]}]",
		 "local");
	struct tw_term label = shown(b, run(b, x.p, calls_twice_and_the_label)), events = ev(b, x.s);

	tw_seq_reset_trace();
	return lit(b, "{%t,%t}", label, events);
}

const struct scenario match_scenarios[] = {
	SCENARIO(s_two_sessions_tcw),
	SCENARIO(s_ms_body),
	SCENARIO(s_ms_enable_disable),
	SCENARIO(s_improper_head),
	SCENARIO(s_ms_arity_flag_same_call),
	SCENARIO(s_ms_seq_token),
	{0},
};
