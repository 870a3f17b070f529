/* SPDX-License-Identifier: Apache-2.0 */
/*
 * play.c - plays scenarios written as terms, and compares each answer with that of a real Erlang system.
 *
 *	semantics_play FILE		all of them, alone and with a twin of the session
 *	semantics_play FILE NAME...	these, and prints the answers
 *	semantics_play FILE --module ...	the same, with tracer modules in place of queues
 *
 * Goal    A line {Name,Steps,Answer} was played on OTP by oracle/player.erl; the same steps give the same answer here.
 * Method  The first thing of each scenario is a session (of OTP 25: the only one) with a tracer t.  Steps of the tester:
 *
 *	{tracee,P}  {process,Who,How,Flags}  {function,MFA,Spec,Options}  {send_pattern,Spec}  {recv_pattern,Spec}
 *	{run,P,[Op]}  {value,P,[Op]}  {do,Op}  {tell,P,Message}  {kill,P}  {gone,P}  {wait,Ms}
 *	{info,What,Item}  all_info  {tcw,N}  get_tcw  ev  ev_now  tags
 *
 * '@p' is the pid of p.  The answer is a list: what info, ev and value say, and of the other calls all that is not 1.  ev:
 * the events, those of each process in their order.  Operations of processes (Op), alone or inside calls:
 *
 *	{send,To,M} {recv,M} {recv,M,Ms} {spawn,P} {spawn_link,P} {link,P} {unlink,P} {register,N,P} {unregister,N}
 *	{exit,P,R} {die,Class,R} {trap,B} {sensitive,B} {monitor,P} gc {sleep,Ms}
 *	{l,F,Tag,Body} a local call, {x,F,Tag,Body} one that names the module, {t,Op} with what it raises caught
 *
 * The functions are pl:a/2, b/2, c/2, and d/2, which is not exported.  A Body is a list of Ops; its last is the tail: a
 * call, {ret,V}, {error,R}, {exit,R} or {throw,R}.  In answers a body is left out: {pl,a,[Tag]}.
 */
#include "bed.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LINES_MAX   4096
#define ANSWERS_MAX 256
#define STEPS_MAX   4

/* The scenario being played; processes name those that they spawn while the tester waits for them. */
static struct bed *now;
static struct {
	struct value pid;
	const char *name;
} pids[NAMES_MAX];
static size_t pid_count;

static _Noreturn void wrong(const char *what, struct tw_term term)
{
	fprintf(stderr, "play: %s: %s\n", what, lit_text(term));
	exit(2);
}

static struct value known(const char *name, struct value pid)
{
	if (pid_count == NAMES_MAX)
		wrong("too many names", tw_term_atom_z(name));
	pids[pid_count].pid = pid;
	pids[pid_count++].name = name;
	return pid;
}

static struct value pid_named(const char *name)
{
	for (size_t i = pid_count; i-- > 0;)
		if (!strcmp(pids[i].name, name))
			return pids[i].pid;
	wrong("no such process", tw_term_atom_z(name));
}

static const char *name_of(struct tw_term atom)
{
	const char *name = tw_term_type(atom) == TW_TYPE_ATOM ? tw_term_atom_name(atom, NULL) : NULL;

	return name ? name : "";
}

static int64_t number_in(struct tw_term term)
{
	int64_t number = 0;

	if (tw_term_get_int64(term, &number))
		wrong("no number", term);
	return number;
}

/* ---- terms as values ---- */

static struct value value_in(struct heap *heap, struct tw_term term)
{
	struct value parts[16], list;
	size_t count = 0;

	switch (tw_term_type(term)) {
	case TW_TYPE_NIL: return NIL;
	case TW_TYPE_INTEGER: return integer(number_in(term));
	case TW_TYPE_ATOM: return *name_of(term) == '@' ? pid_named(name_of(term) + 1) : atom(name_of(term));
	case TW_TYPE_TUPLE:
		for (; count < tw_term_tuple_count(term) && count < 16; count++)
			parts[count] = value_in(heap, tw_term_element(term, count));
		return tuple(heap, parts, count);
	case TW_TYPE_CONS:
		list = value_in(heap, tw_term_tail(term));
		return cons(heap, value_in(heap, tw_term_head(term)), list);
	default: wrong("no value", term);
	}
}

static struct tw_term with_pids(struct tw_arena *arena, struct tw_term term, void *context)
{
	(void)context;
	if (*name_of(term) == '@')
		return tw_term_pid(arena, (uint32_t)trace_pid(pid_named(name_of(term) + 1)), 0);
	return (struct tw_term){0};
}

/* ---- operations of processes ---- */

static struct value act(struct actor *self, struct value op);
static struct value body(struct actor *self, const struct value *arguments);

static struct function functions[] = {FUNCTION("pl", "a", 2, body), FUNCTION("pl", "b", 2, body),
				      FUNCTION("pl", "c", 2, body), LOCAL_FUNCTION("pl", "d", 2, body)};

static bool is_op(struct value op, const char *name)
{
	return is_same(op, atom(name)) || is_same(element(op, 0), atom(name));
}

static struct function *function_of(struct value op)
{
	return &functions[(unsigned)(*atom_name(element(op, 1)) - 'a') % 4];
}

CODE(send_it)
{
	send_to(self, element(env, 1), element(env, 2));
	return ATOM(OK);
}

CODE(name_it_so)
{
	if (tuple_count(env) == 3)
		register_name(self, element(env, 1), element(env, 2));
	else
		unregister_name(self, element(env, 1));
	return ATOM(OK);
}

static struct value spawn_it(struct actor *self, struct value op)
{
	const char *name = atom_name(element(op, 1));
	struct value pid = is_op(op, "spawn") ? spawn(self, &run_loop) : spawn_link(self, &run_loop);

	name_it(now, known(name, pid), name);
	return pid;
}

static struct value wait_for(struct actor *self, struct value op)
{
	struct value got =
		receive_value(self, element(op, 1), tuple_count(op) == 3 ? number_of(element(op, 2)) : FOREVER);

	return is_none(got) ? atom("timeout") : ATOM(OK);
}

static struct value die(struct actor *self, struct value class, struct value reason)
{
	enum exception_class number = is_same(class, atom("error"))  ? CLASS_ERROR
				      : is_same(class, atom("exit")) ? CLASS_EXIT
								     : CLASS_THROW;

	raise_exception(self, number, reason);
}

/* Operations between two processes. */
static struct value relate(struct actor *self, struct value op)
{
	struct value pid = element(op, 1);

	if (is_op(op, "link"))
		link_to(self, pid);
	else if (is_op(op, "unlink"))
		unlink_from(self, pid);
	else if (is_op(op, "monitor"))
		monitor(self, pid);
	else if (is_op(op, "exit"))
		exit_signal(self, pid, element(op, 2));
	else
		wrong("no operation", tw_term_atom_z(atom_name(element(op, 0))));
	return ATOM(OK);
}

static struct value act(struct actor *self, struct value op)
{
	struct exception caught;
	bool is_true = is_same(element(op, 1), ATOM(TRUE));

	if (is_op(op, "none"))
		return ATOM(OK);
	if (is_op(op, "send")) {
		try_call(self, send_it, op, &caught);
		return ATOM(OK);
	}
	if (is_op(op, "recv"))
		return wait_for(self, op);
	if (is_op(op, "spawn") || is_op(op, "spawn_link"))
		return spawn_it(self, op);
	if (is_op(op, "register") || is_op(op, "unregister")) {
		try_call(self, name_it_so, op, &caught);
		return ATOM(OK);
	}
	if (is_op(op, "die"))
		return die(self, element(op, 1), element(op, 2));
	if (is_op(op, "gc"))
		garbage_collect(self);
	else if (is_op(op, "sleep"))
		receive_value(self, atom("nothing that anybody sends"), number_of(element(op, 1)));
	else if (is_op(op, "trap"))
		process_flag(self, FLAG_TRAP_EXIT, is_true);
	else if (is_op(op, "sensitive"))
		process_flag(self, FLAG_SENSITIVE, is_true);
	else
		return relate(self, op);
	return ATOM(OK);
}

/* A call, or another operation. */
static struct value step_of(struct actor *self, struct value op)
{
	if (is_op(op, "l"))
		return call(self, function_of(op), element(op, 2), element(op, 3));
	if (is_op(op, "x"))
		return call_remote(self, function_of(op), element(op, 2), element(op, 3));
	return act(self, op);
}

CODE(step_in_try)
{
	return step_of(self, env);
}

static struct value guarded(struct actor *self, struct value op)
{
	struct exception caught;
	struct value result;

	if (!is_op(op, "t"))
		return step_of(self, op);
	result = try_call(self, step_in_try, element(op, 1), &caught);
	return caught.class == CLASS_NONE ? result : atom("caught");
}

static struct value tail_of(struct actor *self, struct value op)
{
	if (is_op(op, "l"))
		return tail_call(self, function_of(op), element(op, 2), element(op, 3));
	if (is_op(op, "x"))
		return tail_call_remote(self, function_of(op), element(op, 2), element(op, 3));
	if (is_op(op, "ret"))
		return element(op, 1);
	return die(self, element(op, 0), element(op, 1));
}

static struct value body(struct actor *self, const struct value *arguments)
{
	struct value rest = arguments[1];

	KEEP(self, rest);
	for (; is_box(tail(rest), BOX_CONS); rest = tail(rest))
		guarded(self, head(rest));
	return tail_of(self, head(rest));
}

CODE(operations)
{
	struct value rest = env, result = ATOM(OK);

	KEEP(self, rest);
	for (; is_box(rest, BOX_CONS); rest = tail(rest))
		result = guarded(self, head(rest));
	return result;
}

/* ---- answers ---- */

static bool is_runner(struct tw_term term)
{
	return tw_term_tuple_count(term) >= 3 && lit_is(tw_term_element(term, 0), "runner");
}

static bool is_gc(struct tw_term tag)
{
	return !strncmp(name_of(tag), "gc_", 3);
}

/* Bodies, source lines and sizes are left out; the process that runs operations is outside. */
static struct tw_term plain(struct tw_arena *arena, struct tw_term term, void *context)
{
	struct bed *b = context;
	size_t count = tw_term_tuple_count(term);
	struct tw_term first = tw_term_element(term, 0), third = tw_term_element(term, 2);

	if (is_runner(term))
		return tw_term_atom_z("outside");
	if (count == 4 && lit_is(first, "trace") && is_gc(third))
		return lit(b, "{trace,%t,%t,%t}", tw_term_element(term, 1), third,
			   sorted(b, elements(b, 1, tw_term_element(term, 3))));
	if (count == 3 && lit_is(first, "pl") && tw_term_type(third) == TW_TYPE_CONS)
		return lit(b, "{pl,%t,[%t]}", tw_term_element(term, 1), tw_term_head(third));
	if (count == 4 && lit_is(first, "pl") && tw_term_type(third) == TW_TYPE_INTEGER)
		return lit(b, "{pl,%t,%t}", tw_term_element(term, 1), third);
	(void)arena;
	return (struct tw_term){0};
}

static struct tw_term made_plain(struct bed *b, struct tw_term term)
{
	return lit_map(&b->arena, term, plain, b);
}

static bool is_run(struct tw_term event)
{
	struct tw_term tag = tw_term_element(event, 2), message = tw_term_element(event, 3),
		       first = tw_term_element(message, 0);

	return tw_term_tuple_count(message) == 3 && (lit_is(tag, "receive") || lit_is(tag, "send")) &&
	       (lit_is(first, "run") || lit_is(first, "ran"));
}

/* By process, without events of scheduling. */
static struct tw_term events_of(struct bed *b, struct sess *s)
{
	struct tw_term own[512], rest;
	size_t count = 0;

	for (rest = ev_now(b, s); tw_term_type(rest) == TW_TYPE_CONS; rest = tw_term_tail(rest)) {
		struct tw_term event = tw_term_head(rest);
		size_t at = count;

		if (is_run(event) || count == 512)
			continue;
		for (; at > 0 && tw_term_compare(tw_term_element(own[at - 1], 1), tw_term_element(event, 1)) > 0; at--)
			own[at] = own[at - 1];
		own[at] = made_plain(b, event);
		count++;
	}
	return list_of(b, own, count);
}

static struct tw_term rows_by_process(struct bed *b, struct tw_term rows)
{
	struct tw_term out[64];
	size_t count = 0;

	for (; tw_term_type(rows) == TW_TYPE_CONS && count < 64; rows = tw_term_tail(rows))
		out[count++] = lit(b, "{%t,%t}", tw_term_element(tw_term_head(rows), 0),
				   tw_term_element(tw_term_head(rows), 1));
	return sorted(b, list_of(b, out, count));
}

static struct tw_term info_of(struct bed *b, struct sess *s, struct tw_term what, const char *item)
{
	struct tw_term answer = info(b, s, what, item), value = tw_term_element(answer, 1);

	if (tw_term_tuple_count(answer) != 2)
		return made_plain(b, answer);
	if (!strcmp(item, "flags") && tw_term_type(value) == TW_TYPE_CONS)
		value = sorted(b, value);
	if (!strcmp(item, "call_time") && tw_term_type(value) == TW_TYPE_CONS)
		value = rows_by_process(b, value);
	return lit(b, "{%a,%t}", item, made_plain(b, value));
}

static struct tw_term all_info(struct bed *b, struct sess *s)
{
	static const char *const items[] = {"traced", "match_spec", "meta", "meta_match_spec", "call_count"};
	struct tw_term rows[3], row[5];

	for (unsigned f = 0; f < 3; f++) {
		for (unsigned i = 0; i < 5; i++)
			row[i] = info_of(b, s, lit(b, "{pl,%a,2}", functions[f].traced.name), items[i]);
		rows[f] = list_of(b, row, 5);
	}
	return list_of(b, rows, 3);
}

/* ---- operations of the tester ---- */

/* ["a", "b"] as "a,b"; NULL: no list, or a list with other elements. */
static const char *names_in(struct tw_term list, char *text, size_t bytes)
{
	*text = '\0';
	for (; tw_term_type(list) == TW_TYPE_CONS; list = tw_term_tail(list)) {
		if (!*name_of(tw_term_head(list)))
			return NULL;
		snprintf(text + strlen(text), bytes - strlen(text), "%s%s", *text ? "," : "",
			 name_of(tw_term_head(list)));
	}
	return tw_term_type(list) == TW_TYPE_NIL ? text : NULL;
}

static int64_t set_process(struct sess *s, struct tw_term step)
{
	const char *who = name_of(tw_term_element(step, 1));
	tw_pid pid = !strcmp(who, "existing") ? TW_PID_EXISTING
		     : !strcmp(who, "new")    ? TW_PID_NEW
		     : !strcmp(who, "all")    ? TW_PID_ALL
					      : trace_pid(pid_named(who + 1));
	char flags[512];
	int64_t count = trace_process(s, pid, lit_is(tw_term_element(step, 2), "true"),
				      names_in(tw_term_element(step, 3), flags, sizeof flags));

	return (pid == TW_PID_EXISTING || pid == TW_PID_ALL) && count > 0 ? 1 : count;
}

static int64_t set_function(struct bed *b, struct sess *s, struct tw_term step)
{
	struct tw_term mfa = tw_term_element(step, 1), spec = tw_term_element(step, 2);
	char text[300], options[200];

	if (tw_term_type(mfa) == TW_TYPE_ATOM)
		snprintf(text, sizeof text, "%s", name_of(mfa));
	else
		snprintf(text, sizeof text, "%s:%s/%s", name_of(tw_term_element(mfa, 0)),
			 name_of(tw_term_element(mfa, 1)),
			 *name_of(tw_term_element(mfa, 2)) ? "_" : lit_text(tw_term_element(mfa, 2)));
	if (!names_in(tw_term_element(step, 3), options, sizeof options))
		return TW_EBADARG;
	if (tw_term_type(spec) == TW_TYPE_CONS)
		return function_term(b, s, text, lit_map(&b->arena, spec, with_pids, NULL), options);
	return function(b, s, text, tw_term_type(spec) == TW_TYPE_NIL ? "[]" : name_of(spec), options);
}

static int64_t set_messages(struct bed *b, struct sess *s, struct tw_term step, bool is_send)
{
	struct tw_term spec = tw_term_element(step, 1);

	if (tw_term_type(spec) == TW_TYPE_CONS) {
		spec = lit_map(&b->arena, spec, with_pids, NULL);
		return is_send ? send_pattern_term(s, spec) : recv_pattern_term(s, spec);
	}
	return (is_send ? send_pattern : recv_pattern)(b, s, tw_term_type(spec) == TW_TYPE_NIL ? "[]" : name_of(spec));
}

static struct tw_term play_run(struct bed *b, const char *name, struct tw_term ops)
{
	return made_plain(b, shown(b, outside_run(b->me, pid_named(name), operations, value_in(heap_of(b->me), ops),
						  60000)));
}

/* Waits until the library has forgotten it: its last event is made. */
static void wait_gone(struct bed *b, struct value pid)
{
	struct tw_term list;

	for (unsigned i = 0; i < 60000; i++) {
		tw_session_info(pid_term(b, pid), &b->arena, &list);
		if (lit_is(list, "undefined"))
			return;
		pause_ms(1);
	}
	wrong("it lives", pid_term(b, pid));
}

/* Waits until all processes have taken their messages. */
static void sync_all(struct bed *b)
{
	for (size_t i = 0; i < pid_count; i++)
		if (strcmp(pids[i].name, "me") && strcmp(pids[i].name, "t") && is_alive(b->me, pids[i].pid))
			outside_run(b->me, pids[i].pid, operations, NIL, 60000);
}

/* Operations that set something; the result is in the answer if it is not 1. */
static bool play_setting(struct bed *b, struct sess *s, struct tw_term step, int64_t *result)
{
	const char *verb = name_of(tw_term_element(step, 0));

	if (!strcmp(verb, "process"))
		*result = set_process(s, step);
	else if (!strcmp(verb, "function"))
		*result = set_function(b, s, step);
	else if (!strcmp(verb, "send_pattern") || !strcmp(verb, "recv_pattern"))
		*result = set_messages(b, s, step, *verb == 's');
	else
		return false;
	return true;
}

static bool play_asking(struct bed *b, struct sess *s, struct tw_term step, struct tw_term *told)
{
	const char *verb = name_of(tw_term_type(step) == TW_TYPE_ATOM ? step : tw_term_element(step, 0));

	if (!strcmp(verb, "ev"))
		sync_all(b);
	if (!strcmp(verb, "ev") || !strcmp(verb, "ev_now"))
		*told = events_of(b, s);
	else if (!strcmp(verb, "tags"))
		*told = elements(b, 3, events_of(b, s));
	else if (!strcmp(verb, "all_info"))
		*told = all_info(b, s);
	else if (!strcmp(verb, "get_tcw"))
		*told = lit(b, "{tcw,%d}", (int)tw_trace_control_word_get());
	else if (!strcmp(verb, "info"))
		*told = info_of(b, s, lit_map(&b->arena, tw_term_element(step, 1), with_pids, NULL),
				name_of(tw_term_element(step, 2)));
	else if (!strcmp(verb, "value"))
		*told = lit(b, "{value,%t}", play_run(b, name_of(tw_term_element(step, 1)), tw_term_element(step, 2)));
	else
		return false;
	return true;
}

static void play_acting(struct bed *b, struct tw_term step)
{
	const char *verb = name_of(tw_term_element(step, 0)), *name = name_of(tw_term_element(step, 1));
	struct heap *heap = heap_of(b->me);

	if (!strcmp(verb, "tracee"))
		known(name, tracee(b, name));
	else if (!strcmp(verb, "run"))
		play_run(b, name, tw_term_element(step, 2));
	else if (!strcmp(verb, "do"))
		act(b->me, value_in(heap, tw_term_element(step, 1)));
	else if (!strcmp(verb, "tell"))
		send_to(b->me, pid_named(name), value_in(heap, tw_term_element(step, 2)));
	else if (!strcmp(verb, "wait"))
		pause_ms((unsigned)number_in(tw_term_element(step, 1)));
	else if (!strcmp(verb, "tcw"))
		tw_trace_control_word_set((uint32_t)number_in(tw_term_element(step, 1)));
	else if (!strcmp(verb, "kill") || !strcmp(verb, "gone")) {
		if (*verb == 'k')
			exit_signal(b->me, pid_named(name), ATOM(KILL));
		wait_gone(b, pid_named(name));
	} else
		wrong("no step", step);
}

static struct tw_term play_steps(struct bed *b, struct tw_term steps)
{
	struct value t = tracer_as(b, "t");
	struct sess *s = s(b, t);
	struct tw_term told[ANSWERS_MAX];
	size_t count = 0;

	pid_count = 0;
	known("me", self_pid(b->me));
	known("t", t);
	for (; tw_term_type(steps) == TW_TYPE_CONS && count < ANSWERS_MAX; steps = tw_term_tail(steps)) {
		struct tw_term step = tw_term_head(steps);
		int64_t result = 1;

		if (play_asking(b, s, step, &told[count]))
			count++;
		else if (!play_setting(b, s, step, &result))
			play_acting(b, step);
		else if (result != 1)
			told[count++] = answer(b, result);
	}
	return list_of(b, told, count);
}

static void begin(struct bed *b, bool has_twins, bool has_modules)
{
	static struct function *const all[] = {&functions[0], &functions[1], &functions[2], &functions[3]};

	now = b;
	tw_arena_init(&b->arena, SIZE_MAX);
	b->has_twins = has_twins;
	b->has_modules = has_modules;
	b->makes_twins = true;
	b->runtime = runtime_start(&(struct runtime_options){.schedulers = 2});
	b->me = outside_create(b->runtime);
	name_it(b, self_pid(b->me), "me");
	module_load(all, 4);
	tw_trace_control_word_set(0);
}

static void end(struct bed *b)
{
	close_sessions(b);
	for (size_t i = 0; i < b->program_count; i++)
		tw_match_destroy(b->programs[i]);
	outside_destroy(b->me);
	runtime_stop(b->runtime);
	tw_arena_fini(&b->arena);
}

/* The control word belongs to the program: a twin would see the other's. */
static bool mentions_tcw(struct tw_term term)
{
	size_t count = tw_term_tuple_count(term);

	for (size_t i = 0; i < count; i++)
		if (mentions_tcw(tw_term_element(term, i)))
			return true;
	for (; tw_term_type(term) == TW_TYPE_CONS; term = tw_term_tail(term))
		if (mentions_tcw(tw_term_head(term)))
			return true;
	return lit_is(term, "set_tcw");
}

/* The first position in which two lists differ, as deep as possible. */
static void show_difference(struct tw_term a, struct tw_term b)
{
	while (tw_term_type(a) == TW_TYPE_CONS && tw_term_type(b) == TW_TYPE_CONS) {
		if (!tw_term_is_equal(tw_term_head(a), tw_term_head(b))) {
			if (tw_term_type(tw_term_head(a)) != TW_TYPE_CONS ||
			    tw_term_type(tw_term_head(b)) != TW_TYPE_CONS)
				break;
			a = tw_term_head(a);
			b = tw_term_head(b);
			continue;
		}
		a = tw_term_tail(a);
		b = tw_term_tail(b);
	}
	printf("from here on:\n  %s\nrecorded:\n  %s\n", lit_text(a), lit_text(b));
}

static bool play(struct tw_term line, bool has_twins, bool is_shown, bool has_modules)
{
	struct bed *b = calloc(1, sizeof *b);
	struct tw_term result, expected = tw_term_element(line, 2);
	bool is_same;

	begin(b, has_twins, has_modules);
	result = play_steps(b, tw_term_element(line, 1));
	is_same = !tw_term_is_none(expected) && tw_term_is_equal(result, expected);
	if (is_shown || !is_same)
		printf("%s%s:\n  %s\n", name_of(tw_term_element(line, 0)), has_twins ? ", with a twin" : "",
		       lit_text(result));
	if (!is_same) {
		printf("recorded:\n  %s\nof:\n  %s\n", lit_text(expected), lit_text(tw_term_element(line, 1)));
		show_difference(result, expected);
	}
	end(b);
	free(b);
	return is_same;
}

static bool is_asked(int count, char **names, struct tw_term name)
{
	for (int i = 0; i < count; i++)
		if (!strcmp(names[i], name_of(name)))
			return true;
	return count == 0;
}

static char *read_all(const char *path, size_t *bytes)
{
	FILE *file = fopen(path, "r");
	char *text;
	long end = 0;

	if (!file || fseek(file, 0, SEEK_END) || (end = ftell(file)) <= 0) {
		perror(path);
		exit(2);
	}
	rewind(file);
	text = malloc((size_t)end);
	*bytes = fread(text, 1, (size_t)end, file);
	fclose(file);
	return text;
}

int main(int argc, char **argv)
{
	struct tw_arena arena;
	struct tw_parser parser = {0};
	struct tw_term line;
	unsigned played = 0, failed = 0;
	bool has_modules = false;
	int error;

	if (argc < 2)
		return 2;
	if (argc > 2 && !strcmp(argv[2], "--module")) {
		has_modules = true;
		argv[2] = argv[1];
		argv++;
		argc--;
	}
	tw_arena_init(&arena, SIZE_MAX);
	parser.text = read_all(argv[1], &parser.bytes);
	while (!(error = tw_parse_next(&parser, &arena, &line)))
		for (unsigned twins = 0; twins < 2 && is_asked(argc - 2, argv + 2, tw_term_element(line, 0)); twins++) {
			if (twins && mentions_tcw(line))
				continue;
			played++;
			failed += !play(line, twins, argc > 2, has_modules);
		}
	printf("%u plays, %u answered otherwise\n", played, failed);
	tw_arena_fini(&arena);
	free((char *)parser.text);
	return failed || !played;
}
