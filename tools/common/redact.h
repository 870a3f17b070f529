/* SPDX-License-Identifier: Apache-2.0 */
/* redact.h - the option --redact of record, attach and cut. */
#ifndef TW_TOOLS_REDACT_H
#define TW_TOOLS_REDACT_H

#include "tools/tool.h"

/* May this be its value?  False: it was reported. */
bool tw_redact_option(const struct tw_command *command, const char *value);
/* Those of @arguments that are redact=VALUE.  @command: NULL: an Erlang node's recorder, which answers on standard output. */
bool tw_redact_options(const struct tw_command *command, char *const *arguments, unsigned count);
/* Says of how many events text was replaced, in a capture. */
void tw_redact_say(uint64_t redacted, const char *path);

#endif
