/* SPDX-License-Identifier: Apache-2.0 */
/* identity.c - segment.h: what a closed segment says of itself, and its key. */
#include "base/checksum.h"
#include "base/error.h"
#include "base/export.h"
#include "pipeline/block/segment.h"
#include "tracewheel/segment.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* An index of more bytes is not read: that of a segment of a few GiB is a hundredth of it. */
#define INDEX_BYTES_MAX (UINT64_C(256) << 20)
#define KEY_DIGITS_MIN	6

struct bounds {
	const struct tw_segment_header *header;
	uint64_t first_ns, last_ns; /* CLOCK_REALTIME */
	uint64_t first_ticks, last_ticks;
	bool has_events;
};

/* CLOCK_REALTIME at these ticks, by a snapshot that was taken near them. */
static uint64_t wall_at(const struct tw_segment_header *header, const struct tw_format_clock *clock, uint64_t ticks)
{
	uint64_t rate = header->ticks_per_second ? header->ticks_per_second : UINT64_C(1000000000);
	bool is_before = ticks < clock->ticks;
	uint64_t distance = is_before ? clock->ticks - ticks : ticks - clock->ticks;
	uint64_t ns = (uint64_t)((unsigned __int128)distance * UINT64_C(1000000000) / rate);

	return is_before ? clock->realtime_ns - ns : clock->realtime_ns + ns;
}

static int visit_block(void *context, uint64_t offset, const struct tw_block_header *header)
{
	struct bounds *bounds = context;

	if (header->type != TW_BLOCK_EVENTS || !header->event_count)
		return 0;
	if (!bounds->has_events || header->first_ticks < bounds->first_ticks) {
		bounds->first_ticks = header->first_ticks;
		bounds->first_ns = wall_at(bounds->header, &header->clock, header->first_ticks);
	}
	if (!bounds->has_events || header->last_ticks > bounds->last_ticks) {
		bounds->last_ticks = header->last_ticks;
		bounds->last_ns = wall_at(bounds->header, &header->clock, header->last_ticks);
	}
	bounds->has_events = true;
	return 0;
}

/* Damage from before the segment was closed is missing in it, which its readers say. */
static void visit_damage(void *context, uint64_t offset, uint64_t bytes, int error, const char *reason)
{
}

/* The checksum of the header, and of all bytes behind the last block of events: index and trailer. */
static int sum_up(const struct tw_segment_file *file, uint64_t index_offset, uint64_t *content)
{
	uint64_t bytes = file->bytes - index_offset, done = 0;
	uint8_t *index;

	if (bytes > INDEX_BYTES_MAX)
		return TW_EFORMAT;
	index = malloc(bytes);
	if (!index)
		return TW_ENOMEM;
	while (done < bytes) {
		ssize_t got = pread(file->fd, index + done, bytes - done, (off_t)(index_offset + done));

		if (got <= 0) {
			free(index);
			return got < 0 ? TW_EIO : TW_EFORMAT;
		}
		done += (uint64_t)got;
	}
	*content = tw_checksum64_two(&file->header, sizeof file->header, index, bytes);
	free(index);
	return 0;
}

static void describe(const struct tw_segment_file *file, const struct tw_segment_found *found,
		     const struct bounds *bounds, struct tw_segment_identity *out)
{
	const struct tw_segment_header *header = &file->header;

	*out = (struct tw_segment_identity){
		.capture_id = header->capture_id,
		.number = header->segment_number,
		.version = header->version,
		.bytes = file->bytes,
		.events = found->totals.events,
		.start_wall_ns = bounds->has_events ? bounds->first_ns : header->clock.realtime_ns,
		.end_wall_ns = bounds->has_events ? bounds->last_ns : header->clock.realtime_ns,
		.process_id = header->process_id,
		.parent_process_id = header->parent_process_id,
		.process_start = header->process_start_time,
		.lease = header->image_lease,
		.image_segment = header->image_segment,
		.segments_kept = header->segments_kept,
		.events_before = header->events_before,
		.is_last = (found->totals.ending & (TW_SEGMENT_LAST | TW_SEGMENT_FINAL)) != 0,
	};
	memcpy(out->boot_id, header->boot_id, sizeof out->boot_id);
}

TW_API int tw_segment_identify(int fd, struct tw_segment_identity *out)
{
	struct tw_segment_file file;
	struct tw_segment_found found;
	struct tw_segment_identity identity;
	struct bounds bounds = {0};
	const struct tw_segment_visitor visitor = {visit_block, visit_damage, &bounds};
	struct tw_block_decoder *decoder;
	int error = tw_segment_open_stream(fd, &file);

	if (error)
		return error;
	bounds.header = &file.header;
	decoder = tw_block_decoder_create();
	error = decoder ? tw_segment_list(&file, decoder, &visitor, &found) : TW_ENOMEM;
	if (!error && !found.is_closed)
		error = TW_EFORMAT;
	if (!error) {
		describe(&file, &found, &bounds, &identity);
		error = sum_up(&file, found.end_offset, &identity.content);
	}
	if (!error)
		*out = identity;
	tw_block_decoder_destroy(decoder);
	tw_segment_file_close(&file);
	return error;
}

/* ---- keys ---- */

TW_API void tw_segment_key(const struct tw_segment_identity *identity, char key[TW_SEGMENT_KEY_BYTES])
{
	size_t used = 0;

	for (size_t i = 0; i < sizeof identity->boot_id; i++)
		used += (size_t)snprintf(key + used, TW_SEGMENT_KEY_BYTES - used, "%02x", identity->boot_id[i]);
	snprintf(key + used, TW_SEGMENT_KEY_BYTES - used, "-%016" PRIx64 "-%0*" PRIu32 "-%016" PRIx64,
		 identity->capture_id, KEY_DIGITS_MIN, identity->number, identity->content);
}

static int digit_of(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* `digits` hexadecimal digits; false: others are there. */
static bool take_hex(const char **at, const char *end, size_t digits, uint64_t *out)
{
	uint64_t value = 0;

	if ((size_t)(end - *at) < digits)
		return false;
	for (size_t i = 0; i < digits; i++) {
		int digit = digit_of((*at)[i]);

		if (digit < 0)
			return false;
		value = value << 4 | (uint64_t)digit;
	}
	*at += digits;
	*out = value;
	return true;
}

static bool take_dash(const char **at, const char *end)
{
	return *at < end && *(*at)++ == '-';
}

static bool take_number(const char **at, const char *end, uint32_t *out)
{
	const char *first = *at;
	uint64_t value = 0;

	for (; *at < end && **at >= '0' && **at <= '9' && value <= UINT32_MAX; (*at)++)
		value = value * 10 + (uint64_t)(**at - '0');
	*out = (uint32_t)value;
	return *at - first >= KEY_DIGITS_MIN && value <= UINT32_MAX && (*at - first == KEY_DIGITS_MIN || *first != '0');
}

TW_API bool tw_segment_parse_key(const char *key, size_t bytes, struct tw_segment_identity *out)
{
	struct tw_segment_identity identity = {0};
	const char *at = key, *end = key + bytes;
	uint64_t byte;

	for (size_t i = 0; i < sizeof identity.boot_id; i++) {
		if (!take_hex(&at, end, 2, &byte))
			return false;
		identity.boot_id[i] = (uint8_t)byte;
	}
	if (!take_dash(&at, end) || !take_hex(&at, end, 16, &identity.capture_id) || !take_dash(&at, end) ||
	    !take_number(&at, end, &identity.number) || !take_dash(&at, end) ||
	    !take_hex(&at, end, 16, &identity.content) || at != end)
		return false;
	*out = identity;
	return true;
}
