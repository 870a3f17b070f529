/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ttb_write.c - an event of a capture becomes a trace message of Erlang, as `print --format erlang` prints it.
 *
 * Pids are those of nonode@nohost: a node without a name takes them as its own.
 */
#include "tools/convert/convert.h"

#include "tracewheel/error.h"
#include "tracewheel/message.h"
#include "tracewheel/term.h"

#include <stdlib.h>

#define ARENA_BYTES_MAX ((size_t)1 << 30)

static int drain(struct tw_sink *sink)
{
	struct tw_ttb_export *export = sink->context;
	size_t used = (size_t)(sink->at - sink->start);
	size_t bytes = export->encoded_bytes ? export->encoded_bytes * 2 : 65536;
	char *more = realloc(export->encoded, bytes);
	if (!more)
		return TW_ENOMEM;
	export->encoded = sink->start = more;
	export->encoded_bytes = bytes;
	sink->at = more + used;
	sink->end = more + bytes;
	return 0;
}

static void put_record(struct tw_out *out, unsigned op, uint32_t size, const void *data)
{
	const uint8_t head[TW_TTB_HEAD_BYTES] = {(uint8_t)op, (uint8_t)(size >> 24), (uint8_t)(size >> 16),
						 (uint8_t)(size >> 8), (uint8_t)size};
	tw_out_bytes(out, head, sizeof head);
	if (data)
		tw_out_bytes(out, data, size);
}

static int write_message(struct tw_ttb_export *export, struct tw_term message)
{
	struct tw_sink sink = {export->encoded, export->encoded, export->encoded + export->encoded_bytes, drain,
			       export};
	int error = tw_etf_encode(message, (struct tw_term){0}, &sink);
	if (error)
		return error;
	if ((uint64_t)(sink.at - sink.start) > UINT32_MAX)
		return TW_ELIMIT;
	put_record(export->out, TW_TTB_TERM, (uint32_t)(sink.at - sink.start), sink.start);
	return 0;
}

static void write_dropped(struct tw_ttb_export *export, const struct tw_capture_event *event)
{
	const struct tw_capture_loss *loss = tw_capture_event_loss(event);
	uint64_t left = 0;
	for (unsigned cause = 0; cause < TW_LOST_CAUSES; cause++)
		left += loss->lost[cause];
	export->dropped += left;
	while (left) {
		uint32_t part = left < UINT32_MAX ? (uint32_t)left : UINT32_MAX;
		put_record(export->out, TW_TTB_DROPPED, part, NULL);
		left -= part;
	}
}

void tw_ttb_export_init(struct tw_ttb_export *export, struct tw_out *out, int stamp)
{
	*export = (struct tw_ttb_export){.out = out, .stamp = stamp};
	tw_named_message_init(&export->message, NULL, stamp);
	tw_arena_init(&export->arena, ARENA_BYTES_MAX);
}

int tw_ttb_export_event(struct tw_ttb_export *export, const struct tw_capture_event *event)
{
	struct tw_term message;
	if (event->kind == TW_CAPTURE_LOSS) {
		write_dropped(export, event);
		return 0;
	}
	/* Stacks of native calls, and kinds of later versions: Erlang has no message for them. */
	if (tw_kind_is(event->kind, TW_GROUP_RECORD) || !tw_print_kind(event->kind))
		return 0;
	tw_arena_reset(&export->arena);
	/* As in Erlang, system events are never stamped. */
	export->message.form.stamp = event->kind == TW_CAPTURE_MONITOR ? TW_PRINT_STAMP_NONE : export->stamp;
	int error = tw_capture_event_message_as(export->message.capture, event, &export->message.form, &export->arena,
						&message);
	export->events++;
	return error ? error : write_message(export, message);
}

void tw_ttb_export_fini(struct tw_ttb_export *export)
{
	tw_arena_fini(&export->arena);
	free(export->encoded);
}
