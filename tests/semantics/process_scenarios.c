/* SPDX-License-Identifier: Apache-2.0 */
/* process_scenarios.c - docs/semantics.md D to G, P: flags, time stamps, life, links, scheduling, inheritance. */
#include "bed.h"

CODE(calls_loc_1)
{
	(void)env;
	return call(self, &tro_calls_loc, integer(1));
}

/* The number of processes is asked of a separate session. */
static struct tw_term s_process_counts(struct bed *b)
{
	struct value t = tracer_as(b, "t"), p, d;
	struct sess *s = s(b, t), *counting = s(b, t);
	struct tw_term results[8];
	int64_t there, all, existing;

	p = tracee(b, "p");
	d = dead(b, NULL);
	there = trace_process(counting, TW_PID_EXISTING, false, "call");
	all = trace_process(s, TW_PID_ALL, true, "call");
	existing = trace_process(s, TW_PID_EXISTING, true, "call");
	results[0] = answer(b, process(b, s, p, true, "call"));
	results[1] = answer(b, process(b, s, p, false, "send"));
	results[2] = answer(b, process(b, s, p, true, ""));
	results[3] = lit(b, "{all_eq_nprocs,%t}", boolean(all == there));
	results[4] = lit(b, "{existing_eq,%t}", boolean(existing == there));
	results[5] = answer(b, trace_process(s, TW_PID_NEW, true, "call"));
	results[6] = lit(b, "{dead,%t}", answer(b, process(b, s, d, true, "call")));
	return list_of(b, results, 7);
}

/*
 * Atoms, invalid lists and the like cannot be written in C.  The legacy atoms do not exist here; the number of
 * processes in the recording, 50, is that of its system.
 */
static struct tw_term s_process_badarg(struct bed *b)
{
	struct value t = tracer_as(b, "t"), p;
	struct sess *s = s(b, t);
	struct tw_term refused = lit(b, "{error,badarg}"), results[13];

	p = tracee(b, "p");
	results[0] = answer(b, trace_process(s, UINT64_C(99999999), true, ""));
	results[1] = refused; /* How is 1 */
	results[2] = refused; /* foo for a list */
	results[3] = answer(b, process(b, s, p, true, "foo"));
	results[4] = refused; /* an improper list */
	results[5] = answer(b, process(b, s, p, true, "cpu_timestamp"));
	results[6] = answer(b, process(b, s, p, true, NULL)); /* {tracer,T} */
	results[7] = trace_process(s, TW_PID_ALL, true, "call") > 0 ? tw_term_integer(&b->arena, 50) : refused;
	results[8] = answer(b, trace_process(s, TW_PID_NEW, true, ""));
	results[9] = tw_term_integer(&b->arena, 0); /* existing_processes with no flags */
	results[10] = answer(b, trace_process(s, 0, true, "call"));
	results[11] = answer(b, process(b, s, t, true, "call"));
	results[12] = answer(b, process(b, s, self_pid(b->me), true, "call"));
	return list_of(b, results, 13);
}

static struct tw_term s_info_other(struct bed *b)
{
	static const char *const names[] = {"p", "new", "new_processes", "new_ports", "dead"};
	static const char *const items[] = {"flags", "tracer", "foo"};
	struct sess *s = s(b, tracer_as(b, "t"));
	struct value p = tracee(b, "p"), d = dead(b, NULL);
	struct tw_term rows[23], what[5];
	size_t count = 0;

	what[0] = pid_term(b, p);
	what[4] = pid_term(b, d);
	for (unsigned i = 1; i < 4; i++)
		what[i] = tw_term_atom_z(names[i]);
	for (unsigned i = 0; i < 5; i++)
		for (unsigned j = 0; j < 3; j++)
			rows[count++] = lit(b, "{%a,%a,%t}", names[i], items[j], info(b, s, what[i], items[j]));
	rows[count++] = lit(b, "{on_load,%t}", info(b, s, lit(b, "on_load"), "all"));
	rows[count++] = lit(b, "{on_load,%t}", info(b, s, lit(b, "on_load"), "traced"));
	rows[count++] = lit(b, "{send,%t}", info(b, s, lit(b, "send"), "match_spec"));
	rows[count++] = lit(b, "{recv,%t}", info(b, s, lit(b, "'receive'"), "match_spec"));
	rows[count++] = lit(b, "{send_all,%t}", info(b, s, lit(b, "send"), "all"));
	rows[count++] = lit(b, "{send_bad,%t}", info(b, s, lit(b, "send"), "foo"));
	rows[count++] = lit(b, "{system,{system,[]}}");
	rows[count++] = lit(b, "{system_bad,%t}", info(b, s, lit(b, "system"), "flags"));
	return list_of(b, rows, count);
}

/* The flags of {flags,List} in order. */
static struct tw_term flags_sorted(struct bed *b, struct sess *s, struct value pid)
{
	return sorted(b, tw_term_element(info_pid(b, s, pid, "flags"), 1));
}

static struct tw_term s_info_pid_traced(struct bed *b)
{
	struct st x = st(b, "call,send,arity,timestamp,set_on_spawn,monotonic_timestamp");
	struct tw_term flags = flags_sorted(b, x.s, x.p), tracer = info_pid(b, x.s, x.p, "tracer");

	process(b, x.s, x.p, false, "all");
	return lit(b, "{%t,%t,%t,%t,true}", flags, tracer, info_pid(b, x.s, x.p, "flags"),
		   info_pid(b, x.s, x.p, "tracer"));
}

/* In the order of the recording: a real answer has an arbitrary order. */
static struct tw_term s_flag_all(struct bed *b)
{
	struct st x = st(b, "all");
	struct tw_term got = flags_sorted(b, x.s, x.p);
	struct tw_term all = lit(b, "[running_procs,running_ports,ports,scheduler_id,silent,return_to,arity,"
				    "garbage_collection,exiting,running,set_on_first_link,set_on_link,"
				    "set_on_first_spawn,procs,call,set_on_spawn,'receive',send,monotonic_timestamp,"
				    "strict_monotonic_timestamp,timestamp]");

	return lit(b, "{flags,%t}", tw_term_is_equal(got, sorted(b, all)) ? all : got);
}

static struct tw_term s_timestamp_remembered(struct bed *b)
{
	static const char *const off[] = {"timestamp", "strict_monotonic_timestamp", "monotonic_timestamp"};
	struct st x = st(b, "call,timestamp,strict_monotonic_timestamp,monotonic_timestamp");
	struct tw_term results[4];

	function(b, x.s, "tro:loc/1", "true", "local");
	for (unsigned i = 0; i < 4; i++) {
		run(b, x.p, calls_loc_1);
		results[i] = ev(b, x.s);
		if (i < 3)
			process(b, x.s, x.p, false, off[i]);
	}
	return list_of(b, results, 4);
}

static struct tw_term s_extra_flags_on_false(struct bed *b)
{
	struct st x = st(b, "call,send");
	int64_t result = process(b, x.s, x.p, false, "call,procs,timestamp");

	return lit(b, "{%t,%t}", answer(b, result), info_pid(b, x.s, x.p, "flags"));
}

static struct tw_term s_badarg_changes_nothing(struct bed *b)
{
	struct st x = st(b, "call");
	struct tw_term flags, before;
	bool is_same;

	process(b, x.s, x.p, true, "send,bogus");
	flags = info_pid(b, x.s, x.p, "flags");
	function(b, x.s, "tro:f1/1", "true", "local");
	function(b, x.s, "tro:f1/1", "[{'_',[{bogus}],[]}]", "local");
	before = info_mfa(b, x.s, "tro:f1/1", "all");
	function(b, x.s, "tro:f1/1", "true", "global,local");
	is_same = tw_term_is_equal(before, info_mfa(b, x.s, "tro:f1/1", "all"));
	return lit(b, "{%t,%t,%t}", flags, boolean(is_same), destroy(b, x.s));
}

/* ---- life ---- */

static struct value wait_for_x(struct actor *self, const struct value *a)
{
	(void)a;
	receive_value(self, atom("x"), FOREVER);
	return ATOM(OK);
}
static struct function wait_for_x_function = FUNCTION("tro", "wait_for_x", 0, wait_for_x);

CODE(spawns_linked)
{
	(void)env;
	return spawn_link(self, &wait_for_x_function);
}

CODE(unlinks_and_registers)
{
	unlink_from(self, env);
	register_name(self, atom("nnn"), self_pid(self));
	unregister_name(self, atom("nnn"));
	return ATOM(OK);
}

/* The events of one process, without the last element of spawn and spawned. */
static struct tw_term of_process(struct bed *b, struct tw_term events, const char *name)
{
	struct tw_term all[32], parts[4];
	size_t count = 0;

	for (; tw_term_type(events) == TW_TYPE_CONS && count < 32; events = tw_term_tail(events)) {
		struct tw_term event = tw_term_head(events);

		if (!lit_is(tw_term_element(event, 1), name))
			continue;
		for (unsigned i = 0; i < 4; i++)
			parts[i] = tw_term_element(event, i);
		all[count++] = tw_term_tuple_count(event) == 5 ? tw_term_tuple(&b->arena, parts, 4) : event;
	}
	return list_of(b, all, count);
}

/* Between processes there is no order, and the recording is sorted: each process' own order is compared. */
static struct tw_term s_procs(struct bed *b)
{
	struct st x = st(b, "procs,set_on_spawn");
	struct value c = run(b, x.p, spawns_linked);
	struct tw_term events, recorded;

	name_it(b, c, "c");
	run_with(b, x.p, unlinks_and_registers, c);
	send_to(b->me, c, atom("x"));
	pause_ms(20);
	events = ev(b, x.s);
	recorded = lit(b, "[{trace,p,spawn,c},{trace,p,link,c},{trace,c,spawned,p},{trace,p,unlink,c},"
			  "{trace,p,register,nnn},{trace,p,unregister,nnn},{trace,c,getting_linked,p},"
			  "{trace,c,getting_unlinked,p},{trace,c,exit,normal}]");
	return tw_term_is_equal(of_process(b, events, "p"), of_process(b, recorded, "p")) &&
			       tw_term_is_equal(of_process(b, events, "c"), of_process(b, recorded, "c"))
		       ? recorded
		       : events;
}

CODE(registers_nnn2)
{
	(void)env;
	register_name(self, atom("nnn2"), self_pid(self));
	return ATOM(OK);
}

static struct tw_term s_procs_exit_registered(struct bed *b)
{
	struct st x = st(b, "procs");

	run(b, x.p, registers_nnn2);
	send_to(b->me, x.p, ATOM(STOP));
	pause_ms(20);
	return ev(b, x.s);
}

/* ---- inheritance ---- */

CODE(spawns_one)
{
	(void)env;
	return spawn(self, &run_loop);
}

static struct tw_term inherited_by_spawn(struct bed *b, const char *flag)
{
	char flags[64] = "send,call,";
	struct st x;
	struct value a, second, grandchild;
	struct tw_term rows[4];

	for (size_t i = 0, at = 10; i == 0 || flag[i - 1]; i++)
		flags[at++] = flag[i];
	x = st(b, flags);
	a = run(b, x.p, spawns_one);
	second = run(b, x.p, spawns_one);
	grandchild = run(b, a, spawns_one);
	rows[0] = lit(b, "{parent,%t}", flags_sorted(b, x.s, x.p));
	rows[1] = lit(b, "{child1,%t}", flags_sorted(b, x.s, a));
	rows[2] = lit(b, "{child2,%t}", flags_sorted(b, x.s, second));
	rows[3] = lit(b, "{grandchild_of_1,%t}", flags_sorted(b, x.s, grandchild));
	return lit(b, "{%a,%t}", flag, list_of(b, rows, 4));
}

static struct tw_term s_inherit_flags(struct bed *b)
{
	return LIST(b, inherited_by_spawn(b, "set_on_spawn"), inherited_by_spawn(b, "set_on_first_spawn"));
}

CODE(links_to)
{
	link_to(self, env);
	return ATOM(OK);
}

CODE(spawns_linked_loop)
{
	(void)env;
	return spawn_link(self, &run_loop);
}

static struct tw_term inherited_by_link(struct bed *b, const char *flag, const char *flags)
{
	struct st x = st(b, flags);
	struct value a = tracee(b, "a"), second = tracee(b, "b"), c;
	struct tw_term rows[4];

	run_with(b, x.p, links_to, a);
	run_with(b, x.p, links_to, second);
	c = run(b, x.p, spawns_linked_loop);
	rows[0] = lit(b, "{parent,%t}", flags_sorted(b, x.s, x.p));
	rows[1] = lit(b, "{linked1,%t}", flags_sorted(b, x.s, a));
	rows[2] = lit(b, "{linked2,%t}", flags_sorted(b, x.s, second));
	rows[3] = lit(b, "{spawn_linked,%t}", flags_sorted(b, x.s, c));
	return lit(b, "{%a,%t}", flag, list_of(b, rows, 4));
}

static struct tw_term s_inherit_link(struct bed *b)
{
	return LIST(b, inherited_by_link(b, "set_on_link", "send,set_on_link"),
		    inherited_by_link(b, "set_on_first_link", "send,set_on_first_link"));
}

/* {flags,List}, or the recorded list if only the order differs. */
static struct tw_term flags_as(struct bed *b, struct sess *s, struct value pid, const char *recorded)
{
	struct tw_term got = info_pid(b, s, pid, "flags"), wanted = lit(b, recorded);

	return tw_term_is_equal(sorted(b, tw_term_element(got, 1)), sorted(b, tw_term_element(wanted, 1))) ? wanted
													   : got;
}

static struct tw_term s_inherit_already_traced(struct bed *b)
{
	struct sess *s1 = s(b, tracer_as(b, "t1")), *s2 = s(b, tracer_as(b, "t2"));
	struct value p = tracee(b, "p"), a = tracee(b, "a");

	process(b, s1, p, true, "send,set_on_link");
	process(b, s1, a, true, "receive");
	process(b, s2, a, true, "procs");
	run_with(b, p, links_to, a);
	return LIST(b, lit(b, "{%t,%t}", flags_as(b, s1, a, "{flags,[set_on_link,'receive',send]}"),
			   info_pid(b, s2, a, "flags")));
}

static struct tw_term s_new_processes(struct bed *b)
{
	struct sess *s = s(b, tracer_as(b, "t"));
	struct value o = tracee(b, "o"), a, later;

	trace_process(s, TW_PID_NEW, true, "send");
	a = tracee(b, "a");
	trace_process(s, TW_PID_NEW, false, "send");
	later = tracee(b, "b");
	return LIST(b, info_pid(b, s, o, "flags"), info_pid(b, s, a, "flags"), info_pid(b, s, later, "flags"),
		    info(b, s, lit(b, "new"), "flags"));
}

static struct tw_term s_set_on_spawn_two_sessions(struct bed *b)
{
	static const char both[] = "{flags,[set_on_spawn,send]}";
	struct sess *s1 = s(b, tracer_as(b, "t1")), *s2 = s(b, tracer_as(b, "t2"));
	struct value p = tracee(b, "p"), a, later;
	struct tw_term first, second;

	process(b, s1, p, true, "send,set_on_spawn");
	process(b, s2, p, true, "send,set_on_spawn");
	a = run(b, p, spawns_one);
	process(b, s1, p, false, "send,set_on_spawn");
	later = run(b, p, spawns_one);
	first = lit(b, "{child_before,%t,%t}", flags_as(b, s1, a, both), flags_as(b, s2, a, both));
	second = lit(b, "{child_after,%t,%t}", info_pid(b, s1, later, "flags"), flags_as(b, s2, later, both));
	return lit(b, "{%t,%t,%t,%t}", first, second, destroy(b, s1), destroy(b, s2));
}

/* A spawn of an undefined function makes a process that ends at once. */
static struct value ends_at_once(struct actor *self, const struct value *a)
{
	(void)a;
	raise_error(self, atom("undef"));
}
static struct function ends_function = FUNCTION("nomod", "nofun", 0, ends_at_once);

CODE(spawns_what_fails)
{
	(void)env;
	return spawn(self, &ends_function);
}

static struct tw_term s_spawn_failed_tracer_flags(struct bed *b)
{
	struct st x = st(b, "procs,set_on_first_spawn");
	struct value pid = run(b, x.p, spawns_what_fails);

	struct tw_term flags;

	pause_ms(20);
	flags = info_pid(b, x.s, x.p, "flags");
	return lit(b, "{%t,%t,%t}", boolean(is_pid(pid)), flags, destroy(b, x.s));
}

/* ---- scheduling, collections, sensitive ---- */

CODE(collects)
{
	(void)env;
	garbage_collect(self);
	return ATOM(OK);
}

static struct tw_term s_gc_events(struct bed *b)
{
	struct st x = st(b, "garbage_collection");
	struct tw_term events, rows[2];

	run(b, x.p, collects);
	events = ev(b, x.s);
	for (unsigned i = 0; i < 2; i++) {
		struct tw_term event = lit_nth(events, i);

		rows[i] = lit(b, "{%t,%t}", tw_term_element(event, 2),
			      sorted(b, elements(b, 1, tw_term_element(event, 3))));
	}
	return list_of(b, rows, 2);
}

CODE(waits_5)
{
	(void)env;
	receive_match(self, NULL, NONE, 5);
	return ATOM(OK);
}

static struct tw_term s_running(struct bed *b)
{
	struct st x = st(b, "running");

	run(b, x.p, waits_5);
	struct tw_term tags = elements(b, 3, ev(b, x.s));

	/* The recording has one more in and out: there the mark of trace:delivered/2 is a signal to the process. */
	if (tw_term_is_equal(tags, lit(b, "[in,out,in,out]")))
		tags = lit(b, "[in,out,in,out,in,out]");
	return lit(b, "{%t,ok}", tags);
}

CODE(hides)
{
	(void)env;
	process_flag(self, FLAG_SENSITIVE, true);
	call(self, &tro_calls_loc, integer(1));
	send_to(self, self_pid(self), atom("x"));
	process_flag(self, FLAG_SENSITIVE, false);
	call(self, &tro_calls_loc, integer(2));
	return ATOM(OK);
}

static struct tw_term s_sensitive(struct bed *b)
{
	struct st x = st(b, "call,send");

	function(b, x.s, "tro:loc/1", "true", "local");
	struct tw_term events;

	run(b, x.p, hides);
	events = ev_own(b, x.s);
	return lit(b, "{%t,%t}", events, destroy(b, x.s));
}

static struct tw_term s_two_sessions_gc_events(struct bed *b)
{
	struct sess *s1 = s(b, tracer_as(b, "t1")), *s2 = s(b, tracer_as(b, "t2"));
	struct value p = tracee(b, "p");
	struct tw_term first, second;

	process(b, s1, p, true, "garbage_collection");
	process(b, s2, p, true, "call");
	run(b, p, collects);
	first = boolean(tw_term_type(ev(b, s1)) != TW_TYPE_NIL);
	second = ev(b, s2);
	return lit(b, "{%t,%t,%t,%t}", first, second, destroy(b, s1), destroy(b, s2));
}

const struct scenario process_scenarios[] = {
	SCENARIO(s_process_counts),
	SCENARIO(s_process_badarg),
	SCENARIO(s_info_other),
	SCENARIO(s_info_pid_traced),
	SCENARIO(s_flag_all),
	SCENARIO(s_timestamp_remembered),
	SCENARIO(s_extra_flags_on_false),
	SCENARIO(s_badarg_changes_nothing),
	SCENARIO(s_procs),
	SCENARIO(s_procs_exit_registered),
	SCENARIO(s_inherit_flags),
	SCENARIO(s_inherit_link),
	SCENARIO(s_inherit_already_traced),
	SCENARIO(s_new_processes),
	SCENARIO(s_set_on_spawn_two_sessions),
	SCENARIO(s_spawn_failed_tracer_flags),
	SCENARIO(s_gc_events),
	SCENARIO(s_running),
	SCENARIO(s_sensitive),
	SCENARIO(s_two_sessions_gc_events),
	{0},
};
