/* SPDX-License-Identifier: Apache-2.0 */
/*
 * segment_read.c - reading: by the index if it is valid, else block by block.
 *
 * Uses pread() rather than a mapping: if a file is truncated while it is read, that is an error, not a SIGBUS.
 */
#include "base/checksum.h"
#include "base/error.h"
#include "base/file.h"
#include "pipeline/block/segment.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define SEARCH_BYTES (UINT64_C(64) << 10)

int tw_segment_header_check(const struct tw_segment_header *header)
{
	const size_t behind = offsetof(struct tw_segment_header, version);

	if (header->magic != TW_SEGMENT_MAGIC)
		return TW_EFORMAT;
	if (header->version > TW_FORMAT_VERSION && header->header_bytes >= sizeof *header)
		return TW_EVERSION;
	if (header->version < TW_FORMAT_VERSION_FIRST || header->version > TW_FORMAT_VERSION ||
	    header->header_bytes != sizeof *header ||
	    header->header_checksum != tw_checksum64((const uint8_t *)header + behind, sizeof *header - behind))
		return TW_EFORMAT;
	return 0;
}

bool tw_segment_is_same_image(const struct tw_segment_header *a, const struct tw_segment_header *b)
{
	return a->image_lease == b->image_lease && a->process_id == b->process_id &&
	       a->process_start_time == b->process_start_time && a->capture_id == b->capture_id &&
	       memcmp(a->boot_id, b->boot_id, sizeof a->boot_id) == 0;
}

int tw_segment_open(int directory_fd, const char *name, struct tw_segment_file *out)
{
	struct tw_segment_file file;
	struct stat st;
	int error;

	/* Non-blocking: the name may be that of a pipe. */
	file.fd = openat(directory_fd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
	if (file.fd < 0)
		return errno == ELOOP ? TW_EFORMAT : tw_error_from_errno(errno);
	if (fstat(file.fd, &st) < 0)
		error = TW_EIO;
	else if (!S_ISREG(st.st_mode) || st.st_size < (off_t)sizeof file.header)
		error = TW_EFORMAT;
	else
		error = tw_file_read_at(file.fd, &file.header, sizeof file.header, 0);
	if (!error)
		error = tw_segment_header_check(&file.header);
	if (error) {
		close(file.fd);
		return error;
	}
	file.bytes = (uint64_t)st.st_size;
	*out = file;
	return 0;
}

int tw_segment_open_stream(int fd, struct tw_segment_file *out)
{
	struct tw_segment_file file;
	struct stat st;
	int error;

	if (fstat(fd, &st) < 0)
		return tw_error_from_errno(errno);
	if (!S_ISREG(st.st_mode))
		return TW_ENOTSUP;
	error = tw_file_read_at(fd, &file.header, sizeof file.header, 0);
	if (!error)
		error = tw_segment_header_check(&file.header);
	if (error)
		return error;
	file.bytes = (uint64_t)st.st_size;
	file.fd = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	if (file.fd < 0)
		return tw_error_from_errno(errno);
	*out = file;
	return 0;
}

void tw_segment_file_close(struct tw_segment_file *file)
{
	if (file->fd >= 0)
		close(file->fd);
	file->fd = -1;
}

/* Reads the block header at this offset, of the segment's version; unchecked. */
static int read_block_header(const struct tw_segment_file *file, uint64_t offset, struct tw_block_header *out)
{
	memset(out, 0, sizeof *out);
	return tw_file_read_at(file->fd, out, tw_block_header_bytes(file->header.version), offset);
}

/* Is the header one that this segment may contain? */
static int check_block_header(const struct tw_segment_file *file, const struct tw_block_header *header)
{
	int error = tw_block_header_check(header);

	return !error && header->version != file->header.version ? TW_EFORMAT : error;
}

/* Does the block lie inside the file? */
static bool fits(const struct tw_block_header *header, uint64_t offset, uint64_t end)
{
	return offset <= end && end - offset >= tw_block_file_bytes(header);
}

int tw_segment_read(const struct tw_segment_file *file, uint64_t offset, const struct tw_block_header *header,
		    struct tw_block_decoder *decoder)
{
	struct tw_block_header stored = {0};
	struct iovec pieces[2] = {{&stored, header->header_bytes},
				  {tw_block_decoder_input(decoder), header->stored_bytes}};
	ssize_t got;
	int error = 0;

	do
		got = preadv(file->fd, pieces, 2, (off_t)offset);
	while (got < 0 && errno == EINTR);
	if (got != (ssize_t)((uint32_t)header->header_bytes + header->stored_bytes)) {
		error = tw_file_read_at(file->fd, &stored, header->header_bytes, offset);
		if (!error)
			error = tw_file_read_at(file->fd, pieces[1].iov_base, header->stored_bytes,
						offset + header->header_bytes);
	}
	if (error)
		return error;
	return memcmp(&stored, header, sizeof stored) == 0 ? 0 : TW_EFORMAT;
}

/* ---- by the index ---- */

struct index_walk {
	const struct tw_segment_file *file;
	struct tw_block_decoder *decoder;
	uint64_t index_offset;
	uint64_t end; /* the start of the trailer */
	uint64_t entries;
	uint64_t behind; /* end of the last block listed */
};

static size_t entry_stride(const struct index_walk *walk)
{
	return offsetof(struct tw_index_entry, header) + tw_block_header_bytes(walk->file->header.version);
}

/* Reads an entry of the index of this version. */
static void take_entry(const struct index_walk *walk, const uint8_t *entries, size_t number, struct tw_index_entry *out)
{
	size_t stride = entry_stride(walk);

	memset(out, 0, sizeof *out);
	memcpy(out, entries + number * stride, stride);
}

/* The entries of one index block, checked; NULL if they are not valid. */
static const uint8_t *load_index_block(struct index_walk *walk, uint64_t offset, struct tw_block_header *header,
				       size_t *count, struct tw_segment_totals *totals)
{
	const uint8_t *bytes;
	size_t entry_bytes;

	if (read_block_header(walk->file, offset, header) || check_block_header(walk->file, header) ||
	    header->type != TW_BLOCK_INDEX || !fits(header, offset, walk->end) || header->first_pos != walk->entries)
		return NULL;
	if (tw_segment_read(walk->file, offset, header, walk->decoder) ||
	    tw_block_decode_bytes(walk->decoder, header, &bytes) || header->encoded_bytes < sizeof *totals)
		return NULL;
	entry_bytes = header->encoded_bytes - sizeof *totals;
	if (entry_bytes % entry_stride(walk) || header->end_pos - header->first_pos != entry_bytes / entry_stride(walk))
		return NULL;
	memcpy(totals, bytes, sizeof *totals);
	*count = entry_bytes / entry_stride(walk);
	for (size_t i = 0; i < *count; i++) {
		struct tw_index_entry entry;

		take_entry(walk, bytes + sizeof *totals, i, &entry);
		if (check_block_header(walk->file, &entry.header) || entry.header.type == TW_BLOCK_INDEX ||
		    entry.offset < walk->behind || !fits(&entry.header, entry.offset, walk->index_offset))
			return NULL;
		walk->behind = entry.offset + tw_block_file_bytes(&entry.header);
	}
	walk->entries += *count;
	return bytes + sizeof *totals;
}

static bool find_index(const struct tw_segment_file *file, struct index_walk *walk)
{
	struct tw_segment_trailer trailer;
	uint64_t at = file->bytes - sizeof trailer;

	if (file->bytes < sizeof file->header + sizeof trailer ||
	    tw_file_read_at(file->fd, &trailer, sizeof trailer, at))
		return false;
	if (trailer.magic != TW_TRAILER_MAGIC || trailer.segment_bytes != file->bytes ||
	    trailer.checksum != tw_checksum64(&trailer, offsetof(struct tw_segment_trailer, checksum)))
		return false;
	if (trailer.index_offset < sizeof file->header || trailer.index_offset >= at)
		return false;
	walk->index_offset = trailer.index_offset;
	walk->end = at;
	return true;
}

/* Reads the index twice: the first pass checks everything, the second uses it. */
static int list_by_index(struct index_walk *walk, const struct tw_segment_visitor *visitor,
			 struct tw_segment_found *found)
{
	uint64_t offset = walk->index_offset, behind = sizeof walk->file->header;

	walk->entries = 0;
	walk->behind = sizeof walk->file->header;
	while (offset < walk->end) {
		struct tw_block_header header;
		struct tw_segment_totals totals;
		size_t count = 0;
		const uint8_t *entries = load_index_block(walk, offset, &header, &count, &totals);

		if (!entries)
			return TW_EFORMAT;
		found->totals = totals;
		for (size_t i = 0; visitor && i < count; i++) {
			struct tw_index_entry entry;
			int error;

			take_entry(walk, entries, i, &entry);
			error = visitor->block(visitor->context, entry.offset, &entry.header);
			if (error)
				return error;
			/* The segment was damaged before it was closed: the index skips the damage. */
			if (entry.offset > behind)
				visitor->damage(visitor->context, behind, entry.offset - behind, TW_EFORMAT,
						"these bytes belong to no block");
			behind = entry.offset + tw_block_file_bytes(&entry.header);
		}
		offset += tw_block_file_bytes(&header);
	}
	if (visitor && behind < walk->index_offset)
		visitor->damage(visitor->context, behind, walk->index_offset - behind, TW_EFORMAT,
				"these bytes belong to no block");
	found->end_offset = walk->index_offset;
	found->is_closed = true;
	return offset == walk->end ? 0 : TW_EFORMAT;
}

int tw_segment_list(const struct tw_segment_file *file, struct tw_block_decoder *decoder,
		    const struct tw_segment_visitor *visitor, struct tw_segment_found *found)
{
	struct index_walk walk = {.file = file, .decoder = decoder};

	memset(found, 0, sizeof *found);
	if (find_index(file, &walk)) {
		if (list_by_index(&walk, NULL, found) == 0)
			return list_by_index(&walk, visitor, found);
		visitor->damage(visitor->context, walk.index_offset, 0, TW_EFORMAT,
				"the index is damaged; the blocks were found without it");
	}
	memset(found, 0, sizeof *found);
	return tw_segment_scan(file, visitor, found);
}

/* ---- without an index ---- */

/* The next offset at or after `from`, a multiple of 8, with a valid block header; the end if there is none. */
static int find_block(const struct tw_segment_file *file, uint64_t from, uint64_t *out)
{
	uint8_t *bytes = malloc(SEARCH_BYTES);
	const uint32_t header_bytes = tw_block_header_bytes(file->header.version);
	int error = bytes ? 0 : TW_ENOMEM;

	*out = file->bytes;
	while (!error && from + header_bytes <= file->bytes) {
		uint64_t left = file->bytes - from, count = left < SEARCH_BYTES ? left : SEARCH_BYTES;
		struct tw_block_header header;
		uint64_t at = 0;

		error = tw_file_read_at(file->fd, bytes, count, from);
		for (; !error && at + header_bytes <= count; at += TW_FORMAT_ALIGN_BYTES) {
			if (tw_get64(bytes + at) != TW_BLOCK_MAGIC)
				continue;
			memset(&header, 0, sizeof header);
			memcpy(&header, bytes + at, header_bytes);
			if (check_block_header(file, &header) == 0 && fits(&header, from + at, file->bytes)) {
				*out = from + at;
				goto free_bytes;
			}
		}
		from += at;
	}
free_bytes:
	free(bytes);
	return error == TW_EFORMAT ? 0 : error;
}

static bool is_trailer_at(const struct tw_segment_file *file, uint64_t offset)
{
	uint64_t magic;

	return file->bytes - offset == sizeof(struct tw_segment_trailer) &&
	       tw_file_read_at(file->fd, &magic, sizeof magic, offset) == 0 && magic == TW_TRAILER_MAGIC;
}

static void tell_damage(const struct tw_segment_visitor *visitor, uint64_t offset, uint64_t next, uint64_t end,
			int error)
{
	const char *reason = "these bytes are not a valid block; reading continued at the next one";

	if (error == TW_EVERSION)
		reason = "a block of another version of the format";
	else if (next == end)
		reason = "the segment is cut off here, in the middle of a block";
	visitor->damage(visitor->context, offset, next - offset, error, reason);
}

int tw_segment_scan(const struct tw_segment_file *file, const struct tw_segment_visitor *visitor,
		    struct tw_segment_found *found)
{
	uint64_t offset = sizeof file->header;

	found->end_offset = offset;
	while (offset < file->bytes && !is_trailer_at(file, offset)) {
		struct tw_block_header header;
		uint64_t next = offset;
		int error = read_block_header(file, offset, &header);

		if (error == TW_EIO)
			return error;
		if (!error)
			error = check_block_header(file, &header);
		if (!error && !fits(&header, offset, file->bytes))
			error = TW_EFORMAT;
		if (error) {
			int failed = find_block(file, offset + TW_FORMAT_ALIGN_BYTES, &next);

			if (failed)
				return failed;
			tell_damage(visitor, offset, next, file->bytes, error);
			offset = next;
			continue;
		}
		offset += tw_block_file_bytes(&header);
		if (header.type == TW_BLOCK_INDEX)
			continue;
		error = visitor->block(visitor->context, offset - tw_block_file_bytes(&header), &header);
		if (error)
			return error;
		found->end_offset = offset;
	}
	return 0;
}

/* ---- a stream in a file ---- */

int tw_segment_piece_at(const struct tw_segment_file *file, uint64_t offset, struct tw_segment_piece *out)
{
	uint64_t magic;
	int error = tw_file_read_at(file->fd, &magic, sizeof magic, offset);

	if (error)
		return error;
	out->is_trailer = magic == TW_TRAILER_MAGIC;
	out->is_block = magic != TW_SEGMENT_MAGIC && !out->is_trailer;
	out->bytes = sizeof(struct tw_segment_trailer);
	if (out->is_trailer)
		return file->bytes - offset >= out->bytes ? 0 : TW_EFORMAT;
	if (!out->is_block) {
		out->bytes = sizeof out->segment;
		error = tw_file_read_at(file->fd, &out->segment, sizeof out->segment, offset);
		return error ? error : tw_segment_header_check(&out->segment);
	}
	error = read_block_header(file, offset, &out->block);
	if (!error)
		error = check_block_header(file, &out->block);
	if (error)
		return error;
	out->bytes = tw_block_file_bytes(&out->block);
	return fits(&out->block, offset, file->bytes) ? 0 : TW_EFORMAT;
}
