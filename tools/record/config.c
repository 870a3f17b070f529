/* SPDX-License-Identifier: Apache-2.0 */
/* config.c - the configuration for agents. */
#include "tools/record/config.h"
#include "tools/common/patterns.h"
#include "tools/tool.h"

#include "tracewheel/session.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool tw_config_add(struct tw_config *config, const char *key, const char *value)
{
	size_t bytes = strlen(key) + strlen(value) + 2;
	char *grown = realloc(config->text, config->bytes + bytes + 1);
	if (!grown)
		return tw_complain("no memory.");
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

bool tw_config_add_alias(struct tw_config *config, const char *program, const char *typed, char *alias)
{
	char *real = *program ? realpath(program, NULL) : NULL, *line = NULL;
	const char *name = real ? tw_patterns_alias(typed, real) : NULL;
	bool is_right = true;
	if (name && strlen(name) <= NAME_MAX && !strpbrk(name, " \n") && !strchr(real, '\n')) {
		strcpy(alias, name);
		is_right = asprintf(&line, "%s %s", name, real) > 0 && tw_config_add(config, "alias", line);
		free(line);
	}
	free(real);
	return is_right;
}

char *tw_config_alias(const char *config, const char *program)
{
	static const char key[] = "alias ";
	char *real = realpath(program, NULL), *alias = NULL;
	for (const char *line = config; line && real && !alias;
	     line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL) {
		const char *name = line + sizeof key - 1, *space;
		if (strncmp(line, key, sizeof key - 1) != 0 || !(space = strchr(name, ' ')))
			continue;
		size_t bytes = strcspn(space + 1, "\n");
		if (strlen(real) == bytes && memcmp(real, space + 1, bytes) == 0)
			alias = strndup(name, (size_t)(space - name));
	}
	free(real);
	return alias;
}
