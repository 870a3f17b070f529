/* SPDX-License-Identifier: Apache-2.0 */
/* pack.c - compresses objects by zstd. */
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
