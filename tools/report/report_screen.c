/* SPDX-License-Identifier: Apache-2.0 */
/* report_screen.c - building blocks of the tables of a report. */
#include "tools/report/report.h"
#include "views/names/names.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool is_utf8(void)
{
	const char *names[] = {"LC_ALL", "LC_CTYPE", "LANG"};
	for (size_t i = 0; i < 3; i++) {
		const char *value = getenv(names[i]);
		if (value && *value)
			return strcasestr(value, "utf-8") || strcasestr(value, "utf8");
	}
	return false;
}

struct tw_screen tw_screen_make(struct tw_out *out, double seconds)
{
	return (struct tw_screen){.out = out,
				  .columns = tw_terminal_columns(STDOUT_FILENO),
				  .is_utf8 = is_utf8(),
				  .cuts_names = tw_width_is_wanted(STDOUT_FILENO),
				  .is_coloured = tw_colour_is_wanted(STDOUT_FILENO),
				  .seconds = seconds};
}

const char *tw_screen_bold(const struct tw_screen *screen)
{
	return screen->is_coloured ? "\033[1m" : "";
}

const char *tw_screen_red(const struct tw_screen *screen)
{
	return screen->is_coloured ? "\033[1;31m" : "";
}

const char *tw_screen_plain(const struct tw_screen *screen)
{
	return screen->is_coloured ? "\033[0m" : "";
}

/* With eighths of a column if the terminal can show them. */
void tw_screen_bar(const struct tw_screen *screen, double share, int width)
{
	static const char *const eighths[] = {"", "\u258f", "\u258e", "\u258d", "\u258c", "\u258b", "\u258a", "\u2589"};
	if (!width)
		return;
	int units = (int)(share * width * 8 + 0.5), columns = 0;
	if (screen->is_coloured)
		tw_out_text(screen->out, "\033[36m");
	for (; units >= 8; units -= 8, columns++)
		tw_out_text(screen->out, screen->is_utf8 ? "\u2588" : "#");
	if (units && screen->is_utf8) {
		tw_out_text(screen->out, eighths[units]);
		columns++;
	} else if (columns == 0 && share > 0 && !screen->is_utf8) {
		tw_out_text(screen->out, ".");
		columns++;
	}
	tw_out_format(screen->out, "%s%*s", tw_screen_plain(screen), width - columns, "");
}

/* The columns of a word: colours take none, and a character of several bytes one. */
static int columns_of(const char *word, size_t bytes)
{
	int columns = 0;
	bool is_escape = false;
	for (size_t i = 0; i < bytes; i++) {
		is_escape |= word[i] == '\033';
		columns += !is_escape && ((unsigned char)word[i] & 0xc0) != 0x80;
		is_escape &= word[i] != 'm';
	}
	return columns;
}

static void put_wrapped_line(const struct tw_screen *screen, const char *line, size_t bytes)
{
	int column = 0;
	for (size_t at = 0; at < bytes;) {
		size_t blank = at;
		while (blank < bytes && line[blank] == ' ')
			blank++;
		size_t end = blank;
		while (end < bytes && line[end] != ' ')
			end++;
		int columns = columns_of(line + blank, end - blank), blanks = (int)(blank - at);
		if (column && column + blanks + columns > screen->columns) {
			tw_out_text(screen->out, "\n");
			column = blanks = 0;
			at = blank;
		}
		tw_out_bytes(screen->out, line + at, end - at);
		column += blanks + columns;
		at = end;
	}
}

void tw_screen_wrapped(const struct tw_screen *screen, const char *text, size_t bytes)
{
	for (size_t at = 0; at < bytes;) {
		const char *end = memchr(text + at, '\n', bytes - at);
		size_t line = end ? (size_t)(end - text) - at : bytes - at;
		if (screen->cuts_names)
			put_wrapped_line(screen, text + at, line);
		else
			tw_out_bytes(screen->out, text + at, line);
		if (end)
			tw_out_text(screen->out, "\n");
		at += line + (end != NULL);
	}
}

void tw_screen_cut(const struct tw_screen *screen, const char *text, int used)
{
	size_t bytes = strlen(text), width = screen->columns > used + 10 ? (size_t)(screen->columns - used) : 10;
	if (!screen->cuts_names || bytes <= width)
		tw_out_format(screen->out, "%s\n", text);
	else
		tw_out_format(screen->out, "%.*s..\n", (int)tw_utf8_part(text, width - 2), text);
}

/* A function that is shorter is not recognised. */
#define FUNCTION_COLUMNS 20

const char *tw_screen_short(const struct tw_screen *screen, const char *text, int width, char *out)
{
	char name[TW_NAME_SHORT_BYTES];
	if (!screen->cuts_names || (int)strlen(text) <= width)
		return text;
	const char *place = NULL;
	for (const char *at = text; (at = strstr(at, " at ")) != NULL; at += 4)
		place = at;
	int left = width - (place ? (int)strlen(place) : 0);
	snprintf(name, sizeof name, "%.*s", place ? (int)(place - text) : (int)strlen(text), text);
	/* The function tells more than its line. */
	if (place && left < FUNCTION_COLUMNS) {
		place = NULL;
		left = width;
	}
	tw_name_shorten(name, (size_t)(left > TW_NAME_WIDTH_MIN ? left : TW_NAME_WIDTH_MIN), out, TW_NAME_SHORT_BYTES);
	if (place)
		snprintf(out + strlen(out), TW_NAME_SHORT_BYTES - strlen(out), "%s", place);
	return out;
}

void tw_screen_name(const struct tw_screen *screen, const char *name, int width)
{
	char text[TW_NAME_SHORT_BYTES];
	tw_out_format(screen->out, "%s\n", tw_screen_short(screen, name, width, text));
}

struct tw_screen_names tw_screen_names(const struct tw_screen *screen, const char **names, size_t count, int width)
{
	size_t capacity = (size_t)(width > TW_NAME_WIDTH_MIN ? width : TW_NAME_WIDTH_MIN);
	return (struct tw_screen_names){.names = names,
					.count = count,
					.texts = names && screen->cuts_names ? tw_names_shorten(names, count, capacity)
									     : NULL};
}

const char *tw_screen_names_at(const struct tw_screen_names *names, size_t i)
{
	return names->texts ? names->texts[i] : names->names ? names->names[i] : "";
}

void tw_screen_names_free(struct tw_screen_names *names)
{
	tw_names_shorten_free(names->texts, names->count);
	free(names->names);
}

void tw_report_head(const struct tw_screen *screen, const struct tw_capture *capture,
		    const struct tw_capture_info *info)
{
	const struct tw_capture_image *images[100], *image = NULL;
	size_t count = tw_names_images(capture, images, sizeof images / sizeof *images);
	if (count)
		image = images[0];
	tw_out_text(screen->out, tw_screen_bold(screen));
	if (image)
		tw_out_command(screen->out, image->command, image->command_bytes,
			       screen->cuts_names ? (size_t)screen->columns - 1 : SIZE_MAX);
	else
		tw_out_text(screen->out, "(no process was recorded)");
	tw_out_format(screen->out, "%s\n", tw_screen_plain(screen));
	char figure[TW_FIGURE_BYTES];
	if (info->images > 1)
		tw_out_format(screen->out, "and %s started by it\n",
			      tw_figure_of(figure, info->images - 1, "more process or program",
					   "more processes or programs"));
}
