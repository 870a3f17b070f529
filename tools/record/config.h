/* SPDX-License-Identifier: Apache-2.0 */
/* config.h - the configuration for agents, as lines `KEY VALUE`. */
#ifndef TW_TOOLS_CONFIG_H
#define TW_TOOLS_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tw_config {
	char *text; /* NULL: nothing yet */
	size_t bytes;
};

/* False: no memory, which has been reported. */
bool tw_config_add(struct tw_config *config, const char *key, const char *value);
/* The names of flags of processes (TW_FLAG_*), with commas between them. */
bool tw_config_add_flags(struct tw_config *config, const char *key, uint32_t flags);

/*
 * Adds the name that the program was started by, if it is a link to its file; @program "": none.
 *
 * @alias	NAME_MAX + 1 bytes; gets that name.  False: no memory.
 */
bool tw_config_add_alias(struct tw_config *config, const char *program, const char *typed, char *alias);
/* The name in the line `alias NAME PATH` for that program, to be freed; NULL: none. */
char *tw_config_alias(const char *config, const char *program);

#endif
