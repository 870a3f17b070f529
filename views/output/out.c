/* SPDX-License-Identifier: Apache-2.0 */
/* out.c - writes standard output in large pieces, and formats numbers itself: millions of lines a second. */
#include "views/output/output.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *text_before = "";

void tw_out_before(const char *text)
{
	text_before = text;
}

void tw_out_init(struct tw_out *out, int fd)
{
	out->fd = fd;
	out->error = 0;
	out->used = 0;
	out->flushed_bytes = 0;
	out->is_quoted = false;
	if (fd != STDOUT_FILENO || !*text_before)
		return;
	tw_out_text(out, text_before);
	text_before = "";
}

static void write_all(struct tw_out *out, const char *data, size_t bytes)
{
	while (bytes && !out->error && out->fd >= 0) {
		ssize_t n = write(out->fd, data, bytes);
		if (n >= 0) {
			data += n;
			bytes -= (size_t)n;
		} else if (errno != EINTR) {
			out->error = errno;
		}
	}
}

/* Characters of markup stand in strings of JSON only. */
static void write_quoted(struct tw_out *out, const char *data, size_t bytes)
{
	while (bytes) {
		size_t plain = 0;
		char quoted[8];
		while (plain < bytes && !memchr("<>&", data[plain], 3))
			plain++;
		write_all(out, data, plain);
		if (plain < bytes)
			write_all(out, quoted, (size_t)snprintf(quoted, sizeof quoted, "\\u%04x", data[plain++]));
		data += plain;
		bytes -= plain;
	}
}

static void write_out(struct tw_out *out, const char *data, size_t bytes)
{
	if (out->is_quoted)
		write_quoted(out, data, bytes);
	else
		write_all(out, data, bytes);
}

int tw_out_flush(struct tw_out *out)
{
	write_out(out, out->data, out->used);
	out->flushed_bytes += out->used;
	out->used = 0;
	return out->error;
}

void tw_out_bytes(struct tw_out *out, const void *data, size_t bytes)
{
	tw_out_reserve(out);
	if (bytes > TW_OUT_SLACK) {
		tw_out_flush(out);
		write_out(out, data, bytes);
		out->flushed_bytes += bytes;
		return;
	}
	memcpy(out->data + out->used, data, bytes);
	out->used += bytes;
}

void tw_out_text(struct tw_out *out, const char *text)
{
	tw_out_bytes(out, text, strlen(text));
}

void tw_out_format(struct tw_out *out, const char *format, ...)
{
	va_list list;
	va_start(list, format);
	tw_out_reserve(out);
	int n = vsnprintf(out->data + out->used, TW_OUT_SLACK, format, list);
	va_end(list);
	if (n > 0)
		out->used += n < TW_OUT_SLACK ? (size_t)n : TW_OUT_SLACK - 1;
}

/* Nothing is flushed before the buffer holds TW_OUT_BYTES: so this much space after the mark is enough. */
uint64_t tw_out_mark(struct tw_out *out)
{
	if (out->used > TW_OUT_BYTES - TW_OUT_SLACK)
		tw_out_flush(out);
	return out->flushed_bytes + out->used;
}

bool tw_out_cancel(struct tw_out *out, uint64_t mark)
{
	if (mark < out->flushed_bytes)
		return false;
	out->used = (size_t)(mark - out->flushed_bytes);
	return true;
}

int tw_out_finish(struct tw_out *out)
{
	int error = tw_out_flush(out);
	if (error == 0 || error == EPIPE)
		return error ? TW_EXIT_FAILURE : TW_EXIT_OK;
	return tw_fail("writing the answer failed: %s.", strerror(error));
}

void tw_out_remove_part(const char *path)
{
	struct stat status;
	if (lstat(path, &status) == 0 && S_ISREG(status.st_mode) && unlink(path) == 0)
		tw_say("'%s' was not written to its end, and is removed.", path);
}

int tw_out_finish_file(struct tw_out *out, const char *path)
{
	int code = tw_out_finish(out);
	if (out->fd == STDOUT_FILENO)
		return code;
	close(out->fd);
	if (code)
		tw_out_remove_part(path);
	return code;
}

static const char pairs[] = "00010203040506070809101112131415161718192021222324252627282930313233343536373839"
			    "40414243444546474849505152535455565758596061626364656667686970717273747576777879"
			    "8081828384858687888990919293949596979899";

/* Writes backwards from end; returns the start of the number. */
static char *digits_before(char *end, uint64_t value)
{
	while (value >= 100) {
		end -= 2;
		memcpy(end, pairs + value % 100 * 2, 2);
		value /= 100;
	}
	if (value >= 10) {
		end -= 2;
		memcpy(end, pairs + value * 2, 2);
	} else {
		*--end = (char)('0' + value);
	}
	return end;
}

void tw_put_u64(struct tw_out *out, uint64_t value)
{
	char text[20], *from = digits_before(text + sizeof text, value);
	tw_put(out, from, (size_t)(text + sizeof text - from));
}

void tw_put_digits(struct tw_out *out, uint64_t value, unsigned digits)
{
	char *to = out->data + out->used;
	for (unsigned i = digits; i > 0; i--) {
		to[i - 1] = (char)('0' + value % 10);
		value /= 10;
	}
	out->used += digits;
}

void tw_put_hex(struct tw_out *out, uint64_t value)
{
	int shift = 60;
	while (shift > 0 && (value >> shift) == 0)
		shift -= 4;
	for (; shift >= 0; shift -= 4)
		tw_put_char(out, "0123456789abcdef"[value >> shift & 15]);
}
