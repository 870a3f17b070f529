/* SPDX-License-Identifier: Apache-2.0 */
/* segment.c - writing: header, blocks, index, trailer. */
#include "base/map.h"
#include "base/assert.h"
#include "pipeline/block/segment.h"
#include "base/checksum.h"
#include "base/error.h"
#include "base/grow.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define NAME_PREFIX "segment-"

const struct tw_segment_io tw_segment_system_io = {pwritev, fdatasync};

void tw_segment_name(uint32_t number, bool is_open, char out[TW_SEGMENT_NAME_BYTES])
{
	snprintf(out, TW_SEGMENT_NAME_BYTES, NAME_PREFIX "%06u" TW_SEGMENT_SUFFIX "%s", number,
		 is_open ? TW_SEGMENT_OPEN : "");
}

bool tw_segment_parse_name(const char *name, uint32_t *number, bool *is_open)
{
	char again[TW_SEGMENT_NAME_BYTES];
	unsigned long value;

	if (strncmp(name, NAME_PREFIX, strlen(NAME_PREFIX)) != 0)
		return false;
	value = strtoul(name + strlen(NAME_PREFIX), NULL, 10);
	if (value > UINT32_MAX)
		return false;
	for (int open = 0; open < 2; open++) {
		tw_segment_name((uint32_t)value, open, again);
		if (strcmp(name, again) == 0) {
			*number = (uint32_t)value;
			*is_open = open;
			return true;
		}
	}
	return false;
}

int tw_segment_write(const struct tw_segment_io *io, int fd, struct iovec *pieces, int count, uint64_t offset)
{
	while (count) {
		ssize_t written = io->write(fd, pieces, count, (off_t)offset);

		if (written < 0 && errno == EINTR)
			continue;
		if (written < 0)
			return errno == EFBIG ? TW_ENOSPC : tw_error_from_errno(errno);
		if (written == 0)
			return TW_ENOSPC;
		offset += (uint64_t)written;
		while (count && (size_t)written >= pieces->iov_len) {
			written -= (ssize_t)pieces->iov_len;
			pieces++;
			count--;
		}
		if (count) {
			pieces->iov_base = (char *)pieces->iov_base + written;
			pieces->iov_len -= (size_t)written;
		}
	}
	return 0;
}

static int write_all(struct tw_segment *segment, struct iovec *pieces, int count, uint64_t offset)
{
	return segment->stream ? tw_stream_out_write(segment->stream, pieces, count)
			       : tw_segment_write(segment->io, segment->fd, pieces, count, offset);
}

void tw_segment_header_seal(struct tw_segment_header *header, uint32_t number)
{
	const size_t behind = offsetof(struct tw_segment_header, version);

	header->magic = TW_SEGMENT_MAGIC;
	header->version = TW_FORMAT_VERSION;
	header->header_bytes = sizeof *header;
	header->segment_number = number;
	header->header_checksum = tw_checksum64((const uint8_t *)header + behind, sizeof *header - behind);
}

int tw_segment_create(struct tw_segment *segment, const struct tw_segment_header *header)
{
	struct tw_segment_header sealed = *header;
	struct iovec piece = {&sealed, sizeof sealed};
	char name[TW_SEGMENT_NAME_BYTES];
	int error;

	tw_segment_name(segment->number, true, name);
	segment->fd = openat(segment->directory_fd, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (segment->fd < 0)
		return tw_error_from_errno(errno);
	tw_segment_header_seal(&sealed, segment->number);
	error = write_all(segment, &piece, 1, 0);
	if (error) {
		close(segment->fd);
		segment->fd = -1;
		unlinkat(segment->directory_fd, name, 0);
		return error;
	}
	segment->offset = sizeof sealed;
	return 0;
}

void tw_segment_note(struct tw_segment *segment, uint64_t offset, const struct tw_block_header *header)
{
	/* No block lies in another: readers go from one to the next. */
	TW_ASSERT(offset >= segment->offset && offset % TW_FORMAT_ALIGN_BYTES == 0);
	segment->offset = offset + tw_block_file_bytes(header);
	segment->totals.blocks++;
	segment->totals.events += header->event_count;
	segment->totals.raw_bytes += header->raw_bytes;
	/* A stream may have no end, and has no index. */
	if (segment->stream)
		return;
	if (!tw_grow(segment->entries, segment->entry_count, segment->entry_capacity)) {
		segment->has_lost_entries = true;
		return;
	}
	segment->entries[segment->entry_count].offset = offset;
	segment->entries[segment->entry_count++].header = *header;
}

void tw_segment_forget_last(struct tw_segment *segment)
{
	const struct tw_index_entry *last = &segment->entries[--segment->entry_count];

	segment->offset = last->offset;
	segment->totals.blocks--;
	segment->totals.events -= last->header.event_count;
	segment->totals.raw_bytes -= last->header.raw_bytes;
}

static int put_block(struct tw_segment *segment, const struct tw_block_header *header, const uint8_t *stored)
{
	static const uint8_t zeros[TW_FORMAT_ALIGN_BYTES];
	size_t filling = tw_block_file_bytes(header) - sizeof *header - header->stored_bytes;
	struct iovec pieces[3] = {{(void *)(uintptr_t)header, sizeof *header},
				  {(void *)(uintptr_t)stored, header->stored_bytes},
				  {(void *)(uintptr_t)zeros, filling}};

	return write_all(segment, pieces, filling ? 3 : 2, segment->offset);
}

int tw_segment_append(struct tw_segment *segment, const struct tw_block_header *header, const uint8_t *stored)
{
	int error = put_block(segment, header, stored);

	if (error && segment->stream)
		return error;
	if (error) {
		/* Nothing is left behind: after a crash it could look like a whole block with a wrong payload. */
		return ftruncate(segment->fd, (off_t)segment->offset) < 0 ? TW_EIO : error;
	}
	tw_segment_note(segment, segment->offset, header);
	return 0;
}

int tw_segment_sync_file(const struct tw_segment_io *io, int fd)
{
	while (io->sync(fd) < 0) {
		if (errno != EINTR)
			return tw_error_from_errno(errno);
	}
	return 0;
}

/* Writes the index in as many blocks as it needs, at least one. */
static int write_index(struct tw_segment *segment, struct tw_block_encoder *encoder)
{
	size_t capacity = segment->entry_count < TW_INDEX_ENTRIES_MAX ? segment->entry_count : TW_INDEX_ENTRIES_MAX;
	uint8_t *bytes = malloc(sizeof segment->totals + capacity * sizeof(struct tw_index_entry));
	size_t first = 0;
	int error = 0;

	if (!bytes)
		return TW_ENOMEM;
	do {
		size_t left = segment->entry_count - first;
		size_t count = left < TW_INDEX_ENTRIES_MAX ? left : TW_INDEX_ENTRIES_MAX;
		size_t entry_bytes = count * sizeof(struct tw_index_entry);
		struct tw_block_header header = {.type = TW_BLOCK_INDEX, .first_pos = first, .end_pos = first + count};
		const uint8_t *stored;

		memcpy(bytes, &segment->totals, sizeof segment->totals);
		if (count)
			memcpy(bytes + sizeof segment->totals, segment->entries + first, entry_bytes);
		tw_block_encode_bytes(encoder, &header, bytes, (uint32_t)(sizeof segment->totals + entry_bytes),
				      &stored);
		error = put_block(segment, &header, stored);
		segment->offset += error ? 0 : tw_block_file_bytes(&header);
		first += count;
	} while (!error && first < segment->entry_count);
	free(bytes);
	return error;
}

/* Sums up the losses in the last block of each lease; lease 0 has the events without a ring. */
static void sum_up_losses(struct tw_segment *segment)
{
	struct tw_map seen = {0};

	for (size_t i = segment->entry_count; i-- > 0;) {
		const struct tw_block_header *header = &segment->entries[i].header;

		if (header->type == TW_BLOCK_DEFINITIONS || tw_map_get(&seen, header->ring_lease) != TW_MAP_NONE)
			continue;
		if (!tw_map_put(&seen, header->ring_lease, 0))
			break;
		for (unsigned cause = 0; cause < TW_FORMAT_CAUSES; cause++)
			segment->totals.lost[cause] += header->lost[cause];
	}
	tw_map_fini(&seen);
}

static int write_end(struct tw_segment *segment, struct tw_block_encoder *encoder)
{
	struct tw_segment_trailer trailer = {TW_TRAILER_MAGIC, segment->offset, 0, 0};
	struct iovec piece = {&trailer, sizeof trailer};
	uint64_t end_offset = segment->offset;
	int error;

	sum_up_losses(segment);
	error = segment->has_lost_entries ? TW_ENOMEM : write_index(segment, encoder);
	if (!error) {
		trailer.segment_bytes = segment->offset + sizeof trailer;
		trailer.checksum = tw_checksum64(&trailer, offsetof(struct tw_segment_trailer, checksum));
		error = write_all(segment, &piece, 1, segment->offset);
	}
	if (error)
		segment->offset = end_offset;
	else
		segment->offset = trailer.segment_bytes;
	return error;
}

static void forget_entries(struct tw_segment *segment)
{
	segment->fd = -1;
	free(segment->entries);
	segment->entries = NULL;
	segment->entry_count = segment->entry_capacity = 0;
}

int tw_segment_seal(struct tw_segment *segment, struct tw_block_encoder *encoder, struct tw_segment_sealed *out)
{
	int error = write_end(segment, encoder);

	if (!error && ftruncate(segment->fd, (off_t)segment->offset) < 0)
		error = tw_error_from_errno(errno);
	if (error) {
		tw_segment_abandon(segment);
		return error;
	}
	*out = (struct tw_segment_sealed){segment->fd, segment->directory_fd, segment->number, segment->io};
	forget_entries(segment);
	return 0;
}

int tw_segment_publish(const struct tw_segment_sealed *sealed, bool is_durable)
{
	char open_name[TW_SEGMENT_NAME_BYTES], name[TW_SEGMENT_NAME_BYTES];
	int error = is_durable ? tw_segment_sync_file(sealed->io, sealed->fd) : 0;

	close(sealed->fd);
	if (error)
		return error;
	tw_segment_name(sealed->number, true, open_name);
	tw_segment_name(sealed->number, false, name);
	if (renameat(sealed->directory_fd, open_name, sealed->directory_fd, name) < 0)
		return tw_error_from_errno(errno);
	return is_durable && fsync(sealed->directory_fd) < 0 ? tw_error_from_errno(errno) : 0;
}

int tw_segment_close(struct tw_segment *segment, struct tw_block_encoder *encoder, bool is_durable)
{
	struct tw_segment_sealed sealed;
	int error;

	if (segment->stream)
		return write_index(segment, encoder);
	error = tw_segment_seal(segment, encoder, &sealed);
	return error ? error : tw_segment_publish(&sealed, is_durable);
}

int tw_segment_begin_in_stream(struct tw_segment *segment, const struct tw_segment_header *header)
{
	struct tw_segment_header sealed = *header;
	struct iovec piece = {&sealed, sizeof sealed};

	tw_segment_header_seal(&sealed, segment->number);
	return write_all(segment, &piece, 1, 0);
}

int tw_segment_mark_in_stream(struct tw_segment *segment, struct tw_block_encoder *encoder, uint64_t ticks)
{
	struct tw_block_header header = {.type = TW_BLOCK_MARK, .first_ticks = ticks, .last_ticks = ticks};
	const uint8_t *stored;

	tw_block_encode_bytes(encoder, &header, NULL, 0, &stored);
	return put_block(segment, &header, stored);
}

void tw_segment_abandon(struct tw_segment *segment)
{
	int is_cut;

	if (segment->stream)
		return;
	/* Part of another block may follow the last whole one; readers would report it as damage. */
	is_cut = ftruncate(segment->fd, (off_t)segment->offset);
	(void)is_cut;
	close(segment->fd);
	forget_entries(segment);
}
