/* SPDX-License-Identifier: Apache-2.0 */
/* collect.c - when an actor collects, and the roots of its collector. */
#include "run.h"

#include "trace.h"

struct kept keep(struct actor *self, struct value *variable, struct kept *kept)
{
	struct kept result = {self, self->kept, variable};
	self->kept = kept;
	return result;
}

void unkeep(struct kept *kept)
{
	kept->self->kept = kept->next;
}

static void visit(void *context, struct collection *collection, look *look)
{
	struct actor *self = context;
	for (struct kept *kept = self->kept; kept; kept = kept->next)
		look(collection, kept->variable);
	for (struct call_frame *frame = self->frame; frame; frame = frame->caller) {
		for (unsigned i = 0; i < frame->function->traced.arity; i++)
			look(collection, &frame->arguments[i]);
	}
	for (unsigned i = 0; self->entry && i < self->entry->traced.arity; i++)
		look(collection, &self->arguments[i]);
}

size_t roots_of(struct actor *self)
{
	size_t count = self->entry ? self->entry->traced.arity : 0;
	for (struct kept *kept = self->kept; kept; kept = kept->next)
		count++;
	for (struct call_frame *frame = self->frame; frame; frame = frame->caller)
		count += frame->function->traced.arity;
	return count;
}

void collect(struct actor *self, bool is_major)
{
	struct heap *heap = &self->heap;
	is_major |= heap_needs_major(heap);
	trace_gc_start(self, is_major);
	size_t reclaimed = heap_collect(heap, is_major, visit, self);
	bool is_over_limit = heap->max_words && heap_words(heap) > heap->max_words;
	if (is_over_limit)
		trace_gc_max_heap_size(self);
	trace_gc_end(self, is_major, reclaimed);
	if (is_over_limit)
		actor_end(self, ATOM(KILLED));
}

void garbage_collect(struct actor *self)
{
	collect(self, true);
}

uint64_t collections_of(struct actor *self)
{
	return self->heap.collections;
}
