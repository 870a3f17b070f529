/* SPDX-License-Identifier: Apache-2.0 */
/* play_ops.c - operations of processes (play.c lists them), and the functions of the module pl. */
#include "play.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The scenario being played; processes name those that they spawn while the tester waits for them. */
static struct bed *now;
static struct {
	struct value pid;
	const char *name;
	bool is_busy;	       /* started, and not yet awaited */
	struct tw_term answer; /* of what was started, if it came while another was awaited */
} pids[NAMES_MAX];
static size_t pid_count;
/* A process that spawns adds its child's name while the tester looks for another; a name in the table stays as it is. */
static pthread_mutex_t names_lock = PTHREAD_MUTEX_INITIALIZER;

_Noreturn void wrong(const char *what, struct tw_term term)
{
	fprintf(stderr, "play: %s: %s\n", what, lit_text(term));
	exit(2);
}

struct value known(const char *name, struct value pid)
{
	pthread_mutex_lock(&names_lock);
	if (pid_count == NAMES_MAX)
		wrong("too many names", tw_term_atom_z(name));
	pids[pid_count].pid = pid;
	pids[pid_count].is_busy = false;
	pids[pid_count].answer = (struct tw_term){0};
	pids[pid_count++].name = name;
	pthread_mutex_unlock(&names_lock);
	return pid;
}

static size_t count_known(void)
{
	pthread_mutex_lock(&names_lock);
	size_t count = pid_count;
	pthread_mutex_unlock(&names_lock);
	return count;
}

static size_t index_named(const char *name)
{
	for (size_t i = count_known(); i-- > 0;)
		if (!strcmp(pids[i].name, name))
			return i;
	wrong("no such process", tw_term_atom_z(name));
}

bool is_known(const char *name)
{
	for (size_t i = 0, count = count_known(); i < count; i++)
		if (!strcmp(pids[i].name, name))
			return true;
	return false;
}

struct value pid_named(const char *name)
{
	return pids[index_named(name)].pid;
}

const char *name_of(struct tw_term atom)
{
	const char *name = tw_term_type(atom) == TW_TYPE_ATOM ? tw_term_atom_name(atom, NULL) : NULL;

	return name ? name : "";
}

int64_t number_in(struct tw_term term)
{
	int64_t number = 0;

	if (tw_term_get_int64(term, &number))
		wrong("no number", term);
	return number;
}

/* ---- terms as values ---- */

static struct value value_on(struct heap *heap, struct tw_term term)
{
	struct value parts[16], list;
	size_t count = 0;

	switch (tw_term_type(term)) {
	case TW_TYPE_NIL: return NIL;
	case TW_TYPE_INTEGER: return integer(number_in(term));
	case TW_TYPE_ATOM: return *name_of(term) == '@' ? pid_named(name_of(term) + 1) : atom(name_of(term));
	case TW_TYPE_TUPLE:
		for (; count < tw_term_tuple_count(term) && count < 16; count++)
			parts[count] = value_on(heap, tw_term_element(term, count));
		return tuple(heap, parts, count);
	case TW_TYPE_CONS:
		list = value_on(heap, tw_term_tail(term));
		return cons(heap, value_on(heap, tw_term_head(term)), list);
	default: wrong("no value", term);
	}
}

struct value value_in(struct tw_term term)
{
	return value_on(heap_of(now->me), term);
}

static struct tw_term pid_for_name(struct tw_arena *arena, struct tw_term term, void *context)
{
	(void)context;
	if (*name_of(term) == '@')
		return tw_term_pid(arena, (uint32_t)trace_pid(pid_named(name_of(term) + 1)), 0);
	return (struct tw_term){0};
}

struct tw_term with_pids(struct bed *b, struct tw_term term)
{
	return lit_map(&b->arena, term, pid_for_name, NULL);
}

/* ---- operations ---- */

typedef struct value op_fn(struct actor *self, struct value op);

static struct value guarded(struct actor *self, struct value op);
static struct value body(struct actor *self, const struct value *arguments);

static struct function functions[] = {FUNCTION("pl", "a", 2, body), FUNCTION("pl", "b", 2, body),
				      FUNCTION("pl", "c", 2, body), LOCAL_FUNCTION("pl", "d", 2, body),
				      FUNCTION("pm", "e", 2, body)};
/* Two functions of one name. */
static struct function more[] = {FUNCTION("lists", "seq", 2, body), FUNCTION("lists", "seq", 3, body)};

static const char *verb_of(struct value op)
{
	struct value verb = tuple_count(op) ? element(op, 0) : op;
	const char *name = tag_of(verb) == TAG_ATOM ? atom_name(verb) : NULL;

	return name ? name : "";
}

static struct function *function_of(struct value op)
{
	return &functions[(unsigned)(*atom_name(element(op, 1)) - 'a') % 5];
}

CODE(send_it)
{
	send_to(self, element(env, 1), element(env, 2));
	return ATOM(OK);
}

static struct value do_send(struct actor *self, struct value op)
{
	struct exception caught;

	try_call(self, send_it, op, &caught);
	return ATOM(OK);
}

static struct value do_recv(struct actor *self, struct value op)
{
	struct value got =
		receive_value(self, element(op, 1), tuple_count(op) == 3 ? number_of(element(op, 2)) : FOREVER);

	return is_none(got) ? atom("timeout") : ATOM(OK);
}

static struct value name_spawned(struct value op, struct value pid)
{
	const char *name = atom_name(element(op, 1));

	name_it(now, known(name, pid), name);
	return pid;
}

static struct value do_spawn(struct actor *self, struct value op)
{
	return name_spawned(op, spawn(self, &run_loop));
}

static struct value do_spawn_link(struct actor *self, struct value op)
{
	return name_spawned(op, spawn_link(self, &run_loop));
}

static struct value do_link(struct actor *self, struct value op)
{
	link_to(self, element(op, 1));
	return ATOM(OK);
}

static struct value do_unlink(struct actor *self, struct value op)
{
	unlink_from(self, element(op, 1));
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

static struct value do_register(struct actor *self, struct value op)
{
	struct exception caught;

	try_call(self, name_it_so, op, &caught);
	return ATOM(OK);
}

static struct value do_exit(struct actor *self, struct value op)
{
	exit_signal(self, element(op, 1), element(op, 2));
	return ATOM(OK);
}

static struct value die(struct actor *self, struct value class, struct value reason)
{
	enum exception_class number = is_same(class, atom("error"))  ? CLASS_ERROR
				      : is_same(class, atom("exit")) ? CLASS_EXIT
								     : CLASS_THROW;

	raise_exception(self, number, reason);
}

static struct value do_die(struct actor *self, struct value op)
{
	return die(self, element(op, 1), element(op, 2));
}

static struct value set_flag(struct actor *self, struct value op, enum process_flag flag)
{
	process_flag(self, flag, is_same(element(op, 1), ATOM(TRUE)));
	return ATOM(OK);
}

static struct value do_trap(struct actor *self, struct value op)
{
	return set_flag(self, op, FLAG_TRAP_EXIT);
}

static struct value do_sensitive(struct actor *self, struct value op)
{
	return set_flag(self, op, FLAG_SENSITIVE);
}

static struct value do_monitor(struct actor *self, struct value op)
{
	monitor(self, element(op, 1));
	return ATOM(OK);
}

static struct value do_gc(struct actor *self, struct value op)
{
	(void)op;
	garbage_collect(self);
	return ATOM(OK);
}

static struct value do_sleep(struct actor *self, struct value op)
{
	receive_value(self, atom("nothing that anybody sends"), number_of(element(op, 1)));
	return ATOM(OK);
}

/* ---- sequential tracing ---- */

/* A term as a value: pids get their names. */
static struct value plain_value(struct actor *self, struct tw_term term)
{
	return tw_term_is_none(term) ? NIL : value_on(heap_of(self), named(now, term));
}

static struct value set_token(struct actor *self, struct value component, struct value value)
{
	struct terms terms;
	struct tw_term old = {0};
	int error;

	terms_init(&terms);
	error = tw_seq_set_component(&terms.arena, term_of(&terms.arena, component), term_of(&terms.arena, value),
				     &old);
	struct value result = error ? atom("badarg") : plain_value(self, old);
	terms_fini(&terms);
	return result;
}

static struct value do_set_token(struct actor *self, struct value op)
{
	struct terms terms;
	struct tw_term old = {0};

	if (tuple_count(op) == 3)
		return set_token(self, element(op, 1), element(op, 2));
	terms_init(&terms);
	int error = tw_seq_set_token_term(&terms.arena, term_of(&terms.arena, element(op, 1)), &old);
	struct value result = error ? atom("badarg") : plain_value(self, old);
	terms_fini(&terms);
	return result;
}

static struct value do_set_tokens(struct actor *self, struct value op)
{
	for (struct value rest = element(op, 1); is_box(rest, BOX_CONS); rest = tail(rest))
		set_token(self, head(rest), ATOM(TRUE));
	return ATOM(OK);
}

static struct value do_get_token(struct actor *self, struct value op)
{
	struct terms terms;
	struct tw_term got = {0};
	int error = 0;

	terms_init(&terms);
	if (tuple_count(op) == 2)
		error = tw_seq_component(&terms.arena, term_of(&terms.arena, element(op, 1)), &got);
	else
		got = tw_seq_token_term(&terms.arena);
	struct value result = error ? atom("badarg") : plain_value(self, got);
	terms_fini(&terms);
	return result;
}

static struct value do_seq_print(struct actor *self, struct value op)
{
	struct terms terms;

	(void)self;
	terms_init(&terms);
	if (tuple_count(op) == 3)
		tw_seq_print_label(term_of(&terms.arena, element(op, 1)), term_of(&terms.arena, element(op, 2)));
	else
		tw_seq_print(term_of(&terms.arena, element(op, 1)));
	terms_fini(&terms);
	return ATOM(OK);
}

static struct value do_reset_trace(struct actor *self, struct value op)
{
	(void)self, (void)op;
	tw_seq_reset_trace();
	return ATOM(TRUE);
}

/* The results of several operations. */
static struct value do_all(struct actor *self, struct value op)
{
	struct value results[16];
	size_t count = 0;

	for (struct value rest = element(op, 1); is_box(rest, BOX_CONS) && count < 16; rest = tail(rest))
		results[count++] = guarded(self, head(rest));
	return tuple(heap_of(self), results, count);
}

static struct value do_none(struct actor *self, struct value op)
{
	(void)self, (void)op;
	return ATOM(OK);
}

static struct value do_local(struct actor *self, struct value op)
{
	return call(self, function_of(op), element(op, 2), element(op, 3));
}

static struct value do_remote(struct actor *self, struct value op)
{
	return call_remote(self, function_of(op), element(op, 2), element(op, 3));
}

static void load_pm(void)
{
	static struct function *const pm[] = {&functions[4]};

	module_load(pm, 1);
}

/* The module pm anew: its functions are new ones. */
static struct value do_reload(struct actor *self, struct value op)
{
	(void)self, (void)op;
	module_unload("pm");
	load_pm();
	return ATOM(OK);
}

/* An undefined function: the process ends at once. */
static struct value undefined(struct actor *self, const struct value *a)
{
	(void)a;
	raise_error(self, atom("undef"));
}

static struct value do_spawn_undef(struct actor *self, struct value op)
{
	static struct function function = FUNCTION("nomod", "nofun", 0, undefined);

	return name_spawned(op, spawn(self, &function));
}

static struct value do_grow(struct actor *self, struct value op)
{
	struct value list = NIL;

	KEEP(self, list);
	for (int64_t i = number_of(element(op, 1)); i > 0; i--) {
		if (i % 512 == 0)
			receive_match(self, NULL, NIL, 0);
		list = cons(heap_of(self), integer(i), list);
	}
	garbage_collect(self);
	return ATOM(OK);
}

static struct value do_max_heap(struct actor *self, struct value op)
{
	process_flag(self, FLAG_MAX_HEAP_WORDS, (size_t)number_of(element(op, 1)));
	return ATOM(OK);
}

static struct value do_times(struct actor *self, struct value op)
{
	KEEP(self, op);
	for (int64_t i = 0; i < number_of(element(op, 1)); i++)
		guarded(self, element(op, 2));
	return ATOM(OK);
}

static struct value do_try(struct actor *self, struct value op);

static const struct {
	const char *verb;
	op_fn *act;
} ops[] = {
	{"send", do_send},
	{"recv", do_recv},
	{"spawn", do_spawn},
	{"spawn_link", do_spawn_link},
	{"link", do_link},
	{"unlink", do_unlink},
	{"register", do_register},
	{"unregister", do_register},
	{"exit", do_exit},
	{"die", do_die},
	{"trap", do_trap},
	{"sensitive", do_sensitive},
	{"monitor", do_monitor},
	{"gc", do_gc},
	{"sleep", do_sleep},
	{"none", do_none},
	{"set_token", do_set_token},
	{"set_tokens", do_set_tokens},
	{"get_token", do_get_token},
	{"seq_print", do_seq_print},
	{"reset_trace", do_reset_trace},
	{"all", do_all},
	{"l", do_local},
	{"x", do_remote},
	{"t", do_try},
	{"times", do_times},
	{"reload", do_reload},
	{"spawn_undef", do_spawn_undef},
	{"grow", do_grow},
	{"max_heap", do_max_heap},
};

static struct value guarded(struct actor *self, struct value op)
{
	for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
		if (!strcmp(ops[i].verb, verb_of(op)))
			return ops[i].act(self, op);
	wrong("no operation", tw_term_atom_z(verb_of(op)));
}

CODE(step_in_try)
{
	return guarded(self, env);
}

static struct value do_try(struct actor *self, struct value op)
{
	struct exception caught;
	struct value result = try_call(self, step_in_try, element(op, 1), &caught);

	return caught.class == CLASS_NONE ? result : atom("caught");
}

/* ---- functions and runs ---- */

static struct value tail_of(struct actor *self, struct value op)
{
	if (!strcmp(verb_of(op), "l"))
		return tail_call(self, function_of(op), element(op, 2), element(op, 3));
	if (!strcmp(verb_of(op), "x"))
		return tail_call_remote(self, function_of(op), element(op, 2), element(op, 3));
	if (!strcmp(verb_of(op), "ret"))
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
	/* The answer is no part of a trace. */
	tw_seq_set_token(NULL, NULL);
	return result;
}

void ops_load(void)
{
	static struct function *const pl[] = {&functions[0], &functions[1], &functions[2], &functions[3]};
	static struct function *const lists[] = {&more[0], &more[1]};

	module_load(pl, 4);
	module_load(lists, 2);
	load_pm();
}

void ops_begin(struct bed *b)
{
	now = b;
	pid_count = 0;
}

void ops_do(struct tw_term op)
{
	guarded(now->me, value_in(op));
}

struct tw_term ops_run(const char *name, struct tw_term ops)
{
	return made_plain(now, shown(now, outside_run(now->me, pid_named(name), operations, value_in(ops), 60000)));
}

void ops_start(const char *name, struct tw_term ops)
{
	struct heap *heap = heap_of(now->me);
	size_t at = index_named(name);

	pids[at].is_busy = true;
	send_to(now->me, pids[at].pid, TUPLE(heap, ATOM(RUN), self_pid(now->me), fun(heap, operations, value_in(ops))));
}

struct tw_term ops_await(const char *name)
{
	size_t at = index_named(name);
	struct value message;

	while (tw_term_is_none(pids[at].answer) && outside_receive(now->me, 60000, &message))
		for (size_t i = 0, count = count_known(); i < count && is_tagged(message, ATOM(RAN), 3); i++)
			if (is_same(element(message, 1), pids[i].pid))
				pids[i].answer = made_plain(now, shown(now, element(message, 2)));
	struct tw_term answer = pids[at].answer;
	if (tw_term_is_none(answer))
		wrong("no answer", tw_term_atom_z(name));
	pids[at].answer = (struct tw_term){0};
	pids[at].is_busy = false;
	return answer;
}

static bool is_tracer(struct value pid)
{
	for (size_t i = 0; i < now->session_count; i++)
		if (is_same(now->sessions[i].tracer, pid))
			return true;
	return is_same(pid, self_pid(now->me));
}

void ops_sync(void)
{
	for (size_t i = 0, count = count_known(); i < count; i++)
		if (!pids[i].is_busy && !is_tracer(pids[i].pid) && is_alive(now->me, pids[i].pid))
			outside_run(now->me, pids[i].pid, operations, NIL, 60000);
}
