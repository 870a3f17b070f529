/* SPDX-License-Identifier: Apache-2.0 */
/* redact.c - the option --redact of record, attach and cut. */
#include "tools/common/redact.h"

#include "tracewheel/consumer.h"

#include <stdio.h>
#include <string.h>

bool tw_redact_option(const struct tw_command *command, const char *value)
{
	char problem[200];
	int error = tw_redact_check(value, problem, sizeof problem);
	if (error)
		tw_usage(command, "--redact '%s': %s. It is a POSIX extended regular expression, as of grep -E.", value,
			 problem);
	return !error;
}

bool tw_redact_options(const struct tw_command *command, char *const *arguments, unsigned count)
{
	static const char key[] = "redact=";
	for (unsigned i = 0; i < count; i++) {
		const char *value = arguments[i] + sizeof key - 1;
		char problem[200];
		if (strncmp(arguments[i], key, sizeof key - 1) != 0)
			continue;
		if (command && !tw_redact_option(command, value))
			return false;
		if (!command && tw_redact_check(value, problem, sizeof problem)) {
			printf("error badarg the expression '%s' of redact: %s\n", value, problem);
			return false;
		}
	}
	return true;
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
