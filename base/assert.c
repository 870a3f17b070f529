/* SPDX-License-Identifier: Apache-2.0 */
/* assert.c - reports a failed assertion and ends the process. */
#include "base/assert.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static size_t append(char *line, size_t used, size_t capacity, const char *text)
{
	size_t bytes = strlen(text);

	if (bytes > capacity - used)
		bytes = capacity - used;
	memcpy(line + used, text, bytes);
	return used + bytes;
}

_Noreturn void tw_assert_failed(const char *expression, const char *file, int line_number)
{
	char line[512], digits[16];
	size_t used = 0, at = sizeof digits;
	unsigned n = (unsigned)line_number;

	digits[--at] = '\0';
	do {
		digits[--at] = (char)('0' + n % 10);
		n /= 10;
	} while (n && at);
	used = append(line, used, sizeof line - 1, "tracewheel: bug: assertion failed: ");
	used = append(line, used, sizeof line - 1, expression);
	used = append(line, used, sizeof line - 1, " at ");
	used = append(line, used, sizeof line - 1, file);
	used = append(line, used, sizeof line - 1, ":");
	used = append(line, used, sizeof line - 1, digits + at);
	line[used++] = '\n';
	if (write(STDERR_FILENO, line, used) < 0)
		abort();
	abort();
}
