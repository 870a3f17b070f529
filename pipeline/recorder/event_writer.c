/* SPDX-License-Identifier: Apache-2.0 */
/*
 * event_writer.c - writer.h: events with times of the caller's, straight to a segment, without rings.
 *
 * Ticks are the caller's nanoseconds.  A stream collects records up to the size of a block; definitions are written before
 * any block of events, so that a capture that was cut off has the names of all its events.
 */
#include "base/error.h"
#include "base/export.h"
#include "pipeline/format/definitions.h"
#include "pipeline/format/event.h"
#include "pipeline/recorder/store.h"
#include "tracewheel/writer.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NS_PER_SECOND	  UINT64_C(1000000000)
#define DEFINITIONS_BYTES (128u << 10)
#define TEXT_BYTES_MAX	  1024u
#define STREAM_BYTES	  TW_BLOCK_RAW_BYTES_MAX
/* A switch record, and an event. */
#define SWITCH_BYTES	((uint32_t)sizeof(struct tw_rb_record) + 16)
#define EVENT_BYTES(n)	((uint32_t)sizeof(struct tw_rb_record) + ((n) + 1u) / 2 * 16)
#define EVENT_BYTES_MAX (SWITCH_BYTES + EVENT_BYTES(TW_PRODUCER_WORDS_MAX))
_Static_assert(EVENT_BYTES_MAX <= STREAM_BYTES, "an event fits a block");
_Static_assert(EVENT_BYTES(TW_PRODUCER_WORDS_MAX) <= TW_RB_RECORD_BYTES_MAX, "readers accept it");

struct stream {
	struct tw_producer_process *process; /* of the last record */
	uint64_t run_seq;
	/* Before the records that are not written yet. */
	struct tw_block_tracee tracee;
	uint64_t pos, sequence, lost[TW_FORMAT_CAUSES];
	uint32_t bytes;
	uint8_t raw[STREAM_BYTES] __attribute__((aligned(16)));
};

struct tw_capture_writer {
	struct tw_store store;
	struct tw_store_image image;
	struct stream *streams[TW_CAPTURE_WRITER_STREAMS_MAX];
	uint32_t modules, functions, processes;
	uint64_t definitions_pos;
	uint32_t definitions_bytes;
	uint8_t definitions[DEFINITIONS_BYTES];
};

/* ---- definitions ---- */

static int flush_definitions(struct tw_capture_writer *writer)
{
	struct tw_block_header header = {.type = TW_BLOCK_DEFINITIONS,
					 .first_pos = writer->definitions_pos,
					 .end_pos = writer->definitions_pos + writer->definitions_bytes,
					 .clock = writer->store.header.clock};
	const uint8_t *stored;

	if (!writer->definitions_bytes)
		return 0;
	tw_block_encode_definitions(writer->store.encoder, &header, writer->definitions, writer->definitions_bytes,
				    &stored);
	writer->definitions_pos = header.end_pos;
	writer->definitions_bytes = 0;
	return tw_store_append(&writer->store, &writer->image, &header, stored);
}

/* The text of a record, after its fixed part. */
struct text {
	const char *text;
	size_t bytes;
};

static struct text cut(struct tw_producer_name name, size_t max)
{
	return (struct text){name.text, name.bytes < max ? name.bytes : max};
}

static int define(struct tw_capture_writer *writer, uint32_t type, const void *fixed, size_t fixed_bytes,
		  struct text text)
{
	const struct tw_definition_head head = {type, (uint32_t)(fixed_bytes + text.bytes)};
	size_t whole = (sizeof head + head.payload_bytes + 7) / 8 * 8;
	uint8_t *to;
	int error = 0;

	if (writer->definitions_bytes + whole > sizeof writer->definitions)
		error = flush_definitions(writer);
	if (error)
		return error;
	to = writer->definitions + writer->definitions_bytes;
	memset(to + whole - 8, 0, 8);
	memcpy(to, &head, sizeof head);
	memcpy(to + sizeof head, fixed, fixed_bytes);
	if (text.bytes)
		memcpy(to + sizeof head + fixed_bytes, text.text, text.bytes);
	writer->definitions_bytes += (uint32_t)whole;
	return 0;
}

static int define_image(struct tw_capture_writer *writer, const struct tw_capture_writer_options *options)
{
	const char *program = options->program ? options->program : "",
		   *command = options->command ? options->command : "";
	const size_t bytes = strnlen(program, TW_NAME_BYTES_MAX), command_bytes = strnlen(command, TW_NAME_BYTES_MAX);
	const struct tw_def_image image = {.start_ticks = writer->image.start_ticks,
					   .program_bytes = (uint16_t)bytes,
					   .command_bytes = (uint16_t)command_bytes};
	char text[2 * TW_NAME_BYTES_MAX];

	memcpy(text, program, bytes);
	memcpy(text + bytes, command, command_bytes);
	return define(writer, TW_DEF_IMAGE, &image, sizeof image, (struct text){text, bytes + command_bytes});
}

static int define_session(struct tw_capture_writer *writer, const char *name)
{
	const size_t bytes = name ? strnlen(name, 255) : 0;
	const struct tw_def_session session = {.session_index = 1, .session_id = 1, .name_bytes = (uint16_t)bytes};

	return define(writer, TW_DEF_SESSION, &session, sizeof session, (struct text){name, bytes});
}

TW_API int tw_capture_writer_define_module(struct tw_capture_writer *writer, struct tw_producer_name name, uint32_t *id)
{
	const struct text text = cut(name, TW_NAME_BYTES_MAX);
	const struct tw_def_module module = {.module_id = writer->modules + 1,
					     .is_declared = 1,
					     .name_bytes = (uint16_t)text.bytes};
	int error = define(writer, TW_DEF_MODULE, &module, sizeof module, text);

	if (!error)
		*id = ++writer->modules;
	return error;
}

TW_API int tw_capture_writer_define_function(struct tw_capture_writer *writer, uint32_t module,
					     struct tw_producer_name name, unsigned arity, uint32_t *id)
{
	const struct text text = cut(name, TW_NAME_BYTES_MAX);
	/* A function has one place, of the same number. */
	const uint32_t number = writer->functions + 1;
	const struct tw_def_function function = {.function_id = number,
						 .module_id = module,
						 .arity = arity,
						 .name_bytes = (uint16_t)text.bytes};
	const struct tw_def_place place = {.place_id = number, .function_id = number, .kind = TW_PLACE_DECLARED};
	int error = define(writer, TW_DEF_FUNCTION, &function, sizeof function, text);

	if (!error)
		error = define(writer, TW_DEF_PLACE, &place, sizeof place, (struct text){0});
	if (!error)
		*id = writer->functions = number;
	return error;
}

static int define_process(struct tw_capture_writer *writer, uint32_t id, bool is_port, uint64_t number, uint32_t serial,
			  struct tw_producer_name name)
{
	const struct text text = cut(name, 255);
	const struct tw_def_tracee tracee = {.tracee_id = id,
					     .pid_number = (uint32_t)number,
					     .pid_serial = serial,
					     .name_bytes = (uint16_t)text.bytes,
					     .kind = is_port ? TW_TRACEE_PORT : TW_TRACEE_PROCESS};

	return define(writer, TW_DEF_TRACEE, &tracee, sizeof tracee, text);
}

TW_API int tw_capture_writer_define_process(struct tw_capture_writer *writer, bool is_port, uint64_t number,
					    uint32_t serial, struct tw_producer_name name,
					    struct tw_producer_process *out)
{
	int error = define_process(writer, writer->processes + 1, is_port, number, serial, name);

	if (!error)
		*out = (struct tw_producer_process){.id = ++writer->processes};
	return error;
}

TW_API int tw_capture_writer_name_process(struct tw_capture_writer *writer, const struct tw_producer_process *process,
					  bool is_port, uint64_t number, uint32_t serial, struct tw_producer_name name)
{
	return define_process(writer, process->id, is_port, number, serial, name);
}

TW_API int tw_capture_writer_note(struct tw_capture_writer *writer, struct tw_producer_name text)
{
	const struct text note = cut(text, TEXT_BYTES_MAX);
	const struct tw_def_note fixed = {.text_bytes = (uint16_t)note.bytes};

	return define(writer, TW_DEF_NOTE, &fixed, sizeof fixed, note);
}

/* ---- events ---- */

static int flush(struct tw_capture_writer *writer, uint32_t number)
{
	struct stream *stream = writer->streams[number];
	struct tw_block_header header = {.thread_id = (int32_t)number + 1,
					 .session_index = 1,
					 .scheduler_id = number,
					 .tracee_id = stream->tracee.tracee_id,
					 .run_seq = stream->tracee.run_seq,
					 .ring_lease = number + 1,
					 .first_pos = stream->pos,
					 .end_pos = stream->pos + stream->bytes,
					 .first_sequence = stream->sequence,
					 .clock = writer->store.header.clock};
	const uint8_t *stored;
	int error;

	if (!stream->bytes)
		return 0;
	error = flush_definitions(writer);
	if (error)
		return error;
	memcpy(header.lost, stream->lost, sizeof header.lost);
	error = tw_block_encode_events(writer->store.encoder, &header, stream->raw, stream->bytes, &stored);
	if (!error)
		error = tw_store_append(&writer->store, &writer->image, &header, stored);
	if (error)
		return error;
	memcpy(stream->lost, header.lost, sizeof header.lost);
	stream->tracee = tw_block_encoder_tracee(writer->store.encoder);
	stream->pos = header.end_pos;
	stream->sequence = header.end_sequence;
	stream->bytes = 0;
	return 0;
}

/* Space for so many bytes of records in the stream; NULL: *error says why. */
static void *reserve(struct tw_capture_writer *writer, uint32_t number, uint32_t bytes, int *error)
{
	struct stream *stream;
	void *space;

	*error = TW_EBADARG;
	if (number >= TW_CAPTURE_WRITER_STREAMS_MAX)
		return NULL;
	if (!writer->streams[number])
		writer->streams[number] = calloc(1, sizeof **writer->streams);
	stream = writer->streams[number];
	*error = !stream ? TW_ENOMEM : stream->bytes + bytes > STREAM_BYTES ? flush(writer, number) : 0;
	if (*error)
		return NULL;
	space = stream->raw + stream->bytes;
	memset(space, 0, bytes);
	stream->bytes += bytes;
	return space;
}

static struct tw_rb_record *put_record(struct tw_rb_record *record, uint64_t ticks, uint64_t head,
				       const uint64_t *words, uint32_t count)
{
	record->ticks = ticks;
	record->head = head;
	if (count)
		memcpy(record + 1, words, count * sizeof *words);
	return (struct tw_rb_record *)((uint8_t *)record + TW_RB_HEAD_BYTES(head));
}

TW_API int tw_capture_writer_event(struct tw_capture_writer *writer, uint32_t number, uint64_t time_ns,
				   struct tw_producer_process *process, const struct tw_producer_event *event)
{
	uint32_t bytes = EVENT_BYTES(event->count);
	struct tw_rb_record *record;
	struct stream *stream;
	int error;

	if (event->count > TW_PRODUCER_WORDS_MAX)
		return TW_EBADARG;
	/* Space for both, at first: a switch record stands in the block of its event. */
	record = reserve(writer, number, bytes + SWITCH_BYTES, &error);
	if (!record)
		return error;
	stream = writer->streams[number];
	if (stream->process != process || stream->run_seq != process->run_seq) {
		stream->process = process;
		stream->run_seq = ++process->run_seq;
		record = put_record(record, time_ns,
				    TW_RB_HEAD(TW_EVENT_SWITCH, TW_EVENT_FLAG_HALF, SWITCH_BYTES, process->id),
				    &stream->run_seq, 1);
	} else {
		stream->bytes -= SWITCH_BYTES;
	}
	put_record(record, time_ns,
		   TW_RB_HEAD(event->kind, event->flags | (event->count % 2 ? TW_EVENT_FLAG_HALF : 0), bytes,
			      event->id),
		   event->words, event->count);
	return 0;
}

TW_API int tw_capture_writer_loss(struct tw_capture_writer *writer, uint32_t number, uint64_t time_ns,
				  enum tw_lost_cause cause, uint64_t count)
{
	const uint32_t bytes = sizeof(struct tw_rb_loss_record);
	struct tw_rb_loss_record *loss;
	int error;

	if ((unsigned)cause >= TW_LOST_CAUSES || count > TW_RB_LOST_MAX)
		return TW_EBADARG;
	if (!count)
		return 0;
	loss = reserve(writer, number, bytes, &error);
	if (!loss)
		return error;
	loss->record = (struct tw_rb_record){time_ns, TW_RB_HEAD(TW_EVENT_LOSS, 0, bytes, 0)};
	loss->first_ticks = time_ns;
	loss->lost[cause] = count;
	return 0;
}

/* ---- life ---- */

/* Header and blocks map the caller's times to clocks: ticks, CLOCK_MONOTONIC and CLOCK_BOOTTIME are one. */
static int begin(struct tw_capture_writer *writer, const struct tw_capture_writer_options *options)
{
	const struct tw_recorder_options folder = {.path = options->path, .force = options->force};
	int error = tw_store_create(&writer->store, &folder, false);

	if (error)
		return error;
	writer->store.header.clock_source = TW_CLOCK_MONOTONIC;
	writer->store.header.ticks_per_second = NS_PER_SECOND;
	/* 0 would be no time; the offset is all that counts. */
	writer->store.header.clock = (struct tw_format_clock){1, 1, 1 + options->wall_offset_ns, 1};
	writer->image = (struct tw_store_image){.lease = 1, .start_ticks = 1};
	error = tw_store_open_segment(&writer->store, &writer->image);
	if (error < 0)
		goto remove;
	error = define_image(writer, options);
	if (!error)
		error = define_session(writer, options->session);
	if (error)
		goto remove;
	return 0;
remove:
	if (writer->image.is_open)
		tw_segment_abandon(&writer->image.segment);
	tw_store_remove(options->path);
	tw_store_destroy(&writer->store);
	return error;
}

TW_API int tw_capture_writer_create(const struct tw_capture_writer_options *options, struct tw_capture_writer **out)
{
	struct tw_capture_writer *writer = calloc(1, sizeof *writer);
	int error;

	if (!writer)
		return TW_ENOMEM;
	error = begin(writer, options);
	if (error)
		free(writer);
	else
		*out = writer;
	return error;
}

static void destroy(struct tw_capture_writer *writer)
{
	for (uint32_t i = 0; i < TW_CAPTURE_WRITER_STREAMS_MAX; i++)
		free(writer->streams[i]);
	free(writer->image.closed);
	tw_store_destroy(&writer->store);
	free(writer);
}

TW_API void tw_capture_writer_cut(struct tw_capture_writer *writer)
{
	writer->store.account[TW_ACCOUNT_CUT] = 1;
}

TW_API int tw_capture_writer_finish(struct tw_capture_writer *writer)
{
	int error = flush_definitions(writer);

	for (uint32_t i = 0; i < TW_CAPTURE_WRITER_STREAMS_MAX && !error; i++)
		error = writer->streams[i] ? flush(writer, i) : 0;
	if (!error)
		error = tw_store_close_segment(&writer->store, &writer->image, TW_SEGMENT_FINAL | TW_SEGMENT_LAST);
	if (error) {
		tw_capture_writer_abort(writer);
		return error;
	}
	destroy(writer);
	return 0;
}

TW_API void tw_capture_writer_abort(struct tw_capture_writer *writer)
{
	if (!writer)
		return;
	if (writer->image.is_open)
		tw_segment_abandon(&writer->image.segment);
	tw_store_remove(writer->store.path);
	destroy(writer);
}
