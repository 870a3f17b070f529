/* SPDX-License-Identifier: Apache-2.0 */
/* pack.c - compresses objects by zstd, and the other way. */
#include "fleet/fleet.h"

#include <stdlib.h>
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
