/* SPDX-License-Identifier: Apache-2.0 */
/* chat.c - a room with a registered name sends every text to all members; texts are binaries. */
#include "../loads.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static struct function room_function;
/* room(Members): {join, Pid}, or {say, Pid, Text}, which goes to every member. */
static struct value room(struct actor *self, const struct value *arguments)
{
	struct value message = receive(self);
	struct value members = arguments[0];
	if (is_tagged(message, atom("join"), 2))
		members = cons(heap_of(self), element(message, 1), members);
	for (struct value rest = members; tuple_count(message) == 3 && is_box(rest, BOX_CONS); rest = tail(rest))
		send_to(self, head(rest), message);
	return tail_call(self, &room_function, members);
}
static struct function room_function = FUNCTION("chat", "room", 1, room);

static bool is_mine(struct value message, struct value pid)
{
	return tuple_count(message) == 3 && is_same(element(message, 1), pid);
}

/* member(Collector, Texts): sends each, waits until it receives its own, then counts those of others. */
static struct value member(struct actor *self, const struct value *arguments)
{
	int64_t texts = number_of(arguments[1]), said = 0, heard = 0;
	send_to(self, atom("room"), TUPLE(heap_of(self), atom("join"), self_pid(self)));
	for (; said < texts && !is_time_over(); said++) {
		char text[32];
		snprintf(text, sizeof text, "text %" PRId64, said);
		send_to(self, atom("room"),
			TUPLE(heap_of(self), atom("say"), self_pid(self), binary(heap_of(self), text, strlen(text))));
		size_t bytes;
		struct value back = receive_match(self, is_mine, self_pid(self), FOREVER);
		const char *same = binary_bytes(element(back, 2), &bytes);
		if (!same || bytes != strlen(text) || memcmp(same, text, bytes) != 0)
			raise_error(self, ATOM(BADARG));
		while (!is_none(receive_match(self, NULL, NONE, 0)))
			heard++;
	}
	send_to(self, arguments[0], TUPLE(heap_of(self), ATOM(OK), integer(said + heard)));
	for (;;)
		receive(self);
	return ATOM(OK);
}
static struct function member_function = FUNCTION("chat", "member", 2, member);

static void declare(void)
{
	module_load((struct function *const[]){&room_function, &member_function}, 2);
}

static struct load_result run(struct actor *outside, const struct load_options *options)
{
	struct load_result result = {0};
	uint64_t texts = options->messages / options->actors / options->actors + 1, heard = 0;
	register_name(outside, atom("room"), spawn(outside, &room_function, NIL));
	for (uint64_t i = 0; i < options->actors; i++)
		spawn(outside, &member_function, self_pid(outside), integer((int64_t)texts));
	result.is_right = wait_for_done(outside, options, options->actors, &heard);
	result.is_right &= heard <= texts * options->actors * options->actors;
	result.messages = heard;
	snprintf(result.text, sizeof result.text, "%" PRIu64 " members heard %" PRIu64 " texts, their own among them",
		 options->actors, heard);
	return result;
}

const struct load chat_load = {"chat", "a room tells all what one says", 30, 200000, run, declare};
