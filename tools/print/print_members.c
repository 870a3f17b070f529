/* SPDX-License-Identifier: Apache-2.0 */
/*
 * print_members.c - arguments, results and exceptions as members of a slice of the timeline.
 *
 *	"arguments":{"size":4096,"name":"users"}	by debug information
 *	"arguments":{"$1":4096,"$2":"0x7ffe12345678"}	words, and terms, by their numbers, as --when names them
 *	"result":0   "exception":"throw 'std::runtime_error'"
 */
#include "tools/print/print.h"

#include <stdio.h>

/* Larger words are more often addresses than numbers. */
#define NUMBER_MAX UINT64_C(1000000)

static struct tw_print_word word_of(uint64_t word)
{
	bool is_negative = -word < NUMBER_MAX && word;
	return (struct tw_print_word){.value = word,
				      .is_negative = is_negative,
				      .is_address = word >= NUMBER_MAX && !is_negative};
}

static void put_word(struct tw_out *out, uint64_t value)
{
	struct tw_print_word word = word_of(value);
	tw_out_reserve(out);
	if (word.is_address) {
		tw_put(out, "\"0x", 3);
		tw_put_hex(out, value);
		tw_put_char(out, '"');
		return;
	}
	if (word.is_negative)
		tw_put_char(out, '-');
	tw_put_u64(out, word.is_negative ? -value : value);
}

static void put_terms(struct tw_out *out, struct tw_term list)
{
	unsigned number = 0;
	for (; tw_term_type(list) == TW_TYPE_CONS; list = tw_term_tail(list)) {
		tw_out_format(out, "%s\"$%u\":", number ? "," : "", number + 1);
		tw_print_put_json(out, tw_term_head(list));
		number++;
	}
}

bool tw_print_arguments_member(struct tw_printer *printer, const struct tw_capture_event *event, struct tw_out *out)
{
	struct tw_message_payload payload;
	struct tw_term list;
	tw_print_payload(event, &payload);
	const struct tw_layout *layout = payload.has_terms ? NULL : tw_typed_layout(printer->capture, event);
	if (payload.has_terms ? !payload.term_count || !tw_print_next_term(&payload, &list) : !payload.count)
		return false;
	tw_out_text(out, "\"arguments\":{");
	if (payload.has_terms) {
		put_terms(out, list);
	} else if (layout) {
		tw_typed_members(out, layout, payload.words, payload.count);
	} else {
		for (uint32_t i = 0; i < payload.count; i++) {
			tw_out_format(out, "%s\"$%u\":", i ? "," : "", i + 1);
			put_word(out, payload.words[i]);
		}
	}
	tw_out_text(out, "}");
	return true;
}

static bool put_exception(struct tw_printer *printer, const struct tw_capture_event *event, struct tw_out *out)
{
	static struct tw_out scratch;
	struct tw_out *before = printer->out;
	tw_out_init(&scratch, -1);
	printer->out = &scratch;
	tw_print_text_payload(printer, event);
	printer->out = before;
	bool has_arrow = scratch.used > 4 && memcmp(scratch.data, " -> ", 4) == 0;
	size_t from = has_arrow ? 4 : scratch.used && *scratch.data == ' ';
	if (scratch.used == from)
		return false;
	tw_out_text(out, "\"exception\":");
	tw_json_quote(out, scratch.data + from, scratch.used - from);
	return true;
}

bool tw_print_result_member(struct tw_printer *printer, const struct tw_capture_event *event, struct tw_out *out)
{
	struct tw_message_payload payload;
	struct tw_term term;
	if (event->kind == TW_CAPTURE_EXCEPTION_FROM)
		return put_exception(printer, event, out);
	if (event->kind != TW_CAPTURE_RETURN_FROM)
		return false;
	tw_print_payload(event, &payload);
	const struct tw_layout *layout = payload.has_terms ? NULL : tw_typed_layout(printer->capture, event);
	if (payload.has_terms ? !payload.term_count || !tw_print_next_term(&payload, &term) : !payload.count)
		return false;
	uint64_t mark = tw_out_mark(out);
	tw_out_text(out, "\"result\":");
	if (payload.has_terms) {
		tw_print_put_json(out, term);
	} else if (!layout) {
		put_word(out, payload.words[0]);
	} else if (!tw_typed_shown_result(out, layout, payload.words, payload.count)) {
		tw_out_cancel(out, mark);
		return false;
	}
	return true;
}

bool tw_print_result_word(const struct tw_capture_event *event, struct tw_print_word *word)
{
	if (event->kind != TW_CAPTURE_RETURN_FROM || !event->payload_words || !tw_print_is_plain(event))
		return false;
	*word = word_of(event->payload[0]);
	return true;
}
