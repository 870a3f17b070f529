/* SPDX-License-Identifier: Apache-2.0 */
/* config.c - the configuration for agents. */
#include "tools/record/config.h"
#include "tools/tool.h"

#include "tracewheel/session.h"

#include <stdio.h>
#include <stdlib.h>

bool tw_config_add(struct tw_config *config, const char *key, const char *value)
{
	size_t bytes = strlen(key) + strlen(value) + 2;
	char *grown = realloc(config->text, config->bytes + bytes + 1);
	if (!grown) {
		tw_say("no memory.");
		return false;
	}
	sprintf(grown + config->bytes, "%s %s\n", key, value);
	config->text = grown;
	config->bytes += bytes;
	return true;
}

bool tw_config_add_flags(struct tw_config *config, const char *key, uint32_t flags)
{
	char names[512] = "";
	for (uint32_t bit = 1; bit <= TW_FLAG_CPU_TIMESTAMP; bit <<= 1) {
		if (!(flags & bit))
			continue;
		if (names[0])
			strcat(names, ",");
		strcat(names, tw_process_flag_name(bit));
	}
	return tw_config_add(config, key, names);
}
