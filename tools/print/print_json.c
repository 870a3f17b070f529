/* SPDX-License-Identifier: Apache-2.0 */
/* print_json.c - one JSON object a line (docs/json.md). */
#include "views/names/missing.h"
#include "views/names/lines.h"
#include "tools/print/print.h"
#include "views/names/typed.h"

/* A buffer to make the text of a place with the string writer. */
static struct tw_out scratch;

/* Writes the name that all views show; and the linker's, if it is another. */
static void put_function(struct tw_out *out, const char *linkage)
{
	const char *name = tw_name_shown(linkage);
	tw_out_text(out, ",\"function\":");
	tw_json_quote(out, name, strlen(name));
	if (name != linkage) {
		tw_out_text(out, ",\"linkage\":");
		tw_json_quote(out, linkage, strlen(linkage));
	}
}

static size_t make_place(const struct tw_capture_place *place, char *text, size_t capacity)
{
	const struct tw_capture_function *function = place->function;
	const char *module = function && function->module ? function->module->name : "?";
	const char *name = function ? function->name : "?";
	tw_out_init(&scratch, -1);
	tw_out_text(&scratch, ",\"module\":");
	tw_json_quote(&scratch, module, strlen(module));
	put_function(&scratch, name);
	if (function && function->arity != TW_CAPTURE_ARITY_UNKNOWN)
		tw_out_format(&scratch, ",\"arity\":%u", function->arity);
	if (place->caller) {
		tw_out_text(&scratch, ",\"caller\":");
		tw_json_quote(&scratch, place->caller->name, strlen(place->caller->name));
	}
	/* Part of an object is not valid JSON: a name that does not fit is left out. */
	if (scratch.used > capacity)
		return 0;
	memcpy(text, scratch.data, scratch.used);
	return scratch.used;
}

static void put_process_name(struct tw_printer *printer, const struct tw_capture_event *event)
{
	char name[TW_THREAD_NAME_BYTES];
	if (!*tw_process_name(printer->capture, event->image, event->tracee_id, name))
		return;
	tw_put(printer->out, "\"pid_name\":", 11);
	tw_json_quote(printer->out, name, strlen(name));
	tw_put_char(printer->out, ',');
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
	if (event->stream < printer->stream_count)
		tw_put(out, printer->json_streams[event->stream].text, printer->json_streams[event->stream].bytes);
	tw_put(out, ",\"pid\":\"", 8);
	tw_print_pid(printer, event);
	tw_put(out, "\",", 2);
	if (printer->has_pids)
		put_process_name(printer, event);
	tw_put(out, "\"kind\":\"", 8);
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

static void put_arguments(struct tw_out *out, struct tw_term list)
{
	const char *between = "[";
	tw_out_text(out, ",\"args\":");
	for (; tw_term_type(list) == TW_TYPE_CONS; list = tw_term_tail(list)) {
		tw_out_text(out, between);
		tw_print_put_json(out, tw_term_head(list));
		between = ",";
	}
	tw_out_text(out, *between == '[' ? "[]" : "]");
}

/* [{timeout,12},...] as an object, as far as it is that. */
static void put_info(struct tw_out *out, struct tw_term list)
{
	const char *between = "";
	tw_out_text(out, ",\"info\":{");
	for (; tw_term_type(list) == TW_TYPE_CONS; list = tw_term_tail(list)) {
		struct tw_term key = tw_term_element(tw_term_head(list), 0),
			       value = tw_term_element(tw_term_head(list), 1);
		size_t bytes;
		const char *name = tw_term_is_none(key) ? NULL : tw_term_atom_name(key, &bytes);
		if (!name || tw_term_is_none(value))
			continue;
		tw_out_text(out, between);
		tw_json_quote(out, name, bytes);
		tw_out_text(out, ":");
		uint64_t number;
		if (tw_term_get_uint64(value, &number) == 0)
			tw_put_u64(out, number);
		else
			tw_print_put_json(out, value);
		between = ",";
	}
	tw_out_text(out, "}");
}

/* Writes the terms of a message: Erlang text in strings. */
static void put_terms(struct tw_printer *printer, const struct tw_capture_event *event,
		      struct tw_message_payload *payload)
{
	bool is_schedule = event->kind == TW_CAPTURE_IN || event->kind == TW_CAPTURE_OUT;
	const struct tw_capture_tracee *tracee =
		is_schedule ? tw_capture_tracee(printer->capture, event->image, event->tracee_id) : NULL;
	const struct tw_print_kind *kind = tw_print_kind(event->kind);
	struct tw_out *out = printer->out;
	struct tw_term term;
	bool has_others = false;
	for (uint32_t i = 0; i < payload->term_count; i++) {
		const char *name = kind && i < TW_PRINT_TERMS_MAX ? kind->terms[i] : NULL;
		if (name && tracee && tracee->is_port)
			name = "command";
		if (!tw_print_next_term(payload, &term))
			break;
		if (event->kind == TW_CAPTURE_CALL && i == 0) {
			put_arguments(out, term);
		} else if (event->kind == TW_CAPTURE_MONITOR && i == 1 && tw_term_type(term) == TW_TYPE_CONS) {
			put_info(out, term);
		} else if (event->kind == TW_CAPTURE_EXCEPTION_FROM && tw_term_tuple_count(term) == 2) {
			tw_out_text(out, ",\"class\":");
			tw_print_put_json(out, tw_term_element(term, 0));
			tw_out_text(out, ",\"value\":");
			tw_print_put_json(out, tw_term_element(term, 1));
		} else if (name) {
			tw_out_format(out, ",\"%s\":", name);
			tw_print_put_json(out, term);
		} else {
			tw_out_text(out, has_others ? "," : ",\"terms\":[");
			tw_print_put_json(out, term);
			has_others = true;
		}
	}
	if (has_others)
		tw_out_text(out, "]");
}

/* Writes where a native function returned to, as far as it is known. */
static void put_line(struct tw_printer *printer, const struct tw_capture_event *event, uint64_t address)
{
	struct tw_out *out = printer->out;
	struct tw_line line;
	tw_line_of_return(printer->capture, event->image, address, &line);
	if (line.module) {
		tw_out_text(out, ",\"module\":");
		tw_json_quote(out, line.module->name, strlen(line.module->name));
	}
	if (line.function)
		put_function(out, line.function);
	if (line.file) {
		tw_out_text(out, ",\"file\":");
		tw_json_quote(out, line.file, strlen(line.file));
		tw_out_format(out, ",\"line\":%u", line.line);
	}
}

/* Writes the callers, the innermost first. */
static void put_stack(struct tw_printer *printer, const struct tw_capture_event *event,
		      const struct tw_message_payload *payload)
{
	uint32_t count = tw_line_stack_count(printer->capture, event->image, payload->words, payload->count);
	tw_out_text(printer->out, ",\"stack\":[");
	for (uint32_t i = 0; i < count; i++) {
		tw_out_format(printer->out, "%s{\"address\":%llu", i ? "," : "", (unsigned long long)payload->words[i]);
		put_line(printer, event, payload->words[i]);
		tw_out_text(printer->out, "}");
	}
	tw_out_text(printer->out, count < payload->count ? "],\"stack_is_cut\":true" : "]");
}

static void put_payload(struct tw_printer *printer, const struct tw_capture_event *event)
{
	struct tw_out *out = printer->out;
	struct tw_message_payload payload;
	struct tw_term extra;
	tw_print_payload(event, &payload);
	if (payload.has_terms) {
		put_terms(printer, event, &payload);
	} else if (tw_print_is_gc(event->kind)) {
		for (uint32_t i = 0; i < TW_GC_SIZES_COUNT && i < payload.count; i++)
			tw_out_format(out, ",\"%s\":%llu", tw_print_gc_keys[i], (unsigned long long)payload.words[i]);
	} else if (event->kind == TW_CAPTURE_STACK) {
		put_stack(printer, event, &payload);
	} else if (payload.count && !tw_print_typed(printer, event, &payload, TW_TYPED_JSON)) {
		put_words(out, event->kind == TW_CAPTURE_CALL ? ",\"args\":[" : ",\"values\":[", payload.words,
			  payload.count);
		if (event->kind == TW_CAPTURE_RETURN_TO)
			put_line(printer, event, payload.words[0]);
	}
	if (payload.has_extra && tw_print_next_extra(printer, event, &payload, false, &extra)) {
		tw_out_text(out, ",\"extra\":");
		tw_print_put_json(out, extra);
	}
	if (payload.is_damaged)
		tw_out_text(out, ",\"damaged\":true");
	if (tw_print_stamp(event) == TW_PRINT_STAMP_STRICT && event->payload_words)
		tw_out_format(out, ",\"unique\":%llu", (unsigned long long)event->payload[0]);
	if (event->has_cpu_time)
		tw_out_format(out, ",\"cpu_ns\":%llu", (unsigned long long)event->cpu_ns);
	if (event->flags & TW_CAPTURE_FLAG_SCHEDULER_ID) {
		const struct tw_capture_stream *stream = tw_capture_stream(printer->capture, event->stream);
		tw_out_format(out, ",\"scheduler\":%u", stream ? stream->scheduler_id : 0);
	}
}

static void put_event(struct tw_printer *printer, const struct tw_capture_event *event)
{
	struct tw_out *out = printer->out;
	const struct tw_print_kind *kind = tw_print_kind(event->kind);
	tw_out_reserve(out);
	put_head(printer, event);
	if (kind)
		tw_put(out, kind->word, strlen(kind->word));
	else
		tw_put(out, "event", 5);
	tw_put_char(out, '"');
	if (!kind) {
		tw_put(out, ",\"number\":", 10);
		tw_put_u64(out, event->kind);
	} else if (tw_print_has_place(event->kind) && !(event->kind == TW_CAPTURE_RETURN_TO && event->payload_words)) {
		const struct tw_name *place = tw_print_place(printer, event);
		tw_put(out, place->text, place->bytes);
	}
	if (event->payload_words || event->flags)
		put_payload(printer, event);
	tw_out_reserve(out);
	tw_put(out, "}\n", 2);
}

static void put_lost(struct tw_printer *printer, const struct tw_capture_event *event)
{
	struct tw_missing_loss loss;
	struct tw_out *out = printer->out;
	tw_missing_loss(printer->capture, event, &loss);
	for (unsigned cause = 0; cause < TW_LOST_CAUSES; cause++)
		tw_out_format(out, ",\"%s\":%llu", tw_lost_cause_name(cause), (unsigned long long)loss.lost[cause]);
	if (loss.overwritten)
		tw_out_format(out, ",\"overwritten\":%llu", (unsigned long long)loss.overwritten);
}

static void put_loss(struct tw_printer *printer, const struct tw_capture_event *event)
{
	tw_out_reserve(printer->out);
	put_head(printer, event);
	tw_put(printer->out, "lost\"", 5);
	put_lost(printer, event);
	tw_put(printer->out, "}\n", 2);
}

static void put_own(struct tw_printer *printer, const struct tw_capture_event *event)
{
	tw_out_format(printer->out, ",\"why\":\"%s\",\"own_ns\":%llu", tw_capture_own_name(event->id),
		      (unsigned long long)tw_capture_own_ns(printer->capture, event));
}

static void put_own_time(struct tw_printer *printer, const struct tw_capture_event *event)
{
	tw_out_reserve(printer->out);
	put_head(printer, event);
	tw_out_text(printer->out, "own_time\"");
	put_own(printer, event);
	tw_out_text(printer->out, "}\n");
}

static void put_state(struct tw_printer *printer, const struct tw_capture_event *event)
{
	tw_out_reserve(printer->out);
	put_head(printer, event);
	tw_out_format(printer->out, "thread_state\",\"state\":\"%s\"}\n", tw_capture_state_name(event->id));
}

char *tw_tool_details(struct tw_capture *capture, const struct tw_capture_event *event, size_t *bytes)
{
	static struct tw_printer printer;
	static struct tw_out out;
	out.fd = -1;
	out.used = 0;
	printer.out = &out;
	printer.capture = capture;
	printer.vm_image = 0;
	if (event->kind == TW_CAPTURE_LOSS)
		put_lost(&printer, event);
	else if (event->kind == TW_CAPTURE_OWN_TIME)
		put_own(&printer, event);
	else if (event->payload_words || event->flags)
		put_payload(&printer, event);
	if (!out.used || out.used >= TW_OUT_BYTES)
		return NULL;
	/* In place of the comma. */
	*out.data = '{';
	tw_put_char(&out, '}');
	*bytes = out.used;
	return strndup(out.data, out.used);
}

const struct tw_print_format tw_print_json = {"json", make_place, put_event, put_loss, put_own_time, put_state, NULL};
