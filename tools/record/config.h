/* SPDX-License-Identifier: Apache-2.0 */
/* config.h - what agents are told, as lines `KEY VALUE`. */
#ifndef TW_TOOLS_CONFIG_H
#define TW_TOOLS_CONFIG_H

#include <stdbool.h>
#include <stddef.h>

struct tw_config {
	char *text; /* NULL: nothing yet */
	size_t bytes;
};

/* False: no memory, which is said. */
bool tw_config_add(struct tw_config *config, const char *key, const char *value);

#endif
