/* SPDX-License-Identifier: Apache-2.0 */
/*
 * print_perfetto.c - the timeline as Perfetto's own format, which ui.perfetto.dev, its trace_processor and SQL read.
 *
 * Each track is a sequence of packets of its own: names are sent once for each, and times are differences from the packet
 * before, so that a call takes some twelve bytes; packets are packed, many in one.  A call is a begin and an end in the order of time; its arguments stand at
 * its begin, its result at its end.  Times are those of the clock of the capture, and one snapshot says the time of day.
 *
 * Source: perfetto.dev, "Trace packet proto reference" and "Synchronization of multiple clock domains".
 */
#include "tools/print/perfetto_values.h"
#include "tools/print/timeline.h"
#include "views/names/missing.h"
#include "views/output/deflate.h"
#include "views/output/protobuf.h"
#include "base/grow.h"

#include "tracewheel/error.h"

#include <stdlib.h>

/* Numbers of fields. */
enum trace { TRACE_PACKET = 1 };
enum packed { PACKET_COMPRESSED = 50 };
enum packet {
	PACKET_CLOCK_SNAPSHOT = 6,
	PACKET_TIMESTAMP = 8,
	PACKET_SEQUENCE_ID = 10,
	PACKET_TRACK_EVENT = 11,
	PACKET_INTERNED_DATA = 12,
	PACKET_SEQUENCE_FLAGS = 13,
	PACKET_CLOCK_ID = 58,
	PACKET_DEFAULTS = 59,
	PACKET_TRACK_DESCRIPTOR = 60
};
enum snapshot { SNAPSHOT_CLOCKS = 1 };
enum snapshot_clock { SNAPSHOT_CLOCK_ID = 1, SNAPSHOT_TIMESTAMP = 2, SNAPSHOT_IS_INCREMENTAL = 3 };
enum defaults { DEFAULTS_TRACK_EVENT = 11, DEFAULTS_CLOCK_ID = 58 };
enum interned { INTERNED_EVENT_NAMES = 2, INTERNED_ANNOTATION_NAMES = 3 };
enum interned_name { NAME_IID = 1, NAME_TEXT = 2 };
enum descriptor {
	TRACK_UUID = 1,
	TRACK_NAME = 2,
	TRACK_PROCESS = 3,
	TRACK_THREAD = 4,
	TRACK_PARENT = 5,
	TRACK_COUNTER = 8
};
enum process { PROCESS_PID = 1, PROCESS_NAME = 6 };
enum thread { THREAD_PID = 1, THREAD_TID = 2, THREAD_NAME = 5 };
enum event {
	EVENT_TYPE = 9,
	EVENT_NAME_IID = 10,
	EVENT_TRACK_UUID = 11,
	EVENT_CATEGORIES = 22,
	EVENT_NAME = 23,
	EVENT_COUNTER = 30,
	EVENT_FLOW_IDS = 47,
	EVENT_ENDING_FLOW_IDS = 48
};
enum counter { COUNTER_UNIT = 3 };
enum { UNIT_BYTES = 3 };
enum event_type { SLICE_BEGIN = 1, SLICE_END = 2, INSTANT = 3, COUNTER = 4 };

enum { SEQUENCE_BEGINS = 1 }; /* of sequence_flags: nothing from before holds */
enum { CLOCK_REALTIME_ID = 1, CLOCK_BOOTTIME_ID = 6, CLOCK_OF_SEQUENCE = 64 };

/* Of descriptors and counters, which belong to no track's sequence. */
#define COMMON_SEQUENCE 1
#define COUNTER_TRACKS	UINT64_C(0x7fffffff00000001)

/* A track's packets. */
struct sequence {
	uint64_t last_ns; /* the time of its last packet whose time is a difference */
	uint8_t *named;	  /* by function, a bit: its name has been sent */
	bool is_begun;
};

struct perfetto {
	struct tw_proto packet;
	struct tw_deflate *deflate;
	struct tw_map by_track; /* image and number of a track: the index of its sequence */
	struct sequence *sequences;
	size_t count, capacity;
	struct tw_map counters; /* numbers of those that have a track */
};

/* ---- packets ---- */

static void put_packet(struct tw_timeline *timeline)
{
	struct perfetto *perfetto = timeline->user;
	uint8_t head[12];
	size_t bytes = 1;
	if (perfetto->packet.has_no_memory) {
		timeline->has_no_memory = true;
		return;
	}
	head[0] = TRACE_PACKET << 3 | 2;
	bytes += tw_proto_varint(head + 1, perfetto->packet.used);
	timeline->has_no_memory |=
		!tw_deflate_add(perfetto->deflate, head, bytes, perfetto->packet.data, perfetto->packet.used);
}

/* Packets that are packed, as one packet. */
static void put_packed(void *context, const void *data, size_t bytes)
{
	struct tw_out *out = context;
	uint8_t head[24], field[12];
	size_t field_bytes = tw_proto_varint(field, PACKET_COMPRESSED << 3 | 2), head_bytes = 1;
	field_bytes += tw_proto_varint(field + field_bytes, bytes);
	*head = TRACE_PACKET << 3 | 2;
	head_bytes += tw_proto_varint(head + 1, field_bytes + bytes);
	tw_out_bytes(out, head, head_bytes);
	tw_out_bytes(out, field, field_bytes);
	tw_out_bytes(out, data, bytes);
}

static uint64_t uuid_of(uint32_t image, uint32_t number)
{
	return (uint64_t)(image + 1) << 32 | number;
}

static void put_clock(struct tw_proto *packet, uint32_t id, uint64_t ns, bool is_incremental)
{
	size_t clock = tw_proto_open(packet, SNAPSHOT_CLOCKS);
	tw_proto_u64(packet, SNAPSHOT_CLOCK_ID, id);
	tw_proto_u64(packet, SNAPSHOT_TIMESTAMP, ns);
	if (is_incremental)
		tw_proto_u64(packet, SNAPSHOT_IS_INCREMENTAL, 1);
	tw_proto_close(packet, clock);
}

static void put_interned(struct tw_proto *packet, enum interned kind, uint64_t iid, const char *text, size_t bytes)
{
	size_t name = tw_proto_open(packet, kind);
	tw_proto_u64(packet, NAME_IID, iid);
	tw_proto_bytes(packet, NAME_TEXT, text, bytes);
	tw_proto_close(packet, name);
}

/* The first packet of a track: its clock, what holds for all that follow, and the names of annotations. */
static void begin_sequence(struct tw_timeline *timeline, struct sequence *sequence, uint32_t id, uint64_t uuid,
			   uint64_t ns)
{
	struct tw_proto *packet = &((struct perfetto *)timeline->user)->packet;
	size_t part, event;
	packet->used = 0;
	tw_proto_u64(packet, PACKET_SEQUENCE_ID, id);
	tw_proto_u64(packet, PACKET_SEQUENCE_FLAGS, SEQUENCE_BEGINS);
	part = tw_proto_open(packet, PACKET_CLOCK_SNAPSHOT);
	put_clock(packet, CLOCK_OF_SEQUENCE, ns, true);
	put_clock(packet, CLOCK_BOOTTIME_ID, ns, false);
	tw_proto_close(packet, part);
	part = tw_proto_open(packet, PACKET_DEFAULTS);
	tw_proto_u64(packet, DEFAULTS_CLOCK_ID, CLOCK_OF_SEQUENCE);
	event = tw_proto_open(packet, DEFAULTS_TRACK_EVENT);
	tw_proto_u64(packet, EVENT_TRACK_UUID, uuid);
	tw_proto_close(packet, event);
	tw_proto_close(packet, part);
	part = tw_proto_open(packet, PACKET_INTERNED_DATA);
	for (uint32_t i = 1; i < TW_PERFETTO_NAMES; i++)
		put_interned(packet, INTERNED_ANNOTATION_NAMES, i, tw_perfetto_name(i), strlen(tw_perfetto_name(i)));
	tw_proto_close(packet, part);
	put_packet(timeline);
	sequence->is_begun = true;
	sequence->last_ns = ns;
}

/* Begins an event's packet on a track; the event stays open.  Returns what is closed by end_event(). */
static size_t open_event(struct tw_timeline *timeline, uint32_t index, uint64_t uuid, uint64_t ns, enum event_type type)
{
	struct perfetto *perfetto = timeline->user;
	struct sequence *sequence = &perfetto->sequences[index];
	struct tw_proto *packet = &perfetto->packet;
	uint32_t id = COMMON_SEQUENCE + 1 + index;
	if (!sequence->is_begun)
		begin_sequence(timeline, sequence, id, uuid, ns);
	packet->used = 0;
	if (ns >= sequence->last_ns) {
		tw_proto_u64(packet, PACKET_TIMESTAMP, ns - sequence->last_ns);
		sequence->last_ns = ns;
	} else {
		/* Behind a slice that was written whole. */
		tw_proto_u64(packet, PACKET_CLOCK_ID, CLOCK_BOOTTIME_ID);
		tw_proto_u64(packet, PACKET_TIMESTAMP, ns);
	}
	tw_proto_u64(packet, PACKET_SEQUENCE_ID, id);
	size_t event = tw_proto_open(packet, PACKET_TRACK_EVENT);
	tw_proto_u64(packet, EVENT_TYPE, type);
	return event;
}

static void end_event(struct tw_timeline *timeline, size_t event)
{
	struct perfetto *perfetto = timeline->user;
	tw_proto_close(&perfetto->packet, event);
	put_packet(timeline);
}

/* ---- short packets ---- */

/* More than the fields of any have. */
#define SHORT_BYTES_MAX 80

static inline uint8_t *put_short(uint8_t *at, uint32_t field, uint64_t value)
{
	*at++ = (uint8_t)(field << 3);
	return at + tw_proto_varint(at, value);
}

/*
 * The packet of a begin or end that nothing special is to be said of, which is nearly every one: the bytes that open_event() and end_event() would
 * write, written once, where they are packed.
 *
 * @name	of a begin: its function, which this sequence has named before.
 * @result	of an end: what it returned; NULL: nothing is known.
 *
 * Returns false if it is a special one: its time is before that of another packet, or the sequence has not begun.
 */
static bool put_short_event(struct tw_timeline *timeline, uint32_t index, uint64_t ns, enum event_type type,
			    uint64_t name, const struct tw_print_word *result)
{
	struct perfetto *perfetto = timeline->user;
	struct sequence *sequence = &perfetto->sequences[index];
	if (!sequence->is_begun || ns < sequence->last_ns)
		return false;
	uint8_t *start = tw_deflate_space(perfetto->deflate, SHORT_BYTES_MAX), *at, *event;
	if (!start) {
		timeline->has_no_memory = true;
		return true;
	}
	/* Behind the tag and the length of the packet: both lengths are below 128. */
	at = put_short(start + 2, PACKET_TIMESTAMP, ns - sequence->last_ns);
	at = put_short(at, PACKET_SEQUENCE_ID, COMMON_SEQUENCE + 1 + index);
	sequence->last_ns = ns;
	*at = PACKET_TRACK_EVENT << 3 | 2;
	event = at + 2;
	at = put_short(event, EVENT_TYPE, type);
	if (type == SLICE_BEGIN)
		at = put_short(at, EVENT_NAME_IID, name);
	if (result) {
		uint8_t *annotation = at + 2;
		*at = TW_PERFETTO_ANNOTATIONS << 3 | 2;
		at = put_short(annotation, TW_ANNOTATION_NAME_IID, TW_PERFETTO_RESULT);
		at = put_short(at, tw_perfetto_kind_of(result), result->value);
		annotation[-1] = (uint8_t)(at - annotation);
	}
	event[-1] = (uint8_t)(at - event);
	start[0] = TRACE_PACKET << 3 | 2;
	start[1] = (uint8_t)(at - start - 2);
	timeline->has_no_memory |= !tw_deflate_added(perfetto->deflate, (size_t)(at - start));
	return true;
}

/* The index of a track's sequence.  False: no memory. */
static bool find_sequence(struct tw_timeline *timeline, uint32_t image, uint32_t number, uint32_t *index)
{
	struct perfetto *perfetto = timeline->user;
	uint64_t key = uuid_of(image, number);
	*index = tw_map_get(&perfetto->by_track, key);
	if (*index != TW_MAP_NONE)
		return true;
	if (!tw_grow(perfetto->sequences, perfetto->count, perfetto->capacity) ||
	    !tw_map_add(&perfetto->by_track, key, (uint32_t)perfetto->count)) {
		timeline->has_no_memory = true;
		return false;
	}
	struct sequence *sequence = &perfetto->sequences[perfetto->count];
	*sequence = (struct sequence){.named = calloc(timeline->places.function_count / 8 + 1, 1)};
	if (!sequence->named) {
		timeline->has_no_memory = true;
		return false;
	}
	*index = (uint32_t)perfetto->count++;
	return true;
}

/* The same, kept with the track of a stack. */
static bool sequence_of(struct tw_timeline *timeline, struct tw_timeline_track *track, uint32_t *index)
{
	if (!track->format) {
		if (!find_sequence(timeline, track->image, track->number, index))
			return false;
		track->format = *index + 1;
	}
	*index = track->format - 1;
	return true;
}

/* ---- names ---- */

static void describe_process(struct tw_timeline *timeline, uint32_t image)
{
	struct tw_proto *packet = &((struct perfetto *)timeline->user)->packet;
	char program[TW_TIMELINE_PROGRAM_BYTES];
	size_t bytes = tw_timeline_program(timeline, image, program);
	packet->used = 0;
	tw_proto_u64(packet, PACKET_SEQUENCE_ID, COMMON_SEQUENCE);
	size_t track = tw_proto_open(packet, PACKET_TRACK_DESCRIPTOR);
	tw_proto_u64(packet, TRACK_UUID, uuid_of(image, 0));
	size_t process = tw_proto_open(packet, TRACK_PROCESS);
	tw_proto_u64(packet, PROCESS_PID, tw_timeline_process(timeline, image));
	tw_proto_bytes(packet, PROCESS_NAME, program, bytes);
	tw_proto_close(packet, process);
	tw_proto_close(packet, track);
	put_packet(timeline);
}

static bool open_trace(struct tw_timeline *timeline)
{
	struct tw_proto *packet = &((struct perfetto *)timeline->user)->packet;
	struct tw_capture_info info;
	tw_capture_info(timeline->printer->capture, &info);
	tw_proto_u64(packet, PACKET_SEQUENCE_ID, COMMON_SEQUENCE);
	tw_proto_u64(packet, PACKET_SEQUENCE_FLAGS, SEQUENCE_BEGINS);
	size_t snapshot = tw_proto_open(packet, PACKET_CLOCK_SNAPSHOT);
	put_clock(packet, CLOCK_BOOTTIME_ID, info.start_ns, false);
	put_clock(packet, CLOCK_REALTIME_ID, info.start_wall_ns, false);
	tw_proto_close(packet, snapshot);
	put_packet(timeline);
	for (uint32_t i = 0; tw_capture_image(timeline->printer->capture, i); i++)
		describe_process(timeline, i);
	return !timeline->has_no_memory;
}

static void name_track(struct tw_timeline *timeline, uint32_t image, uint32_t number, const char *name, size_t bytes)
{
	struct tw_proto *packet = &((struct perfetto *)timeline->user)->packet;
	packet->used = 0;
	tw_proto_u64(packet, PACKET_SEQUENCE_ID, COMMON_SEQUENCE);
	size_t track = tw_proto_open(packet, PACKET_TRACK_DESCRIPTOR);
	tw_proto_u64(packet, TRACK_UUID, uuid_of(image, number));
	tw_proto_u64(packet, TRACK_PARENT, uuid_of(image, 0));
	if (number < TW_TIMELINE_OTHERS) {
		size_t thread = tw_proto_open(packet, TRACK_THREAD);
		tw_proto_u64(packet, THREAD_PID, tw_timeline_process(timeline, image));
		tw_proto_u64(packet, THREAD_TID, number);
		tw_proto_bytes(packet, THREAD_NAME, name, bytes);
		tw_proto_close(packet, thread);
	} else {
		tw_proto_bytes(packet, TRACK_NAME, name, bytes);
	}
	tw_proto_close(packet, track);
	put_packet(timeline);
}

static inline bool is_named(const struct perfetto *perfetto, uint32_t index, uint32_t function)
{
	return perfetto->sequences[index].named[function / 8] & 1u << function % 8;
}

/* The name of a function, as its number on this track; the first time with the name itself, behind the event. */
static bool put_function(struct tw_timeline *timeline, uint32_t index, uint32_t function)
{
	struct perfetto *perfetto = timeline->user;
	uint8_t *bits = &perfetto->sequences[index].named[function / 8];
	bool is_new = !(*bits & 1u << function % 8);
	tw_proto_u64(&perfetto->packet, EVENT_NAME_IID, function + UINT64_C(1));
	*bits |= (uint8_t)(1u << function % 8);
	return is_new;
}

static void end_named_event(struct tw_timeline *timeline, size_t event, uint32_t function, bool is_new)
{
	struct perfetto *perfetto = timeline->user;
	tw_proto_close(&perfetto->packet, event);
	if (is_new) {
		const struct tw_name *name = &timeline->places.names[function];
		size_t interned = tw_proto_open(&perfetto->packet, PACKET_INTERNED_DATA);
		put_interned(&perfetto->packet, INTERNED_EVENT_NAMES, function + UINT64_C(1), name->text, name->bytes);
		tw_proto_close(&perfetto->packet, interned);
	}
	put_packet(timeline);
}

/* ---- slices ---- */

static struct tw_out scratch;

static void begin_call(struct tw_timeline *timeline, struct tw_timeline_track *track, struct tw_stack *stack,
		       uint32_t depth, const struct tw_capture_event *event)
{
	const struct tw_stack_frame *frame = &stack->frames[depth];
	struct perfetto *perfetto = timeline->user;
	uint32_t index;
	if (!timeline->has_begun || !sequence_of(timeline, track, &index))
		return;
	bool has_arguments = event && event->kind == TW_CAPTURE_CALL && event->payload_words;
	if (!has_arguments && is_named(perfetto, index, frame->function) &&
	    put_short_event(timeline, index, frame->start_ns, SLICE_BEGIN, frame->function + UINT64_C(1), NULL))
		return;
	size_t open = open_event(timeline, index, uuid_of(track->image, track->number), frame->start_ns, SLICE_BEGIN);
	bool is_new = put_function(timeline, index, frame->function);
	scratch.used = 0;
	if (has_arguments && tw_print_arguments_member(timeline->printer, event, &scratch))
		tw_perfetto_member(&perfetto->packet, scratch.data, scratch.used);
	end_named_event(timeline, open, frame->function, is_new);
}

static void end_call(struct tw_timeline *timeline, const struct tw_timeline_end *end)
{
	struct tw_timeline_track *track = end->track;
	const struct tw_stack_frame *frame = &end->stack->frames[end->stack->depth - 1];
	struct tw_proto *packet = &((struct perfetto *)timeline->user)->packet;
	uint32_t index;
	if (!sequence_of(timeline, track, &index))
		return;
	bool is_short = !end->result && !end->end && !frame->before_ns && !end->is_lossy && !end->own_ns;
	if (is_short && put_short_event(timeline, index, end->ns, SLICE_END, 0, end->word))
		return;
	size_t event = open_event(timeline, index, uuid_of(track->image, track->number), end->ns, SLICE_END);
	if (end->result)
		tw_perfetto_member(packet, end->result, end->result_bytes);
	if (end->word)
		tw_perfetto_number(packet, TW_PERFETTO_RESULT, tw_perfetto_kind_of(end->word), end->word->value);
	if (end->end)
		tw_perfetto_text(packet, TW_PERFETTO_ENDED, TW_ANNOTATION_TEXT, end->end, strlen(end->end));
	if (frame->before_ns)
		tw_perfetto_number(packet, TW_PERFETTO_BEFORE, TW_ANNOTATION_UINT, frame->before_ns);
	if (end->is_lossy)
		tw_perfetto_number(packet, TW_PERFETTO_LOSSY, TW_ANNOTATION_BOOL, 1);
	if (end->own_ns)
		tw_perfetto_number(packet, TW_PERFETTO_OWN, TW_ANNOTATION_UINT, end->own_ns);
	end_event(timeline, event);
}

static void put_span(struct tw_timeline *timeline, const struct tw_timeline_span *span)
{
	struct tw_proto *packet = &((struct perfetto *)timeline->user)->packet;
	uint64_t uuid = uuid_of(span->image, span->number);
	uint32_t index;
	if (!find_sequence(timeline, span->image, span->number, &index))
		return;
	size_t event = open_event(timeline, index, uuid, span->from_ns, SLICE_BEGIN);
	tw_proto_text(packet, EVENT_NAME, span->name);
	if (span->category)
		tw_proto_text(packet, EVENT_CATEGORIES, span->category);
	if (span->arguments)
		tw_perfetto_member(packet, span->arguments, span->arguments_bytes);
	end_event(timeline, event);
	end_event(timeline, open_event(timeline, index, uuid, span->to_ns, SLICE_END));
}

/* ---- moments ---- */

static void put_counter(struct tw_timeline *timeline, const struct tw_timeline_counter *counter)
{
	struct perfetto *perfetto = timeline->user;
	struct tw_proto *packet = &perfetto->packet;
	uint64_t uuid = COUNTER_TRACKS + counter->number;
	size_t part, unit;
	if (tw_map_get(&perfetto->counters, counter->number) == TW_MAP_NONE) {
		timeline->has_no_memory |= !tw_map_add(&perfetto->counters, counter->number, 0);
		packet->used = 0;
		tw_proto_u64(packet, PACKET_SEQUENCE_ID, COMMON_SEQUENCE);
		part = tw_proto_open(packet, PACKET_TRACK_DESCRIPTOR);
		tw_proto_u64(packet, TRACK_UUID, uuid);
		tw_proto_text(packet, TRACK_NAME, counter->name);
		if (counter->image != TW_TIMELINE_WHOLE)
			tw_proto_u64(packet, TRACK_PARENT, uuid_of(counter->image, 0));
		unit = tw_proto_open(packet, TRACK_COUNTER);
		if (counter->is_bytes)
			tw_proto_u64(packet, COUNTER_UNIT, UNIT_BYTES);
		tw_proto_close(packet, unit);
		tw_proto_close(packet, part);
		put_packet(timeline);
	}
	packet->used = 0;
	tw_proto_u64(packet, PACKET_TIMESTAMP, counter->ns);
	tw_proto_u64(packet, PACKET_SEQUENCE_ID, COMMON_SEQUENCE);
	part = tw_proto_open(packet, PACKET_TRACK_EVENT);
	tw_proto_u64(packet, EVENT_TYPE, COUNTER);
	tw_proto_u64(packet, EVENT_TRACK_UUID, uuid);
	tw_proto_u64(packet, EVENT_COUNTER, counter->value);
	tw_proto_close(packet, part);
	put_packet(timeline);
}

static void put_moment(struct tw_timeline *timeline, const struct tw_timeline_moment *moment)
{
	struct tw_proto *packet = &((struct perfetto *)timeline->user)->packet;
	const struct tw_timeline_track *track = moment->track;
	bool is_new = false;
	uint32_t index;
	if (!find_sequence(timeline, track->image, track->number, &index))
		return;
	size_t event = open_event(timeline, index, uuid_of(track->image, track->number), moment->ns, INSTANT);
	if (moment->word)
		tw_proto_text(packet, EVENT_NAME, moment->word);
	else
		is_new = put_function(timeline, index, moment->function);
	if (moment->arguments)
		tw_perfetto_member(packet, moment->arguments, moment->arguments_bytes);
	if (moment->what)
		tw_perfetto_text(packet, TW_PERFETTO_WHAT, TW_ANNOTATION_TEXT, moment->what, moment->what_bytes);
	if (moment->flow)
		tw_proto_fixed64(packet,
				 moment->flow == TW_TIMELINE_FLOW_BEGINS ? EVENT_FLOW_IDS : EVENT_ENDING_FLOW_IDS,
				 moment->flow_id);
	end_named_event(timeline, event, moment->function, is_new);
	if (moment->lost)
		put_counter(timeline, &(struct tw_timeline_counter){.number = TW_TIMELINE_LOST,
								    .name = "events lost",
								    .image = TW_TIMELINE_WHOLE,
								    .ns = moment->ns,
								    .value = moment->lost});
}

static void close_trace(struct tw_timeline *timeline)
{
	timeline->has_no_memory |= !tw_deflate_finish(((struct perfetto *)timeline->user)->deflate);
}

int tw_print_perfetto(struct tw_printer *printer, const struct tw_capture_filter *filter, uint64_t limit)
{
	static const struct tw_timeline_format format = {
		.takes_words = true,
		.open = open_trace,
		.name_track = name_track,
		.begin = begin_call,
		.end = end_call,
		.span = put_span,
		.moment = put_moment,
		.counter = put_counter,
		.close = close_trace,
	};
	struct perfetto perfetto = {0};
	tw_out_init(&scratch, -1);
	perfetto.deflate = tw_deflate_create(put_packed, printer->out);
	int error = perfetto.deflate ? tw_timeline_write(printer, &format, &perfetto, filter, limit) : TW_ENOMEM;
	tw_deflate_destroy(perfetto.deflate);
	for (size_t i = 0; i < perfetto.count; i++)
		free(perfetto.sequences[i].named);
	free(perfetto.sequences);
	tw_map_fini(&perfetto.by_track);
	tw_map_fini(&perfetto.counters);
	tw_proto_free(&perfetto.packet);
	return error;
}
