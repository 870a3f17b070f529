/* SPDX-License-Identifier: Apache-2.0 */
/* redact.c - the option --redact of record, attach and cut. */
#include "tools/common/redact.h"

#include "tracewheel/consumer.h"

bool tw_redact_option(const struct tw_command *command, const char *value)
{
	char problem[200];
	int error = tw_redact_check(value, problem, sizeof problem);
	if (error)
		tw_usage(command, "--redact '%s': %s. It is a POSIX extended regular expression, as of grep -E.", value,
			 problem);
	return !error;
}

void tw_redact_say(uint64_t redacted, const char *path)
{
	char figure[TW_FIGURE_BYTES];
	if (redacted)
		tw_say("text of %s in %s was replaced by '*' (--redact).",
		       tw_figure_of(figure, redacted, "event", "events"), path);
	else
		tw_say("--redact: nothing in the events of %s matched.", path);
}
