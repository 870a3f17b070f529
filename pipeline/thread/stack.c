/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stack.c - asks the run-time for callers and makes terms of them. May use any register: see
 * tw_match_run.keep_vectors.
 */
#include "pipeline/thread/stack.h"
#include "base/export.h"
#include "breakpoints/returns.h"
#include "pipeline/hit/callers.h"
#include "pipeline/hit/hit.h"
#include "pipeline/hit/special.h"
#include "tracewheel/function.h"

#include <string.h>

/* The most entries asked for; a deeper stack trace is cut there. */
#define ENTRIES_MAX 64

static tw_stack_fn _Atomic stack_fn;
static void *stack_arg;
static struct tw_term file_atom, line_atom;

TW_API void tw_runtime_stack(tw_stack_fn stack, void *arg)
{
	file_atom = tw_term_atom_z("file");
	line_atom = tw_term_atom_z("line");
	stack_arg = arg;
	/* PAIR stack.walker: release; acquire in ask(). The argument is set before the function. */
	tw_store_release(&stack_fn, stack);
}

static unsigned ask(struct tw_stack_entry *out, unsigned capacity)
{
	/* PAIR stack.walker: acquire; release in tw_runtime_stack(). */
	tw_stack_fn stack = tw_load_acquire(&stack_fn);
	unsigned count = stack ? stack(out, capacity, stack_arg) : 0;

	return count < capacity ? count : capacity;
}

/*
 * Names of declared functions are atoms. Any other name that is no atom yet becomes a binary: making an atom takes a
 * lock.
 */
static struct tw_term atom_of(struct tw_arena *arena, const char *name)
{
	struct tw_term atom = tw_term_atom_existing(name, strlen(name));

	return tw_term_is_none(atom) ? tw_term_binary(arena, name, strlen(name)) : atom;
}

/* {M,F,A}, or {M,F,A,last}. */
static struct tw_term mfa_of(struct tw_arena *arena, const struct tw_stack_entry *entry, struct tw_term last)
{
	struct tw_term parts[4] = {atom_of(arena, entry->module), atom_of(arena, entry->function),
				   tw_term_integer(arena, entry->arity), last};

	return tw_term_tuple(arena, parts, tw_term_is_none(last) ? 3 : 4);
}

/*
 * For a call through a trampoline: finds its return address. The call's frame lies below that address on the stack;
 * if the return is watched, a stub replaces the address.
 */
static bool is_native(const struct tw_thread *thread)
{
	const struct tw_hit_call *call = thread->run_call;

	return call->frame && call->frame->place->kind != TW_BP_DECLARED;
}

/* "+0x1f2a": an offset in an object, which a reader of the recording resolves. */
static struct tw_term offset_of(struct tw_arena *arena, uint64_t offset)
{
	static const char digits[] = "0123456789abcdef";
	char text[20];
	size_t at = sizeof text;

	do
		text[--at] = digits[offset & 15];
	while (offset >>= 4);
	text[--at] = 'x';
	text[--at] = '0';
	text[--at] = '+';
	return tw_term_binary(arena, text + at, sizeof text - at);
}

/* {M,F,'_'}, with a position {M,F,'_',Offset}; if the function is not known, the offset replaces its name. */
static struct tw_term native_caller(struct tw_match_run *run, bool has_line)
{
	const uint64_t *slot = (const uint64_t *)tw_hit_tls.state + 1;
	const struct tw_return_entry *watched = tw_returns_is_stub(*slot) ? tw_returns_find(slot) : NULL;
	struct tw_caller caller = tw_callers_find(watched ? watched->return_address : *slot);
	struct tw_arena *arena = tw_match_arena(run);
	struct tw_term parts[4];

	if (!caller.module)
		return tw_atom(TW_ATOM_UNDEFINED);
	parts[0] = atom_of(arena, caller.module->name);
	parts[3] = offset_of(arena, caller.offset);
	parts[1] = caller.function ? atom_of(arena, caller.function->name) : parts[3];
	/* Its arity is not known. */
	parts[2] = atom_of(arena, "_");
	return tw_term_tuple(arena, parts, has_line ? 4 : 3);
}

struct tw_term tw_stack_caller(struct tw_match_run *run)
{
	const struct tw_thread *thread = run->context;
	struct tw_stack_entry entry = {0};

	if (is_native(thread))
		return native_caller(run, false);
	return ask(&entry, 1) ? mfa_of(tw_match_arena(run), &entry, (struct tw_term){0}) : tw_atom(TW_ATOM_UNDEFINED);
}

static struct tw_term file_of(struct tw_arena *arena, const struct tw_stack_entry *entry)
{
	return tw_term_string(arena, entry->file, strlen(entry->file));
}

/* {M,F,A,{File,Line}}; {M,F,A,undefined} where the line is not known. */
struct tw_term tw_stack_caller_line(struct tw_match_run *run)
{
	struct tw_arena *arena = tw_match_arena(run);
	const struct tw_thread *thread = run->context;
	struct tw_stack_entry entry = {0};
	struct tw_term parts[2];

	if (is_native(thread))
		return native_caller(run, true);
	if (!ask(&entry, 1))
		return tw_atom(TW_ATOM_UNDEFINED);
	if (!entry.file)
		return mfa_of(arena, &entry, tw_atom(TW_ATOM_UNDEFINED));
	parts[0] = file_of(arena, &entry);
	parts[1] = tw_term_integer(arena, entry.line);
	return mfa_of(arena, &entry, tw_term_tuple(arena, parts, 2));
}

/* [{file,File},{line,Line}], or []. */
static struct tw_term location_of(struct tw_arena *arena, const struct tw_stack_entry *entry)
{
	struct tw_term file[2] = {file_atom, {0}}, line[2] = {line_atom, {0}}, both[2];

	if (!entry->file)
		return tw_term_nil();
	file[1] = file_of(arena, entry);
	line[1] = tw_term_integer(arena, entry->line);
	both[0] = tw_term_tuple(arena, file, 2);
	both[1] = tw_term_tuple(arena, line, 2);
	return tw_term_list(arena, both, 2, tw_term_nil());
}

struct tw_term tw_stack_trace(struct tw_match_run *run, uint32_t depth)
{
	struct tw_arena *arena = tw_match_arena(run);
	struct tw_stack_entry entries[ENTRIES_MAX];
	struct tw_term list = tw_term_nil();

	/* Native frames hold no pointers to each other. */
	if (is_native(run->context))
		return list;
	for (unsigned i = ask(entries, depth < ENTRIES_MAX ? depth : ENTRIES_MAX); i > 0; i--)
		list = tw_term_cons(arena, mfa_of(arena, &entries[i - 1], location_of(arena, &entries[i - 1])), list);
	return list;
}

struct tw_frame_where tw_stack_where(void)
{
	struct tw_stack_entry entry = {0};
	struct tw_frame_where where = {0};

	if (ask(&entry, 1)) {
		where.module = entry.module;
		where.function = entry.function;
		where.arity = entry.arity;
	}
	return where;
}
