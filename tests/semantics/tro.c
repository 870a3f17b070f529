/* SPDX-License-Identifier: Apache-2.0 */
/* tro.c - the functions that the scenarios trace, as in the recorded module. */
#include "bed.h"

#define BODY(name) static struct value name(struct actor *self, const struct value *a)

BODY(f0)
{
	(void)self, (void)a;
	return ATOM(OK);
}
struct function tro_f0 = FUNCTION("tro", "f0", 0, f0);

BODY(f1)
{
	(void)self;
	return a[0];
}
struct function tro_f1 = FUNCTION("tro", "f1", 1, f1);

BODY(loc)
{
	(void)self;
	return integer(number_of(a[0]) + 1);
}
struct function tro_loc = FUNCTION("tro", "loc", 1, loc);

BODY(calls_loc)
{
	return integer(2 * number_of(call(self, &tro_loc, a[0])));
}
struct function tro_calls_loc = FUNCTION("tro", "calls_loc", 1, calls_loc);

BODY(calls_ext)
{
	return integer(2 * number_of(call_remote(self, &tro_loc, a[0])));
}
struct function tro_calls_ext = FUNCTION("tro", "calls_ext", 1, calls_ext);

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

CODE(call_mid)
{
	return call(self, &tro_mid, env);
}

BODY(caught)
{
	return TUPLE(heap_of(self), atom("c"), catch_call(self, call_mid, a[0]));
}
struct function tro_caught = FUNCTION("tro", "caught", 1, caught);

BODY(down)
{
	return number_of(a[0]) ? tail_call(self, &tro_down, integer(number_of(a[0]) - 1)) : integer(0);
}
struct function tro_down = FUNCTION("tro", "down", 1, down);

BODY(nontail)
{
	return number_of(a[0]) ? integer(1 + number_of(call(self, &tro_nontail, integer(number_of(a[0]) - 1))))
			       : integer(0);
}
struct function tro_nontail = FUNCTION("tro", "nontail", 1, nontail);

static struct value wrap(struct actor *self, struct value result)
{
	return TUPLE(heap_of(self), atom("r"), result);
}

BODY(rt)
{
	return wrap(self, call(self, &tro_top, a[0]));
}
struct function tro_rt = FUNCTION("tro", "rt", 1, rt);

BODY(rtt)
{
	return wrap(self, call(self, &tro_ttop, a[0]));
}
struct function tro_rtt = FUNCTION("tro", "rtt", 1, rtt);

/* {'EXIT',{R,Stack}} -> {'EXIT',R}, also inside {c,X}. */
struct value nrm(struct actor *self, struct value value)
{
	struct heap *heap = heap_of(self);

	if (is_tagged(value, atom("c"), 2))
		return TUPLE(heap, atom("c"), nrm(self, element(value, 1)));
	if (is_tagged(value, ATOM(EXIT), 2) && tuple_count(element(value, 1)) == 2)
		return TUPLE(heap, ATOM(EXIT), element(element(value, 1), 0));
	return value;
}

BODY(rc)
{
	return wrap(self, nrm(self, call(self, &tro_caught, a[0])));
}
struct function tro_rc = FUNCTION("tro", "rc", 1, rc);

BODY(slow)
{
	(void)a;
	receive_value(self, atom("go"), FOREVER);
	return atom("done");
}
struct function tro_slow = FUNCTION("tro", "slow", 1, slow);

static bool is_take(struct value message, struct value context)
{
	return is_tagged(message, atom("take"), 3);
}

/* lmq() -> receive {take, N, P} -> [receive x -> ok end || _ <- lists:seq(1, N)], P ! taken, lmq() end. */
BODY(lmq)
{
	struct value message = receive_match(self, is_take, NONE, FOREVER);

	(void)a;
	KEEP(self, message);
	for (int64_t i = 0; i < number_of(element(message, 1)); i++)
		receive_value(self, atom("x"), FOREVER);
	send_to(self, element(message, 2), atom("taken"));
	return tail_call(self, &tro_lmq);
}
struct function tro_lmq = FUNCTION("tro", "lmq", 0, lmq);

/* lists:seq/2 and /3: two functions of one name. */
BODY(seq)
{
	(void)self;
	return a[0];
}
static struct function seq2 = FUNCTION("lists", "seq", 2, seq);
static struct function seq3 = FUNCTION("lists", "seq", 3, seq);

BODY(hello)
{
	(void)self;
	return a[0];
}
struct function tro_dummy_hello = FUNCTION("tro_dummy", "hello", 1, hello);

void tro_load(void)
{
	static struct function *const functions[] = {
		&tro_f0,      &tro_f1,	 &tro_loc, &tro_calls_loc, &tro_calls_ext, &tro_top,	&tro_mid,
		&tro_bot,     &tro_ttop, &tro_t1,  &tro_t2,	   &tro_t3,	   &tro_caught, &tro_down,
		&tro_nontail, &tro_rt,	 &tro_rtt, &tro_rc,	   &tro_slow,	   &tro_lmq,
	};
	static struct function *const lists[] = {&seq2, &seq3};

	module_load(functions, sizeof functions / sizeof *functions);
	module_load(lists, 2);
}

void tro_dummy_load(void)
{
	static struct function *const functions[] = {&tro_dummy_hello};

	module_load(functions, 1);
}

void tro_dummy_unload(void)
{
	module_unload("tro_dummy");
}
