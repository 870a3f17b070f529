/* SPDX-License-Identifier: Apache-2.0 */
/* say.c - messages, properties of the terminal, and progress. */
#include "views/output/output.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#define COLUMNS_DEFAULT 80
#define METER_FIRST_NS	UINT64_C(1000000000)
#define METER_EVERY_NS	UINT64_C(200000000)

/* Names in a message may contain anything, and the message must be one line. */
void tw_say_list(const char *format, va_list list)
{
	char *text = NULL, *line = NULL, piece[TW_CLEAN_PIECE_BYTES];
	size_t line_bytes = 0;
	int bytes = vasprintf(&text, format, list);
	/* Standard error has no buffer: each piece would be a system call. */
	FILE *out = open_memstream(&line, &line_bytes);
	for (int i = 0; i < bytes;) {
		size_t piece_bytes;
		i += (int)tw_clean_piece(text + i, (size_t)(bytes - i), piece, &piece_bytes);
		fwrite(piece, 1, piece_bytes, out ? out : stderr);
	}
	fputc('\n', out ? out : stderr);
	if (out && fclose(out) == 0)
		fwrite(line, 1, line_bytes, stderr);
	free(line);
	if (bytes >= 0)
		free(text);
}

static void say(const char *format, va_list list)
{
	fprintf(stderr, "tracewheel: ");
	tw_say_list(format, list);
}

void tw_say(const char *format, ...)
{
	va_list list;
	va_start(list, format);
	say(format, list);
	va_end(list);
}

int tw_fail(const char *format, ...)
{
	va_list list;
	va_start(list, format);
	say(format, list);
	va_end(list);
	return TW_EXIT_FAILURE;
}

bool tw_complain(const char *format, ...)
{
	va_list list;
	va_start(list, format);
	say(format, list);
	va_end(list);
	return false;
}

bool tw_flush_stdout(void)
{
	if (fflush(stdout) == 0 && !ferror(stdout))
		return true;
	if (errno != EPIPE)
		tw_say("writing the answer failed: %s.", strerror(errno));
	return false;
}

int tw_terminal_columns(int fd)
{
	const char *asked = getenv("COLUMNS");
	int columns = asked ? atoi(asked) : 0;
	struct winsize size;
	if (columns <= 0 && ioctl(fd, TIOCGWINSZ, &size) == 0)
		columns = size.ws_col;
	if (columns <= 0)
		columns = COLUMNS_DEFAULT;
	return columns < 40 ? 40 : columns > 1000 ? 1000 : columns;
}

bool tw_width_is_wanted(int fd)
{
	const char *asked = getenv("COLUMNS");
	return isatty(fd) || (asked && atoi(asked) > 0);
}

static enum { COLOUR_AUTO, COLOUR_ALWAYS, COLOUR_NEVER } colour;

bool tw_colour_choose(const char *when)
{
	static const char *const words[] =
		{[COLOUR_AUTO] = "auto", [COLOUR_ALWAYS] = "always", [COLOUR_NEVER] = "never"};
	for (unsigned i = COLOUR_AUTO; i <= COLOUR_NEVER; i++) {
		if (strcmp(when, words[i]) == 0) {
			colour = i;
			return true;
		}
	}
	return false;
}

bool tw_colour_is_wanted(int fd)
{
	if (colour != COLOUR_AUTO)
		return colour == COLOUR_ALWAYS;
	const char *no = getenv("NO_COLOR"), *term = getenv("TERM");
	return isatty(fd) && !(no && *no) && term && strcmp(term, "dumb") != 0;
}

uint64_t tw_now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

void tw_meter_start(struct tw_meter *meter, const char *what)
{
	*meter = (struct tw_meter){.what = what, .started_ns = tw_now_ns(), .is_terminal = isatty(STDERR_FILENO)};
	meter->shown_ns = meter->started_ns + METER_FIRST_NS - METER_EVERY_NS;
}

void tw_meter_at(struct tw_meter *meter, uint64_t done, uint64_t total)
{
	if (!meter->is_terminal)
		return;
	uint64_t now = tw_now_ns();
	if (now < meter->shown_ns + METER_EVERY_NS)
		return;
	meter->shown_ns = now;
	meter->is_shown = true;
	double share = total ? (double)done / (double)total : 0;
	if (share <= 0 || share > 1) {
		fprintf(stderr, "\r\033[K%s ...", meter->what);
		return;
	}
	double left = (double)(now - meter->started_ns) / 1e9 * (1 - share) / share;
	fprintf(stderr, "\r\033[K%s: %.0f %%, about %.0f s left", meter->what, share * 100, left);
}

void tw_meter_stop(struct tw_meter *meter)
{
	if (meter->is_shown)
		fprintf(stderr, "\r\033[K");
	meter->is_shown = false;
}
