/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libc.c - our own versions of libc functions that would use the program's malloc (see bind.c).
 *
 * Hidden functions with libc's names, which all rooms in this library link to. tests/tools/own_calls_test.sh holds the list
 * of other functions that the library may call.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#undef strdup
#undef strndup
#define HIDDEN __attribute__((visibility("hidden")))

HIDDEN char *strndup(const char *text, size_t most)
{
	size_t bytes = strnlen(text, most);
	char *copy = malloc(bytes + 1);

	if (copy) {
		memcpy(copy, text, bytes);
		copy[bytes] = '\0';
	}
	return copy;
}

HIDDEN char *strdup(const char *text)
{
	return strndup(text, strlen(text));
}

HIDDEN int vasprintf(char **out, const char *format, va_list list)
{
	va_list again;
	int bytes;

	va_copy(again, list);
	bytes = vsnprintf(NULL, 0, format, again);
	va_end(again);
	*out = bytes < 0 ? NULL : malloc((size_t)bytes + 1);
	return *out ? vsnprintf(*out, (size_t)bytes + 1, format, list) : -1;
}

HIDDEN int asprintf(char **out, const char *format, ...)
{
	va_list list;
	int bytes;

	va_start(list, format);
	bytes = vasprintf(out, format, list);
	va_end(list);
	return bytes;
}

static void swap(char *a, char *b, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++) {
		char byte = a[i];

		a[i] = b[i];
		b[i] = byte;
	}
}

/* Restores the heap order below `at`. */
static void sift(char *base, size_t at, size_t count, size_t bytes, int (*compare)(const void *, const void *))
{
	for (size_t child; (child = 2 * at + 1) < count; at = child) {
		if (child + 1 < count && compare(base + child * bytes, base + (child + 1) * bytes) < 0)
			child++;
		if (compare(base + at * bytes, base + child * bytes) >= 0)
			return;
		swap(base + at * bytes, base + child * bytes, bytes);
	}
}

/* Heapsort: libc's qsort allocates. */
HIDDEN void qsort(void *base, size_t count, size_t bytes, int (*compare)(const void *, const void *))
{
	for (size_t i = count / 2; i-- > 0;)
		sift(base, i, count, bytes, compare);
	for (size_t end = count; end-- > 1;) {
		swap(base, (char *)base + end * bytes, bytes);
		sift(base, 0, end, bytes, compare);
	}
}
