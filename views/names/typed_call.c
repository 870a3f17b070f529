/* SPDX-License-Identifier: Apache-2.0 */
/* typed_call.c - results with what the call has filled; whole calls as strace shows them. */
#include "views/names/names.h"
#include "views/names/typed_put.h"

#include <stdio.h>

/*
 * The memory that a call has filled: (buf = "hello"); for JSON a member behind the value: "filled":{"buf":"hello"}; for Erlang an element of its
 * tuple: [{buf,<<"hello">>}].
 */
static void put_filled(struct tw_typed *typed, struct tw_layout_reader *reader, bool is_first)
{
	static const struct {
		const char *open, *between, *close, *item_open, *equals, *item_close;
	} forms[] = {[TW_TYPED_TEXT] = {"(", ", ", ")", "", " = ", ""},
		     [TW_TYPED_ERLANG] = {",[", ",", "]", "{", ",", "}"},
		     [TW_TYPED_JSON] = {",\"filled\":{", ",", "}", "", ":", ""}};
	struct tw_layout_item item;
	uint32_t start = typed->count, pair;
	char number[16];
	bool is_open = false;
	while (tw_layout_next_filled(reader, &item)) {
		if (item.is_nothing)
			continue;
		snprintf(number, sizeof number, "$%u", reader->at - 1);
		const char *name = *item.value->name ? item.value->name : number;
		if (!is_open && !is_first && typed->form == TW_TYPED_TEXT)
			tw_typed_put_text(typed, " ");
		tw_typed_put_text(typed, is_open ? forms[typed->form].between : forms[typed->form].open);
		pair = typed->count;
		tw_typed_put_text(typed, forms[typed->form].item_open);
		if (typed->form == TW_TYPED_JSON)
			tw_json_quote(typed->out, name, strlen(name));
		else if (typed->form == TW_TYPED_ERLANG)
			tw_typed_put_atom(typed, name);
		else
			tw_out_name(typed->out, name);
		tw_typed_put_text(typed, forms[typed->form].equals);
		tw_typed_put_content(typed, &item);
		tw_typed_close(typed, pair, forms[typed->form].item_close);
		tw_typed_reserve(typed);
		is_open = true;
	}
	if (is_open)
		tw_typed_close(typed, start, forms[typed->form].close);
}

/* Has the payload of a return an error, or anything that the call has filled? */
static bool has_more(const struct tw_layout *layout, const uint64_t *words, uint32_t count)
{
	struct tw_layout_reader reader = {.layout = layout, .words = words, .word_count = count};
	struct tw_layout_item item;
	while (tw_layout_next_filled(&reader, &item))
		if (!item.is_nothing && item.value != &layout->result)
			return true;
	return tw_layout_error(layout, words, count) != 0;
}

/* -1 ENOENT, "/home", 5 (buf = "hello"). False: there is nothing to show. */
bool tw_typed_put_result(struct tw_typed *typed, const struct tw_layout *layout, const struct tw_layout_item *result,
			 const uint64_t *words, uint32_t count)
{
	struct tw_layout_reader reader = {.layout = layout, .words = words, .word_count = count};
	bool is_void = layout->result.type == 'v', is_more = has_more(layout, words, count);
	bool is_tuple = typed->form == TW_TYPED_ERLANG && is_more;
	int error = tw_layout_error(layout, words, count);
	uint32_t start = typed->count;
	struct tw_layout_item content;
	if (is_void && !is_more)
		return false;
	tw_typed_put_text(typed, is_tuple ? "{" : "");
	if (layout->result.type == 'Z' && tw_layout_next_filled(&reader, &content) && content.text)
		tw_typed_put_string(typed, &content);
	else if (!is_void)
		tw_typed_put_item(typed, result);
	else if (typed->form != TW_TYPED_TEXT)
		tw_typed_put_unknown(typed);
	if (error) {
		tw_typed_put_text(typed, typed->form == TW_TYPED_TEXT	  ? " "
					 : typed->form == TW_TYPED_ERLANG ? ","
									  : ",\"errno\":");
		tw_typed_put_error(typed, error);
	}
	put_filled(typed, &reader, is_void);
	if (is_tuple)
		tw_typed_close(typed, start, "}");
	return true;
}

/* ---- as strace shows calls ---- */

static bool is_filled(const struct tw_layout_value *value)
{
	return value->type == 'M' || value->type == 'V' || value->type == 'Z';
}

/* A number that the call stored where an argument points: [16]. */
static void put_stored(struct tw_typed *typed, const struct tw_layout_item *content)
{
	bool is_number = content->value->type == 'V' && content->value->enumerators->value == 1;
	tw_typed_put_text(typed, is_number ? "[" : "");
	tw_typed_put_content(typed, content);
	tw_typed_put_text(typed, is_number ? "]" : "");
}

uint32_t tw_typed_call_arguments(struct tw_out *out, const struct tw_typed_call *call, uint32_t from)
{
	struct tw_layout_reader reader = {.layout = call->layout, .words = call->words, .word_count = call->count};
	struct tw_layout_reader filled = {.layout = call->layout,
					  .words = call->return_words,
					  .word_count = call->return_count};
	struct tw_typed text = {.form = TW_TYPED_TEXT, .out = out}, *typed = &text;
	struct tw_layout_item item, content = {0};
	bool has_content = tw_layout_next_filled(&filled, &content);
	uint32_t index = 0;
	/* The memory that a result points to comes first. */
	if (has_content && content.value == &call->layout->result)
		has_content = tw_layout_next_filled(&filled, &content);
	for (; tw_layout_next(&reader, &item); index++) {
		bool is_content = has_content && content.value == item.value;
		if (index >= from && is_filled(item.value) && !call->is_over) {
			tw_typed_put_text(typed, index ? ", " : "");
			return index;
		}
		if (index >= from && tw_layout_is_given(call->layout, item.value, call->words)) {
			tw_typed_put_text(typed, index > from ? ", " : "");
			if (is_content && content.text)
				put_stored(typed, &content);
			else
				tw_typed_put_item(typed, &item);
			tw_out_reserve(out);
		}
		if (is_content)
			has_content = tw_layout_next_filled(&filled, &content);
	}
	if (call->layout->is_variadic && index >= from)
		tw_typed_put_text(typed, index > from ? ", ..." : "...");
	return index + 1;
}

void tw_typed_call_result(struct tw_out *out, const struct tw_typed_call *call)
{
	struct tw_layout_reader filled = {.layout = call->layout,
					  .words = call->return_words,
					  .word_count = call->return_count};
	int error = tw_layout_error(call->layout, call->return_words, call->return_count);
	struct tw_typed text = {.form = TW_TYPED_TEXT, .out = out}, *typed = &text;
	struct tw_layout_item item, content;
	bool is_known = tw_layout_result(call->layout, call->return_words, call->return_count, &item);
	if (call->layout->result.type == 'Z' && tw_layout_next_filled(&filled, &content) && content.text)
		tw_typed_put_string(typed, &content);
	else if (is_known && call->layout->result.type != 'v')
		tw_typed_put_item(typed, &item);
	else
		tw_typed_put_text(typed, "?");
	if (error) {
		tw_typed_put_text(typed, " ");
		tw_typed_put_error(typed, error);
		tw_out_format(out, " (%s)", strerrordesc_np(error) ? strerrordesc_np(error) : "unknown error");
	}
}
