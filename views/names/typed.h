/* SPDX-License-Identifier: Apache-2.0 */
/*
 * typed.h - prints arguments and results by their types: size = 4096, mode = READ|WRITE, name = "users".
 *
 * Threads  one.  Nothing in a payload is trusted; data that does not fit its layout ends the list.
 */
#ifndef TW_VIEWS_TYPED_H
#define TW_VIEWS_TYPED_H

#include "views/output/output.h"

#include "tracewheel/capture.h"
#include "tracewheel/layout.h"
#include "tracewheel/term.h"

enum tw_typed_form { TW_TYPED_TEXT, TW_TYPED_ERLANG, TW_TYPED_JSON };

/* The layout of an event's function, if the payload follows it: typed calls, and their returns. NULL: plain words. */
const struct tw_layout *tw_typed_layout(const struct tw_capture *capture, const struct tw_capture_event *event);

/*
 * The arguments of a call: "(a = 1, b = \"x\")", "[1,<<\"x\">>]", and for JSON "args":[1,"x"],"names":["a","b"]
 * without braces.
 */
void tw_typed_arguments(struct tw_out *out, enum tw_typed_form form, const struct tw_layout *layout,
			const uint64_t *words, uint32_t count);

/* The same as members of an object, for a viewer: "a":1,"b":"x","p":"0x7f12"; an argument without a name is "$3". */
void tw_typed_members(struct tw_out *out, const struct tw_layout *layout, const uint64_t *words, uint32_t count);

/* The result of a call, from these words. False: they do not determine the value, and nothing was written. */
bool tw_typed_result(struct tw_out *out, enum tw_typed_form form, const struct tw_layout *layout, const uint64_t *words,
		     uint32_t count);
/* One argument of a call: by its number from 1 on, or, if that is 0, its name. False: the call has none, or it was not recorded. */
bool tw_typed_find_argument(const struct tw_layout *layout, const uint64_t *words, uint32_t count, uint32_t number,
			    const char *name, size_t bytes, struct tw_layout_item *out);
/* A value as text, without its name. */
void tw_typed_value(struct tw_out *out, const struct tw_layout_item *item);
/*
 * A value as a term that can be compared: integers, also of enumerators and flags, 1 and 0 for true and false, floats, strings as lists of
 * characters, of unreadable ones the address.  None: there is no such form.
 */
struct tw_term tw_typed_item_term(struct tw_arena *arena, const struct tw_layout_item *item);
/* Erlang's form of both as terms; '_' for a result that is not known.  None: no memory. */
struct tw_term tw_typed_arguments_term(struct tw_arena *arena, const struct tw_layout *layout, const uint64_t *words,
				       uint32_t count);
struct tw_term tw_typed_result_term(struct tw_arena *arena, const struct tw_layout *layout, const uint64_t *words,
				    uint32_t count);
/* The same for a viewer: as JSON, addresses in hexadecimal. */
bool tw_typed_shown_result(struct tw_out *out, const struct tw_layout *layout, const uint64_t *words, uint32_t count);

/*
 * A call as strace shows it: arguments without names, and what it has filled in their places.
 *
 * is_over	it has returned; its return's payload may be empty.
 */
struct tw_typed_call {
	const struct tw_layout *layout;
	const uint64_t *words; /* of the call's payload */
	uint32_t count;
	bool is_over;
	const uint64_t *return_words;
	uint32_t return_count;
};

/*
 * Prints the arguments from number @from on, from 0; before it is over, as far as the first that the call fills. Returns the number of the
 * next one.
 */
uint32_t tw_typed_call_arguments(struct tw_out *out, const struct tw_typed_call *call, uint32_t from);
/* 3; -1 ENOENT (No such file or directory); "/home"; ? */
void tw_typed_call_result(struct tw_out *out, const struct tw_typed_call *call);

#endif
