/* SPDX-License-Identifier: Apache-2.0 */
/* paths.c - where the objects of a segment lie. */
#include "fleet/fleet.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

bool tw_fleet_is_node(const char *name)
{
	size_t bytes = strlen(name);
	return bytes && bytes < TW_FLEET_NODE_BYTES &&
	       strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-") == bytes;
}

static void put_minute(uint64_t wall_ns, char minute[64])
{
	time_t seconds = (time_t)(wall_ns / UINT64_C(1000000000));
	struct tm broken;
	strcpy(minute, "1970/01/01/00/00");
	if (gmtime_r(&seconds, &broken) && broken.tm_year >= 0 && broken.tm_year < 8100)
		strftime(minute, 64, "%Y/%m/%d/%H/%M", &broken);
}

void tw_fleet_paths(const struct tw_segment_identity *identity, const char *node, char segment[TW_FLEET_PATH_BYTES],
		    char summary[TW_FLEET_PATH_BYTES])
{
	char key[TW_SEGMENT_KEY_BYTES], minute[64];
	put_minute(identity->end_wall_ns, minute);
	tw_segment_key(identity, key);
	snprintf(segment, TW_FLEET_PATH_BYTES, "seg/%s/%s/%s.tws.zst", node, minute, key);
	snprintf(summary, TW_FLEET_PATH_BYTES, "sum/%s/%s-%s" TW_FLEET_SUMMARY_SUFFIX, minute, node, key);
}

void tw_fleet_minute_path(uint64_t wall_ns, char path[TW_FLEET_PATH_BYTES])
{
	char minute[64];
	put_minute(wall_ns, minute);
	snprintf(path, TW_FLEET_PATH_BYTES, "sum/%s", minute);
}

bool tw_fleet_parse_path(const char *path, char node[TW_FLEET_NODE_BYTES], struct tw_segment_identity *key)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	size_t bytes = strlen(name), suffix = sizeof TW_FLEET_SUMMARY_SUFFIX - 1;
	unsigned dashes = 0;
	if (bytes <= suffix || strcmp(name + bytes - suffix, TW_FLEET_SUMMARY_SUFFIX) != 0)
		return false;
	/* NODE may have dashes, BOOT-CAPTURE-NUMBER-CONTENT has three. */
	size_t end = bytes - suffix, at = end;
	while (at && dashes < 4)
		dashes += name[--at] == '-';
	if (dashes < 4 || !at || at >= TW_FLEET_NODE_BYTES || !tw_segment_parse_key(name + at + 1, end - at - 1, key))
		return false;
	snprintf(node, TW_FLEET_NODE_BYTES, "%.*s", (int)at, name);
	return true;
}
