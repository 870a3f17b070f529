/* SPDX-License-Identifier: Apache-2.0 */
/* printer.c - the tables of a printer: names of places and threads. They are made again when a stream brings more. */
#include "base/grow.h"
#include "tools/print/print.h"

#include <stdio.h>
#include <stdlib.h>

void tw_printer_free(struct tw_printer *printer)
{
	for (uint32_t i = 0; printer->places && i < printer->image_count; i++)
		tw_names_free(&printer->places[i]);
	for (uint32_t i = 0; printer->streams && i < printer->stream_count; i++)
		free(printer->streams[i].text);
	for (uint32_t i = 0; printer->json_streams && i < printer->stream_count; i++)
		free(printer->json_streams[i].text);
	free(printer->json_streams);
	free(printer->places);
	free(printer->streams);
}

/* Makes the texts of thread numbers, with names if names distinguish threads. */
static bool init_streams(struct tw_printer *printer, const struct tw_capture_info *info)
{
	static struct tw_out json;
	char name[TW_THREAD_NAME_BYTES];
	bool has_names = tw_threads_have_names(printer->capture);
	char node[TW_NODE_TEXT_BYTES];
	int columns = 0, node_columns = 0;
	for (uint32_t i = 0; i < info->streams && has_names; i++) {
		int bytes = (int)strlen(tw_thread_name(printer->capture, tw_capture_stream(printer->capture, i), name));
		columns = bytes > columns ? bytes : columns;
	}
	for (uint32_t i = 0; i < info->images; i++) {
		int bytes = (int)tw_node_text(printer->capture, i, node);
		node_columns = bytes > node_columns ? bytes : node_columns;
	}
	for (uint32_t i = 0; i < info->streams; i++) {
		const struct tw_capture_stream *stream = tw_capture_stream(printer->capture, i);
		tw_thread_name(printer->capture, stream, name);
		int bytes = asprintf(&printer->streams[i].text, "  %*s%7d %-*s%s", node_columns,
				     tw_node_text(printer->capture, stream->image, node) ? node : "", stream->thread_id,
				     columns, has_names ? name : "", has_names ? " " : "");
		if (bytes < 0)
			return false;
		printer->streams[i].bytes = (uint32_t)bytes;
		tw_out_init(&json, -1);
		if (*tw_capture_image(printer->capture, stream->image)->node) {
			const char *is = tw_capture_image(printer->capture, stream->image)->node;
			tw_out_text(&json, ",\"node\":");
			tw_json_quote(&json, is, strlen(is));
		}
		uint32_t number = tw_exec_number(printer->capture, stream->image);
		if (number) {
			tw_out_text(&json, ",\"exec\":");
			tw_put_u64(&json, number);
		}
		if (*name) {
			tw_out_text(&json, ",\"thread_name\":");
			tw_json_quote(&json, name, strlen(name));
		}
		printer->json_streams[i] =
			(struct tw_name){.text = strndup(json.data, json.used), .bytes = (uint32_t)json.used};
		if (!printer->json_streams[i].text)
			return false;
	}
	return true;
}

bool tw_printer_init(struct tw_printer *printer, struct tw_out *out, const struct tw_capture *capture,
		     const struct tw_print_format *format)
{
	struct tw_capture_info info;
	tw_capture_info(capture, &info);
	*printer = (struct tw_printer){.out = out,
				       .capture = capture,
				       .start_ns = info.zero_ns,
				       .pid_tracee = UINT32_MAX,
				       .process_tracee = UINT32_MAX,
				       .stamp = printer->stamp,
				       .begun = printer->begun,
				       .begun_count = printer->begun_count,
				       .begun_capacity = printer->begun_capacity,
				       .is_bare = printer->is_bare,
				       .shown = printer->shown,
				       .when = printer->when,
				       .image_count = info.images,
				       .stream_count = info.streams};
	printer->places = calloc(info.images + 1, sizeof *printer->places);
	printer->streams = calloc(info.streams + 1, sizeof *printer->streams);
	printer->json_streams = calloc(info.streams + 1, sizeof *printer->json_streams);
	if (!printer->places || !printer->streams || !printer->json_streams)
		return false;
	printer->has_pids = tw_processes_are_declared(capture);
	for (uint32_t i = 0; i < info.images; i++) {
		if (!tw_names_places(&printer->places[i], capture, i, format->make_place))
			return false;
	}
	return init_streams(printer, &info);
}

bool tw_printer_refresh(struct tw_printer *printer, const struct tw_print_format *format, uint32_t *places)
{
	struct tw_capture_info info;
	tw_capture_info(printer->capture, &info);
	if (info.images == printer->image_count && info.streams == printer->stream_count && info.places == *places)
		return true;
	*places = info.places;
	tw_printer_free(printer);
	return tw_printer_init(printer, printer->out, printer->capture, format);
}

bool tw_printer_begin_image(struct tw_printer *printer, const struct tw_capture_event *event,
			    const struct tw_print_format *format)
{
	while (printer->begun_count <= event->image) {
		if (!tw_grow(printer->begun, printer->begun_count, printer->begun_capacity))
			return false;
		printer->begun[printer->begun_count++] = false;
	}
	if (printer->begun[event->image])
		return true;
	printer->begun[event->image] = true;
	uint32_t number = tw_exec_number(printer->capture, event->image);
	if (number > 1)
		format->exec(printer, event, number);
	return true;
}
