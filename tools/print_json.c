/* SPDX-License-Identifier: Apache-2.0 */
/* print_json.c - one JSON object a line (docs/json.md). */
#include "tools/print.h"

/* A small output of its own, to make the text of a place with the writer of strings. */
static struct tw_out scratch;

static size_t make_place(const struct tw_capture_place *place, char *text, size_t room)
{
	const struct tw_capture_function *function = place->function;
	const char *module = function && function->module ? function->module->name : "?";
	const char *name = function ? function->name : "?";
	scratch.used = 0;
	tw_out_text(&scratch, ",\"module\":");
	tw_json_quote(&scratch, module, strlen(module));
	tw_out_text(&scratch, ",\"function\":");
	tw_json_quote(&scratch, name, strlen(name));
	if (function && function->arity != TW_CAPTURE_ARITY_UNKNOWN)
		tw_out_format(&scratch, ",\"arity\":%u", function->arity);
	if (place->caller) {
		tw_out_text(&scratch, ",\"caller\":");
		tw_json_quote(&scratch, place->caller->name, strlen(place->caller->name));
	}
	/* Half an object is no JSON: a name that does not fit is left out. */
	if (scratch.used > room)
		return 0;
	memcpy(text, scratch.data, scratch.used);
	return scratch.used;
}

static void put_head(struct tw_printer *printer, const struct tw_capture_event *event)
{
	struct tw_out *out = printer->out;
	const struct tw_capture_stream *stream = tw_capture_stream(printer->capture, event->stream);
	const struct tw_capture_image *image = tw_capture_image(printer->capture, event->image);
	tw_put(out, "{\"ns\":", 6);
	tw_put_u64(out, event->time_ns > printer->start_ns ? event->time_ns - printer->start_ns : 0);
	tw_put(out, ",\"process\":", 11);
	tw_put_u64(out, image ? (uint32_t)image->process_id : 0);
	tw_put(out, ",\"thread\":", 10);
	tw_put_u64(out, stream ? (uint32_t)stream->thread_id : 0);
	tw_put(out, ",\"pid\":\"", 8);
	tw_print_pid(printer, event);
	tw_put(out, "\",\"kind\":\"", 10);
}

static void put_words(struct tw_out *out, const char *name, const uint64_t *words, uint32_t count)
{
	tw_put(out, name, strlen(name));
	for (uint32_t i = 0; i < count; i++) {
		if (i)
			tw_put_char(out, ',');
		tw_put_u64(out, words[i]);
	}
	tw_put_char(out, ']');
}

/* Erlang text as a JSON string; it holds no control characters, the printer escapes them. */
static void put_extra(struct tw_out *out, const struct tw_print_payload *payload)
{
	char text[TW_PRINT_EXTRA_BYTES];
	size_t bytes = tw_print_extra(payload, text);
	tw_put(out, ",\"extra\":\"", 10);
	for (size_t i = 0; i < bytes; i++) {
		if (text[i] == '"' || text[i] == '\\')
			tw_put_char(out, '\\');
		tw_put_char(out, text[i]);
	}
	tw_put_char(out, '"');
}

static void put_event(struct tw_printer *printer, const struct tw_capture_event *event)
{
	struct tw_out *out = printer->out;
	const char *kind = tw_print_kind(event->kind);
	struct tw_print_payload payload = tw_print_payload(event);
	const uint64_t *words = payload.words;
	uint32_t count = payload.count;
	tw_out_room(out);
	put_head(printer, event);
	if (kind)
		tw_put(out, kind, strlen(kind));
	else
		tw_put(out, "event", 5);
	tw_put_char(out, '"');
	if (!kind) {
		tw_put(out, ",\"number\":", 10);
		tw_put_u64(out, event->kind);
	} else if (event->kind != TW_CAPTURE_SWITCH) {
		const struct tw_name *place = tw_print_place(printer, event);
		tw_put(out, place->text, place->bytes);
	}
	if (count)
		put_words(out, event->kind == TW_CAPTURE_CALL ? ",\"args\":[" : ",\"values\":[", words,
			  count);
	if (payload.extra)
		put_extra(out, &payload);
	tw_put(out, "}\n", 2);
}

static void put_loss(struct tw_printer *printer, const struct tw_capture_event *event)
{
	const struct tw_capture_loss *loss = tw_capture_event_loss(event);
	struct tw_out *out = printer->out;
	tw_out_room(out);
	put_head(printer, event);
	tw_put(out, "lost\"", 5);
	for (unsigned cause = 0; cause < TW_LOST_CAUSES; cause++)
		tw_out_format(out, ",\"%s\":%llu", tw_lost_cause_name(cause),
			      (unsigned long long)loss->lost[cause]);
	tw_put(out, "}\n", 2);
}

const struct tw_print_format tw_print_json = {"json", make_place, put_event, put_loss};
