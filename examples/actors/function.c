/* SPDX-License-Identifier: Apache-2.0 */
/* function.c - calls, tail calls and exceptions. */
#include "run.h"

#include "trace.h"

#include <stdlib.h>
#include <string.h>

/* ---- modules ---- */

void module_load(struct function *const *functions, size_t count)
{
	for (size_t i = 0; i < count; i++)
		trace_declare(functions[i]);
}

void module_unload(const char *module)
{
	trace_unload(module);
}

/* ---- calls ---- */

static void enter(struct call_frame *frame, struct function *function, const struct value *arguments)
{
	frame->function = function;
	for (unsigned i = 0; i < function->traced.arity; i++)
		frame->arguments[i] = arguments[i];
}

struct value call_with(struct actor *self, struct function *function, const struct value *arguments,
		       enum call_kind kind)
{
	struct call_frame frame;
	enter(&frame, function, arguments);
	frame.caller = self->frame;
	self->frame = &frame;
	trace_enter(self, &frame, kind);
	struct value result;
	for (;;) {
		if (--self->reductions <= 0 && !self->is_outside)
			yield(self);
		result = frame.function->body(self, frame.arguments);
		if (!self->tail_function)
			break;
		/* The frame is passed on: its traced call ends with the last function of the chain. */
		enter(&frame, self->tail_function, self->tail_arguments);
		self->tail_function = NULL;
		trace_tail(self, &frame, self->tail_kind);
	}
	trace_leave(self, &frame, result);
	self->frame = frame.caller;
	return result;
}

struct value tail_call_with(struct actor *self, struct function *function, const struct value *arguments,
			    enum call_kind kind)
{
	self->tail_function = function;
	self->tail_kind = kind;
	for (unsigned i = 0; i < function->traced.arity; i++)
		self->tail_arguments[i] = arguments[i];
	return NONE;
}

/* ---- exceptions ---- */

_Noreturn void raise_exception(struct actor *self, enum exception_class class, struct value value)
{
	struct catcher *catcher = self->catcher;
	trace_raise(self, catcher ? catcher->frame : NULL, class, value);
	if (!catcher) {
		if (class == CLASS_THROW)
			value = TUPLE(&self->heap, ATOM(NOCATCH), value);
		if (class != CLASS_EXIT)
			value = TUPLE(&self->heap, value, NIL);
		actor_end(self, value);
	}
	*catcher->caught = (struct exception){class, value};
	self->catcher = catcher->outer;
	self->frame = catcher->frame;
	self->kept = catcher->kept;
	_longjmp(catcher->point, 1);
}

struct value try_call(struct actor *self, fun_code *code, struct value environment, struct exception *caught)
{
	struct catcher catcher = {.outer = self->catcher, .frame = self->frame, .kept = self->kept, .caught = caught};
	*caught = (struct exception){0};
	if (_setjmp(catcher.point))
		return NONE;
	self->catcher = &catcher;
	struct value result = code(self, environment);
	self->catcher = catcher.outer;
	return result;
}

struct value catch_call(struct actor *self, fun_code *code, struct value environment)
{
	struct exception caught;
	struct value result = try_call(self, code, environment, &caught);
	switch (caught.class) {
	case CLASS_NONE: return result;
	case CLASS_THROW: return caught.value;
	case CLASS_ERROR: caught.value = TUPLE(&self->heap, caught.value, NIL); /* FALLTHROUGH */
	default: return TUPLE(&self->heap, ATOM(EXIT), caught.value);
	}
}
