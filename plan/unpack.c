/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unpack.c - the symbol table that some distributions leave in stripped files: .gnu_debugdata, an ELF file packed by xz.
 *
 * The result is written into a file in memory and read like any other debug file.
 */
#include "base/sys.h"
#include "plan/plan.h"
#include "symbols/file.h"
#include "base/file.h"

#include <lzma.h>
#include <sys/mman.h>
#include <unistd.h>

/* Of a sane file; what claims more is not read. */
#define UNPACKED_BYTES_MAX (UINT64_C(64) << 20)
/* xz -9 needs 65 MiB. */
#define DECODER_BYTES_MAX (UINT64_C(128) << 20)
#define PIECE_BYTES	  (64u << 10)

struct source {
	int fd;
	uint64_t offset, left;
	uint8_t piece[PIECE_BYTES];
};

static bool fill(struct source *source, lzma_stream *stream)
{
	size_t bytes = source->left < PIECE_BYTES ? (size_t)source->left : PIECE_BYTES;

	if (stream->avail_in || !bytes)
		return true;
	if (tw_file_read_at(source->fd, source->piece, bytes, source->offset))
		return false;
	source->offset += bytes;
	source->left -= bytes;
	stream->next_in = source->piece;
	stream->avail_in = bytes;
	return true;
}

static bool unpack(struct source *source, lzma_stream *stream, int out)
{
	uint8_t piece[PIECE_BYTES];
	lzma_ret result = LZMA_OK;
	uint64_t total = 0;

	while (result == LZMA_OK && total <= UNPACKED_BYTES_MAX && fill(source, stream)) {
		size_t bytes;

		stream->next_out = piece;
		stream->avail_out = sizeof piece;
		result = lzma_code(stream, source->left || stream->avail_in ? LZMA_RUN : LZMA_FINISH);
		bytes = sizeof piece - stream->avail_out;
		total += bytes;
		if (tw_sys_write_all(out, piece, bytes))
			return false;
	}
	return result == LZMA_STREAM_END;
}

int tw_plan_unpack(int fd, uint64_t offset, uint64_t bytes)
{
	struct source source = {.fd = fd, .offset = offset, .left = bytes};
	lzma_stream stream = LZMA_STREAM_INIT;
	int out;

	if (lzma_stream_decoder(&stream, DECODER_BYTES_MAX, 0) != LZMA_OK)
		return -1;
	out = memfd_create("tracewheel-symbols", MFD_CLOEXEC);
	if (out >= 0 && !unpack(&source, &stream, out)) {
		close(out);
		out = -1;
	}
	lzma_end(&stream);
	return out;
}
