/* SPDX-License-Identifier: Apache-2.0 */
/*
 * writer_definitions.c - writes the definitions log of an image into its segments.
 *
 * The first segment of an image takes the log as it grows. Each later one takes, of the definitions made before it
 * began,
 *
 *	modules, tracees, sessions, atoms, notes	at once: they are few, and views use them as names
 *	functions, places, layouts, what is counted	before the first block of events that uses them
 *
 * and then the log as it grows. A program easily has 100,000 functions, and the events of a segment of a few
 * megabytes use some hundred of them. Their positions in the log are kept, from the second segment on, so that they
 * can be found again.
 *
 * Threads are not in the log, which only grows: the header of a thread's ring defines it. Each segment takes the threads
 * that have rings when it begins, and those that get one later. The recorder's knowledge of a thread goes when its ring
 * has ended and is stored.
 */
#include "base/error.h"
#include "pipeline/block/redact.h"
#include "pipeline/format/definitions.h"
#include "pipeline/format/event.h"
#include "pipeline/recorder/writer.h"

#include <stdlib.h>

/* Definitions are collected up to this size, unless a single one is larger. */
#define DEFINITIONS_BYTES (UINT64_C(128) << 10)

_Static_assert(TW_RS_IMAGE_RINGS_MAX *(sizeof(struct tw_definition_head) + TW_DEF_THREAD_BYTES_MAX + 8) <=
		       TW_BLOCK_STORED_BYTES_MAX,
	       "one block holds the threads of an image");

/* Positions are those of the log; 0, where the image itself is defined, means none. */
struct place {
	uint32_t at;
	uint32_t counted_at;
	uint32_t function_id;
	uint32_t segment; /* the segment of the image that it was last written to */
};

struct function {
	uint32_t at;
	uint32_t layout_at;
	uint32_t segment;
};

struct tw_writer_names {
	struct place *places;
	struct function *functions;
	uint32_t place_capacity, function_capacity;
};

void tw_writer_forget_names(struct tw_writer_image *image)
{
	if (image->names) {
		free(image->names->places);
		free(image->names->functions);
	}
	free(image->names);
	image->names = NULL;
}

/* Extends the table to hold the id, with zeros as new entries; NULL: no memory, and the table is unchanged. */
static void *make_space(void *table, uint32_t *capacity, uint32_t id, size_t size)
{
	uint32_t wanted = id < 1024 ? 1024 : id + id / 2;
	uint8_t *more;

	if (id < *capacity)
		return table;
	if (id >= TW_DEF_IDS_MAX)
		return NULL;
	more = realloc(table, wanted * size);
	if (!more)
		return NULL;
	memset(more + *capacity * size, 0, (wanted - *capacity) * size);
	*capacity = wanted;
	return more;
}

static struct place *place_of(struct tw_writer_names *names, uint32_t id)
{
	struct place *table = make_space(names->places, &names->place_capacity, id, sizeof *names->places);

	if (!table)
		return NULL;
	names->places = table;
	return &table[id];
}

static struct function *function_of(struct tw_writer_names *names, uint32_t id)
{
	struct function *table = make_space(names->functions, &names->function_capacity, id, sizeof *names->functions);

	if (!table)
		return NULL;
	names->functions = table;
	return &table[id];
}

/*
 * Keeps the position of a log record, the first one of its id. False: it is written to every segment.
 *
 * @segment	the segment that it is written to now; 0: none.
 */
static bool keep_position(struct tw_writer_names *names, uint32_t type, const void *payload, size_t bytes, uint64_t at,
			  uint32_t segment)
{
	struct tw_def_place place;
	struct tw_def_function function;
	struct tw_def_layout layout;
	struct tw_def_counted counted;
	struct function *known;

	if (type == TW_DEF_COUNTED && bytes >= sizeof counted) {
		struct place *entry;

		memcpy(&counted, payload, sizeof counted);
		entry = place_of(names, counted.place_id);
		if (entry && !entry->counted_at)
			entry->counted_at = (uint32_t)at;
		return entry != NULL;
	}
	if (type == TW_DEF_PLACE && bytes >= sizeof place) {
		struct place *entry;

		memcpy(&place, payload, sizeof place);
		entry = place_of(names, place.place_id);
		if (entry && !entry->at)
			*entry = (struct place){(uint32_t)at, entry->counted_at, place.function_id, segment};
		return entry != NULL;
	}
	if (type == TW_DEF_FUNCTION && bytes >= sizeof function) {
		memcpy(&function, payload, sizeof function);
		known = function_of(names, function.function_id);
		if (known && !known->at)
			*known = (struct function){(uint32_t)at, known->layout_at, segment};
		return known != NULL;
	}
	if (type == TW_DEF_LAYOUT && bytes >= sizeof layout) {
		memcpy(&layout, payload, sizeof layout);
		known = function_of(names, layout.function_id);
		if (known && !known->layout_at)
			known->layout_at = (uint32_t)at;
		return known != NULL;
	}
	return false;
}

size_t tw_writer_put_record(uint8_t *to, uint32_t type, const void *payload, size_t payload_bytes)
{
	struct tw_definition_head head = {type, (uint32_t)payload_bytes};
	size_t whole = (sizeof head + payload_bytes + 7) & ~(size_t)7;

	memset(to + whole - 8, 0, 8);
	memcpy(to, &head, sizeof head);
	memcpy(to + sizeof head, payload, payload_bytes);
	return whole;
}

static size_t record_bytes(size_t payload_bytes)
{
	return (sizeof(struct tw_definition_head) + payload_bytes + 7) & ~(size_t)7;
}

/* Collects as many records as fit one block, up to @end of the log; moves *at behind them. Returns the bytes. */
static uint32_t gather(struct tw_writer *writer, uint32_t index, uint64_t *at, uint64_t end)
{
	struct tw_writer_image *image = &writer->images[index];
	uint32_t bytes = 0;

	while (bytes < DEFINITIONS_BYTES && *at < end) {
		uint32_t type, segment = *at < image->by_use_end ? 0 : image->store.segment_count;
		uint64_t next = *at;
		const void *payload;
		size_t payload_bytes;
		int found = tw_rs_defs_next(&writer->rs, index, &next, &type, &payload, &payload_bytes);
		bool is_kept;

		if (found == 0)
			break;
		if (found > 0 && bytes + record_bytes(payload_bytes) > DEFINITIONS_BYTES && bytes)
			break;
		if (found < 0 || record_bytes(payload_bytes) > TW_BLOCK_STORED_BYTES_MAX) {
			*at = next;
			/* Counted once, not for each segment. */
			writer->store.stats.definitions_refused += next > image->defs_seen;
			writer->store.account[TW_ACCOUNT_DEFINITIONS] += next > image->defs_seen;
			continue;
		}
		is_kept = image->names && keep_position(image->names, type, payload, payload_bytes, *at, segment);
		*at = next;
		writer->store.stats.functions += next > image->defs_seen && type == TW_DEF_FUNCTION;
		if (is_kept && !segment)
			continue;
		size_t whole = tw_writer_put_record(writer->definitions + bytes, type, payload, payload_bytes);

		if (writer->redacting)
			tw_redacting_definition(writer->redacting, type,
						writer->definitions + bytes + sizeof(struct tw_definition_head),
						payload_bytes);
		bytes += (uint32_t)whole;
	}
	return bytes;
}

/* Rare, so it is written directly, when the queue is empty. */
static int write_block(struct tw_writer *writer, struct tw_writer_image *image, struct tw_block_header header,
		       const uint8_t *records, uint32_t bytes)
{
	const uint8_t *stored;
	int error = tw_writer_drain_queue(writer);

	if (error)
		return error;
	tw_store_clock(&header.clock);
	tw_block_encode_definitions(writer->store.encoder, &header, records, bytes, &stored);
	error = tw_segment_append(&image->store.segment, &header, stored);
	if (error)
		return error;
	writer->store.stats.file_bytes += tw_block_file_bytes(&header);
	writer->store.stats.blocks++;
	return 0;
}

static int write_definitions(struct tw_writer *writer, struct tw_writer_image *image, uint64_t first_pos,
			     uint64_t end_pos, uint32_t bytes)
{
	const struct tw_block_header header = {.type = TW_BLOCK_DEFINITIONS,
					       .first_pos = first_pos,
					       .end_pos = end_pos};

	return write_block(writer, image, header, writer->definitions, bytes);
}

int tw_writer_define_outside(struct tw_writer *writer, struct tw_writer_image *image, const uint8_t *records,
			     uint32_t bytes)
{
	const struct tw_block_header header = {.type = TW_BLOCK_DEFINITIONS,
					       .first_pos = TW_FORMAT_OUTSIDE_LOG,
					       .end_pos = TW_FORMAT_OUTSIDE_LOG};

	return write_block(writer, image, header, records, bytes);
}

/* Begins a new segment: if it is not the first, present definitions of functions are written when they are used. */
static void begin_segment(struct tw_writer *writer, uint32_t index)
{
	struct tw_writer_image *image = &writer->images[index];

	image->defs_at = 0;
	image->has_new_threads = true;
	if (!image->names && image->store.segment_count > 1)
		image->names = calloc(1, sizeof *image->names);
	/* PAIR rs.defs: acquire; only to see how far the log goes, its records are checked one by one. */
	image->by_use_end = image->names ? tw_load_acquire(&tw_rs_head(&writer->rs, index)->defs_committed_bytes) : 0;
}

static bool needs_definition(const struct tw_writer_ring *ring, uint32_t segment)
{
	return ring->is_seen && ring->defines_tracee && ring->defined_segment != segment;
}

/* Writes the definitions of threads with rings that the segment lacks, in one block. */
static int write_threads(struct tw_writer *writer, uint32_t index)
{
	struct tw_writer_image *image = &writer->images[index];
	uint32_t segment = image->store.segment_count, first = tw_rs_image(&writer->rs, index)->first_ring, bytes = 0;
	uint8_t payload[TW_DEF_THREAD_BYTES_MAX];
	int error;

	for (uint32_t i = first; i != UINT32_MAX; i = writer->rs.rings[i].next) {
		const struct tw_writer_ring *ring = &writer->rings[i];

		if (needs_definition(ring, segment))
			bytes += (uint32_t)tw_writer_put_record(writer->definitions + bytes, TW_DEF_TRACEE, payload,
								tw_def_thread(payload, ring->own_tracee_id,
									      ring->thread_id, ring->first_name));
	}
	error = bytes ? tw_writer_define_outside(writer, image, writer->definitions, bytes) : 0;
	if (error)
		return error;
	for (uint32_t i = first; i != UINT32_MAX; i = writer->rs.rings[i].next) {
		if (needs_definition(&writer->rings[i], segment))
			writer->rings[i].defined_segment = segment;
	}
	image->has_new_threads = false;
	return 0;
}

static int write_log(struct tw_writer *writer, uint32_t index)
{
	struct tw_writer_image *image = &writer->images[index];

	for (;;) {
		bool is_by_use = image->defs_at < image->by_use_end;
		uint64_t at = image->defs_at;
		uint32_t bytes = gather(writer, index, &at, is_by_use ? image->by_use_end : UINT64_MAX);
		/* For a part of the log only its end is given, for readers that know the log up to there. */
		int error = bytes ? write_definitions(writer, image, is_by_use ? at : image->defs_at, at, bytes) : 0;

		if (error)
			return error;
		if (at == image->defs_at)
			return 0;
		image->defs_at = at;
		if (at > image->defs_seen)
			image->defs_seen = at;
	}
}

/* The expressions of the configuration, before anything of the ring set is written. */
static int read_expressions(struct tw_writer *writer)
{
	int error = writer->has_redacting ? 0 : tw_redacting_create(writer->rs.text, &writer->redacting);

	writer->has_redacting = !error;
	return error;
}

/* Each segment says that text was replaced in it. */
static int write_redact_note(struct tw_writer *writer, struct tw_writer_image *image)
{
	static const char text[] = TW_REDACT_NOTE;
	uint8_t payload[sizeof(struct tw_def_note) + sizeof text], record[sizeof payload + 16];
	struct tw_def_note def = {.text_bytes = sizeof text - 1};

	memcpy(payload, &def, sizeof def);
	memcpy(payload + sizeof def, text, def.text_bytes);
	return tw_writer_define_outside(writer, image, record,
					(uint32_t)tw_writer_put_record(record, TW_DEF_NOTE, payload,
								       sizeof def + def.text_bytes));
}

int tw_writer_definitions(struct tw_writer *writer, uint32_t index)
{
	struct tw_writer_image *image = &writer->images[index];
	int opened, error = read_expressions(writer);

	if (error)
		return error;
	tw_writer_free_descriptor(writer, image);
	opened = tw_store_open_segment(&writer->store, &image->store);
	if (opened < 0)
		return opened;
	if (opened)
		begin_segment(writer, index);
	error = write_log(writer, index);
	if (!error && opened && writer->redacting)
		error = write_redact_note(writer, image);
	return !error && image->has_new_threads ? write_threads(writer, index) : error;
}

/* ---- ends of threads and processes ---- */

/* Ends of threads are collected up to this number: a block for each would be longer than some threads' events. */
#define ENDS_MAX 256

static int write_ends(struct tw_writer *writer, uint32_t index)
{
	struct tw_writer_image *image = &writer->images[index];
	uint32_t bytes = 0;
	int error = tw_writer_definitions(writer, index);

	if (error)
		return error;
	for (uint32_t i = 0; i < image->end_count; i++)
		bytes += (uint32_t)tw_writer_put_record(writer->definitions + bytes, TW_DEF_END, &image->ends[i],
							sizeof *image->ends);
	error = bytes ? tw_writer_define_outside(writer, image, writer->definitions, bytes) : 0;
	if (!error)
		image->end_count = 0;
	return error;
}

/* Times of the program are checked: they are only believed if they lie before now. */
static int add_end(struct tw_writer *writer, uint32_t index, uint64_t lease, uint64_t ticks)
{
	struct tw_writer_image *image = &writer->images[index];
	int error = 0;

	if (!ticks || ticks > tw_clock_ticks())
		return 0;
	if (!image->ends)
		image->ends = malloc(ENDS_MAX * sizeof *image->ends);
	if (!image->ends)
		return TW_ENOMEM;
	if (image->end_count == ENDS_MAX)
		error = write_ends(writer, index);
	if (!error)
		image->ends[image->end_count++] = (struct tw_def_end){lease, ticks};
	return error;
}

int tw_writer_note_end(struct tw_writer *writer, uint32_t index)
{
	/* RELAXED rs.thread_end: stored before the ring ENDED, which was seen; or it is read again later. */
	uint64_t ticks = tw_load_relaxed(&tw_rs_ring(&writer->rs, index)->thread_end_ticks);

	return add_end(writer, tw_rs_ring_image(&writer->rs, index), writer->rings[index].lease, ticks);
}

int tw_writer_tell_ends(struct tw_writer *writer, uint32_t index, bool is_final)
{
	/* RELAXED rs.exit: the process is gone if it is final. */
	uint64_t ticks = tw_load_relaxed(&tw_rs_head(&writer->rs, index)->exit_ticks);
	int error = 0;

	/* Rings that are kept: of threads that ended last, of an overwriting recording, of a dead ring set. */
	for (uint32_t i = tw_rs_image(&writer->rs, index)->first_ring; !error && i != UINT32_MAX;
	     i = writer->rs.rings[i].next)
		error = writer->rings[i].is_seen ? tw_writer_note_end(writer, i) : 0;
	if (!is_final)
		ticks = writer->closed_ticks;
	else if (!ticks)
		ticks = writer->images[index].gone_ticks;
	if (!error)
		error = add_end(writer, index, 0, ticks);
	return error ? error : write_ends(writer, index);
}

/* ---- definitions written when they are used ---- */

struct gathering {
	struct tw_writer *writer;
	uint32_t image;
	uint32_t bytes;
	uint64_t end_pos; /* end of the last of them in the log */
};

static int flush(struct gathering *gathering)
{
	struct tw_writer *writer = gathering->writer;
	int error = gathering->bytes ? write_definitions(writer, &writer->images[gathering->image], gathering->end_pos,
							 gathering->end_pos, gathering->bytes)
				     : 0;

	gathering->bytes = 0;
	return error;
}

static int add_record(struct gathering *gathering, uint64_t at)
{
	struct tw_writer *writer = gathering->writer;
	uint32_t type;
	const void *payload;
	size_t payload_bytes;
	int error = 0;

	if (!at || tw_rs_defs_next(&writer->rs, gathering->image, &at, &type, &payload, &payload_bytes) <= 0 ||
	    record_bytes(payload_bytes) > TW_BLOCK_STORED_BYTES_MAX)
		return 0;
	if (gathering->bytes + record_bytes(payload_bytes) > DEFINITIONS_BYTES)
		error = flush(gathering);
	gathering->bytes +=
		(uint32_t)tw_writer_put_record(writer->definitions + gathering->bytes, type, payload, payload_bytes);
	gathering->end_pos = at > gathering->end_pos ? at : gathering->end_pos;
	return error;
}

static int add_place(struct gathering *gathering, struct place *place)
{
	struct tw_writer_image *image = &gathering->writer->images[gathering->image];
	struct tw_writer_names *names = image->names;
	uint32_t segment = image->store.segment_count;
	int error = add_record(gathering, place->at);

	if (!error)
		error = add_record(gathering, place->counted_at);
	place->segment = segment;
	if (!error && place->function_id < names->function_capacity &&
	    names->functions[place->function_id].segment != segment) {
		struct function *function = &names->functions[place->function_id];

		function->segment = segment;
		error = add_record(gathering, function->at);
		if (!error)
			error = add_record(gathering, function->layout_at);
	}
	return error;
}

/* Unmarks definitions that were marked as written to a segment, but were not. */
static void forget_segment(struct tw_writer_names *names, uint32_t segment)
{
	for (uint32_t id = 0; id < names->place_capacity; id++)
		names->places[id].segment = names->places[id].segment == segment ? 0 : names->places[id].segment;
	for (uint32_t id = 0; id < names->function_capacity; id++)
		names->functions[id].segment =
			names->functions[id].segment == segment ? 0 : names->functions[id].segment;
}

static int add_used(struct gathering *gathering, uint32_t id)
{
	struct tw_writer_image *image = &gathering->writer->images[gathering->image];
	struct tw_writer_names *names = image->names;

	return id < names->place_capacity && names->places[id].segment != image->store.segment_count &&
			       names->places[id].at
		       ? add_place(gathering, &names->places[id])
		       : 0;
}

int tw_writer_define_places(struct tw_writer *writer, uint32_t index, const uint32_t *ids, uint32_t count)
{
	struct tw_writer_image *image = &writer->images[index];
	struct gathering gathering = {.writer = writer, .image = index};
	int error = 0;

	if (!image->by_use_end)
		return 0;
	for (uint32_t i = 0; !error && i < count; i++)
		error = add_used(&gathering, ids[i]);
	if (!error)
		error = flush(&gathering);
	if (error)
		forget_segment(image->names, image->store.segment_count);
	return error;
}

int tw_writer_define_used(struct tw_writer *writer, uint32_t index, const uint8_t *raw, uint32_t bytes)
{
	struct tw_writer_image *image = &writer->images[index];
	struct tw_writer_names *names = image->names;
	struct gathering gathering = {.writer = writer, .image = index};
	uint32_t segment = image->store.segment_count, before = UINT32_MAX;
	uint64_t head;
	int error = 0;

	if (!image->by_use_end)
		return 0;
	for (uint32_t at = 0; !error && (head = tw_record_next(raw, bytes, &at));) {
		uint32_t id = TW_RB_HEAD_ID(head);

		if (id == before || !tw_event_names_place(head))
			continue;
		before = id;
		error = add_used(&gathering, id);
	}
	if (!error)
		error = flush(&gathering);
	if (error)
		forget_segment(names, segment);
	return error;
}
