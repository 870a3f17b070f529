/* SPDX-License-Identifier: Apache-2.0 */
/* trace.c - values as terms, and the slow paths of trace.h. */
#include "trace.h"

#ifndef ACTORS_NO_TRACE

#include "term.h"

#define WORDS_MAX 6 /* words of a call that is reported as words */

/* ---- life ---- */

static struct tw_term entry_term(struct tw_arena *arena, struct function *function, const struct value *arguments)
{
	struct tw_term list[ARITY_MAX];
	unsigned arity = function->traced.arity;
	for (unsigned i = 0; i < arity; i++)
		list[i] = term_of(arena, arguments[i]);
	struct tw_term parts[3] = {tw_term_atom_z(function->traced.module), tw_term_atom_z(function->traced.name),
				   tw_term_list(arena, list, arity, tw_term_nil())};
	return tw_term_tuple(arena, parts, 3);
}

uint64_t trace_spawn(struct actor *parent, struct actor *child, struct function *function,
		     const struct value *arguments, bool is_linked)
{
	struct terms terms;
	struct tw_spawn spawn = {.name = function ? function->traced.name : "outside",
				 .parent = parent ? parent->process : NULL,
				 .is_linked = is_linked};
	terms_init(&terms);
	if (function && tw_runtime_wants(TW_WANTS_PROCS | TW_WANTS_SEQ))
		spawn.entry = entry_term(&terms.arena, function, arguments);
	int error = tw_process_spawn(&spawn, &child->process);
	terms_fini(&terms);
	return error ? next_number(child->runtime) | 1ull << 34 : tw_process_pid(child->process);
}

void trace_exiting(struct actor *self, struct value reason)
{
	struct terms terms;
	terms_init(&terms);
	if (self->process)
		tw_process_exiting(self->process, term_of(&terms.arena, reason));
	terms_fini(&terms);
}

void trace_register(struct actor *actor, struct value name)
{
	tw_process_register(actor->process, term_of(NULL, name));
}

/* ---- messages ---- */

void trace_send_slow(struct actor *self, struct value to, struct value pid, struct value message)
{
	struct terms terms;
	if (!tw_process_wants(self->process, TW_WANTS_SEND))
		return;
	terms_init(&terms);
	struct tw_term term = term_of(&terms.arena, message), to_term = term_of(&terms.arena, to);
	/* It may end between here and the message's arrival: then the message was sent, but not received. */
	if (is_none(pid) || is_alive(self, pid))
		tw_process_send(self->process, term, to_term);
	else
		tw_process_send_to_nobody(self->process, term, to_term);
	terms_fini(&terms);
}

void trace_signal_slow(struct actor *actor, struct signal *signal)
{
	struct terms terms;
	if (signal->kind == SIGNAL_LINK) {
		struct actor *from = (struct actor *)(uintptr_t)signal->number;
		tw_process_link(from->process, actor->process);
	} else if (signal->kind == SIGNAL_MESSAGE && tw_process_wants(actor->process, TW_WANTS_RECEIVE)) {
		terms_init(&terms);
		tw_process_receive(actor->process, term_of(&terms.arena, signal->value),
				   term_of(&terms.arena, signal->from));
		terms_fini(&terms);
	}
}

/* ---- sequential tracing ---- */

static struct tw_term exit_term(struct tw_arena *arena, struct actor *self, struct value reason)
{
	struct tw_term parts[3] = {tw_term_atom_z("EXIT"), tw_process_term(arena, self->process),
				   term_of(arena, reason)};
	return tw_term_tuple(arena, parts, 3);
}

void trace_token_send_slow(struct actor *self, struct value pid, struct signal *signal, bool is_exit)
{
	struct tw_term message = {0}, to = {0};
	struct terms terms;
	/* A message to no actor is not passed on, and makes no event. */
	if (!is_pid(pid) || !is_alive(self, pid))
		return;
	terms_init(&terms);
	if (tw_seq_wants_send(self->process)) {
		message = is_exit ? exit_term(&terms.arena, self, signal->value) : term_of(&terms.arena, signal->value);
		to = term_of(&terms.arena, pid);
	}
	tw_seq_send(self->process, to, message, &signal->traced.token);
	terms_fini(&terms);
}

void trace_token_receive_slow(struct actor *self, const struct signal *signal)
{
	struct tw_term message = {0};
	struct terms terms;
	if (!signal->traced.is_carrier)
		return;
	terms_init(&terms);
	if (tw_seq_wants_receive(self->process, &signal->traced.token))
		message = term_of(&terms.arena, signal->value);
	tw_seq_receive(self->process, &signal->traced.token, message);
	terms_fini(&terms);
}

/* ---- ports ---- */

uint64_t trace_port_open(struct runtime *runtime, struct actor *self, bool is_listening, tw_port *port)
{
	struct tw_port_options options = {.driver = "tcp_inet",
					  .name = is_listening ? "tcp_inet, listening" : NULL,
					  .opener = self ? self->process : NULL,
					  .is_linked = true};
	*port = 0;
	return tw_port_open(&options, port) ? next_number(runtime) | 1ull << 34 : tw_port_number(*port);
}

void trace_port_command_slow(tw_port port, struct value from, const void *bytes, size_t count)
{
	struct terms terms;
	terms_init(&terms);
	tw_port_request(port, trace_pid(from), TW_PORT_COMMAND, tw_term_binary(&terms.arena, bytes, count));
	terms_fini(&terms);
}

void trace_port_send_slow(tw_port port, struct value to, struct value message)
{
	struct terms terms;
	terms_init(&terms);
	tw_port_send(port, term_of(&terms.arena, message), term_of(&terms.arena, to));
	terms_fini(&terms);
}

struct tw_declared_function trace_mailbox_take = TW_DECLARED_FUNCTION("mailbox", "take", 1);
struct tw_declared_function trace_mailbox_wait = TW_DECLARED_FUNCTION("mailbox", "wait", 0);

void trace_mailboxes(void)
{
	tw_function_declare(&trace_mailbox_take);
	tw_function_declare(&trace_mailbox_wait);
}

/* ---- calls ---- */

/*
 * Reports the words that the actor has taken since the last report.  At the ends of functions only: between two ends
 * all belong to one function, and the heap need not count.
 */
static void tell_words(struct actor *self)
{
	if (!self)
		return;
	uint64_t taken = heap_taken(&self->heap);
	tw_process_allocated(taken - self->heap.words_reported);
	self->heap.words_reported = taken;
}

/* Words cost less than terms, and are equivalent for numbers from 0 on. */
static bool are_words(const struct call_frame *frame, uint64_t *words)
{
	unsigned arity = frame->function->traced.arity;
	for (unsigned i = 0; i < arity; i++) {
		if (!is_integer(frame->arguments[i]) || number_of(frame->arguments[i]) < 0)
			return false;
		words[i] = (uint64_t)number_of(frame->arguments[i]);
	}
	return arity <= WORDS_MAX;
}

void trace_call_slow(struct call_frame *frame, enum call_kind kind, bool is_tail)
{
	struct tw_declared_function *function = &frame->function->traced;
	struct tw_frame_call call = {.count = function->arity, .is_local = kind == CALL_LOCAL};
	struct tw_term list[ARITY_MAX];
	uint64_t words[ARITY_MAX];
	struct terms terms;
	tell_words(trace_running);
	terms_init(&terms);
	if (are_words(frame, words)) {
		call.words = words;
	} else {
		for (unsigned i = 0; i < call.count; i++)
			list[i] = term_of(&terms.arena, frame->arguments[i]);
		call.terms = list;
		call.has_terms = 1;
	}
	if (is_tail)
		tw_tail(function, &frame->traced, &call);
	else
		tw_enter(function, &frame->traced, &call);
	terms_fini(&terms);
}

void trace_leave_slow(struct call_frame *frame, struct value result)
{
	struct terms terms;
	tell_words(trace_running);
	terms_init(&terms);
	tw_leave_term(&frame->traced, term_of(&terms.arena, result));
	terms_fini(&terms);
}

static struct tw_stack_entry stack_entry(const struct call_frame *frame)
{
	const struct tw_declared_function *function = &frame->function->traced;
	return (struct tw_stack_entry){.module = function->module,
				       .function = function->name,
				       .arity = function->arity};
}

void trace_raise(struct actor *self, struct call_frame *to, enum exception_class class, struct value value)
{
	static const enum tw_exception_class classes[] =
		{[CLASS_ERROR] = TW_CLASS_ERROR, [CLASS_EXIT] = TW_CLASS_EXIT, [CLASS_THROW] = TW_CLASS_THROW};
	struct call_frame *frame = self->frame;
	while (frame != to && !frame->traced.is_open)
		frame = frame->caller;
	if (frame == to)
		return;
	struct terms terms;
	tell_words(self);
	terms_init(&terms);
	struct tw_raise raise = TW_RAISE(classes[class], term_of(&terms.arena, value));
	for (; frame != to; frame = frame->caller)
		tw_unwind(&frame->traced, &raise);
	if (to) {
		struct tw_stack_entry catcher = stack_entry(to);
		tw_caught(&raise, &catcher);
	}
	terms_fini(&terms);
}

/* ---- the actor's current function ---- */

_Thread_local struct actor *trace_running;

/* From the caller of the innermost function on. */
static unsigned walk_stack(struct tw_stack_entry *out, unsigned capacity, void *unused)
{
	const struct call_frame *frame = trace_running ? trace_running->frame : NULL;
	unsigned count = 0;
	while (frame && frame->caller && count < capacity) {
		frame = frame->caller;
		out[count++] = stack_entry(frame);
	}
	return count;
}

/* Before threads exist. */
__attribute__((constructor)) static void tell_of_stack(void)
{
	tw_runtime_stack(walk_stack, NULL);
}

/* ---- collections ---- */

static size_t used(const struct space *space)
{
	return (size_t)(space->at - space->start);
}

static size_t words_of(const struct space *space)
{
	return (size_t)(space->end - space->start);
}

void trace_gc_slow(struct actor *self, enum tw_gc_event event, size_t words)
{
	const struct heap *heap = &self->heap;
	/* Binaries are on the heap like everything else, so there is no virtual heap for them. */
	struct tw_gc_sizes sizes = {.heap_size = used(&heap->young),
				    .heap_block_size = words_of(&heap->young),
				    .old_heap_size = used(&heap->old),
				    .old_heap_block_size = words_of(&heap->old),
				    .stack_size = roots_of(self),
				    .recent_size = (uint64_t)(heap->mark - heap->young.start),
				    .mbuf_size = heap->fragment_words,
				    .wordsize = words};
	tw_process_gc(self->process, event, &sizes);
}

#endif
