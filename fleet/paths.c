/* SPDX-License-Identifier: Apache-2.0 */
/* paths.c - where the objects of a segment lie. */
#include "fleet/fleet.h"

#include <stdio.h>
#include <time.h>

void tw_fleet_paths(const struct tw_segment_identity *identity, const char *node, char segment[TW_FLEET_PATH_BYTES],
		    char summary[TW_FLEET_PATH_BYTES])
{
	time_t seconds = (time_t)(identity->end_wall_ns / UINT64_C(1000000000));
	char key[TW_SEGMENT_KEY_BYTES], minute[64] = "1970/01/01/00/00";
	struct tm broken;
	if (gmtime_r(&seconds, &broken) && broken.tm_year >= 0 && broken.tm_year < 8100)
		strftime(minute, sizeof minute, "%Y/%m/%d/%H/%M", &broken);
	tw_segment_key(identity, key);
	snprintf(segment, TW_FLEET_PATH_BYTES, "seg/%s/%s/%s.tws.zst", node, minute, key);
	snprintf(summary, TW_FLEET_PATH_BYTES, "sum/%s/%s-%s.jsonl.zst", minute, node, key);
}
