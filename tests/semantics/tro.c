/* SPDX-License-Identifier: Apache-2.0 */
/* tro.c - the functions that the scenarios trace, as in the recorded module. */
#include "bed.h"

#define BODY(name) static struct value name(struct actor *self, const struct value *a)

BODY(f1)
{
	(void)self;
	return a[0];
}
struct function tro_f1 = FUNCTION("tro", "f1", 1, f1);

BODY(bot)
{
	if (is_same(a[0], atom("die")))
		raise_error(self, atom("oops"));
	return is_tagged(a[0], atom("tail"), 2) ? element(a[0], 1) : a[0];
}
struct function tro_bot = FUNCTION("tro", "bot", 1, bot);

BODY(mid)
{
	return cons(heap_of(self), call(self, &tro_bot, a[0]), integer(2));
}
struct function tro_mid = FUNCTION("tro", "mid", 1, mid);

BODY(top)
{
	return cons(heap_of(self), call(self, &tro_mid, a[0]), integer(1));
}
struct function tro_top = FUNCTION("tro", "top", 1, top);

BODY(t3)
{
	if (is_same(a[0], atom("die")))
		raise_error(self, atom("oops"));
	return a[0];
}
struct function tro_t3 = FUNCTION("tro", "t3", 1, t3);

BODY(t2)
{
	return tail_call(self, &tro_t3, a[0]);
}
struct function tro_t2 = FUNCTION("tro", "t2", 1, t2);

BODY(t1)
{
	return tail_call(self, &tro_t2, a[0]);
}
struct function tro_t1 = FUNCTION("tro", "t1", 1, t1);

BODY(ttop)
{
	return cons(heap_of(self), call(self, &tro_t1, a[0]), NIL);
}
struct function tro_ttop = FUNCTION("tro", "ttop", 1, ttop);

BODY(down)
{
	return number_of(a[0]) ? tail_call(self, &tro_down, integer(number_of(a[0]) - 1)) : integer(0);
}
struct function tro_down = FUNCTION("tro", "down", 1, down);

static struct value wrap(struct actor *self, struct value result)
{
	return TUPLE(heap_of(self), atom("r"), result);
}

BODY(rt)
{
	return wrap(self, call(self, &tro_top, a[0]));
}
struct function tro_rt = FUNCTION("tro", "rt", 1, rt);

void tro_load(void)
{
	static struct function *const functions[] = {&tro_f1, &tro_top, &tro_mid, &tro_bot,  &tro_ttop,
						     &tro_t1, &tro_t2,	&tro_t3,  &tro_down, &tro_rt};

	module_load(functions, sizeof functions / sizeof *functions);
}
