/* SPDX-License-Identifier: Apache-2.0 */
/* pack.c - compresses objects by zstd, and the other way. */
#include "fleet/fleet.h"

#include "base/grow.h"

#include <stdlib.h>
#include <unistd.h>
#include <zstd.h>

bool tw_fleet_pack(const struct tw_fleet_bytes *from, int level, struct tw_fleet_bytes *out)
{
	size_t most = ZSTD_compressBound(from->bytes);
	uint8_t *data = malloc(most);
	size_t bytes = data ? ZSTD_compress(data, most, from->data, from->bytes, level) : 0;
	if (!data || ZSTD_isError(bytes)) {
		free(data);
		return false;
	}
	*out = (struct tw_fleet_bytes){data, bytes};
	return true;
}

/* A part of a file, or less at its end; below 0: it cannot be read. */
static ssize_t read_part(int fd, uint64_t at, uint8_t *part, size_t bytes)
{
	size_t done = 0;
	while (done < bytes) {
		ssize_t got = pread(fd, part + done, bytes - done, (off_t)(at + done));
		if (got < 0)
			return -1;
		if (got == 0)
			break;
		done += (size_t)got;
	}
	return (ssize_t)done;
}

/* Takes all of the input. */
static bool compress(ZSTD_CCtx *context, ZSTD_inBuffer *in, bool is_last, struct tw_fleet_bytes *out, size_t *capacity)
{
	size_t left;
	do {
		if (!tw_grow_by(out->data, out->bytes, *capacity, ZSTD_CStreamOutSize()))
			return false;
		ZSTD_outBuffer to = {out->data, *capacity, out->bytes};
		left = ZSTD_compressStream2(context, &to, in, is_last ? ZSTD_e_end : ZSTD_e_continue);
		out->bytes = to.pos;
		if (ZSTD_isError(left))
			return false;
	} while (is_last ? left : in->pos < in->size);
	return true;
}

bool tw_fleet_pack_file(int fd, uint64_t bytes, int level, struct tw_fleet_bytes *out)
{
	ZSTD_CCtx *context = ZSTD_createCCtx();
	size_t part_bytes = ZSTD_CStreamInSize(), capacity = 0;
	uint8_t *part = malloc(part_bytes);
	struct tw_fleet_bytes packed = {0};
	/* The frame says how large the file is. */
	bool is_right = context && part &&
			!ZSTD_isError(ZSTD_CCtx_setParameter(context, ZSTD_c_compressionLevel, level)) &&
			!ZSTD_isError(ZSTD_CCtx_setPledgedSrcSize(context, bytes));
	for (uint64_t at = 0, wanted; is_right && at < bytes; at += wanted) {
		wanted = bytes - at < part_bytes ? bytes - at : part_bytes;
		ZSTD_inBuffer in = {part, wanted, 0};
		is_right = read_part(fd, at, part, wanted) == (ssize_t)wanted &&
			   compress(context, &in, at + wanted == bytes, &packed, &capacity);
	}
	ZSTD_freeCCtx(context);
	free(part);
	if (is_right && packed.data) {
		*out = packed;
		return true;
	}
	free(packed.data);
	return false;
}

bool tw_fleet_unpack(const struct tw_fleet_bytes *from, size_t most, struct tw_fleet_bytes *out)
{
	unsigned long long bytes = ZSTD_getFrameContentSize(from->data, from->bytes);
	if (bytes == ZSTD_CONTENTSIZE_UNKNOWN || bytes == ZSTD_CONTENTSIZE_ERROR || bytes > most)
		return false;
	uint8_t *data = malloc(bytes + 1);
	size_t got = data ? ZSTD_decompress(data, bytes, from->data, from->bytes) : 0;
	if (!data || ZSTD_isError(got) || got != bytes) {
		free(data);
		return false;
	}
	*out = (struct tw_fleet_bytes){data, got};
	return true;
}
